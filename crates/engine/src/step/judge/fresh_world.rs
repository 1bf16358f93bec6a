//! The world as one object may see it: nothing older than its own writes.

use std::cell::RefCell;

use linchpin_words::{Gvk, Timestamp, hash::Fnv, reference::KindWord};

use crate::{
    contract::{EffectTarget, Observed, Outcome, Question, Scope, Seen, Served, Stamp, Via, Want, World},
    journal::Journal,
    step::effort::Effort,
};

/// The world as one object may see it: nothing older than its own writes.
pub(in crate::step) struct FreshWorld<'a> {
    pub world: &'a World,
    /// Our last writes, sorted by a fingerprint of the name of what was written.
    floors: Vec<(u64, Floor<'a>)>,
    asked: RefCell<Vec<Want>>,
    /// What may still be evaluated.
    pub(in crate::step) effort: &'a Effort,
}

/// One write of ours, and when we heard of it.
#[derive(Clone, Copy)]
struct Floor<'a> {
    target: &'a EffectTarget,
    stamp: &'a Stamp,
    at: Timestamp,
}

impl Floor<'_> {
    fn is_about(&self, kind: &Gvk, namespace: Option<&String>) -> bool {
        self.target.kind.word.eq_ignore_ascii_case(&kind.kind)
            && self.target.kind.group.as_deref().unwrap_or_default() == kind.group
            && self.target.namespace.as_ref() == namespace
    }

    /// Whether a view shows the write, or surely would if it had not been undone since.
    fn is_in(&self, observed: &Observed, one: Option<&str>) -> bool {
        if observed.looked.is_some_and(|looked| looked > self.at) {
            return true;
        }
        let item = one.and_then(|name| observed.items.iter().find(|item| item.name == name));
        match item {
            Some(item) if item.uid == self.stamp.uid => item.version >= self.stamp.version,
            _ => observed.as_of >= self.stamp.version,
        }
    }
}

impl<'a> FreshWorld<'a> {
    /// The world above the writes that the journal knows of and those that have just come back.
    pub(in crate::step) fn new(
        world: &'a World,
        journal: &'a Journal,
        outcomes: &'a [Outcome],
        effort: &'a Effort,
    ) -> Self {
        let known = journal.steps.values().flat_map(|record| {
            record.wrote.iter().map(|wrote| Floor {
                target: &wrote.target,
                stamp: &wrote.stamp,
                at: record.since,
            })
        });
        let fresh = outcomes.iter().filter_map(|outcome| {
            let done = outcome.result.as_ref().ok()?;
            Some(Floor { target: done.target.as_ref()?, stamp: done.stamp.as_ref()?, at: outcome.at })
        });
        let named = |floor: Floor<'a>| (Fnv::of(floor.target.name.as_bytes()), floor);
        let mut floors: Vec<(u64, Floor<'a>)> = known.chain(fresh).map(named).collect();
        floors.sort_by_key(|(name, _)| *name);
        Self { world, floors, asked: RefCell::default(), effort }
    }

    /// The world without regard to our own writes.
    pub(in crate::step) fn plain(world: &'a World, effort: &'a Effort) -> Self {
        Self { world, floors: Vec::new(), asked: RefCell::default(), effort }
    }

    /// Everything that was asked for so far, in no order, perhaps more than once.
    pub(in crate::step) fn asked(&self) -> Vec<Want> {
        self.asked.take()
    }

    /// The answer to a want, which is thereby asked for.
    pub(in crate::step) fn ask(&self, want: Want) -> Option<&'a Seen> {
        let seen = self.world.get(&want);
        self.asked.borrow_mut().push(want);
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
        match scope {
            Scope::Name { namespace, name } => {
                let wanted = Fnv::of(name.as_bytes());
                let from = self.floors.partition_point(|(named, _)| *named < wanted);
                self.floors[from..]
                    .iter()
                    .take_while(|(named, _)| *named == wanted)
                    .map(|(_, floor)| floor)
                    .filter(|floor| floor.target.name == *name && floor.is_about(kind, namespace.as_ref()))
                    .max_by_key(|floor| floor.stamp.version)
                    .is_none_or(|floor| floor.is_in(observed, Some(name)))
            }
            Scope::Labels { namespace, .. } => self
                .floors
                .iter()
                .map(|(_, floor)| floor)
                .filter(|floor| floor.is_about(kind, namespace.as_ref()))
                .all(|floor| floor.is_in(observed, None)),
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
