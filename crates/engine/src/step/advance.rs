//! Moving the journal forward: from abstract facts and outcomes to what starts now.
//!
//! This is the part of the engine that is model-checked. It knows steps, edges, clocks and records; it knows no
//! object, no text and no API. Promises: no action starts before all its requirements hold together; an effect that
//! must not happen twice is ordered once per token; a record of a good end never changes but by a rule that says so.

use linchpin_words::{Reason, Timestamp};

use super::{
    adopt::{adopt, begin_run, forget},
    backoff::{self, Pace},
    fact::{Answer, Fact, Holds},
    outcome,
};
use crate::{
    contract::Outcome,
    journal::{Halt, Journal, Memory, Progress, Record, StepState},
    plan::{Body, Lane, Plan, Recovery, Rerun, Step, StepKind},
};

/// What has been decided, before anything is rendered.
#[derive(Clone, Debug)]
pub struct Advanced {
    /// The new memory. Steps in `start` are `Running` in it already.
    pub memory: Memory,
    /// Positions of the actions that start now.
    pub start: Vec<usize>,
    /// When to look again, if nothing happens before.
    pub wake_at: Option<Timestamp>,
    /// For each step, whether its turn has come.
    pub open: Vec<bool>,
    /// Whether all requirements that can be judged now hold.
    pub all_hold: bool,
    /// Whether the plan has failed and nothing of it can go on by itself.
    pub failing: bool,
}

/// One pass over a plan.
struct Pass<'a> {
    plan: &'a Plan,
    facts: &'a [Fact],
    memory: Memory,
    records: Vec<Record>,
    now: Timestamp,
    wake_at: Option<Timestamp>,
    /// Whether each step's edges are satisfied.
    open: Vec<bool>,
    /// Whether every requirement above each step holds.
    supported: Vec<bool>,
    start: Vec<usize>,
}

/// Moves `memory` forward. `facts` has one entry per step, in the plan's order.
pub fn advance(
    plan: &Plan,
    memory: Memory,
    facts: &[Fact],
    outcomes: &[Outcome],
    now: Timestamp,
) -> Advanced {
    let (memory, records) = adopt(plan, memory, now);
    let count = records.len();
    let mut pass = Pass {
        plan,
        facts,
        memory,
        records,
        now,
        wake_at: None,
        open: vec![false; count],
        supported: vec![false; count],
        start: Vec::new(),
    };
    outcome::settle(plan, &mut pass.memory, &mut pass.records, outcomes, now);
    if plan.suspended {
        return pass.finish(false);
    }
    pass.move_running();
    let failures = pass.judge_requirements();
    pass.halt_or_recover(failures);
    pass.rerun_changed();
    if pass.memory.journal.halt.is_none() {
        pass.start_ready();
    }
    pass.complete();
    let failing = pass.has_failed();
    if failing {
        pass.start_on_failure();
    }
    pass.finish(failing)
}

/// A requirement that failed or ran out of time.
struct Broken {
    position: usize,
    reason: Reason,
}

impl<'a> Pass<'a> {
    fn steps(&self) -> &'a [Step] {
        self.plan.steps()
    }

    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Actions that are under way without an effect in flight: pauses end, awaited things arrive.
    fn move_running(&mut self) {
        for position in 0..self.records.len() {
            let Some(action) = self.steps()[position].action() else {
                continue;
            };
            if self.records[position].state != StepState::Running {
                continue;
            }
            if let Body::Wait(pause) = &action.body {
                let until = add(self.records[position].since, *pause);
                if until <= self.now {
                    self.records[position].become_state(StepState::Done, None, self.now);
                } else {
                    self.wake(until);
                }
            } else if self.records[position].awaits.is_some() && self.facts[position].awaited {
                self.records[position].awaits = None;
                self.records[position].become_state(StepState::Done, None, self.now);
            }
        }
    }

    /// Opens what may be opened, moves requirements, and names those that are broken.
    fn judge_requirements(&mut self) -> Vec<Broken> {
        let mut broken = Vec::new();
        for position in 0..self.records.len() {
            let (open, supported) = self.gate(position);
            self.open[position] = open;
            self.supported[position] = supported;
            if matches!(self.steps()[position].kind, StepKind::Require(_))
                && let Some(reason) = self.judge_requirement(position)
            {
                broken.push(Broken { position, reason });
            }
        }
        broken
    }

    /// Whether all that a step comes after is there, and whether all requirements above it hold.
    fn gate(&mut self, position: usize) -> (bool, bool) {
        let (mut open, mut supported) = (true, true);
        let plan = self.plan;
        for (earlier, after) in plan.before(position).iter().zip(&plan.steps()[position].after) {
            let step = &plan.steps()[*earlier];
            let record = &self.records[*earlier];
            match step.kind {
                StepKind::Require(_) => {
                    let holds = record.state == StepState::Met || (step.optional && self.observed(*earlier));
                    open &= holds;
                    supported &= holds && self.supported[*earlier];
                }
                StepKind::Act(_) => {
                    let ended = if after.settled_is_enough {
                        record.is_settled()
                    } else {
                        record.is_successful()
                    };
                    let released = step.delay_after.map(|delay| add(record.since, delay));
                    if ended && let Some(at) = released.filter(|at| *at > self.now) {
                        open = false;
                        self.wake(at);
                    }
                    open &= ended;
                    supported &= self.supported[*earlier];
                }
            }
        }
        (open, supported)
    }

    /// Whether anything has been observed of an optional requirement; an obstacle that will not pass counts.
    fn observed(&self, position: usize) -> bool {
        self.open[position] && self.facts[position].holds != Holds::Unknown { passing: true }
    }

    fn judge_requirement(&mut self, position: usize) -> Option<Reason> {
        let step = &self.steps()[position];
        let fact = &self.facts[position];
        let now = self.now;
        let record = &mut self.records[position];
        if !self.open[position] {
            record.become_state(StepState::Waiting, None, now);
            record.clock = None;
            record.progress = None;
            return None;
        }
        if fact.holds == Holds::Met || record.proceeded {
            if fact.latch.is_some() {
                record.latch.clone_from(&fact.latch);
            }
            let reason = (fact.holds != Holds::Met).then_some(Reason::Proceeded);
            record.become_state(StepState::Met, reason, now);
            record.clock = None;
            record.progress = None;
            return None;
        }
        let clock = *record.clock.get_or_insert(now);
        let moved = match record.progress {
            Some(progress) if progress.marker == fact.progress => progress.moved,
            _ => now,
        };
        record.progress = step.progress_timeout.map(|_| Progress {
            marker: fact.progress,
            moved,
        });
        if step.optional {
            record.become_state(StepState::Waiting, None, now);
            return None;
        }
        if fact.holds == Holds::Failed {
            record.become_state(StepState::Failed, Some(Reason::DependencyFailed), now);
            return Some(Reason::DependencyFailed);
        }
        let deadlines = [
            (step.timeout.map(|timeout| add(clock, timeout)), Reason::TimedOut),
            (
                step.progress_timeout.map(|timeout| add(moved, timeout)),
                Reason::ProgressTimeout,
            ),
        ];
        for (deadline, reason) in deadlines {
            let Some(deadline) = deadline else { continue };
            if deadline > now {
                self.wake(deadline);
            } else if fact.live {
                self.records[position].become_state(StepState::Failed, Some(reason), now);
                return Some(reason);
            }
        }
        self.records[position].become_state(StepState::Waiting, None, now);
        None
    }

    /// Whether every requirement whose turn has come holds.
    fn all_hold(&self) -> bool {
        (0..self.records.len()).all(|position| {
            let step = &self.steps()[position];
            !matches!(step.kind, StepKind::Require(_))
                || step.optional
                || !self.open[position] && self.waits_for_action(position)
                || self.records[position].state == StepState::Met
        })
    }

    /// Whether a closed requirement is closed by an action that has not run, and by nothing else.
    fn waits_for_action(&self, position: usize) -> bool {
        self.plan.before(position).iter().any(|earlier| {
            matches!(self.steps()[*earlier].kind, StepKind::Act(_)) && !self.records[*earlier].is_successful()
        })
    }

    fn halt_or_recover(&mut self, broken: Vec<Broken>) {
        let all_hold = self.all_hold();
        if let Some(halt) = &self.memory.journal.halt {
            let early = halt.until.filter(|until| *until > self.now);
            if let Some(until) = early {
                self.wake(until);
            }
            if self.plan.recovery == Recovery::Automatic && all_hold && early.is_none() {
                self.recover();
            }
            return;
        }
        if self.memory.journal.completed.is_some() {
            return;
        }
        if let Some(first) = broken.into_iter().next() {
            let step = self.steps()[first.position].id.clone();
            self.halt(first.reason, Some(step), None);
            return;
        }
        let Some(limit) = self.plan.global_timeout else {
            return;
        };
        let deadline = add(self.memory.journal.run.clock, limit);
        if deadline > self.now {
            self.wake(deadline);
        } else if self.view_is_live() {
            // With nothing left to wait for, an immediate recovery would hide the failure: it is shown for a while.
            let until = all_hold.then(|| {
                let step = crate::contract::StepId::new("global timeout");
                add(self.now, backoff::delay(Pace::Refused, &self.plan.uid, &step, 5))
            });
            if let Some(until) = until {
                self.wake(until);
            }
            self.halt(Reason::GlobalTimeout, None, until);
        }
    }

    /// Whether every requirement that is not met was looked at live, so that lateness is theirs and not the view's.
    fn view_is_live(&self) -> bool {
        (0..self.records.len()).all(|position| {
            let step = &self.steps()[position];
            !matches!(step.kind, StepKind::Require(_))
                || step.optional
                || !self.open[position]
                || self.records[position].state == StepState::Met
                || self.facts[position].live
        })
    }

    fn halt(&mut self, reason: Reason, step: Option<crate::contract::StepId>, until: Option<Timestamp>) {
        self.memory.journal.halt = Some(Halt {
            reason,
            step,
            since: self.now,
            until,
        });
    }

    /// The cause went away: a new run, and a new chance for actions that failed.
    fn recover(&mut self) {
        self.memory.journal.halt = None;
        begin_run(&mut self.memory, self.now);
        for (step, record) in self.plan.steps().iter().zip(&mut self.records) {
            if step.lane == Lane::Main && step.action().is_some() && record.state == StepState::Failed {
                forget(record, self.now);
            }
        }
    }

    /// Finished actions that must run again, by their rule.
    fn rerun_changed(&mut self) {
        let all_hold = self.all_hold();
        let mut renewed = false;
        for position in 0..self.records.len() {
            let Some(action) = self.steps()[position].action() else {
                continue;
            };
            let fact = &self.facts[position];
            let record = &mut self.records[position];
            if !record.is_successful() {
                continue;
            }
            match &action.rerun {
                Rerun::Never => {}
                Rerun::OnDrift => {
                    if fact.drifted && record.state == StepState::Done {
                        forget(record, self.now);
                        record.reason = Some(Reason::Drifted);
                    }
                }
                Rerun::OnReads(events) => {
                    for (dependency, wanted) in events {
                        let Some(seen) = fact.triggers.get(dependency) else {
                            continue;
                        };
                        let before = record.triggers.get(dependency);
                        if before == Some(seen) {
                            continue;
                        }
                        let before_uid = before.and_then(|trigger| trigger.uid.as_ref());
                        let counts = match (before_uid, seen.uid.as_ref()) {
                            (Some(_), None) => wanted.delete,
                            (Some(before), Some(now)) if before == now => wanted.update,
                            (None, None) => false,
                            _ => wanted.create,
                        };
                        record.rerun_pending |= counts;
                        record.triggers.insert(dependency.clone(), seen.clone());
                    }
                    if record.rerun_pending && all_hold && self.supported[position] {
                        forget(record, self.now);
                        renewed = true;
                    }
                }
            }
        }
        if renewed {
            self.memory.journal.completed = None;
            begin_run(&mut self.memory, self.now);
        }
    }

    fn start_ready(&mut self) {
        let frozen: Vec<usize> = (0..self.records.len())
            .filter(|position| {
                self.steps()[*position].fail_fast
                    && matches!(
                        self.records[*position].state,
                        StepState::Failed | StepState::Unknown
                    )
            })
            .collect();
        for position in 0..self.records.len() {
            let step = &self.steps()[position];
            if step.lane != Lane::Main || step.action().is_none() {
                continue;
            }
            if !matches!(
                self.records[position].state,
                StepState::Waiting | StepState::Failed
            ) {
                continue;
            }
            // Earlier actions of this very pass may have moved since the gate was judged.
            let (open, supported) = self.gate(position);
            self.open[position] = open;
            self.supported[position] = supported;
            let fact = &self.facts[position];
            let stopped = !frozen.is_empty() && !frozen.contains(&position);
            if !open || !supported || stopped || !fact.supplied {
                self.records[position].clock = None;
                continue;
            }
            self.take_turn(position);
        }
    }

    /// An action whose turn has come: ask its guard, respect its clocks, start it.
    fn take_turn(&mut self, position: usize) {
        let step = &self.steps()[position];
        let fact = &self.facts[position];
        let now = self.now;
        let clock = *self.records[position].clock.get_or_insert(now);
        match fact.guard {
            Answer::No => {
                self.records[position].become_state(StepState::Skipped, Some(Reason::GuardFalse), now);
                return;
            }
            Answer::Undecided => return self.await_guard(position, clock),
            Answer::Yes => {}
        }
        let guard_had_failed = self.records[position].reason == Some(Reason::GuardTimedOut);
        if let Some(at) = self.records[position].retry_at.filter(|at| *at > now)
            && !fact.awaited
            && !guard_had_failed
        {
            self.wake(at);
            if let Some(deadline) = step.timeout.map(|timeout| add(clock, timeout)) {
                if deadline > now {
                    self.wake(deadline);
                } else if self.records[position].state == StepState::Waiting {
                    self.records[position].become_state(StepState::Failed, Some(Reason::TimedOut), now);
                }
            }
            return;
        }
        let never = self.records[position].state == StepState::Failed
            && self.records[position].retry_at.is_none()
            && !guard_had_failed;
        if never {
            return;
        }
        self.begin(position);
    }

    fn await_guard(&mut self, position: usize, clock: Timestamp) {
        let step = &self.steps()[position];
        let now = self.now;
        let limit = step.when.as_ref().and_then(|guard| guard.timeout(self.plan));
        if let Some(deadline) = limit.map(|limit| add(clock, limit)) {
            if deadline > now {
                self.wake(deadline);
            } else if self.facts[position].live {
                self.records[position].become_state(StepState::Failed, Some(Reason::GuardTimedOut), now);
                return;
            }
        }
        if self.records[position].state == StepState::Waiting {
            self.records[position].become_state(StepState::Waiting, Some(Reason::GuardUndecided), now);
        }
    }

    fn begin(&mut self, position: usize) {
        let Some(action) = self.steps()[position].action() else {
            return;
        };
        let run = self.memory.journal.run.id;
        let record = &mut self.records[position];
        record.attempt = if record.run == run { record.attempt + 1 } else { 1 };
        record.run = run;
        record.retry_at = None;
        record.awaits = None;
        record.rerun_pending = false;
        record.triggers.clone_from(&self.facts[position].triggers);
        record.become_state(StepState::Running, None, self.now);
        if action.delivery().is_some() {
            record.token = Some(token(self.plan, &self.plan.steps()[position], run));
            self.memory.critical += 1;
        }
        if let Body::Wait(pause) = &action.body {
            let until = add(self.now, *pause);
            if until <= self.now {
                self.records[position].become_state(StepState::Done, None, self.now);
            } else {
                self.wake(until);
            }
        } else {
            self.start.push(position);
        }
    }

    /// All actions ended well, and every requirement that no action stands for holds: done, once per generation.
    fn complete(&mut self) {
        let steps = self.steps();
        let acts_done = steps
            .iter()
            .zip(&self.records)
            .filter(|(step, _)| step.lane == Lane::Main && step.action().is_some())
            .all(|(_, record)| record.is_successful());
        if !acts_done {
            self.memory.journal.completed = None;
            return;
        }
        if self.memory.journal.completed.is_some() || self.memory.journal.halt.is_some() {
            return;
        }
        let mut stood_for = vec![false; steps.len()];
        for position in (0..steps.len()).rev() {
            let acts = steps[position].action().is_some() && steps[position].lane == Lane::Main;
            if acts || stood_for[position] {
                for earlier in self.plan.before(position) {
                    stood_for[*earlier] = true;
                }
            }
        }
        let leaves_hold = (0..steps.len()).all(|position| {
            steps[position].action().is_some()
                || stood_for[position]
                || steps[position].optional && self.observed(position)
                || self.records[position].state == StepState::Met
        });
        if leaves_hold {
            self.memory.journal.completed = Some(self.now);
        }
    }

    /// Whether the plan has failed and nothing of it can go on by itself.
    fn has_failed(&self) -> bool {
        if self.memory.journal.halt.is_some() {
            return true;
        }
        let mut failed = false;
        for (position, (step, record)) in self.steps().iter().zip(&self.records).enumerate() {
            if step.lane != Lane::Main {
                continue;
            }
            let is_action = step.action().is_some();
            match record.state {
                StepState::Failed | StepState::Unknown if is_action => failed = true,
                StepState::Running => return false,
                StepState::Waiting if is_action && self.open[position] && self.supported[position] => {
                    return false;
                }
                StepState::Waiting if !is_action && self.open[position] && !step.optional => return false,
                _ => {}
            }
        }
        failed
    }

    fn start_on_failure(&mut self) {
        for position in 0..self.records.len() {
            let step = &self.steps()[position];
            let due = self.records[position].retry_at.is_none_or(|at| at <= self.now);
            if step.lane == Lane::OnFailure && self.records[position].state == StepState::Waiting && due {
                self.begin(position);
            }
        }
    }

    fn finish(mut self, failing: bool) -> Advanced {
        let all_hold = self.all_hold();
        let retries: Vec<Timestamp> = self
            .records
            .iter()
            .zip(self.plan.steps())
            .filter(|(_, step)| step.lane == Lane::OnFailure)
            .filter_map(|(record, _)| record.retry_at.filter(|at| *at > self.now))
            .collect();
        for at in retries {
            self.wake(at);
        }
        let mut records: Vec<Option<Record>> = self.records.into_iter().map(Some).collect();
        self.memory.journal.steps = self
            .plan
            .by_name()
            .iter()
            .filter_map(|position| {
                Some((
                    self.plan.steps()[*position].id.clone(),
                    records[*position].take()?,
                ))
            })
            .collect();
        Advanced {
            memory: self.memory,
            start: self.start,
            wake_at: self.wake_at,
            open: self.open,
            all_hold,
            failing,
        }
    }
}

/// The token of one execution: the object, the step, its text and the run.
fn token(plan: &Plan, step: &Step, run: u64) -> String {
    let mut hash = linchpin_words::hash::sha256_hex(
        format!("{}\n{}\n{}\n{run}", plan.uid, step.id, step.definition).as_bytes(),
    );
    hash.truncate(32);
    hash
}

/// A later time.
pub(super) fn add(time: Timestamp, duration: std::time::Duration) -> Timestamp {
    time.plus_duration(duration)
}

impl Journal {
    /// Whether this object is done and, without watching, has nothing more to look at.
    pub fn is_at_rest(&self, plan: &Plan) -> bool {
        self.uid == plan.uid
            && self.generation == plan.generation
            && self.completed.is_some()
            && !plan.watch
            && self.orders.requested_at == plan.orders.requested_at
            && plan
                .orders
                .rerun
                .as_ref()
                .is_none_or(|order| self.orders.rerun.as_ref() == Some(&order.value))
    }
}
