//! The world as one object may see it: nothing older than its own writes.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use linchpin_words::reference::KindWord;

use crate::{
    contract::{Observed, Outcome, Question, Scope, Seen, Served, Stamp, Target, Via, Want, World},
    journal::Journal,
};

/// The world as one object may see it: nothing older than its own writes.
pub(in crate::step) struct Sight<'a> {
    pub world: &'a World,
    floors: BTreeMap<PlaceKey, Stamp>,
    asked: RefCell<BTreeSet<Want>>,
}

/// Group, lower-case kind, namespace, name.
type PlaceKey = (String, String, Option<String>, String);

fn place(target: &Target) -> PlaceKey {
    let group = target.kind.group.clone().unwrap_or_default();
    (group, target.kind.word.to_ascii_lowercase(), target.namespace.clone(), target.name.clone())
}

impl<'a> Sight<'a> {
    /// The world above the writes that the journal knows of and those that have just come back.
    pub(in crate::step) fn new(world: &'a World, journal: &Journal, outcomes: &[Outcome]) -> Self {
        let known = journal
            .steps
            .values()
            .flat_map(|record| &record.wrote)
            .map(|wrote| (&wrote.target, &wrote.stamp));
        let fresh = outcomes.iter().filter_map(|outcome| {
            let done = outcome.result.as_ref().ok()?;
            Some((done.target.as_ref()?, done.stamp.as_ref()?))
        });
        let mut floors: BTreeMap<PlaceKey, Stamp> = BTreeMap::new();
        for (target, stamp) in known.chain(fresh) {
            let floor = floors.entry(place(target)).or_insert_with(|| stamp.clone());
            if stamp.version > floor.version {
                *floor = stamp.clone();
            }
        }
        Self { world, floors, asked: RefCell::new(BTreeSet::new()) }
    }

    /// Everything that was asked for so far.
    pub(in crate::step) fn asked(&self) -> BTreeSet<Want> {
        self.asked.borrow().clone()
    }

    /// The answer to a want, which is thereby asked for.
    pub(in crate::step) fn ask(&self, want: Want) -> Option<&'a Seen> {
        let seen = self.world.get(&want);
        self.asked.borrow_mut().insert(want);
        seen
    }

    /// The answer to a want that the plan holds.
    pub(super) fn look(&self, want: &Want) -> Option<&'a Seen> {
        self.world.get(want)
    }

    /// Whether a view is recent enough to show our own last write to what it is about.
    pub(super) fn shows_our_writes(&self, want: &Want, observed: &Observed) -> bool {
        if self.floors.is_empty() {
            return true;
        }
        let Question::Objects { kind, scope, .. } = want.question() else {
            return true;
        };
        let lower = kind.kind.to_ascii_lowercase();
        match scope {
            Scope::Name { namespace, name } => {
                let key = (kind.group.clone(), lower, namespace.clone(), name.clone());
                let Some(floor) = self.floors.get(&key) else {
                    return true;
                };
                match observed.items.first() {
                    Some(item) if item.uid == floor.uid => item.version >= floor.version,
                    _ => observed.as_of >= floor.version,
                }
            }
            Scope::Labels { namespace, .. } => self.floors.iter().all(|((group, word, place, _), floor)| {
                *group != kind.group
                    || *word != lower
                    || place != namespace
                    || observed.as_of >= floor.version
            }),
        }
    }

    /// What a kind word is, asking for it.
    pub(in crate::step) fn resolve(&self, via: &Via, word: &KindWord) -> Option<&'a Served> {
        match self.ask(Want::new(Question::Kind { via: via.clone(), word: word.clone() })) {
            Some(Seen::Kind(served)) => Some(served),
            _ => None,
        }
    }
}
