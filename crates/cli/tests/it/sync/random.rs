//! Random sets of Syncs, judged from the audit log: applied in dependency-first order although they arrive in any, an operator
//! is killed half-way and some are updated; deleted in reverse; and an unchanged revision writes nothing, also after a start.
//!
//! Three sets here, fifty with `LINCHPIN_LONG`.

use super::maps;
use crate::world::operator;
use linchpin_local::{Cluster, ClusterOptions};
use linchpin_testkit::{
    Api, Dice, Scenario,
    audit::{Audit, Event, assert_finished_before},
    grant_operator,
};
use serde_json::json;
use std::{env, thread, time::Duration};

/// One Sync of a set: what it depends on, and whether that is hard.
struct Member {
    name: String,
    needs: Vec<(usize, bool)>,
    objects: usize,
    value: usize,
}

impl Member {
    fn apply(&self, scenario: &Scenario, all: &[Self]) {
        let needs: Vec<_> = self
            .needs
            .iter()
            .map(|(other, hard)| {
                let name = &all[*other].name;
                if *hard {
                    json!({"name": name, "sync": {"name": name}})
                } else {
                    json!({"name": name, "sync": {"name": name}, "neededFor": "Available", "patience": "1h"})
                }
            })
            .collect();
        let names = self.maps();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let spec = json!({"source": maps(&names, &self.value.to_string()), "dependencies": needs});
        scenario.sync(&self.name, &spec.to_string());
    }

    fn maps(&self) -> Vec<String> {
        (0..self.objects).map(|number| format!("{}-{number}", self.name)).collect()
    }
}

/// A set without circles: each may depend on those before it.
fn members(dice: &mut Dice) -> Vec<Member> {
    let count = 4 + dice.below(4);
    (0..count)
        .map(|index| {
            let needs = (0..index).filter(|_| dice.percent(40)).collect::<Vec<_>>();
            let needs = needs.into_iter().map(|other| (other, dice.percent(70))).collect();
            Member { name: format!("s{index}"), needs, objects: 1 + dice.below(2), value: 1 }
        })
        .collect()
}

/// The first or the last write of the operator about a ConfigMap.
fn writes<'e>(
    events: &'e [Event],
    map: &'e str,
    verb: &'e str,
) -> impl DoubleEndedIterator<Item = &'e Event> {
    events.iter().filter(move |event| {
        event.resource == "configmaps" && event.name == map && event.is_by_operator() && event.verb == verb
    })
}

#[test]
fn random_sets_are_applied_dependency_first_and_deleted_in_reverse_and_rest() {
    let sets = if env::var_os("LINCHPIN_LONG").is_some() { 50 } else { 3 };
    let cluster = Cluster::start(&ClusterOptions::default()).expect("a local Kubernetes");
    let api = Api::connect(&cluster.kubeconfig());
    grant_operator(&api);
    let start = || operator(&cluster, &["--leader-elect=false"]);
    let mut running = Some(start());
    for seed in 0..sets {
        let mut dice = Dice::new(seed);
        let name = format!("sync-random-{seed}");
        let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), &name);
        let mut all = members(&mut dice);
        let mut order: Vec<usize> = (0..all.len()).collect();
        dice.shuffle(&mut order);
        let kill_at = dice.below(order.len());
        for (turn, index) in order.iter().enumerate() {
            all[*index].apply(&scenario, &all);
            if turn == kill_at {
                // Killed, not stopped: nothing is said and nothing is put away.
                drop(running.take());
                running = Some(start());
            }
        }
        // Some are updated before the others are there.
        for index in 0..all.len() {
            if dice.percent(30) {
                all[index].value = 2;
                all[index].apply(&scenario, &all);
            }
        }
        for member in &all {
            scenario.synced(&member.name);
            for map in member.maps() {
                let value = member.value.to_string();
                assert_eq!(
                    scenario.data(&map, "value").as_deref(),
                    Some(value.as_str()),
                    "seed {seed}: {map}"
                );
            }
        }
        let events = scenario.audit.user_writes(&scenario.namespace);
        for member in &all {
            for (other, _) in &member.needs {
                for (mine, theirs) in member.maps().iter().zip(all[*other].maps().iter().cycle()) {
                    let first = |map| writes(&events, map, "patch").next().expect("a write");
                    assert_finished_before(first(theirs), first(mine));
                }
            }
        }
        drop(running.take());
        running = Some(start());
        let before = scenario.audit.user_writes(&scenario.namespace).len();
        thread::sleep(Duration::from_secs(2));
        assert_eq!(
            scenario.audit.user_writes(&scenario.namespace).len(),
            before,
            "seed {seed}: a start writes nothing"
        );
        dice.shuffle(&mut order);
        for index in &order {
            scenario.delete("Sync", &all[*index].name);
        }
        for member in &all {
            scenario.gone("Sync", &member.name);
        }
        let events = scenario.audit.user_writes(&scenario.namespace);
        for member in &all {
            for (other, _) in member.needs.iter().filter(|(_, hard)| *hard) {
                for (mine, theirs) in member.maps().iter().zip(all[*other].maps().iter().cycle()) {
                    let last = |map| writes(&events, map, "delete").next_back().expect("a deletion");
                    assert_finished_before(last(mine), last(theirs));
                }
            }
        }
    }
}
