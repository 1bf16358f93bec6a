//! The parts of an object in their own order: each after those it comes after, else as they were written down.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_engine::graph::Node;

use crate::picture::{ArrowReason, Picture};

/// Puts the arrows from each object to its parts in order, in the places that such arrows have. `written` is the order
/// in which parts were written down.
pub(super) fn sort(picture: &Picture, written: &[Node], needs: &mut [Vec<usize>]) {
    let written: BTreeMap<&Node, usize> = written.iter().enumerate().map(|(at, node)| (node, at)).collect();
    let outgoing = picture.outgoing();
    for (item, needs) in picture.items.iter().zip(needs) {
        let whole = &item.node;
        if whole.part.is_some() {
            continue;
        }
        let is_part = |arrow: &usize| {
            let to = &picture.items[picture.arrows[*arrow].to].node;
            to.part.is_some() && to.whole() == *whole
        };
        let places: Vec<usize> =
            needs.iter().enumerate().filter(|(_, at)| is_part(at)).map(|(at, _)| at).collect();
        let parts: Vec<usize> = places.iter().map(|&place| needs[place]).collect();
        for (place, arrow) in places.into_iter().zip(ordered(picture, &outgoing, &written, parts)) {
            needs[place] = arrow;
        }
    }
}

/// These arrows, each after the ones to what its part comes after.
fn ordered(
    picture: &Picture,
    outgoing: &[Vec<usize>],
    written: &BTreeMap<&Node, usize>,
    mut left: Vec<usize>,
) -> Vec<usize> {
    let to = |arrow: usize| picture.arrows[arrow].to;
    left.sort_by_key(|&arrow| {
        let node = &picture.items[to(arrow)].node;
        (written.get(node).copied().unwrap_or(usize::MAX), arrow)
    });
    let members: BTreeSet<usize> = left.iter().map(|&arrow| to(arrow)).collect();
    let mut before: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for arrow in members.iter().flat_map(|&part| &outgoing[part]).map(|&at| &picture.arrows[at]) {
        let between = members.contains(&arrow.to) && arrow.from != arrow.to;
        if between && matches!(arrow.need, ArrowReason::Wait { .. }) {
            before.entry(arrow.from).or_default().insert(arrow.to);
        }
    }
    let mut ordered = Vec::with_capacity(left.len());
    let mut placed: BTreeSet<usize> = BTreeSet::new();
    while !left.is_empty() {
        let free = |arrow: &usize| before.get(&to(*arrow)).is_none_or(|before| before.is_subset(&placed));
        // In a circle nothing comes first: go on with what was written first.
        let next = left.remove(left.iter().position(free).unwrap_or(0));
        placed.insert(to(next));
        ordered.push(next);
    }
    ordered
}
