//! The edges of the wait-for graph, as one object sees them.
//!
//! The object and its parts wait for all that is required of them, the object for its parts, and a part for those
//! before it. What an action makes comes from its batch alone, which waits for what the action comes after and for
//! nothing else: another action of the same part may well be stuck. These are the only edges there are: the operator's
//! graph is made of them, and statuses carry them for readers that see objects only.

use std::{collections::BTreeMap, ops::Range};

use linchpin_words::{ObjectRef, Reason, Shared, Text};

use super::{StepReport, entry::is_passed};
use crate::{
    contract::Objects,
    graph::{Edge, Node, Relation, Wait, WaitState, is_in_line},
    journal::{Journal, StepRecord, StepState},
    plan::{Plan, Requirement, Step, StepKind},
    step::judge::RequirementView,
};

/// Who waits for whom, as this object sees it. `reports` has an entry for each step that has a record.
pub(in crate::step) fn edges(
    plan: &Plan,
    journal: &Journal,
    records: &[Option<&Shared<StepRecord>>],
    views: &[RequirementView],
    reports: &[StepReport],
) -> Vec<Edge> {
    let mut reports = reports.iter();
    let known: Vec<Option<StepFacts<'_>>> = records
        .iter()
        .zip(views)
        .map(|(record, view)| {
            Some(StepFacts { record: (*record)?, denied: view.denied, report: reports.next()? })
        })
        .collect();
    let mut builder = EdgeBuilder {
        plan,
        journal,
        known,
        waits: vec![0..0; plan.steps().len()],
        edges: Vec::with_capacity(plan.steps().len()),
    };
    for position in 0..plan.steps().len() {
        builder.step(position);
    }
    builder.parts();
    builder.edges
}

/// What is known of a step.
#[derive(Clone, Copy)]
struct StepFacts<'a> {
    record: &'a StepRecord,
    /// Of an action: whether it is not known that it may do what it is about to.
    denied: bool,
    report: &'a StepReport,
}

struct EdgeBuilder<'a> {
    plan: &'a Plan,
    journal: &'a Journal,
    known: Vec<Option<StepFacts<'a>>>,
    /// For each requirement, its waits among the edges.
    waits: Vec<Range<usize>>,
    edges: Vec<Edge>,
}

/// How one part of the object is.
struct PartState<'a> {
    wait: Wait,
    /// The parts before it, and whether some of what counts there is still open.
    before: BTreeMap<&'a Node, bool>,
    /// Requirements of the whole object that it still comes after.
    of_whole: Vec<usize>,
}

impl<'a> EdgeBuilder<'a> {
    fn step(&mut self, position: usize) {
        let plan = self.plan;
        let (step, outline) = (&plan.steps()[position], plan.outline(position));
        let Some(StepFacts { record, report, denied }) = self.known[position] else { return };
        match &step.kind {
            StepKind::Require(requirement) => {
                let mut wait = self.wait(requirement, record, report);
                let gives_way = step.patience.is_some() && requirement.floor.is_none();
                wait.soft = gives_way.then_some(plan.created);
                // What is optional and not met holds nothing up, nor does a gate of what has been admitted. A transition
                // relies on both all the same, and what provides them is asked for.
                let idle = step.optional || self.journal.is_spent(plan, position);
                if idle && !wait.met() {
                    if plan.admission.is_none() {
                        return;
                    }
                    wait.is_let_through();
                }
                let start = self.edges.len();
                let from = &outline.from;
                let to_object = |object: &Shared<ObjectRef>| {
                    Edge::waits(from.clone(), outline.node(object), wait.clone())
                };
                match report.selected.as_ref() {
                    Some(objects) if !objects.is_empty() => {
                        let selection: Option<Text> =
                            outline.target.as_ref().map(|target| Text::new(&target.name));
                        let selected = Wait { selection, ..wait };
                        let to = |object: &Shared<ObjectRef>| {
                            Edge::waits(from.clone(), outline.node(object), selected.clone())
                        };
                        self.edges.extend(objects.iter().map(to));
                    }
                    _ if outline.waits_for.is_empty() => {
                        self.edges.extend(outline.target.iter().map(to_object));
                    }
                    _ => self.edges.extend(outline.waits_for.iter().map(to_object)),
                }
                self.waits[position] = start..self.edges.len();
            }
            StepKind::Act(_) => {
                // What is skipped makes nothing.
                if record.state != StepState::Skipped && !is_anothers(record, &outline.makes) {
                    let made = outline.makes.iter().map(|object| outline.node(object));
                    let made = made.filter(|made| !is_presumed(plan, record, denied, made));
                    let done = record.is_successful();
                    self.edges.extend(made.map(|made| Edge::produces(outline.maker(), made, done)));
                }
                if outline.opens_batch {
                    self.before_batch(position);
                }
            }
        }
    }

    /// The wait of what requires something. What we write ourselves is as its action is until that is done.
    fn wait(&self, requirement: &Requirement, record: &StepRecord, report: &StepReport) -> Wait {
        let act = requirement.floor.as_ref().and_then(|act| self.known[self.plan.position(act)?]);
        let since = Some(record.clock.unwrap_or(record.since).into());
        let (state, reason, detail) = if let Some(act) = act.filter(|act| !act.record.is_successful()) {
            let state = match act.record.state {
                StepState::Failed | StepState::Unknown => WaitState::Failed,
                _ if report.word == "NotFound" => WaitState::Absent,
                _ => WaitState::InProgress,
            };
            // That the object is suspended is no cause of its own waiting for what it makes itself.
            let later = act.report.reason == Reason::Suspended.as_str();
            let reason =
                if later { Reason::WaitingForStep.as_str().into() } else { act.report.reason.clone() };
            (state, reason, &act.report.message)
        } else {
            (wait_state(record, report), report.reason.clone(), &report.detail)
        };
        let mut wait = Wait { state, reason, detail: detail.clone(), since, selection: None, soft: None };
        if let Some(whom) = &requirement.on_behalf_of
            && !wait.met()
            && !is_in_line(&wait.reason)
        {
            wait.detail = format!("{} (for {whom})", wait.detail).into();
        }
        wait
    }

    /// What the batch that begins with this action waits for: all of it comes earlier in the plan.
    fn before_batch(&mut self, position: usize) {
        let plan = self.plan;
        let batch = plan.outline(position).maker();
        let done = self.known[position].is_some_and(|known| known.record.is_successful());
        if plan.terms.suspended && !done {
            self.edges.push(Edge::waits(batch.clone(), batch.whole(), suspended()));
        }
        for (earlier, after) in plan.before(position).iter().zip(&plan.steps()[position].after) {
            let Some(known) = self.known[*earlier] else { continue };
            let passed = is_passed(&plan.steps()[*earlier], known.record, after);
            match &plan.steps()[*earlier].kind {
                StepKind::Require(_) => {
                    for index in self.waits[*earlier].clone() {
                        let mut edge = Edge { from: batch.clone(), ..self.edges[index].clone() };
                        if let Relation::WaitsFor(wait) = &mut edge.relation
                            && passed
                        {
                            wait.state = WaitState::Met;
                        }
                        self.edges.push(edge);
                    }
                }
                StepKind::Act(_) => {
                    let state = if passed { WaitState::Met } else { WaitState::InProgress };
                    let wait = Wait::new(state, Reason::WaitingForStep.as_str());
                    self.edges.push(Edge::waits(batch.clone(), plan.outline(*earlier).maker(), wait));
                }
            }
        }
    }

    /// The object waits for its parts, and each part for those before it.
    fn parts(&mut self) {
        let plan = self.plan;
        let mut members: BTreeMap<&'a Node, Vec<usize>> = BTreeMap::new();
        for position in 0..plan.steps().len() {
            let from = &plan.outline(position).from;
            if from.part.is_some() && self.known[position].is_some() {
                members.entry(from).or_default().push(position);
            }
        }
        let states: BTreeMap<&Node, PartState<'_>> =
            members.iter().map(|(part, positions)| (*part, self.part(part, positions))).collect();
        let mut edges = Vec::new();
        for (part, state) in &states {
            let whole = part.whole();
            edges.push(if plan.terms.suspended && state.wait.state == WaitState::InProgress {
                // Nothing is waited for while the object is suspended: its parts are what waits.
                Edge::waits((*part).clone(), whole, suspended())
            } else {
                Edge::waits(whole, (*part).clone(), state.wait.clone())
            });
            for position in &state.of_whole {
                let waits = self.edges[self.waits[*position].clone()].iter().cloned();
                edges.extend(waits.map(|edge| Edge { from: (*part).clone(), ..edge }));
            }
            for (earlier, open) in &state.before {
                let mut wait = Wait::new(WaitState::Met, Text::default());
                if let Some(before) = states.get(earlier).filter(|_| *open) {
                    wait = before.wait.clone();
                    wait.state = wait.state.max(WaitState::InProgress);
                    // That it has to wait itself makes it no less of a cause.
                    if is_in_line(&wait.reason) {
                        wait.reason = Reason::Waiting.as_str().into();
                    }
                }
                edges.push(Edge::waits((*part).clone(), (*earlier).clone(), wait));
            }
        }
        self.edges.append(&mut edges);
    }

    fn part(&self, part: &Node, positions: &[usize]) -> PartState<'a> {
        let plan = self.plan;
        let mut state =
            PartState { wait: self.wait_for_part(positions), before: BTreeMap::new(), of_whole: Vec::new() };
        for position in positions {
            for (earlier, after) in plan.before(*position).iter().zip(&plan.steps()[*position].after) {
                let (from, Some(known)) = (&plan.outline(*earlier).from, self.known[*earlier]) else {
                    continue;
                };
                let open = !is_passed(&plan.steps()[*earlier], known.record, after);
                if from.part.is_none() {
                    if open && !state.of_whole.contains(earlier) {
                        state.of_whole.push(*earlier);
                    }
                } else if from != part {
                    *state.before.entry(from).or_default() |= open;
                }
            }
        }
        state
    }

    /// How a part is as a whole: as the step of it that deserves most attention.
    fn wait_for_part(&self, positions: &[usize]) -> Wait {
        let unmet: Vec<(&Step, StepFacts<'_>)> = positions
            .iter()
            .filter_map(|position| Some((&self.plan.steps()[*position], self.known[*position]?)))
            .filter(|(step, known)| !step.optional && !is_good(step, *known))
            .collect();
        let failed = |(_, known): &&(&Step, StepFacts<'_>)| {
            matches!(known.record.state, StepState::Failed | StepState::Unknown)
        };
        let worst = unmet.iter().find(failed);
        let worst = worst.or_else(|| unmet.iter().find(|(_, known)| known.report.blocking));
        let Some((_, known)) = worst.or(unmet.first()) else {
            return Wait::new(WaitState::Met, Text::default());
        };
        let broken = unmet.iter().any(|one| failed(&one));
        let state = if broken { WaitState::Failed } else { WaitState::InProgress };
        let StepFacts { record, report, .. } = known;
        Wait {
            state,
            reason: report.reason.clone(),
            detail: report.message.clone(),
            since: Some(record.clock.unwrap_or(record.since).into()),
            selection: None,
            soft: None,
        }
    }
}

/// Whether an action makes nothing because its object is somebody else's, and stays that while it is tried again. Which one
/// of several it is is not remembered.
fn is_anothers(record: &StepRecord, makes: &Objects) -> bool {
    let refused = matches!(record.reason, Some(Reason::AlreadyExists | Reason::TakenBack));
    let failed = record.state == StepState::Failed || record.is_retried();
    refused && failed && makes.len() == 1
}

/// Whether an action only says that it makes something: outside of its own namespace that counts where it may, since others
/// wait for its object, or are left alone by a rule, because of that.
fn is_presumed(plan: &Plan, record: &StepRecord, denied: bool, made: &Node) -> bool {
    let home = made.cluster.is_none()
        && made.object.namespace.is_some()
        && made.object.namespace == plan.owner.namespace;
    let refused = record.state == StepState::Failed || record.is_retried();
    let refused = refused && record.reason == Some(Reason::Forbidden);
    !home && record.wrote.is_empty() && (denied || refused)
}

/// Whether a step is all that the object's own readiness asks of it.
fn is_good(step: &Step, known: StepFacts<'_>) -> bool {
    match &step.kind {
        StepKind::Require(_) => known.record.state == StepState::Met && known.report.ready,
        StepKind::Act(_) => known.record.is_successful(),
    }
}

fn suspended() -> Wait {
    Wait::new(WaitState::InProgress, Reason::Suspended.as_str()).detail(Reason::Suspended.in_words())
}

fn wait_state(record: &StepRecord, report: &StepReport) -> WaitState {
    match (record.state, report.word) {
        (StepState::Met, _) if report.ready => WaitState::Met,
        (StepState::Failed, _) | (_, "Failed") => WaitState::Failed,
        (_, "NotFound") => WaitState::Absent,
        // Its turn has not come, so nobody has looked; that is no trouble.
        _ if is_in_line(&report.reason) => WaitState::InProgress,
        (_, "Unknown" | "Error") => WaitState::Unknown,
        _ => WaitState::InProgress,
    }
}
