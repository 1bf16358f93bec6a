//! The rim against a real API server. All tests but those that break things share one cluster, namespaces apart.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]
// Tests read better with values written in place.
#![allow(clippy::needless_pass_by_value, clippy::default_trait_access, clippy::match_wild_err_arm)]

mod effects;
mod exec;
mod faults;
mod hostile;
mod hub;
mod keeping;
mod promotion;
mod remote;
mod stage;
