//! An object of ours as it arrived: whole, or what is left of one that is being deleted and cannot be read as its kind.
//!
//! A whole object is needed when its plan is compiled and when its status is drawn, and between the two it lies there,
//! for hours or days: as a packed text then, which takes a sixth of the memory. A caller that asks for it gets it all
//! the same, and puts it away again when the turn is over. What is asked of it on every turn is kept beside it.
//!
//! A remnant is served from what can be read of it whatever the rest looks like: its metadata, the account and the deletion
//! policy that its spec names, and its journal. So a spec that nobody understands keeps neither the object nor what it
//! made. Nothing is written of it but its finalizer.

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    io::{Read as _, Write as _},
};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
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
pub(super) struct PackedObject<O> {
    key: SubjectKey,
    generation: i64,
    is_deleting: bool,
    has_finalizer: bool,
    priority: i32,
    removal: Removal,
    via: Via,
    /// The annotations that are orders, by key.
    orders: Box<[(String, String)]>,
    /// The first journal, beside the status.
    first_journal: Option<Box<str>>,
    /// The uid of the object of ours that made it.
    created_by: Option<Box<str>>,
    content: Content<O>,
}

/// All of an object.
enum Content<O> {
    /// It is of its kind: open, packed (deflated JSON), or both while it was opened and not changed.
    Understood { open: OnceCell<Box<O>>, packed: Option<Box<[u8]>> },
    /// It is going, and cannot be read as its kind.
    Remnant,
}

/// An object of ours that has just arrived, and what the controller has to remember of its status: the status itself is
/// kept without its journal, which may be larger than all the rest.
pub(super) struct ArrivedObject<O> {
    pub(super) body: PackedObject<O>,
    pub(super) journal: Option<Value>,
    pub(super) status: Option<StatusHash>,
    /// The phase that it shows.
    pub(super) phase: Option<String>,
}

impl<O: Ours> ArrivedObject<O> {
    /// Reads an object.
    ///
    /// # Errors
    /// It cannot be read, and is not being deleted.
    pub(super) fn from_text(text: &str, default_service_account: &str) -> Result<Self, serde_json::Error> {
        let mut object: O = match serde_json::from_str(text) {
            Ok(object) => object,
            Err(error) => return remnant::<O>(text, default_service_account).ok_or(error),
        };
        // Who wrote which field of our own objects is of no interest, and larger than all the rest.
        object.meta_mut().managed_fields = None;
        let hash = |status: &O::Status| serde_json::to_value(status).ok().as_ref().map(StatusHash::of);
        let status = object.status().and_then(hash);
        let phase = object.status().and_then(|status| status.common().phase.clone());
        let journal = object.status().and_then(|status| status.common().journal.clone());
        if let Some(status) = object.status_mut() {
            status.common_mut().journal = None;
        }
        let body = PackedObject {
            priority: object.common().priority,
            removal: door::removal(object.deletion_policy()),
            via: door::via(&object, default_service_account),
            ..PackedObject::new(object.meta(), Removal::Retain, default_service_account)
        };
        let content = Content::Understood { open: OnceCell::from(Box::new(object)), packed: None };
        let body = PackedObject { content, ..body };
        Ok(Self { body, journal, status, phase })
    }
}

/// What is left of an object; none where it is not being deleted.
fn remnant<O: Ours>(text: &str, default_service_account: &str) -> Option<ArrivedObject<O>> {
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
    let service_account: Option<String> = at(text, &["spec", "serviceAccountName"]);
    let account = service_account.as_deref().unwrap_or(default_service_account);
    Some(ArrivedObject {
        body: PackedObject::new(&metadata, removal, account),
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

impl<O: Ours> PackedObject<O> {
    /// What metadata alone says.
    fn new(meta: &ObjectMeta, removal: Removal, account: &str) -> Self {
        let annotations = || meta.annotations.iter().flatten();
        let is_order = |(key, _): &(&String, &String)| keys::ORDERS.contains(&key.as_str());
        let owned = |(key, value): (&String, &String)| (key.clone(), value.clone());
        let first_journal = annotations().find(|(key, _)| *key == keys::FIRST_JOURNAL);
        let created_by = annotations().find(|(key, _)| *key == keys::CREATED_BY);
        Self {
            key: SubjectKey {
                kind: O::gvk(),
                namespace: meta.namespace.clone(),
                name: meta.name.clone().unwrap_or_default(),
                uid: meta.uid.clone().unwrap_or_default(),
            },
            generation: meta.generation.unwrap_or_default(),
            is_deleting: meta.deletion_timestamp.is_some(),
            has_finalizer: meta.finalizers.iter().flatten().any(|finalizer| finalizer == O::FINALIZER),
            priority: 0,
            removal,
            via: Via::service_account(meta.namespace.clone().unwrap_or_default(), account),
            orders: annotations().filter(is_order).map(owned).collect(),
            first_journal: first_journal.map(|(_, text)| text.as_str().into()),
            created_by: created_by.map(|(_, uid)| uid.as_str().into()),
            content: Content::Remnant,
        }
    }

    /// The object, where it is understood. It stays open until it is packed.
    pub(super) fn whole(&self) -> Option<&O> {
        let Content::Understood { open, packed } = &self.content else { return None };
        if open.get().is_none()
            && let Some(object) = packed.as_deref().and_then(unpacked)
        {
            // It was empty, and nobody else has it.
            let _ = open.set(Box::new(object));
        }
        open.get().map(AsRef::as_ref)
    }

    /// Changes the object, where it is understood.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut O)) {
        self.whole();
        if let Content::Understood { open, packed } = &mut self.content
            && let Some(object) = open.get_mut()
        {
            change(object);
            *packed = None;
        }
    }

    /// The object itself, where it is understood.
    pub(super) fn into_whole(self) -> Option<O> {
        self.whole()?;
        match self.content {
            Content::Understood { open, .. } => open.into_inner().map(|object| *object),
            Content::Remnant => None,
        }
    }

    /// Who made it: the uid of another object of ours.
    pub(super) fn created_by(&self) -> Option<&str> {
        self.created_by.as_deref()
    }

    /// Whether it is understood.
    pub(super) fn is_understood(&self) -> bool {
        !matches!(self.content, Content::Remnant)
    }

    /// Whether it is put away and not open.
    #[cfg(test)]
    pub(super) fn is_packed(&self) -> bool {
        matches!(&self.content, Content::Understood { open, packed: Some(_) } if open.get().is_none())
    }

    /// Puts the object away until it is needed.
    pub(super) fn pack(&mut self) {
        let Content::Understood { open, packed } = &mut self.content else { return };
        if packed.is_none() {
            *packed = open.get().and_then(|object| packed_text(&**object));
        }
        if packed.is_some() {
            open.take();
        }
    }

    pub(super) fn key(&self) -> &SubjectKey {
        &self.key
    }

    pub(super) fn uid(&self) -> &str {
        &self.key.uid
    }

    pub(super) fn generation(&self) -> i64 {
        self.generation
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.is_deleting
    }

    pub(super) fn has_finalizer(&self) -> bool {
        self.has_finalizer
    }

    /// Our finalizer was put on, or taken off.
    pub(super) fn set_finalizer(&mut self, present: bool) {
        self.has_finalizer = present;
    }

    /// What besides the spec decides the plan: the annotations that are orders.
    pub(super) fn orders(&self) -> &[(String, String)] {
        &self.orders
    }

    /// The first journal, beside the status.
    pub(super) fn first_journal(&self) -> Option<&str> {
        self.first_journal.as_deref()
    }

    pub(super) fn priority(&self) -> i32 {
        self.priority
    }

    pub(super) fn removal(&self) -> Removal {
        self.removal
    }

    pub(super) fn via(&self) -> Via {
        self.via.clone()
    }

    /// As whom it removes what it made.
    pub(super) fn authority(&self, default_service_account: &str) -> Authority {
        // The clusters that a remnant names cannot be read: nobody is impersonated there.
        let nowhere = || Authority { actor: self.via.actor.clone(), clusters: Vec::new() };
        self.whole().map_or_else(nowhere, |object| door::authority(object, default_service_account))
    }
}

/// An object as deflated JSON.
fn packed_text<O: Ours>(object: &O) -> Option<Box<[u8]>> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&serde_json::to_vec(object).ok()?).ok()?;
    Some(packed.finish().ok()?.into_boxed_slice())
}

/// The object that was packed: what was written as its kind can be read as its kind.
fn unpacked<O: Ours>(packed: &[u8]) -> Option<O> {
    let mut text = Vec::new();
    DeflateDecoder::new(packed).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
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
            assert!(ArrivedObject::<ResourceDependency>::from_text(&text(depth, ""), "default").is_err());
            let read =
                ArrivedObject::<ResourceDependency>::from_text(&text(depth, deleting), "default").unwrap();
            assert!(read.body.whole().is_none() && read.body.is_deleting());
            assert!(read.body.has_finalizer() && read.body.generation() == 3);
            assert_eq!(read.body.removal(), Removal::Delete);
            assert_eq!(read.body.via(), Via::service_account("shop", "actor"));
            assert_eq!(read.journal, Some(serde_json::json!({"text": "{}"})));
            assert_eq!(at::<Value>(&text(depth, deleting), &["spec", "values"]), None);
            assert_eq!(at::<Value>(&text(depth, deleting), &["status", "missing"]), None);
        }
    }

    #[test]
    fn a_whole_object_is_kept_without_its_journal_and_comes_back_as_it_was_put_away() {
        let mut read = ArrivedObject::<ResourceDependency>::from_text(&text(3, ""), "default").unwrap();
        let object = read.body.whole().unwrap().clone();
        let status = object.status.as_ref().unwrap();
        assert!(status.common.journal.is_none() && read.journal.is_some() && read.status.is_some());
        for _ in 0..2 {
            read.body.pack();
            assert!(read.body.is_packed() && read.body.is_understood());
            assert_eq!(read.body.via(), Via::service_account("shop", "actor"));
            assert_eq!(read.body.whole(), Some(&object));
        }
        read.body.change(|object| object.status = None);
        read.body.pack();
        assert!(read.body.whole().unwrap().status.is_none(), "a change is packed too");
    }
}
