//! The doors, judged by what the engine does with their plans in small worlds made by hand.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail loudly, as tests do")]

mod app_bundle;
mod argocd;
mod boot_dependency;
mod document;
mod edges;
mod examples;
mod groups;
mod guards;
mod kinds;
mod order;
mod orders;
mod refused;
mod reruns;
mod stage;
mod status;
mod sync;
mod things;
