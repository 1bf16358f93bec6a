use linchpin_api::common;
use linchpin_words::GroupKind;
use serde_json::json;

use super::*;
use crate::live::server::answering;

/// A cluster with these objects, by path; it has no others.
fn cluster(objects: &[(&'static str, Value)]) -> ClusterReader {
    let objects = [objects, &[("/api/v1/namespaces/shop", json!({}))]].concat();
    ClusterReader::new(answering(move |request| {
        let (path, query) = request.strip_prefix("GET ").and_then(|asked| asked.split_once('?')).unwrap();
        match objects.iter().find(|(at, _)| *at == path) {
            Some((_, object)) => ("200 OK", object.clone()),
            None if query.is_empty() => ("404 Not Found", json!({"code": 404})),
            None => ("200 OK", json!({"items": []})),
        }
    }))
}

fn node(group: &str, kind: &str, name: &str) -> Node {
    Node::here(ObjectRef::namespaced(GroupKind::new(group, kind), "shop", name))
}

/// What is said of an object of others.
async fn explained(node: &Node, reader: &mut ClusterReader) -> Explanation {
    let chains = descended(node, reader, &linchpin_doors::registry(), 12).await.into_iter().collect();
    let mut explanation =
        Explanation { chains, ..Explanation::new(node.clone(), PictureState::Waiting, String::new()) };
    explanation.answer = answer(node, &explanation);
    explanation
}

#[tokio::test]
async fn an_object_does_not_wait_for_itself() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
        "spec": {"containers": [{"name": "app"}], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "persistentvolumeclaim \"data\" not found"}]}});
    let web = node("", "Pod", "web");
    let mut reader = cluster(&[("/api/v1/namespaces/shop/pods/web", pod.clone())]);
    let explanation = explained(&web, &mut reader).await;
    let text = explanation.text(Timestamp::UNIX_EPOCH);
    let expected = "Pod shop/web waits for PersistentVolumeClaim shop/data: it does not exist, NotFound\n\nPod shop/web\n\
                    └─ waits for PersistentVolumeClaim shop/data: it does not exist, NotFound\n";
    assert_eq!(text, expected);
    let document: Value = serde_json::from_str(&document::render(&explanation)).unwrap();
    let links = document["chains"][0]["links"].as_array().unwrap();
    assert_eq!(links.len(), 1, "{links:?}");
    assert_eq!(links[0]["id"], "PersistentVolumeClaim shop/data");
    assert_eq!(links[0]["relation"], "uses");

    // With nothing behind it the first line is all there is to say.
    let mut pod = pod;
    pod["spec"]["volumes"] = json!([]);
    pod["status"]["conditions"][0]["message"] = json!("no node fits");
    let mut reader = cluster(&[("/api/v1/namespaces/shop/pods/web", pod)]);
    let text = explained(&web, &mut reader).await.text(Timestamp::UNIX_EPOCH);
    assert!(text.starts_with("Pod shop/web is not ready: ") && text.contains("no node fits"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[tokio::test]
async fn an_object_that_nothing_else_keeps_from_being_ready_has_its_own_events_shown() {
    let job = json!({"kind": "Job", "metadata": {"name": "web", "namespace": "shop", "uid": "u1"}});
    let event = json!({"type": "Warning", "reason": "Odd", "message": "m", "metadata": {"name": "e"}});
    let mut reader = cluster(&[
        ("/apis/batch/v1/namespaces/shop/jobs/web", job),
        ("/api/v1/namespaces/shop/events", json!({"items": [event]})),
    ]);
    for (state, count) in [(PictureState::Failed, 1), (PictureState::Waiting, 1), (PictureState::Ready, 0)] {
        let explanation = Explanation::new(node("batch", "Job", "web"), state, String::new());
        let shown = events(&explanation, &mut reader).await;
        assert_eq!(shown.len(), count, "{state:?}");
        assert!(shown.iter().all(|event| event.id == "Job.batch shop/web" && event.reason == "Odd"));
    }
    let gone = Explanation::new(node("batch", "Job", "other"), PictureState::Waiting, String::new());
    assert_eq!(events(&gone, &mut reader).await, []);
}

#[test]
fn one_command_is_to_be_run_next() {
    let kinds = linchpin_doors::registry();
    let kind = kinds.waiting().find(|kind| kind.names().gvk.kind == "ResourceDependency").unwrap();
    let object = json!({"apiVersion": "tools.kubestellar.io/v1", "kind": "ResourceDependency",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": {"recovery": "Manual"},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "MissingRights", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let view = kind.view(&object.to_string()).unwrap().unwrap();
    assert_eq!(view.common().recovery, Some(common::Recovery::Manual));
    let hint = to_do(&view.node(), view.as_ref(), "MissingRights", true);
    assert_eq!(hint, Some(hints::rights(&view.node(), view.common())), "it goes on by itself then");
}
