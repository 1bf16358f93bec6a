//! Questions about the world.
//!
//! A [`Want`] names what must be observed, through which cluster and as whom. Doors write them into plans, the hub
//! turns them into the fewest watches. Equal wants of different plans are the same question and share an answer.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use linchpin_words::{Gvk, ObjectRef, Shared, hash::Fnv, probe::Probe, reference::KindWord, source::Source};
use serde::{Deserialize, Serialize};

use super::reads::ReadSet;

/// Where a request goes and as whom it is made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Via {
    /// The cluster that is asked.
    #[serde(default, skip_serializing_if = "ClusterRef::is_here")]
    pub cluster: ClusterRef,
    /// Who asks. For a remote cluster: whose right to read the credential is used.
    pub actor: Actor,
}

impl Via {
    /// This cluster, as a ServiceAccount.
    pub fn service_account(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            cluster: ClusterRef::Here,
            actor: Actor::ServiceAccount { namespace: namespace.into(), name: name.into() },
        }
    }
}

/// As whom an object removes what it made. It comes from the object as it is now, never from what was remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The identity that the present spec names.
    pub actor: Actor,
    /// The clusters that the present spec names, with the impersonation it wants there.
    pub clusters: Vec<ClusterRef>,
}

impl Authority {
    /// The way to a place: impersonating there whom the present spec says, else nobody.
    pub fn via(&self, place: &ClusterRef) -> Via {
        let named = self.clusters.iter().find(|cluster| cluster.place() == *place);
        Via { cluster: named.map_or_else(|| place.place(), Clone::clone), actor: self.actor.clone() }
    }
}

impl Default for Authority {
    /// Nobody: an account without a name is refused everywhere.
    fn default() -> Self {
        let actor = Actor::ServiceAccount { namespace: String::new(), name: String::new() };
        Self { actor, clusters: Vec::new() }
    }
}

/// On whose behalf a request is made. There is no fallback from one to the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// A ServiceAccount of the object's own namespace: everything a user directs.
    ServiceAccount {
        /// Namespace of the account.
        namespace: String,
        /// Name of the account.
        name: String,
    },
    /// The operator itself: its own kinds, and what only it may know (which kinds are served).
    Operator,
}

/// Which cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClusterRef {
    /// The cluster that the operator runs on.
    #[default]
    Here,
    /// A cluster reached with the kubeconfig in a Secret.
    Kubeconfig {
        /// Namespace of the Secret.
        namespace: String,
        /// Name of the Secret.
        name: String,
        /// Key of the kubeconfig in it; empty for the usual ones.
        key: String,
        /// Further impersonation on the remote side.
        impersonate: Option<RemoteUser>,
    },
    /// A cluster reached through a KubeFlex ControlPlane.
    ControlPlane {
        /// Which ControlPlane.
        select: ControlPlaneSelect,
        /// Whether it must be Ready, or only have its kubeconfig.
        require_ready: bool,
        /// Further impersonation on the remote side.
        impersonate: Option<RemoteUser>,
    },
}

impl ClusterRef {
    /// Whether this is the operator's own cluster.
    pub fn is_here(&self) -> bool {
        matches!(self, Self::Here)
    }

    /// Which cluster it is, without what is done there as whom and when: what may be remembered of it.
    #[must_use]
    pub fn place(&self) -> Self {
        let mut place = self.clone();
        match &mut place {
            Self::Here => {}
            Self::Kubeconfig { impersonate, .. } => *impersonate = None,
            Self::ControlPlane { require_ready, impersonate, .. } => {
                *require_ready = false;
                *impersonate = None;
            }
        }
        place
    }
}

impl fmt::Display for ClusterRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.write_str("this cluster"),
            Self::Kubeconfig { namespace, name, .. } => write!(f, "cluster of Secret {namespace}/{name}"),
            Self::ControlPlane { select: ControlPlaneSelect::Name(name), .. } => {
                write!(f, "ControlPlane {name}")
            }
            Self::ControlPlane { select: ControlPlaneSelect::Labels(selector), .. } => {
                write!(f, "the ControlPlane with {selector}")
            }
        }
    }
}

/// How a ControlPlane is chosen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ControlPlaneSelect {
    /// By name.
    Name(String),
    /// By labels; exactly one must match.
    Labels(Selector),
}

/// The user and groups that a remote request impersonates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteUser {
    /// User name.
    pub user: String,
    /// Group names.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// A label selector in the API server's own text form, kept normalised so that equal selectors are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Selector(String);

impl Selector {
    /// A selector that asks for these labels, all of them.
    pub fn labels(labels: &BTreeMap<String, String>) -> Self {
        Self::requirements(labels.iter().map(|(key, value)| format!("{key}={value}")).collect())
    }

    /// A selector from single requirements in text form (`a=b`, `c in (d,e)`, `!f`).
    pub fn requirements(mut requirements: Vec<String>) -> Self {
        requirements.sort();
        requirements.dedup();
        Self(requirements.join(","))
    }

    /// The text that the API server understands.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Some objects, cheap to pass on.
pub type Objects = Arc<[Shared<ObjectRef>]>;

/// Which objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// One object by name; no namespace for cluster-scoped kinds.
    Name {
        /// Its namespace.
        namespace: Option<String>,
        /// Its name.
        name: String,
    },
    /// All objects with these labels; no namespace means cluster-scoped kinds (never all namespaces).
    Labels {
        /// Their namespace.
        namespace: Option<String>,
        /// Their labels.
        selector: Selector,
    },
}

/// A right as RBAC names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Right {
    /// Verb: get, list, watch, create, patch, delete …
    pub verb: String,
    /// API group.
    pub group: String,
    /// Plural resource, or the kind word where discovery does not know the plural yet.
    pub resource: String,
    /// Subresource such as `exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// Namespace; none for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// One object's name, where the right is for one object only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(subresource) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, " in {namespace}")?;
        }
        Ok(())
    }
}

/// One question about the world.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// Objects, as small records with what is read of them.
    Objects {
        /// Where and as whom.
        via: Via,
        /// Which kind.
        kind: Gvk,
        /// Which of them.
        scope: Scope,
        /// What of them.
        reads: ReadSet,
    },
    /// Whether a kind is served, and what it really is. Needs no right of the user's.
    Kind {
        /// Where and as whom.
        via: Via,
        /// The word as written.
        word: KindWord,
    },
    /// The server's version.
    Version {
        /// Where and as whom.
        via: Via,
    },
    /// Whether an actor has a right.
    Right {
        /// Where and as whom.
        via: Via,
        /// Which right.
        right: Right,
    },
    /// Whether something on the network answers, as the operator sees it from where it runs.
    Probe {
        /// On whose behalf: in whose share of the probes, and with whom it may be shared if it carries what was read
        /// from a Secret.
        via: Via,
        /// What is dialled and asked.
        probe: Shared<Probe>,
        /// How urgent the answer is while there is none.
        pace: ProbePace,
    },
    /// The manifests of a source, fetched by the operator from a server that a user names.
    Artifact {
        /// On whose behalf: in whose share of the fetches.
        via: Via,
        /// What is fetched.
        source: Shared<Source>,
        /// How often it is looked at again, where its content may change.
        interval: Duration,
        /// How long one fetch may take.
        timeout: Duration,
    },
}

/// How often something is probed that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbePace {
    /// More and more rarely.
    Calm,
    /// Often: somebody is held until it answers.
    Held,
}

/// A [`Question`] that is cheap to clone, compare and look up.
///
/// Order is by a fingerprint first, so that a lookup costs one integer comparison per level instead of a walk over
/// strings; the full question decides only between equals.
#[derive(Clone)]
pub struct Want {
    fingerprint: u64,
    question: Arc<Question>,
}

impl Want {
    /// The want that asks `question`.
    pub fn new(question: Question) -> Self {
        let mut hasher = Fnv::default();
        question.hash(&mut hasher);
        Self { fingerprint: hasher.finish(), question: Arc::new(question) }
    }

    /// One object by name.
    pub fn object(
        via: Via,
        kind: Gvk,
        namespace: Option<String>,
        name: impl Into<String>,
        reads: ReadSet,
    ) -> Self {
        Self::new(Question::Objects { via, kind, scope: Scope::Name { namespace, name: name.into() }, reads })
    }

    /// What is asked.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Where the question goes and as whom.
    pub fn via(&self) -> &Via {
        match self.question() {
            Question::Objects { via, .. }
            | Question::Kind { via, .. }
            | Question::Version { via }
            | Question::Right { via, .. }
            | Question::Probe { via, .. }
            | Question::Artifact { via, .. } => via,
        }
    }

    /// The one object that is asked for, where it is one.
    pub fn object_ref(&self) -> Option<ObjectRef> {
        match self.question() {
            Question::Objects { kind, scope: Scope::Name { namespace, name }, .. } => {
                Some(ObjectRef { kind: kind.group_kind(), namespace: namespace.clone(), name: name.clone() })
            }
            _ => None,
        }
    }
}

impl PartialEq for Want {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
            && (Arc::ptr_eq(&self.question, &other.question) || self.question == other.question)
    }
}

impl Eq for Want {}

impl PartialOrd for Want {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Want {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.fingerprint.cmp(&other.fingerprint).then_with(|| {
            if Arc::ptr_eq(&self.question, &other.question) {
                std::cmp::Ordering::Equal
            } else {
                self.question.cmp(&other.question)
            }
        })
    }
}

impl Hash for Want {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

impl fmt::Debug for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.question().fmt(f)
    }
}
