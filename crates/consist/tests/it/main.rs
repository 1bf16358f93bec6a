//! Decisions about employments and pods, tried in tables, properties and explorations.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod admission;
mod lifecycle;
mod model;
mod pods;
mod rules;
mod troubles;
mod turns;
mod world;
