//! Known bugs, seeded one at a time: a checker that passes them all proves nothing.
//!
//! Each changes what goes into the engine or what comes out of it, as a careless engine or driver would.

use linchpin_engine::{
    contract::{
        Effect, Failure, Force, Outcome, Propagation, Question, ReadSet, Seen, Ticket, Verb, Want, World,
    },
    journal::{InventoryItem, Memory, StepState},
    step::{Persist, StepDecision},
};

use super::state::State;
use crate::build::{MANAGER, observed, projection};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// What has not been listed yet counts as there.
    UnknownCountsAsThere,
    /// What is known to be absent counts as there.
    AbsentCountsAsThere,
    /// Our own writes are no floor: an older view counts.
    OldViewsCount,
    /// Commands are ordered before their token is saved.
    CommandBeforeJournal,
    /// A deletion is ordered before it is saved what it deletes.
    DeletionBeforeJournal,
    /// What a deletion deletes is not remembered.
    DeletionForgetsWhich,
    /// The token of a command is not remembered.
    TokenForgotten,
    /// A command that was under way when we crashed is run again.
    LostCommandRunAgain,
    /// An unknown outcome is taken for a fault that passes.
    UnknowableTakenForTransient,
    /// What is in flight is forgotten.
    FlightForgotten,
    /// A new generation forgets what was done.
    NewGenerationForgetsAll,
    /// Something that was not started is taken for done.
    NotStartedTakenForDone,
    /// A lost request is taken for done.
    TransientTakenForDone,
    /// Nothing ever wakes us.
    NeverWakes,
    /// Nothing that failed is tried again.
    NeverRetries,
    /// A halted plan never comes back.
    NeverRecovers,
    /// The end is declared too early.
    CompletedTooEarly,
    /// Done steps are done again.
    DoneAgain,
    /// What we made is not remembered.
    InventoryForgotten,
    /// Whatever is there counts as made by us.
    EverythingIsOurs,
    /// The finalizer goes before the objects do.
    ReleasedTooEarly,
    /// Nobody looks at what was written.
    DriftUnseen,
    /// What others hold is never taken back.
    NeverTakenBack,
    /// What left the plan goes before the rest is ready.
    PrunedTooEarly,
    /// What left the plan never goes.
    NeverPruned,
    /// What is in the plan goes too.
    PrunedWhatIsWanted,
    /// What comes back while the spec is invalid is dropped.
    DroppedWhileInvalid,
    /// What comes back while the spec is invalid is kept in memory only.
    InvalidEndsUnsaved,
}

impl Bug {
    pub const ALL: &[Self] = &[
        Self::UnknownCountsAsThere,
        Self::AbsentCountsAsThere,
        Self::OldViewsCount,
        Self::CommandBeforeJournal,
        Self::DeletionBeforeJournal,
        Self::DeletionForgetsWhich,
        Self::TokenForgotten,
        Self::LostCommandRunAgain,
        Self::UnknowableTakenForTransient,
        Self::FlightForgotten,
        Self::NewGenerationForgetsAll,
        Self::NotStartedTakenForDone,
        Self::TransientTakenForDone,
        Self::NeverWakes,
        Self::NeverRetries,
        Self::NeverRecovers,
        Self::CompletedTooEarly,
        Self::DoneAgain,
        Self::InventoryForgotten,
        Self::EverythingIsOurs,
        Self::ReleasedTooEarly,
        Self::DriftUnseen,
        Self::NeverTakenBack,
        Self::PrunedTooEarly,
        Self::NeverPruned,
        Self::PrunedWhatIsWanted,
        Self::DroppedWhileInvalid,
        Self::InvalidEndsUnsaved,
    ];

    /// The shape in which it shows itself soonest.
    pub fn shows_in(self) -> &'static str {
        match self {
            Self::UnknownCountsAsThere
            | Self::AbsentCountsAsThere
            | Self::FlightForgotten
            | Self::TransientTakenForDone
            | Self::NeverWakes
            | Self::NeverRetries
            | Self::CompletedTooEarly => "one action",
            Self::CommandBeforeJournal
            | Self::TokenForgotten
            | Self::LostCommandRunAgain
            | Self::UnknowableTakenForTransient
            | Self::NewGenerationForgetsAll
            | Self::NotStartedTakenForDone
            | Self::DoneAgain => "one command",
            Self::DroppedWhileInvalid | Self::InvalidEndsUnsaved => "a spec that slips",
            Self::DeletionBeforeJournal | Self::DeletionForgetsWhich => "a deletion",
            Self::OldViewsCount => "ready before the next",
            Self::NeverRecovers => "a timeout",
            Self::InventoryForgotten
            | Self::EverythingIsOurs
            | Self::ReleasedTooEarly
            | Self::PrunedWhatIsWanted => "two objects, taken away again",
            Self::DriftUnseen | Self::NeverTakenBack | Self::PrunedTooEarly | Self::NeverPruned => "replaced",
        }
    }

    /// What goes in.
    pub fn before(self, memory: &mut Memory, world: &mut World, outcomes: &mut [Outcome], state: &State) {
        let records = &mut memory.journal.steps;
        match self {
            Self::UnknownCountsAsThere | Self::AbsentCountsAsThere => {
                let absent_too = self == Self::AbsentCountsAsThere;
                let names: Vec<_> =
                    state.seen.keys().cloned().chain(["a".to_owned(), "b".to_owned()]).collect();
                for name in names.iter().filter(|name| !name.starts_with("made-")) {
                    let want = crate::build::want(name);
                    let seen = world.get(&want);
                    let absent = matches!(seen, Some(linchpin_engine::contract::Seen::Objects(o)) if o.items.is_empty());
                    if seen.is_none() && !absent_too || absent && absent_too {
                        let item =
                            projection(name, "invented", 1, serde_json::json!({"metadata": {"name": name}}));
                        world.insert(want, observed(Some(item), 1));
                    }
                }
            }
            Self::OldViewsCount => {
                for record in records.values_mut() {
                    record.wrote.clear();
                }
                for outcome in outcomes {
                    if let Ok(done) = &mut outcome.result {
                        done.stamp = None;
                    }
                }
            }
            Self::LostCommandRunAgain => {
                for (id, record) in records.iter_mut() {
                    let lost = record.state == StepState::Running && !memory.attempts.contains_key(id);
                    if lost {
                        record.state = StepState::Waiting;
                    }
                }
            }
            Self::UnknowableTakenForTransient => replace(outcomes, |failure| match failure {
                Failure::Unknowable(text) => Err(Failure::Transient(text.clone())),
                other => Err(other.clone()),
            }),
            Self::NotStartedTakenForDone => replace(outcomes, |failure| match failure {
                Failure::NotStarted => Ok(()),
                other => Err(other.clone()),
            }),
            Self::TransientTakenForDone => replace(outcomes, |failure| match failure {
                Failure::Transient(_) => Ok(()),
                other => Err(other.clone()),
            }),
            Self::DriftUnseen => {
                let reads_ours = |want: &&Want| match want.question() {
                    Question::Objects { reads, .. } => *reads == ReadSet::held_by(MANAGER),
                    _ => false,
                };
                let unseen =
                    |(want, seen): (&Want, &Seen)| (!reads_ours(&want)).then(|| (want.clone(), seen.clone()));
                *world = world.iter().filter_map(unseen).collect();
            }
            Self::NeverPruned => {
                for item in memory.journal.inventory.iter_mut() {
                    item.prune = false;
                }
            }
            Self::NewGenerationForgetsAll if memory.journal.generation != state.generation => records.clear(),
            Self::DeletionForgetsWhich => {
                for record in records.values_mut() {
                    record.deletes = None;
                }
            }
            Self::DoneAgain => {
                for record in records.values_mut().filter(|record| record.state == StepState::Done) {
                    record.state = StepState::Waiting;
                }
            }
            _ => {}
        }
    }

    /// What comes out.
    pub fn after(self, decision: &mut StepDecision) {
        let records = &mut decision.memory.journal.steps;
        match self {
            Self::CommandBeforeJournal | Self::DeletionBeforeJournal
                if decision.persist == Persist::BeforeEffects =>
            {
                decision.persist = Persist::Soon
            }
            Self::TokenForgotten => {
                for record in records.values_mut() {
                    record.token = None;
                    if record.state == StepState::Running {
                        record.state = StepState::Waiting;
                    }
                }
            }
            Self::FlightForgotten => {
                decision.memory.flight.clear();
                decision.memory.attempts.clear();
                for record in records.values_mut().filter(|record| record.state == StepState::Running) {
                    record.state = StepState::Waiting;
                }
            }
            Self::NeverWakes => decision.wake_at = None,
            Self::NeverRetries => {
                for record in records.values_mut().filter(|record| record.retry_at.is_some()) {
                    record.retry_at = Some(linchpin_words::Timestamp::from_second(i64::from(u32::MAX)));
                }
                decision.wake_at = None;
            }
            Self::NeverRecovers => {
                if let Some(halt) = &mut decision.memory.journal.halt {
                    halt.until = Some(linchpin_words::Timestamp::from_second(i64::from(u32::MAX)));
                    decision.wake_at = None;
                }
            }
            Self::CompletedTooEarly => {
                let now = decision.memory.journal.run.now;
                decision.memory.journal.completed.get_or_insert(now);
            }
            Self::NeverTakenBack => {
                for effect in &mut decision.effects {
                    if let Verb::Apply { force, .. } = &mut effect.verb {
                        *force = Force::Never;
                    }
                }
            }
            Self::PrunedTooEarly | Self::PrunedWhatIsWanted => {
                let wanted = self == Self::PrunedWhatIsWanted;
                let records = &decision.memory.journal.steps;
                let rows = decision
                    .memory
                    .journal
                    .inventory
                    .iter()
                    .filter(|item| item.uid.is_some() && records.contains_key(&item.step) == wanted);
                let deletions: Vec<Effect> = rows.map(deletion).collect();
                decision.effects.extend(deletions);
            }
            Self::DroppedWhileInvalid => {
                for outcome in std::mem::take(&mut decision.memory.late) {
                    decision.memory.flight.remove(&outcome.ticket);
                }
            }
            Self::InvalidEndsUnsaved => {
                for record in records.values_mut() {
                    record.ended = None;
                }
            }
            Self::InventoryForgotten => decision.memory.journal.inventory.clear(),
            Self::ReleasedTooEarly => decision.release = true,
            Self::EverythingIsOurs => {
                for effect in &mut decision.effects {
                    if let Verb::Delete { creator, .. } = &mut effect.verb {
                        *creator = None;
                    }
                }
            }
            _ => {}
        }
    }
}

fn deletion(item: &InventoryItem) -> Effect {
    Effect {
        ticket: Ticket { step: item.step.clone(), run: 0, attempt: 1, part: 0 },
        via: crate::build::via(),
        verb: Verb::Delete {
            target: item.target.clone(),
            uid: item.uid.clone(),
            creator: None,
            propagation: Propagation::Background,
        },
        discreet: false,
        deadline: std::time::Duration::from_secs(30),
        rank: 0,
    }
}

fn replace(outcomes: &mut [Outcome], change: impl Fn(&Failure) -> Result<(), Failure>) {
    for outcome in outcomes {
        if let Err(failure) = &outcome.result {
            outcome.result = change(failure).map(|()| linchpin_engine::contract::Done::default());
        }
    }
}
