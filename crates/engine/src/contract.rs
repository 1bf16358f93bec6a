//! What crosses the rim, and nothing else.
//!
//! The engine asks the world questions ([`Want`]) and gets observations ([`Seen`]) in a [`World`]; it orders
//! [`Effect`]s and gets [`Outcome`]s. `crates/cluster` and the driver know this module and no other part of the
//! engine: they observe and act, they decide nothing.
//!
//! Everything here is a plain value. Observations are shared (`Arc`), so building a world costs pointers, not copies.

mod effect;
mod reads;
mod seen;
mod want;

pub use effect::{
    Done, Effect, EffectTarget, ExecOrder, Existing, Failure, Force, Notice, Outcome, OwnerReference,
    PatchKind, Propagation, Stamp, StepId, Ticket, Verb,
};
pub use reads::{ReadPath, ReadSet, find_field, held_fields, kept_fingerprint, names_instead};
pub use seen::{Artifact, Manifests, Observed, Projection, Seen, Served, SourceFault, Why, World};
pub use want::{
    Actor, Authority, ClusterRef, ControlPlaneSelect, Objects, ProbePace, Question, RemoteUser, Right, Scope,
    Selector, Via, Want,
};
