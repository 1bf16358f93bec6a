//! The program as its users meet it: as a process, on a real API server.
//!
//! Tests that harm nobody share one cluster and keep apart by the name of the Lease; tests that kill parts of the
//! control plane have a cluster of their own. Those about objects of ours share another one, with one operator in it
//! (see `world`), and have a namespace each.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod actions;
mod app_bundle;
mod bad_specs;
mod boot_dependency;
mod by_hand;
mod causes;
mod chart;
mod check;
mod citizens;
mod clocks;
mod commands;
mod consist;
mod cycles;
mod demo;
mod dependency_group;
mod docs;
mod election;
mod examples;
mod exec;
mod explain;
mod faults;
mod forms;
mod fourth_door;
mod history;
mod identity;
mod kinds;
mod mistakes;
mod needed;
mod neighbours;
mod operator;
mod outage;
mod profiles;
mod promises;
mod random_plans;
mod rbac;
mod remote;
mod removal;
mod resource_dependency;
mod rights;
mod scale;
mod stillness;
mod sync;
mod tenancy;
mod threats;
mod tree;
mod turns;
mod unreadable;
mod values;
mod world;

use linchpin_local::{Cluster, ClusterOptions, Component};
use linchpin_testkit::{Api, grant_operator, pause};
use std::{
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

/// Leases and RBAC need no controllers.
fn bare() -> ClusterOptions {
    ClusterOptions::default().without(Component::ControllerManager).without(Component::Scheduler)
}

/// The cluster that all tests share. It ends with the test process.
fn shared() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(with_definitions)
}

/// A cluster with our definitions in it, without which no operator that leads is ready.
fn with_definitions() -> Cluster {
    with_definitions_in(&bare())
}

/// The same with these components.
fn with_definitions_in(options: &ClusterOptions) -> Cluster {
    let cluster = Cluster::start(options).expect("a local Kubernetes");
    grant_operator(&Api::connect(&cluster.kubeconfig()));
    cluster
}

/// Waits until something holds and returns how long that took. What takes longer than it should is told; only what
/// does not come at all fails, for how fast a busy machine is says nothing about Linchpin.
fn eventually(what: &str, should: Duration, mut holds: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    let limit = should.max(seconds(120));
    while !holds() {
        assert!(begun.elapsed() < limit, "not within {limit:?}: {what}");
        thread::sleep(pause(begun.elapsed()));
    }
    let took = begun.elapsed();
    if took > should {
        println!("{what}: took {took:?}, more than {should:?}");
    }
    took
}

/// Waits for an event about an object with this reason: events are written beside everything else.
fn told(scenario: &linchpin_testkit::Scenario, name: &str, reason: &str) {
    let is_it = |(found, _): &(String, String)| found == reason;
    eventually(&format!("an event {reason} about {name}"), seconds(5), || {
        scenario.events(name).iter().any(is_it)
    });
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
