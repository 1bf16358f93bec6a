//! One watch as the hub knows it: what it has seen, how far it is, and who reads it.
//!
//! [`Watching::apply`] is a pure transition: a [`WatchNote`] in, the questions whose answers changed out. The watch's task
//! talks to it through [`WatchSink`].
//!
//! A watch that has looked once knows of *every* name whether it is there: `items` are those that somebody asks for,
//! `others` are the names of the rest (names only, and only where the names asked for are at least a hundredth of what
//! is there: [`promotion`](super::promotion)). So a name that joins later and is in neither is not there, as of the
//! watch's position, and no request is needed to say so. Four things keep that true:
//!
//! * the interest in an object is compared again under the hub's lock before anything about it counts
//!   ([`Watching::must_be_read_again`]), so what was passed over while its name joined is read after all;
//! * a first state names also what was passed over in it;
//! * an object that nobody asks for any more moves to `others`, whose removal from there only an event says;
//! * a name that joins while the watch is lost or reads everything anew waits for that (`unseen`).
//!
//! An object that is there answers those questions that it was projected for ([`WatchItem::revision`]); an absence answers
//! all, whatever they read.

mod scope;
mod watch_sink;

use super::{budget::Weight, promotion::Family};
use crate::watch::{WatchItem, WatchReport, WatchSelect};
use linchpin_engine::contract::{Observed, Seen, Want, Why};
use linchpin_words::{Reason, Timestamp, limits};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::watch, task::AbortHandle};

pub(super) use self::{scope::Scope, watch_sink::WatchSink};

/// What the name of an object takes that nobody asks for, about.
const OTHER: usize = 64;

/// A look takes no longer than this, and clocks of two replicas differ by no more.
const LOOK: Duration = Duration::from_mins(2);

/// A moment at which a look that has just been answered had surely not begun.
fn before_this_look() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(LOOK);
    Timestamp::from_microsecond(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// What distinguishes watches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WatchKey {
    pub(super) family: Family,
    pub(super) select: WatchSelect,
}

/// One watch.
pub(super) struct Watching {
    pub(super) key: WatchKey,
    scope: Arc<Scope>,
    control: watch::Sender<u64>,
    task: AbortHandle,
    /// Whether a first state has been seen.
    synced: bool,
    as_of: u64,
    /// When the look behind the last snapshot had surely not begun.
    looked: Option<Timestamp>,
    live: bool,
    trouble: Option<Why>,
    /// What is there and of interest.
    items: BTreeMap<String, WatchItem>,
    /// The names of what is there besides.
    others: BTreeSet<Box<str>>,
    /// Names of interest of which nothing has been seen yet: not even that they are not there.
    unseen: BTreeSet<Box<str>>,
    /// What the items take.
    bytes: usize,
    /// What has been read of a look that is not complete.
    read: Weight,
    /// What its namespace was charged for it.
    pub(super) charged: Weight,
    /// Whether everything is being read anew, or was asked to be.
    looking: bool,
    /// Changes of what nobody asks for, since the rate was last taken: what a narrower watch would not have to carry.
    pub(super) strays: u64,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a watch's task has to say.
#[derive(Debug)]
pub(super) enum WatchNote {
    /// What is seen.
    Seen(WatchReport),
    /// The connection is down.
    Lost,
    /// Nothing can be seen; what was seen before is forgotten.
    Blind(Why),
    /// Nothing can be seen yet; what was seen before stays.
    Dim(Why),
}

impl From<WatchReport> for WatchNote {
    fn from(report: WatchReport) -> Self {
        Self::Seen(report)
    }
}

impl Watching {
    pub(super) fn new(
        key: WatchKey,
        scope: Arc<Scope>,
        control: watch::Sender<u64>,
        task: AbortHandle,
    ) -> Self {
        Self {
            key,
            scope,
            control,
            task,
            synced: false,
            as_of: 0,
            looked: None,
            live: false,
            trouble: None,
            items: BTreeMap::new(),
            others: BTreeSet::new(),
            unseen: BTreeSet::new(),
            bytes: 0,
            read: Weight::default(),
            charged: Weight::default(),
            looking: false,
            strays: 0,
        }
    }

    /// Adds a reader of `name` (empty for a selector); the revision of the interest that covers it.
    pub(super) fn add(&mut self, name: &str, want: &Want) -> u64 {
        let joins = self.scope.revision(name).is_none();
        let sees_changes = self.live && !self.looking;
        if joins && self.synced && !sees_changes {
            self.unseen.insert(name.into());
        }
        self.scope.add(name, want)
    }

    /// Takes a reader away; whether nobody is left.
    pub(super) fn remove(&mut self, name: &str, want: &Want) -> bool {
        if self.scope.remove(name, want) {
            self.unseen.remove(name);
            if let Some(item) = self.let_go(name) {
                self.others.insert(item.name.into_boxed_str());
            }
        }
        self.scope.is_empty()
    }

    /// Asks the task for a fresh look.
    pub(super) fn restart(&self) {
        self.control.send_modify(|count| *count += 1);
    }

    /// Asks the task for a fresh look, unless one is awaited already: asking again would only begin it anew.
    pub(super) fn look_again(&mut self) {
        if self.synced && !std::mem::replace(&mut self.looking, true) {
            self.restart();
        }
    }

    /// Whether its first look, or a fresh one, has not been answered yet.
    pub(super) fn is_looking(&self) -> bool {
        self.trouble.is_none() && (self.looking || !self.synced)
    }

    /// The names of interest that are not known as they are asked for.
    pub(super) fn latecomers(&self) -> Vec<Box<str>> {
        self.scope.names(|name, revision| !self.covers(revision, Some(name)))
    }

    /// Whether there are objects of which more is asked for than is kept, be it all of them.
    pub(super) fn is_behind(&self) -> bool {
        let behind =
            |item: &WatchItem| self.scope.revision(&item.name).is_some_and(|now| item.revision < now);
        let passed = |name: &str| self.scope.revision(name).is_some();
        self.items.values().any(behind) || self.others.iter().any(|name| passed(name))
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    fn keep(&mut self, item: WatchItem) {
        self.bytes += item.bytes;
        if let Some(old) = self.items.insert(item.name.clone(), item) {
            self.bytes = self.bytes.saturating_sub(old.bytes);
        }
    }

    fn let_go(&mut self, name: &str) -> Option<WatchItem> {
        let item = self.items.remove(name)?;
        self.bytes = self.bytes.saturating_sub(item.bytes);
        Some(item)
    }

    /// What it keeps, or is reading.
    pub(super) fn weight(&self) -> Weight {
        let Weight { objects, bytes } = self.common_weight();
        Weight { objects: objects + self.items.len(), bytes: bytes + self.bytes }
    }

    /// What it keeps for no name alone: the names of others, and what is being read beyond what is there.
    pub(super) fn common_weight(&self) -> Weight {
        Weight {
            objects: self.read.objects.saturating_sub(self.items.len()),
            bytes: self.others.len() * OTHER + self.read.bytes.saturating_sub(self.bytes),
        }
    }

    /// What it keeps for a name, or altogether.
    pub(super) fn weight_of(&self, name: Option<&str>) -> Weight {
        match name {
            None => Weight { objects: self.items.len(), bytes: self.bytes },
            Some(name) => self
                .items
                .get(name)
                .map_or_else(Weight::default, |item| Weight { objects: 1, bytes: item.bytes }),
        }
    }

    /// Whether what is known covers a revision of the interest, in one name or altogether.
    pub(super) fn covers(&self, revision: u64, name: Option<&str>) -> bool {
        let seen = match name {
            None => self.items.values().all(|item| item.revision >= revision),
            Some(name) => match self.items.get(name) {
                Some(item) => item.revision >= revision,
                None => !self.others.contains(name) && !self.unseen.contains(name),
            },
        };
        seen && self.synced && self.trouble.is_none()
    }

    /// The revision of the interest in a name; none if it is of no interest.
    #[cfg(test)]
    pub(super) fn revision(&self, name: &str) -> Option<u64> {
        self.scope.revision(name)
    }

    /// Whether a name is known as it is asked for.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.scope.revision(name).is_some_and(|revision| self.covers(revision, Some(name)))
    }

    pub(super) fn trouble(&self) -> Option<&Why> {
        self.trouble.as_ref()
    }

    /// The record of one object.
    pub(super) fn item(&self, name: &str) -> Option<&WatchItem> {
        self.items.get(name)
    }

    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// Whether taking answers about a name from here, after they came from `last`, goes back in time nowhere.
    pub(super) fn is_not_behind(&self, last: &Self, name: &str) -> bool {
        match (last.items.get(name), self.items.get(name)) {
            // It has reported nothing.
            _ if !last.covers(0, Some(name)) => true,
            (Some(last), Some(next)) => next.version >= last.version,
            (Some(last), None) => self.as_of >= last.version,
            (None, Some(next)) => next.version > last.as_of,
            (None, None) => true,
        }
    }

    /// Takes over what a narrower watch has seen of one object, for all who read it here; whether it did. Everything up to
    /// that object's version must have come here already, or what comes would be older. That an object is not there is
    /// not taken over: this watch will see it go.
    pub(super) fn adopt(&mut self, name: &str, narrow: &Self) -> bool {
        let reads_all = self.scope.readers(name).is_subset(&narrow.scope.readers(name));
        let (Some(item), Some(revision)) = (narrow.items.get(name), self.scope.revision(name)) else {
            return false;
        };
        let newer = self.items.get(name).is_none_or(|known| known.version <= item.version);
        let may = self.synced && self.trouble.is_none() && self.as_of >= item.version && newer;
        if !may || !reads_all || !narrow.knows(name) {
            return false;
        }
        self.others.remove(name);
        self.keep(WatchItem { revision, ..item.clone() });
        true
    }

    /// What is seen, of one name or altogether, if it covers the revision.
    pub(super) fn view(&self, revision: u64, name: Option<&str>) -> Option<Seen> {
        if !self.covers(revision, name) {
            return None;
        }
        let chosen: Vec<&WatchItem> = match name {
            Some(name) => self.items.get(name).into_iter().collect(),
            None => self.items.values().collect(),
        };
        if chosen.len() > limits::SELECTED {
            let message =
                format!("{} objects match; at most {} are looked at", chosen.len(), limits::SELECTED);
            return Some(Seen::Unknown(Why::new(Reason::TooLarge, message)));
        }
        let mut items = Vec::with_capacity(chosen.len());
        for item in chosen {
            let Some(kept) = &item.kept else {
                let what = format!("{} {}", self.key.family.kind.kind, item.name);
                let message = format!("what is read of {what} is larger than {} bytes", limits::PROJECTION);
                return Some(Seen::Unknown(Why::new(Reason::TooLarge, message)));
            };
            items.push(Arc::clone(kept));
        }
        Some(Seen::Objects(Arc::new(Observed {
            items,
            as_of: self.as_of,
            live: self.live,
            looked: self.looked,
        })))
    }

    /// Whether the interest in an object has changed since the task asked for it, so that the report says too little.
    pub(super) fn must_be_read_again(&self, report: &WatchReport) -> bool {
        match report {
            WatchReport::Changed(item) => {
                self.scope.revision(&item.name).is_some_and(|now| item.revision < now)
            }
            WatchReport::Passed { name, .. } => self.scope.revision(name).is_some(),
            _ => false,
        }
    }

    /// Takes note; the questions whose answers changed.
    pub(super) fn apply(&mut self, note: impl Into<WatchNote>) -> BTreeSet<Want> {
        match note.into() {
            WatchNote::Seen(report) => self.saw(report),
            WatchNote::Lost => {
                self.live = false;
                BTreeSet::new()
            }
            WatchNote::Blind(why) => {
                self.synced = false;
                self.live = false;
                self.looking = false;
                self.items.clear();
                (self.bytes, self.read) = (0, Weight::default());
                self.others.clear();
                self.unseen.clear();
                self.set_trouble(why)
            }
            WatchNote::Dim(why) => {
                self.live = false;
                if self.synced { BTreeSet::new() } else { self.set_trouble(why) }
            }
        }
    }

    fn saw(&mut self, report: WatchReport) -> BTreeSet<Want> {
        match report {
            WatchReport::Looking => {
                self.looking = true;
                BTreeSet::new()
            }
            WatchReport::Read { objects, bytes } => {
                self.read = Weight { objects, bytes };
                BTreeSet::new()
            }
            WatchReport::Snapshot { items, others, as_of } => self.replace(items, others, as_of),
            WatchReport::Changed(item) => {
                self.reach(item.version);
                self.change(item)
            }
            WatchReport::Passed { name, version } => {
                self.reach(version);
                self.strays += 1;
                let concerned = self.scope.readers(&name);
                self.let_go(&name);
                self.others.insert(name.into_boxed_str());
                concerned
            }
            WatchReport::Gone { name, version } => {
                self.reach(version);
                if self.items.get(&name).is_some_and(|known| known.version > version && version > 0) {
                    return BTreeSet::new();
                }
                let kept = self.let_go(&name).is_some();
                let passed = self.others.remove(&*name);
                let unseen = self.unseen.remove(&*name);
                let readers = self.scope.readers(&name);
                self.strays += u64::from(readers.is_empty());
                if kept || passed || unseen { readers } else { BTreeSet::new() }
            }
            WatchReport::Reached(version) => {
                self.reach(version);
                BTreeSet::new()
            }
            WatchReport::Live => {
                // It has caught up: what it has not seen by now is not there.
                self.unseen.clear();
                let was = std::mem::replace(&mut self.live, true);
                if was { BTreeSet::new() } else { self.scope.everybody() }
            }
        }
    }

    fn reach(&mut self, version: u64) {
        self.as_of = self.as_of.max(version);
    }

    fn change(&mut self, item: WatchItem) -> BTreeSet<Want> {
        if self.scope.revision(&item.name).is_none() {
            self.strays += 1;
            self.others.insert(item.name.into_boxed_str());
            return BTreeSet::new();
        }
        let recency = |item: &WatchItem| (item.version, item.revision);
        if self
            .items
            .get(&item.name)
            .is_some_and(|known| recency(known) >= recency(&item) && item.version > 0)
        {
            return BTreeSet::new();
        }
        self.others.remove(&*item.name);
        let concerned = self.scope.readers(&item.name);
        self.keep(item);
        concerned
    }

    fn set_trouble(&mut self, why: Why) -> BTreeSet<Want> {
        if self.trouble.as_ref() == Some(&why) {
            return BTreeSet::new();
        }
        self.trouble = Some(why);
        self.scope.everybody()
    }

    fn replace(&mut self, items: Vec<WatchItem>, others: Vec<Box<str>>, as_of: u64) -> BTreeSet<Want> {
        let all_new = !self.live || self.trouble.is_some() || !self.synced;
        let unknown = if all_new { Vec::new() } else { self.latecomers() };
        let old = std::mem::take(&mut self.items);
        (self.bytes, self.read) = (0, Weight::default());
        self.others = others.into_iter().collect();
        for item in items {
            if self.scope.revision(&item.name).is_some() {
                self.keep(item);
            } else {
                self.others.insert(item.name.into_boxed_str());
            }
        }
        self.unseen.clear();
        self.as_of = as_of;
        self.looked = Some(before_this_look());
        self.synced = true;
        self.looking = false;
        self.live = true;
        self.trouble = None;
        if all_new {
            return self.scope.everybody();
        }
        let names: BTreeSet<&str> = old.keys().chain(self.items.keys()).map(String::as_str).collect();
        let identity =
            |item: &WatchItem| (item.version, item.revision, item.kept.as_ref().map(|kept| kept.uid.clone()));
        let differs = |name: &&str| old.get(*name).map(identity) != self.items.get(*name).map(identity);
        // Of those that were not known before, the ones that are not there are news as well.
        let settled = unknown.iter().map(|name| &**name).filter(|name| self.knows(name));
        names.into_iter().filter(differs).chain(settled).flat_map(|name| self.scope.readers(name)).collect()
    }
}

#[cfg(test)]
mod tests;
