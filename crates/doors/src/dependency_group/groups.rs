//! The order of groups.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::Group;
use linchpin_engine::plan::SpecError;

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
    let mut earlier_groups = Vec::with_capacity(groups.len());
    for (index, group) in groups.iter().enumerate() {
        let mut before = BTreeSet::new();
        for (place, name) in group.depends_on.iter().enumerate() {
            let field = format!("spec.groups[{index}].dependsOn[{place}]");
            let Some(earlier) = positions.get(name.as_str()) else {
                let known: Vec<&str> = groups.iter().map(|group| group.name.as_str()).take(10).collect();
                return Err(at(
                    field,
                    format!("there is no group named {name:?}; there are {}", known.join(", ")),
                ));
            };
            before.insert(*earlier);
        }
        earlier_groups.push(before);
    }
    let order = in_order(&earlier_groups).map_err(|cycle| {
        let names: Vec<&str> = cycle.iter().map(|index| groups[*index].name.as_str()).collect();
        let field = format!("spec.groups[{}].dependsOn", cycle.first().copied().unwrap_or_default());
        at(field, format!("groups wait for each other: {}", names.join(" → ")))
    })?;
    Ok(reduced(&earlier_groups, &order))
}

/// Without what is reached through another: fewer edges, the same order.
fn reduced(earlier_groups: &[BTreeSet<usize>], order: &[usize]) -> Vec<Vec<usize>> {
    let mut reach: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); earlier_groups.len()];
    for index in order {
        let mut all = earlier_groups[*index].clone();
        for earlier in &earlier_groups[*index] {
            all.extend(&reach[*earlier]);
        }
        reach[*index] = all;
    }
    earlier_groups
        .iter()
        .map(|before| {
            let through: BTreeSet<usize> =
                before.iter().flat_map(|one| reach[*one].iter().copied()).collect();
            before.difference(&through).copied().collect()
        })
        .collect()
}

/// Groups so that each comes after those it waits for, or a way round that begins and ends with the same one.
fn in_order(before: &[BTreeSet<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut order = Vec::with_capacity(before.len());
    let mut placed = vec![false; before.len()];
    loop {
        let next =
            (0..before.len()).find(|index| !placed[*index] && before[*index].iter().all(|one| placed[*one]));
        match next {
            Some(index) => {
                placed[index] = true;
                order.push(index);
            }
            None if order.len() == before.len() => return Ok(order),
            None => return Err(way_round(before, &placed)),
        }
    }
}

fn way_round(before: &[BTreeSet<usize>], placed: &[bool]) -> Vec<usize> {
    let mut walk: Vec<usize> = Vec::new();
    let mut next = placed.iter().position(|placed| !placed);
    while let Some(index) = next {
        if let Some(start) = walk.iter().position(|earlier| *earlier == index) {
            let mut round = walk.split_off(start);
            round.push(index);
            return round;
        }
        walk.push(index);
        next = before[index].iter().copied().find(|earlier| !placed[*earlier]);
    }
    walk
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
