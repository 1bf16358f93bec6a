//! Keeping what was written, on a real API server: what counts as drift, what is taken back and what is left.

use crate::effects::{Hand, able, body};
use linchpin_engine::{
    contract::{EffectTarget, Existing, Failure, Force, OwnerReference, Seen, Verb, Want, kept_fingerprint},
    plan::Drift,
};
use linchpin_words::KindWord;
use serde_json::{Value, json};
use std::sync::Arc;

const MANAGER: &str = "linchpin:AppBundle:shop/web:step";

impl Hand<'_> {
    async fn keep(
        &self,
        document: Value,
        force: Force,
        owner: Option<OwnerReference>,
    ) -> Result<linchpin_engine::contract::Done, Failure> {
        self.order(Verb::Apply {
            body: Arc::new(document),
            default_namespace: self.stage.namespace.clone(),
            manager: MANAGER.into(),
            force,
            yields: Arc::new([".data.left".to_owned()]),
            existing: Existing::Fail,
            creator: "uid-1".into(),
            owner: owner.map(Arc::new),
        })
        .await
    }

    fn kept(&self, kind: linchpin_words::Gvk, name: &str) -> Want {
        Drift::object(self.stage.via("builder"), kind, Some(self.stage.namespace.clone()), name, MANAGER)
    }
}

fn shown(seen: &Seen) -> Option<String> {
    let Seen::Objects(observed) = seen else { return None };
    kept_fingerprint(&observed.items.first()?.content, MANAGER).map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_that_somebody_changes_or_removes_is_drift_and_is_taken_back_but_for_what_is_left() {
    let stage = able().await;
    let mut hand = Hand::new(&stage).await;
    let document = || body("kept", &json!({"a": "1", "b": "1", "left": "1"}));
    let written = hand.keep(document(), Force::IfCreated, None).await.unwrap().stamp.unwrap();
    let want = hand.kept(crate::stage::config_map(), "kept");
    hand.audience.ask([want.clone()]);
    let ours = written.fingerprint.clone();
    hand.audience.until(&want, "as written", |seen| shown(seen).as_ref() == Some(&ours)).await;
    // A field of somebody's own is no drift.
    let mut theirs = hand.stored("kept").await.unwrap();
    theirs["data"]["other"] = json!("theirs");
    stage.replace(theirs).await;
    hand.audience.until(&want, "still as written", |seen| shown(seen).as_ref() == Some(&ours)).await;
    // A change, a removal, and a change of what is left to others.
    let mut theirs = hand.stored("kept").await.unwrap();
    theirs["data"] = json!({"a": "theirs", "left": "theirs", "other": "theirs"});
    stage.replace(theirs).await;
    hand.audience.until(&want, "drift", |seen| shown(seen).is_some_and(|held| held != ours)).await;
    let refused = hand.keep(document(), Force::Never, None).await.unwrap_err();
    assert!(matches!(refused, Failure::FieldConflict(_)), "{refused:?}");
    let repaired = hand.keep(document(), Force::Always, None).await.unwrap();
    assert_eq!(repaired.yielded.len(), 1, "{:?}", repaired.yielded);
    assert!(repaired.yielded[0].starts_with("data.left is left to"), "{:?}", repaired.yielded);
    let data = hand.stored("kept").await.unwrap()["data"].clone();
    assert_eq!(data, json!({"a": "1", "b": "1", "left": "theirs", "other": "theirs"}));
    // What was left is not ours any more, so it is no drift from here on.
    let now = repaired.stamp.unwrap().fingerprint;
    assert_ne!(now, ours);
    hand.audience.until(&want, "as repaired", |seen| shown(seen).as_ref() == Some(&now)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_scaled_is_left_to_who_scaled_it() {
    let stage = able().await;
    stage.allow_all("builder", "apps/deployments").await;
    let hand = Hand::new(&stage).await;
    let deployment = || {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1, "paused": false,
            "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}})
    };
    hand.keep(deployment(), Force::IfCreated, None).await.unwrap();
    let mut place = deployment();
    place["metadata"]["namespace"] = json!(stage.namespace);
    stage.scale(&place, 5).await;
    let mut edited = stage.get(&place).await.unwrap();
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    stage.replace(edited).await;
    let repaired = hand.keep(deployment(), Force::Always, None).await.unwrap();
    assert!(repaired.yielded.iter().any(|told| told.starts_with("spec.replicas")), "{:?}", repaired.yielded);
    let stored = stage.get(&place).await.unwrap();
    assert_eq!(stored["spec"]["replicas"], 5);
    assert_eq!(stored["spec"]["template"]["spec"]["containers"][0]["image"], "web:1");
    // A selector cannot be changed in place, and that is said in a way that a policy can act on.
    let mut other = deployment();
    other["spec"]["selector"]["matchLabels"] = json!({"app": "other"});
    other["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let refused = hand.keep(other, Force::Always, None).await.unwrap_err();
    let Failure::Immutable { target, message } = refused else { panic!("{refused:?}") };
    assert_eq!(target.name, "web");
    assert!(message.contains("spec.selector"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_is_set_only_in_its_own_namespace_and_can_be_taken_off() {
    let stage = able().await;
    let hand = Hand::new(&stage).await;
    let parent = stage.create(stage.map("parent", json!({}))).await;
    let owner = |namespace: &str| OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: namespace.into(),
        name: "parent".into(),
        uid: parent["metadata"]["uid"].as_str().unwrap().into(),
    };
    let elsewhere =
        hand.keep(body("free", &json!({})), Force::IfCreated, Some(owner("another"))).await.unwrap();
    assert!(!elsewhere.owned);
    let child =
        hand.keep(body("owned", &json!({})), Force::IfCreated, Some(owner(&stage.namespace))).await.unwrap();
    assert!(child.owned);
    let reference = hand.stored("owned").await.unwrap()["metadata"]["ownerReferences"][0].clone();
    assert_ne!(reference["blockOwnerDeletion"], true, "{reference}");
    assert_ne!(reference["controller"], true, "{reference}");
    let target = EffectTarget {
        kind: KindWord::new("cm"),
        namespace: Some(stage.namespace.clone()),
        name: "owned".into(),
    };
    let uid = child.stamp.unwrap().uid;
    let disown =
        |owner: &str| Verb::Disown { target: target.clone(), uid: uid.clone(), owner: owner.to_owned() };
    assert!(hand.order(disown(&owner("").uid)).await.unwrap().disowned);
    assert!(hand.stored("owned").await.unwrap()["metadata"].get("ownerReferences").is_none());
    assert!(hand.order(disown("nobody")).await.unwrap().disowned, "there is nothing to take off");
}
