//! Objects as they arrive, reduced to what is kept of them. Nothing here fails: what cannot be read is not there.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::{
    ConsistBindingSpec, ConsistBindingStatus, PodTransitionRuleSpec, PodTransitionRuleStatus,
};
use linchpin_consist::rules::{Labelled, Rule};
use linchpin_words::Gvk;
use serde::Deserialize as _;
use serde_json::Value;

/// A binding as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Binding {
    pub(in super::super) name: String,
    pub(in super::super) uid: String,
    pub(in super::super) version: String,
    pub(in super::super) generation: i64,
    pub(in super::super) deleting: bool,
    pub(in super::super) spec: ConsistBindingSpec,
    pub(in super::super) status: ConsistBindingStatus,
}

impl Binding {
    pub(super) fn read(value: &Value) -> Option<Self> {
        Some(Self {
            name: text(value, "/metadata/name"),
            uid: text(value, "/metadata/uid"),
            version: text(value, "/metadata/resourceVersion"),
            generation: value.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default(),
            deleting: value.pointer("/metadata/deletionTimestamp").is_some(),
            spec: ConsistBindingSpec::deserialize(value.get("spec")?).ok()?,
            status: value
                .get("status")
                .and_then(|status| ConsistBindingStatus::deserialize(status).ok())
                .unwrap_or_default(),
        })
    }
}

/// A PodTransitionRule.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct RuleObject {
    pub(in super::super) name: String,
    pub(in super::super) version: String,
    pub(in super::super) generation: i64,
    pub(in super::super) deleting: bool,
    /// Which pods it is about, and what it asks; none where it cannot be understood: nobody passes.
    pub(in super::super) asks: Option<(Labelled, Vec<Rule>)>,
    pub(in super::super) status: PodTransitionRuleStatus,
}

impl RuleObject {
    pub(super) fn read(value: &Value) -> Option<Self> {
        let spec = PodTransitionRuleSpec::deserialize(value.get("spec")?).ok();
        Some(Self {
            name: text(value, "/metadata/name"),
            version: text(value, "/metadata/resourceVersion"),
            generation: value.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default(),
            deleting: value.pointer("/metadata/deletionTimestamp").is_some(),
            asks: spec.as_ref().and_then(linchpin_consist::rules::read),
            status: value
                .get("status")
                .and_then(|status| PodTransitionRuleStatus::deserialize(status).ok())
                .unwrap_or_default(),
        })
    }
}

/// A disruption budget of pods.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Budget {
    pub(in super::super) selector: Labelled,
    /// How many of its pods may go now.
    pub(in super::super) allowed: i64,
    pub(in super::super) desired_healthy: i64,
    /// Whether these numbers are about the budget as it is: not before it was looked at, nor where that failed.
    pub(in super::super) is_judged: bool,
}

impl Budget {
    pub(super) fn read(value: &Value) -> Option<Self> {
        let selector = value.pointer("/spec/selector").cloned().unwrap_or_default();
        let selector = linchpin_api::pod_transition_rule::LabelTest::deserialize(selector).ok()?;
        let number = |path: &str| value.pointer(path).and_then(Value::as_i64).unwrap_or_default();
        let mut conditions =
            value.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            selector: Labelled::of(&selector)?,
            allowed: number("/status/disruptionsAllowed"),
            desired_healthy: number("/status/desiredHealthy"),
            is_judged: number("/status/observedGeneration") >= number("/metadata/generation")
                && !conditions.any(|condition| condition["reason"] == "SyncFailed"),
        })
    }

    /// Whether the API server would refuse to evict a pod of these labels.
    pub(in super::super) fn refuses(&self, labels: &BTreeMap<String, String>, ready: bool) -> bool {
        self.covers(labels) && (!self.is_judged || (self.allowed <= 0 && self.desired_healthy > 0 && ready))
    }

    /// Whether it asks for no healthy pod at all: the API server evicts none that is not ready then, although all may go.
    pub(in super::super) fn asks_for_none(&self, labels: &BTreeMap<String, String>) -> bool {
        self.covers(labels) && self.is_judged && self.desired_healthy == 0
    }

    /// Whether it is about a pod.
    fn covers(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.admits(labels)
    }
}

fn text(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Takes off what nobody reads, and says what it is: items of a list do not.
pub(super) fn tidy(value: &mut Value, gvk: &Gvk) {
    let Some(object) = value.as_object_mut() else { return };
    object.entry("apiVersion").or_insert_with(|| Value::from(gvk.api_version()));
    object.entry("kind").or_insert_with(|| Value::from(gvk.kind.as_str()));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Takes off what no adapter may need of a pod: its environment, volumes and probes.
pub(super) fn slim(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for list in ["volumes", "tolerations", "affinity", "ephemeralContainers", "imagePullSecrets"] {
        spec.remove(list);
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.retain(|field, _| matches!(field.as_str(), "name" | "image" | "ports"));
        }
    }
}

/// Whether a configuration calls another engine of PodOpsLifecycle.
pub(super) fn is_engine(name: &str, value: &Value) -> bool {
    let service = |webhook: &Value| {
        webhook.pointer("/clientConfig/service/name").and_then(Value::as_str)
            == Some("kusionstack-controller-manager")
    };
    name == "kusionstack-controller-manager-mutating"
        || value.get("webhooks").and_then(Value::as_array).into_iter().flatten().any(service)
}

/// The uids of the pods that an EndpointSlice lists.
pub(super) fn listed(slice: &Value) -> BTreeSet<String> {
    let endpoints = slice.get("endpoints").and_then(Value::as_array).into_iter().flatten();
    endpoints
        .filter_map(|endpoint| endpoint.get("targetRef"))
        .filter(|target| target.get("kind").and_then(Value::as_str) == Some("Pod"))
        .filter_map(|target| target.get("uid")?.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_engine_is_known_by_its_configuration_or_its_service() {
        assert!(is_engine("kusionstack-controller-manager-mutating", &json!({})));
        let service = |name: &str| json!({"webhooks": [{"clientConfig": {"service": {"name": name}}}]});
        assert!(is_engine("x", &service("kusionstack-controller-manager")));
        assert!(!is_engine("x", &service("linchpin")) && !is_engine("x", &json!({"webhooks": 7})));
    }

    #[test]
    fn a_budget_that_nobody_could_judge_lets_nobody_go() {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        let budget = |observed: i64, allowed: i64, desired: i64, reason: &str| {
            let budget = json!({"metadata": {"generation": 2}, "spec": {"selector": {"matchLabels": {"app": "web"}}},
                "status": {"observedGeneration": observed, "disruptionsAllowed": allowed, "desiredHealthy": desired,
                    "conditions": [{"type": "DisruptionAllowed", "reason": reason}]}});
            let budget = Budget::read(&budget).unwrap();
            (budget.refuses(&labels, true), budget.refuses(&labels, false), budget.asks_for_none(&labels))
        };
        assert_eq!(budget(2, 1, 1, "SufficientPods"), (false, false, false));
        assert_eq!(budget(2, 0, 1, "InsufficientPods"), (true, false, false));
        assert_eq!(budget(2, 0, 0, "InsufficientPods"), (false, false, true));
        assert_eq!(budget(2, 0, 0, "SyncFailed"), (true, true, false), "its pods have no controller");
        assert_eq!(budget(1, 1, 0, "SufficientPods"), (true, true, false), "it has just changed");
    }

    #[test]
    fn no_adapter_sees_the_environment_of_a_container() {
        let mut pod = json!({"spec": {"nodeName": "n", "volumes": [1], "containers": [
            {"name": "c", "image": "i", "ports": [], "env": [{"name": "PASSWORD", "value": "x"}]}]}});
        slim(&mut pod);
        assert_eq!(
            pod,
            json!({"spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "ports": []}]}})
        );
    }
}
