//! Which objects rely on which, both ways, so that neither is looked for among all objects.
//!
//! A subject that is being deleted asks at each of its turns who relies on it, and whether it relies on them in turn.
//! The controller notes what a subject says whenever that may have changed.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_cluster::hub::SubscriberId;
use linchpin_doors::Claim;
use linchpin_words::ObjectRef;

use super::{Controller, entry::Entry};

/// How many objects are looked at to find whether one that is being deleted is in a circle: who writes many must not decide
/// how long a turn takes. In a larger circle its members wait for each other as others do, five minutes at most.
const RELIED_ON: usize = 1024;

/// What each subject relies on.
#[derive(Default)]
pub(super) struct ClaimIndex {
    of: BTreeMap<SubscriberId, Vec<ObjectRef>>,
    on: BTreeMap<ObjectRef, BTreeSet<SubscriberId>>,
}

impl ClaimIndex {
    /// Replaces what a subject relies on.
    fn set(&mut self, id: SubscriberId, claims: &[ObjectRef]) {
        if self.of(id) == claims {
            return;
        }
        for old in self.of.remove(&id).unwrap_or_default() {
            if let Some(ids) = self.on.get_mut(&old) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.on.remove(&old);
                }
            }
        }
        for claim in claims {
            self.on.entry(claim.clone()).or_default().insert(id);
        }
        if !claims.is_empty() {
            self.of.insert(id, claims.to_vec());
        }
    }

    fn of(&self, id: SubscriberId) -> &[ObjectRef] {
        self.of.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Who relies on an object.
    fn on(&self, object: &ObjectRef) -> impl Iterator<Item = SubscriberId> {
        self.on.get(object).into_iter().flatten().copied()
    }

    /// What a subject relies on, directly and through others, as far as it is looked for.
    fn behind(
        &self,
        id: SubscriberId,
        find: impl Fn(&ObjectRef) -> Option<SubscriberId>,
    ) -> BTreeSet<&ObjectRef> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&ObjectRef> = self.of(id).iter().collect();
        while let Some(next) = open.pop() {
            if found.len() < RELIED_ON && found.insert(next) {
                open.extend(find(next).into_iter().flat_map(|id| self.of(id)));
            }
        }
        found
    }
}

impl Controller {
    /// Notes what a subject relies on now; nothing, where it is gone.
    pub(super) fn note_claims(&mut self, id: SubscriberId) {
        let claims = self.entries.get(&id).map_or(&[][..], |entry| entry.subject.claims());
        self.claims.set(id, claims);
    }

    /// Those that rely on the object of an entry; looked for only while it is being deleted.
    pub(super) fn claims_on(&self, entry: &Entry) -> Vec<Claim> {
        if !entry.subject.is_deleting() {
            return Vec::new();
        }
        let object = entry.subject.key().object_ref();
        let entry_of = |id| self.entries.get(&id).map(AsRef::as_ref);
        let claiming: Vec<&Entry> = self.claims.on(&object).filter_map(entry_of).collect();
        if claiming.is_empty() {
            return Vec::new();
        }
        let relied_on = self.claims.behind(entry.id, |object| {
            let place = (object.namespace.clone(), object.name.clone());
            self.ids.get(&(entry.kind, place)).copied()
        });
        let claim = |other: &Entry| {
            let object = other.subject.key().object_ref();
            Claim { circular: relied_on.contains(&object), deleting: other.subject.is_deleting(), object }
        };
        claiming.into_iter().map(claim).collect()
    }
}

#[cfg(test)]
mod tests {
    use linchpin_words::GroupKind;

    use super::*;

    fn object(number: u64) -> ObjectRef {
        ObjectRef::namespaced(GroupKind::new("linchpin.dev", "Sync"), "shop", format!("s{number}"))
    }

    fn number(object: &ObjectRef) -> Option<SubscriberId> {
        object.name.strip_prefix('s')?.parse().ok().map(SubscriberId)
    }

    #[test]
    fn whoever_relies_on_an_object_is_known_until_it_does_so_no_more() {
        let mut index = ClaimIndex::default();
        index.set(SubscriberId(1), &[object(2), object(3)]);
        index.set(SubscriberId(4), &[object(2)]);
        assert_eq!(index.on(&object(2)).collect::<Vec<_>>(), [SubscriberId(1), SubscriberId(4)]);
        index.set(SubscriberId(1), &[object(3)]);
        assert_eq!(index.on(&object(2)).collect::<Vec<_>>(), [SubscriberId(4)]);
        assert_eq!(index.on(&object(3)).collect::<Vec<_>>(), [SubscriberId(1)]);
        for id in [1, 4] {
            index.set(SubscriberId(id), &[]);
        }
        assert!(index.of.is_empty() && index.on.is_empty(), "nothing is kept of what is gone");
    }

    #[test]
    fn a_circle_is_found_and_a_line_of_any_length_costs_a_bounded_search() {
        let mut index = ClaimIndex::default();
        let bound = RELIED_ON as u64;
        for id in 0..2 * bound {
            index.set(SubscriberId(id), &[object(id + 1)]);
        }
        let looked_up = std::cell::Cell::new(0_usize);
        let find = |object: &ObjectRef| {
            looked_up.set(looked_up.get() + 1);
            number(object)
        };
        let behind = index.behind(SubscriberId(0), find);
        assert_eq!((behind.len(), looked_up.get()), (RELIED_ON, RELIED_ON));
        assert!(behind.contains(&object(bound)) && !behind.contains(&object(bound + 1)));
        // A circle within the bound holds its own beginning.
        index.set(SubscriberId(bound - 1), &[object(0)]);
        assert!(index.behind(SubscriberId(0), number).contains(&object(0)));
    }
}
