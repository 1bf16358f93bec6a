//! The order of groups.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::Group;
use linchpin_engine::{
    plan::SpecError,
    sequence::{Predecessors, sequence},
};
use linchpin_words::similar;

use crate::errors::at;

/// For each group, the positions of the groups it waits for directly; those it waits for through another are left out.
pub(super) fn direct(groups: &[Group]) -> Result<Vec<Vec<usize>>, SpecError> {
    let mut positions: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, group) in groups.iter().enumerate() {
        if let Some(first) = positions.insert(&group.name, index) {
            let problem =
                format!("{:?} is the name of spec.groups[{first}] too; names must differ", group.name);
            return Err(at(format!("spec.groups[{index}].name"), problem));
        }
    }
    let mut before: Vec<Vec<usize>> = Vec::with_capacity(groups.len());
    for (index, group) in groups.iter().enumerate() {
        let mut earlier = BTreeSet::new();
        for (place, name) in group.depends_on.iter().enumerate() {
            let field = format!("spec.groups[{index}].dependsOn[{place}]");
            let Some(one) = positions.get(name.as_str()) else {
                let known: Vec<&str> = groups.iter().map(|group| group.name.as_str()).take(10).collect();
                let meant = similar::did_you_mean(name, groups.iter().map(|group| group.name.as_str()));
                let problem =
                    format!("there is no group named {name:?}; there are {}{meant}", known.join(", "));
                return Err(at(field, problem));
            };
            earlier.insert(*one);
        }
        before.push(earlier.into_iter().collect());
    }
    let order = sequence(&before).map_err(|round| {
        let names: Vec<&str> =
            round.iter().chain(round.first()).map(|index| groups[*index].name.as_str()).collect();
        let field = format!("spec.groups[{}].dependsOn", round.first().copied().unwrap_or_default());
        at(field, format!("groups wait for each other: {}", names.join(" → ")))
    })?;
    let reach = Predecessors::of(&before, &order);
    Ok(before.iter().map(|earlier| reach.nearest(earlier)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(list: &[(&str, &[&str])]) -> Vec<Group> {
        list.iter()
            .map(|(name, before)| Group {
                name: (*name).to_owned(),
                depends_on: before.iter().map(|name| (*name).to_owned()).collect(),
                ..Group::default()
            })
            .collect()
    }

    #[test]
    fn what_is_reached_through_another_group_needs_no_edge_of_its_own() {
        let direct = direct(&groups(&[("c", &["a", "b"]), ("b", &["a"]), ("a", &[])])).expect("an order");
        assert_eq!(direct, [vec![1], vec![2], vec![]]);
    }

    #[test]
    fn a_circle_of_groups_is_spelled_out() {
        let error = direct(&groups(&[("x", &[]), ("a", &["b"]), ("b", &["c"]), ("c", &["a"])]))
            .expect_err("a circle");
        assert_eq!(error.to_string(), "spec.groups[1].dependsOn: groups wait for each other: a → b → c → a");
    }
}
