//! One step of the engine: what was observed and what came back, in; what to do next and why, out.
//!
//! `step` = judge (readiness, guards, rights, floors) → advance (over abstract facts; this is what is model-checked)
//! → render (at admission only) → report. It is total and deterministic: same inputs, same decision. The operator
//! calls it for every object whenever something it asked for has changed, an outcome came back, or its time came.

mod advance;
mod align;
pub(crate) mod backoff;
mod data;
mod effort;
mod fact;
mod inventory;
mod judge;
mod late;
mod outcome;
mod removal;
mod render;
mod report;
mod secret;

use std::{collections::BTreeSet, time::Duration};

use linchpin_words::{Reason, Shared, Timestamp};

pub use advance::{Advanced, advance};
pub use data::values;
pub use effort::Verdicts;
pub use fact::{Fact, GuardAnswer, Holds};
pub use judge::RequirementView;
pub use late::keep as keep_outcomes;
pub use removal::has_begun as removal_has_begun;
pub use report::{Phase, Report, StepBlocker, StepReport};
pub use secret::{Secrets, refusal as secret_refusal};

use crate::{
    contract::{Authority, Effect, Failure, Outcome, StepId, Ticket, Want, World},
    graph::CyclePath,
    journal::{Attempt, ItemState, Memory, StepState},
    plan::{ActionBody, Plan, PlannedAction, Removal, SpecError, Step},
};
use effort::Effort;
use judge::FreshWorld;

/// How long a request may take, where nothing else is said.
pub(crate) const REQUEST_DEADLINE: Duration = Duration::from_secs(30);

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// Carry out a plan.
    Converge(&'a Plan),
    /// The spec cannot be carried out: touch nothing, say why.
    Invalid(&'a SpecError),
    /// The object is being deleted: take away what must go, then let it go.
    Teardown {
        /// As whom.
        authority: &'a Authority,
        /// What becomes of what was made.
        removal: Removal,
        /// Whether the object's own namespace is going too: ask for deletions, wait for none.
        hurry: bool,
    },
}

/// When the journal must be saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Persist {
    /// It has not changed.
    #[default]
    Nothing,
    /// It has changed; saving it may wait a moment.
    Soon,
    /// The effects rely on it: save it first, and start nothing if that fails.
    BeforeEffects,
}

/// What to do next, and why.
#[derive(Clone, Debug)]
pub struct StepDecision {
    /// What to remember.
    pub memory: Memory,
    /// What to change.
    pub effects: Vec<Effect>,
    /// When to save the journal.
    pub persist: Persist,
    /// What to observe from now on.
    pub wants: Shared<BTreeSet<Want>>,
    /// When to step again, if nothing happens before.
    pub wake_at: Option<Timestamp>,
    /// For status, events and people.
    pub report: Report,
    /// For deletion: whether the finalizer may go.
    pub release: bool,
    /// Whether there was more to evaluate than one step may: the next one goes on, as soon as it is this object's turn.
    pub unfinished: bool,
    /// How many steps evaluating took.
    pub evaluated: u64,
}

/// One step.
pub fn step(
    memory: Memory,
    goal: Goal<'_>,
    world: &World,
    outcomes: &[Outcome],
    cycle: Option<&CyclePath>,
    now: Timestamp,
) -> StepDecision {
    let before = memory.journal.clone();
    let mut decision = match goal {
        Goal::Converge(plan) => converge(plan, memory, world, outcomes, cycle, now),
        Goal::Invalid(error) => invalid(memory, error, outcomes, now),
        Goal::Teardown { authority, removal, hurry } => {
            teardown(memory, authority, removal, hurry, world, outcomes, now)
        }
    };
    if decision.persist == Persist::Nothing && decision.memory.journal != before {
        decision.persist = Persist::Soon;
    }
    decision
}

fn converge(
    plan: &Plan,
    mut memory: Memory,
    world: &World,
    outcomes: &[Outcome],
    cycle: Option<&CyclePath>,
    now: Timestamp,
) -> StepDecision {
    let outcomes = &*late::with_kept(&mut memory, outcomes);
    let effort = Effort::new(std::mem::take(&mut memory.verdicts));
    let judged =
        judge::judge(plan, &memory.journal, &FreshWorld::new(world, &memory.journal, outcomes, &effort));
    let mut advanced = advance(plan, memory, &judged.facts, outcomes, now);
    removal::settle(&mut advanced.memory, outcomes, false, now);
    let mut work = Work { plan, effort: &effort, effects: Vec::new(), needs_saving: false, now };
    inventory::intend_early(plan, &mut advanced.memory);
    for position in std::mem::take(&mut advanced.start) {
        work.start(position, &mut advanced.memory, &judged.views, world);
    }
    work.order_next_waves(&mut advanced.memory);
    let fresh_world = FreshWorld::plain(world, &effort);
    judge::ask_for_awaited(plan, &advanced.memory.journal, &fresh_world);
    let mut removed = removal::RemovalPass { done: true, ..removal::RemovalPass::default() };
    let well = advanced.memory.journal.completed.is_some() && advanced.all_done && advanced.all_hold_now;
    if well && plan.prunes() {
        removed = removal::prune(plan, &mut advanced.memory, &fresh_world, now);
        work.effects.append(&mut removed.effects);
    }
    let records = advanced.memory.journal.in_order_of(plan);
    let mut report = report::converging(plan, &advanced, &records, &judged.views, &judged.facts, cycle, now);
    report.left.append(&mut removed.left);
    let since = advanced.memory.journal.completed.unwrap_or(now);
    report.blocked.extend(report::removal_blockers(&advanced.memory.journal, &removed.waiting, since));
    let asked = judged.asked.into_iter().chain(fresh_world.asked());
    let at_rest =
        advanced.memory.journal.is_at_rest(plan) && advanced.memory.flight.is_empty() && removed.done;
    let must_save = work.needs_saving && advanced.memory.critical > advanced.memory.saved;
    let effects = work.effects;
    let evaluated = effort.spent();
    let (verdicts, unfinished) = effort.end();
    advanced.memory.verdicts = verdicts;
    StepDecision {
        persist: if must_save && !effects.is_empty() { Persist::BeforeEffects } else { Persist::Nothing },
        memory: advanced.memory,
        effects,
        wants: if at_rest { Shared::default() } else { wants(plan, &judged.asking, asked) },
        wake_at: earliest(advanced.wake_at, removed.wake_at),
        report,
        release: true,
        unfinished,
        evaluated,
    }
}

/// What a plan always asks of the world, the rights of the actions that have not begun, and what else it asks now.
fn wants(plan: &Plan, asking: &[usize], asked: impl Iterator<Item = Want>) -> Shared<BTreeSet<Want>> {
    let mut wants = plan.wants(asking);
    for want in asked {
        if !wants.contains(&want) {
            wants.insert(want);
        }
    }
    wants
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Ordering effects for actions that were admitted.
struct Work<'a> {
    plan: &'a Plan,
    effort: &'a Effort,
    effects: Vec<Effect>,
    /// Whether an effect relies on the journal as it is now.
    needs_saving: bool,
    now: Timestamp,
}

impl Work<'_> {
    fn start(&mut self, position: usize, memory: &mut Memory, views: &[RequirementView], world: &World) {
        let step = &self.plan.steps()[position];
        let Some(action) = step.action() else { return };
        let basis = render::RenderInput { journal: &memory.journal, views, world, effort: self.effort };
        match render::render(self.plan, step, action, &basis) {
            Ok(rendered) => {
                inventory::intend(memory, self.plan, position, action, &rendered.targets);
                if let ActionBody::Delete { .. } = &action.body {
                    doom(memory, &step.id, views[position].doomed.as_ref());
                }
                let attempt = Attempt {
                    waves: rendered.waves,
                    targets: rendered.targets,
                    discreet: rendered.discreet,
                    ..Attempt::default()
                };
                memory.attempts.insert(step.id.clone(), attempt);
            }
            Err(render::RenderProblem::Missing(message)) => {
                self.put_off(step, memory, Reason::ValueMissing, message);
            }
            Err(render::RenderProblem::Postponed) => {
                let message = Reason::Evaluating.in_words();
                self.put_off(step, memory, Reason::Evaluating, message);
            }
            Err(render::RenderProblem::Wrong(message)) => {
                let failure = Failure::Render(message.clone());
                memory.messages.insert(step.id.clone(), message);
                if let Some(record) = memory.journal.steps.get_mut(&step.id) {
                    record.token = None;
                    outcome::fail(self.plan, step, action, record, &failure, self.now);
                }
            }
        }
    }

    /// An action that was admitted waits all the same.
    fn put_off(&self, step: &Step, memory: &mut Memory, reason: Reason, message: String) {
        memory.messages.insert(step.id.clone(), message);
        if let Some(record) = memory.journal.steps.get_mut(&step.id) {
            record.attempt = record.attempt.saturating_sub(1);
            record.token = None;
            if record.reason == Some(Reason::TimedOut) {
                // It had no time left before it was looked at once more.
                record.become_state(StepState::Failed, Some(Reason::TimedOut), self.now);
                record.retry_at = Some(self.now);
            } else {
                record.become_state(StepState::Waiting, Some(reason), self.now);
            }
        }
    }

    /// Orders the next wave of every attempt that has nothing in flight.
    fn order_next_waves(&mut self, memory: &mut Memory) {
        let Memory { journal, flight, attempts, .. } = memory;
        for (id, attempt) in attempts.iter_mut() {
            if attempt.worst.is_some() || flight.iter().any(|ticket| ticket.step == *id) {
                continue;
            }
            let step = self.plan.position(id).map(|position| &self.plan.steps()[position]);
            let Some((step, action)) = step.and_then(|step| Some((step, step.action()?))) else {
                continue;
            };
            let (Some(record), Some(wave)) = (journal.steps.get(id), attempt.waves.pop()) else {
                continue;
            };
            for verb in wave {
                let ticket = Ticket {
                    step: id.clone(),
                    run: record.run,
                    attempt: record.attempt,
                    part: attempt.ordered,
                };
                attempt.ordered += 1;
                flight.insert(ticket.clone());
                self.effects.push(Effect {
                    ticket,
                    via: action.via.clone(),
                    verb,
                    discreet: attempt.discreet,
                    deadline: deadline(action),
                    rank: step.rank,
                });
            }
            let deletes = matches!(action.body, ActionBody::Delete { .. });
            self.needs_saving |= action.delivery().is_some() || action.reads_now || action.tracked || deletes;
            // That it was admitted is known for good before anything of it happens.
            self.needs_saving |= self.plan.admission.is_some();
        }
        // Attempts are kept by name; what starts in one moment starts in the plan's order.
        let plan = self.plan;
        self.effects.sort_by_key(|effect| plan.position(&effect.ticket.step));
    }
}

/// Remembers which incarnation is deleted, before that is ordered: after a crash or a lost answer it is still that one.
fn doom(memory: &mut Memory, step: &StepId, uid: Option<&String>) {
    if let Some(record) = memory.journal.steps.get_mut(step)
        && record.deletes.is_none()
    {
        record.deletes = uid.cloned();
        memory.critical += 1;
    }
}

fn deadline(action: &PlannedAction) -> Duration {
    match &action.body {
        ActionBody::Exec { timeout, .. } => *timeout,
        _ => REQUEST_DEADLINE,
    }
}

fn invalid(mut memory: Memory, error: &SpecError, outcomes: &[Outcome], now: Timestamp) -> StepDecision {
    late::keep(&mut memory, outcomes, now);
    let report = Report::invalid(error);
    StepDecision {
        memory,
        effects: Vec::new(),
        persist: Persist::Nothing,
        wants: Shared::default(),
        wake_at: None,
        report,
        release: true,
        unfinished: false,
        evaluated: 0,
    }
}

fn teardown(
    mut memory: Memory,
    authority: &Authority,
    policy: Removal,
    hurry: bool,
    world: &World,
    outcomes: &[Outcome],
    now: Timestamp,
) -> StepDecision {
    let outcomes = &*late::with_kept(&mut memory, outcomes);
    // Effects of the plan that come back now still say what was created.
    inventory::remember_late(&mut memory, outcomes);
    removal::settle(&mut memory, outcomes, true, now);
    let effort = Effort::new(Verdicts::default());
    memory.verdicts = Verdicts::default();
    let fresh_world = FreshWorld::plain(world, &effort);
    let mut removed = removal::RemovalPass { done: true, ..removal::RemovalPass::default() };
    let plan_effects_out = memory.flight.iter().any(|ticket| !removal::is_deletion(ticket));
    if !plan_effects_out {
        removed = match policy {
            Removal::Delete => {
                let pass = removal::Pass { authority, fresh_world: &fresh_world, deleting: true, hurry, now };
                removal::remove(&mut memory, &pass, &|_| true)
            }
            Removal::Retain => removal::disown(&mut memory, authority, now),
        };
    }
    let left: Vec<String> = memory
        .journal
        .inventory
        .iter()
        .filter(|item| item.state == ItemState::Left)
        .map(removal::left)
        .collect();
    let release = removed.done && !plan_effects_out || hurry && removed.effects.is_empty();
    let report = Report::deleting(&memory, &removed.waiting, left, now);
    StepDecision {
        persist: Persist::Nothing,
        effects: removed.effects,
        wants: Shared::new(if release { BTreeSet::new() } else { fresh_world.asked().into_iter().collect() }),
        wake_at: removed.wake_at,
        report,
        release,
        unfinished: false,
        evaluated: 0,
        memory,
    }
}
