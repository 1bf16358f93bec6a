//! A pod as everything here sees it: the few fields that decide, read from the object without ever failing.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    sync::Arc,
};

use linchpin_words::{Timestamp, hash::Fnv, keys::consist as keys};
use serde_json::Value;

use crate::{
    lifecycle::{Prefix, is_written_annotation, is_written_label},
    marks::PodEntries,
};

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    /// Its name.
    pub name: String,
    /// Which incarnation.
    pub uid: String,
    /// Its resourceVersion.
    pub version: u64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// When it is to be gone; none while nobody deletes it.
    pub deletion: Option<Timestamp>,
    /// The kind of the controller that owns it.
    pub owner: Option<String>,
    /// Whether its spec has the readiness gate.
    pub gated: bool,
    /// The gate's condition: none where there is none.
    pub gate: Option<bool>,
    /// When that condition last changed.
    pub gate_since: Option<Timestamp>,
    /// Whether it is Ready.
    pub ready: bool,
    /// Whether a container of it runs, or may run: false only where every container is known not to.
    pub running: bool,
    /// Whether it has a node.
    pub scheduled: bool,
    /// Whether it is deleted because its node is gone or out of service, as the collector of pods says.
    pub node_gone: bool,
    /// Whether it shares its node's addresses.
    pub host_network: bool,
    /// Its phase.
    pub phase: String,
    /// Its address.
    pub ip: String,
    /// Its first IPv6 address.
    pub ipv6: String,
    /// A fingerprint of what it is beyond its metadata, where it is no pod: what an adapter makes of it nobody knows here.
    pub content: u64,
    /// The object, as adapters get it.
    pub object: Arc<Value>,
}

impl PodView {
    /// A pod from an object of any shape: what is missing or of another type counts as not there.
    pub fn of(object: &Arc<Value>) -> Self {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let time = |path: &str| {
            object.pointer(path).and_then(Value::as_str).and_then(|text| Timestamp::parse(text).ok())
        };
        let gate = condition(object, keys::SERVICE_READY);
        let addresses = list(object, "/status/podIPs");
        let mut addresses = addresses.filter_map(|address| address.get("ip").and_then(Value::as_str));
        let mut gates = list(object, "/spec/readinessGates");
        let mut owners = list(object, "/metadata/ownerReferences");
        Self {
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            version: text("/metadata/resourceVersion").parse().unwrap_or_default(),
            labels: texts(object, "/metadata/labels"),
            annotations: texts(object, "/metadata/annotations"),
            finalizers: list(object, "/metadata/finalizers")
                .filter_map(|finalizer| finalizer.as_str().map(str::to_owned))
                .collect(),
            created: time("/metadata/creationTimestamp"),
            deletion: time("/metadata/deletionTimestamp"),
            owner: owners
                .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))
                .and_then(|owner| owner.get("kind")?.as_str().map(str::to_owned)),
            gated: gates
                .any(|gate| gate.get("conditionType").and_then(Value::as_str) == Some(keys::SERVICE_READY)),
            gate: gate.map(is_true),
            gate_since: gate
                .and_then(|gate| gate.get("lastTransitionTime")?.as_str())
                .and_then(|text| Timestamp::parse(text).ok()),
            ready: condition(object, "Ready").is_some_and(is_true),
            running: may_run(object),
            scheduled: !text("/spec/nodeName").is_empty(),
            node_gone: condition(object, "DisruptionTarget").is_some_and(|target| {
                is_true(target) && target.get("reason").and_then(Value::as_str) == Some("DeletionByPodGC")
            }),
            host_network: object.pointer("/spec/hostNetwork").and_then(Value::as_bool).unwrap_or_default(),
            phase: text("/status/phase"),
            ip: text("/status/podIP"),
            ipv6: addresses.find(|address| address.contains(':')).unwrap_or_default().to_owned(),
            content: content(object),
            object: Arc::clone(object),
        }
    }

    /// Whether it is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.deletion.is_some()
    }

    /// Whether it opted in.
    pub fn is_controlled(&self) -> bool {
        self.labels.get(keys::CONTROL).is_some_and(|value| value == "true")
    }

    /// Its entries.
    pub fn entries(&self) -> PodEntries {
        PodEntries::read(self.annotations.get(keys::AVAILABLE_CONDITIONS).map(String::as_str))
    }

    /// Whether its entries may have one of this employer: cheaper than reading them.
    pub fn mentions(&self, key: &str) -> bool {
        self.annotations.get(keys::AVAILABLE_CONDITIONS).is_some_and(|text| text.contains(key))
    }

    /// Whether it may have traffic, as `GetCommonPodEmployeeStatus` says: not terminating, Ready, and the gate's condition
    /// is True or absent; without that condition, also not between preparing and the end of an operation.
    pub fn is_lifecycle_ready(&self) -> bool {
        let open = self.gate.unwrap_or_else(|| !self.is_drained());
        !self.is_terminating() && self.ready && open
    }

    /// Whether an operation is between preparing and its end.
    fn is_drained(&self) -> bool {
        self.labels.keys().any(|label| Prefix::Preparing.has(label) || Prefix::Operate.has(label))
    }

    /// A fingerprint of all that an adapter may make of the pod: our own marks are not part of it, so writing one does not
    /// make it another question to the provider. A gate that closes does: what was seen before proves nothing after.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::default();
        (&self.name, &self.uid, self.is_terminating(), self.is_lifecycle_ready()).hash(&mut hash);
        (self.gate, self.is_drained()).hash(&mut hash);
        (&self.ip, &self.ipv6, self.host_network, &self.phase, self.content).hash(&mut hash);
        for label in self.labels.iter().filter(|(key, _)| !is_written_label(key)) {
            label.hash(&mut hash);
        }
        let ours = |key: &str| key == keys::AVAILABLE_CONDITIONS || is_written_annotation(key);
        for annotation in self.annotations.iter().filter(|(key, _)| !ours(key)) {
            annotation.hash(&mut hash);
        }
        hash.finish()
    }
}

/// The condition of a type.
fn condition<'a>(object: &'a Value, of_type: &str) -> Option<&'a Value> {
    list(object, "/status/conditions")
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(of_type))
}

fn is_true(condition: &Value) -> bool {
    condition.get("status").and_then(Value::as_str) == Some("True")
}

fn list<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(path).and_then(Value::as_array).into_iter().flatten()
}

/// The texts of a map of texts.
pub(crate) fn texts(object: &Value, path: &str) -> BTreeMap<String, String> {
    let fields = object.pointer(path).and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// A fingerprint of an employee's spec, status and whatever else it has beside its metadata; of a pod none: what adapters
/// make of those is known, and a pod's status changes more often than that.
fn content(object: &Value) -> u64 {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    if text("/kind").is_none_or(|kind| kind == "Pod")
        && text("/apiVersion").is_none_or(|version| version == "v1")
    {
        return 0;
    }
    let mut hash = Fnv::default();
    for (field, value) in object.as_object().into_iter().flatten().filter(|(field, _)| *field != "metadata") {
        (field, value.to_string()).hash(&mut hash);
    }
    hash.finish()
}

/// Whether a container may be running: what is not said to have ended, may.
fn may_run(object: &Value) -> bool {
    if matches!(object.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed")) {
        return false;
    }
    let statuses =
        || list(object, "/status/containerStatuses").chain(list(object, "/status/initContainerStatuses"));
    let ended = |status: &Value| status.pointer("/state/terminated").is_some();
    statuses().next().is_none() || !statuses().all(ended)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pod(change: impl FnOnce(&mut Value)) -> PodView {
        let mut object = json!({
            "metadata": {"name": "web-1", "uid": "u", "resourceVersion": "7", "labels": {"app": "web"}},
            "status": {"podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}],
                "conditions": [{"type": "Ready", "status": "True"}]},
        });
        change(&mut object);
        PodView::of(&Arc::new(object))
    }

    #[test]
    fn set_common_pod_employee_status_reads_ip_ipv6_and_lifecycle_ready() {
        let ready = pod(|_| ());
        assert_eq!((ready.ip.as_str(), ready.ipv6.as_str()), ("10.0.0.7", "fd00::7"));
        assert!(ready.is_lifecycle_ready(), "the gate's condition may be absent");
        let gate = |status: &str| {
            pod(|object| {
                object["status"]["conditions"] = json!([{"type": "Ready", "status": "True"},
                {"type": "pod.kusionstack.io/service-ready", "status": status}]);
            })
        };
        assert!(gate("True").is_lifecycle_ready());
        assert!(!gate("False").is_lifecycle_ready() && !gate("Unknown").is_lifecycle_ready());
        assert!(
            !pod(|object| object["status"]["conditions"][0]["status"] = json!("False")).is_lifecycle_ready()
        );
        let terminating =
            |object: &mut Value| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(!pod(terminating).is_lifecycle_ready());
    }

    #[test]
    fn without_the_gate_a_pod_that_is_prepared_or_operated_on_is_not_lifecycle_ready() {
        for label in ["preparing", "operate"] {
            let label = format!("{label}.podopslifecycle.kusionstack.io/a");
            assert!(!pod(|object| object["metadata"]["labels"][&label] = json!("1")).is_lifecycle_ready());
        }
    }

    #[test]
    fn a_pod_runs_until_every_container_is_known_to_have_ended() {
        assert!(pod(|_| ()).running, "nothing is said");
        let ended = json!({"state": {"terminated": {"exitCode": 0}}});
        let running = json!({"state": {"running": {}}});
        let statuses = |list: Value| pod(|object| object["status"]["containerStatuses"] = list).running;
        assert!(statuses(json!([ended, running])));
        assert!(!statuses(json!([ended, ended])));
        assert!(!pod(|object| object["status"]["phase"] = json!("Failed")).running);
    }

    #[test]
    fn our_own_marks_do_not_make_it_another_question() {
        let plain = pod(|_| ()).fingerprint();
        let marked = pod(|object| {
            object["metadata"]["annotations"] = json!({"pod.kusionstack.io/available-conditions": "{}"});
            object["metadata"]["finalizers"] = json!(["prot.podopslifecycle.kusionstack.io/x"]);
            object["metadata"]["resourceVersion"] = json!("8");
        });
        assert_eq!(marked.fingerprint(), plain);
        assert_ne!(pod(|object| object["status"]["podIP"] = json!("10.0.0.8")).fingerprint(), plain);
        let noted = |field: &'static str, key: &str| {
            pod(|object| object["metadata"][field] = json!({"app": "web", key: "1"})).fingerprint()
        };
        for label in [
            "podopslifecycle.kusionstack.io/service-available",
            "podopslifecycle.kusionstack.io/preparing-to-delete",
            "pre-checked.podopslifecycle.kusionstack.io/a",
            "operation-permission.podopslifecycle.kusionstack.io/update",
        ] {
            assert_eq!(noted("labels", label), plain, "{label}");
        }
        let annotated = pod(|object| object["metadata"]["annotations"] = json!({"app": "web"})).fingerprint();
        for annotation in ["linchpin.dev/evict-requested", "detail.podtransitionrule.kusionstack.io/slowly"] {
            assert_eq!(noted("annotations", annotation), annotated, "{annotation}");
        }
        assert_ne!(noted("annotations", "note"), annotated, "and so do their annotations");
        assert_ne!(noted("labels", "tier"), plain, "everybody else's labels count");
        // What was seen before a pod began to leave says nothing of it after.
        assert_ne!(noted("labels", "preparing.podopslifecycle.kusionstack.io/a"), plain);
        let closed = |object: &mut Value| {
            object["status"]["conditions"] = json!([{"type": "Ready", "status": "False"},
                {"type": "pod.kusionstack.io/service-ready", "status": "False"}]);
        };
        let open = |object: &mut Value| {
            closed(object);
            object["status"]["conditions"][1]["status"] = json!("True");
        };
        assert_ne!(pod(closed).fingerprint(), pod(open).fingerprint(), "ready or not");
    }

    #[test]
    fn whatever_changes_in_an_employee_that_is_no_pod_makes_it_another_question() {
        let of = |kind: &str, spec: Value| {
            let object = json!({"apiVersion": "example.com/v1", "kind": kind,
                "metadata": {"name": "one", "resourceVersion": spec.to_string()}, "spec": spec});
            PodView::of(&Arc::new(object)).fingerprint()
        };
        assert_ne!(of("Backend", json!({"weight": 1})), of("Backend", json!({"weight": 2})));
        assert_eq!(of("Backend", json!({"weight": 1})), of("Backend", json!({"weight": 1})));
        assert_ne!(of("Pod", json!({"weight": 1})), of("Pod", json!({"weight": 2})), "somebody else's Pod");
        let container = |restarts: u8| {
            pod(|object| {
                object["apiVersion"] = json!("v1");
                object["kind"] = json!("Pod");
                object["status"]["containerStatuses"] = json!([{"restartCount": restarts}]);
            })
        };
        assert_eq!(container(1).fingerprint(), container(2).fingerprint(), "a pod's status changes often");
    }

    fn garbage() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let key = prop::sample::select(vec![
                "metadata",
                "status",
                "spec",
                "labels",
                "conditions",
                "podIPs",
                "finalizers",
                "type",
                "name",
            ]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key.prop_map(str::to_owned), inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_object_of_any_shape_is_read(object in garbage()) {
            let view = PodView::of(&Arc::new(object));
            let _ = (view.fingerprint(), view.entries(), view.is_lifecycle_ready());
        }
    }
}
