//! The operations on a pod, for people.

use std::collections::BTreeMap;

use linchpin_words::Timestamp;

use super::{
    POD_DELETE, POD_EVICT,
    labels::{OPERATIONS, Prefix},
};

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its id.
    pub id: String,
    /// Its type; empty where nobody says.
    pub kind: String,
    /// How far it is.
    pub stage: &'static str,
    /// Since when.
    pub since: Option<Timestamp>,
}

/// The stages, the last first.
const STAGES: [(Prefix, &str); 7] = [
    (Prefix::Completing, "Completing"),
    (Prefix::PostCheck, "PostCheck"),
    (Prefix::Operated, "Operated"),
    (Prefix::Operate, "Operate"),
    (Prefix::Preparing, "Preparing"),
    (Prefix::PreCheck, "PreCheck"),
    (Prefix::Operating, "Begun"),
];

/// The operations that a pod's labels name: its deletion and its eviction, then the others by id; 64 at most.
pub fn operations(labels: &BTreeMap<String, String>) -> Vec<Operation> {
    let mut found: BTreeMap<&str, Operation> = BTreeMap::new();
    for (prefix, stage) in STAGES {
        for (key, value) in labels {
            let Some(id) = prefix.id(key) else { continue };
            found.entry(id).or_insert_with(|| {
                let kind = [Prefix::OperationType, Prefix::DoneType]
                    .into_iter()
                    .find_map(|kind| labels.get(&kind.key(id)).cloned());
                let since = value.parse::<i64>().ok().map(|nanoseconds| nanoseconds / 1_000);
                Operation {
                    id: id.to_owned(),
                    kind: kind.unwrap_or_default(),
                    stage,
                    since: since.map(Timestamp::from_microsecond),
                }
            });
        }
    }
    let mut found: Vec<Operation> = found.into_values().collect();
    found.sort_by_key(|operation| !matches!(operation.id.as_str(), POD_DELETE | POD_EVICT));
    found.truncate(OPERATIONS);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_told_with_its_latest_stage() {
        let labels = BTreeMap::from(
            [
                ("operating.podopslifecycle.kusionstack.io/a", "1000"),
                ("operation-type.podopslifecycle.kusionstack.io/a", "update"),
                ("preparing.podopslifecycle.kusionstack.io/a", "2000000"),
                ("operated.podopslifecycle.kusionstack.io/b", "x"),
                ("done-operation-type.podopslifecycle.kusionstack.io/b", "delete"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        let [a, b] = operations(&labels).try_into().unwrap();
        assert_eq!((a.id.as_str(), a.kind.as_str(), a.stage), ("a", "update", "Preparing"));
        assert_eq!(a.since, Some(Timestamp::from_microsecond(2000)));
        assert_eq!((b.kind.as_str(), b.stage, b.since), ("delete", "Operated", None));
        assert!(operations(&BTreeMap::new()).is_empty());
    }

    #[test]
    fn a_deletion_and_an_eviction_are_told_before_all_others() {
        let others = (0..100).map(|number| format!("a{number:03}"));
        let ids = others.chain([POD_EVICT.to_owned(), POD_DELETE.to_owned()]);
        let labels: BTreeMap<String, String> =
            ids.map(|id| (Prefix::Operating.key(&id), "1".to_owned())).collect();
        let found = operations(&labels);
        let first: Vec<&str> = found.iter().map(|operation| operation.id.as_str()).take(3).collect();
        assert_eq!(first, [POD_DELETE, POD_EVICT, "a000"]);
        assert_eq!(found.len(), OPERATIONS);
    }
}
