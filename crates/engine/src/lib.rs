//! The brain of Linchpin, without a cluster.
//!
//! Given a plan, what was observed, what came back and a journal: what to do next, and why. Read in this order:
//! [`contract`] (what crosses the rim), [`readiness`] (when is an object ready), [`plan`] and [`journal`] (what is to
//! be done, what has been), [`step()`](step::step) = judge → advance → render, [`graph`] (who waits for whom). Beside it [`sweep()`](sweep::sweep):
//! the same small need of many objects, which no plan and no journal is kept for.
//!
//! Everything is a total, deterministic function of values: no clock, no I/O. No kind of ours is treated in any special
//! way: in the readiness table they have a row like every other project's kinds, because objects of ours are waited for
//! like any other; nothing else knows them.

pub mod contract;
pub mod descend;
pub mod graph;
pub mod journal;
pub mod plan;
pub mod readiness;
pub mod rights;
pub mod sequence;
pub mod step;
pub mod sweep;
