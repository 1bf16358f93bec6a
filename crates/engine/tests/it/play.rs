//! Plays a plan: a tiny operator without a cluster, for tests that tell a story.

use linchpin_engine::{
    contract::{Done, Effect, Failure, Outcome, Seen, Stamp, Ticket, Verb, Want, World},
    journal::{Memory, StepState},
    plan::{Plan, Removal, SpecError},
    step::{Goal, Persist, StepDecision, step},
};
use linchpin_words::Timestamp;

use crate::build::{UID, authority, want};

/// The fingerprint of what our manager holds, as long as nobody has taken any of it.
pub const OURS: &str = "ours";

pub struct Play {
    pub plan: Plan,
    pub memory: Memory,
    pub world: World,
    pub now: Timestamp,
    pub outcomes: Vec<Outcome>,
    pub last: Option<StepDecision>,
}

impl Play {
    pub fn new(plan: Plan) -> Self {
        let now = Timestamp::from_second(1_000);
        let memory = Memory::fresh(UID, plan.generation, now);
        Self { plan, memory, world: World::new(), now, outcomes: Vec::new(), last: None }
    }

    /// What the watch shows of a ConfigMap from now on.
    pub fn sees(&mut self, name: &str, seen: Seen) {
        self.world.insert(want(name), seen);
    }

    pub fn answer(&mut self, want: Want, seen: Seen) {
        self.world.insert(want, seen);
    }

    /// One step; what was decided is saved at once, as a good driver would.
    pub fn step(&mut self) -> Vec<Effect> {
        let outcomes = std::mem::take(&mut self.outcomes);
        let decision =
            step(self.memory.clone(), Goal::Converge(&self.plan), &self.world, &outcomes, None, self.now);
        self.take(decision)
    }

    pub fn take_down(&mut self) -> Vec<Effect> {
        let outcomes = std::mem::take(&mut self.outcomes);
        let goal = Goal::Teardown { authority: &authority(), removal: Removal::Delete, hurry: false };
        let decision = step(self.memory.clone(), goal, &self.world, &outcomes, None, self.now);
        self.take(decision)
    }

    /// One step while the spec cannot be carried out.
    pub fn step_while_invalid(&mut self) {
        let outcomes = std::mem::take(&mut self.outcomes);
        let error = SpecError::new("spec", "is invalid");
        let decision =
            step(self.memory.clone(), Goal::Invalid(&error), &self.world, &outcomes, None, self.now);
        assert!(self.take(decision).is_empty(), "nothing is touched while the spec is invalid");
    }

    fn take(&mut self, decision: StepDecision) -> Vec<Effect> {
        self.memory = decision.memory.clone();
        if decision.persist != Persist::Nothing {
            let critical = self.memory.critical;
            self.memory.mark_saved(critical);
        }
        let effects = decision.effects.clone();
        self.last = Some(decision);
        effects
    }

    /// The process dies and comes back with what the status holds.
    pub fn crash(&mut self) {
        self.memory = Memory::recovered(self.memory.journal.clone());
        self.outcomes.clear();
        self.world = World::new();
    }

    pub fn pass(&mut self, seconds: u64) {
        self.now = self.now.plus_duration(std::time::Duration::from_secs(seconds));
    }

    pub fn succeed(&mut self, effect: &Effect) {
        self.written(effect, true);
    }

    /// The object was there already, and is somebody else's.
    pub fn find(&mut self, effect: &Effect) {
        self.written(effect, false);
    }

    fn written(&mut self, effect: &Effect, created: bool) {
        let (target, stamp) = match &effect.verb {
            Verb::Apply { body, .. } | Verb::Create { body, .. } => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                let target = linchpin_engine::contract::EffectTarget {
                    kind: linchpin_words::reference::KindWord::from_manifest(Some("v1"), "ConfigMap"),
                    namespace: Some(crate::build::NAMESPACE.to_owned()),
                    name: name.to_owned(),
                };
                let stamp = Stamp {
                    uid: format!("uid-{name}"),
                    generation: 1,
                    version: 100,
                    fingerprint: OURS.to_owned(),
                };
                (Some(target), Some(stamp))
            }
            _ => (None, None),
        };
        let done = Done { target, created, stamp, ..Done::default() };
        self.come_back(&effect.ticket, Ok(done));
    }

    pub fn fail(&mut self, effect: &Effect, failure: Failure) {
        self.come_back(&effect.ticket, Err(failure));
    }

    pub fn come_back(&mut self, ticket: &Ticket, result: Result<Done, Failure>) {
        self.outcomes.push(Outcome { ticket: ticket.clone(), at: self.now, result });
    }

    pub fn state(&self, step: &str) -> StepState {
        self.memory.journal.steps[&step.into()].state
    }

    pub fn decision(&self) -> &StepDecision {
        self.last.as_ref().expect("a step was made")
    }
}

/// The names of the steps that effects belong to.
pub fn steps_of(effects: &[Effect]) -> Vec<&str> {
    effects.iter().map(|effect| effect.ticket.step.as_str()).collect()
}
