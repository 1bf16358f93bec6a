//! The parts of a status that every kind has: blockers, dependencies, actions.
//!
//! Everything is drawn from the report; nothing is read back from an older status but moments, so that a status whose
//! story has not changed is equal to the one before. No value of an object is ever shown.

use linchpin_api::{
    Action, Common, CommonStatus, Dependency, OurStatus, Status,
    common::OnFailureType,
    status::{ActionStatus, Blocker, DependencyStatus, ObjectName},
};
use linchpin_engine::{
    contract::{Question, Scope, StepId, Why},
    graph::explain,
    journal::StepState,
    plan::{Plan, Requirement},
    step::{Phase, Report, StepBlocker as EngineBlocker, StepReport},
};
use linchpin_words::{ObjectRef, Reason, limits, text};

use crate::{
    conditions,
    door::StatusInput,
    journal,
    names::{self, NamedStep},
    readiness_profile, status_edges,
};

/// The status without its entries per dependency, action or group.
pub(crate) fn base(
    common: &Common,
    current: Option<&Status>,
    generation: i64,
    status_input: &StatusInput<'_>,
) -> CommonStatus {
    let report = status_input.report;
    let current = current.map(|status| &status.common);
    let shown = current.filter(|status| status.observed_generation == generation);
    let before = current.map_or(&[][..], |status| status.conditions.as_slice());
    let failed = report.phase == Phase::Failed && !report.invalid;
    let (phase, mut message) =
        in_users_words(common, failed, report.phase.as_str().to_owned(), report.message.clone());
    let blocked_by = blockers(current.map_or(&[][..], |status| status.blocked_by.as_slice()), status_input);
    if let Some(cause) = root_cause(&blocked_by) {
        message = format!("{message}; root cause: {cause}");
    }
    message = with_problems(message, report);
    CommonStatus {
        observed_generation: generation,
        phase: Some(phase),
        message: Some(text::line(&message)),
        conditions: conditions::draw(before, report, generation, status_input.now),
        blocked_by,
        edges: edges(shown.and_then(|status| status.edges.as_ref()), status_input),
        start_time: Some(status_input.journal.run.now),
        completion_time: status_input.journal.completed,
        journal: journal::write(status_input.journal),
    }
}

/// A message with what is wrong with orders by annotation.
pub(crate) fn with_problems(message: String, report: &Report) -> String {
    match report.problems.as_slice() {
        [] => message,
        problems => format!("{message}; {}", problems.join("; ")),
    }
}

/// The same of an object that waits; of one that acts there is news.
pub(crate) fn unchanged(
    current: Option<&Status>,
    generation: i64,
    status_input: &StatusInput<'_>,
) -> Option<Status> {
    let waited = |status: &&Status| status.common.phase.as_deref() == Some(Phase::Waiting.as_str());
    still(current.filter(waited), generation, status_input)
}

/// The status as it is, where nothing has been looked at since a start: that is no news.
pub(crate) fn still<S: OurStatus>(
    current: Option<&S>,
    generation: i64,
    status_input: &StatusInput<'_>,
) -> Option<S> {
    let known = current.filter(|status| status.common().speaks_of(generation));
    let mut same = known.filter(|_| status_input.report.phase == Phase::Pending)?.clone();
    same.common_mut().journal = journal::write(status_input.journal);
    Some(same)
}

/// Phase and message; of what has failed, with the words that the user wants to see then.
pub(crate) fn in_users_words(
    common: &Common,
    failed: bool,
    phase: String,
    message: String,
) -> (String, String) {
    let mut shown = common.on_failure.iter().filter(|entry| entry.kind == OnFailureType::Status);
    let Some(entry) = shown.next().filter(|_| failed) else {
        return (phase, message);
    };
    let message = match &entry.message {
        Some(words) => format!("{words}: {message}"),
        None => message,
    };
    (entry.phase.as_deref().map_or(phase, text::line), message)
}

/// Where the first blocker's chain ends, if that may be shown.
pub(crate) fn root_cause(blockers: &[Blocker]) -> Option<&str> {
    explain::root(&blockers.first()?.chain)
}

/// What the object waits for. Moments and chains are kept from the blockers that were shown before.
pub(crate) fn blockers(before: &[Blocker], status_input: &StatusInput<'_>) -> Vec<Blocker> {
    status_input
        .report
        .blocked
        .iter()
        .take(limits::BLOCKERS)
        .map(|held| blocker(held, before, status_input))
        .collect()
}

fn blocker(held: &EngineBlocker, before: &[Blocker], status_input: &StatusInput<'_>) -> Blocker {
    let step = held.step.as_ref().map(ToString::to_string);
    // After a start, what has not been looked at again is still held by what it was held by.
    if let Some(old) = before.iter().find(|old| is_unseen(&held.reason) && old.step == step) {
        return old.clone();
    }
    let object = held
        .object
        .as_ref()
        .map(|object| object_name(object, requirement(status_input.plan, held.step.as_ref())));
    let same =
        before.iter().find(|old| old.step == step && old.reason == held.reason && old.object == object);
    Blocker {
        reason: held.reason.to_string(),
        message: text::line(&held.message),
        object,
        step,
        since: same.map_or(held.since, |old| old.since.min(held.since)),
        // Until the graph is known again, after a start, what it said before stays.
        chain: match held.object.as_ref().and_then(|object| status_input.causes.get(object)) {
            Some(known) => known.clone(),
            None => same.map(|old| old.chain.clone()).unwrap_or_default(),
        },
    }
}

/// What it waits for and makes. After a start, while something has not been looked at again, what was shown before stays.
pub(crate) fn edges(before: Option<&String>, status_input: &StatusInput<'_>) -> Option<String> {
    let steps = &status_input.report.steps;
    match before.filter(|_| steps.iter().any(|step| is_unseen(&step.reason))) {
        Some(before) => Some(before.clone()),
        None => status_edges::write(&status_input.report.edges),
    }
}

/// What the report says of a step.
pub(crate) fn find<'r>(report: &'r Report, id: &StepId) -> Option<&'r StepReport> {
    report.steps.iter().find(|step| step.id == *id)
}

fn requirement<'p>(plan: Option<&'p Plan>, id: Option<&StepId>) -> Option<&'p Requirement> {
    let plan = plan?;
    plan.steps()[plan.position(id?)?].requirement()
}

/// An object as status shows it, with the version it is read in where that is known.
fn object_name(object: &ObjectRef, requirement: Option<&Requirement>) -> ObjectName {
    let read = requirement.map(|requirement| requirement.want.question());
    let api_version = match read {
        Some(Question::Objects { kind, .. }) if kind.group_kind() == object.kind => Some(kind.api_version()),
        _ => None,
    };
    ObjectName {
        api_version,
        kind: object.kind.kind.clone(),
        namespace: object.namespace.clone(),
        name: Some(object.name.clone()),
    }
}

/// The entry of one dependency. While it has not been looked at again, the entry in `before` stays.
pub(crate) fn dependency(
    entry: &Dependency,
    named: &NamedStep,
    before: &[DependencyStatus],
    status_input: &StatusInput<'_>,
) -> Option<DependencyStatus> {
    let step = find(status_input.report, &named.id)?;
    let name = entry.name.clone().unwrap_or_else(|| named.id.to_string());
    let met = step.state == StepState::Met;
    if let Some(old) = before.iter().find(|old| is_unseen(&step.reason) && old.name == name && old.met == met)
    {
        return Some(old.clone());
    }
    let by_hand =
        status_input.journal.steps.get(&named.id).and_then(|record| record.reason) == Some(Reason::Proceeded);
    let requirement = requirement(status_input.plan, Some(&named.id));
    // While the profiles of the cluster are not known, they are what is asked for.
    let profiles = readiness_profile::kind();
    let (resolved, matched) = match requirement.map(|requirement| requirement.want.question()) {
        Some(Question::Objects { kind, scope, .. }) if *kind != profiles => {
            let (namespace, name, matched) = match scope {
                Scope::Name { namespace, name } => (namespace, Some(name.clone()), None),
                Scope::Labels { namespace, .. } => {
                    let matched = step.selected.as_ref().map_or(0, |selected| selected.len());
                    (namespace, None, i64::try_from(matched).ok())
                }
            };
            let resolved = ObjectName {
                api_version: Some(kind.api_version()),
                kind: kind.kind.clone(),
                namespace: namespace.clone(),
                name,
            };
            (Some(resolved), matched)
        }
        _ => (None, None),
    };
    Some(DependencyStatus {
        name,
        resource: names::resource_text(entry),
        state: step.word.to_owned(),
        met,
        reason: match (by_hand, met) {
            (true, _) => Reason::Proceeded.as_str().to_owned(),
            (false, true) => or_word(&step.reason, Reason::Met),
            (false, false) => or_word(&step.reason, Reason::Waiting),
        },
        message: text::line(&step.detail),
        since: step.since,
        resolved,
        matched,
    })
}

/// The entry of one action.
pub(crate) fn action(
    entry: &Action,
    named: &NamedStep,
    status_input: &StatusInput<'_>,
) -> Option<ActionStatus> {
    let step = find(status_input.report, &named.id)?;
    // What it made itself earlier exists like anything else; the message distinguishes the two.
    let reported = match Reason::from_word(&step.reason) {
        Some(Reason::CreatedBefore) => Reason::Exists.as_str(),
        _ => step.reason.as_str(),
    };
    let (state, reason) = match step.state {
        StepState::Waiting | StepState::Met => ("Waiting", Reason::Waiting),
        StepState::Running => ("Running", Reason::Running),
        StepState::Done => ("Completed", Reason::Completed),
        StepState::Skipped => ("Skipped", Reason::Skipped),
        StepState::Failed => ("Failed", Reason::ActionFailed),
        StepState::Unknown => ("Unknown", Reason::OutcomeUnknown),
    };
    Some(ActionStatus {
        name: entry.name.clone().unwrap_or_else(|| named.words[0].clone()),
        kind: entry.kind.as_str().to_owned(),
        state: state.to_owned(),
        reason: or_word(reported, reason),
        message: text::line(&step.message),
        since: step.since,
        attempts: step.attempts,
    })
}

/// Whether a reason says no more than that nothing was looked at yet.
pub(crate) fn is_unseen(reason: &str) -> bool {
    Reason::from_word(reason).is_some_and(|reason| Why::new(reason, "").is_passing())
}

pub(crate) fn or_word(reason: &str, otherwise: Reason) -> String {
    if reason.is_empty() { otherwise.as_str().to_owned() } else { reason.to_owned() }
}
