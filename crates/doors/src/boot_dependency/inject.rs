//! The patch that brings a pod, or a pod template, to the entries that hold for it.
//!
//! [`inject`] is idempotent: what it gives, patched and asked again, gives nothing. Our containers are one block; they
//! are taken out and put back on every pass, so that they are right again after another mutator ran in between.
//! Containers that are not ours keep their order and are not named in the patch. [`keep_old_part`] is for an owner that
//! writes its template whole: what it left out of ours is put back, so that no rollout begins.

use std::collections::BTreeSet;

use linchpin_words::keys;
use serde_json::{Value, json};

use super::{
    container::{self, WaiterSettings},
    division::{Division, init_containers, is_restartable},
    names,
};
use crate::json_patch::{PatchOperation, set_text};

/// Init containers that meshes put first when their proxy is a sidecar.
const MESHES: [&str; 4] = ["istio-init", "istio-validation", "linkerd-init", "linkerd-network-validator"];

/// What is patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchTarget {
    /// The template of a Deployment: containers and marks, never a gate.
    DeploymentTemplate,
    /// A pod that is being created.
    Pod,
}

impl PatchTarget {
    /// Where the pod's metadata and spec are.
    fn path(self) -> &'static str {
        match self {
            Self::DeploymentTemplate => "/spec/template",
            Self::Pod => "",
        }
    }
}

/// Whether a pod with entries that no container carries is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodGate {
    /// It is: they do not hold, or nobody knows.
    Hold,
    /// It is not: they hold, it is a template, or a gate is not possible.
    Open,
}

/// A patch, and what a person should know of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Injection {
    /// The operations.
    pub patch: Vec<PatchOperation>,
    /// The entries that are skipped, since an init container of the user's has their name.
    pub skipped: Vec<String>,
}

/// The patch for an object whose pod (or pod template) is `pod`, an object with `metadata` and `spec`.
pub fn inject(
    pod: &Value,
    place: PatchTarget,
    division: &Division,
    gate: PodGate,
    settings: &WaiterSettings,
) -> Injection {
    let spec = &pod["spec"];
    let current = init_containers(spec);
    // Without a BootDependency the predecessor's containers are none of our business.
    let is_ours = |container: &Value| {
        if division.owners.is_empty() {
            container::is_marked(container)
        } else {
            container::is_ours(container)
        }
    };
    let foreign: Vec<&Value> = current.iter().filter(|container| !is_ours(container)).collect();
    let ours: Vec<&Value> = current.iter().filter(|container| is_ours(container)).collect();
    let (block, skipped) = block(spec, division, &foreign, &ours, settings);
    let at = position(&foreign, settings);
    let placed: Vec<(usize, Value)> =
        block.into_iter().enumerate().map(|(index, container)| (at + index, container)).collect();

    let mut patch = Vec::new();
    let root = place.path();
    set_containers(&mut patch, root, spec, &is_ours, &placed);
    let hash = division.hash();
    // A gate of our name that somebody else wrote would never be found without the label.
    let has_gate = spec["schedulingGates"].as_array().is_some_and(|gates| gates.iter().any(is_our_gate));
    let holds =
        place == PatchTarget::Pod && (has_gate || gate == PodGate::Hold && !division.gated.is_empty());
    // A pod that admission saw says so, whether it waits or not: one that does not was missed.
    let seen = place == PatchTarget::Pod && !division.owners.is_empty();
    let owners = (!placed.is_empty() || holds || seen).then(|| division.owners.join(","));
    set_marks(&mut patch, root, pod, owners.as_deref(), hash.as_deref().filter(|_| !placed.is_empty()));
    if holds {
        hold(&mut patch, pod);
    }
    Injection { patch, skipped }
}

/// Where an UPDATE differs from what it updates in our part only, that part as it was; nothing where it does not differ
/// there. None where it differs elsewhere: then it is a change of the user's.
pub fn keep_old_part(old: &Value, new: &Value) -> Option<Vec<PatchOperation>> {
    let (old, new) = (&old["spec"]["template"], &new["spec"]["template"]);
    if without_our_part(old) != without_our_part(new) {
        return None;
    }
    let placed: Vec<(usize, Value)> = init_containers(&old["spec"])
        .iter()
        .enumerate()
        .filter(|(_, container)| container::is_ours(container))
        .map(|(index, container)| (index, container.clone()))
        .collect();
    let mut patch = Vec::new();
    let root = PatchTarget::DeploymentTemplate.path();
    set_containers(&mut patch, root, &new["spec"], &container::is_ours, &placed);
    let mark = |key: &str| old["metadata"]["annotations"][key].as_str();
    set_marks(&mut patch, root, new, mark(keys::BOOT), mark(keys::BOOT_HASH));
    Some(patch)
}

/// A template without what we put into it.
fn without_our_part(template: &Value) -> Value {
    let mut rest = template.clone();
    if let Some(spec) = rest["spec"].as_object_mut() {
        let foreign: Vec<Value> = spec
            .get("initContainers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|container| !container::is_ours(container))
            .cloned()
            .collect();
        spec.shift_remove("initContainers");
        if !foreign.is_empty() {
            spec.insert("initContainers".to_owned(), Value::Array(foreign));
        }
    }
    if let Some(metadata) = rest["metadata"].as_object_mut() {
        let mut annotations = metadata.shift_remove("annotations").unwrap_or_default();
        if let Some(map) = annotations.as_object_mut() {
            map.shift_remove(keys::BOOT);
            map.shift_remove(keys::BOOT_HASH);
            if !map.is_empty() {
                metadata.insert("annotations".to_owned(), annotations);
            }
        }
    }
    rest
}

/// Our containers, each as it is already there if it waits for the same; and the entries that are skipped.
fn block(
    spec: &Value,
    division: &Division,
    foreign: &[&Value],
    ours: &[&Value],
    settings: &WaiterSettings,
) -> (Vec<Value>, Vec<String>) {
    let named = |container: &Value| container["name"].as_str().map(str::to_owned);
    let apps: Vec<String> = spec["containers"].as_array().into_iter().flatten().filter_map(named).collect();
    let mut taken: BTreeSet<String> = foreign.iter().filter_map(|container| named(container)).collect();
    let entries: Vec<_> = division.carried.iter().map(|carried| &carried.entry).collect();
    let chosen = names::of(&entries, &apps.iter().map(String::as_str).collect());
    let mut block = Vec::new();
    let mut skipped = Vec::new();
    for (carried, name) in division.carried.iter().zip(chosen) {
        if !taken.insert(name.clone()) {
            skipped.push(super::entry_name(&carried.entry));
            continue;
        }
        let wanted = container::build(&name, carried, spec, settings);
        let kept = ours.iter().find_map(|existing| container::keep(existing, &wanted));
        block.push(kept.unwrap_or(wanted));
    }
    (block, skipped)
}

/// Before which of the foreign containers ours are put: right after a mesh's sidecars, which have the network; else
/// first, since what the user prepares may need what is waited for, and since behind a classic mesh's container there
/// is no network until its proxy runs.
fn position(foreign: &[&Value], settings: &WaiterSettings) -> usize {
    let is_first = |container: &Value| {
        let name = container["name"].as_str().unwrap_or_default();
        is_restartable(container)
            || match &settings.after {
                Some(names) => names.iter().any(|known| known == name),
                None => MESHES.contains(&name),
            }
    };
    let prefix = foreign.iter().take_while(|container| is_first(container)).count();
    let has_sidecar = foreign[..prefix].iter().any(|container| is_restartable(container));
    if has_sidecar || settings.after.is_some() { prefix } else { 0 }
}

/// Takes our containers out and puts these in, at these places of the whole list; nothing if they are there already.
fn set_containers(
    patch: &mut Vec<PatchOperation>,
    root: &str,
    spec: &Value,
    is_ours: &dyn Fn(&Value) -> bool,
    placed: &[(usize, Value)],
) {
    let current = init_containers(spec);
    let there: Vec<(usize, &Value)> =
        current.iter().enumerate().filter(|(_, container)| is_ours(container)).collect();
    let same = there.len() == placed.len()
        && there.iter().zip(placed).all(|((at, is), (should_at, should))| at == should_at && *is == should);
    if same {
        return;
    }
    let list = format!("{root}/spec/initContainers");
    if there.len() == current.len() {
        // None but ours: the list begins or ends with them.
        if placed.is_empty() {
            patch.push(PatchOperation::remove(list));
        } else {
            let block = placed.iter().map(|(_, container)| container.clone()).collect();
            patch.push(PatchOperation::add(list, Value::Array(block)));
        }
        return;
    }
    for (at, _) in there.iter().rev() {
        patch.push(PatchOperation::remove(format!("{list}/{at}")));
    }
    for (at, container) in placed {
        patch.push(PatchOperation::add(format!("{list}/{at}"), container.clone()));
    }
}

/// The annotations that say what was put in.
fn set_marks(
    patch: &mut Vec<PatchOperation>,
    root: &str,
    pod: &Value,
    owners: Option<&str>,
    hash: Option<&str>,
) {
    let metadata = &pod["metadata"];
    if !metadata.is_object() && (owners.is_some() || hash.is_some()) {
        patch.push(PatchOperation::add(format!("{root}/metadata"), json!({})));
    }
    let wanted = [(keys::BOOT, owners), (keys::BOOT_HASH, hash)];
    set_text(patch, &format!("{root}/metadata/annotations"), &metadata["annotations"], &wanted);
}

/// The gate, and the label by which held pods are found.
fn hold(patch: &mut Vec<PatchOperation>, pod: &Value) {
    let gate = json!({"name": keys::BOOT});
    match pod["spec"]["schedulingGates"].as_array() {
        Some(gates) if gates.iter().any(is_our_gate) => (),
        Some(_) => patch.push(PatchOperation::add("/spec/schedulingGates/-", gate)),
        None => patch.push(PatchOperation::add("/spec/schedulingGates", json!([gate]))),
    }
    let wanted = [(keys::BOOT_GATE, Some(keys::BOOT_HELD))];
    set_text(patch, "/metadata/labels", &pod["metadata"]["labels"], &wanted);
}

/// Whether a scheduling gate is ours.
pub(super) fn is_our_gate(gate: &Value) -> bool {
    gate["name"] == keys::BOOT
}
