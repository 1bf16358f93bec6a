//! An object of ours as it arrived: whole, or what is left of one that is being deleted and cannot be read as its kind.
//!
//! Such a remnant is served from what can be read of it whatever the rest looks like: its metadata, the account and the
//! deletion policy that its spec names, and its journal. So a spec that nobody understands keeps neither the object nor
//! what it made. Nothing is written of it but its finalizer.

use std::collections::BTreeMap;

use kube_core::ObjectMeta;
use linchpin_api::{OurStatus, Ours};
use linchpin_engine::{
    contract::{Authority, Via},
    plan::Removal,
};
use linchpin_words::keys;
use serde::{de::DeserializeOwned, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use super::{StatusHash, SubjectKey};
use crate::door;

/// An object of ours.
pub(super) enum Body<O> {
    /// One that is understood.
    Whole(Box<O>),
    /// One that is going.
    Remnant(Box<Remnant>),
}

/// What is left of an object.
pub(super) struct Remnant {
    meta: ObjectMeta,
    service_account: Option<String>,
    removal: Removal,
}

/// An object of ours that has just arrived, and what the controller has to remember of its status: the status itself is
/// kept without its journal, which may be larger than all the rest.
pub(super) struct Read<O> {
    pub(super) body: Body<O>,
    pub(super) journal: Option<Value>,
    pub(super) status: Option<StatusHash>,
    /// The phase that it shows.
    pub(super) phase: Option<String>,
}

impl<O: Ours> Read<O> {
    /// Reads an object.
    ///
    /// # Errors
    /// It cannot be read, and is not being deleted.
    pub(super) fn from_text(text: &str) -> Result<Self, serde_json::Error> {
        let mut object: O = match serde_json::from_str(text) {
            Ok(object) => object,
            Err(error) => return remnant::<O>(text).ok_or(error),
        };
        // Who wrote which field of our own objects is of no interest, and larger than all the rest.
        object.meta_mut().managed_fields = None;
        let hash = |status: &O::Status| serde_json::to_value(status).ok().as_ref().map(StatusHash::of);
        let status = object.status().and_then(hash);
        let phase = object.status().and_then(|status| Some(status.phase()?.to_owned()));
        let journal = object.status().and_then(|status| status.journal().cloned());
        if let Some(status) = object.status_mut() {
            status.set_journal(None);
        }
        Ok(Self { body: Body::Whole(Box::new(object)), journal, status, phase })
    }
}

/// What is left of an object; none where it is not being deleted.
fn remnant<O: Ours>(text: &str) -> Option<Read<O>> {
    // What others say of its fields may be as deep as they are: it is not read.
    fn field<T: DeserializeOwned>(text: &str, name: &str) -> Option<T> {
        at(text, &["metadata", name])
    }
    let metadata = ObjectMeta {
        namespace: field(text, "namespace"),
        name: field(text, "name"),
        uid: field(text, "uid"),
        generation: field(text, "generation"),
        deletion_timestamp: Some(field(text, "deletionTimestamp")?),
        finalizers: field(text, "finalizers"),
        annotations: field(text, "annotations"),
        ..ObjectMeta::default()
    };
    let policy: Option<String> = at(text, &["spec", "deletionPolicy"]);
    let torn_down = at::<IgnoredAny>(text, &["spec", "teardown"]).is_some();
    let removal = match policy.as_deref() {
        Some("Delete") => Removal::Delete,
        Some(_) => Removal::Retain,
        None if torn_down => Removal::Delete,
        None => door::removal(O::DELETION_POLICY),
    };
    let service_account = at(text, &["spec", "serviceAccountName"]);
    Some(Read {
        body: Body::Remnant(Box::new(Remnant { meta: metadata, service_account, removal })),
        journal: at(text, &["status", "journal"]),
        status: None,
        phase: None,
    })
}

/// One value of a text, however the rest looks; none where it is not there or not of that type. That needs no more than
/// finding where each value ends.
fn at<T: DeserializeOwned>(text: &str, path: &[&str]) -> Option<T> {
    let mut here = text;
    for name in path {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(here).ok()?;
        here = fields.get(*name)?.get();
    }
    serde_json::from_str(here).ok()
}

impl<O: Ours> Body<O> {
    pub(super) fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Whole(object) => object.meta(),
            Self::Remnant(remnant) => &remnant.meta,
        }
    }

    /// The object, where it is understood.
    pub(super) fn whole(&self) -> Option<&O> {
        match self {
            Self::Whole(object) => Some(object),
            Self::Remnant(_) => None,
        }
    }

    pub(super) fn key(&self) -> SubjectKey {
        let meta = self.meta();
        SubjectKey {
            kind: O::gvk(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
        }
    }

    pub(super) fn uid(&self) -> &str {
        self.meta().uid.as_deref().unwrap_or_default()
    }

    pub(super) fn generation(&self) -> i64 {
        self.meta().generation.unwrap_or_default()
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    pub(super) fn has_finalizer(&self) -> bool {
        self.meta().finalizers.iter().flatten().any(|finalizer| finalizer == O::FINALIZER)
    }

    /// Our finalizer was put on, or taken off.
    pub(super) fn set_finalizer(&mut self, present: bool) {
        let meta = match self {
            Self::Whole(object) => object.meta_mut(),
            Self::Remnant(remnant) => &mut remnant.meta,
        };
        let finalizers = meta.finalizers.get_or_insert_default();
        finalizers.retain(|finalizer| finalizer != O::FINALIZER);
        if present {
            finalizers.push(O::FINALIZER.to_owned());
        }
    }

    /// What besides the spec decides the plan: the annotations that are orders.
    pub(super) fn orders(&self) -> Vec<(&str, &str)> {
        let annotations = self.meta().annotations.iter().flatten();
        annotations
            .filter(|(key, _)| keys::ORDERS.contains(&key.as_str()))
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect()
    }

    /// The first journal, beside the status.
    pub(super) fn first_journal(&self) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(keys::FIRST_JOURNAL).map(String::as_str)
    }

    pub(super) fn priority(&self) -> i32 {
        self.whole().map_or(0, |object| object.common().priority)
    }

    pub(super) fn removal(&self) -> Removal {
        match self {
            Self::Whole(object) => door::removal(object.deletion_policy()),
            Self::Remnant(remnant) => remnant.removal,
        }
    }

    pub(super) fn via(&self, default_service_account: &str) -> Via {
        match self {
            Self::Whole(object) => door::via(&**object, default_service_account),
            Self::Remnant(remnant) => {
                let account = remnant.service_account.as_deref().unwrap_or(default_service_account);
                Via::service_account(remnant.meta.namespace.clone().unwrap_or_default(), account)
            }
        }
    }

    pub(super) fn authority(&self, default_service_account: &str) -> Authority {
        match self {
            Self::Whole(object) => door::authority(&**object, default_service_account),
            // The clusters that it names cannot be read: nobody is impersonated there.
            Self::Remnant(_) => {
                Authority { actor: self.via(default_service_account).actor, clusters: Vec::new() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_api::ResourceDependency;

    fn text(depth: usize, deleting: &str) -> String {
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        format!(
            r#"{{"metadata": {{"namespace": "shop", "name": "a", "uid": "u", "generation": 3{deleting},
                "managedFields": [{{"fieldsV1": {deep}}}], "finalizers": ["linchpin.dev/teardown"]}},
                "spec": {{"values": {{"a": {deep}}}, "serviceAccountName": "actor", "deletionPolicy": "Delete"}},
                "status": {{"journal": {{"text": "{{}}"}}}}}}"#
        )
    }

    #[test]
    fn what_is_nested_too_deeply_is_a_remnant_while_it_is_being_deleted_and_else_an_error() {
        let deleting = r#", "deletionTimestamp": "2026-01-01T00:00:00Z""#;
        for depth in [200, 20_000, 500_000] {
            assert!(Read::<ResourceDependency>::from_text(&text(depth, "")).is_err());
            let read = Read::<ResourceDependency>::from_text(&text(depth, deleting)).unwrap();
            assert!(read.body.whole().is_none() && read.body.is_deleting());
            assert!(read.body.has_finalizer() && read.body.generation() == 3);
            assert_eq!(read.body.removal(), Removal::Delete);
            assert_eq!(read.body.via("default"), Via::service_account("shop", "actor"));
            assert_eq!(read.journal, Some(serde_json::json!({"text": "{}"})));
            assert_eq!(at::<Value>(&text(depth, deleting), &["spec", "values"]), None);
            assert_eq!(at::<Value>(&text(depth, deleting), &["status", "missing"]), None);
        }
    }

    #[test]
    fn a_whole_object_is_kept_without_its_journal() {
        let read = Read::<ResourceDependency>::from_text(&text(3, "")).unwrap();
        let status = read.body.whole().unwrap().status.as_ref().unwrap();
        assert!(status.journal.is_none() && read.journal.is_some() && read.status.is_some());
    }
}
