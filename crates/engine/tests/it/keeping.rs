//! Keeping what was written as it was written, and taking away what is no longer wanted.
//!
//! This file holds what all these stories are made of: an action that keeps its object, and a world that shows it.

mod admission;
mod circles;
mod drift;
mod immutable;
mod made;
mod ours;
mod owners;
mod prune;
mod seeded;

use linchpin_engine::{
    contract::{Done, Effect, Seen, StepId, Verb, Want},
    journal::ItemState,
    plan::{Drift, Plan, Prune, Removal, Rerun, Step, Terms},
};
use serde_json::json;

use crate::{
    build::{MANAGER, NAMESPACE, Steps, apply, config_map, observed, plan_with, projection, require, via},
    play::{OURS, Play},
};

/// The want that looks at what we wrote.
fn kept(name: &str) -> Want {
    Drift::object(via(), config_map(), Some(NAMESPACE.to_owned()), name, MANAGER)
}

/// An action that keeps the ConfigMap `made-<id>` as it wrote it.
fn keep(id: &str) -> Step {
    apply(id).with(|action| {
        let objects = vec![kept(&format!("made-{id}"))];
        action.rerun = Rerun::OnDrift(Drift { objects, ..Drift::default() });
        action.tracked = true;
        action.prune = Prune::All;
    })
}

fn watching(steps: Vec<Step>, generation: i64) -> Plan {
    plan_with(generation, steps, Terms { watch: true, removal: Removal::Delete, ..Terms::default() })
}

/// A requirement that what the action wrote is there.
fn ready(id: &str) -> Step {
    let floor = StepId::new(id);
    require(&format!("made-{id}")).after(&[id]).asking(|requirement| requirement.floor = Some(floor))
}

fn shown(name: &str, fingerprint: &str, version: u64) -> Seen {
    let content = json!({"metadata": {"name": name, "managedFields": {MANAGER: fingerprint}}});
    observed(Some(projection(name, &format!("uid-{name}"), version, content)), version)
}

fn gone(version: u64) -> Seen {
    observed(None, version)
}

impl Play {
    /// Everything that is ordered succeeds, and the watches show it, until nothing happens any more.
    fn settle(&mut self) {
        for _ in 0..20 {
            let effects = self.step();
            if effects.is_empty() && self.outcomes.is_empty() {
                return;
            }
            for effect in &effects {
                if let Verb::Delete { target, .. } = &effect.verb {
                    let done = Done { target: Some(target.clone()), gone: true, ..Done::default() };
                    self.come_back(&effect.ticket, Ok(done));
                } else {
                    self.succeed(effect);
                    let Verb::Apply { body, .. } = &effect.verb else { continue };
                    let name = body["metadata"]["name"].as_str().expect("a name").to_owned();
                    self.shows(&name, &shown(&name, OURS, 100));
                }
            }
        }
        panic!("it does not come to rest");
    }

    /// What both watches of an object show.
    fn shows(&mut self, name: &str, seen: &Seen) {
        self.sees(name, seen.clone());
        self.answer(kept(name), seen.clone());
    }

    fn row(&self, name: &str) -> Option<ItemState> {
        self.memory.journal.inventory.iter().find(|item| item.target.name == name).map(|item| item.state)
    }
}

fn deleted(effects: &[Effect]) -> Vec<String> {
    let name = |effect: &'_ Effect| match &effect.verb {
        Verb::Delete { target, .. } => target.name.clone(),
        other => panic!("not a deletion: {other:?}"),
    };
    effects.iter().map(name).collect()
}
