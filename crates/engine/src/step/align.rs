//! Bringing memory and plan together: a new object, a new generation, orders given by hand, suspension.

use linchpin_words::{Reason, Shared, Timestamp};

use crate::{
    journal::{Journal, Memory, Run, StepRecord, StepState},
    plan::{LatchScope, Plan, PlanLane, RerunOverride, Step, is_comparable, same_definition},
};

/// Memory made to fit the plan, and a record for each step in the plan's order.
pub(super) fn align(plan: &Plan, mut memory: Memory, now: Timestamp) -> (Memory, Vec<Shared<StepRecord>>) {
    if memory.journal.uid != plan.uid {
        memory = Memory::fresh(&plan.uid, plan.generation, now);
    }
    let mut records = Vec::with_capacity(plan.steps().len());
    let mut more_to_do = false;
    for (step, known) in plan.steps().iter().zip(memory.journal.in_order_of(plan)) {
        records.push(match known {
            Some(record) if record.definition == step.definition => record.clone(),
            Some(record) if same_definition(&record.definition, &step.definition) => {
                let mut record = record.clone();
                // One that could not be compared is known from now on.
                if is_comparable(&step.definition) {
                    record.definition.clone_from(&step.definition);
                }
                record
            }
            known => {
                memory.attempts.remove(&step.id);
                more_to_do |= is_action(step) && step.lane == PlanLane::Main;
                let mut record = StepRecord::new(&step.definition, now);
                // What its former text wrote stays known: the floor under later observations.
                record.wrote = known.map(|known| known.wrote.clone()).unwrap_or_default();
                Shared::new(record)
            }
        });
    }
    memory.attempts.retain(|id, _| plan.position(id).is_some());
    memory.messages.retain(|id, _| plan.position(id).is_some());
    for (query, kind) in &plan.terms.kinds {
        if !memory.journal.kinds.contains_key(query) {
            memory.journal.kinds.insert(query.clone(), kind.clone());
        }
    }
    let edition_changed = follow_edition(plan, &mut memory, &mut records);
    if memory.journal.generation != plan.generation {
        memory.journal.orders.used.clear();
        renew(plan, &mut memory, &mut records, now);
    } else if edition_changed {
        renew(plan, &mut memory, &mut records, now);
    } else if more_to_do && memory.journal.completed.take().is_some() {
        // All was done, and something that the plan is made from (values of another object) asks for more.
        begin_run(&mut memory, now);
    }
    follow_overrides(plan, &mut memory, &mut records, now);
    stop_clocks(plan, &mut memory.journal, &mut records, now);
    (memory, records)
}

/// What was met once, as far as it still counts. Where that is enough, it is of one text, may be of one edition, and
/// orders re-open it: what was remembered must not be taken for what is seen.
pub(super) fn latch<'a>(
    plan: &Plan,
    journal: &Journal,
    step: &Step,
    record: &'a StepRecord,
) -> Option<&'a str> {
    let lasts = step.requirement().map(|requirement| requirement.lasts).unwrap_or_default();
    let is_over = !same_definition(&record.definition, &step.definition)
        || lasts == LatchScope::Edition && brings_another_edition(plan, journal)
        || new_rerun(plan, journal).is_some_and(|order| order.reopens(&step.id));
    record.latch.as_deref().filter(|_| !(lasts.lasts() && is_over))
}

/// Whether there is something else to apply than what was looked at last.
fn brings_another_edition(plan: &Plan, journal: &Journal) -> bool {
    let seen = plan.admission.as_ref().zip(journal.editions.seen.as_ref());
    seen.is_some_and(|(admission, seen)| !seen.is(&admission.edition))
}

/// An order to run steps again that has not been followed yet.
fn new_rerun<'a>(plan: &'a Plan, journal: &Journal) -> Option<&'a RerunOverride> {
    plan.terms.orders.rerun.as_ref().filter(|order| journal.orders.rerun.as_ref() != Some(&order.value))
}

/// Takes note of what is to be applied; whether that is something else than before.
fn follow_edition(plan: &Plan, memory: &mut Memory, records: &mut [Shared<StepRecord>]) -> bool {
    let Some(admission) = &plan.admission else { return false };
    let changes = brings_another_edition(plan, &memory.journal);
    let editions = &mut memory.journal.editions;
    editions.rename(&admission.edition);
    if changes || editions.seen.is_none() {
        editions.seen = Some(admission.edition.clone());
    }
    if !changes {
        return false;
    }
    for (step, record) in plan.steps().iter().zip(records) {
        let lasts = step.requirement().map(|requirement| requirement.lasts);
        if lasts == Some(LatchScope::Edition) && record.latch.is_some() {
            record.latch = None;
        }
    }
    true
}

/// A new generation or edition: a new run, and a new chance for everything that did not end well.
fn renew(plan: &Plan, memory: &mut Memory, records: &mut [Shared<StepRecord>], now: Timestamp) {
    memory.journal.generation = plan.generation;
    memory.journal.halt = None;
    memory.journal.completed = None;
    begin_run(memory, now);
    let admitted = plan.admission.is_some() && !memory.journal.is_held(plan);
    for (step, record) in plan.steps().iter().zip(records) {
        // What the last admission went past without stays so until it is there or something else is admitted.
        let goes_without = step.patience.is_some() && record.reason == Some(Reason::SoftBroken);
        record.proceeded &= admitted && goes_without;
        record.clock = None;
        match record.state {
            // It was done before, and only met its own work.
            StepState::Skipped if record.reason == Some(Reason::CreatedBefore) => {}
            StepState::Failed | StepState::Skipped => forget(record, now),
            StepState::Waiting => record.retry_at = None,
            StepState::Done if step.lane == PlanLane::OnFailure => forget(record, now),
            _ => {}
        }
    }
}

/// Orders given by annotation, each carried out once.
fn follow_overrides(plan: &Plan, memory: &mut Memory, records: &mut [Shared<StepRecord>], now: Timestamp) {
    let given = &plan.terms.orders;
    if given.requested_at.is_some() && given.requested_at != memory.journal.orders.requested_at {
        memory.journal.orders.requested_at.clone_from(&given.requested_at);
        let again = |state| matches!(state, StepState::Failed | StepState::Unknown);
        if memory.journal.halt.is_some() || records.iter().any(|record| again(record.state)) {
            memory.journal.halt = None;
            begin_run(memory, now);
            records.iter_mut().filter(|record| again(record.state)).for_each(|record| forget(record, now));
        }
        for record in records.iter_mut().filter(|record| record.retry_at.is_some()) {
            record.retry_at = None;
        }
    }
    if let Some(order) = new_rerun(plan, &memory.journal) {
        memory.journal.orders.rerun = Some(order.value.clone());
        memory.journal.halt = None;
        memory.journal.completed = None;
        begin_run(memory, now);
        for (step, record) in plan.steps().iter().zip(records.iter_mut()) {
            let named = order.steps.as_ref().is_none_or(|steps| steps.contains(&step.id));
            // A new run has its whole time for what it waits for.
            let late = !is_action(step) && record.state == StepState::Failed;
            if late || named && is_action(step) && record.is_settled() {
                forget(record, now);
            }
            // A gate that was met once and for all is looked at again.
            if order.reopens(&step.id) && record.latch.is_some() {
                record.latch = None;
                record.become_state(StepState::Waiting, None, now);
            }
        }
    }
    // An order that was taken away is a new one when it is given again.
    memory.journal.orders.used.retain(|id| given.proceed.contains(id));
    for id in &given.proceed {
        if memory.journal.orders.used.contains(id) {
            continue;
        }
        if let Some(position) = plan.position(id).filter(|position| !records[*position].proceeded) {
            records[position].proceeded = true;
        }
    }
}

fn is_action(step: &Step) -> bool {
    step.action().is_some()
}

/// Clocks are stopped while suspended: on return they are moved on by the time that passed, those that began meanwhile
/// to this moment. Returning is a new generation, whose own clock begins now.
fn stop_clocks(plan: &Plan, journal: &mut Journal, records: &mut [Shared<StepRecord>], now: Timestamp) {
    if plan.terms.suspended {
        journal.suspended.get_or_insert(now);
        return;
    }
    let Some(since) = journal.suspended.take() else {
        return;
    };
    let shift = |time: &mut Timestamp| *time = time.plus(now.since(since.max(*time)));
    shift(&mut journal.run.clock);
    for (step, record) in plan.steps().iter().zip(records) {
        record.clock.iter_mut().for_each(shift);
        record.progress.iter_mut().for_each(|progress| shift(&mut progress.moved));
        let pauses = step.delay_after.is_some_and(|delay| record.since.plus_duration(delay) > since);
        if record.state == StepState::Running || pauses {
            shift(&mut record.since);
        }
    }
}

/// Begins a new run. Effects that read its start rely on it, so it must be saved before them.
pub(super) fn begin_run(memory: &mut Memory, now: Timestamp) {
    memory.journal.run = Run { id: memory.journal.run.id.saturating_add(1), now, clock: now };
    memory.critical += 1;
}

/// A step is to be done anew. What it wrote before stays known: the floor under later observations.
pub(super) fn forget(record: &mut StepRecord, now: Timestamp) {
    record.become_state(StepState::Waiting, None, now);
    record.attempt = 0;
    record.retry_at = None;
    record.clock = None;
    record.awaits = None;
    record.token = None;
    record.deletes = None;
    record.rerun_pending = false;
}
