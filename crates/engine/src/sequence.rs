//! The order of things that come after each other, by their positions in a list.
//!
//! The one topological sort: plans order their steps with it, doors their groups, components and objects. What is in a circle is
//! answered with a way round it; what is reached through others can be left out ([`Predecessors::nearest`]), so that edges stay
//! few. Pure, and the same input gives the same answer.

use std::collections::BTreeSet;

/// Positions so that each comes after all in its row of `before`; among equals, in the order they are given.
///
/// # Errors
/// A way round, where there is one: each comes after the next, and the last after the first.
pub fn sequence(before: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut missing: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut later: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
    for (position, earlier) in before.iter().enumerate() {
        for one in earlier {
            later[*one].push(position);
        }
    }
    let mut ready: BTreeSet<usize> =
        missing.iter().enumerate().filter(|(_, count)| **count == 0).map(|(position, _)| position).collect();
    let mut order = Vec::with_capacity(before.len());
    while let Some(position) = ready.pop_first() {
        order.push(position);
        for one in &later[position] {
            missing[*one] -= 1;
            if missing[*one] == 0 {
                ready.insert(*one);
            }
        }
    }
    if order.len() == before.len() { Ok(order) } else { Err(way_round(before, &missing)) }
}

/// Walks back among what could not be placed until something repeats.
fn way_round(before: &[Vec<usize>], missing: &[usize]) -> Vec<usize> {
    let mut walk: Vec<usize> = Vec::new();
    let mut next = missing.iter().position(|count| *count > 0);
    while let Some(position) = next {
        if let Some(start) = walk.iter().position(|earlier| *earlier == position) {
            return walk.split_off(start);
        }
        walk.push(position);
        next = before[position].iter().copied().find(|earlier| missing[*earlier] > 0);
    }
    walk
}

/// For each position, all that comes before it, however far.
#[derive(Clone, Debug)]
pub struct Predecessors(Vec<PositionSet>);

impl Predecessors {
    /// Of rows that are in this sequence.
    pub fn of(before: &[Vec<usize>], sequence: &[usize]) -> Self {
        let mut reach = vec![PositionSet::default(); before.len()];
        for position in sequence {
            let mut all = PositionSet::default();
            for earlier in &before[*position] {
                all.insert(*earlier);
                all.merge(&reach[*earlier]);
            }
            reach[*position] = all;
        }
        Self(reach)
    }

    /// Those of a set that are not reached through another of it: fewer edges, the same order.
    pub fn nearest(&self, set: &[usize]) -> Vec<usize> {
        let mut through = PositionSet::default();
        for earlier in set {
            through.merge(&self.0[*earlier]);
        }
        set.iter().copied().filter(|earlier| !through.contains(*earlier)).collect()
    }
}

/// A set of positions, as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PositionSet(Vec<u64>);

impl PositionSet {
    /// Adds one.
    pub fn insert(&mut self, position: usize) {
        let word = position / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (position % 64);
    }

    /// Whether it is among them.
    pub fn contains(&self, position: usize) -> bool {
        self.0.get(position / 64).is_some_and(|word| word & (1 << (position % 64)) != 0)
    }

    /// Adds all others.
    pub fn merge(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(one, other)| *one |= other);
    }

    /// All of them, in ascending order.
    pub fn members(&self) -> Vec<usize> {
        let of_word = |(word, bits): (usize, &u64)| {
            let bits = *bits;
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        };
        self.0.iter().enumerate().filter(|(_, bits)| **bits != 0).flat_map(of_word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_after_its_row_and_equals_in_the_given_order() {
        assert_eq!(sequence(&[vec![2], vec![], vec![1], vec![]]), Ok(vec![1, 2, 0, 3]));
        assert_eq!(sequence(&[]), Ok(vec![]));
    }

    #[test]
    fn a_circle_is_walked_round_once_without_what_leads_to_it() {
        assert_eq!(sequence(&[vec![], vec![2], vec![3], vec![1], vec![1]]), Err(vec![1, 2, 3]));
        assert_eq!(sequence(&[vec![1], vec![1]]), Err(vec![1]));
    }

    #[test]
    fn what_is_reached_through_another_is_left_out() {
        let before = [vec![], vec![0], vec![0, 1], vec![0]];
        let reach = Predecessors::of(&before, &sequence(&before).expect("an order"));
        assert_eq!(reach.nearest(&[0, 1]), [1]);
        assert_eq!(reach.nearest(&[0, 1, 2]), [2]);
        assert_eq!(reach.nearest(&[2, 3]), [2, 3]);
        assert_eq!(reach.nearest(&[]), [0; 0]);
    }

    #[test]
    fn a_set_grows_as_far_as_it_must() {
        let (mut one, mut other) = (PositionSet::default(), PositionSet::default());
        one.insert(3);
        other.insert(130);
        one.merge(&other);
        assert_eq!(one.members(), [3, 130]);
        assert!(!one.contains(10_000) && one.contains(130));
    }
}
