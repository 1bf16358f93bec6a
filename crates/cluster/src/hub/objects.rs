//! One watch as the hub knows it: what it has seen, how far it is, and who reads it.
//!
//! [`Watching::apply`] is a pure transition: a [`Note`] in, the questions whose answers changed out. The watch's task
//! talks to it through [`Ear`].

use super::{Inner, promotion::Family, state::WatchId};
use crate::{
    call::{CallError, Resource},
    watch::{Item, Report, Select, Sink},
};
use linchpin_engine::contract::{Observed, ReadSet, Right, Seen, Want, Why};
use linchpin_words::{Reason, Timestamp, keys, limits, text};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::watch, task::AbortHandle};

/// Attempts in a row after which another cluster counts as unreachable.
const UNREACHABLE: u32 = 3;

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
    pub(super) select: Select,
}

/// What a watch's task reads while it works, without the hub's lock.
#[derive(Debug)]
pub(super) struct Scope {
    looking: Mutex<(u64, Arc<ReadSet>)>,
    /// The names of interest in a wide watch; none means all that come.
    names: Option<Mutex<BTreeSet<String>>>,
}

impl Scope {
    pub(super) fn new(select: &Select) -> Self {
        // Whether we created an object is asked before every write to it: always kept, and small.
        let mut reads = ReadSet::nothing();
        reads.add(["metadata", "annotations", keys::CREATED_BY].map(str::to_owned).to_vec());
        Self {
            looking: Mutex::new((1, Arc::new(reads))),
            names: (*select == Select::All).then(Mutex::default),
        }
    }

    fn looking(&self) -> MutexGuard<'_, (u64, Arc<ReadSet>)> {
        self.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One watch.
pub(super) struct Watching {
    pub(super) key: WatchKey,
    scope: Arc<Scope>,
    control: watch::Sender<u64>,
    task: AbortHandle,
    /// The revision of reads that the last snapshot was made with; none before the first.
    synced: Option<u64>,
    as_of: u64,
    /// When the look behind the last snapshot had surely not begun.
    looked: Option<Timestamp>,
    live: bool,
    trouble: Option<Why>,
    items: BTreeMap<String, Item>,
    /// Who reads it, by name; under the empty name for a selector.
    topics: BTreeMap<String, BTreeSet<Want>>,
    /// In a wide watch: the names of interest, and the revision they came with.
    names: BTreeMap<String, u64>,
    /// In a wide watch: the names whose state is known.
    known: BTreeSet<String>,
    /// The revision at which the reads last grew.
    reads_revision: u64,
    /// Whether a fresh look was asked for that has not been answered yet.
    looking_again: bool,
    /// Changes since the rate was last taken.
    pub(super) changes: u64,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a watch's task has to say.
#[derive(Debug)]
pub(super) enum Note {
    Snapshot {
        items: Vec<Item>,
        as_of: u64,
        revision: u64,
    },
    Changed(Item),
    Gone {
        name: String,
        version: u64,
    },
    Reached(u64),
    Live,
    Lost,
    /// Nothing can be seen; what was seen before is forgotten.
    Blind(Why),
    /// Nothing can be seen yet; what was seen before stays.
    Dim(Why),
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
            synced: None,
            as_of: 0,
            looked: None,
            live: false,
            trouble: None,
            items: BTreeMap::new(),
            topics: BTreeMap::new(),
            names: BTreeMap::new(),
            known: BTreeSet::new(),
            reads_revision: 1,
            looking_again: false,
            changes: 0,
        }
    }

    /// Adds a reader of `name` (empty for a selector); the revision of reads that will cover it.
    pub(super) fn add(&mut self, name: &str, want: &Want, reads: &ReadSet) -> u64 {
        self.topics.entry(name.to_owned()).or_default().insert(want.clone());
        let mut looking = self.scope.looking();
        let mut union = (*looking.1).clone();
        union.merge(reads);
        let grows = union != *looking.1;
        if grows {
            *looking = (looking.0 + 1, Arc::new(union));
            self.reads_revision = looking.0;
        }
        if let Some(names) = &self.scope.names
            && names.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned())
        {
            looking.0 += 1;
            self.names.insert(name.to_owned(), looking.0);
        }
        drop(looking);
        if grows {
            self.restart();
        }
        self.reads_revision
    }

    /// Takes a reader away; whether nobody is left.
    pub(super) fn remove(&mut self, name: &str, want: &Want) -> bool {
        if let Some(wants) = self.topics.get_mut(name) {
            wants.remove(want);
            if wants.is_empty() {
                self.topics.remove(name);
                if let Some(names) = &self.scope.names {
                    names.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
                    self.names.remove(name);
                    self.known.remove(name);
                    self.items.remove(name);
                }
            }
        }
        self.topics.is_empty()
    }

    /// Asks the task for a fresh look.
    pub(super) fn restart(&self) {
        self.control.send_modify(|count| *count += 1);
    }

    /// Asks the task for a fresh look, unless one is awaited already: asking again would only begin it anew.
    pub(super) fn look_again(&mut self) {
        if self.synced.is_some() && !std::mem::replace(&mut self.looking_again, true) {
            self.restart();
        }
    }

    /// Whether its first look, or a fresh one that was asked for, has not been answered yet.
    pub(super) fn is_looking(&self) -> bool {
        self.looking_again || self.synced.is_none() && self.trouble.is_none()
    }

    /// In a wide watch: how many of the names of interest came too late for the last look.
    pub(super) fn latecomers(&self) -> usize {
        self.names.len().saturating_sub(self.known.len())
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether what is known covers a revision of reads, of one name or altogether.
    pub(super) fn covers(&self, revision: u64, name: Option<&str>) -> bool {
        let named = self.scope.names.is_none() || name.is_some_and(|name| self.known.contains(name));
        named && self.trouble.is_none() && self.synced.is_some_and(|synced| synced >= revision)
    }

    pub(super) fn trouble(&self) -> Option<&Why> {
        self.trouble.as_ref()
    }

    /// The record of one object.
    pub(super) fn item(&self, name: &str) -> Option<&Item> {
        self.items.get(name)
    }

    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// Whether what a narrower watch has seen can be taken over: the reads must be covered here already.
    pub(super) fn can_adopt(&self, revision: u64) -> bool {
        self.trouble.is_none() && self.synced.is_some_and(|synced| synced >= revision)
    }

    /// Takes over what a narrower watch has seen of one object: what happens from then on comes here as well, because
    /// the name has been of interest since before that watch began.
    pub(super) fn adopt(&mut self, name: &str, item: Option<Item>) {
        self.known.insert(name.to_owned());
        if let Some(item) = item
            && self.items.get(name).is_none_or(|known| known.version < item.version)
        {
            self.items.insert(name.to_owned(), item);
        }
    }

    /// What is seen, of one name or altogether, if it covers the revision.
    pub(super) fn view(&self, revision: u64, name: Option<&str>) -> Option<Seen> {
        if !self.covers(revision, name) {
            return None;
        }
        let chosen: Vec<&Item> = match name {
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

    /// Takes note; the questions whose answers changed.
    pub(super) fn apply(&mut self, note: Note) -> BTreeSet<Want> {
        match note {
            Note::Snapshot { items, as_of, revision } => self.replace(items, as_of, revision),
            Note::Changed(item) => {
                self.changes += 1;
                self.as_of = self.as_of.max(item.version);
                if self
                    .items
                    .get(&item.name)
                    .is_some_and(|known| known.version >= item.version && item.version > 0)
                {
                    return BTreeSet::new();
                }
                let concerned = self.readers(&item.name);
                self.items.insert(item.name.clone(), item);
                concerned
            }
            Note::Gone { name, version } => {
                self.changes += 1;
                self.as_of = self.as_of.max(version);
                match self.items.get(&name) {
                    Some(known) if known.version <= version || version == 0 => {
                        self.items.remove(&name);
                        self.readers(&name)
                    }
                    _ => BTreeSet::new(),
                }
            }
            Note::Reached(version) => {
                self.changes += 1;
                self.as_of = self.as_of.max(version);
                BTreeSet::new()
            }
            Note::Live => {
                let was = std::mem::replace(&mut self.live, true);
                if was { BTreeSet::new() } else { self.everybody() }
            }
            Note::Lost => {
                self.live = false;
                BTreeSet::new()
            }
            Note::Blind(why) => {
                self.synced = None;
                self.live = false;
                self.items.clear();
                self.known.clear();
                self.set_trouble(why)
            }
            Note::Dim(why) => {
                self.live = false;
                if self.synced.is_some() { BTreeSet::new() } else { self.set_trouble(why) }
            }
        }
    }

    fn set_trouble(&mut self, why: Why) -> BTreeSet<Want> {
        if self.trouble.as_ref() == Some(&why) {
            return BTreeSet::new();
        }
        self.trouble = Some(why);
        self.everybody()
    }

    fn replace(&mut self, items: Vec<Item>, as_of: u64, revision: u64) -> BTreeSet<Want> {
        // Where only names have joined since, only they see something new.
        let reads_cover = self.synced.is_some_and(|synced| synced >= self.reads_revision);
        let all_new = !self.live || self.trouble.is_some() || !reads_cover;
        let knew = std::mem::take(&mut self.known);
        self.looking_again = false;
        let fresh: BTreeMap<String, Item> = items.into_iter().map(|item| (item.name.clone(), item)).collect();
        let old = std::mem::replace(&mut self.items, fresh);
        self.as_of = as_of;
        self.looked = Some(before_this_look());
        self.synced = Some(revision);
        self.known = self
            .names
            .iter()
            .filter(|(_, since)| **since <= revision)
            .map(|(name, _)| name.clone())
            .collect();
        self.live = true;
        self.trouble = None;
        if all_new {
            return self.everybody();
        }
        let names: BTreeSet<&String> = old.keys().chain(self.items.keys()).collect();
        let differs = |name: &&String| {
            let identity = |item: &Item| (item.version, item.kept.as_ref().map(|kept| kept.uid.clone()));
            old.get(*name).map(identity) != self.items.get(*name).map(identity)
        };
        let joined = self.known.difference(&knew);
        names.into_iter().filter(differs).chain(joined).flat_map(|name| self.readers(name)).collect()
    }

    fn readers(&self, name: &str) -> BTreeSet<Want> {
        let key = if matches!(self.key.select, Select::Labels(_)) { "" } else { name };
        self.topics.get(key).cloned().unwrap_or_default()
    }

    pub(super) fn everybody(&self) -> BTreeSet<Want> {
        self.topics.values().flatten().cloned().collect()
    }
}

/// What the watch's task reports to.
pub(super) struct Ear {
    pub(super) inner: Weak<Inner>,
    pub(super) id: WatchId,
    pub(super) scope: Arc<Scope>,
    pub(super) resource: Resource,
    pub(super) key: WatchKey,
    pub(super) who: String,
    pub(super) remote: Option<String>,
}

impl Sink for Ear {
    fn reads(&self) -> (u64, Arc<ReadSet>) {
        self.scope.looking().clone()
    }

    fn keeps(&self, name: &str) -> bool {
        match &self.scope.names {
            None => true,
            Some(names) => names.lock().unwrap_or_else(PoisonError::into_inner).contains(name),
        }
    }

    fn report(&self, report: Report) {
        let note = match report {
            Report::Snapshot { items, as_of, revision } => Note::Snapshot { items, as_of, revision },
            Report::Changed(item) => Note::Changed(item),
            Report::Gone { name, version } => Note::Gone { name, version },
            Report::Reached(version) => Note::Reached(version),
            Report::Live => Note::Live,
            Report::Lost { failures, message } => match &self.remote {
                Some(name) if failures >= UNREACHABLE => {
                    let message = text::line(&format!("{name} does not answer: {message}"));
                    Note::Blind(Why::new(Reason::ClusterUnreachable, message))
                }
                _ => {
                    let why = Why::new(Reason::Disconnected, text::line(&message));
                    self.note(Note::Dim(why));
                    Note::Lost
                }
            },
            Report::Forbidden(error) => Note::Blind(self.forbidden(&error)),
        };
        self.note(note);
    }
}

impl Ear {
    pub(super) fn note(&self, note: Note) {
        if let Some(inner) = self.inner.upgrade() {
            inner.noted(self.id, note);
        }
    }

    fn forbidden(&self, error: &CallError) -> Why {
        let said = error.refused().map(|refused| refused.status.message.as_str()).unwrap_or_default();
        if said.contains("cannot impersonate") {
            let message =
                format!("the operator may not act as {}: bind its impersonation Role there", self.who);
            return Why::new(Reason::Forbidden, message);
        }
        let name = match &self.key.select {
            Select::Name(name) => Some(name.clone()),
            Select::Labels(_) | Select::All => None,
        };
        let right = Right {
            verb: "list and watch".to_owned(),
            group: self.resource.kind.group.clone(),
            resource: self.resource.plural.clone(),
            subresource: None,
            namespace: self.key.family.namespace.clone().filter(|_| self.resource.namespaced),
            name,
        };
        Why::new(Reason::Forbidden, text::line(&format!("{} is not allowed to {right}", self.who)))
    }
}

#[cfg(test)]
mod tests;
