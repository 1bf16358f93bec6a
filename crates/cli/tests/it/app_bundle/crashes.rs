//! The operator dies at random points of creation, change, prune and deletion: the end is the same, nothing is orphaned.

use super::maps;
use crate::world::{self, World};
use linchpin_local::{Component, Options};
use linchpin_testkit::{
    Dice, Scenario,
    audit::{Audit, Event},
};
use nix::sys::signal::Signal;
use std::{thread, time::Duration};

const ALONE: &[&str] = &["--leader-elect=false"];

fn pause(dice: &mut Dice, limit: usize) {
    thread::sleep(Duration::from_millis(u64::try_from(dice.below(limit)).unwrap()));
}

#[test]
fn killed_at_random_points_a_bundle_comes_to_the_same_end() {
    let options = Options::default().without(Component::Scheduler);
    let World { cluster, api, operator: mut current } = World::start(&options, ALONE);
    for seed in 0..6_u64 {
        let mut dice = Dice::new(seed + 5);
        let scenario =
            Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), &format!("bundle-killed-{seed}"));
        let mut killed = |dice: &mut Dice, limit: usize| {
            pause(dice, limit);
            current.signal(Signal::SIGKILL);
            current = world::operator(&cluster, ALONE);
        };
        scenario.app_bundle("shop", &maps(&[&["a", "b"], &["c"], &["d"]]));
        killed(&mut dice, 200);
        scenario.deployed("shop");
        let changed = maps(&[&["a", "new"], &["c"]]).replacen("value: one", "value: two", 1);
        scenario.app_bundle("shop", &changed);
        killed(&mut dice, 200);
        scenario.deployed("shop");
        for name in ["b", "d"] {
            scenario.gone("ConfigMap", name);
        }
        assert_eq!(scenario.data("a", "value").as_deref(), Some("two"));
        assert!(scenario.has("new") && scenario.has("c"));
        scenario.delete("AppBundle", "shop");
        killed(&mut dice, 60);
        scenario.gone("AppBundle", "shop");
        for name in ["a", "b", "c", "d", "new"] {
            assert!(!scenario.has(name), "{name} is orphaned");
        }
        let events = scenario.audit.events();
        for name in ["a", "b", "c", "d", "new"] {
            let of = |event: &&Event| event.resource == "configmaps" && event.name == name;
            let created = events.iter().filter(of).filter(|event| event.code == 201).count();
            // The server may log as failed what it did for somebody who died before the answer.
            let unheard = || events.iter().filter(of).any(|event| event.verb == "patch" && !event.is_write());
            assert!(created == 1 || created == 0 && unheard(), "{name} was created {created} times");
        }
    }
}
