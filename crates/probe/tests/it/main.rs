//! Probes against servers on loopback: good ones, broken ones and hostile ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod hostile;
mod servers;
mod tls;
