//! From report and journal to the status of a BootDependency: the document's condition, count and messages, and a row
//! for each entry.

use linchpin_api::{
    BootDependency, BootDependencyStatus, BootEntry, CommonStatus, boot_dependency::EntryStatus,
};
use linchpin_engine::{
    contract::Notice,
    journal::StepState,
    plan::Plan,
    step::{Phase, Report, StepReport},
};
use linchpin_words::{Condition, ConditionType, ObjectRef, Reason, condition, text};

use super::{
    address::{step_names, target_and_port},
    compile::{forbidden, observed_from, waits_for_reference},
};
use crate::{
    door::{self, StatusInput, Tally, object_ref},
    entries::{self, find, is_unseen},
    journal,
    names::NamedStep,
};

/// The phase of an object whose entries all hold.
const READY: &str = "Ready";

/// The object's status as it should be now. Equal to the one it has where nothing has changed.
pub fn draw(object: &BootDependency, status_input: &StatusInput<'_>) -> BootDependencyStatus {
    let generation = object.metadata.generation.unwrap_or_default();
    let current = object.status.as_ref();
    let report = status_input.report;
    if let Some(same) = entries::still(current, generation, status_input) {
        return same;
    }
    let all = object.spec.depends_on.len();
    let rows = rows(object, status_input);
    let met = count(object, report);
    let words = PhaseWords::of(object, report, met);
    let mut conditions = current.map(|status| status.common.conditions.clone()).unwrap_or_default();
    for (kind, holds) in [
        (ConditionType::Ready, words.phase == READY),
        (ConditionType::Reconciling, words.reconciling),
        (ConditionType::Stalled, words.phase == Phase::Failed.as_str()),
    ] {
        let (reason, message) = (words.reason, &words.condition);
        let new = Condition::new(kind, holds, reason, message, generation, status_input.now);
        condition::set(&mut conditions, new);
    }
    let before = current.map_or(&[][..], |status| status.common.blocked_by.as_slice());
    let mut blocked_by = entries::blockers(before, status_input);
    for blocker in &mut blocked_by {
        // What is dialled because it may not be read is held by that, and its entry says so.
        let is_forbidden = |row: &&EntryStatus| {
            blocker.step.as_ref() == Some(&row.name)
                && row.reason == Reason::Forbidden.as_str()
                && blocker.reason != row.reason
        };
        if let Some(row) = rows.iter().find(is_forbidden) {
            blocker.reason.clone_from(&row.reason);
            blocker.message.clone_from(&row.message);
        }
    }
    BootDependencyStatus {
        common: CommonStatus {
            observed_generation: generation,
            phase: Some(words.phase.to_owned()),
            message: Some(text::line(&message(&words, status_input))),
            conditions,
            blocked_by,
            edges: entries::edges(current.and_then(|status| status.common.edges.as_ref()), status_input),
            journal: journal::write(status_input.journal),
            ..CommonStatus::default()
        },
        resolved_dependencies: Some(format!("{met}/{all}")),
        entries: rows,
        workloads: current.map(|status| status.workloads.clone()).unwrap_or_default(),
    }
}

/// Whether an entry holds now.
pub(super) fn is_met(step: &StepReport) -> bool {
    step.state == StepState::Met && step.ready
}

/// What is said of the whole.
struct PhaseWords {
    phase: &'static str,
    reconciling: bool,
    reason: Reason,
    /// The message of the conditions.
    condition: String,
}

/// How many entries hold.
fn count(object: &BootDependency, report: &Report) -> usize {
    report.steps.iter().filter(|step| is_met(step)).count().min(object.spec.depends_on.len())
}

/// The word for where an object is.
pub(super) fn phase_word(object: &BootDependency, report: &Report) -> &'static str {
    PhaseWords::of(object, report, count(object, report)).phase
}

/// How much of what an object waits for is there.
pub(super) fn tally(object: &BootDependency, report: &Report) -> Tally {
    let names = step_names(&object.spec.depends_on.iter().collect::<Vec<_>>());
    let met = |named: &NamedStep| find(report, &named.id).is_some_and(is_met);
    Tally {
        generation: object.metadata.generation.unwrap_or_default(),
        all: names.len(),
        unmet: names.iter().filter(|named| !met(named)).map(|named| named.id.clone()).collect(),
    }
}

/// The event of a new phase, for those phases that the events of entries do not report.
pub(super) fn phase_event(object: &BootDependency, report: &Report) -> Option<Notice> {
    if report.cycle.is_some() && report.phase != Phase::Suspended {
        let message = text::line(&circle(object, report));
        return Some(Notice { reason: "CircularDependency".to_owned(), message, warning: true });
    }
    matches!(report.phase, Phase::Failed | Phase::Suspended).then(|| door::phase_event(report))
}

/// The circle that an object waits in, in the document's words: the workloads, from this one on.
fn circle(object: &BootDependency, report: &Report) -> String {
    let own = object_ref(object);
    let members: Vec<&ObjectRef> = report
        .cycle
        .iter()
        .flat_map(|path| &path.0)
        .filter(|node| node.cluster.is_none() && node.object.kind == own.kind)
        .map(|node| &*node.object)
        .collect();
    let from = members.iter().position(|member| **member == own).unwrap_or_default();
    let around = members[from..].iter().chain(&members[..from]).chain(members.get(from));
    let names: Vec<String> = around
        .map(|member| match member.namespace.as_ref().filter(|place| own.namespace.as_ref() != Some(place)) {
            Some(namespace) => format!("{namespace}/{}", member.name),
            None => member.name.clone(),
        })
        .collect();
    format!("circular dependency detected: {}", names.join(" → "))
}

impl PhaseWords {
    fn of(object: &BootDependency, report: &Report, met: usize) -> Self {
        let all = object.spec.depends_on.len();
        if report.cycle.is_some() && met < all && report.phase != Phase::Suspended {
            return Self {
                phase: Phase::Failed.as_str(),
                reconciling: false,
                reason: Reason::Cycle,
                condition: circle(object, report),
            };
        }
        match report.phase {
            Phase::Suspended | Phase::Failed | Phase::Deleting => Self {
                phase: report.phase.as_str(),
                reconciling: report.phase != Phase::Failed,
                reason: report.reason.unwrap_or(Reason::Progressing),
                condition: report.message.clone(),
            },
            Phase::Pending | Phase::Waiting | Phase::Running | Phase::Completed if met < all || all == 0 => {
                Self {
                    phase: if report.phase == Phase::Pending { Phase::Pending } else { Phase::Waiting }
                        .as_str(),
                    reconciling: true,
                    reason: Reason::DependenciesNotReady,
                    condition: format!("{met}/{all} dependencies are reachable"),
                }
            }
            Phase::Pending | Phase::Waiting | Phase::Running | Phase::Completed => Self {
                phase: READY,
                reconciling: false,
                reason: Reason::AllDependenciesReady,
                condition: format!("All {all} dependencies are reachable"),
            },
        }
    }
}

/// The one line: what is waited for first, and how much more there is.
fn message(words: &PhaseWords, status_input: &StatusInput<'_>) -> String {
    let unmet: Vec<&StepReport> = status_input.report.steps.iter().filter(|step| !is_met(step)).collect();
    match (words.reason, unmet.as_slice()) {
        (Reason::DependenciesNotReady, [first, rest @ ..]) => {
            // What is called like its target is named once.
            let why = if *first.reason == *Reason::NoEndpoints.as_str() {
                "no ready endpoints"
            } else {
                without_name(status_input.plan, first, first.id.as_str())
            };
            let mut line = format!("waits for {}: {why}", first.id);
            if !rest.is_empty() {
                line = format!("{line} (and {} more)", rest.len());
            }
            line
        }
        _ => words.condition.clone(),
    }
}

/// Why a step is where it is; without what it is called where that is what it is named by already.
fn without_name<'r>(plan: Option<&Plan>, step: &'r StepReport, name: &str) -> &'r str {
    let requirement = plan.and_then(|plan| plan.steps()[plan.position(&step.id)?].requirement());
    let named = requirement.is_some_and(|requirement| requirement.label == name);
    if named { &step.detail } else { &step.message }
}

fn default_word(step: &StepReport) -> Reason {
    if is_met(step) { Reason::Met } else { Reason::Waiting }
}

fn rows(object: &BootDependency, status_input: &StatusInput<'_>) -> Vec<EntryStatus> {
    let before = object.status.as_ref().map_or(&[][..], |status| status.entries.as_slice());
    let names = step_names(&object.spec.depends_on.iter().collect::<Vec<_>>());
    let row = |(entry, named): (&BootEntry, &NamedStep)| {
        let step = find(status_input.report, &named.id)?;
        let name = named.id.to_string();
        let old = before.iter().find(|old| old.name == name);
        if let Some(old) = old.filter(|_| is_unseen(&step.reason)) {
            return Some(old.clone());
        }
        let message = without_name(status_input.plan, step, &target_and_port(entry));
        let forbidden = forbidden(status_input.plan, &named.id).filter(|_| !is_met(step));
        let (state, reason, message) = match forbidden {
            _ if status_input.report.phase == Phase::Suspended && !is_met(step) => {
                // Nothing is looked at: what was seen last is all that is known.
                if let Some(old) = old.filter(|old| !old.met) {
                    return Some(old.clone());
                }
                let suspended = Reason::Suspended.as_str().to_owned();
                (
                    "Unknown".to_owned(),
                    suspended,
                    "nothing is looked at while the object is suspended".to_owned(),
                )
            }
            Some(why) => {
                ("Unknown".to_owned(), Reason::Forbidden.as_str().to_owned(), format!("{message}; {why}"))
            }
            None => {
                let records = &status_input.journal.steps;
                let passed = records.get(&named.id).and_then(|record| record.reason);
                let reason = match passed {
                    // It counts, and is not there.
                    Some(Reason::Proceeded) => Reason::Proceeded.as_str().to_owned(),
                    _ => entries::or_word(&step.reason, default_word(step)),
                };
                let unasked = waits_for_reference(status_input.plan, entry, &named.id);
                let state = if unasked { "Unknown" } else { step.word };
                (state.to_owned(), reason, message.to_owned())
            }
        };
        let last_change = match old.filter(|old| old.state == state && old.reason == reason) {
            Some(old) => old.last_change,
            None => old.map_or(step.since, |_| status_input.now),
        };
        Some(EntryStatus {
            name,
            state,
            met: is_met(step),
            reason,
            message: text::line(&message),
            since: step.since,
            last_change,
            observed_from: observed_from(status_input.plan, &named.id).to_owned(),
        })
    };
    object.spec.depends_on.iter().zip(&names).filter_map(row).collect()
}
