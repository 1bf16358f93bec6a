//! The engine, tested from outside: plans, worlds and outcomes in, decisions out.
// Tests tell stories: short names and plain seconds read better there than what pedantry asks for.
#![allow(clippy::pedantic)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

mod budget;
mod build;
mod keeping;
mod laws;
mod model;
mod play;
mod probes;
mod properties;
mod reach;
mod readiness;
mod rights;
mod sweep;
