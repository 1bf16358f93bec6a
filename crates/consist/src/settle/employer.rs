//! The employer as a decision sees it, which adapter serves it, and what a look at the provider is about.

use std::{
    collections::BTreeMap,
    hash::{Hash as _, Hasher as _},
    sync::Arc,
};

use linchpin_words::{Gvk, hash::Fnv, keys, keys::consist};
use serde_json::Value;

use super::ObservedEmployment;
use crate::{marks::is_clean_finalizer, options::Predicate, pod::texts};

/// One employer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmployerView {
    /// Its kind.
    pub kind: Gvk,
    /// Its namespace.
    pub namespace: String,
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
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it is not there any more, and only its binding names it.
    pub gone: bool,
    /// The object.
    pub object: Arc<Value>,
    /// A fingerprint of all but our own marks.
    pub fingerprint: u64,
}

impl EmployerView {
    /// An employer from an object of any shape.
    pub fn of(kind: &Gvk, object: &Arc<Value>) -> Self {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
        let finalizers =
            finalizers.into_iter().flatten().filter_map(|value| value.as_str().map(str::to_owned));
        Self {
            kind: kind.clone(),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            version: text("/metadata/resourceVersion").parse().unwrap_or_default(),
            labels: texts(object, "/metadata/labels"),
            annotations: texts(object, "/metadata/annotations"),
            finalizers: finalizers.collect(),
            deleting: object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()),
            gone: false,
            object: Arc::clone(object),
            fingerprint: fingerprint(object),
        }
    }

    /// The clean finalizers that it has, in whichever form.
    pub fn clean_finalizers(&self) -> Vec<String> {
        let clean = self.finalizers.iter().filter(|finalizer| is_clean_finalizer(finalizer, &self.name));
        clean.cloned().collect()
    }

    /// Whether somebody ordered that it is released, whatever the provider says.
    pub fn is_abandoned(&self) -> bool {
        self.annotations.get(keys::PROCEED).is_some_and(|order| order == "clean")
    }
}

/// A fingerprint of an employer that our own marks do not change.
fn fingerprint(object: &Value) -> u64 {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for ours in ["finalizers", "resourceVersion", "managedFields"] {
            metadata.remove(ours);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(consist::RECORDED_ENTRIES);
            annotations.remove(consist::RECORDED_FINALIZERS);
        }
    }
    Fnv::of(object.to_string().as_bytes())
}

/// What a look at the provider is about: a changed employer or employee is another question.
pub(super) fn about(observed: &ObservedEmployment<'_>, leaving: bool) -> u64 {
    let mut hash = Fnv::default();
    (observed.employer.fingerprint, leaving).hash(&mut hash);
    for pod in observed.employees.into_iter().flatten() {
        if observed.selects(pod) {
            pod.fingerprint().hash(&mut hash);
        }
    }
    hash.finish()
}

/// Who serves an employer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdapterChoice<'a> {
    /// This adapter.
    One(&'a str),
    /// Nobody: no adapter asks for it.
    Nobody,
    /// Nobody: several adapters ask for it, and its label chooses none of them.
    Several(Vec<&'a str>),
    /// Nobody: its label chooses an adapter that does not serve it here.
    Other,
}

/// Which of several adapters (name, kind of employers, predicate) serves an employer.
pub fn choose<'a>(
    employer: &EmployerView,
    adapters: impl IntoIterator<Item = (&'a str, &'a Gvk, &'a Predicate)>,
) -> AdapterChoice<'a> {
    let admitted = adapters.into_iter().filter(|(_, kind, predicate)| {
        kind.group == employer.kind.group
            && kind.kind == employer.kind.kind
            && predicate.admits(&employer.labels)
    });
    let mut names: Vec<&str> = admitted.map(|(name, ..)| name).collect();
    if let Some(chosen) = employer.labels.get(consist::ADAPTER) {
        return names
            .into_iter()
            .find(|name| name == chosen)
            .map_or(AdapterChoice::Other, AdapterChoice::One);
    }
    match names.len() {
        0 => AdapterChoice::Nobody,
        1 => AdapterChoice::One(names.remove(0)),
        _ => AdapterChoice::Several(names),
    }
}
