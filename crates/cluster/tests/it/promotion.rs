//! From many narrow watches to one wide one and back, without anybody noticing.

use crate::stage::{Audience, Stage, eventually};
use linchpin_engine::contract::{Seen, Want};
use serde_json::json;

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
    assert!(requests < 100, "{requests} watch requests for 180 names");
    eventually("one wide watch for all", || audience.hub.metrics().watches <= 2).await;
    stage.put(stage.map("m199", json!({"n": "199"}))).await;
    audience.until_data(&stage.want("builder", "m199"), json!({"n": "199"})).await;
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
