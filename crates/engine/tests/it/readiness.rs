//! Readiness, shown on objects as the API server returns them (`fixtures/readiness`).

mod cases;
mod document;
mod fixtures;
mod laws;
mod wanted;
