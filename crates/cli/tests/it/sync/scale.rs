//! Many Syncs: a chain and a lattice of diamonds, with one circle among them that stops nobody else. A few dozen here, a
//! thousand with `make scale` (`LINCHPIN_CROWD`).

use super::maps;
use crate::{bare, eventually, seconds, world::World};
use linchpin_testkit::{audit::assert_finished_before, condition};
use serde_json::{Value, json};
use std::{collections::BTreeMap, env};

/// How many Syncs are in the chain, and how many in the lattice.
fn many() -> usize {
    env::var("LINCHPIN_CROWD").ok().and_then(|count| count.parse().ok()).unwrap_or(48)
}

/// How wide the lattice is.
const WIDTH: usize = 8;

#[test]
fn a_chain_and_a_lattice_are_applied_in_order_and_one_circle_stops_nobody_else() {
    let world = World::start(&bare(), &["--leader-elect=false"]);
    let scenario = world.scenario("sync-many");
    let on = |names: &[String]| -> Vec<Value> {
        names.iter().map(|name| json!({"name": name, "sync": {"name": name}})).collect()
    };
    // Each with what it depends on, the last first.
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for number in (0..many()).rev() {
        let before = number.checked_sub(1).map(|before| format!("chain-{before}"));
        all.push((format!("chain-{number}"), before.into_iter().collect()));
        let (level, place) = (number / WIDTH, number % WIDTH);
        let above = |place: usize| format!("lattice-{}", (level - 1) * WIDTH + place % WIDTH);
        let above = if level == 0 { Vec::new() } else { vec![above(place), above(place + 1)] };
        all.push((format!("lattice-{number}"), above));
    }
    for (name, other) in [("round-a", "round-b"), ("round-b", "round-a")] {
        all.push((name.to_owned(), vec![other.to_owned()]));
    }
    for (name, needs) in &all {
        scenario.sync(name, &json!({"source": maps(&[name], "1"), "dependencies": on(needs)}).to_string());
    }
    // The statuses of a thousand are megabytes at each look: they are looked at when the last objects are there.
    let last = [format!("chain-{}", many() - 1), format!("lattice-{}", many() - 1)];
    eventually("the last are applied", seconds(900), || last.iter().all(|name| scenario.has(name)));
    eventually("all but the circle are synced", seconds(60), || {
        let syncs = scenario.api.list("Sync", "sync-many");
        let synced = syncs.iter().filter(|sync| sync["status"]["phase"] == "Synced").count();
        synced == 2 * many()
    });
    for name in ["round-a", "round-b"] {
        let round = scenario.condition("Sync", name, "DependencyCycle", "True");
        assert_eq!(condition(&round, "Stalled")["status"], "False");
        assert!(!scenario.has(name));
    }
    let mut first = BTreeMap::new();
    for event in scenario.audit.user_writes("sync-many") {
        let before = first.insert(event.name.clone(), event);
        assert_eq!(before, None, "each is written once");
    }
    for (name, needs) in all.iter().filter(|(name, _)| !name.starts_with("round")) {
        for other in needs {
            assert_finished_before(&first[other], &first[name]);
        }
    }
}
