//! Small plans for tests: requirements are ConfigMaps that must exist, actions apply ConfigMaps or run commands.

use std::{sync::Arc, time::Duration};

use linchpin_engine::{
    contract::{
        Authority, EffectTarget, Existing, Observed, Projection, Propagation, Question, ReadSet, Scope, Seen,
        Served, StepId, Via, Want, World,
    },
    plan::{
        ActionBody, After, Delivery, Document, Documents, Plan, PlannedAction, Requirement, Step, StepKind,
        Terms, Test,
    },
    readiness::Wanted,
};
use linchpin_lang::template::{Template, ValueTemplate};
use linchpin_words::{GroupKind, Gvk, ObjectRef, reference::KindWord};
use serde_json::{Value, json};

pub const UID: &str = "the-object";
pub const NAMESPACE: &str = "shop";
pub const MANAGER: &str = "linchpin:test";

pub fn via() -> Via {
    Via::service_account(NAMESPACE, "builder")
}

/// As whom the object acts, with no other cluster in its spec.
pub fn authority() -> Authority {
    Authority { actor: via().actor, clusters: Vec::new() }
}

pub fn config_map() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

pub fn owner() -> ObjectRef {
    ObjectRef::namespaced(GroupKind::new("tools.kubestellar.io", "ResourceDependency"), NAMESPACE, "boot")
}

/// The want for a ConfigMap, with its data and annotations.
pub fn want(name: &str) -> Want {
    let reads = ReadSet::dotted(["metadata.deletionTimestamp", "metadata.generation", "data"]);
    Want::object(via(), config_map(), Some(NAMESPACE.to_owned()), name, reads)
}

fn blank(id: &str, kind: StepKind) -> Step {
    Step::new(StepId::new(id), format!("steps[{id}]"), format!("1:{id}"), kind)
}

/// A requirement that the ConfigMap of the same name exists.
pub fn require(id: &str) -> Step {
    let test = Test { state: Some(Wanted::Exists), ..Test::default() };
    let requirement = Requirement {
        keys: vec![id.to_owned()],
        ..Requirement::new(format!("configmap/{id}"), want(id), test)
    };
    blank(id, StepKind::Require(Box::new(requirement)))
}

fn action(body: ActionBody) -> StepKind {
    StepKind::Act(Box::new(PlannedAction::new(via(), body, NAMESPACE, MANAGER)))
}

/// An action that applies a ConfigMap of this name.
pub fn apply(id: &str) -> Step {
    let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("made-{id}")}});
    apply_value(id, value)
}

/// An action that applies an object whose strings are templates.
pub fn apply_value(id: &str, value: Value) -> Step {
    let template = ValueTemplate::parse(id, &value).expect("a template");
    let document = Document { value: Arc::new(value), template: Some(Arc::new(template)) };
    let documents = Documents::Objects(vec![document]);
    blank(id, action(ActionBody::Apply { documents, existing: Existing::Apply }))
}

/// An action that runs a command.
pub fn exec(id: &str, delivery: Delivery) -> Step {
    blank(
        id,
        action(ActionBody::Exec {
            target: EffectTarget {
                kind: KindWord::new("pod"),
                namespace: Some(NAMESPACE.to_owned()),
                name: "p".to_owned(),
            },
            container: None,
            command: vec![Arc::new(Template::parse(id, "migrate").expect("a template"))],
            timeout: Duration::from_secs(60),
            delivery,
        }),
    )
}

/// An action that deletes a ConfigMap.
pub fn delete(id: &str, name: &str) -> Step {
    let target = EffectTarget {
        kind: KindWord::from_manifest(Some("v1"), "ConfigMap"),
        namespace: Some(NAMESPACE.to_owned()),
        name: name.to_owned(),
    };
    blank(id, action(ActionBody::Delete { target, propagation: Propagation::Background }))
}

/// An action that lets time pass.
pub fn pause(id: &str, duration: Duration) -> Step {
    blank(id, action(ActionBody::Wait(duration)))
}

pub trait Steps {
    /// After the good end of these.
    fn after(self, steps: &[&str]) -> Self;
    /// After the end of these, good or bad.
    fn after_end(self, steps: &[&str]) -> Self;
    /// What it makes is remembered.
    fn tracked(self) -> Self;
    /// Its action, to be changed.
    fn with(self, change: impl FnOnce(&mut PlannedAction)) -> Self;
    /// Its requirement, to be changed.
    fn asking(self, change: impl FnOnce(&mut Requirement)) -> Self;
}

impl Steps for Step {
    fn after(mut self, steps: &[&str]) -> Self {
        self.after.extend(steps.iter().map(|step| After::success(StepId::new(step))));
        self
    }

    fn after_end(mut self, steps: &[&str]) -> Self {
        self.after.extend(steps.iter().map(|step| After::settled(StepId::new(step))));
        self
    }

    fn tracked(self) -> Self {
        self.with(|action| action.tracked = true)
    }

    fn with(mut self, change: impl FnOnce(&mut PlannedAction)) -> Self {
        if let StepKind::Act(action) = &mut self.kind {
            change(action);
        }
        self
    }

    fn asking(mut self, change: impl FnOnce(&mut Requirement)) -> Self {
        if let StepKind::Require(requirement) = &mut self.kind {
            change(requirement);
        }
        self
    }
}

pub fn plan(generation: i64, steps: Vec<Step>) -> Plan {
    plan_with(generation, steps, Terms::default())
}

pub fn plan_with(generation: i64, steps: Vec<Step>, terms: Terms) -> Plan {
    let terms = Terms { authority: authority(), ..terms };
    Plan::new(owner(), UID, generation, steps, terms).expect("a plan")
}

/// A ConfigMap as a watch shows it.
pub fn projection(name: &str, uid: &str, version: u64, content: Value) -> Arc<Projection> {
    Arc::new(Projection {
        kind: config_map(),
        namespace: Some(NAMESPACE.to_owned()),
        name: name.to_owned(),
        uid: uid.to_owned(),
        generation: 1,
        version,
        deleting: false,
        content,
    })
}

/// What a watch shows of one object.
pub fn observed(item: Option<Arc<Projection>>, as_of: u64) -> Seen {
    Seen::Objects(Arc::new(Observed { items: item.into_iter().collect(), as_of, live: true, looked: None }))
}

/// A world in which these ConfigMaps exist and these do not.
pub fn world(present: &[&str], absent: &[&str]) -> World {
    let present = present.iter().map(|name| {
        let content = json!({"metadata": {"name": name}, "data": {"key": "value"}});
        (want(name), observed(Some(projection(name, &format!("uid-{name}"), 1, content)), 1))
    });
    let absent = absent.iter().map(|name| (want(name), observed(None, 1)));
    present.chain(absent).collect()
}

/// The answer to a question about a kind: core kinds are there.
pub fn kind_answer(want: &Want) -> Option<Seen> {
    let Question::Kind { word, .. } = want.question() else { return None };
    let kind = match word.word.as_str() {
        "configmap" => config_map(),
        "pod" => Gvk::new("", "v1", "Pod"),
        _ => return Some(Seen::Kind(Arc::new(Served::No))),
    };
    let plural = format!("{}s", kind.kind.to_lowercase());
    Some(Seen::Kind(Arc::new(Served::Yes { kind, plural, namespaced: true, reports_status: None })))
}

/// The name of the object that a want is about.
pub fn name_of(want: &Want) -> Option<&str> {
    match want.question() {
        Question::Objects { scope: Scope::Name { name, .. }, .. } => Some(name),
        _ => None,
    }
}
