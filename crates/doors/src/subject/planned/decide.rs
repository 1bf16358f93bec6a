//! One turn of an object of ours: recall, compile, step, report; or take down, where it is being deleted.

use std::collections::BTreeSet;

use linchpin_engine::{
    contract::{Actor, ClusterRef, Done, Notice, Outcome, ReadSet, Seen, Via, Want, World},
    journal::Memory,
    plan::{Plan, Removal, SpecError},
    readiness::Wanted,
    step::{self, Goal, Persist, Phase, Report, StepBlocker, step},
};
use linchpin_words::{Gvk, Period, Reason, Shared, Timestamp, keys, text};

use super::{OwedStatus, PendingStatus, Planned, ReportedPhase, passed_by_hand, steps_with};
use crate::{
    door::{CompileInput, Door, HistoryInput, Hold, HoldInput, StatusInput, VisibleCauses},
    registry::Registry,
    subject::{Asks, Decision, FinalizerChange, Needs, News, Own, SubjectInput},
    sync::state_word,
};

/// How often compiling may ask for more facts in one turn.
const ROUNDS: usize = 4;

impl<D: Door> Planned<D> {
    pub(super) fn take_turn(&mut self, look: &SubjectInput<'_>) -> Result<Decision, Asks> {
        let memory = match self.recall(look.now) {
            Ok(memory) => memory,
            Err(error) => return Ok(self.refuse(&error, look)),
        };
        if self.body.is_deleting() {
            return Ok(self.take_down(memory, look));
        }
        self.history.keep_if(look.idle && self.reported.is_some());
        if self.exempt != look.ties.exempt || self.makers != look.ties.makers {
            self.exempt = look.ties.exempt.to_vec();
            self.makers = look.ties.makers.to_vec();
            self.compiled = None;
        }
        let settled = match self.compile(&memory, look) {
            Ok(settled) => settled,
            Err(asks) => {
                self.memory = Some(memory);
                return Err(asks);
            }
        };
        let mut decision = self.converge(memory, look);
        decision.unfinished |= !settled;
        Ok(decision)
    }

    /// What is remembered; at the first look, what the object's journal says.
    fn recall(&mut self, now: Timestamp) -> Result<Memory, SpecError> {
        if let Some(memory) = self.memory.take() {
            return Ok(memory);
        }
        let fresh = Memory::fresh(self.body.uid(), self.body.generation(), now);
        match self.arrived_journal(self.journal.as_ref()) {
            Ok(known) => {
                self.unread = false;
                self.journal = None;
                self.passed = known.as_ref().map(passed_by_hand).unwrap_or_default();
                let broken = |journal| steps_with(journal, Reason::SoftBroken);
                self.broken = known.as_ref().map(broken).unwrap_or_default();
                Ok(known.map_or(fresh, Memory::recovered))
            }
            Err(_) if self.body.is_deleting() => {
                // It goes all the same: what can be read of its journal is taken away.
                self.unread = true;
                let mut memory = fresh;
                memory.journal.inventory.extend(self.salvage().0);
                Ok(memory)
            }
            Err(error) => {
                self.unread = true;
                Err(error)
            }
        }
    }

    /// Nothing is done for an object whose journal cannot be read, and nothing is remembered of it.
    fn refuse(&mut self, error: &SpecError, look: &SubjectInput<'_>) -> Decision {
        let memory = Memory::fresh(self.body.uid(), self.body.generation(), look.now);
        let stepped = step(memory, Goal::Invalid(error), &World::new(), &[], None, look.now);
        let mut decision = Decision { edges: None, ..Decision::default() };
        self.report(&mut decision, None, stepped, look);
        self.memory = None;
        decision
    }

    /// What compiling is given.
    fn compile_input<'a>(
        &'a self,
        memory: &'a Memory,
        facts: &'a World,
        registry: &'a Registry,
    ) -> CompileInput<'a> {
        CompileInput {
            registry,
            facts,
            kinds: &memory.journal.kinds,
            default_service_account: &self.default_service_account,
            cluster_domain: &self.cluster_domain,
            exempt: &self.exempt,
            makers: &self.makers,
        }
    }

    /// Compiles the object if it, or a fact it was compiled with, has changed. Says whether the plan is made from all that
    /// is known, or what has to be looked at first.
    fn compile(&mut self, memory: &Memory, look: &SubjectInput<'_>) -> Result<bool, Asks> {
        let world = look.world;
        if !self.body.is_understood() {
            return Ok(true);
        }
        for _ in 0..ROUNDS {
            let facts = match self.compiled.as_deref() {
                None => world.only(&std::mem::take(&mut self.looked_at)),
                Some((compiled, known)) => {
                    let facts = match compiled {
                        Ok(compiled) => world.only(&compiled.wants),
                        Err(error) => world.only(&behind(error, known)),
                    };
                    if facts.says_the_same(known) {
                        return match compiled {
                            // A first look is under way; the answer calls again.
                            Err(error) if error.unready => Err(Asks(error.asks.clone())),
                            _ => Ok(true),
                        };
                    }
                    facts
                }
            };
            let input = self.compile_input(memory, &facts, look.registry);
            let authority = self.body.authority(&self.default_service_account);
            let Some(object) = self.body.whole() else { return Ok(true) };
            let compiled = D::compile(object, &input).map(|mut compiled| {
                compiled.plan.terms.authority = authority;
                compiled
            });
            let asks = compiled.as_ref().map_or_else(|error| &error.asks, |compiled| &compiled.wants);
            let unasked = asks.iter().any(|want| world.get(want).is_none()).then(|| asks.clone());
            self.compiled = Some(Box::new((compiled, facts)));
            if let Some(unasked) = unasked {
                return Err(Asks(unasked));
            }
        }
        Ok(false)
    }

    /// Carries out the plan, or touches nothing while there is none.
    fn converge(&mut self, mut memory: Memory, look: &SubjectInput<'_>) -> Decision {
        let Some(made) = self.compiled.take() else {
            self.memory = Some(memory);
            return Decision { edges: None, ..Decision::default() };
        };
        let (compiled, facts) = &*made;
        let SubjectInput { world, outcomes, ties, now, .. } = *look;
        let mut decision = Decision::default();
        let mut extra: BTreeSet<Want> = BTreeSet::new();
        let stepped = match compiled {
            Ok(compiled) => {
                if !ties.broken.is_empty() {
                    memory.give_way(&compiled.plan, ties.broken);
                }
                let stepped = step(memory, Goal::Converge(&compiled.plan), world, outcomes, ties.cycle, now);
                self.keep_beside(&mut decision, &mut extra, &compiled.plan, &stepped, look);
                extra.extend(compiled.wants.iter().cloned());
                stepped
            }
            Err(error) => {
                // Nothing is touched while the spec cannot be carried out, also where a fact made it so.
                decision.withdraws = true;
                extra.extend(behind(error, facts));
                step(memory, Goal::Invalid(error), &World::new(), outcomes, None, now)
            }
        };
        decision.wants = extra;
        self.report(&mut decision, compiled.as_ref().ok().map(|compiled| &compiled.plan), stepped, look);
        self.compiled = Some(made);
        decision
    }

    /// What is kept beside the object: events of its own, and its history.
    fn keep_beside(
        &mut self,
        decision: &mut Decision,
        wants: &mut BTreeSet<Want>,
        plan: &Plan,
        stepped: &step::StepDecision,
        look: &SubjectInput<'_>,
    ) {
        if D::words().is_none() && D::beside().is_none() {
            return;
        }
        let Some(object) = self.body.whole() else { return };
        let input = status_input(Some(plan), stepped, look.ties.causes, look.now);
        if let Some(words) = D::words() {
            decision.beside = words.events(object, &input);
        }
        let Some(beside) = D::beside() else { return };
        decision.beside.extend(beside.records(object, &input));
        self.history.note(HistoryInput::of(&input));
        let step = self.history.next(beside, object, look.kept, look.world);
        decision.beside.extend(step.writes);
        wants.extend(step.wants);
    }

    /// The object is being deleted.
    fn take_down(&mut self, mut memory: Memory, look: &SubjectInput<'_>) -> Decision {
        let mut decision = Decision { edges: None, ..Decision::default() };
        if !self.body.has_finalizer() {
            self.memory = Some(memory);
            self.owed = OwedStatus::Nothing;
            return decision;
        }
        let via = Via { cluster: ClusterRef::Here, actor: Actor::Operator };
        let namespace = self.body.key().lane();
        let own_namespace =
            Want::object(via, Gvk::new("", "v1", "Namespace"), None, namespace, ReadSet::nothing());
        let hurry = match look.world.get(&own_namespace) {
            Some(Seen::Objects(observed)) => observed.items.iter().all(|namespace| namespace.deleting),
            _ => false,
        };
        // What has begun goes on.
        let begun = step::removal_has_begun(&memory);
        let input = HoldInput {
            claims: look.ties.claims,
            compile: self.compile_input(&memory, look.world, look.registry),
            journal: &memory.journal,
            now: look.now,
        };
        let object = self.body.whole().filter(|_| !hurry && !begun);
        if let Some(mut held) = object.and_then(|object| D::ties()?.hold(object, &input)) {
            decision.wants.insert(own_namespace);
            decision.wants.append(&mut held.wants);
            step::keep_outcomes(&mut memory, look.outcomes, look.now);
            if held.unready {
                decision.wake_at = held.until;
                decision.own = Some(Own::default());
                self.memory = Some(memory);
                return decision;
            }
            self.report(&mut decision, None, stay(memory, held), look);
            decision.edges = None;
            return decision;
        }
        let (authority, removal) = (self.body.authority(&self.default_service_account), self.body.removal());
        let goal = Goal::Teardown { authority: &authority, removal, hurry };
        let stepped = step(memory, goal, look.world, look.outcomes, None, look.now);
        decision.wants.insert(own_namespace);
        let released = stepped.release;
        if released {
            let object = self.body.key().object_ref();
            if self.unread && removal == Removal::Delete && self.salvage().1 {
                decision.report.last_notices.push(left_behind(format!(
                    "{object} is gone, and what it made is not fully known: its journal could not be read; look for \
                     objects with the annotation {}: {}",
                    keys::CREATED_BY,
                    self.body.uid()
                )));
            }
            let left = stepped.report.left.iter();
            let left = left.map(|left| left_behind(format!("{object} is gone and left behind: {left}")));
            decision.report.last_notices.extend(left);
            decision.report.left_behind = stepped.report.left.len();
        }
        self.report(&mut decision, None, stepped, look);
        decision.edges = None;
        if released && let Some(own) = &mut decision.own {
            own.finalizer = FinalizerChange::Release;
        }
        decision
    }

    /// Fills in what the engine decided and what is worth an event, and remembers.
    fn report(
        &mut self,
        decision: &mut Decision,
        plan: Option<&Plan>,
        mut stepped: step::StepDecision,
        look: &SubjectInput<'_>,
    ) {
        decision.effects = std::mem::take(&mut stepped.effects);
        if stepped.persist == Persist::BeforeEffects {
            decision.needs = Needs::Saved(stepped.memory.critical);
        }
        decision.edges = Some(stepped.report.edges.clone());
        decision.wake_at = stepped.wake_at;
        decision.unfinished = stepped.unfinished;
        decision.wants.extend(stepped.wants.iter().cloned());
        self.report_passes(&mut decision.report, &stepped.memory);
        if let Some(plan) = plan {
            self.report_broken(&mut decision.report, plan, &stepped, look);
        }
        decision.report.notices.extend(look.outcomes.iter().filter_map(put_right));
        if plan.is_some() {
            let left = stepped.report.left.iter();
            let stays = |left| format!("it is no longer looked after, and not deleted: {left}");
            decision.report.notices.extend(left.map(|left| left_behind(stays(left))));
        }
        let mut own = Own { finalizer: self.finalizer_change(plan, &stepped.memory), ..Own::default() };
        let report = &stepped.report;
        let speaking = || D::words().and_then(|words| Some((words, self.body.whole()?)));
        let word =
            speaking().map_or(report.phase.as_str(), |(words, object)| words.phase_word(object, report));
        let same = self.reported.as_mut().filter(|last| last.phase == report.phase && last.word == word);
        if let Some(last) = same {
            if report.phase == Phase::Completed && report.ready && !last.ready {
                // It was done before it was ready: that it is both is reported once.
                last.ready = true;
                decision.report.notices.extend(D::event(self.body.whole(), report));
            }
        } else if !is_premature(report) {
            let input = status_input(plan, &stepped, look.ties.causes, look.now);
            if self.reported.is_some() || !self.is_shown(&input) {
                own.hurries = true;
                own.awaited = matches!(report.phase, Phase::Completed | Phase::Failed);
                own.phase_event = D::event(self.body.whole(), report);
            }
            self.reported = Some(ReportedPhase { phase: report.phase, word, ready: report.ready });
        }
        decision.report.tally = speaking().map(|(words, object)| words.tally(object, report));
        decision.report.phase = self.reported.as_ref().map(|last| last.phase);
        decision.own = Some(own);
        let pending = PendingStatus { report: stepped.report, planned: plan.is_some(), time: look.now };
        self.owed = OwedStatus::Undrawn(Box::new(pending));
        self.memory = Some(stepped.memory);
    }

    /// Says once which gates somebody let pass by hand.
    fn report_passes(&mut self, news: &mut News, memory: &Memory) {
        let passed = passed_by_hand(&memory.journal);
        let new = passed.difference(&self.passed).map(|step| Notice {
            reason: Reason::Proceeded.as_str().to_owned(),
            message: format!("{step} was passed by hand"),
            warning: false,
        });
        news.notices.extend(new);
        self.passed = passed;
    }

    /// Says once which soft dependencies were passed by, and why.
    fn report_broken(
        &mut self,
        news: &mut News,
        plan: &Plan,
        stepped: &step::StepDecision,
        look: &SubjectInput<'_>,
    ) {
        let broken = steps_with(&stepped.memory.journal, Reason::SoftBroken);
        for id in broken.difference(&self.broken) {
            let Some(step) = plan.position(id).map(|position| &plan.steps()[position]) else { continue };
            let (Some(requirement), Some(patience)) = (step.requirement(), step.patience) else { continue };
            if requirement.floor.is_some() {
                continue;
            }
            let found = stepped.report.steps.iter().find(|report| report.id == *id).map(|report| report.word);
            let target = requirement.want.object_ref();
            let circular = look.ties.broken.iter().any(|node| Some(&*node.object) == target.as_ref());
            let why = match found {
                _ if circular => "it would wait for itself".to_owned(),
                Some("Failed") => "it has failed".to_owned(),
                _ => {
                    let asked = requirement.asked.as_ref().or(requirement.test.state.as_ref());
                    let state = state_word(asked.unwrap_or(&Wanted::Ready));
                    format!("not {state} within {}", Period::new(patience).brief())
                }
            };
            news.notices.push(Notice {
                reason: Reason::SoftBroken.as_str().to_owned(),
                message: text::line(&format!("goes on without {} (soft): {why}", requirement.label)),
                warning: false,
            });
        }
        self.broken = broken;
    }

    /// The finalizer comes off again where nothing must be deleted any more, but never because of a plan that is not there.
    fn finalizer_change(&self, plan: Option<&Plan>, memory: &Memory) -> FinalizerChange {
        let needed = memory.journal.has_belongings(self.body.removal());
        match (needed, self.body.has_finalizer()) {
            _ if self.body.is_deleting() => FinalizerChange::None,
            (true, false) => FinalizerChange::Add,
            (false, true) if plan.is_some() => FinalizerChange::Remove,
            _ => FinalizerChange::None,
        }
    }
}

fn status_input<'a>(
    plan: Option<&'a Plan>,
    stepped: &'a step::StepDecision,
    causes: &'a VisibleCauses,
    now: Timestamp,
) -> StatusInput<'a> {
    StatusInput { plan, journal: &stepped.memory.journal, report: &stepped.report, causes, now }
}

/// An object that is being deleted and stays for now: nothing is touched.
fn stay(memory: Memory, held: Hold) -> step::StepDecision {
    let report = Report {
        phase: Phase::Deleting,
        reason: Some(held.reason),
        message: held.message,
        held_by: held.by,
        ..Report::default()
    };
    step::StepDecision {
        memory,
        effects: Vec::new(),
        persist: Persist::Nothing,
        wants: Shared::default(),
        wake_at: held.until,
        report,
        release: false,
        unfinished: false,
        evaluated: 0,
    }
}

fn left_behind(message: String) -> Notice {
    Notice { reason: Reason::LeftBehind.as_str().to_owned(), message, warning: true }
}

/// Whether there is nothing to report yet, because the world has not been looked at: that takes milliseconds.
fn is_premature(report: &Report) -> bool {
    let asking = |blocker: &StepBlocker| blocker.reason == Reason::Unsynced.as_str();
    report.phase == Phase::Pending
        || matches!(report.phase, Phase::Waiting | Phase::Running) && report.blocked.iter().any(asking)
}

/// What somebody else had changed and was put right.
fn put_right(outcome: &Outcome) -> Option<Notice> {
    let Ok(Done { taken_back, target: Some(target), .. }) = &outcome.result else { return None };
    let message = text::line(&format!("{target}: {}", taken_back.join("; ")));
    let reason = Reason::Drifted.as_str().to_owned();
    (!taken_back.is_empty()).then_some(Notice { reason, message, warning: true })
}

/// What an error rests on, which may change: a second kind of the same name may go away.
fn behind(error: &SpecError, facts: &World) -> BTreeSet<Want> {
    error.asks.iter().cloned().chain(facts.iter().map(|(want, _)| want.clone())).collect()
}
