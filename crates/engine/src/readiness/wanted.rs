//! The state somebody waits for, and whether it holds.

use std::fmt;

use linchpin_words::{GroupKind, similar};
use serde_json::Value;

use super::{ReadinessOptions, ReadinessRow, Related, State, Verdict, subject::JudgedObject};

/// The state somebody waits for: what the word in `state` means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wanted {
    /// It is there and stays (`Exists`, `Defined`, `Created`, `Present`).
    Exists,
    /// It is not there (`Absent`, `NotFound`, `Deleted`).
    Absent,
    /// Others may rely on it (`Ready`, `Available`, `Current`).
    Ready,
    /// It has run to its good end (`Completed`, `Complete`, `Succeeded`).
    Completed,
    /// It has failed (`Failed`).
    Failed,
    /// A condition of this type is True, or the phase is this word, as written.
    Word(String),
}

impl Wanted {
    /// The meaning of a word. Words with a meaning of their own are known in any spelling.
    pub fn parse(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "exists" | "defined" | "created" | "present" => Self::Exists,
            "absent" | "notfound" | "deleted" => Self::Absent,
            "ready" | "available" | "current" => Self::Ready,
            "completed" | "complete" | "succeeded" => Self::Completed,
            "failed" => Self::Failed,
            _ => Self::Word(word.to_owned()),
        }
    }

    /// What an omitted state means for a kind of this row's.
    pub fn omitted(row: &ReadinessRow) -> Self {
        if row.is_generic() { Self::Exists } else { Self::Ready }
    }

    /// Whether presence alone decides, so that neither the object's content nor related objects matter.
    pub fn is_presence(&self) -> bool {
        matches!(self, Self::Exists | Self::Absent)
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exists => "Exists",
            Self::Absent => "Absent",
            Self::Ready => "Ready",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::Word(word) => word,
        })
    }
}

/// What any word may need beyond the kind's own rule.
const WORD_READS: &[&str] = &[
    "status.phase",
    "status.observedGeneration",
    "status.conditions.type",
    "status.conditions.status",
    "status.conditions.reason",
    "status.conditions.message",
    "status.conditions.observedGeneration",
];

/// The paths that [`judge`](super::judge) reads for a state of a kind of this row's, sorted.
pub fn reads_for(wanted: &Wanted, row: &ReadinessRow) -> Vec<&'static str> {
    let mut paths = match wanted {
        Wanted::Exists | Wanted::Absent => vec!["metadata.deletionTimestamp"],
        Wanted::Ready | Wanted::Failed => row.reads.to_vec(),
        Wanted::Completed | Wanted::Word(_) => [row.reads, WORD_READS].concat(),
    };
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Whether a wanted state holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// It holds.
    pub met: bool,
    /// Nothing is under way: whether it holds or not, a guard may decide on it.
    pub settled: bool,
    /// It does not hold because the object failed.
    pub failed: bool,
    /// What was found.
    pub verdict: Verdict,
}

impl Judgement {
    fn new(met: bool, settled: bool, verdict: Verdict) -> Self {
        Self { met, settled, failed: !met && verdict.state == State::Failed, verdict }
    }
}

impl ReadinessRow {
    /// Judges whether a wanted state of an object of this row's holds; `None` is one that was looked for and is not there.
    pub(crate) fn judge(
        &self,
        wanted: &Wanted,
        kind: &GroupKind,
        object: Option<&Value>,
        options: &ReadinessOptions<'_>,
        related: &dyn Related,
    ) -> Judgement {
        let Some(object) = object else {
            let verdict = Verdict::new(State::NotFound, "NotFound", "it does not exist");
            return Judgement::new(*wanted == Wanted::Absent, true, verdict);
        };
        if wanted.is_presence() {
            return by_presence(wanted, &JudgedObject::new(kind, object, options, related));
        }
        let verdict = self.verdict(kind, object, options, related);
        let settled = verdict.state != State::InProgress;
        let met = match wanted {
            Wanted::Completed => verdict.state == State::Completed,
            Wanted::Failed => verdict.state == State::Failed,
            _ => verdict.state.is_ready(),
        };
        match wanted {
            Wanted::Word(word) => by_word(&[word], object, options, related, kind, verdict),
            // A kind whose end we know nothing about may still say so in the common words.
            Wanted::Completed if !met && !self.ends => {
                by_word(&["Complete", "Completed", "Succeeded"], object, options, related, kind, verdict)
            }
            Wanted::Failed if !met && self.is_generic() => {
                by_word(&["Failed"], object, options, related, kind, verdict)
            }
            _ => Judgement::new(met, settled, verdict),
        }
    }
}

fn by_presence(wanted: &Wanted, subject: &JudgedObject<'_>) -> Judgement {
    // What is being deleted is no longer to be relied on, and not gone either.
    if subject.is_terminating() {
        let mut verdict = Verdict::in_progress("Terminating", "it is being deleted");
        verdict.progress = subject.marker(verdict.state);
        return Judgement::new(false, false, verdict);
    }
    let mut verdict = Verdict::ready("Exists", "it exists");
    verdict.progress = subject.marker(verdict.state);
    Judgement::new(*wanted == Wanted::Exists, true, verdict)
}

/// The state that was probably meant by a word that nothing is called.
fn meant(word: &str) -> String {
    similar::did_you_mean(
        word,
        ["Exists", "Absent", "Ready", "Available", "Completed", "Succeeded", "Failed"],
    )
}

fn by_word(
    words: &[&str],
    object: &Value,
    options: &ReadinessOptions<'_>,
    related: &dyn Related,
    kind: &GroupKind,
    verdict: Verdict,
) -> Judgement {
    let subject = JudgedObject::new(kind, object, options, related);
    if subject.is_terminating() {
        return Judgement::new(false, false, verdict);
    }
    if let Some(stale) = subject.stale() {
        return Judgement::new(false, false, Verdict { progress: verdict.progress, ..stale });
    }
    let phase = subject.text(&["status", "phase"]);
    for word in words {
        let found = match subject.holds(word) {
            Some(condition) => Some(condition.describe()),
            None if phase == *word => Some(format!("phase is {phase}")),
            None => None,
        };
        if let Some(message) = found {
            let state = match *word {
                "Failed" => State::Failed,
                "Complete" | "Completed" | "Succeeded" => State::Completed,
                _ => State::Ready,
            };
            let progress = verdict.progress;
            return Judgement::new(
                true,
                true,
                Verdict { progress, ..Verdict::new(state, (*word).to_owned(), message) },
            );
        }
    }
    if verdict.state == State::Failed {
        return Judgement::new(false, true, verdict);
    }
    let (word, settled) = (words.first().copied().unwrap_or_default(), verdict.state != State::InProgress);
    let message = match (subject.condition(word), phase) {
        (Some(condition), _) => condition.describe(),
        (None, "") => format!("it has neither a condition {word} nor a phase{}", meant(word)),
        (None, phase) => format!("phase is {phase}, not {word}{}", meant(word)),
    };
    let progress = verdict.progress;
    Judgement::new(
        false,
        settled,
        Verdict { progress, ..Verdict::in_progress(format!("Not{word}"), message) },
    )
}
