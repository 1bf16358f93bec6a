//! What the one controller knows of a kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use kube_core::{Resource, object::HasStatus};
use linchpin_api::{Common, common::Cluster};
use linchpin_engine::{
    contract::{Authority, StepId, Verb, Via, Want, World},
    journal::Journal,
    plan::{Plan, Removal, SpecError},
    step::{Phase, Report},
};
use linchpin_words::{Gvk, ObjectRef, Timestamp, keys};
use serde::{Serialize, de::DeserializeOwned};

use crate::{cluster, owner::Owner};

/// What compiling is given beside the object.
#[derive(Clone, Copy, Debug)]
pub struct CompileInput<'a> {
    /// What has been observed so far.
    pub facts: &'a World,
    /// What bare kind words were resolved to before: `kinds` of the object's journal, as memory has it.
    pub kinds: &'a BTreeMap<String, Gvk>,
    /// The ServiceAccount of objects that name none.
    pub default_service_account: &'a str,
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
    pub causes: &'a Causes,
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

/// For each object of ours that is waited for: what it waits for in turn, down to the root cause, a line a step.
pub type Causes = BTreeMap<ObjectRef, Vec<String>>;

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

/// A kind of ours.
pub trait Door: Send + Sync + 'static {
    /// Its objects.
    type Object: Resource<DynamicType = ()>
        + HasStatus<Status = Self::Status>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static;
    /// Their status.
    type Status: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// What is to be done for an object, as far as that can be known now; or which field is wrong.
    fn compile(object: &Self::Object, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError>;

    /// The object's status as it should be now. Equal to the one it has where nothing has changed.
    fn status(object: &Self::Object, status_input: &StatusInput<'_>) -> Self::Status;

    /// The status the object has.
    fn current_status(object: &Self::Object) -> Option<&Self::Status>;

    /// The journal in the object's status; none where there is none of this very object. A journal that cannot be
    /// read is an error to be shown: forgetting what was done could do it twice.
    fn journal(object: &Self::Object) -> Result<Option<Journal>, SpecError>;

    /// The part of the spec that every kind has.
    fn common(object: &Self::Object) -> &Common;

    /// What is to be written now beside this object. It is no part of the plan: nothing waits for it.
    fn records(_object: &Self::Object, _status_input: &StatusInput<'_>) -> Vec<SideWrite> {
        Vec::new()
    }

    /// What must be observed to keep the object's history.
    fn history_wants(_object: &Self::Object) -> BTreeSet<Want> {
        BTreeSet::new()
    }

    /// What is to be written or deleted now of the history of this object, which may be what it was a while ago; none
    /// while that is not known, because the history has not been observed. Nothing waits for it either.
    fn history(_object: &Self::Object, _input: &HistoryInput, _world: &World) -> Option<Vec<SideWrite>> {
        Some(Vec::new())
    }

    /// What becomes of what was made, when the object goes. Asked also while the spec does not compile.
    fn removal(object: &Self::Object) -> Removal;

    /// The same where the spec says nothing of it, or cannot be read.
    fn default_removal() -> Removal {
        Removal::Retain
    }

    /// The kind, at the version that is served.
    fn gvk() -> Gvk {
        Gvk::new(Self::Object::group(&()), Self::Object::version(&()), Self::Object::kind(&()))
    }

    /// Whether its objects live in namespaces.
    fn is_namespaced() -> bool {
        true
    }

    /// Its plural, as in URLs.
    fn plural() -> String {
        Self::Object::plural(&()).into_owned()
    }

    /// The finalizer that is on an object while there is something we must delete before it may go.
    fn finalizer() -> &'static str {
        keys::TEARDOWN_FINALIZER
    }

    /// Whether the object must keep, or get, its finalizer now.
    fn needs_finalizer(object: &Self::Object, journal: &Journal) -> bool {
        journal.has_belongings(Self::removal(object))
    }

    /// The word that the kind's status shows for a phase.
    fn phase_word(phase: Phase) -> &'static str {
        phase.as_str()
    }

    /// Lower is looked after first, within one namespace.
    fn priority(object: &Self::Object) -> i32 {
        Self::common(object).priority
    }

    /// The name of the ServiceAccount, in the object's namespace, that everything is done as.
    fn service_account<'a>(object: &'a Self::Object, default: &'a str) -> &'a str {
        Self::common(object).service_account_name.as_deref().unwrap_or(default)
    }

    /// Where and as whom the object acts, unless an entry of it names another cluster.
    fn via(object: &Self::Object, default_service_account: &str) -> Via {
        let owner = Owner::of(object);
        Via::service_account(owner.namespace, Self::service_account(object, default_service_account))
    }

    /// The clusters that the object's spec names, its own first.
    fn clusters(object: &Self::Object) -> Vec<&Cluster> {
        Self::common(object).cluster.iter().collect()
    }

    /// As whom the object removes what it made: as its spec says now.
    fn authority(object: &Self::Object, default_service_account: &str) -> Authority {
        let Via { actor, .. } = Self::via(object, default_service_account);
        Authority { actor, clusters: cluster::named(Self::clusters(object), &Owner::of(object).namespace) }
    }

    /// The object by kind and name.
    fn object_ref(object: &Self::Object) -> ObjectRef {
        Owner::of(object).object_ref()
    }
}
