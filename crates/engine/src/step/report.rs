//! What a person and other tools get to hear: phase, one line, blockers, an entry per step, and the edges of the
//! wait-for graph. Derived from the decision; nothing is ever read back from it.

use linchpin_words::{ObjectRef, Reason, Timestamp};

use super::{
    advance::Advanced,
    fact::{Answer, Fact},
    judge::View,
};
use crate::{
    contract::{ClusterRef, StepId},
    graph::{Edge, Node, Path, Standing, Wait},
    journal::{Memory, Record, StepState},
    plan::{Lane, Plan, Recovery, Step, StepKind},
};

/// Where the object is, in the document's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Nothing has been observed yet.
    #[default]
    Pending,
    /// Requirements do not hold yet.
    Waiting,
    /// Actions are under way.
    Running,
    /// Everything is done.
    Completed,
    /// Something failed and nothing goes on by itself.
    Failed,
    /// Suspended.
    Suspended,
    /// Being deleted.
    Deleting,
}

impl Phase {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Waiting => "Waiting",
            Self::Running => "Running",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::Suspended => "Suspended",
            Self::Deleting => "Deleting",
        }
    }
}

/// What is said about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Where it is.
    pub phase: Phase,
    /// Whether everything it asks for is done and holds.
    pub ready: bool,
    /// Why, as one word.
    pub reason: Option<Reason>,
    /// Why, in one line.
    pub message: String,
    /// What it is held by, the most direct first.
    pub blocked: Vec<Blocker>,
    /// One entry per step, in the plan's order.
    pub steps: Vec<StepReport>,
    /// What could not be deleted and stays.
    pub left: Vec<String>,
    /// Whether the spec cannot be carried out.
    pub invalid: bool,
}

/// Something that holds the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The step that is held.
    pub step: StepId,
    /// Why, as one word.
    pub reason: String,
    /// Why, in words for a person.
    pub message: String,
    /// The object it is about.
    pub object: Option<ObjectRef>,
    /// Since when.
    pub since: Timestamp,
}

/// Where one step is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    /// The step.
    pub id: StepId,
    /// Its state in the journal.
    pub state: StepState,
    /// The document's word: for a requirement what was found, for an action how far it is.
    pub word: &'static str,
    /// Why, as one word.
    pub reason: String,
    /// Why, in words for a person.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
    /// Attempts in the current run.
    pub attempts: u32,
    /// The objects it is about.
    pub objects: Vec<ObjectRef>,
    /// Whether it is what holds the plan now.
    pub blocking: bool,
}

impl Report {
    pub(super) fn invalid(error: &crate::plan::SpecError, _now: Timestamp) -> Self {
        Self {
            phase: Phase::Failed,
            reason: Some(Reason::SpecInvalid),
            message: error.to_string(),
            invalid: true,
            ..Self::default()
        }
    }

    pub(super) fn deleting(
        memory: &Memory,
        waiting: &[(StepId, Reason, String)],
        left: Vec<String>,
        now: Timestamp,
    ) -> Self {
        let item = |step: &StepId| memory.journal.inventory.iter().find(|item| item.step == *step);
        let blocked: Vec<Blocker> = waiting
            .iter()
            .map(|(step, reason, message)| Blocker {
                step: step.clone(),
                reason: reason.as_str().to_owned(),
                message: if message.is_empty() {
                    item(step).map_or_else(|| reason.in_words(), |item| format!("deleting {}", item.target))
                } else {
                    message.clone()
                },
                object: None,
                since: now,
            })
            .collect();
        let message =
            blocked.first().map_or_else(|| "deleting what it made".to_owned(), |first| first.message.clone());
        Self {
            phase: Phase::Deleting,
            reason: Some(Reason::Deleting),
            message,
            blocked,
            left,
            ..Self::default()
        }
    }
}

/// The report on a plan that is being carried out.
pub(super) fn converging(
    plan: &Plan,
    advanced: &Advanced,
    records: &[Option<&Record>],
    views: Vec<View>,
    facts: &[Fact],
    cycle: Option<&Path>,
    now: Timestamp,
) -> Report {
    let phase = phase(plan, advanced, records, &views);
    let mut steps = Vec::with_capacity(plan.steps().len());
    let mut blocked = Vec::new();
    for (position, (step, view)) in plan.steps().iter().zip(views).enumerate() {
        let Some(record) = records[position] else {
            continue;
        };
        let place = Place { plan, advanced, records, fact: &facts[position], position };
        let report = step_report(&place, step, record, view);
        if report.blocking {
            blocked.push(Blocker {
                step: step.id.clone(),
                reason: report.reason.clone(),
                message: report.message.clone(),
                object: report.objects.first().cloned(),
                since: record.clock.unwrap_or(record.since),
            });
        }
        steps.push(report);
    }
    let ready = phase == Phase::Completed && advanced.all_hold;
    let (reason, mut message) = headline(plan, advanced, phase, ready, &steps, &blocked);
    let mut reason = Some(reason);
    if let Some(cycle) = cycle.filter(|_| !ready) {
        reason = Some(Reason::Cycle);
        message = format!("waits for itself: {cycle}");
        blocked.insert(
            0,
            Blocker {
                step: StepId::new("cycle"),
                reason: Reason::Cycle.as_str().to_owned(),
                message: message.clone(),
                object: None,
                since: now,
            },
        );
    }
    Report { phase, ready, reason, message, blocked, steps, left: Vec::new(), invalid: false }
}

/// One step among all others: what its report is told from.
struct Place<'a> {
    plan: &'a Plan,
    advanced: &'a Advanced,
    records: &'a [Option<&'a Record>],
    fact: &'a Fact,
    position: usize,
}

fn phase(plan: &Plan, advanced: &Advanced, records: &[Option<&Record>], views: &[View]) -> Phase {
    let journal = &advanced.memory.journal;
    if plan.suspended {
        return Phase::Suspended;
    }
    if advanced.failing {
        return Phase::Failed;
    }
    if journal.completed.is_some() {
        return Phase::Completed;
    }
    let begun = plan.steps().iter().zip(records).any(|(step, record)| {
        step.action().is_some()
            && step.lane == Lane::Main
            && record.is_some_and(|record| record.state != StepState::Waiting)
    });
    if begun {
        return Phase::Running;
    }
    let unlooked = Reason::Unsynced.as_str();
    let looked = plan
        .steps()
        .iter()
        .zip(views)
        .any(|(step, found)| step.requirement().is_some() && found.reason != unlooked);
    let has_requirements = plan.steps().iter().any(|step| step.requirement().is_some());
    if has_requirements && !looked {
        Phase::Pending
    } else if advanced.all_hold {
        Phase::Running
    } else {
        Phase::Waiting
    }
}

fn step_report(place: &Place<'_>, step: &Step, record: &Record, mut found: View) -> StepReport {
    let message = place.advanced.memory.messages.get(&step.id);
    let open = place.advanced.open[place.position];
    let mut report = StepReport {
        id: step.id.clone(),
        state: record.state,
        word: "",
        reason: record.reason.map_or_else(String::new, |reason| reason.as_str().to_owned()),
        message: String::new(),
        since: record.since,
        attempts: record.attempt,
        objects: std::mem::take(&mut found.objects),
        blocking: false,
    };
    match &step.kind {
        StepKind::Require(requirement) => {
            report.word = match (record.state, record.reason) {
                (StepState::Failed, Some(Reason::TimedOut | Reason::ProgressTimeout)) => "TimedOut",
                _ => found.state,
            };
            if !open && record.state == StepState::Waiting {
                Reason::WaitingForTier.as_str().clone_into(&mut report.reason);
                report.message = [&requirement.label, ": waits for ", &waits_for(place)].concat();
            } else {
                if record.state != StepState::Failed || record.reason == Some(Reason::DependencyFailed) {
                    report.reason = found.reason;
                }
                report.message = [&requirement.label, ": ", &found.message].concat();
            }
            report.blocking = open && !step.optional && record.state != StepState::Met;
        }
        StepKind::Act(_) => {
            report.word = match record.state {
                StepState::Waiting | StepState::Met => "Pending",
                StepState::Running => "Running",
                StepState::Done => "Done",
                StepState::Skipped => "Skipped",
                StepState::Failed => "Failed",
                StepState::Unknown => "Unknown",
            };
            let held = held_by(place, record, found);
            if let Some((reason, text)) = held {
                reason.as_str().clone_into(&mut report.reason);
                report.message = text;
            }
            let unsettled = !record.is_successful() && step.lane == Lane::Main;
            report.blocking = unsettled && (open || record.state != StepState::Waiting);
            // While it waits for another step, what went wrong in its last attempt is not what holds it.
            let held_by_itself = !record.is_successful() && (open || record.state != StepState::Waiting);
            if let Some(message) = message.filter(|_| held_by_itself) {
                report.message.clone_from(message);
            }
            if report.blocking && report.message.is_empty() {
                report.message = format!("{} is {}", step.id, report.word.to_lowercase());
            }
            if report.blocking && report.reason.is_empty() {
                let reason =
                    if record.state == StepState::Running { Reason::Running } else { Reason::Waiting };
                reason.as_str().clone_into(&mut report.reason);
            }
        }
    }
    report
}

/// Why an action that has not started has not.
fn held_by(place: &Place<'_>, record: &Record, found: View) -> Option<(Reason, String)> {
    if record.is_successful() || record.state == StepState::Running {
        return None;
    }
    if record.state == StepState::Failed || record.state == StepState::Unknown {
        let reason = record.reason?;
        return Some((reason, reason.in_words()));
    }
    if !place.advanced.open[place.position] {
        return Some((Reason::WaitingForStep, ["waits for ", &waits_for(place)].concat()));
    }
    if !place.fact.supplied {
        let reason = Reason::from_word(&found.reason).unwrap_or(Reason::MissingRights);
        return Some((reason, found.message));
    }
    if place.fact.guard == Answer::Undecided {
        return Some((Reason::GuardUndecided, Reason::GuardUndecided.in_words()));
    }
    let reason = record.reason?;
    Some((reason, reason.in_words()))
}

/// The first steps that keep a step closed, by name.
fn waits_for(place: &Place<'_>) -> String {
    let Place { plan, records, position, .. } = *place;
    let mut names: Vec<&str> = Vec::new();
    for (earlier, after) in plan.before(position).iter().zip(&plan.steps()[position].after) {
        let step = &plan.steps()[*earlier];
        let Some(record) = records[*earlier] else {
            continue;
        };
        let done = match &step.kind {
            StepKind::Require(_) => record.state == StepState::Met || step.optional,
            StepKind::Act(_) if after.settled_is_enough => record.is_settled(),
            StepKind::Act(_) => record.is_successful(),
        };
        if !done {
            names.push(match &step.kind {
                StepKind::Require(requirement) => &requirement.label,
                StepKind::Act(_) => step.id.as_str(),
            });
        }
    }
    match names.len() {
        0 => "a delay to pass".to_owned(),
        1..=3 => names.join(", "),
        more => format!("{} and {} more", names[..2].join(", "), more - 2),
    }
}

fn headline(
    plan: &Plan,
    advanced: &Advanced,
    phase: Phase,
    ready: bool,
    steps: &[StepReport],
    blocked: &[Blocker],
) -> (Reason, String) {
    let actions: Vec<&StepReport> = steps
        .iter()
        .zip(plan.steps())
        .filter(|(_, step)| step.action().is_some() && step.lane == Lane::Main)
        .map(|(report, _)| report)
        .collect();
    let done =
        actions.iter().filter(|report| matches!(report.state, StepState::Done | StepState::Skipped)).count();
    let more = |count: usize| {
        if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() }
    };
    let first = blocked.first();
    match phase {
        Phase::Suspended => (Reason::Suspended, Reason::Suspended.in_words()),
        Phase::Deleting => (Reason::Deleting, Reason::Deleting.in_words()),
        Phase::Pending => (Reason::Waiting, "looking at its dependencies for the first time".to_owned()),
        Phase::Completed if ready => {
            let text = if actions.is_empty() {
                "all dependencies are met".to_owned()
            } else {
                all_done(actions.len())
            };
            (Reason::Completed, text)
        }
        Phase::Completed => {
            let what = first.map_or_else(String::new, |blocker| format!(": {}", blocker.message));
            (Reason::DependencyLost, format!("done, but a dependency no longer holds{what}"))
        }
        Phase::Failed => {
            let halt = advanced.memory.journal.halt.as_ref();
            let culprit = halt
                .and_then(|halt| halt.step.as_ref())
                .and_then(|id| steps.iter().find(|report| report.id == *id))
                .or_else(|| {
                    actions
                        .iter()
                        .copied()
                        .find(|report| matches!(report.state, StepState::Failed | StepState::Unknown))
                });
            let reason = halt.map_or(Reason::ActionFailed, |halt| halt.reason);
            let text = match (halt, culprit) {
                (Some(halt), None) => halt.reason.in_words(),
                (Some(halt), Some(culprit))
                    if matches!(halt.reason, Reason::TimedOut | Reason::ProgressTimeout) =>
                {
                    format!("timed out: {}", culprit.message)
                }
                (_, Some(culprit)) => format!("{}: {}", culprit.id, culprit.message),
                (None, None) => Reason::ActionFailed.in_words(),
            };
            let by_hand = if plan.recovery == Recovery::Manual { "; recovery is by hand" } else { "" };
            (reason, format!("{text}{by_hand}"))
        }
        Phase::Waiting => {
            let text = first.map_or_else(
                || Reason::Waiting.in_words(),
                |blocker| format!("waiting for {}{}", blocker.message, more(blocked.len())),
            );
            (Reason::Waiting, text)
        }
        Phase::Running => {
            let text = first.map_or_else(String::new, |blocker| format!(": {}", blocker.message));
            let progress = match actions.len() {
                1 => "its action is not done yet".to_owned(),
                all => format!("{done} of {all} actions are done"),
            };
            (Reason::Running, format!("{progress}{text}"))
        }
    }
}

fn all_done(actions: usize) -> String {
    match actions {
        1 => "its action is done".to_owned(),
        all => format!("all {all} actions are done"),
    }
}

/// Who waits for whom, as this object sees it.
pub(super) fn edges(plan: &Plan, records: &[Option<&Record>], views: &[View]) -> Vec<Edge> {
    let owner = Node::here(plan.owner.clone());
    let mut edges = Vec::with_capacity(plan.steps().len());
    let mut parts = std::collections::BTreeMap::new();
    for (position, step) in plan.steps().iter().enumerate() {
        let Some(record) = records[position] else {
            continue;
        };
        let from = match &step.part {
            Some(part) => {
                let met = record.state == StepState::Met || record.is_successful() || step.optional;
                *parts.entry(part.clone()).or_insert(true) &= met;
                owner.clone().part(part.clone())
            }
            None => owner.clone(),
        };
        match &step.kind {
            StepKind::Require(requirement) => {
                let found = &views[position];
                let wait = Wait {
                    standing: standing(record, found),
                    reason: found.reason.clone(),
                    since: Some(record.clock.unwrap_or(record.since).into()),
                    detail: found.message.clone(),
                };
                for object in &found.objects {
                    let mut to = Node::here(object.clone());
                    to.part.clone_from(&requirement.part);
                    if requirement.want.via().cluster != ClusterRef::Here {
                        to.cluster = Some(requirement.want.via().cluster.to_string());
                    }
                    edges.push(Edge::waits(from.clone(), to, wait.clone()));
                }
            }
            StepKind::Act(_) => {
                for object in plan.makes(position) {
                    let made = Node::here(object.clone());
                    edges.push(Edge::produces(from.clone(), made, record.is_successful()));
                }
            }
        }
    }
    for (part, met) in parts {
        let standing = if met { Standing::Met } else { Standing::InProgress };
        let wait = Wait { standing, reason: String::new(), since: None, detail: String::new() };
        edges.push(Edge::waits(owner.clone(), owner.clone().part(part), wait));
    }
    edges
}

fn standing(record: &Record, found: &View) -> Standing {
    match (record.state, found.state) {
        (StepState::Met, _) => Standing::Met,
        (StepState::Failed, _) | (_, "Failed") => Standing::Failed,
        (_, "NotFound") => Standing::Absent,
        (_, "Unknown" | "Error") => Standing::Unknown,
        _ => Standing::InProgress,
    }
}
