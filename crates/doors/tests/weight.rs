//! What an object that waits weighs: a thousand subjects in memory, counted by the allocator. A test binary of its own,
//! because everything that is allocated in the process counts.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use linchpin_doors::{
    VisibleCauses,
    subject::{Asks, Decision, Subject, SubjectInput, Ties},
};
use linchpin_engine::{
    contract::{Observed, Projection, Question, Scope, Seen, Want, Why, World},
    graph::{Graph, Node},
};
use linchpin_words::{Reason, Timestamp};
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// One test at a time.
static SCALES: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    SCALES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many are weighed.
const COUNT: usize = 1_000;

fn object(number: usize, status: Option<&Value>) -> String {
    let mut object = json!({
        "apiVersion": "tools.kubestellar.io/v1", "kind": "ResourceDependency",
        "metadata": {"name": format!("wait-{number}"), "namespace": "crowd", "uid": format!("uid-{number}"),
            "resourceVersion": "7", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "serviceAccountName": "builder",
            "dependencies": [{"name": "it", "resource": format!("configmap/cause-{number}"),
                "conditions": [{"jsonPath": ".data.released", "operator": "eq", "value": "yes"}]}],
            "actions": [{"name": "make", "type": "create", "resource": {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("effect-{number}")},
                "data": {"go": "yes"}}}],
        },
    });
    if let Some(status) = status {
        object["status"] = status.clone();
    }
    object.to_string()
}

/// Everything may be done, and every object is there without what is waited for.
fn answer(want: &Want) -> Seen {
    match want.question() {
        Question::Right { .. } => Seen::Right(true),
        Question::Objects { kind, scope: Scope::Name { namespace, name }, .. } => {
            let item = Projection {
                kind: kind.clone(),
                namespace: namespace.clone(),
                name: name.clone(),
                uid: format!("uid-{name}"),
                generation: 0,
                version: 5,
                deleting: false,
                content: json!({"data": {}}),
            };
            Seen::Objects(Arc::new(Observed {
                items: vec![Arc::new(item)],
                as_of: 5,
                live: true,
                looked: None,
            }))
        }
        _ => Seen::Unknown(Why::new(Reason::Unsynced, "nobody asks for this")),
    }
}

/// One turn, with everything answered that is asked for; the world is forgotten afterwards, as the controller does.
fn decide(subject: &mut dyn Subject, wants: &mut BTreeSet<Want>) -> Decision {
    loop {
        let world: World = wants.iter().map(|want| (want.clone(), answer(want))).collect();
        let causes = VisibleCauses::new();
        let registry = linchpin_doors::registry();
        let look = SubjectInput {
            registry: &registry,
            world: &world,
            outcomes: &[],
            ties: Ties { cycle: None, causes: &causes, broken: &[], exempt: &[], makers: &[], claims: &[] },
            kept: None,
            idle: true,
            now: Timestamp::from_second(1_000),
        };
        match subject.decide(&look) {
            Ok(decision) if decision.wants.is_subset(wants) => return decision,
            Ok(Decision { wants: asks, .. }) | Err(Asks(asks)) => wants.extend(asks),
        }
    }
}

#[test]
fn an_object_that_waits_weighs_little() {
    let _alone = alone();
    let kinds = linchpin_doors::registry();
    let account: Arc<str> = Arc::from("default");
    let mut subjects = Vec::with_capacity(COUNT);
    let serve = |number: usize| {
        let mut subject = kinds.kinds()[0].subject(&object(number, None), &account).unwrap();
        let mut wants = BTreeSet::new();
        let decision = decide(&mut *subject, &mut wants);
        assert!(decision.effects.is_empty() && decision.own.is_some());
        let drawn = subject.status(&VisibleCauses::new()).unwrap();
        assert_eq!(drawn.status["phase"], "Waiting", "{}", drawn.status);
        subject.saved(drawn.critical);
        decide(&mut *subject, &mut wants);
        drop(subject.status(&VisibleCauses::new()));
        // The last that comes is what was written; nothing is decided on it.
        subject.arrived(&object(number, Some(&drawn.status)), true).unwrap();
        subject.rest(&VisibleCauses::new());
        subject
    };
    // What is made once for all of them does not count.
    subjects.push(serve(0));
    let before = MEMORY.current_usage();
    subjects.extend((1..=COUNT).map(serve));
    let each = (MEMORY.current_usage() - before) / COUNT;
    println!("{each} bytes each");
    assert!(each <= 4 * 1024, "an object that waits takes {each} bytes");
}

#[test]
fn what_is_known_of_an_object_that_waits_weighs_little() {
    let _alone = alone();
    let kinds = linchpin_doors::registry();
    let account: Arc<str> = Arc::from("default");
    let decided = |number: usize| {
        let mut subject = kinds.kinds()[0].subject(&object(number, None), &account).unwrap();
        let decision = decide(&mut *subject, &mut BTreeSet::new());
        (Node::here(subject.key().object_ref()), decision.edges.unwrap(), decision.wants)
    };
    let mut graph = Graph::new();
    let mut know = |numbers: std::ops::RangeInclusive<usize>| {
        for (node, edges, _) in numbers.map(decided) {
            graph.set(&node, &edges);
        }
    };
    know(0..=0);
    let before = MEMORY.current_usage();
    know(1..=COUNT);
    let each = (MEMORY.current_usage() - before) / COUNT;
    println!("{each} bytes each in the graph");
    assert!(each <= 1_800, "the graph takes {each} bytes for an object that waits");
    let mut asked: Vec<Vec<Want>> = Vec::with_capacity(COUNT);
    let before = MEMORY.current_usage();
    asked.extend((1..=COUNT).map(|number| decided(number).2.into_iter().collect()));
    let each = (MEMORY.current_usage() - before) / COUNT;
    println!("{each} bytes each for {} questions", asked[0].len());
    assert!(each <= 1_800, "the questions of an object that waits take {each} bytes");
}

#[test]
fn an_object_whose_status_waits_to_be_written_weighs_little_while_it_rests() {
    let _alone = alone();
    let kinds = linchpin_doors::registry();
    let account: Arc<str> = Arc::from("default");
    let serve = |number: usize| {
        let mut subject = kinds.kinds()[0].subject(&object(number, None), &account).unwrap();
        decide(&mut *subject, &mut BTreeSet::new());
        subject.rest(&VisibleCauses::new());
        subject
    };
    let mut subjects = vec![serve(0)];
    let before = MEMORY.current_usage();
    subjects.extend((1..=COUNT).map(serve));
    let each = (MEMORY.current_usage() - before) / COUNT;
    println!("{each} bytes each");
    assert!(each <= 6 * 1024, "an object whose status waits takes {each} bytes");
    let status =
        |subject: &mut Box<dyn Subject>| subject.status(&VisibleCauses::new()).map(|drawn| drawn.status);
    let mut awake = kinds.kinds()[0].subject(&object(1, None), &account).unwrap();
    decide(&mut *awake, &mut BTreeSet::new());
    assert_eq!(status(&mut subjects[1]), status(&mut awake), "it says the same");
    assert_eq!(status(&mut subjects[1]), None, "and says it once");
    let mut newer: Value = serde_json::from_str(&object(2, None)).unwrap();
    newer["metadata"]["generation"] = json!(2);
    subjects[2].arrived(&newer.to_string(), false).unwrap();
    assert_eq!(status(&mut subjects[2]), None, "nothing is said of what the object was before");
}

#[test]
fn an_object_that_has_rested_decides_as_if_it_had_not() {
    let _alone = alone();
    let kinds = linchpin_doors::registry();
    let mut subject = kinds.kinds()[0].subject(&object(0, None), &Arc::from("default")).unwrap();
    let mut wants = BTreeSet::new();
    decide(&mut *subject, &mut wants);
    subject.rest(&VisibleCauses::new());
    let drawn =
        subject.status(&VisibleCauses::new()).expect("what is to be written is drawn before it rests");
    subject.saved(drawn.critical);
    let awake = decide(&mut *subject, &mut wants);
    subject.status(&VisibleCauses::new());
    subject.rest(&VisibleCauses::new());
    let rested = decide(&mut *subject, &mut wants);
    assert_eq!(rested.wants, awake.wants);
    assert_eq!(rested.report.phase, awake.report.phase);
    assert!(rested.effects.is_empty() && !rested.withdraws && !rested.unfinished);
    assert_eq!(
        subject.status(&VisibleCauses::new()).map(|drawn| drawn.status),
        Some(drawn.status),
        "nothing is new"
    );
}
