//! Effects on a real API server: who created what, and how refusals come out.

use crate::stage::{Audience, Stage};
use linchpin_cluster::{
    apply::Executor,
    events::{EventRecorder, Regarding},
    identity::OperatorClient,
};
use linchpin_engine::contract::{
    Done, Effect, EffectTarget, Existing, Failure, Force, Notice, PatchKind, Propagation, StepId, Ticket,
    Verb,
};
use linchpin_words::{KindWord, keys};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

const MANAGER: &str = "linchpin:ResourceDependency:shop/web:step";

/// An executor and the switch of its fence.
pub struct Hand<'a> {
    pub stage: &'a Stage,
    pub audience: Audience,
    executor: Executor,
    leading: Arc<AtomicBool>,
}

impl<'a> Hand<'a> {
    pub async fn new(stage: &'a Stage) -> Self {
        let audience = stage.audience().await;
        let leading = Arc::new(AtomicBool::new(true));
        let fence = Arc::clone(&leading);
        let own = OperatorClient::new(&crate::stage::transport(stage.cluster).await);
        let recorder = EventRecorder::new(own, "test");
        let executor =
            Executor::new(audience.hub.clone(), recorder, Arc::new(move || fence.load(Ordering::SeqCst)));
        Self { stage, audience, executor, leading }
    }

    pub async fn order(&self, verb: Verb) -> Result<Done, Failure> {
        let ticket = Ticket { step: StepId::new("s"), run: 1, attempt: 1, part: 0 };
        let deadline = Duration::from_secs(10);
        let via = self.stage.via("builder");
        let effect = Effect { ticket, via, verb, discreet: false, deadline, rank: 0 };
        self.executor.execute(&effect, &self.about()).await
    }

    fn about(&self) -> Regarding {
        let kind = crate::stage::gvk("tools.kubestellar.io/v1", "ResourceDependency");
        Regarding {
            kind,
            namespace: Some(self.stage.namespace.clone()),
            name: "rd".into(),
            uid: "uid-1".into(),
        }
    }

    async fn apply(&self, body: Value, existing: Existing) -> Result<Done, Failure> {
        self.apply_with(body, existing, Force::Never).await
    }

    async fn apply_with(&self, body: Value, existing: Existing, force: Force) -> Result<Done, Failure> {
        self.order(Verb::Apply {
            body: Arc::new(body),
            default_namespace: self.stage.namespace.clone(),
            manager: MANAGER.into(),
            force,
            yields: Arc::new([".data.left".to_owned()]),
            existing,
            creator: "uid-1".into(),
            owner: None,
        })
        .await
    }

    async fn create(&self, body: Value, existing: Existing) -> Result<Done, Failure> {
        self.order(Verb::Create {
            body: Arc::new(body),
            default_namespace: self.stage.namespace.clone(),
            manager: MANAGER.into(),
            existing,
            creator: "uid-1".into(),
        })
        .await
    }

    fn target(&self, name: &str) -> EffectTarget {
        EffectTarget {
            kind: KindWord::new("cm"),
            namespace: Some(self.stage.namespace.clone()),
            name: name.into(),
        }
    }

    async fn patch(&self, name: &str, kind: PatchKind, body: Value, once: bool) -> Result<Done, Failure> {
        let body = Arc::new(body);
        self.order(Verb::Patch { target: self.target(name), kind, body, manager: MANAGER.into(), once }).await
    }

    async fn delete(&self, name: &str, uid: Option<&str>) -> Result<Done, Failure> {
        self.delete_of(name, uid, None).await
    }

    async fn delete_of(&self, name: &str, uid: Option<&str>, creator: Option<&str>) -> Result<Done, Failure> {
        let (target, uid, creator) = (self.target(name), uid.map(str::to_owned), creator.map(str::to_owned));
        self.order(Verb::Delete { target, uid, creator, propagation: Propagation::Background }).await
    }

    pub async fn stored(&self, name: &str) -> Option<Value> {
        self.stage.get(&self.stage.map(name, json!({}))).await
    }

    async fn creator(&self, name: &str) -> Option<String> {
        let stored = self.stored(name).await?;
        stored["metadata"]["annotations"][keys::CREATED_BY].as_str().map(str::to_owned)
    }
}

/// A ConfigMap without a namespace.
pub fn body(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A stage whose builder may do anything with ConfigMaps.
pub async fn able() -> Stage {
    let stage = Stage::new().await;
    stage.allow_all("builder", "configmaps").await;
    stage
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_applied_first_carries_our_mark_and_keeps_it() {
    let stage = able().await;
    let hand = Hand::new(&stage).await;
    let first = hand.apply(body("a", &json!({"x": "1"})), Existing::Fail).await.unwrap();
    assert!(first.created);
    assert_eq!(hand.creator("a").await.as_deref(), Some("uid-1"));
    let second = hand.apply(body("a", &json!({"x": "2"})), Existing::Fail).await.unwrap();
    assert!(second.created, "it is still ours");
    let (first, second) = (first.stamp.unwrap(), second.stamp.unwrap());
    assert_eq!(first.uid, second.uid);
    assert!(second.version > first.version);
    assert_eq!(first.fingerprint, second.fingerprint, "the same fields are ours");
    assert_eq!(hand.creator("a").await.as_deref(), Some("uid-1"));
    assert_eq!(hand.stored("a").await.unwrap()["data"], json!({"x": "2"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_applied_by_one_request_and_what_is_there_is_not_touched_by_it() {
    let stage = able().await;
    let hand = Hand::new(&stage).await;
    assert!(hand.apply(body("new", &json!({"x": "1"})), Existing::Fail).await.unwrap().created);
    let requests = stage.audit(&["/configmaps/new", "ResponseComplete", "impersonatedUser"]);
    let verbs: Vec<_> = requests.iter().map(|request| request["verb"].as_str().unwrap_or_default()).collect();
    assert_eq!(verbs, ["patch"]);
    let theirs = stage.create(stage.map("old", json!({"x": "1"}))).await;
    for force in [Force::Never, Force::Always] {
        let refused = hand.apply_with(body("old", &json!({"x": "2"})), Existing::Fail, force).await;
        assert!(matches!(refused, Err(Failure::AlreadyExists(_))), "{refused:?}");
    }
    let stored = hand.stored("old").await.unwrap();
    assert_eq!(stored["metadata"]["resourceVersion"], theirs["metadata"]["resourceVersion"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_elses_object_is_never_marked() {
    let stage = able().await;
    stage.create(stage.map("theirs", json!({"x": "1"}))).await;
    let hand = Hand::new(&stage).await;
    let wish = || body("theirs", &json!({"y": "2"}));
    let refused = hand.apply(wish(), Existing::Fail).await.unwrap_err();
    assert_eq!(refused, Failure::AlreadyExists(format!("ConfigMap {}/theirs", stage.namespace)));
    assert!(hand.apply(wish(), Existing::Skip).await.unwrap().skipped);
    assert_eq!(hand.stored("theirs").await.unwrap()["data"], json!({"x": "1"}));
    let adopted = hand.apply(wish(), Existing::Adopt).await.unwrap();
    assert!(!adopted.created);
    assert_eq!(hand.stored("theirs").await.unwrap()["data"], json!({"x": "1", "y": "2"}));
    assert_eq!(hand.creator("theirs").await, None);
    let conflict = hand.apply(body("theirs", &json!({"x": "9"})), Existing::Apply).await.unwrap_err();
    let Failure::FieldConflict(said) = conflict else { panic!("{conflict:?}") };
    assert!(said.contains(".data.x is held by"), "{said}");
    hand.apply_with(body("theirs", &json!({"x": "9"})), Existing::Apply, Force::Always).await.unwrap();
    assert_eq!(hand.creator("theirs").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_watch_saves_the_look_and_an_old_view_does_no_harm() {
    let stage = able().await;
    let mut hand = Hand::new(&stage).await;
    let want = stage.want("builder", "w");
    hand.audience.ask([want.clone()]);
    hand.audience.until_absent(&want).await;
    assert!(hand.apply(body("w", &json!({"x": "1"})), Existing::Fail).await.unwrap().created);
    hand.audience.until_data(&want, json!({"x": "1"})).await;
    assert!(hand.apply(body("w", &json!({"x": "2"})), Existing::Fail).await.unwrap().created);
    let gets = stage.audit(&["/configmaps/w\"", "\"verb\":\"get\"", "impersonatedUser"]);
    assert!(gets.is_empty(), "{gets:?}");
    // At once again, whether or not the watch has shown it yet: it is ours either way.
    assert!(hand.apply(body("w", &json!({"x": "3"})), Existing::Fail).await.unwrap().created);
    assert_eq!(hand.creator("w").await.as_deref(), Some("uid-1"));
    // Somebody is faster than our view.
    stage.create(stage.map("raced", json!({"x": "1"}))).await;
    let raced = stage.want("builder", "raced");
    hand.audience.ask([raced.clone()]);
    hand.audience.until_data(&raced, json!({"x": "1"})).await;
    stage.delete(&stage.map("raced", json!({}))).await;
    hand.audience.until_absent(&raced).await;
    stage.create(stage.map("raced", json!({"x": "2"}))).await;
    let done = hand.apply(body("raced", &json!({"y": "1"})), Existing::Apply).await.unwrap();
    assert!(!done.created);
    assert_eq!(hand.creator("raced").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_makes_what_is_missing_and_recognises_its_own() {
    let stage = able().await;
    let hand = Hand::new(&stage).await;
    assert!(hand.create(body("c", &json!({"x": "1"})), Existing::Fail).await.unwrap().created);
    let again = hand.create(body("c", &json!({"x": "1"})), Existing::Fail).await.unwrap();
    assert!(again.created && again.stamp.is_some(), "the answer to the first may have been lost");
    stage.create(stage.map("theirs", json!({"x": "1"}))).await;
    let wish = || body("theirs", &json!({"x": "2"}));
    assert!(matches!(hand.create(wish(), Existing::Fail).await, Err(Failure::AlreadyExists(_))));
    let skipped = hand.create(wish(), Existing::Skip).await.unwrap();
    assert!(skipped.skipped && !skipped.created);
    assert_eq!(hand.stored("theirs").await.unwrap()["data"], json!({"x": "1"}));
    assert!(!hand.create(body("theirs", &json!({"y": "2"})), Existing::Adopt).await.unwrap().created);
    assert_eq!(hand.creator("theirs").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_come_out_as_what_they_are() {
    let stage = able().await;
    let hand = Hand::new(&stage).await;
    let namespace = &stage.namespace;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let Err(Failure::Forbidden(right)) = hand.create(secret.clone(), Existing::Fail).await else { panic!() };
    assert_eq!(right.to_string(), format!("create secrets in {namespace}"));
    let Err(Failure::Forbidden(right)) = hand.apply(secret, Existing::Fail).await else { panic!() };
    assert_eq!(right.to_string(), format!("patch secrets s in {namespace}"));

    let Err(Failure::Invalid(said)) = hand.create(body("Bad_Name", &json!({})), Existing::Fail).await else {
        panic!()
    };
    assert!(said.contains(".metadata.name: Invalid value"), "{said}");
    let wrong = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t"}, "data": {"x": {"hunter2": 1}}});
    let refused = hand.apply(wrong, Existing::Fail).await;
    let Err(Failure::Invalid(said)) = refused else { panic!("{refused:?}") };
    assert!(said.contains(".data.x: expected string") && !said.contains("hunter2"), "{said}");
    let unknown =
        json!({"apiVersion": "nowhere.example.com/v1", "kind": "Nothing", "metadata": {"name": "t"}});
    assert!(matches!(hand.apply(unknown, Existing::Fail).await, Err(Failure::NotServed(_))));
    let Err(Failure::Gone(said)) = hand.patch("missing", PatchKind::Merge, json!({}), false).await else {
        panic!()
    };
    assert_eq!(said, format!("ConfigMap {namespace}/missing does not exist"));

    let mut elsewhere = body("e", &json!({}));
    elsewhere["metadata"]["namespace"] = json!("default");
    assert!(matches!(hand.create(elsewhere, Existing::Fail).await, Err(Failure::Forbidden(_))));

    hand.leading.store(false, Ordering::SeqCst);
    assert_eq!(hand.create(body("n", &json!({})), Existing::Fail).await, Err(Failure::NotStarted));
    assert_eq!(hand.stored("n").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_is_going_takes_nothing_new() {
    let stage = able().await;
    let hand = Hand::new(&stage).await;
    hand.create(body("first", &json!({})), Existing::Fail).await.unwrap();
    stage
        .delete(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stage.namespace}}))
        .await;
    let refused = hand.create(body("late", &json!({})), Existing::Fail).await.unwrap_err();
    assert_eq!(refused, Failure::Terminating(format!("namespace {} is being deleted", stage.namespace)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patches_of_every_kind_change_what_they_say() {
    let stage = able().await;
    stage.create(stage.map("p", json!({"x": "1"}))).await;
    let hand = Hand::new(&stage).await;
    hand.patch("p", PatchKind::Merge, json!({"data": {"merge": "1"}}), false).await.unwrap();
    hand.patch("p", PatchKind::Strategic, json!({"data": {"strategic": "1"}}), true).await.unwrap();
    hand.patch("p", PatchKind::Json, json!([{"op": "add", "path": "/data/json", "value": "1"}]), true)
        .await
        .unwrap();
    let done = hand.patch("p", PatchKind::Apply, json!({"data": {"apply": "1"}}), false).await.unwrap();
    let stored = hand.stored("p").await.unwrap();
    assert_eq!(stored["data"], json!({"x": "1", "merge": "1", "strategic": "1", "json": "1", "apply": "1"}));
    assert_eq!(
        done.stamp.unwrap().version.to_string(),
        stored["metadata"]["resourceVersion"].as_str().unwrap()
    );
    let bad = json!([{"op": "remove", "path": "/data/nothing"}]);
    assert!(matches!(hand.patch("p", PatchKind::Json, bad, true).await, Err(Failure::Invalid(_))));
    assert!(matches!(
        hand.patch("absent", PatchKind::Apply, json!({"data": {}}), false).await,
        Err(Failure::Gone(_))
    ));
    assert_eq!(hand.stored("absent").await, None, "a patch creates nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_incarnation_that_was_meant_is_deleted() {
    let stage = able().await;
    let hand = Hand::new(&stage).await;
    let old = stage.create(stage.map("d", json!({}))).await["metadata"]["uid"].as_str().unwrap().to_owned();
    stage.delete(&stage.map("d", json!({}))).await;
    let new = stage.create(stage.map("d", json!({}))).await["metadata"]["uid"].as_str().unwrap().to_owned();
    assert!(matches!(hand.delete("d", Some(&old)).await, Err(Failure::StalePrecondition(_))));
    assert!(hand.stored("d").await.is_some());
    assert!(hand.delete("d", Some(&new)).await.unwrap().gone);
    assert!(hand.delete("d", None).await.unwrap().gone, "what is gone is gone");

    stage.create(stage.map("theirs", json!({}))).await;
    let done = hand.delete_of("theirs", None, Some("uid-1")).await.unwrap();
    assert!(done.gone, "of ours nothing is there");
    assert!(hand.stored("theirs").await.is_some(), "without our mark it is not ours to delete");
    hand.create(body("ours", &json!({})), Existing::Fail).await.unwrap();
    assert!(hand.delete_of("ours", None, Some("uid-1")).await.unwrap().gone);

    let mut held = stage.map("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    stage.create(held).await;
    let done = hand.delete("held", None).await.unwrap();
    assert!(!done.gone && done.stamp.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_notices_are_one_event_with_a_count() {
    let stage = able().await;
    let hand = Hand::new(&stage).await;
    let say = |message: &str| {
        let notice = Notice { reason: "Waiting".into(), message: message.into(), warning: false };
        hand.order(Verb::Notice(notice))
    };
    say("for A").await.unwrap();
    say("for A").await.unwrap();
    say("for B").await.unwrap();
    let api: kube::Api<k8s_openapi::api::events::v1::Event> =
        kube::Api::namespaced(stage.client.clone(), &stage.namespace);
    let mut events = api.list(&Default::default()).await.unwrap().items;
    events.sort_by_key(|event| event.note.clone());
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.note.clone().unwrap(), event.series.as_ref().map(|s| s.count)))
        .collect();
    assert_eq!(told, [("for A".to_owned(), Some(2)), ("for B".to_owned(), None)]);
}
