//! Readiness, shown on objects as the API server returns them (`fixtures/readiness`).
#![allow(clippy::expect_used, clippy::panic, missing_docs)]

mod cases;
mod document;
mod fixtures;
mod laws;
mod wanted;
