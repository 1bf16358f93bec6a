//! AppBundle: groups of components, each applied when what comes before it is ready.
//!
//! A component is an act (apply its objects) and a requirement for each of them (it is ready) with that act as its
//! floor. `order` gives the edges, `source` the objects (`porch` those of packages), `component` their labels, sync wave
//! and policies (applying itself is [`crate::apply`]), `status` the document's phases and messages, `history` its
//! revisions. Objects are kept as they were written, pruned when they leave the bundle, and deleted in reverse when it
//! goes.

mod compile;
mod component;
mod history;
mod order;
mod outline;
mod porch;
mod source;
mod status;

use std::collections::BTreeSet;

use linchpin_api::{
    AppBundle, AppBundleStatus, Common,
    common::{Cluster, DeletionPolicy},
};
use linchpin_engine::{
    contract::{Want, World},
    journal::Journal,
    plan::{Removal, SpecError},
    step::Phase,
};
use linchpin_words::keys;

use crate::{
    door::{CompileInput, Compiled, Door, HistoryInput, SideWrite, StatusInput},
    journal,
};

/// The door of AppBundle.
#[derive(Clone, Copy, Debug)]
pub enum AppBundleDoor {}

impl Door for AppBundleDoor {
    type Object = AppBundle;
    type Status = AppBundleStatus;

    fn compile(object: &AppBundle, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, compile_input)
    }

    fn status(object: &AppBundle, status_input: &StatusInput<'_>) -> AppBundleStatus {
        status::draw(object, status_input)
    }

    fn current_status(object: &AppBundle) -> Option<&AppBundleStatus> {
        object.status.as_ref()
    }

    fn journal(object: &AppBundle) -> Result<Option<Journal>, SpecError> {
        let journal = object.status.as_ref().and_then(|status| status.journal.as_ref());
        journal::read(journal, object.metadata.uid.as_deref().unwrap_or_default())
    }

    fn records(object: &AppBundle, status_input: &StatusInput<'_>) -> Vec<SideWrite> {
        porch::catalogue::records(object, status_input.plan)
    }

    fn history_wants(object: &AppBundle) -> BTreeSet<Want> {
        BTreeSet::from([history::want(object)])
    }

    fn history(object: &AppBundle, standing: &HistoryInput, world: &World) -> Option<Vec<SideWrite>> {
        history::records(object, standing, world)
    }

    fn common(object: &AppBundle) -> &Common {
        &object.spec.common
    }

    fn clusters(object: &AppBundle) -> Vec<&Cluster> {
        let components = object.spec.groups.iter().flat_map(|group| &group.components);
        let clusters = components.map(|component| &component.cluster);
        std::iter::once(&object.spec.common.cluster).chain(clusters).flatten().collect()
    }

    fn removal(object: &AppBundle) -> Removal {
        match object.spec.common.deletion_policy {
            None => Self::default_removal(),
            Some(DeletionPolicy::Delete) => Removal::Delete,
            Some(DeletionPolicy::Retain | DeletionPolicy::Orphan) => Removal::Retain,
        }
    }

    fn default_removal() -> Removal {
        Removal::Delete
    }

    fn finalizer() -> &'static str {
        keys::APP_BUNDLE_FINALIZER
    }

    fn phase_word(phase: Phase) -> &'static str {
        status::phase_word(phase)
    }
}
