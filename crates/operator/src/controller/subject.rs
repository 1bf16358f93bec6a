//! Objects of any kind behind one face, so that one controller serves all doors.

use std::collections::BTreeSet;

use kube::{Resource, core::object::HasStatus};
use linchpin_cluster::own::{NamespacedName, OwnKind, OwnObject, Unreadable};
use linchpin_doors::{CompileInput, Compiled, Door, HistoryInput, SideWrite, StatusInput, journal};
use linchpin_engine::{
    contract::{Authority, Via, Want, World},
    journal::{Item, Journal},
    plan::{Removal, SpecError},
    step::Phase,
};
use linchpin_words::{Gvk, ObjectRef, keys};
use serde_json::Value;

use super::remnant::Remnant;

/// A kind of ours, as the controller sees it.
pub(crate) trait Kind: Send + Sync {
    /// What it is.
    fn gvk(&self) -> Gvk;
    /// Whether its objects live in namespaces.
    fn is_namespaced(&self) -> bool;
    /// Where it is served.
    fn own(&self) -> OwnKind;
    /// An object of it from what the API server sent.
    fn read(&self, arrived: &OwnObject) -> Result<Box<dyn Subject>, Unreadable>;
    /// What is left of an object that is being deleted and cannot be read; none of one that is not being deleted.
    fn remnant(&self, arrived: &OwnObject) -> Option<Box<dyn Subject>>;
    /// The word that its status shows for a phase.
    fn phase_word(&self, phase: Phase) -> &'static str;
    /// The finalizer that keeps an object until we have taken away what we made.
    fn finalizer(&self) -> &'static str;
}

/// One object of ours.
pub(crate) trait Subject: Send {
    fn place(&self) -> NamespacedName;
    fn uid(&self) -> &str;
    fn version(&self) -> &str;
    fn generation(&self) -> i64;
    fn is_deleting(&self) -> bool;
    fn finalizers(&self) -> &[String];
    /// They were written, and the object that has them is on its way.
    fn set_finalizers(&mut self, finalizers: Vec<String>);
    /// What besides the spec decides the plan: the annotations that are orders.
    fn orders(&self) -> Vec<(&str, &str)>;
    fn compile(&self, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError>;
    /// What is to be written beside it now.
    fn records(&self, status_input: &StatusInput<'_>) -> Vec<SideWrite>;
    /// What must be observed to keep its history.
    fn history_wants(&self) -> BTreeSet<Want>;
    /// What is to be written or deleted of its history now; none while that is not known.
    fn history(&self, standing: &HistoryInput, world: &World) -> Option<Vec<SideWrite>>;
    /// The status as it should be now. It is kept, written or not: the next one is drawn from it, and takes the times of
    /// what has not changed since. With `keep`, the journal stays as it is.
    fn status(&mut self, status_input: &StatusInput<'_>, keep: bool) -> Value;
    fn current_status(&self) -> Option<Value>;
    /// The journal it has: that of its status, or the first one where there is none yet.
    fn journal(&self) -> Result<Option<Journal>, SpecError>;
    /// What it made, as far as that can be read of a journal that as a whole cannot; and whether that may not be all.
    fn salvage(&self) -> (Vec<Item>, bool) {
        let status = self.current_status();
        let journal = status.as_ref().and_then(|status| status.get("journal"));
        journal::salvage(journal, self.first_journal(), self.uid())
    }
    /// The first journal, beside its status.
    fn first_journal(&self) -> Option<&str>;
    /// Whether it has a first journal, beside its status.
    fn has_first_journal(&self) -> bool {
        self.first_journal().is_some()
    }
    fn removal(&self) -> Removal;
    fn needs_finalizer(&self, journal: &Journal) -> bool;
    fn priority(&self) -> i32;
    fn object_ref(&self) -> ObjectRef;
    /// Whose rights it uses.
    fn via(&self, default_service_account: &str) -> Via;
    /// As whom it removes what it made.
    fn authority(&self, default_service_account: &str) -> Authority;
}

/// The kind of a door.
pub(crate) fn kind<D: Door>() -> Box<dyn Kind> {
    Box::new(Of::<D>(std::marker::PhantomData))
}

struct Of<D>(std::marker::PhantomData<fn() -> D>);

impl<D: Door> Kind for Of<D> {
    fn gvk(&self) -> Gvk {
        D::gvk()
    }

    fn is_namespaced(&self) -> bool {
        D::is_namespaced()
    }

    fn own(&self) -> OwnKind {
        OwnKind::new(&D::gvk(), &D::plural(), D::is_namespaced())
    }

    fn read(&self, arrived: &OwnObject) -> Result<Box<dyn Subject>, Unreadable> {
        let mut object: D::Object = arrived.read()?;
        // Who wrote which field of our own objects is of no interest, and larger than all the rest.
        object.meta_mut().managed_fields = None;
        Ok(Box::new(Object::<D> { object }))
    }

    fn remnant(&self, arrived: &OwnObject) -> Option<Box<dyn Subject>> {
        Some(Box::new(Remnant::of::<D>(arrived)?))
    }

    fn finalizer(&self) -> &'static str {
        D::finalizer()
    }

    fn phase_word(&self, phase: Phase) -> &'static str {
        D::phase_word(phase)
    }
}

struct Object<D: Door> {
    object: D::Object,
}

impl<D: Door> Subject for Object<D> {
    fn place(&self) -> NamespacedName {
        let meta = self.object.meta();
        (meta.namespace.clone(), meta.name.clone().unwrap_or_default())
    }

    fn uid(&self) -> &str {
        self.object.meta().uid.as_deref().unwrap_or_default()
    }

    fn version(&self) -> &str {
        self.object.meta().resource_version.as_deref().unwrap_or_default()
    }

    fn generation(&self) -> i64 {
        self.object.meta().generation.unwrap_or_default()
    }

    fn is_deleting(&self) -> bool {
        self.object.meta().deletion_timestamp.is_some()
    }

    fn finalizers(&self) -> &[String] {
        self.object.meta().finalizers.as_deref().unwrap_or_default()
    }

    fn set_finalizers(&mut self, finalizers: Vec<String>) {
        self.object.meta_mut().finalizers = Some(finalizers);
    }

    fn orders(&self) -> Vec<(&str, &str)> {
        let annotations = self.object.meta().annotations.iter().flatten();
        annotations
            .filter(|(key, _)| keys::ORDERS.contains(&key.as_str()))
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect()
    }

    fn compile(&self, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        let mut compiled = D::compile(&self.object, compile_input)?;
        compiled.plan.authority = self.authority(compile_input.default_service_account);
        Ok(compiled)
    }

    fn records(&self, status_input: &StatusInput<'_>) -> Vec<SideWrite> {
        D::records(&self.object, status_input)
    }

    fn history_wants(&self) -> BTreeSet<Want> {
        D::history_wants(&self.object)
    }

    fn history(&self, standing: &HistoryInput, world: &World) -> Option<Vec<SideWrite>> {
        D::history(&self.object, standing, world)
    }

    fn status(&mut self, status_input: &StatusInput<'_>, keep: bool) -> Value {
        let mut status = D::status(&self.object, status_input);
        let mut value = serde_json::to_value(&status).unwrap_or_default();
        if keep && let Some(fields) = value.as_object_mut() {
            // What was done is not known, so nothing new may take the place of what says it, nor of when it began.
            let mut old = self.current_status().unwrap_or_default();
            let mut kept = |field: &str| old.get_mut(field).map(Value::take);
            match kept("journal") {
                Some(journal) => drop(fields.insert("journal".to_owned(), journal)),
                None => drop(fields.remove("journal")),
            }
            fields.extend(kept("startTime").map(|time| ("startTime".to_owned(), time)));
            if let Ok(kept) = serde_json::from_value(value.clone()) {
                status = kept;
            }
        }
        *self.object.status_mut() = Some(status);
        value
    }

    fn current_status(&self) -> Option<Value> {
        D::current_status(&self.object).and_then(|status| serde_json::to_value(status).ok())
    }

    fn journal(&self) -> Result<Option<Journal>, SpecError> {
        match (D::journal(&self.object)?, self.first_journal()) {
            (None, Some(first)) => journal::read_first(first, self.uid()),
            (journal, _) => Ok(journal),
        }
    }

    fn first_journal(&self) -> Option<&str> {
        self.object.meta().annotations.as_ref()?.get(keys::FIRST_JOURNAL).map(String::as_str)
    }

    fn removal(&self) -> Removal {
        D::removal(&self.object)
    }

    fn needs_finalizer(&self, journal: &Journal) -> bool {
        D::needs_finalizer(&self.object, journal)
    }

    fn priority(&self) -> i32 {
        D::priority(&self.object)
    }

    fn via(&self, default_service_account: &str) -> Via {
        D::via(&self.object, default_service_account)
    }

    fn authority(&self, default_service_account: &str) -> Authority {
        D::authority(&self.object, default_service_account)
    }

    fn object_ref(&self) -> ObjectRef {
        D::object_ref(&self.object)
    }
}
