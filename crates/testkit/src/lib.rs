//! Helpers for tests on a real cluster, for tests only.
//!
//! [`Api`] is a plain blocking client that plays the people and controllers around us. A [`Scenario`] is a namespace of
//! its own with a ServiceAccount that may do what is listed here, so that tests run side by side. [`audit`] reads the
//! API server's own record of every request: order, identity and stillness are judged from it, never from what the
//! operator says. [`porch`] plays Porch. [`Dice`] are random and the same in every run.
//!
//! Everything here panics where a test would: a helper that cannot do its work is a failed test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "called by tests only"
)]

use std::time::Duration;

mod api;
pub mod audit;
mod dice;
mod kinds;
pub mod porch;
mod rights;
mod scenario;
pub mod values;

pub use api::{Api, ApiRefusal};
pub use dice::Dice;
pub use rights::{CHART_OPERATOR, OPERATOR, grant, grant_operator, grant_webhooks, installation};
pub use scenario::{Scenario, condition, entry};

/// How long to wait before the next look, after so long in vain: looking costs the machine that does the work. What is
/// there for a moment only comes early.
pub fn pause(waited: Duration) -> Duration {
    (waited / 40).clamp(Duration::from_millis(20), Duration::from_millis(100))
}
