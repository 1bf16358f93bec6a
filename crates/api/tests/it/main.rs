//! The custom resources as the documents, the repository and a real API server see them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test says no")]

mod admission;
mod definitions;
mod documents;
mod reference;
