//! Following objects: the loop between "never looked" and "sees every change".
//!
//! Written by hand because kube's watcher loops on an HTTP 410 at the start of a watch, tells nothing of deletions
//! missed while it was disconnected, and keeps whole objects. This one:
//!
//! * looks once and then follows: single objects with one streaming request (the first state, a mark, then changes)
//!   where the server can, everything else with a list in pages and a watch from its version;
//! * hands over every object projected to what is read of it ([`Interest`]), and complete snapshots, so that whoever
//!   listens ([`Sink`]) sees missed deletions as differences; of objects nobody reads it says that they are there;
//! * renews itself within five minutes, so that a revoked right is noticed;
//! * resumes after a broken connection, starts over when its version has expired, and starts over everywhere when the
//!   store went back in time ([`clock`]).
//!
//! It decides nothing about meaning: that an answer is missing and why is said to the sink. Called by the hub, once
//! per watch, and by discovery.

pub(crate) mod clock;
pub(crate) mod follow;
pub(crate) mod interest;
mod lines;
mod pace;
mod parse;

use crate::call::{CallError, Resource};
use linchpin_engine::contract::{Projection, Selector};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{Semaphore, SemaphorePermit};

use self::interest::Interest;
pub(crate) use self::{
    follow::LASTING,
    pace::{Pace, Trouble},
};

/// Which objects of a kind and namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Select {
    /// One, by name.
    Name(String),
    /// Those with these labels.
    Labels(Selector),
    /// All of them.
    All,
}

/// What is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watched {
    /// The kind.
    pub(crate) resource: Resource,
    /// The namespace; none for cluster-scoped kinds.
    pub(crate) namespace: Option<String>,
    /// Which objects.
    pub(crate) select: Select,
}

/// One object as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its name.
    pub(crate) name: String,
    /// Its resourceVersion.
    pub(crate) version: u64,
    /// The revision of the [`Interest`] that it was projected for.
    pub(crate) revision: u64,
    /// What is kept of it; none where that would be too large.
    pub(crate) kept: Option<Arc<Projection>>,
}

/// What a follower says.
#[derive(Debug)]
pub(crate) enum Report {
    /// Everything is being read; a snapshot comes next, and no changes before it.
    Looking,
    /// This is all there is. The connection is up.
    Snapshot {
        /// The objects that are of interest.
        items: Vec<Item>,
        /// The names of those that were not when they were passed.
        others: Vec<Box<str>>,
        /// The version the snapshot was taken at.
        as_of: u64,
    },
    /// An object is new or has changed.
    Changed(Item),
    /// An object that is of no interest is new or has changed.
    Passed {
        /// Its name.
        name: String,
        /// Its version.
        version: u64,
    },
    /// An object is gone, or left the selection; it need not have been of interest.
    Gone {
        /// Its name.
        name: String,
        /// The version of the deletion.
        version: u64,
    },
    /// Nothing happened up to this version.
    Reached(u64),
    /// The connection is up again and has caught up.
    Live,
    /// The connection is down, for so many attempts in a row.
    Lost {
        /// Attempts that failed.
        failures: u32,
        /// Why the last one did.
        message: String,
    },
    /// The server does not let us look.
    Forbidden(Box<CallError>),
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heed {
    /// It was taken note of.
    Noted,
    /// The interest in the object has changed since it was asked for: read it again, with the new one.
    Again,
}

/// Who listens to a follower.
pub(crate) trait Sink: Send + Sync {
    /// Whether nothing but metadata is read of any object.
    fn is_metadata(&self) -> bool;
    /// What is read of an object of this name; none if it is of no interest.
    fn interest(&self, name: &str) -> Option<Arc<Interest>>;
    /// Takes note.
    fn report(&self, report: Report) -> Heed;
}

/// How many first looks may be under way at a time: more are only answered with 429 and a second's pause.
const FIRST_LOOKS: usize = 48;

/// What servers turned out to be able to do, per API group.
#[derive(Debug)]
pub(crate) struct Features {
    no_streaming: Mutex<BTreeSet<String>>,
    first_looks: Semaphore,
}

impl Default for Features {
    fn default() -> Self {
        Self { no_streaming: Mutex::default(), first_looks: Semaphore::new(FIRST_LOOKS) }
    }
}

impl Features {
    /// Waits for one's turn to look for the first time.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.first_looks.acquire().await.ok()
    }

    /// Whether the first state can come through the watch itself.
    pub(crate) fn streams(&self, group: &str) -> bool {
        !self.no_streaming.lock().unwrap_or_else(PoisonError::into_inner).contains(group)
    }

    /// Remembers that it cannot.
    pub(crate) fn cannot_stream(&self, group: &str) {
        self.no_streaming.lock().unwrap_or_else(PoisonError::into_inner).insert(group.to_owned());
    }
}

/// What all followers together have done.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Bytes received.
    pub(crate) bytes: AtomicU64,
    /// Changes received.
    pub(crate) events: AtomicU64,
    /// Lists, and streams that began with a first state.
    pub(crate) lists: AtomicU64,
    /// Watch requests.
    pub(crate) watches: AtomicU64,
    /// Times that the store was found to have gone back.
    pub(crate) rewinds: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, amount: usize) {
        counter.fetch_add(u64::try_from(amount).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
