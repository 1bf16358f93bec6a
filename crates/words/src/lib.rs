//! Words that every crate of Linchpin shares.
//!
//! Kinds and references, durations and times, conditions and reasons, the keys of labels, annotations and
//! finalizers, and the table of limits. Plain values with their text forms and nothing else: no clock, no I/O, no
//! knowledge of any custom resource. Everything else depends on this crate; it depends on none of ours.

pub mod kind;

pub use kind::{Gvk, GroupKind, ObjectRef};
