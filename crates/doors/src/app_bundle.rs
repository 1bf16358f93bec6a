//! AppBundle: groups of components, each applied when what comes before it is ready.
//!
//! A component is an act (apply its objects) and a requirement for each of them (it is ready) with that act as its
//! floor. `order` gives the edges, `source` the objects (`porch` those of packages), `component` their labels, sync wave
//! and policies (applying itself is `crate::apply`), `status` the document's phases and messages, `history` its
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

use linchpin_api::{AppBundle, AppBundleStatus};
use linchpin_engine::{
    contract::{Notice, World},
    plan::SpecError,
    step::Report,
};

use crate::{
    door::{
        CompileInput, Compiled, Door, HistoryInput, HistoryRecord, HistoryStep, SideRecords, SideWrite,
        StatusInput,
    },
    registry::KindNames,
};

/// The door of AppBundle.
#[derive(Clone, Copy, Debug)]
pub enum AppBundleDoor {}

impl Door for AppBundleDoor {
    type Object = AppBundle;

    fn compile(object: &AppBundle, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, compile_input)
    }

    fn status(object: &AppBundle, status_input: &StatusInput<'_>) -> AppBundleStatus {
        status::draw(object, status_input)
    }

    fn event(object: Option<&AppBundle>, report: &Report) -> Option<Notice> {
        status::event(object, report)
    }

    fn beside() -> Option<&'static dyn SideRecords<AppBundle>> {
        Some(&Revisions)
    }
}

/// What is kept beside a bundle: its revisions, and events about published packages.
struct Revisions;

impl SideRecords<AppBundle> for Revisions {
    fn records(&self, object: &AppBundle, status_input: &StatusInput<'_>) -> Vec<SideWrite> {
        let mut records = porch::catalogue::records(object, status_input.plan);
        records.extend(history::rolled_back(object, status_input));
        records
    }

    fn history_kind(&self) -> KindNames {
        history::kind_names()
    }

    fn history(
        &self,
        object: &AppBundle,
        input: &HistoryInput,
        kept: &[HistoryRecord],
        world: &World,
    ) -> HistoryStep {
        history::next(object, input, kept, world)
    }
}
