//! The labels of PodOpsLifecycle, and a working copy of a pod's labels while it is advanced.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_words::{Timestamp, keys::consist as keys};

use super::{POD_DELETE, POD_EVICT};

/// The most passes over a pod: more than one operation has stages.
pub(super) const STAGES: usize = 24;

/// What the key of a permission begins with; it is followed by the type of the operation, not by its id.
const PERMISSION: &str = "operation-permission.podopslifecycle.kusionstack.io";

/// The most operations of one pod that are led at a time, beside its deletion and its eviction. More are anybody's labels:
/// they wait, but what they say of the pod's traffic counts.
pub(super) const OPERATIONS: usize = 64;

/// The longest id or type: what may follow the slash of a label's key.
const NAME: usize = 63;

/// The twelve kinds of labels that an operation has, `<prefix>/<id>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prefix {
    /// Set by the operation controller, and taken off by it at the end.
    Operating,
    /// What kind of operation; its value is the type.
    OperationType,
    /// The operation controller gives up.
    Undo,
    /// `PreCheck` is under way.
    PreCheck,
    /// `PreCheck` is passed.
    PreChecked,
    /// The pod leaves traffic.
    Preparing,
    /// The permission to operate.
    Operate,
    /// The operation is over.
    Operated,
    /// What kind of operation it was.
    DoneType,
    /// `PostCheck` is under way.
    PostCheck,
    /// `PostCheck` is passed.
    PostChecked,
    /// The pod comes back.
    Completing,
}

impl Prefix {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Operating,
        Self::OperationType,
        Self::Undo,
        Self::PreCheck,
        Self::PreChecked,
        Self::Preparing,
        Self::Operate,
        Self::Operated,
        Self::DoneType,
        Self::PostCheck,
        Self::PostChecked,
        Self::Completing,
    ];

    /// As keys begin.
    pub fn text(self) -> &'static str {
        match self {
            Self::Operating => "operating.podopslifecycle.kusionstack.io",
            Self::OperationType => "operation-type.podopslifecycle.kusionstack.io",
            Self::Undo => "undo-operation-type.podopslifecycle.kusionstack.io",
            Self::PreCheck => "pre-check.podopslifecycle.kusionstack.io",
            Self::PreChecked => "pre-checked.podopslifecycle.kusionstack.io",
            Self::Preparing => "preparing.podopslifecycle.kusionstack.io",
            Self::Operate => "operate.podopslifecycle.kusionstack.io",
            Self::Operated => "operated.podopslifecycle.kusionstack.io",
            Self::DoneType => "done-operation-type.podopslifecycle.kusionstack.io",
            Self::PostCheck => "post-check.podopslifecycle.kusionstack.io",
            Self::PostChecked => "post-checked.podopslifecycle.kusionstack.io",
            Self::Completing => "completing.podopslifecycle.kusionstack.io",
        }
    }

    /// The key for an id.
    pub fn key(self, id: &str) -> String {
        format!("{}/{id}", self.text())
    }

    /// The id in a key of this kind.
    pub fn id(self, key: &str) -> Option<&str> {
        key.strip_prefix(self.text())?.strip_prefix('/').filter(|id| !id.is_empty() && id.len() <= NAME)
    }

    /// Whether a key is of this kind.
    pub fn has(self, key: &str) -> bool {
        self.id(key).is_some()
    }
}

/// What kind of label a key is, and the id in it.
fn kind_and_id(key: &str) -> Option<(Prefix, &str)> {
    Prefix::ALL.into_iter().find_map(|prefix| Some((prefix, prefix.id(key)?)))
}

/// The key of the permission for a type.
pub(super) fn permission(kind: &str) -> String {
    format!("{PERMISSION}/{kind}")
}

/// Whether a label is one that the engine writes by itself.
pub fn is_written_label(key: &str) -> bool {
    matches!(key, keys::SERVICE_AVAILABLE | keys::PREPARING_TO_DELETE)
        || key.strip_prefix(PERMISSION).is_some_and(|rest| rest.starts_with('/'))
        || kind_and_id(key).is_some()
}

/// Whether an annotation is one by which the engine and its webhooks note something.
pub fn is_written_annotation(key: &str) -> bool {
    matches!(key, keys::EVICT_REQUESTED | keys::DELETE_REQUESTED_BY | keys::TO_DELETE_IGNORED)
        || key.strip_prefix(keys::RULE_DETAIL_PREFIX).is_some_and(|rest| rest.starts_with('/'))
}

/// A pod's labels while it is advanced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodLabels {
    all: BTreeMap<String, String>,
    stamp: String,
}

impl PodLabels {
    pub(super) fn new(labels: &BTreeMap<String, String>, now: Timestamp) -> Self {
        let nanoseconds = i128::from(now.as_microsecond()) * 1_000;
        Self { all: labels.clone(), stamp: nanoseconds.to_string() }
    }

    /// The ids of the operations that are led: any label of the twelve kinds reveals one. Those that keep the gate from
    /// opening come first, so that they do not wait for others that wait for the gate.
    pub(super) fn ids(&self) -> BTreeSet<String> {
        let mut all: BTreeMap<&str, BTreeSet<Prefix>> = BTreeMap::new();
        for (prefix, id) in self.all.keys().filter_map(|key| kind_and_id(key)) {
            all.entry(id).or_default().insert(prefix);
        }
        let waits = |on: &BTreeSet<Prefix>| {
            let holds = on.contains(&Prefix::Preparing)
                || on.contains(&Prefix::Operate)
                || (on.contains(&Prefix::Operated) && !on.contains(&Prefix::Completing));
            !holds
        };
        let (asked, mut others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(id, _)| matches!(*id, POD_DELETE | POD_EVICT));
        others.sort_by_key(|(_, on)| waits(on));
        let led = asked.into_iter().chain(others.into_iter().take(OPERATIONS));
        led.map(|(id, _)| id.to_owned()).collect()
    }

    /// Whether any operation, led or not, has a label of a kind.
    pub(super) fn any(&self, prefix: Prefix) -> bool {
        self.all.keys().any(|key| prefix.has(key))
    }

    /// Whether any operation, led or not, has a label of one kind and none of another.
    pub(super) fn any_without(&self, prefix: Prefix, other: Prefix) -> bool {
        self.all.keys().filter_map(|key| prefix.id(key)).any(|id| !self.has(&other.key(id)))
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.all.contains_key(key)
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.all.get(key).map(String::as_str)
    }

    pub(super) fn set(&mut self, key: &str, value: &str) {
        self.all.insert(key.to_owned(), value.to_owned());
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.all.remove(key);
    }

    /// Sets a label to now.
    pub(super) fn stamp(&mut self, key: &str) {
        self.all.insert(key.to_owned(), self.stamp.clone());
    }

    pub(super) fn stamp_if_absent(&mut self, key: &str) {
        if !self.has(key) {
            self.stamp(key);
        }
    }

    /// Since when a label is there. One that says no time, or a time to come, counts from now on.
    pub(super) fn since(&mut self, key: &str, now: Timestamp) -> Option<Timestamp> {
        let stated = self.all.get(key)?.parse::<i64>().ok().map(|nanoseconds| nanoseconds / 1_000);
        let stated = stated.map(Timestamp::from_microsecond).filter(|stated| *stated <= now);
        if stated.is_none() {
            self.stamp(key);
        }
        Some(stated.unwrap_or(now))
    }

    /// Removes all twelve labels of an id.
    pub(super) fn sweep(&mut self, id: &str) {
        for prefix in Prefix::ALL {
            self.all.remove(&prefix.key(id));
        }
    }

    /// The type of the one permission that no id accounts for.
    pub(super) fn only_permission(&self) -> Option<String> {
        let types: BTreeSet<&str> = self.types();
        let permissions = self.all.keys().filter_map(|key| key.strip_prefix(PERMISSION)?.strip_prefix('/'));
        let mut free = permissions.filter(|kind| !types.contains(kind));
        let one = free.next().map(str::to_owned);
        one.filter(|_| free.next().is_none())
    }

    fn types(&self) -> BTreeSet<&str> {
        let typed = self.all.iter().filter(|(key, _)| Prefix::OperationType.has(key));
        typed.map(|(_, kind)| kind.as_str()).collect()
    }

    /// Removes the permissions of types that no operation has any more.
    pub(super) fn drop_permissions(&mut self) {
        let types: BTreeSet<String> = self.types().into_iter().map(str::to_owned).collect();
        // An operation whose type was taken away together with `operating` still needs its permission to know the type.
        let untyped = self.any_without(Prefix::Operate, Prefix::OperationType);
        self.all.retain(|key, _| {
            let kind = key.strip_prefix(PERMISSION).and_then(|rest| rest.strip_prefix('/'));
            kind.is_none_or(|kind| untyped || types.contains(kind))
        });
    }

    /// What is to be written to get from `before` to these labels.
    pub(super) fn difference(&self, before: &BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
        let removed = before.keys().filter(|key| !self.all.contains_key(*key)).map(|key| (key.clone(), None));
        let set = self.all.iter().filter(|(key, value)| before.get(*key) != Some(value));
        removed.chain(set.map(|(key, value)| (key.clone(), Some(value.clone())))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(keys: impl IntoIterator<Item = String>) -> PodLabels {
        let all: BTreeMap<String, String> = keys.into_iter().map(|key| (key, "1".to_owned())).collect();
        PodLabels::new(&all, Timestamp::from_microsecond(0))
    }

    fn many(prefix: Prefix) -> impl Iterator<Item = String> {
        (0..OPERATIONS).map(move |number| prefix.key(&format!("a{number}")))
    }

    #[test]
    fn an_operation_that_keeps_the_gate_shut_is_led_before_those_that_wait_for_the_gate() {
        let completing = || many(Prefix::Operated).chain(many(Prefix::Completing));
        for held in [Prefix::Preparing, Prefix::Operate, Prefix::Operated] {
            let labels = labels(completing().chain([held.key("z")]));
            assert!(labels.ids().contains("z"), "{held:?}");
            assert_eq!(labels.ids().len(), OPERATIONS);
        }
        assert!(!labels(completing().chain([Prefix::Operating.key("z")])).ids().contains("z"));
    }

    #[test]
    fn what_an_operation_says_counts_although_it_is_not_led() {
        let typed = many(Prefix::Operate).chain(many(Prefix::OperationType));
        let mut labels =
            labels(typed.chain([Prefix::Operate.key("z"), Prefix::Undo.key("z"), permission("x")]));
        assert!(!labels.ids().contains("z"));
        assert!(labels.any(Prefix::Undo) && !labels.any(Prefix::Operated));
        assert!(labels.any_without(Prefix::Operate, Prefix::OperationType));
        labels.drop_permissions();
        assert!(labels.has(&permission("x")), "it still carries the type of z");
        labels.sweep("z");
        labels.drop_permissions();
        assert!(!labels.has(&permission("x")));
    }
}
