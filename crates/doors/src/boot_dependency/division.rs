//! Which entries a pod's init containers carry, and which a scheduling gate holds for.
//!
//! A container waits for what can be seen from the pod's own network. What only the API server knows, what needs a
//! Secret that may not be used, and pods in which an init container cannot wait, are held by the gate.

use linchpin_api::{
    BootDependency, BootEntry,
    boot_dependency::{OnTimeout, Strategy},
};
use linchpin_engine::contract::StepId;
use linchpin_words::hash::sha256_hex;
use serde_json::{Value, json};

use super::step_names;

/// The version of the hash below: a change of what is hashed must not look like a change of what users wrote.
const HASH_VERSION: &str = "v1";

/// How much of the hash is shown.
const HASH_DIGITS: usize = 16;

/// Init containers of meshes that check the network before any proxy runs.
const VALIDATORS: [&str; 2] = ["istio-validation", "linkerd-network-validator"];

/// Whether the Secrets and ConfigMaps of an entry may be put into a pod, entry by entry.
pub type Usable<'a> = dyn Fn(usize) -> bool + 'a;

/// The entries of one BootDependency that selects a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct BootSet {
    /// The BootDependency's name.
    pub name: String,
    /// Its namespace: the pod's.
    pub namespace: String,
    /// Its strategy, if it says one.
    pub strategy: Option<Strategy>,
    /// Each entry, what happens when a pod has waited for it, and whether what it refers to may be put into a pod.
    pub entries: Vec<(BootEntry, OnTimeout, bool)>,
}

impl BootSet {
    /// The set of an object.
    pub fn of(object: &BootDependency, usable: &Usable<'_>) -> Self {
        let entries = object.spec.depends_on.iter().enumerate().map(|(index, entry)| {
            let on_timeout = entry.on_timeout.or(object.spec.on_timeout).unwrap_or_default();
            (entry.clone(), on_timeout, usable(index))
        });
        Self {
            name: object.metadata.name.clone().unwrap_or_default(),
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            strategy: object.spec.strategy,
            entries: entries.collect(),
        }
    }
}

/// An entry that an init container waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct CarriedEntry {
    /// Whose it is; of equal ones the first.
    pub owner: String,
    /// Its namespace.
    pub namespace: String,
    /// The entry.
    pub entry: BootEntry,
    /// What the container does when it has waited long enough.
    pub on_timeout: OnTimeout,
}

/// An entry that the gate holds for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GatedEntry {
    /// The name of its BootDependency.
    pub owner: String,
    /// What the entry is called among the entries of its BootDependency.
    pub entry: StepId,
}

/// The entries of all BootDependencies that select a pod, divided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Division {
    /// The BootDependencies, in order of their names.
    pub owners: Vec<String>,
    /// What containers wait for, in the order of the owners and of their entries; no two are equal.
    pub carried: Vec<CarriedEntry>,
    /// What the gate holds for.
    pub gated: Vec<GatedEntry>,
}

impl Division {
    /// The hash of what containers carry, as users wrote it; none where they carry nothing.
    pub fn hash(&self) -> Option<String> {
        if self.carried.is_empty() {
            return None;
        }
        let rows: Vec<Value> = self
            .carried
            .iter()
            .map(|carried| {
                let proceed = (carried.on_timeout == OnTimeout::Proceed).then_some(true);
                json!([carried.owner, fragment(&carried.entry), proceed])
            })
            .collect();
        let hash = sha256_hex(Value::Array(rows).to_string().as_bytes());
        Some(format!("{HASH_VERSION}-{}", &hash[..HASH_DIGITS]))
    }
}

/// Divides the entries of `sets` for a pod with this spec.
pub fn divide(pod_spec: &Value, sets: &[BootSet]) -> Division {
    let mut sets: Vec<&BootSet> = sets.iter().collect();
    sets.sort_by(|one, other| one.name.cmp(&other.name));
    let no_container = is_windows(pod_spec) || is_without_network(pod_spec);
    let runs_once = pod_spec["restartPolicy"] == "Never";
    let mut division = Division::default();
    for set in sets {
        // A wait that times out in an init container of such a pod would spend its Job's backoffLimit.
        let gate = match set.strategy {
            Some(strategy) => strategy == Strategy::SchedulingGate,
            None => runs_once,
        };
        division.owners.push(set.name.clone());
        let entries: Vec<&BootEntry> = set.entries.iter().map(|(entry, ..)| entry).collect();
        let names = step_names(&entries);
        for ((entry, on_timeout, usable), named) in set.entries.iter().zip(names) {
            let dialled = entry.service.is_some() || entry.host.is_some();
            if gate || no_container || !dialled || !usable {
                division.gated.push(GatedEntry { owner: set.name.clone(), entry: named.id });
                continue;
            }
            let carried = CarriedEntry {
                owner: set.name.clone(),
                namespace: set.namespace.clone(),
                entry: entry.clone(),
                on_timeout: *on_timeout,
            };
            if !division.carried.iter().any(|other| is_the_same(other, &carried)) {
                division.carried.push(carried);
            }
        }
    }
    division
}

/// Whether two entries make the same container, whatever they are called.
fn is_the_same(one: &CarriedEntry, other: &CarriedEntry) -> bool {
    one.on_timeout == other.on_timeout
        && BootEntry { name: None, on_timeout: None, ..one.entry.clone() }
            == BootEntry { name: None, on_timeout: None, ..other.entry.clone() }
}

/// An entry as the user wrote it: the default that the API server stores is left out.
pub(super) fn fragment(entry: &BootEntry) -> Value {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    if let Some(fields) = value.as_object_mut().filter(|fields| fields.get("timeout") == Some(&json!("60s")))
    {
        fields.shift_remove("timeout");
    }
    value
}

/// Whether the pod runs on Windows, where the waiter does not.
fn is_windows(pod_spec: &Value) -> bool {
    let selected = &pod_spec["nodeSelector"];
    pod_spec["os"]["name"] == "windows"
        || selected["kubernetes.io/os"] == "windows"
        || selected["beta.kubernetes.io/os"] == "windows"
}

/// Whether no init container of the pod has a network: its mesh checks for a proxy that runs only later.
fn is_without_network(pod_spec: &Value) -> bool {
    let inits = init_containers(pod_spec);
    inits.iter().any(|container| VALIDATORS.iter().any(|name| container["name"] == *name))
        && !inits.iter().any(is_restartable)
}

/// The pod's init containers.
pub(super) fn init_containers(pod_spec: &Value) -> &[Value] {
    pod_spec["initContainers"].as_array().map_or(&[], Vec::as_slice)
}

/// Whether an init container is a sidecar that goes on running.
pub(super) fn is_restartable(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}
