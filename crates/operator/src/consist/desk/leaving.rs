//! Taking everything off again: `linchpin consist disable`.
//!
//! Employers are left as if they had lost their label; then the labels, gates and annotations of PodOpsLifecycle come off
//! the pods, and last our webhook configurations go. It ends when nothing is left.

use std::sync::Arc;

use linchpin_cluster::own::{MarkPatch, OperatorRequests, OwnKind, OwnTarget};
use linchpin_consist::{
    PodView,
    lifecycle::{is_written_annotation, is_written_label},
    settle::EmployerView,
};
use linchpin_words::{Gvk, Timestamp, keys, keys::consist};
use serde_json::{Map, Value, json};

use super::{Desk, Wake, pods::PodWrite};
use crate::{
    consist::{ConsistMode, acts::DEADLINE, cluster_view::Name},
    settings::LeaderElection,
};

impl Desk {
    /// Whether there is nothing left to be taken away. What has been seen since everything was last looked at may still have
    /// to be.
    pub(super) fn has_left(&self) -> bool {
        self.parts.mode != ConsistMode::Serve
            && self.parts.crew.is_complete
            && self.has_seen_all
            && self.cases.is_empty()
            && self.pods.is_empty()
    }

    /// An employer as it is left: without its provider it is released as if by hand.
    pub(super) fn as_left(&self, employer: Arc<EmployerView>) -> Arc<EmployerView> {
        if !matches!(self.parts.mode, ConsistMode::Leave { without_provider: true, .. }) {
            return employer;
        }
        let mut employer = EmployerView::clone(&employer);
        employer.annotations.insert(keys::PROCEED.to_owned(), "clean".to_owned());
        Arc::new(employer)
    }

    /// Takes the marks of PodOpsLifecycle off a pod.
    pub(super) fn strip(&mut self, name: &Name, pod: &Arc<PodView>, time: Timestamp) {
        let mut case = self.pods.remove(name).filter(|case| case.uid == pod.uid).unwrap_or_default();
        case.uid.clone_from(&pod.uid);
        let own = {
            let shared = self.parts.shared.clone();
            let cluster_view = shared.look();
            self.is_own_engine(&cluster_view)
        };
        let Some(write) = left_on(pod).filter(|_| own) else { return };
        if case.writing || pod.version < case.written {
            self.pods.insert(name.clone(), case);
            return;
        }
        if let Some(from) = case.not_before.filter(|from| *from > time) {
            self.timers.set(Wake::Pod(name.clone()), Some(from));
        } else {
            self.send_pod(name, pod, write, &mut case);
        }
        self.pods.insert(name.clone(), case);
    }

    /// Deletes our webhook configurations.
    pub(super) async fn take_configurations_away(&self) {
        let ConsistMode::Leave { configurations: Some(prefix), .. } = &self.parts.mode else { return };
        for (kind, plural, ending) in [
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "mutating"),
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "validating"),
        ] {
            let kind = OwnKind::new(&Gvk::new("admissionregistration.k8s.io", "v1", kind), plural, false);
            let name = format!("{prefix}-{ending}");
            let place = OwnTarget { kind: &kind, namespace: None, name: &name };
            let found = self.write_context.own_requests.read(place, DEADLINE).await;
            let uid = match &found {
                Ok(Some(found)) => found["metadata"]["uid"].as_str(),
                Ok(None) => continue,
                Err(error) => {
                    tracing::warn!(name, "cannot look for a webhook configuration: {error}");
                    continue;
                }
            };
            if let Some(uid) = uid
                && let Err(error) = self.write_context.own_requests.remove(place, uid, DEADLINE).await
            {
                tracing::warn!(name, "cannot delete a webhook configuration: {error}");
            }
        }
    }
}

/// Ends the processes of a Deployment, so that nobody puts on again what is taken off.
pub(in crate::consist) async fn scale_down(
    own_requests: &OperatorRequests,
    namespace: &str,
    name: &str,
) -> Result<(), String> {
    let kind = OwnKind::new(&Gvk::new("apps", "v1", "Deployment"), "deployments", true);
    let place = OwnTarget { kind: &kind, namespace: Some(namespace), name };
    let body = json!({"spec": {"replicas": 0}});
    let scaled = own_requests.change(place, Some("scale"), MarkPatch::Merge, &body, DEADLINE).await;
    scaled.map(drop).map_err(|error| format!("cannot scale Deployment {namespace}/{name} down: {error}"))
}

/// The Lease of this process, about which what is left is reported: its namespace and name.
pub(super) fn lease<'a>(election: Option<&'a LeaderElection>, own: &'a str) -> (&'a str, &'a str) {
    election.map_or((own, "linchpin-consist"), |election| {
        (election.namespace.as_deref().unwrap_or(own), election.name.as_str())
    })
}

/// What of PodOpsLifecycle is on a pod, as the write that takes it off; none where nothing is.
fn left_on(pod: &PodView) -> Option<PodWrite> {
    if pod.is_terminating() {
        return None;
    }
    // The empty entries that a released pod keeps, and what a drain put there.
    let ours =
        [(consist::AVAILABLE_CONDITIONS, "{}"), (consist::DELETION_COST, consist::DELETION_COST_DRAINING)];
    let empty = |key: &&String| {
        let text = pod.annotations.get(*key).map(String::as_str);
        ours.iter().any(|(ours, value)| key.as_str() == *ours && text == Some(*value))
    };
    let gone = |keys: Vec<&String>| -> Map<String, Value> {
        keys.into_iter().map(|key| (key.clone(), Value::Null)).collect()
    };
    let labels = gone(pod.labels.keys().filter(|key| is_written_label(key)).collect());
    let noted = |key: &&String| is_written_annotation(key) || empty(key);
    let annotations = gone(pod.annotations.keys().filter(noted).collect());
    if labels.is_empty() && annotations.is_empty() {
        return (pod.gated && pod.gate != Some(true)).then_some(PodWrite::Gate(true));
    }
    let mut metadata = Map::new();
    for (field, keys) in [("labels", labels), ("annotations", annotations)] {
        if !keys.is_empty() {
            metadata.insert(field.to_owned(), Value::Object(keys));
        }
    }
    Some(PodWrite::Metadata(json!(metadata)))
}

#[cfg(test)]
mod tests {
    use linchpin_cluster::{
        events::EventRecorder,
        identity::OperatorClient,
        lease::{Fence, Leadership, Timing},
        own::{OperatorRequests, OwnEvent},
    };
    use tokio::sync::{Notify, mpsc, watch};

    use super::*;
    use crate::{
        consist::{
            acts::WriteContext,
            cluster_view::{SharedClusterView, Watch},
            counts::ConsistCounts,
            crew::AdapterWorkers,
            desk::DeskParts,
            roster::Roster,
            settings::Lifecycle,
        },
        run, shutdown,
    };

    #[test]
    fn what_is_left_is_reported_in_the_namespace_of_the_lease() {
        let election = |namespace: Option<&str>| LeaderElection {
            name: "edge".to_owned(),
            namespace: namespace.map(str::to_owned),
            identity: None,
            timing: Timing::default(),
        };
        assert_eq!(lease(Some(&election(Some("system"))), "default"), ("system", "edge"));
        assert_eq!(lease(Some(&election(None)), "default"), ("default", "edge"));
        assert_eq!(lease(None, "default"), ("default", "linchpin-consist"));
    }

    #[tokio::test]
    async fn nobody_has_left_before_what_was_seen_last_was_looked_at() {
        let (_leads, leadership) = watch::channel(Leadership::ALONE);
        let context = run::tests::context(leadership.clone(), shutdown::channel().1);
        let (shared, roster) = (SharedClusterView::default(), Roster::new(context.health.gate("consist")));
        let kinds = roster.staff().kinds;
        shared.expect(kinds.all(), &context.settings.watch_namespaces);
        let write_context = WriteContext {
            own_requests: OperatorRequests::new(&context.transport),
            fence: Fence::current(&leadership).unwrap(),
        };
        let parts = DeskParts {
            recorder: EventRecorder::new(OperatorClient::new(&context.transport), "test"),
            context,
            shared: shared.clone(),
            crew: Arc::default(),
            kinds: kinds.clone(),
            roster,
            lifecycle: Lifecycle::default(),
            mode: ConsistMode::Leave { without_provider: false, configurations: None, scale_down: None },
            left: Arc::new(Notify::new()),
            counts: ConsistCounts::default(),
        };
        let mut desk = Desk::new(parts, write_context, mpsc::unbounded_channel().0);
        let everybody = || {
            let mut crew = AdapterWorkers::default();
            crew.is_complete = true;
            Arc::new(crew)
        };
        desk.begin_anew();
        desk.parts.crew = everybody();
        assert!(!desk.has_left(), "nothing was seen yet");
        let (engines, others): (Vec<_>, Vec<_>) =
            kinds.all().into_iter().partition(|(watch, ..)| *watch == Watch::Engines);
        for (kinds, who) in [(others, "nobody knows whose the labels of pods are"), (engines, "")] {
            for (watch, kind, _) in kinds {
                shared.note(watch, &kind.gvk, None, &OwnEvent::Synced);
            }
            assert!(!desk.has_left(), "what is seen is not looked at yet");
            desk.begin_anew();
            desk.parts.crew = everybody();
            assert_eq!(desk.has_left(), who.is_empty(), "{who}");
        }
    }
}
