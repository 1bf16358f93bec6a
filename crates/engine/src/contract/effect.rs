//! Orders to the driver, and what came back.

use std::{fmt, sync::Arc, time::Duration};

use linchpin_words::{Timestamp, reference::KindWord};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::want::{ClusterRef, Right, Via};

/// The name of a step: the user's name for it, or one made of its type and target. Never a position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct StepId(Arc<str>);

impl StepId {
    /// A step's name.
    pub fn new(name: impl AsRef<str>) -> Self {
        Self(Arc::from(name.as_ref()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for StepId {
    fn from(name: String) -> Self {
        Self(Arc::from(name))
    }
}

impl From<StepId> for String {
    fn from(id: StepId) -> Self {
        id.as_str().to_owned()
    }
}

impl From<&str> for StepId {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// Which effect of which attempt of which step in which run. Outcomes of older tickets change no record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The step.
    pub step: StepId,
    /// The run it belongs to.
    pub run: u64,
    /// The attempt within the run, from 1.
    pub attempt: u32,
    /// The effect within the attempt: a step may write several documents.
    pub part: u32,
}

/// An object that a verb is aimed at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectTarget {
    /// Its kind, as written: discovery resolves it.
    pub kind: KindWord,
    /// Its namespace; none means the acting object's own, or cluster-scoped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl fmt::Display for EffectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.word)?;
        if let Some(group) = self.kind.group.as_deref().filter(|group| !group.is_empty()) {
            write!(f, ".{group}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " {namespace}/{}", self.name),
            None => write!(f, " {}", self.name),
        }
    }
}

/// One change to the world, to be made as one identity before a deadline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Effect {
    /// What the outcome will be filed under.
    pub ticket: Ticket,
    /// Where and as whom.
    pub via: Via,
    /// What.
    pub verb: Verb,
    /// Whether something in it stems from a Secret: then nothing that the server says about it is shown, but for the
    /// names of fields, policies and managers.
    pub discreet: bool,
    /// How long the request may take.
    pub deadline: Duration,
    /// Its place among the effects of its object that start at the same moment; lower comes first.
    pub rank: i32,
}

/// The kinds of change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Server-side apply of one document.
    Apply {
        /// The document.
        body: Arc<Value>,
        /// Namespace for a document that names none; ignored for cluster-scoped kinds.
        default_namespace: String,
        /// Field manager.
        manager: String,
        /// Whether fields that others hold are taken back.
        force: Force,
        /// Fields that are left to their holders, as the API server writes paths: `.spec.replicas`. What lies below
        /// them is meant too.
        yields: Arc<[String]>,
        /// What to do with an object that is there and not ours.
        existing: Existing,
        /// The mark that says who created the object: our object's uid.
        creator: String,
        /// The owner that the object is to have, if we made it and it lives in the owner's namespace.
        owner: Option<Arc<OwnerReference>>,
    },
    /// Create one document if it is missing.
    Create {
        /// The document.
        body: Arc<Value>,
        /// Namespace for a document that names none.
        default_namespace: String,
        /// Field manager.
        manager: String,
        /// What to do with an object that is there.
        existing: Existing,
        /// The mark that says who created the object.
        creator: String,
    },
    /// Patch one object.
    Patch {
        /// Which object.
        target: EffectTarget,
        /// How the patch is written.
        kind: PatchKind,
        /// The patch.
        body: Arc<Value>,
        /// Field manager.
        manager: String,
        /// For patches that must not happen twice: fail unless the object is still at the version read just before.
        once: bool,
    },
    /// Delete one object.
    Delete {
        /// Which object.
        target: EffectTarget,
        /// Only this incarnation; none means whichever is there when the request is made.
        uid: Option<String>,
        /// Only if it carries this creator mark, read from the server just before. None for what a user says is to be
        /// deleted, no matter who made it.
        creator: Option<String>,
        /// What happens to what it owns.
        propagation: Propagation,
    },
    /// Take an owner off one object, so that it outlives it.
    Disown {
        /// Which object.
        target: EffectTarget,
        /// Only this incarnation.
        uid: String,
        /// The owner's uid.
        owner: String,
    },
    /// Run a command in a container.
    Exec(ExecOrder),
    /// Say something as an Event on our own object.
    Notice(Notice),
}

impl Verb {
    /// The word for it, in metrics and logs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Apply { .. } => "apply",
            Self::Disown { .. } => "disown",
            Self::Create { .. } => "create",
            Self::Patch { .. } => "patch",
            Self::Delete { .. } => "delete",
            Self::Exec(_) => "exec",
            Self::Notice(_) => "notice",
        }
    }
}

/// Whether fields that others hold are taken back.
///
/// Some are left to them all the same, and named in [`Done::yielded`]: what another manager of ours holds, what was set
/// through the scale subresource, and what the effect says to yield.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Force {
    /// No: a field that somebody else holds is a conflict, and nothing is written.
    #[default]
    Never,
    /// If the object carries our own creator mark.
    IfCreated,
    /// Yes: we have written the object before.
    Always,
}

/// An owner as an object's metadata names it; never one that blocks its own deletion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnerReference {
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace: only objects there may have it as their owner.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// A command to run in a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExecOrder {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The container; none for the only or default one.
    pub container: Option<String>,
    /// Program and arguments; no shell.
    pub command: Vec<String>,
    /// The token of this one execution.
    pub token: String,
}

/// A message for people, written as an Event on our own object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notice {
    /// CamelCase reason.
    pub reason: String,
    /// The text.
    pub message: String,
    /// Whether it is a warning.
    pub warning: bool,
}

/// What to do with an object that is already there.
///
/// An object that carries our own creator mark is not "there already": it is an earlier attempt of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Existing {
    /// Leave it as it is.
    Skip,
    /// Write to it; it stays somebody else's.
    Adopt,
    /// Refuse.
    Fail,
    /// Write to it as server-side apply does, without taking fields from others.
    Apply,
}

/// How a patch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PatchKind {
    /// Strategic merge patch.
    Strategic,
    /// JSON merge patch.
    Merge,
    /// JSON patch.
    Json,
    /// Server-side apply.
    Apply,
}

/// What happens to what a deleted object owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Propagation {
    /// Deleted after it.
    #[default]
    Background,
    /// Deleted before it.
    Foreground,
    /// Kept.
    Orphan,
}

/// An object as the server returned it after our write: what later observations are measured against.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stamp {
    /// Which incarnation.
    pub uid: String,
    /// Its generation.
    #[serde(default)]
    pub generation: i64,
    /// Its resourceVersion.
    pub version: u64,
    /// Fingerprint of the fields that our field manager holds ([`held_fields`](super::held_fields)).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
}

/// What came back for an effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The effect it belongs to.
    pub ticket: Ticket,
    /// When it came back.
    pub at: Timestamp,
    /// What came back.
    pub result: Result<Done, Failure>,
}

/// An effect that took place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Done {
    /// The cluster it took place in, without impersonation.
    pub place: ClusterRef,
    /// The object that was written, resolved by discovery.
    pub target: Option<EffectTarget>,
    /// Whether we made it, as opposed to finding it there.
    pub created: bool,
    /// Whether it was left as it was (`Existing::Skip`).
    pub skipped: bool,
    /// Whether it is gone already (deletions only).
    pub gone: bool,
    /// Whether it has our object as its owner now.
    pub owned: bool,
    /// Whether our object was taken off as its owner ([`Verb::Disown`] only).
    pub disowned: bool,
    /// Fields that were left to others, each with who holds it: for people.
    pub yielded: Vec<String>,
    /// Fields that others had changed and that were taken back, each with who had: for people.
    pub taken_back: Vec<String>,
    /// The object after the write.
    pub stamp: Option<Stamp>,
    /// Exit code of a command.
    pub exit: Option<i32>,
}

/// Why an effect did not take place. Texts are for people and hold no secret values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Failure {
    /// The object is there and the plan said to fail on that.
    #[error("{0} exists already")]
    AlreadyExists(String),
    /// Another field manager holds a field.
    #[error("{0}")]
    FieldConflict(String),
    /// The object changed since it was read, or its uid is another one.
    #[error("{0}")]
    StalePrecondition(String),
    /// The object does not carry our mark, or it is another one than we made: it is not ours to delete.
    #[error("{0}")]
    NotOurs(String),
    /// The identity lacks a right.
    #[error("not allowed to {0}")]
    Forbidden(Right),
    /// The server refused the object.
    #[error("{0}")]
    Invalid(String),
    /// The server refused to change a field that cannot be changed.
    #[error("{message}")]
    Immutable {
        /// The object, as discovery resolved it.
        target: EffectTarget,
        /// For people.
        message: String,
    },
    /// The kind is not served (now).
    #[error("{0}")]
    NotServed(String),
    /// The target, or its namespace, is not there.
    #[error("{0}")]
    Gone(String),
    /// The target, or its namespace, is being deleted.
    #[error("{0}")]
    Terminating(String),
    /// The ServiceAccount is not there.
    #[error("{0}")]
    IdentityGone(String),
    /// What leads to the other cluster is not there: the Secret with its kubeconfig, or the ControlPlane that names it.
    #[error("{0}")]
    CredentialAbsent(String),
    /// The server asks for patience.
    #[error("the API server asks to wait {} s", .0.as_secs())]
    Throttled(Duration),
    /// A fault that may pass: no connection, time-out, 5xx.
    #[error("{0}")]
    Transient(String),
    /// The text of the action could not be rendered.
    #[error("{0}")]
    Render(String),
    /// A command ended with a failure.
    #[error("command exited with code {0}")]
    Exit(i32),
    /// The driver did not start it: not leading any more, or the journal could not be saved before.
    #[error("not started")]
    NotStarted,
    /// Whether it took place cannot be known.
    #[error("{0}")]
    Unknowable(String),
}

impl Failure {
    /// The word for it, in metrics and logs: it says nothing of what it is about.
    pub fn word(&self) -> &'static str {
        match self {
            Self::AlreadyExists(_) => "already_exists",
            Self::FieldConflict(_) => "conflict",
            Self::StalePrecondition(_) => "stale",
            Self::NotOurs(_) => "not_ours",
            Self::Forbidden(_) => "forbidden",
            Self::Invalid(_) => "invalid",
            Self::Immutable { .. } => "immutable",
            Self::NotServed(_) => "not_served",
            Self::Gone(_) => "gone",
            Self::Terminating(_) => "terminating",
            Self::IdentityGone(_) => "identity_gone",
            Self::CredentialAbsent(_) => "credential_absent",
            Self::Throttled(_) => "throttled",
            Self::Transient(_) => "transient",
            Self::Render(_) => "render",
            Self::Exit(_) => "exit",
            Self::NotStarted => "not_started",
            Self::Unknowable(_) => "unknowable",
        }
    }
}
