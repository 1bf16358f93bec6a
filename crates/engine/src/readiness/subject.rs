//! The object under judgement, and convenient ways to look at it.
//!
//! Reads are forgiving: a field that is missing, null or of another type than expected is simply not there. What
//! counts as progress is marked while it is read, so that a rule cannot forget to.

use std::{cell::Cell, fmt::Write as _};

use linchpin_words::GroupKind;
use serde_json::{Map, Value};

use super::{ReadinessOptions, Related, State, Verdict};

/// What lies at a path, if it is there and not null.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter()
        .try_fold(value, |value, name| field(value.as_object()?, name))
        .filter(|value| !value.is_null())
}

/// A field by name. Objects in a status are small, and comparing a few names is faster than hashing one.
#[inline]
fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if object.len() > 12 {
        return object.get(name);
    }
    object.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// The text at a path; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a path.
pub(crate) fn number(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

/// The elements of the list at a path.
pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether the flag at a path is set.
pub(crate) fn flag(value: &Value, path: &[&str]) -> bool {
    at(value, path).and_then(Value::as_bool) == Some(true)
}

/// Whether an object is being deleted.
pub(crate) fn is_terminating(object: &Value) -> bool {
    at(object, &["metadata", "deletionTimestamp"]).is_some()
}

/// One entry of `status.conditions`.
#[derive(Clone, Copy)]
pub(super) struct ObjectCondition<'a> {
    pub(super) kind: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    observed: Option<i64>,
}

impl<'a> ObjectCondition<'a> {
    fn of(entry: &'a Value) -> Self {
        let mut condition = Self { kind: "", status: "", reason: "", message: "", observed: None };
        for (key, value) in entry.as_object().into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            match key.as_str() {
                "type" => condition.kind = text,
                "status" => condition.status = text,
                "reason" => condition.reason = text,
                "message" => condition.message = text,
                "observedGeneration" => condition.observed = value.as_i64(),
                _ => {}
            }
        }
        condition
    }

    pub(super) fn is_true(&self) -> bool {
        self.status == "True"
    }

    pub(super) fn is_false(&self) -> bool {
        self.status == "False"
    }

    /// The controller's own reason, or ours where it gave none.
    pub(super) fn reason_or(&self, other: &'static str) -> std::borrow::Cow<'static, str> {
        if self.reason.is_empty() { other.into() } else { self.reason.to_owned().into() }
    }

    /// `Ready is False: Creating: waiting for the API server`.
    pub(super) fn describe(&self) -> String {
        let mut sentence = String::with_capacity(64 + self.message.len());
        let status = if self.status.is_empty() { "not set" } else { self.status };
        // Writing to a string cannot fail.
        let _ = write!(sentence, "{} is {status}", self.kind);
        for part in [self.reason, self.message] {
            if !part.is_empty() {
                let _ = write!(sentence, ": {part}");
            }
        }
        sentence
    }

    /// What the controller says, without naming the condition; the fallback where it says nothing.
    pub(super) fn say(&self, fallback: &str) -> String {
        match (self.reason, self.message) {
            ("", "") => fallback.to_owned(),
            ("", only) | (only, "") => only.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

/// The object under judgement.
pub(super) struct JudgedObject<'a> {
    pub(super) kind: &'a GroupKind,
    pub(super) object: &'a Value,
    pub(super) options: &'a ReadinessOptions<'a>,
    pub(super) related: &'a dyn Related,
    /// The two parts that nearly every look goes into.
    metadata: Option<&'a Map<String, Value>>,
    status: Option<&'a Map<String, Value>>,
    marker: Cell<u64>,
}

impl<'a> JudgedObject<'a> {
    pub(super) fn new(
        kind: &'a GroupKind,
        object: &'a Value,
        options: &'a ReadinessOptions<'a>,
        related: &'a dyn Related,
    ) -> Self {
        let part =
            |name| object.as_object().and_then(|object| field(object, name)).and_then(Value::as_object);
        let (metadata, status) = (part("metadata"), part("status"));
        Self { kind, object, options, related, metadata, status, marker: Cell::new(FNV_OFFSET) }
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.in_metadata("deletionTimestamp").is_some()
    }

    pub(super) fn text(&self, path: &[&str]) -> &'a str {
        text(self.object, path)
    }

    pub(super) fn number(&self, path: &[&str]) -> Option<i64> {
        number(self.object, path)
    }

    pub(super) fn list(&self, path: &[&str]) -> &'a [Value] {
        list(self.object, path)
    }

    pub(super) fn flag(&self, path: &[&str]) -> bool {
        flag(self.object, path)
    }

    /// A field of the status, if it is there and not null. Inlined, so that the name is compared as the constant it is.
    #[inline]
    pub(super) fn in_status(&self, name: &str) -> Option<&'a Value> {
        self.status.and_then(|status| field(status, name)).filter(|value| !value.is_null())
    }

    #[inline]
    fn in_metadata(&self, name: &str) -> Option<&'a Value> {
        self.metadata.and_then(|metadata| field(metadata, name)).filter(|value| !value.is_null())
    }

    fn observed_generation(&self) -> Option<i64> {
        self.in_status("observedGeneration").and_then(Value::as_i64)
    }

    /// A counter in the status, marked as progress; a counter that is missing is zero, as the API omits zeros.
    #[inline]
    pub(super) fn counter(&self, name: &str) -> i64 {
        let count = self.in_status(name).and_then(Value::as_i64).unwrap_or(0);
        self.mark_number(count);
        count
    }

    /// The phase, marked as progress.
    pub(super) fn phase(&self) -> &'a str {
        let phase = self.in_status("phase").and_then(Value::as_str).unwrap_or_default();
        self.mark(phase.as_bytes());
        phase
    }

    fn generation(&self) -> Option<i64> {
        self.in_metadata("generation").and_then(Value::as_i64)
    }

    fn entries(&self) -> &'a [Value] {
        self.in_status("conditions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn conditions(&self) -> impl Iterator<Item = ObjectCondition<'a>> + use<'a> {
        self.entries().iter().map(ObjectCondition::of)
    }

    pub(super) fn condition(&self, kind: &str) -> Option<ObjectCondition<'a>> {
        let is_it = |entry: &&Value| {
            let name = entry.as_object().and_then(|entry| field(entry, "type"));
            name.and_then(Value::as_str) == Some(kind)
        };
        self.entries().iter().find(is_it).map(ObjectCondition::of)
    }

    /// Whether a condition was made for an older generation; one that does not say is taken as current.
    pub(super) fn is_outdated(&self, condition: &ObjectCondition<'_>) -> bool {
        matches!((condition.observed, self.generation()), (Some(observed), Some(wanted)) if observed < wanted)
    }

    /// A condition, if it is true now.
    pub(super) fn holds(&self, kind: &str) -> Option<ObjectCondition<'a>> {
        self.condition(kind).filter(|condition| condition.is_true() && !self.is_outdated(condition))
    }

    /// In progress, if the object reports that it has not seen its latest generation.
    pub(super) fn stale(&self) -> Option<Verdict> {
        let observed = self.observed_generation()?;
        let wanted = self.generation()?;
        self.mark_number(observed);
        (observed < wanted).then(|| outdated(wanted, observed))
    }

    /// In progress, for a condition that was made for an older generation.
    pub(super) fn outdated(&self, condition: &ObjectCondition<'_>) -> Verdict {
        outdated(self.generation().unwrap_or(0), condition.observed.unwrap_or(0))
    }

    /// In progress, if a kind that always reports the generation it has seen does not yet.
    pub(super) fn unobserved(&self) -> Option<Verdict> {
        if self.observed_generation().is_some() {
            return None;
        }
        Some(Verdict::in_progress("NotObserved", "its controller has not looked at it yet"))
    }

    /// Marks type, status and reason of every condition as progress; time stamps and messages may change at will.
    pub(super) fn mark_conditions(&self) {
        for condition in self.conditions() {
            for part in [condition.kind, condition.status, condition.reason] {
                self.mark(part.as_bytes());
            }
        }
    }

    /// Adds to the progress marker (FNV-1a, so that the same object gives the same marker in every process).
    pub(super) fn mark(&self, bytes: &[u8]) {
        let mut hash = self.marker.get();
        for byte in bytes.iter().chain(&[0xff]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
        self.marker.set(hash);
    }

    /// Adds a number to the progress marker, all of it at once.
    pub(super) fn mark_number(&self, number: i64) {
        self.marker.set((self.marker.get() ^ number.cast_unsigned()).wrapping_mul(FNV_PRIME));
    }

    pub(super) fn marker(&self, state: State) -> u64 {
        self.mark(&[state as u8]);
        self.marker.get()
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn outdated(wanted: i64, observed: i64) -> Verdict {
    let message = if observed < 1 {
        format!("generation {wanted} has not been looked at by its controller yet")
    } else {
        format!("generation {wanted} has not been looked at yet: its status is for generation {observed}")
    };
    Verdict::in_progress("StaleGeneration", message)
}
