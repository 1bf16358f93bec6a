//! Adapters against real and hostile providers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod alibabacloudslb;
mod haproxy;
mod provider;
mod remote;
mod server;
mod stage;
mod tutorial;
