//! Properties of the engine over plans, worlds and outcomes made at random.
//!
//! The model checker goes every way that a small plan can go; here plans are larger and of any shape, and one way is
//! gone. A stage plays the cluster and a good driver: it saves what must be saved before anything starts, and after a
//! crash all that is left is the status, as JSON.

use std::collections::BTreeSet;

use linchpin_engine::{
    contract::{Done, Effect, Failure, Outcome, Seen, StepId, Verb, Why, World},
    journal::{Journal, Memory, StepRecord, StepState},
    plan::{Delivery, Plan, Step},
    step::{Goal, Persist, StepDecision, step},
};
use linchpin_words::{Reason, Timestamp};
use proptest::{prelude::*, test_runner::TestCaseResult};
use serde_json::json;

use crate::build::{
    Steps, UID, apply, exec, kind_answer, name_of, observed, plan, projection, require, want,
};

/// What a step is, and which of the steps before it it comes after: a bit each; a bit of the second mask makes the
/// end of that step enough, even a bad one.
type Draft = (Kind, u16, u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Requirement,
    Apply,
    Command(Delivery),
}

/// What a watch shows.
#[derive(Clone, Copy, Debug)]
enum FreshWorld {
    There,
    Absent,
    Going,
    Unknown,
}

/// How an effect ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Well,
    /// A command that says no.
    Badly,
    Refused,
    Lost,
    NeverBegun,
    NoAnswer,
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Event {
    Sees(usize, FreshWorld),
    Ends(usize, End),
    TimePasses(u16),
    Crash,
    Nothing,
}

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let kind = prop_oneof![
        4 => Just(Kind::Requirement),
        3 => Just(Kind::Apply),
        1 => Just(Kind::Command(Delivery::AtMostOnce)),
        1 => Just(Kind::Command(Delivery::AtLeastOnce)),
    ];
    // Edges are thinned out, or most plans would be chains.
    let edges = (any::<u16>(), any::<u16>()).prop_map(|(one, other)| one & other);
    prop::collection::vec((kind, edges, any::<u16>()), 1..12)
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let sight = prop_oneof![
        4 => Just(FreshWorld::There),
        1 => Just(FreshWorld::Absent),
        1 => Just(FreshWorld::Going),
        1 => Just(FreshWorld::Unknown),
    ];
    let end = prop_oneof![
        6 => Just(End::Well),
        1 => Just(End::Badly),
        1 => Just(End::Refused),
        1 => Just(End::Lost),
        1 => Just(End::NeverBegun),
        1 => Just(End::NoAnswer),
    ];
    let event = prop_oneof![
        6 => (any::<usize>(), sight).prop_map(|(which, sight)| Event::Sees(which, sight)),
        6 => (any::<usize>(), end).prop_map(|(which, end)| Event::Ends(which, end)),
        2 => any::<u16>().prop_map(Event::TimePasses),
        1 => Just(Event::Crash),
        1 => Just(Event::Nothing),
    ];
    prop::collection::vec(event, 0..60)
}

fn name(position: usize) -> String {
    format!("s{position:02}")
}

fn drawn(drafts: &[Draft]) -> Plan {
    let step = |(position, (kind, edges, settled)): (usize, &Draft)| -> Step {
        let id = name(position);
        let mut step = match kind {
            Kind::Requirement => require(&id),
            Kind::Apply => apply(&id),
            Kind::Command(delivery) => exec(&id, *delivery),
        };
        for earlier in (0..position).filter(|earlier| edges & (1 << earlier) != 0) {
            let is_action = drafts[earlier].0 != Kind::Requirement;
            step = if is_action && settled & (1 << earlier) != 0 {
                step.after_end(&[&name(earlier)])
            } else {
                step.after(&[&name(earlier)])
            };
        }
        step
    };
    plan(1, drafts.iter().enumerate().map(step).collect())
}

fn seen(name: &str, sight: FreshWorld) -> Seen {
    match sight {
        FreshWorld::There => observed(
            Some(projection(name, &format!("uid-{name}"), 1, json!({"metadata": {"name": name}}))),
            1,
        ),
        FreshWorld::Absent => observed(None, 1),
        FreshWorld::Going => {
            let content = json!({"metadata": {"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z"}});
            observed(Some(projection(name, &format!("uid-{name}"), 1, content)), 1)
        }
        FreshWorld::Unknown => Seen::Unknown(Why::new(Reason::Unsynced, "not listed yet")),
    }
}

struct Stage {
    plan: Plan,
    memory: Memory,
    world: World,
    /// Names that the world shows as being there.
    there: BTreeSet<String>,
    now: Timestamp,
    /// Effects that were ordered and have not ended.
    out: Vec<Effect>,
    outcomes: Vec<Outcome>,
    /// The journal in the status.
    status: Option<String>,
    /// Tokens of commands that ran, or may have.
    used: BTreeSet<String>,
}

impl Stage {
    fn new(plan: Plan) -> Self {
        let now = Timestamp::from_second(1_000);
        Self {
            memory: Memory::fresh(UID, plan.generation, now),
            plan,
            world: World::new(),
            there: BTreeSet::new(),
            now,
            out: Vec::new(),
            outcomes: Vec::new(),
            status: None,
            used: BTreeSet::new(),
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Sees(which, sight) => {
                let name = name(which % self.plan.steps().len());
                self.sees(&name, sight);
            }
            Event::Ends(which, end) if !self.out.is_empty() => {
                let effect = self.out.remove(which % self.out.len());
                self.ends(&effect, end);
            }
            Event::TimePasses(seconds) => {
                self.now = self.now.plus_duration(std::time::Duration::from_secs(seconds.into()));
            }
            Event::Crash => self.crash(),
            Event::Ends(..) | Event::Nothing => {}
        }
    }

    fn sees(&mut self, name: &str, sight: FreshWorld) {
        self.world.insert(want(name), seen(name, sight));
        if matches!(sight, FreshWorld::There) {
            self.there.insert(name.to_owned());
        } else {
            self.there.remove(name);
        }
    }

    fn ends(&mut self, effect: &Effect, end: End) {
        let command = match &effect.verb {
            Verb::Exec(order) => Some(order.token.clone()),
            _ => None,
        };
        let may_have_run = matches!(end, End::Well | End::Badly | End::NoAnswer);
        self.used.extend(command.clone().filter(|_| may_have_run));
        let result = match end {
            End::Well => Ok(Done { created: true, exit: command.map(|_| 0), ..Done::default() }),
            End::Badly if command.is_some() => Err(Failure::Exit(1)),
            End::Badly | End::Refused => Err(Failure::Invalid("no such field".to_owned())),
            End::Lost => Err(Failure::Transient("connection refused".to_owned())),
            End::NeverBegun => Err(Failure::NotStarted),
            End::NoAnswer => Err(Failure::Unknowable("no answer".to_owned())),
        };
        self.outcomes.push(Outcome { ticket: effect.ticket.clone(), at: self.now, result });
    }

    /// The process dies. What it sent may have arrived; what it knew is what the status says.
    fn crash(&mut self) {
        for effect in std::mem::take(&mut self.out) {
            if let Verb::Exec(order) = effect.verb {
                self.used.insert(order.token);
            }
        }
        self.outcomes.clear();
        self.world = World::new();
        self.there.clear();
        self.memory = match &self.status {
            Some(text) => Memory::recovered(serde_json::from_str(text).expect("the status can be read")),
            None => Memory::fresh(UID, self.plan.generation, self.now),
        };
    }

    /// One step, looked at from all sides.
    fn step(&mut self) -> Result<StepDecision, TestCaseError> {
        let outcomes = std::mem::take(&mut self.outcomes);
        let decide =
            || step(self.memory.clone(), Goal::Converge(&self.plan), &self.world, &outcomes, None, self.now);
        let decision = decide();
        prop_assert_eq!(format!("{:?}", decision), format!("{:?}", decide()), "the same inputs");
        let text = serde_json::to_string(&decision.memory.journal).expect("a journal can be written");
        let read: Journal = serde_json::from_str(&text).expect("a journal can be read");
        prop_assert_eq!(&read, &decision.memory.journal, "the journal as JSON");
        self.memory = decision.memory.clone();
        if decision.persist != Persist::Nothing {
            self.status = Some(text);
            let critical = self.memory.critical;
            self.memory.mark_saved(critical);
        }
        for effect in &decision.effects {
            self.check_order(effect, &decision)?;
        }
        self.check_reasons(&decision)?;
        for want in &decision.wants {
            if let Some(answer) = kind_answer(want) {
                self.world.insert(want.clone(), answer);
            }
        }
        self.out.extend(decision.effects.iter().cloned());
        Ok(decision)
    }

    fn record(&self, id: &StepId) -> &StepRecord {
        &self.memory.journal.steps[id]
    }

    /// Whether an action will not start by itself, because one that it needs has failed.
    fn is_hopeless(&self, step: &Step) -> bool {
        self.record(&step.id).state == StepState::Waiting
            && step.after.iter().filter(|after| !after.settled_is_enough).any(|after| {
                let needed = &self.plan.steps()[self.plan.position(&after.step).expect("a step of the plan")];
                let failed = matches!(self.record(&after.step).state, StepState::Failed | StepState::Unknown);
                needed.action().is_some() && (failed || self.is_hopeless(needed))
            })
    }

    /// Nothing is ordered before its time, and no command that may have run is ordered again.
    fn check_order(&self, effect: &Effect, decision: &StepDecision) -> TestCaseResult {
        let id = &effect.ticket.step;
        let position = self.plan.position(id).expect("a step of the plan");
        let step = &self.plan.steps()[position];
        for after in &step.after {
            let earlier = &self.plan.steps()[self.plan.position(&after.step).expect("a step of the plan")];
            if earlier.action().is_some() {
                let record = self.record(&after.step);
                let ended = if after.settled_is_enough {
                    record.is_settled() || self.is_hopeless(earlier)
                } else {
                    record.is_successful()
                };
                prop_assert!(ended, "{} was ordered while {} was {:?}", id, after.step, record.state);
            }
        }
        let mut open = self.plan.before(position).to_vec();
        let mut looked = BTreeSet::new();
        while let Some(earlier) = open.pop() {
            if !looked.insert(earlier) {
                continue;
            }
            open.extend(self.plan.before(earlier));
            if let Some(requirement) = self.plan.steps()[earlier].requirement() {
                let name = name_of(&requirement.want).expect("a name");
                prop_assert!(self.there.contains(name), "{} was ordered while {} was not there", id, name);
            }
        }
        if let Verb::Exec(order) = &effect.verb {
            prop_assert!(!order.token.is_empty());
            prop_assert_eq!(
                decision.persist,
                Persist::BeforeEffects,
                "{} was ordered before it was saved",
                id
            );
            prop_assert_eq!(self.record(id).token.as_ref(), Some(&order.token));
            let delivery = step.action().and_then(|action| action.delivery());
            if delivery == Some(Delivery::AtMostOnce) {
                prop_assert!(!self.used.contains(&order.token), "{} was ordered again, and may have run", id);
            }
        }
        prop_assert!(!self.out.iter().any(|out| out.ticket == effect.ticket), "{:?} twice", effect.ticket);
        Ok(())
    }

    /// Every step that is not done says what it waits for.
    fn check_reasons(&self, decision: &StepDecision) -> TestCaseResult {
        let report = &decision.report;
        // What was seen to hold and is not in sight right now (after a start, a lost watch) is said to hold, so that a
        // status does not flicker; nothing starts on it either.
        let out_of_sight = self
            .plan
            .steps()
            .iter()
            .filter_map(Step::requirement)
            .any(|requirement| !self.there.contains(name_of(&requirement.want).unwrap_or_default()));
        for entry in &report.steps {
            if matches!(entry.state, StepState::Met | StepState::Done | StepState::Skipped) {
                continue;
            }
            prop_assert!(!entry.reason.is_empty() && !entry.message.is_empty(), "{entry:?}");
            if entry.blocking {
                prop_assert!(
                    report.blocked.iter().any(|blocker| blocker.step.as_ref() == Some(&entry.id)),
                    "{entry:?}"
                );
            } else {
                let position = self.plan.position(&entry.id).expect("a step of the plan");
                let names_one = self.plan.before(position).iter().any(|earlier| {
                    let earlier = &self.plan.steps()[*earlier];
                    entry.message.contains(earlier.id.as_str())
                });
                prop_assert!(names_one, "{} waits for nothing that it names: {}", entry.id, entry.message);
            }
            let idle = entry.state == StepState::Waiting && entry.reason == Reason::Running.as_str();
            prop_assert!(!idle || out_of_sight, "{} waits, but is said to run: {}", entry.id, entry.message);
        }
        let completed = decision.memory.journal.completed.is_some();
        prop_assert!(
            completed || out_of_sight || !report.blocked.is_empty(),
            "nothing holds it, yet it is not complete"
        );
        Ok(())
    }

    /// Whether nothing but a person can help: a command that failed or may have run is not run again.
    fn needs_help(&self) -> bool {
        self.memory.journal.steps.values().any(|record| {
            record.state == StepState::Unknown
                || record.state == StepState::Failed && record.retry_at.is_none()
        })
    }

    /// Everything becomes and stays good: in how many rounds is the plan complete?
    fn rounds_to_completion(&mut self, most: usize) -> Result<Option<usize>, TestCaseError> {
        for round in 0..most {
            for position in 0..self.plan.steps().len() {
                self.sees(&name(position), FreshWorld::There);
            }
            for effect in std::mem::take(&mut self.out) {
                self.ends(&effect, End::Well);
            }
            let decision = self.step()?;
            if decision.memory.journal.completed.is_some() {
                return Ok(Some(round));
            }
            // Time passes only as the engine asks for it: nothing else would wake it.
            if let Some(wake) = decision.wake_at.filter(|_| self.out.is_empty()) {
                self.now = self.now.max(wake);
            }
        }
        Ok(None)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_nothing_is_ordered_too_early_twice_or_without_a_reason(
        drafts in drafts(),
        events in events(),
    ) {
        let mut stage = Stage::new(drawn(&drafts));
        stage.step()?;
        for event in events {
            stage.happens(event);
            stage.step()?;
        }
        // However it went, in a good world it comes to its end, or says that it needs help.
        let most = 3 * drafts.len() + 20;
        let rounds = stage.rounds_to_completion(most)?;
        prop_assert!(
            rounds.is_some() || stage.needs_help(),
            "not complete after {} rounds: {:#?}", most, stage.memory.journal
        );
    }

    #[test]
    fn a_plan_in_a_good_world_takes_no_more_rounds_than_it_has_steps_in_a_row(drafts in drafts()) {
        let mut stage = Stage::new(drawn(&drafts));
        let mut levels: Vec<usize> = Vec::new();
        for (position, (_, edges, _)) in drafts.iter().enumerate() {
            let before = (0..position).filter(|earlier| edges & (1 << earlier) != 0);
            levels.push(before.map(|earlier| levels[earlier]).max().unwrap_or(0) + 1);
        }
        let most = levels.iter().max().copied().unwrap_or(0) + 1;
        let rounds = stage.rounds_to_completion(most)?;
        prop_assert!(rounds.is_some(), "not complete after {most} rounds");
    }

    #[test]
    fn a_restart_before_every_step_changes_nothing_in_a_good_world(drafts in drafts()) {
        let mut steady = Stage::new(drawn(&drafts));
        let mut restarted = Stage::new(drawn(&drafts));
        for _ in 0..3 * drafts.len() + 5 {
            for stage in [&mut steady, &mut restarted] {
                for position in 0..drafts.len() {
                    stage.sees(&name(position), FreshWorld::There);
                }
                stage.step()?;
                for effect in std::mem::take(&mut stage.out) {
                    stage.ends(&effect, End::Well);
                }
                stage.step()?;
            }
            if restarted.out.is_empty() && restarted.status.is_some() {
                restarted.crash();
            }
        }
        prop_assert!(steady.memory.journal.completed.is_some());
        prop_assert_eq!(&steady.memory.journal.steps, &restarted.memory.journal.steps);
    }
}
