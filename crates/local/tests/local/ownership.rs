//! Who ends a cluster: its owner's end, however that comes.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use linchpin_local::{Cluster, ClusterOptions, Component};

use crate::support::{SHARED, assert_gone, fresh_path, traces};

/// Tells the process below where to have its cluster, and that it is meant at all.
const OWNED_DIR: &str = "LINCHPIN_TEST_OWNED_DIR";

#[test]
fn two_clusters_run_side_by_side_and_one_dies_with_its_killed_owner() {
    let (parent, dir) = fresh_path();
    let owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ownership::the_owner_that_is_killed", "--ignored"])
        .env(OWNED_DIR, &dir)
        .spawn();
    let mut owner = owner.unwrap();
    let ready = parent.path().join("ready");
    let begun = Instant::now();
    while !ready.exists() {
        assert!(begun.elapsed() < Duration::from_mins(2), "the owner's cluster does not become ready");
        assert_eq!(owner.try_wait().unwrap(), None);
        thread::sleep(Duration::from_millis(20));
    }
    assert!(SHARED.is_ready());
    assert!(!traces(&dir).is_empty());
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_gone(&dir, Duration::from_secs(10));
    assert!(SHARED.is_ready());
}

#[test]
#[ignore = "run as a process of its own by the test above"]
fn the_owner_that_is_killed() {
    let Some(dir) = std::env::var_os(OWNED_DIR).map(PathBuf::from) else { return };
    let _cluster =
        Cluster::start(&ClusterOptions { dir: Some(dir.clone()), ..ClusterOptions::default() }).unwrap();
    fs::write(dir.parent().unwrap().join("ready"), "").unwrap();
    loop {
        thread::park();
    }
}

#[test]
fn a_dropped_cluster_is_gone_at_once_with_its_port() {
    let options =
        ClusterOptions::default().without(Component::ControllerManager).without(Component::Scheduler);
    let cluster = Cluster::start(&options).unwrap();
    let (dir, server) = (cluster.dir().to_owned(), cluster.server());
    drop(cluster);
    assert_eq!(traces(&dir), Vec::<String>::new());
    assert!(std::net::TcpListener::bind(server.trim_start_matches("https://")).is_ok());
}
