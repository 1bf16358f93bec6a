//! What is to be done for one employer now: a total, deterministic function of what was observed.
//!
//! [`settle`] is to an employment what `engine::step` is to a plan. What survives a crash lies on the objects (clean
//! finalizer, entries, protection finalizers, the binding), so [`SettleMemory`] may be lost at any time: it only saves requests.
//! The order of effects is the promise:
//!
//! * binding, then clean finalizer, then entries on pods, then the provider, then protection finalizers;
//! * on the way out: provider, protection finalizer, entry, recorded names, binding, clean finalizer.
//!
//! A protection finalizer goes **on** when an observation made after our last call shows the pod present and as expected,
//! and the pod may have traffic. It comes **off** when such an observation shows it out of traffic. What a call claims
//! changes nothing; an answer that is unknown, about other pods, older than our last call, or suddenly empty is no answer.

mod employer;
mod protection;
mod provider;
mod report;
mod tend;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use linchpin_words::Timestamp;
use serde_json::Value;

pub use self::{
    employer::{AdapterChoice, EmployerView, choose},
    protection::Traffic,
    report::{EmployerPhase, EmployerReport, ReadyReason, ReportRow, RowState},
};
use crate::{
    adapter::{Batch, EmployeeSelection},
    answer::ProviderAnswer,
    marks::OwnFinalizers,
    options::AdapterOptions,
    pod::PodView,
    port::{Call, LookFailed},
};

/// What is observed of one employment.
#[derive(Clone, Copy, Debug)]
pub struct ObservedEmployment<'a> {
    /// The employer.
    pub employer: &'a EmployerView,
    /// The adapter, by the name it is served under.
    pub adapter: &'a str,
    /// How its employers are served.
    pub options: &'a AdapterOptions,
    /// Which employees the employer selects.
    pub selection: &'a EmployeeSelection,
    /// Whether pods are marked: the adapter follows PodOpsLifecycle, and its employees are pods.
    pub follows: bool,
    /// Whether the employer is to be served: it is chosen and has its label.
    pub serve: bool,
    /// The employees in the employer's namespace, at least those that it selects or that carry a mark of it; none while
    /// that is not known.
    pub employees: Option<&'a [Arc<PodView>]>,
    /// What is seen of the binding.
    pub claim: &'a BindingClaim,
    /// The last answer of the provider.
    pub look: Option<&'a ProviderLook>,
    /// Whether the namespace is being deleted.
    pub namespace_going: bool,
    /// How long a terminating pod is held.
    pub drain_timeout: Duration,
}

/// What is seen of the binding of an employer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingClaim {
    /// Nothing is known.
    Unknown,
    /// There is none.
    Absent,
    /// There is one.
    Held {
        /// The adapter that made it.
        adapter: String,
        /// The incarnation of the employer that it is about.
        employer: String,
        /// Its own incarnation.
        uid: String,
    },
}

/// One look at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderLook {
    /// When it began.
    pub began: Timestamp,
    /// What it was about: [`SettleDecision::about`] at that time.
    pub about: u64,
    /// What came of it.
    pub result: Result<ProviderAnswer, LookFailed>,
}

/// What a turn remembers. It may be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettleMemory {
    /// What is under way, with the number of its order.
    flight: BTreeMap<WorkSlot, u64>,
    /// Whether the binding or the clean finalizer is being taken away.
    releasing: bool,
    /// Whether it was said what may be left at the provider: the write may have to be repeated.
    left_reported: bool,
    /// The items of the call that is under way.
    calling: Option<(Call, Vec<String>)>,
    /// The number of the last order.
    last_order: u64,
    /// When the last call came back: older looks prove nothing.
    floor: Option<Timestamp>,
    /// The version that our last write left, by the object's uid.
    written: BTreeMap<String, u64>,
    /// Writes that failed: how often in a row, and when the next attempt may be.
    failed: BTreeMap<WorkSlot, (u32, Timestamp)>,
    /// Items that a call was made for and that are not as they should be: how often, not before when, and why.
    held: BTreeMap<(Call, String), Held>,
    /// What was last seen at the provider, and when.
    known: BTreeSet<(bool, String)>,
    known_at: Option<Timestamp>,
    /// A look that was empty although something was known.
    doubt: Option<Timestamp>,
    /// The last look that was taken in.
    last_look: Option<Timestamp>,
    /// Looks in a row that failed, and looks in a row after which something was still waited for.
    look_failures: u32,
    waits: u32,
    /// The last trouble of each sort that was reported.
    reported: BTreeMap<(&'static str, Matter), String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    times: u32,
    until: Timestamp,
    why: String,
    /// Whether the call failed, rather than that its effect is not seen yet.
    refused: bool,
}

/// What a trouble is about, so that two of them do not take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Matter {
    /// A write, a look or a call.
    Doing,
    /// Entries that cannot be added.
    Entries,
    /// Finalizers that two employers of one name share.
    Finalizers,
    /// More employees than are served.
    Size,
    /// More names than are recorded.
    Record,
}

impl SettleMemory {
    /// Whether a call to the provider is under way.
    pub fn is_calling(&self) -> bool {
        self.flight.contains_key(&WorkSlot::Provider)
    }

    /// Whether anything is under way.
    pub fn is_busy(&self) -> bool {
        !self.flight.is_empty()
    }

    /// Whether the next look repeats one that failed.
    pub fn look_is_retry(&self) -> bool {
        self.look_failures > 0
    }

    /// Whether an order repeats one that failed.
    pub fn is_retry(&self, order: &SettleOrder) -> bool {
        match &order.act {
            Act::Call { call, items } => items
                .iter()
                .any(|(id, _)| self.held.get(&(*call, id.clone())).is_some_and(|held| held.refused)),
            _ => self.failed.contains_key(&order.slot),
        }
    }
}

/// What can be under way only once at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkSlot {
    /// A write to the employer.
    Employer,
    /// A write to the binding itself, its status aside.
    Binding,
    /// A write to one pod, by its uid.
    Pod(String),
    /// A call to the provider.
    Provider,
}

/// Something to be done, and under which number its outcome is filed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettleOrder {
    /// What it occupies.
    pub slot: WorkSlot,
    /// Its number; outcomes of other numbers change nothing.
    pub number: u64,
    /// What is to be done.
    pub act: Act,
}

/// What can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Make the binding.
    Claim,
    /// Delete the binding of this uid.
    Unclaim {
        /// Its uid.
        uid: String,
    },
    /// Add a finalizer to the employer, and nothing else.
    AddClean {
        /// The finalizer.
        finalizer: String,
    },
    /// Take finalizers off the employer, and nothing else.
    RemoveClean {
        /// The finalizers.
        finalizers: Vec<String>,
    },
    /// Set or remove annotations of the employer.
    Record {
        /// Key and value; none to remove it.
        annotations: BTreeMap<&'static str, Option<String>>,
    },
    /// Write a pod's entries, if the pod is still at the version they were read from.
    WriteEntries {
        /// The pod.
        pod: PodRef,
        /// The whole annotation.
        text: String,
    },
    /// Add a protection finalizer to a pod, and nothing else.
    Protect {
        /// The pod.
        pod: PodRef,
        /// The finalizer.
        finalizer: String,
    },
    /// Take protection finalizers off a pod, and nothing else.
    Release {
        /// The pod.
        pod: PodRef,
        /// The finalizers.
        finalizers: Vec<String>,
    },
    /// Call the provider.
    Call {
        /// What.
        call: Call,
        /// With which items: their ids and states.
        items: Vec<(String, Arc<Value>)>,
    },
}

/// Which pod, at which version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRef {
    /// Its name.
    pub name: String,
    /// Its incarnation.
    pub uid: String,
    /// The version that was looked at.
    pub version: u64,
}

/// What came back for an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettleOutcome {
    /// What it occupied.
    pub slot: WorkSlot,
    /// The number of the order.
    pub number: u64,
    /// When it came back.
    pub at: Timestamp,
    /// What came of it.
    pub result: Result<CompletedAct, String>,
}

/// What came of an order that was carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompletedAct {
    /// The object's version after the write.
    pub version: Option<u64>,
    /// How the call went, item by item.
    pub batch: Option<Batch>,
}

/// Something to say as an Event on the employer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmployerNotice {
    /// One of the document's reasons.
    pub reason: &'static str,
    /// The text.
    pub message: String,
    /// Whether it is a warning.
    pub warning: bool,
}

/// What is to be done for one employer now.
#[derive(Clone, Debug, PartialEq)]
pub struct SettleDecision {
    /// What to remember.
    pub memory: SettleMemory,
    /// What to do.
    pub orders: Vec<SettleOrder>,
    /// What to say.
    pub notices: Vec<EmployerNotice>,
    /// What the next look is about.
    pub about: u64,
    /// Whether the employment ends: nothing is expected in the next look.
    pub leaving: bool,
    /// When the provider is to be looked at; none while that would be in vain.
    pub look_at: Option<Timestamp>,
    /// When to decide again although nothing changed.
    pub wake_at: Option<Timestamp>,
    /// What is known of each pod's traffic through this employer, by the pod's uid.
    pub traffic: BTreeMap<String, Traffic>,
    /// Employees that may have traffic and wait to be attached, by name.
    pub attaching: BTreeSet<String>,
    /// What the provider may still have of an employer that went without us, in words; none where it did not.
    pub left: Option<String>,
    /// What people read.
    pub report: EmployerReport,
    /// Whether nothing of this employment is left.
    pub over: bool,
}

/// The reason of events about entries.
const ENTRIES_FAILED: &str = "EnsureExpectedFinalizerFailed";

/// How long something that was seen at a provider makes an empty answer doubtful.
const DOUBT: Duration = Duration::from_mins(10);

/// One turn in the making.
struct Turn<'a> {
    observed: ObservedEmployment<'a>,
    now: Timestamp,
    memory: SettleMemory,
    finalizers: OwnFinalizers,
    key: String,
    leaving: bool,
    about: u64,
    orders: Vec<SettleOrder>,
    notices: Vec<EmployerNotice>,
    left: Option<String>,
    wake_at: Option<Timestamp>,
}

/// Decides. The same inputs give the same decision.
pub fn settle(
    memory: &SettleMemory,
    observed: ObservedEmployment<'_>,
    outcomes: &[SettleOutcome],
    now: Timestamp,
) -> SettleDecision {
    let employer = observed.employer;
    let key = crate::marks::key(&employer.kind.kind, &employer.namespace, &employer.name);
    let finalizers = OwnFinalizers::of(
        observed.options.finalizer,
        &employer.kind.kind,
        &employer.kind.group,
        &employer.namespace,
        &employer.name,
    );
    let leaving = !observed.serve || employer.deleting || employer.gone;
    let mut turn = Turn {
        about: employer::about(&observed, leaving),
        observed,
        now,
        memory: memory.clone(),
        finalizers,
        key,
        leaving,
        orders: Vec::new(),
        notices: Vec::new(),
        left: None,
        wake_at: None,
    };
    for outcome in outcomes {
        turn.take_in(outcome);
    }
    turn.take_look();
    turn.decide()
}
