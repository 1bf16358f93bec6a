//! How long one step of a large plan takes. The promise is 50 µs for a hundred steps.
//!
//! Fifty requirements in five tiers and fifty actions after all of them, each with the rights it needs: more than any plan
//! written by hand. It is measured where an operator spends its life: waiting, seeing one thing change, and looking again at
//! what is done. The same for fifty objects that are written and kept as written, each with a look at whether it is ready:
//! what a bundle of components compiles to.
#![allow(missing_docs, clippy::expect_used)]

use std::{collections::BTreeMap, sync::Arc};

use divan::Bencher;
use linchpin_engine::{
    contract::{
        Done, EffectTarget, Existing, Observed, Outcome, Projection, Question, ReadSet, Right, Seen, Served,
        Stamp, StepId, Via, Want, World,
    },
    journal::Memory,
    plan::{
        ActionBody, After, Document, Documents, Drift, Plan, PlannedAction, Prune, Requirement, Rerun, Step,
        StepKind, Terms, Test,
    },
    readiness::Wanted,
    step::{Goal, Persist, StepDecision, step},
};
use linchpin_lang::template::ValueTemplate;
use linchpin_words::{GroupKind, Gvk, ObjectRef, Timestamp, reference::KindWord};
use serde_json::json;

const REQUIREMENTS: usize = 50;
const ACTIONS: usize = 50;
const TIER: usize = 10;
const NAMESPACE: &str = "shop";
const MANAGER: &str = "linchpin:bench";
/// The version that all objects are seen at.
const VERSION: u64 = 100;
const UID: &str = "5a0c0a2e-9d0f-4f0e-8f52-0b0a6b5f3c11";

fn main() {
    divan::main();
}

fn via() -> Via {
    Via::service_account(NAMESPACE, "builder")
}

fn deployment() -> Gvk {
    Gvk::new("apps", "v1", "Deployment")
}

fn want(position: usize) -> Want {
    let reads =
        ReadSet::dotted(["metadata.deletionTimestamp", "metadata.generation", "spec.replicas", "status"]);
    Want::object(via(), deployment(), Some(NAMESPACE.to_owned()), format!("web-{position:02}"), reads)
}

fn blank(id: &str, after: Vec<After>, kind: StepKind) -> Step {
    Step { after, ..Step::new(StepId::new(id), format!("steps[{id}]"), format!("1:{id}"), kind) }
}

/// The names of one tier of requirements.
fn tier(number: usize) -> Vec<After> {
    let first = number * TIER;
    (first..first + TIER)
        .map(|position| After::success(StepId::new(format!("require-{position:02}"))))
        .collect()
}

fn require(position: usize) -> Step {
    let test = Test { state: Some(Wanted::Ready), ..Test::default() };
    let requirement = Requirement {
        keys: vec![format!("web_{position:02}")],
        ..Requirement::new(format!("deployment/web-{position:02}"), want(position), test)
    };
    let after = (position / TIER).checked_sub(1).map(tier).unwrap_or_default();
    blank(&format!("require-{position:02}"), after, StepKind::Require(Box::new(requirement)))
}

fn apply(position: usize) -> Step {
    let value = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("made-{position:02}")},
        "data": {"ready": "{{ .Dependencies.web_00.status.readyReplicas }}"},
    });
    let template = ValueTemplate::parse("body", &value).expect("a template");
    let documents =
        Documents::Objects(vec![Document { value: Arc::new(value), template: Some(Arc::new(template)) }]);
    let body = ActionBody::Apply { documents, existing: Existing::Apply };
    let action = PlannedAction {
        reads: Some(BTreeMap::from([(StepId::new("require-00"), ReadSet::dotted(["status.readyReplicas"]))])),
        rights: ["get", "patch"]
            .map(|verb| right(verb, "", "configmaps", &format!("made-{position:02}")))
            .into(),
        ..PlannedAction::new(via(), body, NAMESPACE, MANAGER)
    };
    blank(&format!("apply-{position:02}"), tier(REQUIREMENTS / TIER - 1), StepKind::Act(Box::new(action)))
}

fn right(verb: &str, group: &str, resource: &str, name: &str) -> Right {
    Right {
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: None,
        namespace: Some(NAMESPACE.to_owned()),
        name: Some(name.to_owned()),
    }
}

/// An object that is written and kept as written, after the tier before it is ready.
fn keep(position: usize) -> Step {
    let name = format!("web-{position:02}");
    let value = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"replicas": 3},
    });
    let documents = Documents::Objects(vec![Document { value: Arc::new(value), template: None }]);
    let kept = Drift::object(via(), deployment(), Some(NAMESPACE.to_owned()), &name, MANAGER);
    let action = PlannedAction {
        rerun: Rerun::OnDrift(Drift { objects: vec![kept], ..Drift::default() }),
        tracked: true,
        prune: Prune::All,
        rights: ["get", "patch"].map(|verb| right(verb, "apps", "deployments", &name)).into(),
        ..PlannedAction::new(
            via(),
            ActionBody::Apply { documents, existing: Existing::Apply },
            NAMESPACE,
            MANAGER,
        )
    };
    let after = (position / TIER).checked_sub(1).map(tier).unwrap_or_default();
    blank(&format!("keep-{position:02}"), after, StepKind::Act(Box::new(action)))
}

/// That what was written is ready.
fn ready(position: usize) -> Step {
    let mut step = require(position);
    let written = StepId::new(format!("keep-{position:02}"));
    if let StepKind::Require(requirement) = &mut step.kind {
        requirement.floor = Some(written.clone());
    }
    Step { after: vec![After::success(written)], ..step }
}

/// A plan that waits for things and then writes others.
fn plan() -> Plan {
    planned((0..REQUIREMENTS).map(require).chain((0..ACTIONS).map(apply)).collect())
}

/// A plan that keeps what it writes.
fn bundle() -> Plan {
    planned((0..ACTIONS).map(keep).chain((0..REQUIREMENTS).map(ready)).collect())
}

fn planned(steps: Vec<Step>) -> Plan {
    let owner = ObjectRef::namespaced(
        GroupKind::new("tools.kubestellar.io", "ResourceDependency"),
        NAMESPACE,
        "boot",
    );
    Plan::new(owner, UID, 1, steps, Terms { watch: true, ..Terms::default() }).expect("a plan")
}

fn seen(position: usize, ready: bool) -> Seen {
    let name = format!("web-{position:02}");
    let available = if ready { 3 } else { 1 };
    let content = json!({
        "metadata": {"name": name, "namespace": NAMESPACE, "generation": 4},
        "spec": {"replicas": 3},
        "status": {
            "observedGeneration": 4, "replicas": 3, "updatedReplicas": 3, "readyReplicas": available,
            "availableReplicas": available,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            ],
        },
    });
    let item = Projection {
        kind: deployment(),
        namespace: Some(NAMESPACE.to_owned()),
        uid: format!("uid-{name}"),
        name,
        generation: 4,
        version: VERSION,
        deleting: false,
        content,
    };
    Seen::Objects(Arc::new(Observed {
        items: vec![Arc::new(item)],
        as_of: VERSION,
        live: true,
        looked: None,
    }))
}

/// A world in which the first so many Deployments are ready. It answers the plan's own wants, as the hub does.
fn world(plan: &Plan, ready: usize) -> World {
    let wants = plan.steps().iter().filter_map(|step| Some(step.requirement()?.want.clone()));
    let kept = plan.steps().iter().filter_map(|step| step.action()?.drift()?.objects.first().cloned());
    let asked = wants.enumerate().chain(kept.enumerate());
    asked.map(|(position, want)| (want, seen(position, position < ready))).collect()
}

/// The same world, in which so many are ready now.
fn later(before: &World, plan: &Plan, ready: usize) -> World {
    let mut after = before.clone();
    for (want, seen) in world(plan, ready).iter() {
        after.insert(want.clone(), seen.clone());
    }
    after
}

fn now() -> Timestamp {
    Timestamp::from_second(1_000)
}

fn decide(plan: &Plan, memory: &Memory, world: &World, outcomes: &[Outcome]) -> StepDecision {
    step(memory.clone(), Goal::Converge(plan), world, outcomes, None, now())
}

/// Steps until nothing changes any more; all that is ordered succeeds.
fn settled(plan: &Plan, world: &mut World) -> Memory {
    let mut memory = Memory::fresh(UID, 1, now());
    let mut outcomes = Vec::new();
    loop {
        let decision = decide(plan, &memory, world, &outcomes);
        answer(world, &decision);
        let quiet =
            decision.effects.is_empty() && decision.persist == Persist::Nothing && outcomes.is_empty();
        memory = decision.memory;
        let critical = memory.critical;
        memory.mark_saved(critical);
        outcomes = decision
            .effects
            .iter()
            .map(|effect| Outcome {
                ticket: effect.ticket.clone(),
                at: now(),
                result: Ok(done(&effect.ticket.step)),
            })
            .collect();
        if quiet {
            return memory;
        }
    }
}

/// Everything is allowed, and every kind is served.
fn answer(world: &mut World, decision: &StepDecision) {
    for want in &decision.wants {
        if matches!(want.question(), Question::Right { .. }) {
            world.insert(want.clone(), Seen::Right(true));
        }
        if matches!(want.question(), Question::Kind { .. }) {
            let kind = Gvk::new("", "v1", "ConfigMap");
            let served =
                Served::Yes { kind, plural: "configmaps".to_owned(), namespaced: true, reports_status: None };
            world.insert(want.clone(), Seen::Kind(Arc::new(served)));
        }
    }
}

fn done(step: &StepId) -> Done {
    let name = step.as_str().replace("apply", "made").replace("keep", "web");
    let kept = step.as_str().starts_with("keep");
    let target = EffectTarget {
        kind: if kept {
            KindWord::from_manifest(Some("apps/v1"), "Deployment")
        } else {
            KindWord::from_manifest(Some("v1"), "ConfigMap")
        },
        namespace: Some(NAMESPACE.to_owned()),
        name: name.clone(),
    };
    let version = if kept { VERSION } else { 200 };
    let stamp = Stamp { uid: format!("uid-{name}"), generation: 1, version, fingerprint: String::new() };
    Done { target: Some(target), created: true, stamp: Some(stamp), ..Done::default() }
}

/// Takes the time of one step of a plan in a world, from this memory.
fn measure(bencher: Bencher<'_, '_>, plan: &Plan, memory: &Memory, world: &World) {
    bencher.with_inputs(|| memory.clone()).bench_values(|memory| {
        step(memory, Goal::Converge(divan::black_box(plan)), divan::black_box(world), &[], None, now())
    });
}

/// Half of the requirements hold; nothing has changed since the last step.
#[divan::bench]
fn waiting(bencher: Bencher<'_, '_>) {
    let plan = plan();
    let mut world = world(&plan, REQUIREMENTS / 2);
    let memory = settled(&plan, &mut world);
    assert!(memory.journal.completed.is_none());
    measure(bencher, &plan, &memory, &world);
}

/// One more requirement has come to hold.
#[divan::bench]
fn one_flip(bencher: Bencher<'_, '_>) {
    let plan = plan();
    let mut before = world(&plan, REQUIREMENTS / 2);
    let memory = settled(&plan, &mut before);
    let after = later(&before, &plan, REQUIREMENTS / 2 + 1);
    assert_ne!(decide(&plan, &memory, &after, &[]).memory.journal, memory.journal);
    measure(bencher, &plan, &memory, &after);
}

/// Everything is done, and still watched.
#[divan::bench]
fn all_done(bencher: Bencher<'_, '_>) {
    let plan = plan();
    let mut world = world(&plan, REQUIREMENTS);
    let memory = settled(&plan, &mut world);
    assert!(memory.journal.completed.is_some());
    measure(bencher, &plan, &memory, &world);
}

/// Half of what is written and kept is ready.
#[divan::bench]
fn bundle_waiting(bencher: Bencher<'_, '_>) {
    let plan = bundle();
    let mut world = world(&plan, REQUIREMENTS / 2);
    let memory = settled(&plan, &mut world);
    assert!(memory.journal.completed.is_none() && memory.journal.steps.len() == ACTIONS + REQUIREMENTS);
    measure(bencher, &plan, &memory, &world);
}

/// All of it is written, ready, and watched.
#[divan::bench]
fn bundle_done(bencher: Bencher<'_, '_>) {
    let plan = bundle();
    let mut world = world(&plan, REQUIREMENTS);
    let memory = settled(&plan, &mut world);
    assert!(memory.journal.completed.is_some());
    measure(bencher, &plan, &memory, &world);
}

/// The last requirement has come to hold: fifty bodies are rendered and ordered at once. The promise is not for this
/// one, which happens once.
#[divan::bench]
fn everything_starts(bencher: Bencher<'_, '_>) {
    let plan = plan();
    let mut before = world(&plan, REQUIREMENTS - 1);
    let memory = settled(&plan, &mut before);
    let after = later(&before, &plan, REQUIREMENTS);
    assert_eq!(decide(&plan, &memory, &after, &[]).effects.len(), ACTIONS);
    measure(bencher, &plan, &memory, &after);
}
