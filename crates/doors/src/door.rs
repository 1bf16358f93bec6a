//! What a kind is, beside what every kind has: [`compile`](Door::compile) and [`status`](Door::status). Called by
//! [`Planned`](crate::subject), which makes a subject of it.

use std::collections::{BTreeMap, BTreeSet};

use kube_core::object::HasStatus;
use linchpin_api::{Ours, common::DeletionPolicy};
use linchpin_engine::{
    contract::{Authority, Notice, StepId, Verb, Via, Want, World},
    journal::Journal,
    plan::{Plan, Removal, SpecError},
    step::{Phase, Report},
};
use linchpin_words::{Gvk, ObjectRef, Reason, Timestamp};

use crate::{
    cluster,
    owner::Owner,
    registry::{KindNames, Registry},
    shown::ShownObject,
};

/// The domain that a cluster's Services have where nobody says another.
pub const CLUSTER_DOMAIN: &str = "cluster.local";

/// What compiling is given beside the object.
#[derive(Clone, Copy, Debug)]
pub struct CompileInput<'a> {
    /// The kinds there are.
    pub registry: &'a Registry,
    /// What has been observed so far.
    pub facts: &'a World,
    /// What bare kind words were resolved to before: `kinds` of the object's journal, as memory has it.
    pub kinds: &'a BTreeMap<String, Gvk>,
    /// The ServiceAccount of objects that name none.
    pub default_service_account: &'a str,
    /// The domain of the cluster's Services.
    pub cluster_domain: &'a str,
    /// The global rules that leave the object alone, because what they wait for needs it.
    pub exempt: &'a [String],
    /// The objects of its own kind that made it, and those that made these.
    pub makers: &'a [ObjectRef],
}

/// A plan, and what it was made with.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// What is to be done.
    pub plan: Plan,
    /// The facts that compiling looked at: when an answer to one of them changes, compile again.
    pub wants: BTreeSet<Want>,
}

/// What a status is made from.
#[derive(Clone, Copy, Debug)]
pub struct StatusInput<'a> {
    /// The plan; none while the spec is wrong or the object is being deleted.
    pub plan: Option<&'a Plan>,
    /// What is remembered.
    pub journal: &'a Journal,
    /// What is reported.
    pub report: &'a Report,
    /// What is behind the objects of ours that it waits for.
    pub causes: &'a VisibleCauses,
    /// The moment at which what is new began.
    pub now: Timestamp,
}

/// What an object's history records of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryInput {
    /// Where it is.
    pub phase: Phase,
    /// Why, in one line.
    pub message: String,
    /// When its run began.
    pub begun: Timestamp,
}

impl HistoryInput {
    /// The input of an object with this status input; none where there is nothing to be deployed.
    pub fn of(status_input: &StatusInput<'_>) -> Option<Self> {
        (status_input.plan.is_some() && !status_input.report.invalid).then(|| Self {
            phase: status_input.report.phase,
            message: status_input.report.message.clone(),
            begun: status_input.journal.run.now,
        })
    }
}

/// What is behind the objects that are waited for, as far as the one that waits may see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisibleCauses {
    /// For each object of ours: what it waits for in turn, down to the root cause, a line a step.
    chains: BTreeMap<ObjectRef, Vec<String>>,
    /// For each object that is waited for: who is to make it.
    pub providers: BTreeMap<ObjectRef, Vec<ShownObject>>,
    /// Of a rule: whom it is imposed on.
    pub imposed: Option<ImposedOn>,
    /// All that is waited for, directly and through others.
    pub waiting_on: Vec<String>,
}

/// Whom a rule is imposed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImposedOn {
    /// How many wait for it, or have waited.
    pub total: usize,
    /// How many are held by it now.
    pub held: usize,
    /// Those that it leaves alone, because what it waits for needs them.
    pub exempt: Vec<ShownObject>,
}

/// What the wait-for graph shows to the objects of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Insight {
    /// Why what they wait for is not there, while they wait.
    #[default]
    Causes,
    /// That; who makes what they have and wait for, and all that is waited for through others, once all is there too.
    Makers,
    /// That; whom they are imposed on. They are rules that others wait for, and leave alone what they need themselves.
    Subjects,
}

/// The labels of pods, or those that a Service selects.
pub type LabelMap = BTreeMap<String, String>;

/// What serves webhooks: configurations name Services, Services select pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backing {
    /// Webhook configurations by kind and name, each with a Service that answers it: namespace and name.
    pub webhooks: Vec<(ObjectRef, (String, String))>,
    /// Services by namespace and name, with the labels that they select.
    pub services: Vec<((String, String), LabelMap)>,
    /// What makes pods, with the labels of these.
    pub pods: Vec<(ObjectRef, LabelMap)>,
}

impl Backing {
    /// What makes pods that a Service with these labels in this namespace leads to.
    pub fn behind<'b>(
        &'b self,
        namespace: &'b str,
        selected: &'b LabelMap,
    ) -> impl Iterator<Item = &'b ObjectRef> {
        let fits = |labels: &LabelMap| selected.iter().all(|(key, value)| labels.get(key) == Some(value));
        let leads = move |(object, labels): &&(ObjectRef, LabelMap)| {
            !selected.is_empty() && object.namespace.as_deref() == Some(namespace) && fits(labels)
        };
        self.pods.iter().filter(leads).map(|(object, _)| object)
    }
}

/// Another object of ours that depends on this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which.
    pub object: ObjectRef,
    /// Whether it is being deleted itself.
    pub deleting: bool,
    /// Whether this one depends on it in turn, directly or through others.
    pub circular: bool,
}

/// What an object that is being deleted, and of which nothing is taken away yet, is asked with.
#[derive(Clone, Copy, Debug)]
pub struct HoldInput<'a> {
    /// Those that depend on it.
    pub claims: &'a [Claim],
    /// What compiling is given, where it has to look at something before it goes.
    pub compile: CompileInput<'a>,
    /// What is remembered.
    pub journal: &'a Journal,
    /// The time.
    pub now: Timestamp,
}

/// Why an object that is being deleted stays for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// In one word.
    pub reason: Reason,
    /// For people.
    pub message: String,
    /// Those that hold it, as far as it may see them.
    pub by: Vec<String>,
    /// Until when at most; none: until they are gone.
    pub until: Option<Timestamp>,
    /// What it has to look at meanwhile.
    pub wants: BTreeSet<Want>,
    /// Whether a moment will show whom it may name: nothing is said before.
    pub unready: bool,
}

impl VisibleCauses {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is behind an object of ours.
    pub fn get(&self, object: &ObjectRef) -> Option<&Vec<String>> {
        self.chains.get(object)
    }

    /// Says what is behind an object of ours.
    pub fn insert(&mut self, object: ObjectRef, chain: Vec<String>) {
        self.chains.insert(object, chain);
    }
}

/// How much of what an object waits for is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The generation that this is about.
    pub generation: i64,
    /// How much there is to wait for.
    pub all: usize,
    /// What is not there, or not known to be.
    pub unmet: BTreeSet<StepId>,
}

/// An object that is kept beside one of ours, an event or a revision of it: what is to be done to it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideWrite {
    /// What it is called.
    pub name: StepId,
    /// As whom: as the operator itself, since no user directs it.
    pub via: Via,
    /// What is done.
    pub verb: Verb,
}

/// A kind of ours: how its objects become plans, and how their status is made. What every kind has by construction is
/// [`Ours`].
pub trait Door: Send + Sync + 'static {
    /// Its objects.
    type Object: Ours;

    /// What is to be done for an object, as far as that can be known now; or which field is wrong.
    fn compile(object: &Self::Object, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError>;

    /// The object's status as it should be now. Equal to the one it has where nothing has changed.
    fn status(object: &Self::Object, status_input: &StatusInput<'_>) -> StatusOf<Self>;

    /// The event about an object that has come to another phase; none where something else reports it. The object is
    /// not there where it cannot be read.
    fn event(_object: Option<&Self::Object>, report: &Report) -> Option<Notice> {
        Some(phase_event(report))
    }

    /// What it says in words of its own on every turn, if anything. Only then is the object at hand on every turn, and are
    /// its turns counted.
    fn words() -> Option<&'static dyn OwnWords<Self::Object>> {
        None
    }

    /// What ties its objects to others beyond what they wait for and make, if anything does.
    fn ties() -> Option<&'static dyn GraphTies<Self::Object>> {
        None
    }

    /// What is kept beside its objects, if anything is.
    fn beside() -> Option<&'static dyn SideRecords<Self::Object>> {
        None
    }
}

/// The event about a phase in the words of its report.
pub(crate) fn phase_event(report: &Report) -> Notice {
    Notice {
        reason: report.reason.map_or(report.phase.as_str(), Reason::as_str).to_owned(),
        message: report.message.clone(),
        warning: report.phase == Phase::Failed,
    }
}

/// The status of a door's objects.
pub type StatusOf<D> = <<D as Door>::Object as HasStatus>::Status;

/// What the objects of a kind say on every turn beside their status.
pub trait OwnWords<O>: Sync {
    /// The word for where an object is: when it changes, the status is written at once.
    fn phase_word(&self, object: &O, report: &Report) -> &'static str;

    /// Events of its own that are due now.
    fn events(&self, object: &O, status_input: &StatusInput<'_>) -> Vec<SideWrite>;

    /// How much of what an object waits for is there.
    fn tally(&self, object: &O, report: &Report) -> Tally;
}

/// What ties the objects of a kind to others in the wait-for graph, beyond what they wait for and make.
pub trait GraphTies<O>: Sync {
    /// What the graph shows to them.
    fn insight(&self) -> Insight;

    /// The objects of ours that must outlive this one, because it relies on them.
    fn claims(&self, _object: &O) -> Vec<ObjectRef> {
        Vec::new()
    }

    /// Why an object that is being deleted stays for now.
    fn hold(&self, _object: &O, _input: &HoldInput<'_>) -> Option<Hold> {
        None
    }

    /// What of the objects of a plan serves webhooks.
    fn backing<'p>(&self, _plan: &'p Plan) -> Option<&'p Backing> {
        None
    }
}

/// What is kept beside the objects of a kind: events and a history, written as the operator itself. It is no part of the
/// plan, and nothing waits for it.
pub trait SideRecords<O>: Sync {
    /// What is to be written now.
    fn records(&self, object: &O, status_input: &StatusInput<'_>) -> Vec<SideWrite>;

    /// The kind of the records of an object's history, which it owns. Their metadata is followed for all objects at once.
    fn history_kind(&self) -> KindNames;

    /// What is to be written or deleted now of the history of this object, which may be what it was a while ago.
    fn history(&self, object: &O, input: &HistoryInput, kept: &[HistoryRecord], world: &World)
    -> HistoryStep;
}

/// A record of an object's history, by its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRecord {
    /// What it is called.
    pub name: String,
    /// Which incarnation.
    pub uid: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// How an object's history goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryStep {
    /// What must be read of it first; nothing is written as long as it is not.
    pub wants: BTreeSet<Want>,
    /// What is to be written or deleted.
    pub writes: Vec<SideWrite>,
}

/// An object by kind and name.
pub(crate) fn object_ref<O: Ours>(object: &O) -> ObjectRef {
    let meta = object.meta();
    let (kind, name) = (O::gvk().group_kind(), meta.name.clone().unwrap_or_default());
    if O::is_namespaced() {
        ObjectRef::namespaced(kind, Owner::of(object).namespace, name)
    } else {
        ObjectRef::cluster_scoped(kind, name)
    }
}

/// What becomes of what was made.
pub(crate) fn removal(policy: DeletionPolicy) -> Removal {
    match policy {
        DeletionPolicy::Delete => Removal::Delete,
        DeletionPolicy::Retain | DeletionPolicy::Orphan => Removal::Retain,
    }
}

/// Where and as whom an object acts, unless an entry of it names another cluster.
pub(crate) fn via<O: Ours>(object: &O, default_service_account: &str) -> Via {
    if let Some(account) = object.account() {
        return Via::service_account(account.namespace, account.name);
    }
    let account = object.common().service_account_name.as_deref().unwrap_or(default_service_account);
    Via::service_account(Owner::of(object).namespace, account)
}

/// As whom an object removes what it made: as its spec says now.
pub(crate) fn authority<O: Ours>(object: &O, default_service_account: &str) -> Authority {
    let Via { actor, .. } = via(object, default_service_account);
    Authority { actor, clusters: cluster::named(object.clusters(), &Owner::of(object).namespace) }
}
