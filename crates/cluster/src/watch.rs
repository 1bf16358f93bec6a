//! Following objects: the loop between "never looked" and "sees every change".
//!
//! Written by hand because kube's watcher loops on an HTTP 410 at the start of a watch, reports no deletions
//! missed while it was disconnected, and keeps whole objects. This one:
//!
//! * looks once and then follows: single objects with one streaming request (the first state, a mark, then changes)
//!   where the server can, everything else with a list in pages and a watch from its version;
//! * hands over every object projected to what is read of it ([`Interest`]), and complete snapshots, so that the
//!   listener ([`Sink`]) sees missed deletions as differences; of objects nobody reads it says that they are there;
//! * renews itself within five minutes, so that a revoked right is noticed;
//! * resumes after a broken connection, starts over when its version has expired, and starts over everywhere when the
//!   store went back in time ([`clock`]).
//!
//! Bodies are read item by item: an object that cannot be read is its own problem, whatever page it came in.
//!
//! It decides nothing about meaning: that an answer is missing and why is said to the sink. Called by the hub, once
//! per watch, by discovery, and for our own kinds.

pub(crate) mod clock;
pub(crate) mod first_looks;
pub(crate) mod follow;
pub(crate) mod interest;
mod lines;
mod list_size;
mod pace;
pub(crate) mod parse;

use crate::call::{CallError, Resource};
use linchpin_engine::contract::{Projection, Selector};
use linchpin_words::limits;
use serde_json::value::RawValue;
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

use self::{
    first_looks::{FirstLookTurn, FirstLooks},
    interest::Interest,
};
pub(crate) use self::{
    pace::{WatchPauses, WatchTrouble},
    parse::Head,
};

/// How long after a refusal it is asked again at the latest: nothing reports when a right is given.
pub(crate) const FORBIDDEN_AGAIN: std::time::Duration = std::time::Duration::from_secs(30);

/// Which objects of a kind and namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WatchSelect {
    /// One, by name.
    Name(String),
    /// Those with these labels.
    Labels(Selector),
    /// All of them.
    All,
}

/// What is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchTarget {
    /// The kind.
    pub(crate) resource: Resource,
    /// The namespace; none for cluster-scoped kinds.
    pub(crate) namespace: Option<String>,
    /// Which objects.
    pub(crate) select: WatchSelect,
}

/// One object as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchItem {
    /// Its name.
    pub(crate) name: String,
    /// Its resourceVersion.
    pub(crate) version: u64,
    /// The revision of the [`Interest`] that it was projected for.
    pub(crate) revision: u64,
    /// What is kept of it; none where that would be too large.
    pub(crate) kept: Option<Arc<Projection>>,
    /// About how many bytes of memory that takes.
    pub(crate) bytes: usize,
}

/// What a follower sees.
#[derive(Debug)]
pub(crate) enum WatchReport {
    /// Everything is being read; a snapshot comes next, and no changes before it.
    Looking,
    /// So much has been read of it so far.
    Read {
        /// Objects that are of interest.
        objects: usize,
        /// Bytes that they take.
        bytes: usize,
    },
    /// This is all there is. The connection is up.
    Snapshot {
        /// The objects that are of interest.
        items: Vec<WatchItem>,
        /// The names of those that were not when they were passed.
        others: Vec<Box<str>>,
        /// The version the snapshot was taken at.
        as_of: u64,
    },
    /// An object is new or has changed.
    Changed(WatchItem),
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
}

/// Why a follower sees nothing now.
#[derive(Debug)]
pub(crate) enum WatchFailure {
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
pub(crate) enum SinkReply {
    /// It was taken note of.
    Noted,
    /// The interest in the object has changed since it was asked for: read it again, with the new one.
    Again,
}

/// Who listens to a follower.
pub(crate) trait Sink: Send + Sync {
    /// Takes an object as it arrived, or word that it is gone (no text); whether that is all that is wanted of it.
    /// What is not taken is projected to what is read of it.
    fn take(&self, _head: &Head, _text: Option<&RawValue>) -> bool {
        false
    }
    /// Whether nothing but metadata is read of any object.
    fn is_metadata(&self) -> bool;
    /// What is read of an object of this name; none if it is of no interest.
    fn interest(&self, name: &str) -> Option<Arc<Interest>>;
    /// Takes note of what is seen.
    fn report(&self, report: WatchReport) -> SinkReply;
    /// Takes note that nothing is seen.
    fn failed(&self, failure: WatchFailure);
}

/// How many first looks may be under way at a time: more are only answered with 429 and a second's pause.
const FIRST_LOOKS: usize = 48;
/// The same for a server that a user names: each may take as much memory as one answer of it may have.
const FIRST_LOOKS_ELSEWHERE: usize = 4;

/// What servers turned out to be able to do, per API group.
#[derive(Debug)]
pub(crate) struct Features {
    no_streaming: Mutex<BTreeSet<String>>,
    first_looks: FirstLooks,
    /// What was read lately, where that is limited.
    spent: Option<Mutex<Spent>>,
}

/// What was read in the second that has begun.
#[derive(Debug)]
struct Spent {
    since: Instant,
    bytes: usize,
}

/// What reading one event costs at least, however short it is.
const LEAST: usize = 1 << 10;
/// The time in which what is read is counted.
const SECOND: Duration = Duration::from_secs(1);

impl Default for Features {
    fn default() -> Self {
        Self { no_streaming: Mutex::default(), first_looks: FirstLooks::new(FIRST_LOOKS), spent: None }
    }
}

impl Features {
    /// Those of a server that a user names.
    pub(crate) fn elsewhere() -> Self {
        let spent = Some(Mutex::new(Spent { since: Instant::now(), bytes: 0 }));
        Self { first_looks: FirstLooks::new(FIRST_LOOKS_ELSEWHERE), spent, ..Self::default() }
    }

    /// Pauses the reader, where more was read in this second than may be: a server that never stops
    /// sending must not take our time from others.
    pub(crate) async fn breathe(&self, bytes: usize) {
        let Some(spent) = &self.spent else { return };
        let pause = {
            let mut spent = spent.lock().unwrap_or_else(PoisonError::into_inner);
            let passed = spent.since.elapsed();
            if passed >= SECOND {
                *spent = Spent { since: Instant::now(), bytes: 0 };
            }
            spent.bytes = spent.bytes.saturating_add(bytes.max(LEAST));
            (spent.bytes > limits::REMOTE_RATE).then(|| SECOND.saturating_sub(spent.since.elapsed()))
        };
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }

    /// Waits for one's turn to look for the first time, for a namespace and at an API group.
    pub(crate) async fn turn(&self, namespace: &str, group: &str) -> Option<FirstLookTurn> {
        // A server that a user names is looked at for one namespace alone: there only groups share.
        let sharer = if self.spent.is_some() { group } else { namespace };
        self.first_looks.turn(sharer, group).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_a_user_names_is_read_no_faster_than_it_may_be() {
        let (here, there) = (Features::default(), Features::elsewhere());
        let begun = Instant::now();
        for _ in 0..100 {
            here.breathe(limits::REMOTE_RATE).await;
        }
        there.breathe(limits::REMOTE_RATE).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        there.breathe(1).await;
        assert!(begun.elapsed() >= SECOND);
        let begun = Instant::now();
        for _ in 0..limits::REMOTE_RATE / LEAST * 10 {
            there.breathe(10).await;
        }
        assert!(begun.elapsed() >= 9 * SECOND, "short events count too");
    }
}
