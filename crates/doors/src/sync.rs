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

use self::outline::SyncOutline;
pub(crate) use self::outline::state_word;
use crate::door::{Backing, CompileInput, Compiled, Door, Hold, HoldInput, Insight, StatusInput};

/// The door of Sync.
#[derive(Clone, Copy, Debug)]
pub enum SyncDoor {}

impl Door for SyncDoor {
    type Object = Sync;

    const INSIGHT: Insight = Insight::Makers;

    fn compile(object: &Sync, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, compile_input)
    }

    fn claims(object: &Sync) -> Vec<ObjectRef> {
        deletion::claims(object)
    }

    fn hold(object: &Sync, input: &HoldInput<'_>) -> Option<Hold> {
        deletion::hold(object, input)
    }

    fn status(object: &Sync, status_input: &StatusInput<'_>) -> SyncStatus {
        status::draw(object, status_input)
    }

    fn backing(plan: &Plan) -> Option<&Backing> {
        SyncOutline::of(Some(plan)).map(|outline| &outline.backing)
    }

    fn event(_object: Option<&Sync>, report: &Report) -> Option<Notice> {
        Some(status::event(report))
    }
}

/// A kind of the group that Sync is in.
fn kind(kind: &str) -> Gvk {
    Gvk::new("linchpin.dev", "v1alpha1", kind)
}
