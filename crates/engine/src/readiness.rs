//! When is an object ready for others to depend on?
//!
//! One published table ([`table()`], `docs/readiness.md`) and one generic rule ([`GENERIC`]) for all other kinds. The
//! question is not "has its controller reconciled it" but "may others rely on it now": a running Job, a failed Pod
//! and a custom resource nobody has looked at yet are not ready.
//!
//! What it promises: [`verdict`] is total and deterministic, works on a projection that holds no more than
//! its row reads, never takes a status of an older generation for an answer, and gives a reason a person can act
//! on. What a verdict wants to know of other objects is named by [`ReadinessRow::needs`]; an answer that is unknown proves nothing.
//!
//! The engine calls [`judge`] with the state somebody waits for; plans ask [`reads_for`] and [`ReadinessRow::needs`] what to watch.

mod control;
mod foreign;
mod generic;
mod network;
mod related;
mod runs;
mod storage;
pub(crate) mod subject;
mod table;
mod wanted;
mod workloads;

use std::borrow::Cow;

use linchpin_words::{GroupKind, Reason, Text};
use serde_json::Value;

use self::subject::JudgedObject;
pub use self::{
    related::{Nothing, Related, RelatedAnswer, RelatedQuery, RelatedSelect},
    table::{Applies, GENERIC, OURS, ReadinessRow, table},
    wanted::{Judgement, Wanted, reads_for},
};

/// How far an object has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It is not there. Only [`judge`] says so: [`verdict`] always has an object.
    NotFound,
    /// It is there and on its way, or that is not known yet.
    InProgress,
    /// Others may rely on it.
    Ready,
    /// It has run to its good end, which also counts as ready.
    Completed,
    /// It will not become ready unless somebody does something.
    Failed,
}

impl State {
    /// The word that status and templates show.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::InProgress => "NotReady",
            Self::Ready => "Ready",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
        }
    }

    /// Whether others may rely on the object.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Ready | Self::Completed)
    }
}

/// What a person reads of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How far it has come.
    pub state: State,
    /// Why, as one CamelCase word: ours, or the one its controller gave.
    pub reason: Cow<'static, str>,
    /// Why, as a sentence.
    pub message: Text,
    /// Changes when the object moves on (counters, conditions), never because of time stamps, messages or restarts.
    pub progress: u64,
}

/// Longest message of a verdict in bytes: other people's messages end up in our status.
const MESSAGE_LIMIT: usize = 512;

impl Verdict {
    fn new(state: State, reason: impl Into<Cow<'static, str>>, message: impl Into<Text>) -> Self {
        let mut message: Text = message.into();
        if message.len() > MESSAGE_LIMIT {
            let end = (0..=MESSAGE_LIMIT).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
            message = [&message[..end], "…"].concat().into();
        }
        Self { state, reason: reason.into(), message, progress: 0 }
    }

    fn ready(reason: impl Into<Cow<'static, str>>, message: impl Into<Text>) -> Self {
        Self::new(State::Ready, reason, message)
    }

    fn in_progress(reason: impl Into<Cow<'static, str>>, message: impl Into<Text>) -> Self {
        Self::new(State::InProgress, reason, message)
    }

    fn failed(reason: impl Into<Cow<'static, str>>, message: impl Into<Text>) -> Self {
        Self::new(State::Failed, reason, message)
    }
}

/// What a taught rule says of an object: yes, no, not known yet, or that it cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleAnswer {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// The data it needs is not there (yet).
    Unknown,
    /// What was asked does not fit the data.
    Wrong,
}

/// What somebody taught us about a kind: replaces its rule, not the checks for deletion and generation.
pub trait TaughtRule {
    /// Whether the object is ready.
    fn ready(&self, object: &Value) -> RuleAnswer;
    /// Whether it has failed; asked first.
    fn failed(&self, object: &Value) -> RuleAnswer;
    /// Whether it says when the object is ready; otherwise the kind's own rule does.
    fn knows_ready(&self) -> bool {
        true
    }
    /// What of the profile does not hold, as it was last asked.
    fn why_not(&self) -> Option<String> {
        None
    }
    /// What the object itself says about why it is not ready.
    fn says(&self, _object: &Value) -> Option<String> {
        None
    }
    /// What is said where it is a door's own rule and no profile.
    fn words(&self) -> Option<&RuleWords> {
        None
    }
}

/// What a door says of an object that its own rule judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleWords {
    /// Why it is not ready.
    pub not_ready: String,
    /// That it failed.
    pub failed: String,
}

/// What the one who waits adds to the rule.
#[derive(Clone, Copy, Default)]
pub struct ReadinessOptions<'a> {
    /// Workloads only: ready as soon as this many replicas are available.
    pub min_replicas: Option<i64>,
    /// Whether the kind's schema promises `status.conditions` or `status.observedGeneration`, where that is known.
    pub status_declared: Option<bool>,
    /// The profile for this kind, if somebody wrote one.
    pub profile: Option<&'a dyn TaughtRule>,
}

/// The row of the table that applies to a kind, or the generic rule. Whether it is a kind of ours, the asker knows.
pub fn row(kind: &GroupKind, ours: bool) -> &'static ReadinessRow {
    if ours {
        return &OURS;
    }
    table().find(|row| row.applies_to(kind)).unwrap_or(&GENERIC)
}

/// How far an object of a kind that is not ours has come.
pub fn verdict(
    kind: &GroupKind,
    object: &Value,
    options: &ReadinessOptions<'_>,
    related: &dyn Related,
) -> Verdict {
    row(kind, false).verdict(kind, object, options, related)
}

/// Whether a wanted state of a kind that is not ours holds; `None` is an object that was looked for and is not there.
pub fn judge(
    wanted: &Wanted,
    kind: &GroupKind,
    object: Option<&Value>,
    options: &ReadinessOptions<'_>,
    related: &dyn Related,
) -> Judgement {
    row(kind, false).judge(wanted, kind, object, options, related)
}

impl ReadinessRow {
    /// What a verdict on this object wants to know of other objects. Depends on the object: ask again when it changes.
    pub fn needs(&self, object: &Value) -> Vec<RelatedQuery> {
        (self.needs)(object)
    }

    /// How far an object of this row's has come.
    pub fn verdict(
        &self,
        kind: &GroupKind,
        object: &Value,
        options: &ReadinessOptions<'_>,
        related: &dyn Related,
    ) -> Verdict {
        let subject = JudgedObject::new(kind, object, options, related);
        let mut verdict = conclude(self, &subject);
        verdict.progress = subject.marker(verdict.state);
        verdict
    }
}

fn conclude(row: &ReadinessRow, subject: &JudgedObject<'_>) -> Verdict {
    if subject.is_terminating() {
        return Verdict::in_progress("Terminating", "it is being deleted");
    }
    if let Some(profile) = subject.options.profile {
        let taught = subject.stale().or_else(|| by_profile(profile, subject));
        if let Some(verdict) = taught {
            return verdict;
        }
    }
    if row.observes
        && let Some(stale) = subject.stale()
    {
        return stale;
    }
    (row.rule)(subject)
}

/// What a profile says; nothing where it leaves that to the kind's own rule.
fn by_profile(profile: &dyn TaughtRule, subject: &JudgedObject<'_>) -> Option<Verdict> {
    subject.mark_conditions();
    let or = |otherwise: &str| profile.says(subject.object).unwrap_or_else(|| otherwise.to_owned());
    let why = || profile.why_not().map_or_else(String::new, |why| format!(": {why}"));
    // What cannot be evaluated says neither that it failed nor that it did not.
    let wrong = |field: &str| {
        let message = format!("{field} of the readiness profile for this kind cannot be evaluated{}", why());
        Verdict::in_progress("ProfileError", message)
    };
    match profile.failed(subject.object) {
        RuleAnswer::True => {
            if let Some(words) = profile.words() {
                return Some(Verdict::failed(Reason::Failed.as_str(), words.failed.clone()));
            }
            let otherwise = "the readiness profile for this kind says that it failed";
            return Some(Verdict::failed("FailedByProfile", or(otherwise)));
        }
        RuleAnswer::Wrong => return Some(wrong("failedWhen")),
        RuleAnswer::False | RuleAnswer::Unknown => {}
    }
    profile.knows_ready().then(|| match (profile.ready(subject.object), profile.words()) {
        (RuleAnswer::False | RuleAnswer::Unknown, Some(words)) => {
            Verdict::in_progress(Reason::NotReady.as_str(), words.not_ready.clone())
        }
        (RuleAnswer::True, _) => {
            Verdict::ready("ReadyByProfile", "the readiness profile for this kind says that it is ready")
        }
        (RuleAnswer::False, None) => {
            let otherwise = format!("not ready by the readiness profile for this kind{}", why());
            Verdict::in_progress("NotReadyByProfile", or(&otherwise))
        }
        (RuleAnswer::Unknown, None) => {
            let otherwise =
                format!("what the readiness profile for this kind reads is not there yet{}", why());
            Verdict::in_progress("UndecidedByProfile", or(&otherwise))
        }
        (RuleAnswer::Wrong, _) => wrong("readyWhen"),
    })
}
