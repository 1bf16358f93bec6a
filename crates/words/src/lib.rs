//! Words that every crate of Linchpin shares.
//!
//! Kinds and references, durations and times, conditions and reasons, the keys of labels, annotations and
//! finalizers, the table of limits, probes and sources and where they may lead, the one rule for places that are few, and values that
//! are shared or small. Plain values with their text forms and
//! nothing else: no clock, no I/O, no knowledge of any custom resource. Everything else depends on this crate; it depends on none of ours.

pub mod compare;
pub mod condition;
pub mod duration;
pub mod egress;
pub mod few;
pub mod hash;
pub mod keys;
pub mod kind;
pub mod limits;
pub mod probe;
pub mod reason;
pub mod reference;
pub mod retry;
pub mod shared;
pub mod shares;
pub mod similar;
pub mod source;
pub mod text;
pub mod time;

pub use compare::CompareOperator;
pub use condition::{Condition, ConditionStatus};
pub use duration::Period;
pub use few::Few;
pub use kind::{GroupKind, Gvk, ObjectRef};
pub use reason::{ConditionType, Reason};
pub use reference::{KindWord, Reference};
pub use shared::{Shared, Text};
pub use time::Timestamp;
