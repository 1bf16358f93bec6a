//! Fifty random bundles at once: no component is written before all it comes after, and none goes before what comes
//! after it is gone.

use super::map;
use crate::world::scenario;
use linchpin_testkit::{Dice, audit::Event};
use std::fmt::Write as _;

const BUNDLES: usize = 50;

struct Component {
    name: String,
    group: usize,
    order: usize,
    after: Option<Vec<usize>>,
}

struct Bundle {
    name: String,
    orders: Vec<usize>,
    components: Vec<Component>,
}

impl Bundle {
    fn random(number: usize) -> Self {
        let mut dice = Dice::new(u64::try_from(number).unwrap() + 977);
        let name = format!("b{number}");
        let orders: Vec<usize> = (0..=dice.below(3)).map(|_| dice.below(3)).collect();
        let mut components: Vec<Component> = Vec::new();
        for group in 0..orders.len() {
            let first = components.len();
            for index in 0..=dice.below(4) {
                let order = dice.below(3);
                // By name only after what does not come after it by order: anything else is a circle.
                let mut peers: Vec<usize> =
                    (first..components.len()).filter(|peer| components[*peer].order <= order).collect();
                peers.retain(|_| dice.percent(40));
                components.push(Component {
                    name: format!("{name}-{group}-{index}"),
                    group,
                    order,
                    after: dice.percent(30).then_some(peers),
                });
            }
        }
        Self { name, orders, components }
    }

    fn spec(&self) -> String {
        let mut text = "{groups: [".to_owned();
        for (group, order) in self.orders.iter().enumerate() {
            write!(text, "{{name: g{group}, order: {order}, components: [").unwrap();
            for component in self.components.iter().filter(|component| component.group == group) {
                let mut more = format!(", order: {}", component.order);
                if let Some(after) = &component.after {
                    let names: Vec<&str> =
                        after.iter().map(|one| self.components[*one].name.as_str()).collect();
                    write!(more, ", dependsOn: [{}]", names.join(", ")).unwrap();
                }
                write!(text, "{}, ", map(&component.name, &more)).unwrap();
            }
            text.push_str("]}, ");
        }
        text.push_str("]}");
        text
    }

    /// What comes before a component, by the rules and nothing else.
    fn before(&self, component: &Component) -> Vec<&str> {
        let earlier = |index: usize, other: &Component| {
            if other.group == component.group {
                match &component.after {
                    Some(after) => after.contains(&index),
                    None => other.order < component.order,
                }
            } else {
                self.orders[other.group] < self.orders[component.group]
            }
        };
        let found = self.components.iter().enumerate().filter(|(index, other)| earlier(*index, other));
        found.map(|(_, other)| other.name.as_str()).collect()
    }
}

#[test]
fn fifty_random_bundles_come_up_and_go_down_in_order() {
    let scenario = scenario("random-bundles");
    let bundles: Vec<Bundle> = (0..BUNDLES).map(Bundle::random).collect();
    for bundle in &bundles {
        scenario.app_bundle(&bundle.name, &bundle.spec());
    }
    for bundle in &bundles {
        scenario.deployed(&bundle.name);
    }
    let first = |writes: &[Event], verb: &str, name: &str| {
        let mine: Vec<&Event> =
            writes.iter().filter(|event| event.verb == verb && event.name == name).collect();
        assert_eq!(mine.len(), 1, "{name} was asked for so often: {mine:#?}");
        mine[0].clone()
    };
    let writes = super::written(&scenario);
    for bundle in &bundles {
        for component in &bundle.components {
            let own = first(&writes, "patch", &component.name);
            for before in bundle.before(component) {
                assert!(
                    first(&writes, "patch", before).written <= own.received,
                    "{before} before {}",
                    component.name
                );
            }
        }
    }
    for bundle in &bundles {
        scenario.delete("AppBundle", &bundle.name);
    }
    for bundle in &bundles {
        scenario.gone("AppBundle", &bundle.name);
    }
    let writes = super::written(&scenario);
    for bundle in &bundles {
        for component in &bundle.components {
            let own = first(&writes, "delete", &component.name);
            for before in bundle.before(component) {
                assert!(
                    own.written <= first(&writes, "delete", before).received,
                    "{} goes before {before}",
                    component.name
                );
            }
        }
    }
}
