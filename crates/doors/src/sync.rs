//! Sync: one source, applied as one transition, admitted once when the states it relies on are observed together.
//!
//! `source` reads the objects, `object` what each says of itself, `order` which come after which, `dependency` what the
//! Sync relies on (`range` for versions, `capability` for what the cluster is able to do, `global` for what is imposed on
//! it), `compile` makes one plan of all: the dependencies are its gates, each object an act and a requirement that it is
//! ready. `status` draws how far it is, `words` says why.

mod capability;
mod compile;
mod deletion;
mod dependency;
mod depends_on;
mod global;
mod object;
mod order;
mod outline;
mod pods;
mod range;
mod source;
pub(crate) mod standing;
mod status;
mod words;

use linchpin_api::{Sync, SyncStatus};
use linchpin_engine::plan::SpecError;
use linchpin_words::{Gvk, ObjectRef, Timestamp};

use crate::door::{Claim, CompileInput, Compiled, Door, Hold, StatusInput};

/// The door of Sync.
#[derive(Clone, Copy, Debug)]
pub enum SyncDoor {}

impl Door for SyncDoor {
    type Object = Sync;

    fn compile(object: &Sync, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, compile_input)
    }

    fn claims(object: &Sync) -> Vec<ObjectRef> {
        deletion::claims(object)
    }

    fn hold(object: &Sync, claims: &[Claim], now: Timestamp) -> Option<Hold> {
        deletion::hold(object, claims, now)
    }

    fn status(object: &Sync, status_input: &StatusInput<'_>) -> SyncStatus {
        status::draw(object, status_input)
    }
}

/// A kind of the group that Sync is in.
fn kind(kind: &str) -> Gvk {
    Gvk::new("linchpin.dev", "v1alpha1", kind)
}
