//! Fetching from real sockets: servers that answer well, badly, slowly, without end, or lead elsewhere.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

mod http;
mod oci;
mod real;
mod server;
