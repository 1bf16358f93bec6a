//! What the hub shows, to whom, and what it costs.

use crate::stage::{Audience, Stage, config_map, eventually, gvk, items};
use linchpin_cluster::{HubSettings, NamespaceBudget, SubscriberId};
use linchpin_engine::contract::{Actor, ClusterRef, Question, ReadSet, Right, Seen, Served, Via, Want};
use linchpin_words::{KindWord, Reason};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_object_is_seen_coming_changing_and_going() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &["a"]).await;
    let mut audience = stage.audience().await;
    let want = stage.want("builder", "a");
    audience.ask([want.clone()]);
    let Seen::Objects(absent) = audience.until_absent(&want).await else { panic!() };
    assert!(absent.live && absent.as_of > 0);

    stage.put(stage.map("a", json!({"x": "1"}))).await;
    let first = audience.until_data(&want, json!({"x": "1"})).await;
    let stored = stage.put(stage.map("a", json!({"x": "2"}))).await;
    let Seen::Objects(second) = audience.until_data(&want, json!({"x": "2"})).await else { panic!() };
    let Seen::Objects(first) = first else { panic!() };
    assert_eq!(second.items[0].uid, first.items[0].uid);
    assert_eq!(second.items[0].version.to_string(), stored["metadata"]["resourceVersion"].as_str().unwrap());
    assert!(second.as_of >= second.items[0].version);
    assert_eq!(second.items[0].content["metadata"].get("name"), None, "only what is read is kept");

    stage.delete(&stage.map("a", json!({}))).await;
    let Seen::Objects(gone) = audience.until_absent(&want).await else { panic!() };
    assert!(gone.as_of > second.as_of, "an absence is as recent as the deletion");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_user_asks_is_asked_as_the_user() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    let mut audience = stage.audience().await;
    let want = stage.want("builder", "seen-in-audit");
    audience.ask([want.clone()]);
    audience.until_absent(&want).await;
    let lines = stage.audit(&["seen-in-audit", "\"watch\""]);
    assert!(!lines.is_empty());
    let user = format!("system:serviceaccount:{}:builder", stage.namespace);
    for line in lines {
        assert_eq!(line["impersonatedUser"]["username"], Value::from(user.clone()), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_choose_objects_and_those_that_lose_them_leave() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    let labelled = |name: &str, app: &str| {
        let mut map = stage.map(name, json!({"name": name}));
        map["metadata"]["labels"] = json!({"app": app});
        map
    };
    stage.put(labelled("b", "db")).await;
    let mut audience = stage.audience().await;
    let want = stage.want_labelled("builder", "app=db");
    audience.ask([want.clone()]);
    audience.until(&want, "b", |seen| items(seen).len() == 1).await;
    stage.put(labelled("a", "db")).await;
    let seen = audience.until(&want, "a and b", |seen| items(seen).len() == 2).await;
    assert_eq!(items(&seen)[0]["data"]["name"], "a", "sorted by name");
    stage.put(labelled("b", "web")).await;
    let seen = audience.until(&want, "a alone", |seen| items(seen).len() == 1).await;
    assert_eq!(items(&seen)[0]["data"]["name"], "a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_those_who_asked_are_named() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    stage.put(stage.map("one", json!({"x": "1"}))).await;
    stage.put(stage.map("two", json!({"x": "1"}))).await;
    let mut audience = stage.audience().await;
    let (one, two) = (stage.want("builder", "one"), stage.want("builder", "two"));
    for (number, wants) in [(11, vec![&one]), (12, vec![&two]), (13, vec![&one, &two])] {
        audience.hub.subscribe(SubscriberId(number), wants.into_iter().cloned().collect());
    }
    audience.until_data(&one, json!({"x": "1"})).await;
    audience.until_data(&two, json!({"x": "1"})).await;
    audience.forget().await;
    stage.put(stage.map("one", json!({"x": "2"}))).await;
    audience.until_data(&one, json!({"x": "2"})).await;
    let mut named = audience.named_within(Duration::from_millis(300)).await;
    named.insert(11);
    assert_eq!(named.difference(&BTreeSet::from([11, 13])).count(), 0, "{named:?}");
    audience.forget().await;
    stage.put(stage.map("unrelated", json!({}))).await;
    assert_eq!(audience.named_within(Duration::from_millis(300)).await, BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_right_is_said_and_noticed_when_it_is_there() {
    let stage = Stage::new().await;
    stage.put(stage.map("a", json!({"x": "1"}))).await;
    let mut audience = stage.audience().await;
    let want = stage.want("builder", "a");
    audience.ask([want.clone()]);
    let message = audience.until_unknown(&want, Reason::Forbidden).await;
    let expected = format!(
        "ServiceAccount {ns}/builder is not allowed to list and watch configmaps a in {ns}; asked again in 30 s at most",
        ns = stage.namespace
    );
    assert_eq!(message, expected);
    stage.allow("builder", &["list", "watch"], "configmaps", &["a"]).await;
    audience.until_data(&want, json!({"x": "1"})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_identities_see_only_what_each_may() {
    let stage = Stage::new().await;
    stage.account("reader").await;
    stage.put(stage.map("a", json!({"x": "1"}))).await;
    stage.allow("builder", &["list", "watch"], "configmaps", &["a"]).await;
    let mut audience = stage.audience().await;
    let (may, may_not) = (stage.want("builder", "a"), stage.want("reader", "a"));
    audience.ask([may.clone(), may_not.clone()]);
    audience.until_data(&may, json!({"x": "1"})).await;
    audience.until_unknown(&may_not, Reason::Forbidden).await;
    audience.until_data(&may, json!({"x": "1"})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_service_account_nothing_is_asked() {
    let stage = Stage::new().await;
    stage.allow("late", &["list", "watch"], "configmaps", &[]).await;
    stage.put(stage.map("a", json!({"x": "1"}))).await;
    let mut audience = stage.audience().await;
    let want = stage.want("late", "a");
    audience.ask([want.clone()]);
    audience.until_unknown(&want, Reason::IdentityGone).await;
    let user = format!("system:serviceaccount:{}:late", stage.namespace);
    assert!(
        stage.audit(&[&user, "impersonatedUser"]).is_empty(),
        "nobody acts as an account that is not there"
    );

    stage.account("late").await;
    audience.until_data(&want, json!({"x": "1"})).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "late", "namespace": stage.namespace}});
    stage.delete(&account).await;
    audience.until_unknown(&want, Reason::IdentityGone).await;
    stage.account("late").await;
    audience.until_data(&want, json!({"x": "1"})).await;
}

fn definition(group: &str, plural: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "status": {"type": "object", "properties": {"conditions": {"type": "array", "items": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true}}}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind, "shortNames": ["zz"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_comes_later_is_waited_for_and_one_that_goes_is_missed() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch", "create"], "late.example.com/widgets", &[]).await;
    let mut audience = stage.audience().await;
    let kind = gvk("late.example.com/v1", "Widget");
    let object = Want::object(
        stage.via("builder"),
        kind.clone(),
        Some(stage.namespace.clone()),
        "w",
        ReadSet::nothing(),
    );
    let word = |word: &str| {
        Want::new(Question::Kind { via: stage.via("builder"), word: KindWord::parse(word).unwrap() })
    };
    let (bare, short) = (word("widget"), word("zz"));
    audience.ask([object.clone(), bare.clone(), short.clone()]);
    audience.until_unknown(&object, Reason::KindNotServed).await;
    audience.until(&bare, "no such kind", |seen| *seen == Seen::Kind(Served::No.into())).await;

    stage.put(definition("late.example.com", "widgets", "Widget")).await;
    audience.until_absent(&object).await;
    let served = Served::Yes { kind, plural: "widgets".into(), namespaced: true, reports_status: Some(true) };
    for word in [&bare, &short] {
        audience.until(word, "the kind", |seen| *seen == Seen::Kind(served.clone().into())).await;
    }
    stage.put(json!({"apiVersion": "late.example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": stage.namespace}})).await;
    audience.until(&object, "the widget", |seen| items(seen).len() == 1).await;

    stage.delete(&definition("late.example.com", "widgets", "Widget")).await;
    audience.until_unknown(&object, Reason::KindNotServed).await;
    audience.until(&bare, "no such kind", |seen| *seen == Seen::Kind(Served::No.into())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn version_and_rights_are_answers_too() {
    let stage = Stage::new().await;
    let mut audience = stage.audience().await;
    let version = Want::new(Question::Version { via: stage.via("builder") });
    let right = Right {
        verb: "patch".into(),
        group: String::new(),
        resource: "configmaps".into(),
        subresource: None,
        namespace: Some(stage.namespace.clone()),
        name: None,
    };
    let right = Want::new(Question::Right { via: stage.via("builder"), right });
    audience.ask([version.clone(), right.clone()]);
    audience
        .until(
            &version,
            "a version",
            |seen| matches!(seen, Seen::Version(version) if version["major"] == "1"),
        )
        .await;
    audience.until(&right, "no right", |seen| *seen == Seen::Right(false)).await;
    stage.allow("builder", &["patch"], "configmaps", &[]).await;
    audience.until(&right, "the right", |seen| *seen == Seen::Right(true)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_do_something_to_all_is_not_asked_about_each() {
    let stage = Stage::new().await;
    stage.allow("builder", &["get"], "configmaps", &[]).await;
    let metadata = json!({"name": "narrow", "namespace": stage.namespace});
    stage.put(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})).await;
    stage.allow("narrow", &["get"], "configmaps", &["n1"]).await;
    let mut audience = stage.audience().await;
    let right = |account: &str, number: u32| {
        let right = Right {
            verb: "get".into(),
            group: String::new(),
            resource: "configmaps".into(),
            subresource: None,
            namespace: Some(stage.namespace.clone()),
            name: Some(format!("n{number}")),
        };
        Want::new(Question::Right { via: stage.via(account), right })
    };
    let all: Vec<Want> = (0..100).map(|number| right("builder", number)).collect();
    let (one, other) = (right("narrow", 1), right("narrow", 2));
    audience.ask(all.iter().cloned().chain([one.clone(), other.clone()]));
    for want in &all {
        audience.until(want, "the right", |seen| *seen == Seen::Right(true)).await;
    }
    audience.until(&one, "the right to one", |seen| *seen == Seen::Right(true)).await;
    audience.until(&other, "no right to the other", |seen| *seen == Seen::Right(false)).await;
    let account = format!("system:serviceaccount:{}:builder", stage.namespace);
    let reviews = stage.audit(&["selfsubjectaccessreviews", "ResponseComplete", &account]).len();
    assert!(reviews < 50, "{reviews} reviews for 100 rights");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsubscribing_ends_the_watch_at_the_server() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    let mut audience = stage.audience().await;
    let want = stage.want("builder", "ends-with-us");
    audience.ask([want.clone()]);
    audience.until_absent(&want).await;
    let ended = || stage.audit(&["ends-with-us", "\"ResponseComplete\"", "\"watch\""]);
    assert!(ended().is_empty());
    let before = audience.hub.metrics();
    audience.ask([]);
    let after = audience.hub.metrics();
    assert_eq!(
        (before.watches - after.watches, after.questions),
        (1, 2),
        "only the questions for the account and for the right to act as it are left"
    );
    eventually("the server saw the watch end", || !ended().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_reader_of_other_fields_shares_the_watch() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    let mut map = stage.map("a", json!({"x": "1"}));
    map["metadata"]["labels"] = json!({"l": "v"});
    stage.put(map).await;
    let mut audience = stage.audience().await;
    let data = stage.want("builder", "a");
    audience.hub.subscribe(SubscriberId(5), BTreeSet::from([data.clone()]));
    audience.until_data(&data, json!({"x": "1"})).await;
    let watches = audience.hub.metrics().watches;
    let reads = ReadSet::dotted(["metadata.labels"]);
    let labels = Want::object(stage.via("builder"), config_map(), Some(stage.namespace.clone()), "a", reads);
    audience.ask([labels.clone()]);
    assert!(!matches!(audience.seen(&data), Seen::Unknown(_)), "the first reader notices nothing");
    let seen = audience.until(&labels, "labels", |seen| !items(seen).is_empty()).await;
    assert_eq!(items(&seen)[0]["metadata"]["labels"], json!({"l": "v"}));
    assert_eq!(audience.hub.metrics().watches, watches);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn system_namespaces_are_not_served() {
    let stage = Stage::new().await;
    let mut audience = stage.audience().await;
    let via = Via::service_account("kube-system", "default");
    let want = Want::object(via, config_map(), Some("kube-system".into()), "a", ReadSet::nothing());
    audience.ask([want.clone()]);
    let message = audience.until_unknown(&want, Reason::Forbidden).await;
    assert!(message.contains("kube-system"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_steady_state_makes_no_request() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    let mut audience = stage.audience().await;
    let wants: Vec<Want> = (0..5).map(|n| stage.want("builder", &format!("steady-{n}"))).collect();
    audience.ask(wants.clone());
    for want in &wants {
        audience.until_absent(want).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = audience.hub.metrics();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = audience.hub.metrics();
    assert_eq!((before.lists, before.watch_requests), (after.lists, after.watch_requests));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_namespace_cannot_use_up_all_watches() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    // Three, and the one of the account itself.
    let settings = HubSettings {
        budget: NamespaceBudget { watches: 4, ..NamespaceBudget::default() },
        ..HubSettings::default()
    };
    let mut audience = Audience::with(stage.cluster, settings).await;
    let wants: Vec<Want> = (0..4).map(|n| stage.want("builder", &format!("b{n}"))).collect();
    for (number, want) in (20..).zip(&wants) {
        audience.hub.subscribe(SubscriberId(number), BTreeSet::from([want.clone()]));
    }
    for want in &wants[..3] {
        audience.until_absent(want).await;
    }
    audience.until_unknown(&wants[3], Reason::OverBudget).await;
    audience.hub.subscribe(SubscriberId(20), BTreeSet::new());
    audience.until_absent(&wants[3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_selector_that_matches_more_than_its_namespace_may_have_is_over_budget_until_it_is_less() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    let settings = HubSettings {
        budget: NamespaceBudget { objects: 3, ..NamespaceBudget::default() },
        ..HubSettings::default()
    };
    let mut audience = Audience::with(stage.cluster, settings).await;
    let labelled = |name: &str| {
        let mut map = stage.map(name, json!({"x": "1"}));
        map["metadata"]["labels"] = json!({"crowd": "yes"});
        map
    };
    for number in 0..4 {
        stage.put(labelled(&format!("c{number}"))).await;
    }
    stage.put(stage.map("own", json!({"x": "1"}))).await;
    let own = stage.want("builder", "own");
    audience.ask([own.clone()]);
    audience.until_data(&own, json!({"x": "1"})).await;
    let crowd = stage.want_labelled("builder", "crowd=yes");
    audience.ask([own.clone(), crowd.clone()]);
    let message = audience.until_unknown(&crowd, Reason::OverBudget).await;
    let expected = format!("namespace {} watches 5 objects, limit 3", stage.namespace);
    assert!(message.starts_with(&expected), "{message}");
    audience.until_data(&own, json!({"x": "1"})).await;
    for number in 0..2 {
        stage.delete(&labelled(&format!("c{number}"))).await;
    }
    audience.hub.refresh([&crowd]);
    audience.until(&crowd, "what is left", |seen| items(seen).len() == 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_two_identities_see_alike_is_kept_once() {
    let stage = Stage::new().await;
    stage.account("reader").await;
    for account in ["builder", "reader"] {
        stage.allow(account, &["list", "watch"], "configmaps", &[]).await;
    }
    stage.put(stage.map("a", json!({"x": "1"}))).await;
    let mut audience = stage.audience().await;
    let wants = ["builder", "reader"].map(|account| stage.want(account, "a"));
    audience.ask(wants.clone());
    let mut seen = Vec::new();
    for want in &wants {
        let Seen::Objects(observed) = audience.until_data(want, json!({"x": "1"})).await else { panic!() };
        seen.push(Arc::clone(&observed.items[0]));
    }
    assert!(Arc::ptr_eq(&seen[0], &seen[1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operator_asks_for_itself_as_itself() {
    let stage = Stage::new().await;
    stage.put(stage.map("own", json!({"x": "1"}))).await;
    let mut audience = stage.audience().await;
    let via = Via { cluster: ClusterRef::Here, actor: Actor::Operator };
    let want =
        Want::object(via, config_map(), Some(stage.namespace.clone()), "own", ReadSet::dotted(["data"]));
    audience.ask([want.clone()]);
    audience.until_data(&want, json!({"x": "1"})).await;
}
