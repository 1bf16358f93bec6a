//! Every interleaving of two operations on one pod, and mistakes that this must find.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use linchpin_consist::{
    PodView,
    lifecycle::{PodFacts, Prefix, step},
};
use serde_json::json;

use super::{entry, facts, protect};
use crate::pods::{AVAILABLE, label, pod, set_gate, set_label};

/// A pod that is moved by operation controllers, a cooperation controller and the engine, in any order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Story {
    labels: BTreeMap<String, String>,
    gate: bool,
    protected: bool,
    /// How often each id was begun.
    begun: [u8; 2],
}

impl Story {
    fn pod(&self) -> PodView {
        pod(|object| {
            object["metadata"]["labels"] = json!(self.labels);
            set_label(object, "kusionstack.io/control", "true");
            set_gate(object, self.gate);
            entry(object);
            if self.protected {
                protect(object);
            }
        })
    }

    /// Values do not matter, only which labels are there.
    fn plain(mut self) -> Self {
        for (key, value) in &mut self.labels {
            if !key.contains("type") {
                "1".clone_into(value);
            }
        }
        self
    }
}

/// A mistake that the exploration must find.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bug {
    None,
    IgnoreProtection,
    OpenGateEarly,
}

/// Explores everything that can happen to a pod with two operations; returns how many states there are, or what is wrong.
fn explore(bug: Bug) -> Result<usize, String> {
    let start = Story { labels: BTreeMap::new(), gate: true, protected: true, begun: [0, 0] };
    let mut seen = BTreeSet::from([start.clone()]);
    let mut queue = VecDeque::from([start]);
    while let Some(story) = queue.pop_front() {
        for next in successors(&story, bug)? {
            let next = next.plain();
            if seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
        settles(&story)?;
    }
    Ok(seen.len())
}

fn successors(story: &Story, bug: Bug) -> Result<Vec<Story>, String> {
    let mut next = Vec::new();
    let has = |prefix: &str, id: &str| story.labels.contains_key(&label(prefix, id));
    for (number, (id, kind)) in [("a", "update"), ("b", "restart")].into_iter().enumerate() {
        if !has("operating", id) && story.begun[number] < 2 {
            let mut begun = story.clone();
            begun.labels.insert(label("operating", id), "1".to_owned());
            begun.labels.insert(label("operation-type", id), kind.to_owned());
            begun.begun[number] += 1;
            next.push(begun);
        }
        if has("operating", id) {
            // Finish, or giving up early.
            let mut finished = story.clone();
            finished.labels.remove(&label("operating", id));
            next.push(finished);
            let mut undone = story.clone();
            undone.labels.insert(label("undo-operation-type", id), kind.to_owned());
            next.push(undone);
        }
    }
    // The cooperation controller attaches and detaches as the gate says.
    if story.gate != story.protected {
        next.push(Story { protected: story.gate, ..story.clone() });
    }
    for pre_checked in [true, false] {
        let mut facts = PodFacts { pre_checked, out_of_traffic: !story.protected, ..facts() };
        let mut pod = story.pod();
        if bug == Bug::IgnoreProtection {
            facts.out_of_traffic = true;
            pod.finalizers.clear();
        }
        let patch = step(&BTreeMap::new(), &pod, &facts);
        let mut stepped = story.clone();
        for (key, value) in &patch.labels {
            match value {
                Some(value) => drop(stepped.labels.insert(key.clone(), value.clone())),
                None => drop(stepped.labels.remove(key)),
            }
        }
        stepped.gate = patch.gate.unwrap_or(story.gate);
        if bug == Bug::OpenGateEarly && patch.gate.is_none() {
            stepped.gate = true;
        }
        check(story, &stepped)?;
        next.push(stepped);
    }
    Ok(next)
}

/// What must hold after every step.
fn check(before: &Story, after: &Story) -> Result<(), String> {
    let has = |story: &Story, prefix: &str, id: &str| story.labels.contains_key(&label(prefix, id));
    for id in ["a", "b"] {
        let permitted = has(after, "operate", id) && !has(before, "operate", id);
        if permitted && (before.protected || before.gate) {
            return Err(format!("operate/{id} was given to a pod in traffic: {before:?}"));
        }
        let working = has(after, "operating", id) && has(after, "operate", id);
        if working && after.gate {
            return Err(format!("the gate is open while {id} operates: {after:?}"));
        }
    }
    let operation =
        |story: &Story| story.labels.keys().any(|key| Prefix::ALL.iter().any(|prefix| prefix.has(key)));
    let got = |story: &Story| story.labels.contains_key(AVAILABLE);
    if got(after) && !got(before) && (operation(after) || !after.protected) {
        return Err(format!("available although it is not: {after:?}"));
    }
    Ok(())
}

/// Left alone, with operations that end once permitted, everything ends: no labels of operations, available, in traffic.
fn settles(story: &Story) -> Result<(), String> {
    let mut story = story.clone();
    for _ in 0..40 {
        let mut pod = story.pod();
        for (key, _) in pod.labels.clone() {
            if let Some(id) = Prefix::Operate.id(&key) {
                pod.labels.remove(&Prefix::Operating.key(id));
            }
        }
        story.labels = pod.labels.clone();
        let patch = step(&BTreeMap::new(), &pod, &PodFacts { out_of_traffic: !story.protected, ..facts() });
        for (key, value) in patch.labels {
            match value {
                Some(value) => drop(story.labels.insert(key, value)),
                None => drop(story.labels.remove(&key)),
            }
        }
        story.gate = patch.gate.unwrap_or(story.gate);
        story.protected = story.gate;
    }
    let left: Vec<&String> = story.labels.keys().filter(|key| key.contains("podopslifecycle")).collect();
    let done = left == [AVAILABLE] && story.gate && story.protected;
    if done { Ok(()) } else { Err(format!("it does not end: {left:?}, {story:?}")) }
}

#[test]
fn every_interleaving_of_two_operations_keeps_the_rules_and_ends() {
    let states = explore(Bug::None).unwrap();
    assert!(states > 300, "only {states} states");
}

#[test]
fn the_exploration_finds_seeded_bugs() {
    assert!(explore(Bug::IgnoreProtection).is_err());
    assert!(explore(Bug::OpenGateEarly).is_err());
}
