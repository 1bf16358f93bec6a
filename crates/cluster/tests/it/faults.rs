//! What breaks: connections, servers, time. Each test has a cluster of its own.

use crate::stage::{Audience, SOON, Stage, start};
use linchpin_engine::contract::Seen;
use linchpin_local::{Cluster, Component};
use serde_json::json;
use std::{fs, path::Path, process::Command, time::Duration};

async fn cluster() -> &'static Cluster {
    tokio::task::spawn_blocking(|| &*Box::leak(Box::new(start()))).await.unwrap()
}

async fn blocking(work: impl FnOnce() + Send + 'static) {
    tokio::task::spawn_blocking(work).await.unwrap();
}

fn is_live(seen: &Seen) -> bool {
    matches!(seen, Seen::Objects(observed) if observed.live)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_dies_and_returns_is_followed_again() {
    let cluster = cluster().await;
    let stage = Stage::on(cluster).await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    stage.put(stage.map("a", json!({"x": "1"}))).await;
    stage.put(stage.map("doomed", json!({"x": "1"}))).await;
    let mut audience = Audience::of(cluster).await;
    let (named, doomed, labelled) = (
        stage.want("builder", "a"),
        stage.want("builder", "doomed"),
        stage.want_labelled("builder", "!nothing"),
    );
    audience.ask([named.clone(), doomed.clone(), labelled.clone()]);
    for want in [&named, &doomed, &labelled] {
        audience.until(want, "a live answer", is_live).await;
    }

    blocking(|| cluster.kill(Component::ApiServer).unwrap()).await;
    let deadline = tokio::time::Instant::now() + SOON;
    while is_live(&audience.seen(&named)) {
        assert!(tokio::time::Instant::now() < deadline, "the loss was not noticed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(matches!(audience.seen(&named), Seen::Objects(_)), "what was seen stays");

    blocking(|| cluster.start_component(Component::ApiServer).unwrap()).await;
    let returned = tokio::time::Instant::now();
    stage.delete(&stage.map("doomed", json!({}))).await;
    stage.put(stage.map("a", json!({"x": "2"}))).await;
    audience.until_data(&named, json!({"x": "2"})).await;
    assert!(returned.elapsed() < Duration::from_secs(5), "{:?}", returned.elapsed());
    audience.until_absent(&doomed).await;
    for want in [&named, &doomed, &labelled] {
        audience.until(want, "a live answer", is_live).await;
    }
    audience.until(&labelled, "a alone", |seen| crate::stage::items(seen).len() == 1).await;
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(done.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_went_back_in_time_is_noticed() {
    let cluster = cluster().await;
    let stage = Stage::on(cluster).await;
    stage.allow("builder", &["list", "watch"], "configmaps", &[]).await;
    stage.put(stage.map("a", json!({"x": "old"}))).await;
    let data = fs::read_dir(cluster.dir())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.join("member").is_dir())
        .expect("etcd's directory");
    let backup = cluster.dir().join("backup");
    blocking({
        let (data, backup) = (data.clone(), backup.clone());
        move || {
            cluster.kill(Component::ApiServer).unwrap();
            cluster.terminate(Component::Etcd).unwrap();
            copy(&data, &backup);
            cluster.start_component(Component::Etcd).unwrap();
            cluster.start_component(Component::ApiServer).unwrap();
        }
    })
    .await;

    let mut audience = Audience::of(cluster).await;
    let (named, labelled) = (stage.want("builder", "a"), stage.want_labelled("builder", "!nothing"));
    audience.ask([named.clone(), labelled.clone()]);
    for number in 0..20 {
        stage.put(stage.map("a", json!({"x": format!("new {number}")}))).await;
    }
    audience.until_data(&named, json!({"x": "new 19"})).await;
    audience.until_data(&labelled, json!({"x": "new 19"})).await;

    blocking(move || {
        cluster.kill(Component::ApiServer).unwrap();
        cluster.kill(Component::Etcd).unwrap();
        fs::remove_dir_all(&data).unwrap();
        copy(&backup, &data);
        cluster.start_component(Component::Etcd).unwrap();
        cluster.start_component(Component::ApiServer).unwrap();
    })
    .await;
    audience.until_data(&named, json!({"x": "old"})).await;
    audience.until_data(&labelled, json!({"x": "old"})).await;
    stage.put(stage.map("a", json!({"x": "after"}))).await;
    audience.until_data(&named, json!({"x": "after"})).await;
    audience.until_data(&labelled, json!({"x": "after"})).await;
    assert!(audience.hub.metrics().rewinds > 0);
}
