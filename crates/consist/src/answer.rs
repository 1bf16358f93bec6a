//! What a provider answered about one employer: expected and current, matched by id.
//!
//! The document's diff: in expected only, create; in both and not equal, update with the expected item; in current only,
//! delete. Two expected items with one id are an error, not a coin toss, and so are two current ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;

use crate::adapter::Trouble;

/// The most employees of one employer.
pub const EMPLOYEES: usize = 5_000;

/// The most bytes of an id or a name.
pub const ID_BYTES: usize = 253;

/// One item as it is to be and as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemPair {
    /// What both are matched by.
    pub id: String,
    /// The employee's name; empty for employers.
    pub name: String,
    /// As it is to be.
    pub expected: Option<Arc<Value>>,
    /// As it is.
    pub current: Option<Arc<Value>>,
    /// Whether both are there and equal, as the adapter says.
    pub same: bool,
    /// Whether the pod may have traffic, as the expected state says; none where it is not expected or no pod.
    pub ready: Option<bool>,
    /// Whether the provider still sends traffic to it, as the current state says.
    pub in_traffic: Option<bool>,
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderAnswer {
    /// The employer's items.
    pub employer: Vec<ItemPair>,
    /// The employees' items.
    pub employees: Vec<ItemPair>,
    /// When to look again although nothing changed.
    pub recheck: Option<Duration>,
}

/// One state as pairs are made of it.
pub struct Side {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// The state.
    pub state: Value,
    /// Whether the pod may have traffic.
    pub ready: Option<bool>,
    /// Whether it still gets traffic.
    pub in_traffic: Option<bool>,
}

/// Why two lists cannot be matched, and which of them is to blame.
#[derive(Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The expected list.
    Expected(Trouble),
    /// The current list.
    Current(Trouble),
}

/// Matches expected with current by id. `same` gets positions in the two lists.
pub fn pair(
    expected: Vec<Side>,
    current: Vec<Side>,
    same: impl Fn(usize, usize) -> bool,
) -> Result<Vec<ItemPair>, Mismatch> {
    check(&expected).map_err(Mismatch::Expected)?;
    check(&current).map_err(Mismatch::Current)?;
    let mut pairs: BTreeMap<String, ItemPair> = BTreeMap::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (place, side) in expected.into_iter().enumerate() {
        places.insert(side.id.clone(), place);
        let pair = ItemPair {
            id: side.id.clone(),
            name: side.name,
            expected: Some(Arc::new(side.state)),
            current: None,
            same: false,
            ready: side.ready,
            in_traffic: None,
        };
        pairs.insert(side.id, pair);
    }
    for (place, side) in current.into_iter().enumerate() {
        let state = Some(Arc::new(side.state));
        if let Some(pair) = pairs.get_mut(&side.id) {
            pair.same = places.get(&side.id).is_some_and(|expected| same(*expected, place));
            pair.current = state;
            pair.in_traffic = side.in_traffic;
        } else {
            let pair = ItemPair {
                id: side.id.clone(),
                name: side.name,
                expected: None,
                current: state,
                same: false,
                ready: None,
                in_traffic: side.in_traffic,
            };
            pairs.insert(side.id, pair);
        }
    }
    Ok(pairs.into_values().collect())
}

/// Whether a list can be matched: ids are there, short and each only once.
fn check(sides: &[Side]) -> Result<(), Trouble> {
    if sides.len() > EMPLOYEES {
        return Err(Trouble(format!("{} items, at most {EMPLOYEES} are served", sides.len())));
    }
    let mut seen = BTreeSet::new();
    for side in sides {
        if side.id.is_empty() || side.id.len() > ID_BYTES || side.name.len() > ID_BYTES {
            return Err(Trouble(format!("an id must have 1 to {ID_BYTES} bytes, one has {}", side.id.len())));
        }
        if !seen.insert(&side.id) {
            return Err(Trouble(format!("two items have the id {}", side.id)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn side(id: &str, weight: i32) -> Side {
        Side {
            id: id.to_owned(),
            name: id.to_owned(),
            state: json!(weight),
            ready: Some(true),
            in_traffic: None,
        }
    }

    fn paired(expected: &[(&str, i32)], current: &[(&str, i32)]) -> Result<Vec<ItemPair>, Mismatch> {
        let sides = |list: &[(&str, i32)]| list.iter().map(|(id, weight)| side(id, *weight)).collect();
        pair(sides(expected), sides(current), |one, other| expected[one].1 == current[other].1)
    }

    #[test]
    fn the_diff_is_by_id_as_the_document_says() {
        let pairs = paired(&[("a", 1), ("b", 1), ("c", 1)], &[("b", 1), ("c", 2), ("d", 1)]).unwrap();
        let shape =
            |pair: &ItemPair| (pair.id.clone(), pair.expected.is_some(), pair.current.is_some(), pair.same);
        let shapes: Vec<_> = pairs.iter().map(shape).collect();
        assert_eq!(
            shapes,
            [
                ("a".to_owned(), true, false, false),
                ("b".to_owned(), true, true, true),
                ("c".to_owned(), true, true, false),
                ("d".to_owned(), false, true, false),
            ]
        );
    }

    #[test]
    fn two_items_with_one_id_or_without_one_are_trouble() {
        assert!(matches!(paired(&[("a", 1), ("a", 2)], &[]), Err(Mismatch::Expected(_))));
        assert!(matches!(paired(&[], &[("a", 1), ("a", 2)]), Err(Mismatch::Current(_))));
        assert!(matches!(paired(&[("", 1)], &[]), Err(Mismatch::Expected(_))));
        for (length, fits) in [(ID_BYTES, true), (ID_BYTES + 1, false), (ID_BYTES * 100, false)] {
            assert_eq!(paired(&[("n".repeat(length).as_str(), 1)], &[]).is_ok(), fits, "{length}");
        }
    }

    #[test]
    fn more_employees_than_are_served_are_trouble() {
        let many = |count: usize| (0..count).map(|number| side(&number.to_string(), 1)).collect::<Vec<_>>();
        assert!(pair(many(EMPLOYEES), Vec::new(), |_, _| true).is_ok());
        assert!(pair(many(EMPLOYEES + 1), Vec::new(), |_, _| true).is_err());
    }

    proptest! {
        #[test]
        fn every_id_is_in_exactly_one_pair(
            expected in prop::collection::btree_map("[a-e]", 0..2_i32, 0..5),
            current in prop::collection::btree_map("[a-e]", 0..2_i32, 0..5),
        ) {
            let list = |map: &BTreeMap<String, i32>| map.iter().map(|(id, weight)| side(id, *weight)).collect::<Vec<_>>();
            let weights = |map: &BTreeMap<String, i32>| map.values().copied().collect::<Vec<_>>();
            let (left, right) = (weights(&expected), weights(&current));
            let pairs = pair(list(&expected), list(&current), |one, other| left[one] == right[other]).unwrap();
            for pair in &pairs {
                prop_assert_eq!(pair.expected.is_some(), expected.contains_key(&pair.id));
                prop_assert_eq!(pair.current.is_some(), current.contains_key(&pair.id));
                let equal = expected.contains_key(&pair.id) && expected.get(&pair.id) == current.get(&pair.id);
                prop_assert_eq!(pair.same, equal);
            }
        }
    }
}
