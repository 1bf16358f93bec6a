//! The records of our objects' history, by their metadata: which there are of which object.
//!
//! One follower per kind of record serves all objects; what a record holds is read when it is needed. Records are found by
//! the uid of the object that owns them, in its own namespace.

use std::collections::BTreeMap;

use linchpin_cluster::own::{NamespacedName, OwnEvent};
use linchpin_doors::HistoryRecord;
use serde::Deserialize;

/// The records of one kind.
#[derive(Debug, Default)]
pub(super) struct KeptRecords {
    /// Whether all that there are were seen.
    listed: bool,
    /// By the namespace and uid of their owner.
    owned: BTreeMap<Owner, Vec<HistoryRecord>>,
    /// The owner of each.
    owners: BTreeMap<NamespacedName, Owner>,
}

/// Namespace and uid.
type Owner = (Option<String>, String);

#[derive(Deserialize)]
struct Record {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Metadata {
    name: String,
    uid: String,
    namespace: Option<String>,
    annotations: BTreeMap<String, String>,
    owner_references: Vec<OwnerReference>,
}

#[derive(Deserialize)]
struct OwnerReference {
    uid: String,
    #[serde(default)]
    controller: bool,
}

impl KeptRecords {
    /// Takes in what the follower saw. Returns whose records have changed: uids.
    pub(super) fn take_in(&mut self, event: &OwnEvent) -> Vec<String> {
        match event {
            OwnEvent::There(object) => self.there(object.text()),
            OwnEvent::Gone(place) => self.gone(place).into_iter().collect(),
            OwnEvent::Synced if !self.listed => {
                self.listed = true;
                self.owned.keys().map(|(_, uid)| uid.clone()).collect()
            }
            OwnEvent::Synced | OwnEvent::Trouble(_) => Vec::new(),
        }
    }

    /// Whether all records were seen once.
    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    /// The records of an object; none while not all were seen.
    pub(super) fn of(&self, namespace: Option<&str>, uid: &str) -> Option<&[HistoryRecord]> {
        let owner = (namespace.map(str::to_owned), uid.to_owned());
        self.listed.then(|| self.owned.get(&owner).map_or(&[][..], Vec::as_slice))
    }

    fn there(&mut self, text: &str) -> Vec<String> {
        let Ok(Record { metadata }) = serde_json::from_str(text) else { return Vec::new() };
        let Metadata { name, uid, namespace, mut annotations, owner_references } = metadata;
        let place = (namespace.clone(), name.clone());
        let mut changed: Vec<String> = self.gone(&place).into_iter().collect();
        if let Some(owner) = owner_references.into_iter().find(|owner| owner.controller) {
            annotations.retain(|key, _| key.starts_with(PREFIX));
            let key = (namespace, owner.uid.clone());
            self.owned.entry(key.clone()).or_default().push(HistoryRecord { name, uid, annotations });
            self.owners.insert(place, key);
            changed.push(owner.uid);
        }
        changed
    }

    fn gone(&mut self, place: &NamespacedName) -> Option<String> {
        let owner = self.owners.remove(place)?;
        let kept = self.owned.get_mut(&owner)?;
        kept.retain(|kept| kept.name != place.1);
        if kept.is_empty() {
            self.owned.remove(&owner);
        }
        Some(owner.1)
    }
}

/// Only our own annotations are kept.
const PREFIX: &str = "linchpin.dev/";

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_cluster::own;

    fn there(name: &str, owner: &str, controller: bool) -> OwnEvent {
        let text = format!(
            r#"{{"metadata": {{}}, "items": [{{"metadata": {{"namespace": "shop", "name": "{name}", "uid": "u-{name}",
                "annotations": {{"linchpin.dev/history-number": "1", "kubectl": "long"}},
                "ownerReferences": [{{"uid": "{owner}", "controller": {controller}}}]}}}}]}}"#
        );
        let (mut objects, _) = own::page(&text).unwrap();
        OwnEvent::There(Box::new(objects.remove(0)))
    }

    #[test]
    fn records_are_known_by_the_owner_of_their_namespace_once_all_were_seen() {
        let mut records = KeptRecords::default();
        assert_eq!(records.take_in(&there("a-1", "a", true)), ["a"]);
        assert_eq!(records.of(Some("shop"), "a"), None, "there may be more");
        assert_eq!(records.take_in(&OwnEvent::Synced), ["a"]);
        let kept = records.of(Some("shop"), "a").unwrap();
        assert_eq!((kept.len(), kept[0].name.as_str(), kept[0].annotations.len()), (1, "a-1", 1));
        assert_eq!(records.of(Some("elsewhere"), "a"), Some(&[][..]), "nobody owns across namespaces");
        assert_eq!(records.take_in(&there("a-1", "b", true)), ["a", "b"], "it has another owner now");
        assert_eq!(records.of(Some("shop"), "a"), Some(&[][..]));
        assert_eq!(records.take_in(&there("a-1", "b", false)), ["b"], "it has none");
        records.take_in(&there("b-1", "b", true));
        let place = (Some("shop".to_owned()), "b-1".to_owned());
        assert_eq!(records.take_in(&OwnEvent::Gone(place)), ["b"]);
        assert!(records.owned.is_empty() && records.owners.is_empty());
    }
}
