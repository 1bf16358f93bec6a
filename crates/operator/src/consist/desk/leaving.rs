//! Taking everything off again: `linchpin consist disable`.
//!
//! Employers are left as if they had lost their label; then the labels, gates and annotations of PodOpsLifecycle come off
//! the pods, and last our webhook configurations go. It ends when nothing is left.

use std::sync::Arc;

use linchpin_cluster::own::{Change, Errands, OwnKind, Place};
use linchpin_consist::{PodView, lifecycle::Prefix, settle::EmployerView};
use linchpin_words::{Gvk, Timestamp, keys, keys::consist};
use serde_json::{Map, Value, json};

use super::{Desk, Wake, pods::Write};
use crate::consist::{Mode, acts::DEADLINE, sight::Name};

/// What the key of a permission begins with.
const PERMISSION: &str = "operation-permission.podopslifecycle.kusionstack.io/";

impl Desk {
    /// Whether there is nothing left to be taken away.
    pub(super) fn has_left(&self) -> bool {
        self.office.mode != Mode::Serve
            && self.office.crew.is_complete
            && self.office.shared.look().lacks().is_none()
            && self.cases.is_empty()
            && self.pods.is_empty()
    }

    /// An employer as it is left: without its provider it is released as if by hand.
    pub(super) fn as_left(&self, employer: Arc<EmployerView>) -> Arc<EmployerView> {
        if !matches!(self.office.mode, Mode::Leave { without_provider: true, .. }) {
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
            let shared = self.office.shared.clone();
            let sight = shared.look();
            self.is_own_engine(&sight)
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
        let Mode::Leave { configurations: Some(prefix), .. } = &self.office.mode else { return };
        for (kind, plural, ending) in [
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "mutating"),
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "validating"),
        ] {
            let kind = OwnKind::new(&Gvk::new("admissionregistration.k8s.io", "v1", kind), plural, false);
            let name = format!("{prefix}-{ending}");
            let place = Place { kind: &kind, namespace: None, name: &name };
            let found = self.hands.errands.read(place, DEADLINE).await;
            let uid = match &found {
                Ok(Some(found)) => found["metadata"]["uid"].as_str(),
                Ok(None) => continue,
                Err(error) => {
                    tracing::warn!(name, "cannot look for a webhook configuration: {error}");
                    continue;
                }
            };
            if let Some(uid) = uid
                && let Err(error) = self.hands.errands.remove(place, uid, DEADLINE).await
            {
                tracing::warn!(name, "cannot delete a webhook configuration: {error}");
            }
        }
    }
}

/// Ends the processes of a Deployment, so that nobody puts on again what is taken off.
pub(in crate::consist) async fn scale_down(
    errands: &Errands,
    namespace: &str,
    name: &str,
) -> Result<(), String> {
    let kind = OwnKind::new(&Gvk::new("apps", "v1", "Deployment"), "deployments", true);
    let place = Place { kind: &kind, namespace: Some(namespace), name };
    let body = json!({"spec": {"replicas": 0}});
    let scaled = errands.change(place, Some("scale"), Change::Merge, &body, DEADLINE).await;
    scaled.map(drop).map_err(|error| format!("cannot scale Deployment {namespace}/{name} down: {error}"))
}

/// What of PodOpsLifecycle is on a pod, as the write that takes it off; none where nothing is.
fn left_on(pod: &PodView) -> Option<Write> {
    if pod.is_terminating() {
        return None;
    }
    let fixed = [consist::SERVICE_AVAILABLE, consist::PREPARING_TO_DELETE];
    let is_label = |key: &&String| {
        fixed.contains(&key.as_str())
            || key.starts_with(PERMISSION)
            || Prefix::ALL.into_iter().any(|prefix| prefix.has(key))
    };
    let notes = [consist::EVICT_REQUESTED, consist::DELETE_REQUESTED_BY, consist::TO_DELETE_IGNORED];
    let is_note =
        |key: &&String| notes.contains(&key.as_str()) || key.starts_with(consist::RULE_DETAIL_PREFIX);
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
    let labels = gone(pod.labels.keys().filter(is_label).collect());
    let annotations = gone(pod.annotations.keys().filter(|key| is_note(key) || empty(key)).collect());
    if labels.is_empty() && annotations.is_empty() {
        return (pod.gated && pod.gate != Some(true)).then_some(Write::Gate(true));
    }
    let mut metadata = Map::new();
    for (field, keys) in [("labels", labels), ("annotations", annotations)] {
        if !keys.is_empty() {
            metadata.insert(field.to_owned(), Value::Object(keys));
        }
    }
    Some(Write::Metadata(json!(metadata)))
}
