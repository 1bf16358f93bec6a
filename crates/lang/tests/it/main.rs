//! The languages, through their public faces.
// Helpers of tests are not tests themselves, but may fail as loudly.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cel;
mod cel_reference;
mod compare;
mod jsonpath;
mod template;
