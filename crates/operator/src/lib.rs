//! The operator process: what surrounds the controller.
//!
//! [`run`] is the frame: it finds the cluster, serves health and metrics, takes part in leader election, starts the
//! work and stops everything in order. The work is handed in as a function of a [`run::Context`], so the frame knows
//! no kind and no engine. [`settings`] is everything a user can choose, already parsed. [`rights`] is all that the
//! operator may do as itself.

pub mod controller;
pub mod health;
pub mod logging;
pub mod metrics;
pub mod probes;
pub mod rights;
pub mod run;
pub mod settings;

mod election;
mod process;
mod server;
mod shutdown;
mod workplace;
