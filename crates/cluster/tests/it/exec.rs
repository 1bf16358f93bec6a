//! Commands in real containers on a real node. Skipped, with the reason, where there can be none.

use crate::{effects::Hand, stage::Stage};
use linchpin_engine::contract::{Done, ExecOrder, Failure, Verb};
use linchpin_local::{Cluster, ClusterOptions, Component, check_node_support, is_node_promised};
use serde_json::{Value, json};
use std::{io::Write, time::Duration};

fn pod(stage: &Stage) -> Value {
    let container = json!({"name": "main", "image": "localhost/workload:1", "imagePullPolicy": "Never",
        "args": ["serve", "8080"], "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": stage.namespace},
        "spec": {"dnsPolicy": "Default", "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
            "serviceAccountName": "builder", "volumes": [{"name": "shared", "emptyDir": {}}], "containers": [container]}})
}

fn order(stage: &Stage, command: &[&str]) -> ExecOrder {
    ExecOrder {
        namespace: stage.namespace.clone(),
        pod: "web".into(),
        container: Some("main".into()),
        command: command.iter().map(ToString::to_string).collect(),
        token: "t".into(),
    }
}

async fn run(hand: &Hand<'_>, stage: &Stage, command: &[&str]) -> Result<Done, Failure> {
    hand.order(Verb::Exec(order(stage, command))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_runs_in_its_container_and_its_end_is_known() {
    if let Err(reason) = check_node_support() {
        assert!(!is_node_promised(), "a node is promised here, and there can be none: {reason}");
        // Not through the print macros: a skipped test must be seen also when it passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: a test of the real node: {reason}");
        return;
    }
    let start = || {
        &*Box::leak(Box::new(
            Cluster::start(&ClusterOptions { node: true, ..ClusterOptions::default() }).unwrap(),
        ))
    };
    let cluster: &'static Cluster = tokio::task::spawn_blocking(start).await.unwrap();
    let stage = Stage::on(cluster).await;
    let hand = Hand::new(&stage).await;
    stage.create(pod(&stage)).await;

    let Err(Failure::Forbidden(right)) = run(&hand, &stage, &["/workload", "cat", "/shared/a"]).await else {
        panic!()
    };
    assert_eq!((right.resource.as_str(), right.subresource.as_deref()), ("pods", Some("exec")));
    stage.allow("builder", &["create", "get"], "/pods/exec", &[]).await;
    let deadline = tokio::time::Instant::now() + Duration::from_mins(1);
    loop {
        let status =
            stage.get(&pod(&stage)).await.unwrap()["status"]["containerStatuses"][0]["ready"].clone();
        if status == true {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "the pod never got ready");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    let done = run(&hand, &stage, &["/workload", "append", "/shared/a", "once"]).await.unwrap();
    assert_eq!(done.exit, Some(0));
    let failed = run(&hand, &stage, &["/workload", "exit", "42", "hunter2"]).await;
    assert_eq!(failed, Err(Failure::Exit(42)));
    let no_program = run(&hand, &stage, &["/nothing"]).await;
    assert!(
        matches!(no_program, Err(Failure::Exit(_) | Failure::Invalid(_) | Failure::Unknowable(_))),
        "{no_program:?}"
    );
    let mut elsewhere = order(&stage, &["/workload"]);
    elsewhere.container = Some("nobody".into());
    let refused = hand.order(Verb::Exec(elsewhere)).await;
    assert!(matches!(refused, Err(Failure::Gone(_) | Failure::Invalid(_))), "{refused:?}");
    let mut elsewhere = order(&stage, &["/workload"]);
    elsewhere.pod = "nobody".into();
    assert!(matches!(hand.order(Verb::Exec(elsewhere)).await, Err(Failure::Gone(_))));

    // The connection breaks while the command runs: nobody can know how it ended.
    let (running, ()) = tokio::join!(run(&hand, &stage, &["/workload", "sleep", "8s"]), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        tokio::task::spawn_blocking(|| cluster.kill(Component::ApiServer).unwrap()).await.unwrap();
    });
    assert!(matches!(running, Err(Failure::Unknowable(_))), "{running:?}");
}
