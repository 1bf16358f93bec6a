//! The order of components: what each comes after.
//!
//! `order` gives edges to all peers of lower order; where no peer has one, the list is the order; `strict` makes every
//! list a line. `dependsOn` replaces those edges: a group's the ones between groups, a component's the ones inside its
//! group. What a group comes after always comes before all its components. A component that is no gate is passed over,
//! unless it is named. What is reached through others is left out, so edges stay few; a circle is spelled out.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::{BundleGroup, Component};
use linchpin_engine::{
    plan::SpecError,
    sequence::{PositionSet, Predecessors, sequence},
};
use linchpin_words::similar;

use crate::errors::at;

/// A component by its position in its group and the group's in the spec.
pub(super) type ComponentPosition = (usize, usize);

/// The components of a bundle in the order they are written, and who comes after whom.
pub(super) struct ComponentOrder {
    /// For each component, those it comes after directly.
    direct: Vec<Vec<usize>>,
    /// For each group, those that all its components come after.
    groups: Vec<Vec<usize>>,
}

impl ComponentOrder {
    /// The components that the one at `position` comes after directly.
    pub(super) fn before(&self, position: usize) -> &[usize] {
        &self.direct[position]
    }

    /// The components that all of the group at `index` come after.
    pub(super) fn before_group(&self, index: usize) -> &[usize] {
        &self.groups[index]
    }
}

/// What is read of a component beside its text: pairs of reader and read, both by position.
pub(super) type ComponentReading = (usize, usize);

/// The order of a bundle's components. Who reads another comes after it.
pub(super) fn order(
    groups: &[BundleGroup],
    strict: bool,
    readings: &[ComponentReading],
) -> Result<ComponentOrder, SpecError> {
    let graph = Graph::new(groups);
    let mut before: Vec<PositionSet> = vec![PositionSet::default(); graph.places.len()];
    let mut of_groups = Vec::with_capacity(groups.len());
    for (index, group) in groups.iter().enumerate() {
        let of_group = graph.before_group(index, strict)?;
        for (inner, component) in group.components.iter().enumerate() {
            let position = graph.position((index, inner));
            let mut all = of_group.clone();
            all.merge(&graph.before_component((index, inner), component, strict)?);
            before[position] = all;
        }
        of_groups.push(of_group);
    }
    for (reader, read) in readings {
        before[*reader].insert(*read);
    }
    let before: Vec<Vec<usize>> = before.iter().map(PositionSet::members).collect();
    let order = sequence(&before).map_err(|round| graph.circle(&round))?;
    let reach = Predecessors::of(&before, &order);
    let groups = of_groups.iter().map(|set| reach.nearest(&set.members())).collect();
    Ok(ComponentOrder { direct: before.iter().map(|set| reach.nearest(set)).collect(), groups })
}

struct Graph<'a> {
    groups: &'a [BundleGroup],
    names: BTreeMap<&'a str, usize>,
    places: Vec<ComponentPosition>,
    /// The position of each group's first component.
    first: Vec<usize>,
}

impl<'a> Graph<'a> {
    fn new(groups: &'a [BundleGroup]) -> Self {
        let mut places = Vec::new();
        let mut first = Vec::with_capacity(groups.len());
        for (index, group) in groups.iter().enumerate() {
            first.push(places.len());
            places.extend((0..group.components.len()).map(|inner| (index, inner)));
        }
        let names = groups.iter().enumerate().map(|(index, group)| (group.name.as_str(), index)).collect();
        Self { groups, names, places, first }
    }

    fn position(&self, (group, component): ComponentPosition) -> usize {
        self.first[group] + component
    }

    /// The components of a group that others wait for.
    fn gates(&self, group: usize, set: &mut PositionSet) {
        for (inner, component) in self.groups[group].components.iter().enumerate() {
            if component.gate != Some(false) {
                set.insert(self.first[group] + inner);
            }
        }
    }

    /// What comes before all components of a group.
    fn before_group(&self, index: usize, strict: bool) -> Result<PositionSet, SpecError> {
        let mut set = PositionSet::default();
        let group = &self.groups[index];
        let Some(names) = &group.depends_on else {
            let orders: Vec<Option<i32>> = self.groups.iter().map(|group| group.order).collect();
            for earlier in lower(&orders, index, strict) {
                self.gates(earlier, &mut set);
            }
            return Ok(set);
        };
        for (place, name) in names.iter().enumerate() {
            let field = format!("spec.groups[{index}].dependsOn[{place}]");
            if let Some((group, component)) = name.split_once('/') {
                set.insert(self.find(group, component, &field)?);
                continue;
            }
            let earlier = self.group(name, &field)?;
            if earlier == index {
                return Err(at(field, "a group cannot depend on itself"));
            }
            self.gates(earlier, &mut set);
        }
        Ok(set)
    }

    /// What comes before a component inside its group, or by name.
    fn before_component(
        &self,
        (index, inner): ComponentPosition,
        component: &Component,
        strict: bool,
    ) -> Result<PositionSet, SpecError> {
        let mut set = PositionSet::default();
        let peers = &self.groups[index].components;
        let Some(names) = &component.depends_on else {
            let orders: Vec<Option<i32>> = peers.iter().map(|peer| peer.order).collect();
            for earlier in lower(&orders, inner, strict) {
                if peers[earlier].gate != Some(false) {
                    set.insert(self.first[index] + earlier);
                }
            }
            return Ok(set);
        };
        for (place, name) in names.iter().enumerate() {
            let field = format!("spec.groups[{index}].components[{inner}].dependsOn[{place}]");
            let peer = peers.iter().position(|peer| peer.name == *name);
            let found = match (name.split_once('/'), peer) {
                (Some((group, component)), _) => self.find(group, component, &field)?,
                (None, Some(peer)) => self.first[index] + peer,
                (None, None) => {
                    let known = self.names.get(name.as_str()).filter(|group| **group != index);
                    let Some(group) = known else {
                        let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).take(10).collect();
                        let problem = format!(
                            "there is no component {name:?} in group {:?}, and no other group of that name; there are {}{}",
                            self.groups[index].name,
                            names.join(", "),
                            similar::did_you_mean(name, peers.iter().map(|peer| peer.name.as_str()))
                        );
                        return Err(at(field, problem));
                    };
                    self.gates(*group, &mut set);
                    continue;
                }
            };
            if found == self.first[index] + inner {
                return Err(at(field, "a component cannot depend on itself"));
            }
            set.insert(found);
        }
        Ok(set)
    }

    fn group(&self, name: &str, field: &str) -> Result<usize, SpecError> {
        self.names.get(name).copied().ok_or_else(|| {
            let known: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).take(10).collect();
            let meant = similar::did_you_mean(name, self.groups.iter().map(|group| group.name.as_str()));
            at(field, format!("there is no group {name:?}; there are {}{meant}", known.join(", ")))
        })
    }

    fn find(&self, group: &str, component: &str, field: &str) -> Result<usize, SpecError> {
        let index = self.group(group, field)?;
        let components = &self.groups[index].components;
        let inner = components.iter().position(|one| one.name == component).ok_or_else(|| {
            let known: Vec<&str> = components.iter().map(|one| one.name.as_str()).take(10).collect();
            at(
                field,
                format!(
                    "there is no component {component:?} in group {group:?}; there are {}{}",
                    known.join(", "),
                    similar::did_you_mean(component, components.iter().map(|one| one.name.as_str()))
                ),
            )
        })?;
        Ok(self.first[index] + inner)
    }

    /// The error that spells a circle out.
    fn circle(&self, round: &[usize]) -> SpecError {
        let name = |position: &usize| {
            let (group, component) = self.places[*position];
            let group = &self.groups[group];
            format!("{}/{}", group.name, group.components[component].name)
        };
        let names: Vec<String> = round.iter().chain(round.first()).map(name).collect();
        let (group, component) = round.first().map_or((0, 0), |position| self.places[*position]);
        let field = format!("spec.groups[{group}].components[{component}]");
        let circle = format!("components wait for each other: {}", names.join(" → "));
        at(field, circle + &self.unordered(round))
    }

    /// Names what has no order and closes a circle by that: it counts as 0 among those that have one.
    fn unordered(&self, round: &[usize]) -> String {
        let mut unordered = BTreeSet::new();
        for (one, next) in round.iter().zip(round.iter().cycle().skip(1)) {
            let ((group, component), (earlier_group, earlier)) = (self.places[*one], self.places[*next]);
            let peers = &self.groups[group].components;
            if group != earlier_group {
                let by_order = self.groups[group].depends_on.is_none()
                    && self.groups.iter().any(|group| group.order.is_some());
                let without = [group, earlier_group].into_iter().map(|index| &self.groups[index]);
                let without = without.filter(|group| by_order && group.order.is_none());
                unordered.extend(without.map(|group| format!("group {:?}", group.name)));
            } else if peers[component].depends_on.is_none() && peers.iter().any(|peer| peer.order.is_some()) {
                let without = [component, earlier].into_iter().map(|index| &peers[index]);
                let without = without.filter(|peer| peer.order.is_none());
                unordered.extend(without.map(|peer| format!("component {:?}", peer.name)));
            }
        }
        if unordered.is_empty() {
            return String::new();
        }
        let unordered: Vec<String> = unordered.into_iter().collect();
        let verb = if unordered.len() == 1 { "has" } else { "have" };
        format!("; {} {verb} no order, which counts as 0 beside those that have one", unordered.join(" and "))
    }
}

/// The peers that come before the one at `index` by their order.
fn lower(orders: &[Option<i32>], index: usize, strict: bool) -> Vec<usize> {
    let listed = orders.iter().all(Option::is_none);
    let own = orders[index].unwrap_or(0);
    (0..orders.len())
        .filter(|peer| {
            let order = orders[*peer].unwrap_or(0);
            let earlier_in_line = *peer < index && order == own && (strict || listed);
            order < own || earlier_in_line
        })
        .collect()
}
