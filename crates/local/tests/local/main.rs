//! Real clusters: started, used, hurt and ended, and each time looked for what they left.
//!
//! Tests that only use a cluster share one; those that hurt theirs have their own. All may run at the same time.

#![allow(clippy::unwrap_used)]

mod faults;
mod network;
mod node;
mod ownership;
mod support;
mod use_of_a_cluster;
mod waiter;
