//! Real clusters, started, used, hurt and ended.
use std::time::Instant;

use linchpin_local::{Cluster, Options};

#[test]
fn a_cluster_starts_works_and_stops() {
    let begun = Instant::now();
    let cluster = Cluster::start(&Options::default()).unwrap();
    eprintln!("ready in {:?}", begun.elapsed());
    let output = cluster.kubectl().args(["get", "ns,sa"]).output().unwrap();
    eprintln!("{}", String::from_utf8_lossy(&output.stdout));
    let dir = cluster.dir().to_owned();
    let begun = Instant::now();
    cluster.stop().unwrap();
    eprintln!("stopped in {:?}", begun.elapsed());
    assert!(!dir.exists());
}
