//! Sync: one source, applied as one transition, admitted once when the states it relies on are observed together.
//!
//! `source` reads the objects, `object` what each says of itself, `order` which come after which, `dependency` what the
//! Sync relies on (`range` for versions, `capability` for what the cluster is able to do, `global` for what is imposed on
//! it), `compile` makes one plan of all: the dependencies are its gates, each object an act and a requirement that it is
//! ready. `status` draws how far it is, `words` says why.

pub(crate) mod backing;
pub(crate) mod capability;
mod compile;
mod deletion;
mod dependency;
pub(crate) mod dependency_status;
mod depends_on;
pub(crate) mod global;
mod object;
mod order;
mod outline;
mod pods;
mod range;
mod source;
mod status;
mod weight;
mod words;

use linchpin_api::{Sync, SyncStatus};
use linchpin_engine::{
    contract::Notice,
    plan::{Plan, SpecError},
    step::Report,
};
use linchpin_words::{Gvk, ObjectRef};

pub use self::dependency::kind_that_is_defined;
use self::outline::SyncOutline;
pub(crate) use self::outline::state_word;
use crate::door::{Backing, CompileInput, Compiled, Door, GraphTies, Hold, HoldInput, Insight, StatusInput};

/// The door of Sync.
#[derive(Clone, Copy, Debug)]
pub enum SyncDoor {}

impl Door for SyncDoor {
    type Object = Sync;

    fn compile(object: &Sync, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, compile_input)
    }

    fn status(object: &Sync, status_input: &StatusInput<'_>) -> SyncStatus {
        status::draw(object, status_input)
    }

    fn event(_object: Option<&Sync>, report: &Report) -> Option<Notice> {
        Some(status::event(report))
    }

    fn ties() -> Option<&'static dyn GraphTies<Sync>> {
        Some(&SyncTies)
    }
}

/// Syncs see who makes what they wait for, outlive those that depend on them, and may apply what serves webhooks.
struct SyncTies;

impl GraphTies<Sync> for SyncTies {
    fn insight(&self) -> Insight {
        Insight::Makers
    }

    fn claims(&self, object: &Sync) -> Vec<ObjectRef> {
        deletion::claims(object)
    }

    fn hold(&self, object: &Sync, input: &HoldInput<'_>) -> Option<Hold> {
        deletion::hold(object, input)
    }

    fn backing<'p>(&self, plan: &'p Plan) -> Option<&'p Backing> {
        SyncOutline::of(Some(plan)).map(|outline| &outline.backing)
    }
}

/// A kind of the group that Sync is in.
fn kind(kind: &str) -> Gvk {
    Gvk::new("linchpin.dev", "v1alpha1", kind)
}
