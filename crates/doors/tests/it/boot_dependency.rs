//! BootDependency: what pods get, whose pods, and circles.

mod circles;
mod entries;
mod held;
mod hostile;
mod pods;
mod properties;
mod templates;
mod ties;
mod workloads;

use linchpin_api::BootDependency;
use linchpin_doors::{
    boot_dependency::{BootSet, Division, Injection, PatchTarget, PodGate, WaiterSettings, divide, inject},
    json_patch::PatchOperation,
};
use serde_json::{Value, json};

/// An object from the flow form of its spec.
pub(crate) fn boot(name: &str, spec: &str) -> BootDependency {
    let spec: Value = serde_saphyr::from_str(spec).expect("a spec");
    let object = json!({
        "apiVersion": "core.bootchain-operator.ruicoelho.dev/v1alpha1",
        "kind": "BootDependency",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    });
    serde_json::from_value(object).expect("a BootDependency")
}

pub(crate) fn set(name: &str, spec: &str) -> BootSet {
    BootSet::of(&boot(name, spec), &|_| true)
}

pub(crate) fn settings() -> WaiterSettings {
    WaiterSettings {
        image: "registry.example/linchpin-wait:1".into(),
        cluster_domain: "cluster.local".into(),
        after: None,
    }
}

/// A pod with one container and these init containers.
pub(crate) fn pod(inits: &Value) -> Value {
    let mut pod =
        json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "image": "app"}]}});
    if !inits.is_null() {
        pod["spec"]["initContainers"] = inits.clone();
    }
    pod
}

/// What a pod's set is divided into and made of.
pub(crate) fn injected(pod: &Value, sets: &[BootSet]) -> (Division, Injection, Value) {
    let division = divide(&pod["spec"], sets);
    let injection = inject(pod, PatchTarget::Pod, &division, PodGate::Hold, &settings());
    let patched = apply(pod, &injection.patch);
    (division, injection, patched)
}

pub(crate) fn init_names(pod: &Value) -> Vec<&str> {
    let inits = pod["spec"]["initContainers"].as_array().into_iter().flatten();
    inits.map(|container| container["name"].as_str().expect("a name")).collect()
}

/// A patch applied as RFC 6902 says; anything it does not allow is a failed test.
pub(crate) fn apply(object: &Value, patch: &[PatchOperation]) -> Value {
    let mut object = object.clone();
    for operation in patch {
        let (place, value) = match operation {
            PatchOperation::Add { path, value } | PatchOperation::Replace { path, value } => {
                (path, Some(value))
            }
            PatchOperation::Remove { path } => (path, None),
        };
        let (parent, last) = place.rsplit_once('/').expect("a path");
        let last = last.replace("~1", "/").replace("~0", "~");
        match object.pointer_mut(parent).expect("the parent exists") {
            Value::Object(map) => match value {
                Some(value) => drop(map.insert(last, value.clone())),
                None => drop(map.shift_remove(&last).expect("what is removed exists")),
            },
            Value::Array(items) => {
                let at = if last == "-" { items.len() } else { last.parse().expect("an index") };
                match value {
                    Some(value) => items.insert(at, value.clone()),
                    None => drop(items.remove(at)),
                }
            }
            other => panic!("{place}: {other} has no parts"),
        }
    }
    object
}
