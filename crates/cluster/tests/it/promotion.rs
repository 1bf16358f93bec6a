//! From many narrow watches to one wide one and back, without anybody noticing.

use crate::stage::{Audience, SOON, Stage, config_map, eventually, items};
use linchpin_cluster::SubscriberId;
use linchpin_engine::contract::{ReadSet, Seen, Want};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

fn wants(stage: &Stage, range: std::ops::Range<u32>) -> Vec<Want> {
    range.map(|n| stage.want("builder", &format!("m{n}"))).collect()
}

/// Waits for all, and that nothing known is lost on the way.
async fn until_all(audience: &mut Audience, wants: &[Want]) {
    for want in wants {
        audience.until(want, "an answer", |seen| matches!(seen, Seen::Objects(_))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_names_become_one_watch_and_few_become_narrow_again() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    for n in 0..4 {
        stage.put(stage.map(&format!("m{n}"), json!({"n": n.to_string()}))).await;
    }
    let mut audience = stage.audience().await;
    audience.ask(wants(&stage, 0..20));
    until_all(&mut audience, &wants(&stage, 0..20)).await;
    eventually("one wide watch", || {
        audience.hub.metrics().wide_watches == 1 && audience.hub.metrics().watches <= 2
    })
    .await;

    let (present, absent) = (stage.want("builder", "m3"), stage.want("builder", "m19"));
    audience.until_data(&present, json!({"n": "3"})).await;
    stage.put(stage.map("m19", json!({"n": "19"}))).await;
    audience.until_data(&absent, json!({"n": "19"})).await;
    stage.delete(&stage.map("m19", json!({}))).await;
    audience.until_absent(&absent).await;

    // A name that joins later is known at once, whether it is there or not.
    stage.put(stage.map("m20", json!({"n": "20"}))).await;
    audience.ask(wants(&stage, 0..22));
    audience.until_data(&stage.want("builder", "m20"), json!({"n": "20"})).await;
    audience.until_absent(&stage.want("builder", "m21")).await;
    eventually("still one wide watch", || audience.hub.metrics().watches <= 2).await;
    stage.put(stage.map("m21", json!({"n": "21"}))).await;
    audience.until_data(&stage.want("builder", "m21"), json!({"n": "21"})).await;
    assert_eq!(audience.hub.metrics().objects, 6 + 1, "only what is asked for is kept, and the account");

    audience.ask(wants(&stage, 0..7));
    for want in wants(&stage, 0..7) {
        assert!(matches!(audience.seen(&want), Seen::Objects(_)), "nothing known is lost");
    }
    eventually("narrow again", || audience.hub.metrics().wide_watches == 0).await;
    assert_eq!(audience.hub.metrics().watches, 7 + 1);
    stage.put(stage.map("m3", json!({"n": "changed"}))).await;
    audience.until_data(&present, json!({"n": "changed"})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_names_that_join_together_take_one_look_and_no_watch_each() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    stage.put(stage.map("m150", json!({"n": "150"}))).await;
    let mut audience = stage.audience().await;
    audience.ask(wants(&stage, 0..20));
    until_all(&mut audience, &wants(&stage, 0..20)).await;
    eventually("one wide watch", || audience.hub.metrics().wide_watches == 1).await;
    let before = audience.hub.metrics().watch_requests;
    audience.ask(wants(&stage, 0..200));
    until_all(&mut audience, &wants(&stage, 0..200)).await;
    audience.until_data(&stage.want("builder", "m150"), json!({"n": "150"})).await;
    let requests = audience.hub.metrics().watch_requests - before;
    assert!(requests < 10, "{requests} watch requests for 180 names");
    eventually("one wide watch for all", || audience.hub.metrics().watches <= 2).await;
    stage.put(stage.map("m199", json!({"n": "199"}))).await;
    audience.until_data(&stage.want("builder", "m199"), json!({"n": "199"})).await;
}

/// What a plan of `size` components asks about each: its data, and what is held by a manager of its own.
fn plan(stage: &Stage, number: u64, size: u64) -> BTreeSet<Want> {
    let both = |component: u64| {
        let name = format!("b{number}-c{component}");
        let held = ReadSet::held_by(format!("linchpin:AppBundle:{}/b{number}:c{component}", stage.namespace));
        let namespace = Some(stage.namespace.clone());
        let held = Want::object(stage.via("builder"), config_map(), namespace, &name, held);
        [stage.want("builder", &name), held]
    };
    (0..size).flat_map(both).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_plans_about_objects_that_are_not_there_take_hardly_more_requests_than_one() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    let mut audience = stage.audience().await;
    let first = stage.want("builder", "first");
    audience.ask([first.clone()]);
    audience.until_absent(&first).await;
    let before = audience.hub.metrics();
    let all: Vec<BTreeSet<Want>> = (0..50).map(|number| plan(&stage, number, 40)).collect();
    // Half of them come at once, the others one by one, while objects of the first are being written.
    let (at_once, one_by_one) = all.split_at(25);
    for (number, wants) in (100..).zip(at_once) {
        audience.hub.subscribe(SubscriberId(number), wants.clone());
    }
    for wants in at_once {
        until_all(&mut audience, &wants.iter().cloned().collect::<Vec<_>>()).await;
    }
    for (number, wants) in (0..).zip(one_by_one) {
        audience.hub.subscribe(SubscriberId(200 + number), wants.clone());
        for want in wants {
            let Seen::Objects(seen) = audience.seen(want) else { panic!("not known at once") };
            assert!(seen.items.is_empty() && seen.live && seen.as_of > 0);
        }
        stage.put(stage.map(&format!("b0-c{number}"), json!({"n": number.to_string()}))).await;
    }
    let after = audience.hub.metrics();
    let (lists, watches) = (after.lists - before.lists, after.watch_requests - before.watch_requests);
    assert!(lists <= 4, "{lists} lists for 2,000 names");
    assert!(watches <= 4, "{watches} watch requests for 2,000 names");
    eventually("one wide watch for all", || audience.hub.metrics().watches <= 2).await;
    for number in 0..25 {
        let want = stage.want("builder", &format!("b0-c{number}"));
        audience.until_data(&want, json!({"n": number.to_string()})).await;
    }
    stage.put(stage.map("b49-c39", json!({"n": "last"}))).await;
    audience.until_data(&stage.want("builder", "b49-c39"), json!({"n": "last"})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_while_it_is_asked_for_is_never_said_to_be_absent() {
    const ALL: u64 = 150;
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    let mut audience = stage.audience().await;
    audience.ask(wants(&stage, 0..20));
    until_all(&mut audience, &wants(&stage, 0..20)).await;
    eventually("one wide watch", || audience.hub.metrics().wide_watches == 1).await;

    let written: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
    let writer = {
        let written = Arc::clone(&written);
        let stage = Stage {
            cluster: stage.cluster,
            client: stage.client.clone(),
            namespace: stage.namespace.clone(),
        };
        tokio::spawn(async move {
            for number in 0..ALL {
                let name = format!("w{number}");
                let stored = stage.put(stage.map(&name, json!({"n": number.to_string()}))).await;
                let version = stored["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
                written.lock().unwrap_or_else(PoisonError::into_inner).insert(name, version);
            }
        })
    };
    let deadline = tokio::time::Instant::now() + SOON;
    let mut asked = 0;
    let mut present = BTreeSet::new();
    while present.len() < usize::try_from(ALL).unwrap() {
        assert!(tokio::time::Instant::now() < deadline, "{} of {ALL} seen", present.len());
        let known = written.lock().unwrap_or_else(PoisonError::into_inner).len();
        // Asked for when it is just being written, has just been written, or will be next.
        while asked < ALL && asked <= u64::try_from(known).unwrap() + 1 {
            let want = stage.want("builder", &format!("w{asked}"));
            audience.hub.subscribe(SubscriberId(1_000 + asked), BTreeSet::from([want]));
            asked += 1;
        }
        for number in 0..asked {
            let name = format!("w{number}");
            let Seen::Objects(seen) = audience.seen(&stage.want("builder", &name)) else { continue };
            if let Some(item) = seen.items.first() {
                assert_eq!(item.content["data"], json!({"n": number.to_string()}));
                present.insert(name);
            } else {
                let version = written.lock().unwrap_or_else(PoisonError::into_inner).get(&name).copied();
                let as_of = seen.as_of;
                assert!(
                    version.is_none_or(|version| as_of < version),
                    "{name}: {version:?}, but absent at {as_of}"
                );
                assert!(!present.contains(&name), "{name} was seen before");
            }
        }
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_that_is_read_of_a_few_does_not_read_all_again() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    let labelled = |n: u32| -> Value {
        let mut map = stage.map(&format!("m{n}"), json!({"n": n.to_string()}));
        map["metadata"]["labels"] = json!({"n": n.to_string()});
        map
    };
    for n in 0..20 {
        stage.put(labelled(n)).await;
    }
    let mut audience = stage.audience().await;
    audience.ask(wants(&stage, 0..20));
    until_all(&mut audience, &wants(&stage, 0..20)).await;
    eventually("one wide watch", || {
        audience.hub.metrics().wide_watches == 1 && audience.hub.metrics().watches <= 2
    })
    .await;
    let user = format!("system:serviceaccount:{}:builder", stage.namespace);
    let lists = || stage.audit(&[&user, "\"verb\":\"list\"", "limit=500", "ResponseComplete"]).len();
    let before = lists();
    let labels = |n: u32| {
        let reads = ReadSet::dotted(["metadata.labels"]);
        let namespace = Some(stage.namespace.clone());
        Want::object(stage.via("builder"), config_map(), namespace, format!("m{n}"), reads)
    };
    for n in 0..3 {
        audience.hub.subscribe(SubscriberId(50 + u64::from(n)), BTreeSet::from([labels(n)]));
        assert!(matches!(audience.seen(&stage.want("builder", &format!("m{n}"))), Seen::Objects(_)));
    }
    for n in 0..3 {
        let expected = json!([{"n": n.to_string()}, {"n": n.to_string()}]);
        let shows = |seen: &Seen| {
            let items = items(seen);
            items.first().is_some_and(|item| json!([item["metadata"]["labels"], item["data"]]) == expected)
        };
        audience.until(&labels(n), "labels", shows).await;
    }
    eventually("handed over", || audience.hub.metrics().watches <= 2).await;
    assert_eq!(lists() - before, 0);
    let mut changed = labelled(1);
    changed["metadata"]["labels"] = json!({"n": "changed"});
    stage.put(changed).await;
    let shows =
        |seen: &Seen| items(seen).first().is_some_and(|item| item["metadata"]["labels"]["n"] == "changed");
    audience.until(&labels(1), "the new label", shows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_see_the_whole_namespace_keeps_narrow_watches() {
    let stage = Stage::new().await;
    let names: Vec<String> = (0..20).map(|n| format!("m{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    stage.allow("builder", &["list", "watch"], "configmaps", &names).await;
    stage.put(stage.map("m3", json!({"n": "3"}))).await;
    let mut audience = stage.audience().await;
    audience.ask(wants(&stage, 0..20));
    until_all(&mut audience, &wants(&stage, 0..20)).await;
    audience.until_data(&stage.want("builder", "m3"), json!({"n": "3"})).await;
    assert_eq!((audience.hub.metrics().wide_watches, audience.hub.metrics().watches), (0, 21));
}
