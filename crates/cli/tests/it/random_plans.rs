//! Fifty random plans, all at once: no action is written before everything it comes after.

use crate::world::scenario;
use linchpin_testkit::{Dice, audit::assert_before};
use std::{collections::BTreeSet, fmt::Write as _};

const PLANS: usize = 50;

struct Plan {
    name: String,
    dependencies: Vec<(String, usize)>,
    actions: Vec<Action>,
}

struct Action {
    name: String,
    priority: usize,
    after: Option<BTreeSet<usize>>,
    applies: bool,
}

impl Plan {
    fn random(number: usize) -> Self {
        let mut dice = Dice::new(u64::try_from(number).unwrap() + 41);
        let name = format!("p{number}");
        let dependencies =
            (0..dice.below(4)).map(|index| (format!("{name}-d{index}"), dice.below(3))).collect();
        let actions = (0..=dice.below(6))
            .map(|index| Action {
                name: format!("{name}-a{index}"),
                priority: dice.below(3),
                after: dice.percent(40).then(|| (0..index).filter(|_| dice.percent(40)).collect()),
                applies: dice.percent(50),
            })
            .collect();
        Self { name, dependencies, actions }
    }

    fn spec(&self) -> String {
        let mut text = "{dependencies: [".to_owned();
        for (name, priority) in &self.dependencies {
            write!(text, "{{resource: configmap/{name}, priority: {priority}}}, ").unwrap();
        }
        text.push_str("], actions: [");
        for action in &self.actions {
            let Action { name, priority, .. } = action;
            let after = action.after.as_ref().map(|after| {
                let names: Vec<_> = after.iter().map(|index| self.actions[*index].name.as_str()).collect();
                format!("after: [{}], ", names.join(", "))
            });
            let body = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}");
            let body = if action.applies {
                format!("type: apply, apply: {body}")
            } else {
                format!("type: create, resource: {body}")
            };
            write!(text, "{{name: {name}, priority: {priority}, {}{body}}}, ", after.unwrap_or_default())
                .unwrap();
        }
        text.push_str("]}");
        text
    }

    /// The actions that come before this one for sure: those it names, or those of lower priority that name none.
    fn before(&self, action: &Action) -> Vec<&str> {
        let names = self.actions.iter().enumerate().filter(|(index, other)| match &action.after {
            Some(after) => after.contains(index),
            None => other.after.is_none() && other.priority < action.priority,
        });
        names.map(|(_, other)| other.name.as_str()).collect()
    }
}

#[test]
fn no_action_precedes_what_it_comes_after() {
    let scenario = scenario("random");
    let plans: Vec<Plan> = (0..PLANS).map(Plan::random).collect();
    let mut dice = Dice::new(7);
    let mut releases: Vec<&str> =
        plans.iter().flat_map(|plan| plan.dependencies.iter().map(|(name, _)| name.as_str())).collect();
    dice.shuffle(&mut releases);
    let (early, late) = releases.split_at(releases.len() / 4);
    for name in early {
        scenario.config_map(name, "");
    }
    for plan in &plans {
        scenario.resource_dependency(&plan.name, &plan.spec());
    }
    for name in late {
        scenario.config_map(name, "");
    }
    for plan in &plans {
        scenario.completed(&plan.name);
    }
    let writes = scenario
        .audit
        .events()
        .into_iter()
        .filter(|event| event.is_write() && event.resource == "configmaps");
    let writes: Vec<_> = writes.filter(|event| event.namespace == "random").collect();
    let first = |name: &str| writes.iter().find(|event| event.name == name).unwrap();
    for plan in &plans {
        for action in &plan.actions {
            let mine = writes.iter().filter(|event| event.name == action.name).count();
            assert_eq!(mine, 1, "{} was written so often", action.name);
            for (dependency, _) in &plan.dependencies {
                assert_before(first(dependency), first(&action.name));
            }
            for before in plan.before(action) {
                assert!(
                    first(before).written <= first(&action.name).received,
                    "{before} before {}",
                    action.name
                );
            }
        }
    }
}
