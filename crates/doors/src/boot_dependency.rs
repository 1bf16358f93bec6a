//! BootDependency: pods start when what they need is there.
//!
//! Two halves. As a door it is a plan of requirements: each entry of `dependsOn` is one, and the status shows how far
//! they are. For pods it is a set of entries that they carry or are held for: `selection` says whose pods, `division`
//! which entries go into containers and which a scheduling gate holds for, [`inject()`] makes the patch that brings a
//! pod or a pod template to that set. The two webhooks and the controller's repair call the same function, so they
//! agree. `cycles` is the courtesy of the validating webhook. Everything is a function of values.

mod address;
mod chain;
mod compile;
mod container;
mod cycles;
mod dial;
mod division;
mod held;
mod inject;
mod names;
mod notices;
mod references;
mod scope;
mod selection;
mod service;
mod status;
mod subject;
mod survey;
mod ties;

use linchpin_api::{BootDependency, BootDependencyStatus};
use linchpin_engine::{contract::Notice, plan::SpecError, step::Report};

use self::address::step_names;
pub use self::{
    address::entry_name,
    chain::{LONGEST as LONGEST_CHAIN, controller},
    compile::compile,
    container::WaiterSettings,
    cycles::{Circles, WorkloadCircle, circles},
    division::{BootSet, CarriedEntry, Division, GatedEntry, Usable, divide},
    held::{HeldPods, judge_once},
    inject::{Injection, PatchTarget, PodGate, inject, keep_old_part},
    notices::due as notices,
    references::{Holder, KeyReference, references},
    scope::BootSettings,
    selection::{OwnerName, WorkloadName, is_skipped, label_selector_matches, selects},
    status::draw as status,
    subject::BootDependencies,
    survey::ignored_skip,
};

use crate::door::{self, CompileInput, Compiled, Door, OwnWords, SideWrite, StatusInput, Tally};

/// The door of BootDependency.
#[derive(Clone, Copy, Debug)]
pub enum BootDependencyDoor {}

impl Door for BootDependencyDoor {
    type Object = BootDependency;

    fn compile(object: &BootDependency, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, compile_input)
    }

    fn status(object: &BootDependency, status_input: &StatusInput<'_>) -> BootDependencyStatus {
        status::draw(object, status_input)
    }

    fn event(object: Option<&BootDependency>, report: &Report) -> Option<Notice> {
        match object {
            Some(object) => status::phase_event(object, report),
            None => Some(door::phase_event(report)),
        }
    }

    fn words() -> Option<&'static dyn OwnWords<BootDependency>> {
        Some(&BootWords)
    }
}

/// The words of the document, its events, and how many entries are ready.
struct BootWords;

impl OwnWords<BootDependency> for BootWords {
    fn phase_word(&self, object: &BootDependency, report: &Report) -> &'static str {
        status::phase_word(object, report)
    }

    fn events(&self, object: &BootDependency, status_input: &StatusInput<'_>) -> Vec<SideWrite> {
        notices::due(object, status_input)
    }

    fn tally(&self, object: &BootDependency, report: &Report) -> Tally {
        status::tally(object, report)
    }
}
