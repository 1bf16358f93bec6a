//! A witness that cannot accuse anybody proves nothing: each of its accusations, made on purpose.

use std::io::Write;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::*;

/// A log of these requests, one second after another unless they say `at` which one, each answered after half a second.
fn log(requests: &[Value]) -> (NamedTempFile, Audit) {
    let mut file = NamedTempFile::new().unwrap();
    for (second, request) in requests.iter().enumerate() {
        let mut line = request.clone();
        let second = line["at"].take().as_u64().unwrap_or(second as u64);
        line["stage"] = json!("ResponseComplete");
        line["requestReceivedTimestamp"] = json!(format!("2026-01-01T00:00:{second:02}.000000Z"));
        line["stageTimestamp"] = json!(format!("2026-01-01T00:00:{second:02}.500000Z"));
        writeln!(file, "{line}").unwrap();
    }
    let audit = Audit::from_the_beginning(file.path());
    (file, audit)
}

fn request(verb: &str, resource: &str, name: &str, acting_as: Option<&str>) -> Value {
    let mut line = json!({"verb": verb, "user": {"username": OPERATOR}, "responseStatus": {"code": 200},
        "objectRef": {"resource": resource, "namespace": "shop", "name": name}});
    if let Some(actor) = acting_as {
        line["impersonatedUser"] = json!({"username": actor});
    }
    line
}

const ACTOR: &str = "system:serviceaccount:shop:actor";

/// Somebody writes a ResourceDependency; `generation` is the one it has then.
fn written(namespace: &str, name: &str, account: Option<&str>, generation: i64) -> Value {
    let mut line = request("patch", "resourcedependencies", name, None);
    line["user"]["username"] = json!("somebody");
    line["objectRef"]["apiGroup"] = json!("tools.kubestellar.io");
    line["responseObject"] = json!({"kind": "ResourceDependency", "spec": {},
        "metadata": {"name": name, "namespace": namespace, "uid": name, "generation": generation}});
    if let Some(account) = account {
        line["responseObject"]["spec"]["serviceAccountName"] = json!(account);
    }
    line
}

/// The operator reports that it has seen this generation of a ResourceDependency.
fn reported(namespace: &str, name: &str, generation: i64) -> Value {
    let mut line = written(namespace, name, None, generation);
    line["verb"] = json!("update");
    line["user"]["username"] = json!(OPERATOR);
    line["objectRef"]["subresource"] = json!("status");
    line["responseObject"]["kind"] = json!("PartialObjectMetadata");
    line["responseObject"]["spec"].take();
    line["requestObject"] = json!({"status": {"observedGeneration": generation}});
    line
}

/// A write that an object of ours directs.
fn directed(by: &str, name: &str, acting_as: &str) -> Value {
    let mut line = request("patch", "configmaps", name, Some(acting_as));
    let manager = format!("linchpin:ResourceDependency:{by}:step").replace(':', "%3A").replace('/', "%2F");
    line["requestURI"] = json!(format!("/api/v1/configmaps/{name}?fieldManager={manager}&force=false"));
    line
}

fn accused(audit: &Audit) -> Vec<String> {
    audit.overreach().into_iter().map(|accusation| accusation.event.name).collect()
}

#[test]
fn a_write_of_the_operators_own_is_overreach_and_one_as_the_user_is_not() {
    let mut refused = request("create", "configmaps", "refused", None);
    refused["responseStatus"] =
        json!({"code": 403, "message": "User \"o\" cannot impersonate resource \"serviceaccounts\""});
    let (_file, audit) = log(&[
        refused,
        written("shop", "rd", Some("actor"), 1),
        request("create", "configmaps", "good", Some(ACTOR)),
        request("list", "serviceaccounts", "", None),
        request("create", "configmaps", "bad", None),
        request("get", "secrets", "worse", None),
    ]);
    assert_eq!(accused(&audit), ["bad", "worse"]);
    let names: Vec<_> = audit.user_writes("shop").into_iter().map(|event| event.name).collect();
    assert_eq!(names, ["good"]);
}

#[test]
fn the_operators_own_kinds_may_be_looked_after_and_never_made_or_deleted_or_respecified() {
    let ours = |verb: &str| {
        let mut line = request(verb, "resourcedependencies", "rd", None);
        line["objectRef"]["apiGroup"] = json!("tools.kubestellar.io");
        line
    };
    let mut spec = ours("patch");
    spec["requestObject"] = json!({"spec": {"suspend": true}});
    let mut finalizers = ours("patch");
    finalizers["requestObject"] = json!({"metadata": {"finalizers": []}});
    let (_file, audit) =
        log(&[ours("watch"), ours("patch"), finalizers, ours("create"), ours("delete"), spec]);
    let verbs: Vec<_> = audit.overreach().into_iter().map(|accusation| accusation.event.verb).collect();
    assert_eq!(verbs, ["create", "delete", "patch"]);
}

#[test]
fn an_account_is_used_only_where_an_object_of_its_namespace_names_it() {
    const OTHER: &str = "system:serviceaccount:vault:actor";
    let (_file, audit) = log(&[
        // The operator may be quicker than the line of the object that directs it: see below.
        request("get", "configmaps", "early", Some("system:serviceaccount:shop:default")),
        written("shop", "rd", Some("actor"), 1),
        directed("shop/rd", "own", ACTOR),
        directed("shop/rd", "other-namespace", OTHER),
        directed("shop/rd", "other-account", "system:serviceaccount:shop:admin"),
        directed("shop/nobody", "no-object", ACTOR),
        request("get", "configmaps", "seen", Some(ACTOR)),
        request("get", "configmaps", "seen-elsewhere", Some(OTHER)),
        request("delete", "configmaps", "deleted", Some(ACTOR)),
        request("delete", "configmaps", "deleted-elsewhere", Some(OTHER)),
        request("create", "selfsubjectaccessreviews", "asked-elsewhere", Some(OTHER)),
        request("get", "configmaps", "somebody", Some("admin")),
    ]);
    let mut names = accused(&audit);
    names.sort();
    assert_eq!(
        names,
        [
            "asked-elsewhere",
            "deleted-elsewhere",
            "early",
            "no-object",
            "other-account",
            "other-namespace",
            "seen-elsewhere",
            "somebody"
        ]
    );
    assert_eq!(witness::new_accusations(audit.path()), [], "all were reported");
}

#[test]
fn the_object_that_directs_a_request_may_come_later_in_the_log_and_not_later_in_time() {
    let mut object = written("shop", "rd", None, 1);
    let mut quick = directed("shop/rd", "quick", "system:serviceaccount:shop:default");
    (object["at"], quick["at"]) = (json!(1), json!(2));
    let (_file, audit) = log(&[quick, object]);
    assert_eq!(accused(&audit), [""; 0]);
}

#[test]
fn an_account_that_was_replaced_is_not_used_once_the_newer_generation_was_reported() {
    let (_file, audit) = log(&[
        written("shop", "rd", Some("actor"), 1),
        reported("shop", "rd", 1),
        directed("shop/rd", "before", ACTOR),
        written("shop", "rd", Some("next"), 2),
        directed("shop/rd", "in-between", ACTOR),
        reported("shop", "rd", 2),
        directed("shop/rd", "next", "system:serviceaccount:shop:next"),
        directed("shop/rd", "late", ACTOR),
        request("delete", "configmaps", "late-deletion", Some(ACTOR)),
        request("watch", "configmaps", "late-look", Some(ACTOR)),
    ]);
    assert_eq!(accused(&audit), ["late", "late-deletion"]);
}

#[test]
fn an_account_is_in_no_group_that_the_server_does_not_give_it() {
    let mut good = request("get", "configmaps", "good", Some(ACTOR));
    good["impersonatedUser"]["groups"] =
        json!(["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"]);
    let mut bad = request("get", "configmaps", "bad", Some(ACTOR));
    bad["impersonatedUser"]["groups"] = json!(["system:masters"]);
    let (_file, audit) = log(&[written("shop", "rd", Some("actor"), 1), good, bad]);
    assert_eq!(accused(&audit), ["bad"]);
}

#[test]
fn answers_and_patches_that_are_no_objects_are_read_too() {
    for body in [json!({"kind": "Status", "status": "Success"}), json!([{"op": "add"}]), json!({"spec": "x"})]
    {
        let mut line = written("shop", "rd", None, 1);
        (line["requestObject"], line["responseObject"]) = (body.clone(), body);
        assert!(Line::read(&line.to_string()).is_some(), "{line}");
    }
}

#[test]
fn an_object_that_is_nested_deep_is_read_all_the_same() {
    let mut line = written("shop", "rd", Some("actor"), 1);
    line["responseObject"]["spec"]["values"] = json!("DEEP");
    let deep = format!("{}1{}", "[".repeat(2000), "]".repeat(2000));
    let text = line.to_string().replace("\"DEEP\"", &deep);
    let read = Line::read(&text).unwrap().returned.unwrap();
    assert_eq!(read.spec.unwrap().service_account_name.as_deref(), Some("actor"));
}

#[test]
fn writes_are_laid_to_the_object_that_directed_them() {
    let by = |manager: &str| {
        let mut line = request("create", "configmaps", manager, Some(ACTOR));
        line["requestURI"] = json!(format!("/api/v1/configmaps?fieldManager=linchpin%3A{manager}"));
        line
    };
    let (_file, audit) = log(&[
        by("ResourceDependency%3Ashop%2Fweb%3Aa"),
        by("ResourceDependency%3Ashop%2Fweb-2%3Aa"),
        by("DependencyGroup%3Ashop%2Fweb%3Aa"),
    ]);
    assert_eq!(audit.writes_for("ResourceDependency", "shop", "web").len(), 1);
    assert_eq!(audit.writes_for("ResourceDependency", "other", "web"), []);
}

#[test]
fn a_poll_breaks_the_silence_and_a_watch_does_not() {
    let (_file, audit) = log(&[
        request("watch", "configmaps", "a", Some(ACTOR)),
        request("get", "configmaps", "a", Some(ACTOR)),
        request("get", "configmaps", "a", Some("system:serviceaccount:other:actor")),
    ]);
    let verbs: Vec<_> = audit.requests_for("shop").into_iter().map(|event| event.verb).collect();
    assert_eq!(verbs, ["get", "get"]);
    assert_eq!(audit.requests_for("elsewhere"), []);
}

#[test]
fn order_is_judged_by_when_things_began_and_were_answered() {
    let (_file, audit) = log(&[
        request("create", "configmaps", "first", Some(ACTOR)),
        request("create", "configmaps", "second", Some(ACTOR)),
    ]);
    let (first, second) =
        (audit.first_write("configmaps", "shop", "first"), audit.first_write("configmaps", "shop", "second"));
    assert_before(&first, &second);
    assert_finished_before(&first, &second);
    let accuses = |judge: fn(&Event, &Event), one: &Event, other: &Event| {
        let (one, other) = (one.clone(), other.clone());
        std::panic::catch_unwind(move || judge(&one, &other)).is_err()
    };
    assert!(accuses(assert_before, &second, &first));
    let hasty = Event { received: "2026-01-01T00:00:00.400000Z".to_owned(), ..second };
    assert!(accuses(assert_finished_before, &first, &hasty));
    assert!(!accuses(assert_before, &first, &hasty));
}
