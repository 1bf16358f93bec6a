//! Answers: what has been observed, and how far the observation reaches.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::Arc,
};

use linchpin_words::{Gvk, ObjectRef, Reason, Timestamp, hash::Fnv, probe::Miss};
use serde_json::Value;

use super::want::Want;

/// One observed object, reduced to what is read of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Its kind at the version it was read in.
    pub kind: Gvk,
    /// Its namespace; none for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Which incarnation of that name.
    pub uid: String,
    /// Generation of its spec; 0 where the kind has none.
    pub generation: i64,
    /// Its resourceVersion as a number (comparable within one kind).
    pub version: u64,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The part of the object that is read, in the object's own shape.
    pub content: Value,
}

impl Projection {
    /// Whether its content must be shown nowhere.
    pub fn is_secret(&self) -> bool {
        self.kind.group.is_empty() && self.kind.kind == "Secret"
    }

    /// The object's name in full.
    pub fn object_ref(&self) -> ObjectRef {
        ObjectRef { kind: self.kind.group_kind(), namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

/// Objects as a watch shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// What is there, sorted by namespace and name; empty means that it was looked for and is not there.
    pub items: Vec<Arc<Projection>>,
    /// The highest resourceVersion that the watch has reached: how recent an absence is.
    pub as_of: u64,
    /// Whether the connection is up. A view that is not live still counts, but no deadline is declared on it.
    pub live: bool,
    /// When the last full and consistent look behind this view surely had not begun yet. What was written before that is
    /// in the view, or has been undone since: also by a store that was set back to an earlier day.
    pub looked: Option<Timestamp>,
}

/// Why nothing could be observed. None of these is an absence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Why {
    /// The kind of obstacle.
    pub reason: Reason,
    /// For people: what is missing and what to do; never a secret value.
    pub message: String,
    /// Whether what leads there was observed to be absent, as opposed to not being usable now: the Secret or the
    /// ControlPlane of another cluster.
    pub absent: bool,
}

impl Why {
    /// An obstacle with its explanation.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), absent: false }
    }

    /// The same, of something that was observed to be absent.
    #[must_use]
    pub fn absent(self) -> Self {
        Self { absent: true, ..self }
    }

    /// Whether more waiting alone will settle it (the first list of a watch), so that nothing may be concluded yet.
    pub fn is_passing(&self) -> bool {
        matches!(self.reason, Reason::Unsynced | Reason::Disconnected | Reason::OwnWriteNotSeen)
    }
}

/// What a kind word turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// One kind.
    Yes {
        /// The kind at its preferred version.
        kind: Gvk,
        /// Its plural, as URLs and RBAC use it.
        plural: String,
        /// Whether its objects live in namespaces.
        namespaced: bool,
        /// Whether its schema promises conditions or an observed generation; unknown for kinds without a schema.
        reports_status: Option<bool>,
    },
    /// No such kind (now).
    No,
    /// Several kinds: the user must choose.
    Several(Vec<Gvk>),
}

/// What is known of a source: the newest content that could be used, what is wrong with the newest look, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Artifact {
    /// The newest content that could be used; none while there was none.
    pub content: Option<Arc<Manifests>>,
    /// What is wrong since then; none while all is well.
    pub fault: Option<SourceFault>,
}

/// What a source holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifests {
    /// What this state of the source is called.
    pub revision: String,
    /// The digest of what was downloaded.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was first seen.
    pub fetched: Timestamp,
    /// The texts with where they lie in it, sorted by that; an empty path for a source that is one text.
    pub files: Vec<(String, String)>,
}

/// Why a source cannot be used as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFault {
    /// The kind of fault.
    pub reason: Reason,
    /// For people, in our own words.
    pub message: String,
    /// Whether the source was read and is refused, as opposed to not being read now: then what was read before is not its
    /// state any more.
    pub refused: bool,
}

/// An answer to a [`Want`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing could be observed: satisfies nothing and disproves nothing.
    Unknown(Why),
    /// Objects, possibly none.
    Objects(Arc<Observed>),
    /// A kind.
    Kind(Arc<Served>),
    /// The server's version, as its `/version` endpoint answers.
    Version(Arc<Value>),
    /// Whether the right is there.
    Right(bool),
    /// Whether it answers, or why not.
    Probe(Result<(), Miss>),
    /// What a source holds, and what is wrong with it.
    Artifact(Arc<Artifact>),
}

impl Seen {
    /// Whether the same was observed, whenever that was.
    fn says_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Objects(one), Self::Objects(two)) => one.items == two.items,
            _ => self == other,
        }
    }
}

/// All that has been observed, by question. A question that is missing is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World(HashMap<Want, Seen, BuildHasherDefault<Fingerprint>>);

/// Wants have a fingerprint already: it is their hash.
#[derive(Clone, Default)]
struct Fingerprint(u64);

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = Fnv::of(bytes);
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

impl World {
    /// An empty world: everything is unknown.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records an answer.
    pub fn insert(&mut self, want: Want, seen: Seen) {
        self.0.insert(want, seen);
    }

    /// The answer, where there is one.
    pub fn get(&self, want: &Want) -> Option<&Seen> {
        self.0.get(want)
    }

    /// The answers to these questions, as far as there are any.
    #[must_use]
    pub fn only<'a>(&self, wants: impl IntoIterator<Item = &'a Want>) -> Self {
        wants.into_iter().filter_map(|want| Some((want.clone(), self.get(want)?.clone()))).collect()
    }

    /// Whether the same was observed, whenever that was: how recent a view is makes no difference.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let same =
            |(want, seen): (&Want, &Seen)| other.get(want).is_some_and(|then| seen.says_the_same(then));
        self.0.len() == other.0.len() && self.0.iter().all(same)
    }

    /// All questions and answers, in the order of the questions.
    pub fn iter(&self) -> impl Iterator<Item = (&Want, &Seen)> {
        let mut all: Vec<(&Want, &Seen)> = self.0.iter().collect();
        all.sort_unstable_by_key(|(want, _)| *want);
        all.into_iter()
    }
}

impl FromIterator<(Want, Seen)> for World {
    fn from_iter<T: IntoIterator<Item = (Want, Seen)>>(answers: T) -> Self {
        Self(answers.into_iter().collect())
    }
}
