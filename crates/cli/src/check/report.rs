//! What is reported of a check, and how it is printed.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::facts::UnseenFact;

/// How many names are listed; of more, the number.
const FEW: usize = 3;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckVerdict {
    Ok,
    Warning,
    Failed,
    Skipped,
}

impl CheckVerdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    fn sign(self) -> char {
        match self {
            Self::Ok => '✓',
            Self::Warning => '!',
            Self::Failed => '✗',
            Self::Skipped => '·',
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) id: &'static str,
    pub(super) verdict: CheckVerdict,
    pub(super) message: String,
    /// What to try; empty where nothing is to be done.
    pub(super) hint: String,
}

/// Checks that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Category {
    pub(super) name: &'static str,
    pub(super) checks: Vec<Check>,
}

/// How a check ended, why, and what to try.
pub(super) type CheckEnd = (CheckVerdict, String, String);

pub(super) fn ok(message: impl Into<String>) -> CheckEnd {
    (CheckVerdict::Ok, message.into(), String::new())
}

pub(super) fn failed(message: impl Into<String>, hint: impl Into<String>) -> CheckEnd {
    (CheckVerdict::Failed, message.into(), hint.into())
}

pub(super) fn warning(message: impl Into<String>, hint: impl Into<String>) -> CheckEnd {
    (CheckVerdict::Warning, message.into(), hint.into())
}

pub(super) fn skipped(message: impl Into<String>) -> CheckEnd {
    (CheckVerdict::Skipped, message.into(), String::new())
}

/// What was not seen, as the reason why nothing is said about it.
pub(super) fn unseen(what: &str, why: &UnseenFact) -> CheckEnd {
    match why {
        UnseenFact::Absent => skipped(format!("{what}: it is not there")),
        UnseenFact::Forbidden(_) => skipped(format!("you may not read {what}")),
        UnseenFact::Failed(error) => skipped(format!("{what} cannot be read: {error}")),
    }
}

/// Some of several names.
pub(super) fn list(names: &[String]) -> String {
    let mut shown = names.iter().take(FEW).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > FEW {
        let _ = write!(shown, " and {} more", names.len() - FEW);
    }
    shown
}

/// The checks that fail.
pub(super) fn failures(categories: &[Category]) -> Vec<&'static str> {
    let all = categories.iter().flat_map(|category| &category.checks);
    all.filter(|check| check.verdict == CheckVerdict::Failed).map(|check| check.id).collect()
}

/// For programs: `linchpin.dev/check/v1`.
pub(super) fn document(categories: &[Category]) -> Value {
    let shown = |check: &Check| {
        let mut shown = json!({"id": check.id, "result": check.verdict.as_str(), "message": check.message});
        if !check.hint.is_empty() {
            shown["hint"] = json!(check.hint);
        }
        shown
    };
    let categories_shown: Vec<Value> = categories
        .iter()
        .map(|category| {
            let checks: Vec<Value> = category.checks.iter().map(shown).collect();
            json!({"name": category.name, "checks": checks})
        })
        .collect();
    json!({"schema": "linchpin.dev/check/v1", "ok": failures(categories).is_empty(), "categories": categories_shown})
}

/// For people: a line for each check, and one that counts.
pub(super) fn text_of(categories: &[Category], short: bool) -> String {
    let mut out = String::new();
    for category in categories {
        let shown: Vec<&Check> =
            category.checks.iter().filter(|check| !short || check.verdict != CheckVerdict::Ok).collect();
        if shown.is_empty() {
            continue;
        }
        if !short {
            let _ = writeln!(out, "{}", category.name);
        }
        for check in shown {
            let _ = writeln!(out, "{} {}: {}", check.verdict.sign(), check.id, check.message);
            if !check.hint.is_empty() {
                let _ = writeln!(out, "    → {}", check.hint);
            }
        }
    }
    let count = |verdict: CheckVerdict| {
        let all = categories.iter().flat_map(|category| &category.checks);
        all.filter(|check| check.verdict == verdict).count()
    };
    let _ = writeln!(
        out,
        "{} ok, {} warnings, {} failed, {} skipped",
        count(CheckVerdict::Ok),
        count(CheckVerdict::Warning),
        count(CheckVerdict::Failed),
        count(CheckVerdict::Skipped)
    );
    out
}
