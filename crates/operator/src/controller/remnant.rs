//! An object of ours that is being deleted and cannot be read as its kind.
//!
//! It is served from what can be read of it whatever the rest looks like: its metadata, the account and the deletion policy
//! that its spec names, and its journal. So a spec that nobody understands keeps neither the object nor what it made.
//! Nothing is written of it but its finalizers.

use std::collections::BTreeSet;

use linchpin_cluster::own::{NamespacedName, OwnObject};
use linchpin_doors::{CompileInput, Compiled, Door, HistoryInput, SideWrite, StatusInput, journal};
use linchpin_engine::{
    contract::{Authority, Via, Want, World},
    journal::Journal,
    plan::{Removal, SpecError},
};
use linchpin_words::{ObjectRef, keys};
use serde_json::{Value, json};

use super::subject::Subject;

/// An object of ours that is going.
pub(super) struct Remnant {
    place: NamespacedName,
    object_ref: ObjectRef,
    uid: String,
    version: String,
    generation: i64,
    finalizers: Vec<String>,
    first_journal: Option<String>,
    service_account: Option<String>,
    removal: Removal,
    /// Its journal, as its status has it, and nothing else.
    status: Value,
}

impl Remnant {
    /// What is left of an object of this kind; none where it is not being deleted.
    pub(super) fn of<D: Door>(object: &OwnObject) -> Option<Self> {
        if !object.is_deleting() {
            return None;
        }
        let place = object.place();
        let kind = D::gvk().group_kind();
        let object_ref = match &place.0 {
            Some(namespace) => ObjectRef::namespaced(kind, namespace, &place.1),
            None => ObjectRef::cluster_scoped(kind, &place.1),
        };
        let policy: Option<String> = object.at(&["spec", "deletionPolicy"]);
        let torn_down = object.at::<Value>(&["spec", "teardown"]).is_some();
        let removal = match policy.as_deref() {
            Some("Delete") => Removal::Delete,
            Some(_) => Removal::Retain,
            None if torn_down => Removal::Delete,
            None => D::default_removal(),
        };
        let journal: Option<Value> = object.at(&["status", "journal"]);
        Some(Self {
            object_ref,
            uid: object.uid().to_owned(),
            version: object.version().to_owned(),
            generation: object.generation(),
            finalizers: object.finalizers().to_vec(),
            first_journal: object.annotation(keys::FIRST_JOURNAL).map(str::to_owned),
            service_account: object.at(&["spec", "serviceAccountName"]),
            removal,
            status: journal.map_or_else(|| json!({}), |journal| json!({"journal": journal})),
            place,
        })
    }
}

impl Subject for Remnant {
    fn place(&self) -> NamespacedName {
        self.place.clone()
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn generation(&self) -> i64 {
        self.generation
    }

    fn is_deleting(&self) -> bool {
        true
    }

    fn finalizers(&self) -> &[String] {
        &self.finalizers
    }

    fn set_finalizers(&mut self, finalizers: Vec<String>) {
        self.finalizers = finalizers;
    }

    fn orders(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn compile(&self, _: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        Err(SpecError::new("spec", "it cannot be read, and the object is being deleted"))
    }

    fn records(&self, _: &StatusInput<'_>) -> Vec<SideWrite> {
        Vec::new()
    }

    fn history_wants(&self) -> BTreeSet<Want> {
        BTreeSet::new()
    }

    fn history(&self, _: &HistoryInput, _: &World) -> Option<Vec<SideWrite>> {
        Some(Vec::new())
    }

    fn status(&mut self, _: &StatusInput<'_>, _: bool) -> Value {
        // What it has stays: a status of this kind cannot be drawn without its spec.
        self.status.clone()
    }

    fn current_status(&self) -> Option<Value> {
        Some(self.status.clone())
    }

    fn journal(&self) -> Result<Option<Journal>, SpecError> {
        match (journal::read(self.status.get("journal"), &self.uid)?, &self.first_journal) {
            (None, Some(first)) => journal::read_first(first, &self.uid),
            (journal, _) => Ok(journal),
        }
    }

    fn first_journal(&self) -> Option<&str> {
        self.first_journal.as_deref()
    }

    fn removal(&self) -> Removal {
        self.removal
    }

    fn needs_finalizer(&self, journal: &Journal) -> bool {
        journal.has_belongings(self.removal)
    }

    fn priority(&self) -> i32 {
        0
    }

    fn object_ref(&self) -> ObjectRef {
        self.object_ref.clone()
    }

    fn via(&self, default_service_account: &str) -> Via {
        let account = self.service_account.as_deref().unwrap_or(default_service_account);
        Via::service_account(self.place.0.clone().unwrap_or_default(), account)
    }

    fn authority(&self, default_service_account: &str) -> Authority {
        // The clusters that it names cannot be read: nobody is impersonated there.
        Authority { actor: self.via(default_service_account).actor, clusters: Vec::new() }
    }
}
