//! A crowd at once: all fire after one change, each once, and in order where they follow each other. Correctness only;
//! how fast that is, the benchmark says. `make scale` does it with a thousand.

use crate::{bare, eventually, seconds, world::World};
use linchpin_testkit::Scenario;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
};

/// How many there are.
fn many() -> usize {
    std::env::var("LINCHPIN_CROWD").ok().and_then(|count| count.parse().ok()).unwrap_or(200)
}

/// A cluster for crowds, one at a time, and a namespace in it.
fn crowded(name: &str) -> (Scenario, MutexGuard<'static, ()>) {
    static TURN: Mutex<()> = Mutex::new(());
    static WORLD: OnceLock<World> = OnceLock::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let world = WORLD.get_or_init(|| World::start(&bare(), &["--leader-elect=false"]));
    (world.scenario(name), turn)
}

/// `rd-N` waits for a ConfigMap and makes the ConfigMap `made-N`.
fn crowd(scenario: &Scenario, waits_for: impl Fn(usize) -> String + Sync) {
    for_all(|number| {
        scenario.resource_dependency(
            &format!("rd-{number}"),
            &format!(
                "{{dependencies: [{{resource: configmap/{}}}], actions: [{{name: make, type: create, \
                 resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: made-{number}}}}}}}]}}",
                waits_for(number)
            ),
        );
    });
}

/// Does something for each number, a few at a time.
fn for_all(act: impl Fn(usize) + Sync) {
    const HANDS: usize = 4;
    thread::scope(|scope| {
        for hand in 0..HANDS {
            let act = &act;
            scope.spawn(move || (hand..many()).step_by(HANDS).for_each(act));
        }
    });
}

fn in_phase(scenario: &Scenario, phase: &str) -> usize {
    let all = scenario.api.list("ResourceDependency", &scenario.namespace);
    all.iter().filter(|object| object["status"]["phase"] == phase).count()
}

fn all_are(scenario: &Scenario, phase: &str) {
    eventually(&format!("all are {phase}"), seconds(300), || {
        thread::sleep(seconds(1));
        in_phase(scenario, phase) == many()
    });
}

/// When each was made, after making sure that each was made once.
fn made(scenario: &Scenario) -> BTreeMap<String, (String, String)> {
    let mut made = BTreeMap::new();
    for event in scenario.audit.user_writes(&scenario.namespace) {
        assert!((200..300).contains(&event.code), "{event:?}");
        let before = made.insert(event.name.clone(), (event.received.clone(), event.written.clone()));
        assert_eq!(before, None, "written twice: {event:?}");
    }
    let names: BTreeSet<String> = (0..many()).map(|number| format!("made-{number}")).collect();
    assert_eq!(made.keys().cloned().collect::<BTreeSet<_>>(), names);
    made
}

#[test]
fn a_crowd_waits_for_one_object_and_all_fire_after_one_change() {
    let (scenario, _turn) = crowded("one-to-many");
    crowd(&scenario, |_| "flip".to_owned());
    all_are(&scenario, "Waiting");
    assert_eq!(scenario.audit.user_writes("one-to-many"), []);
    scenario.config_map("flip", "");
    all_are(&scenario, "Completed");
    let flipped = scenario.audit.first_write("configmaps", "one-to-many", "flip");
    for (name, (received, _)) in made(&scenario) {
        assert!(flipped.received < received, "{name} came too early");
    }
}

#[test]
fn a_crowd_waits_for_an_object_each() {
    let (scenario, _turn) = crowded("many-to-many");
    crowd(&scenario, |number| format!("flip-{number}"));
    all_are(&scenario, "Waiting");
    for_all(|number| scenario.config_map(&format!("flip-{number}"), ""));
    all_are(&scenario, "Completed");
    let made = made(&scenario);
    let events = scenario.audit.events();
    let flips = events.iter().filter(|event| event.is_write() && event.name.starts_with("flip-"));
    for flip in flips.filter(|event| event.namespace == "many-to-many") {
        let name = flip.name.replace("flip", "made");
        assert!(flip.received < made[&name].0, "{name} came too early");
    }
}

#[test]
fn a_long_chain_runs_from_end_to_end_in_order() {
    let (scenario, _turn) = crowded("chain");
    crowd(&scenario, |number| match number {
        0 => "flip".to_owned(),
        _ => format!("made-{}", number - 1),
    });
    all_are(&scenario, "Waiting");
    assert_eq!(scenario.audit.user_writes("chain"), []);
    scenario.config_map("flip", "");
    all_are(&scenario, "Completed");
    let made = made(&scenario);
    for number in 1..many() {
        let (before, after) = (&made[&format!("made-{}", number - 1)], &made[&format!("made-{number}")]);
        assert!(before.0 < after.0, "made-{number} came too early");
    }
}
