//! A witness that cannot accuse anybody proves nothing: each of its accusations, made on purpose.

use std::io::Write;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::*;

/// A log of these requests, one second after another, each answered after half a second.
fn log(requests: &[Value]) -> (NamedTempFile, Audit) {
    let mut file = NamedTempFile::new().unwrap();
    for (second, request) in requests.iter().enumerate() {
        let mut line = request.clone();
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

#[test]
fn a_write_of_the_operators_own_is_overreach_and_one_as_the_user_is_not() {
    let mut refused = request("create", "configmaps", "refused", None);
    refused["responseStatus"] =
        json!({"code": 403, "message": "User \"o\" cannot impersonate resource \"serviceaccounts\""});
    let (_file, audit) = log(&[
        refused,
        request("create", "configmaps", "good", Some(ACTOR)),
        request("list", "serviceaccounts", "", None),
        request("create", "configmaps", "bad", None),
        request("get", "secrets", "worse", None),
    ]);
    let names: Vec<_> = audit.overreach().into_iter().map(|event| event.name).collect();
    assert_eq!(names, ["bad", "worse"]);
    let names: Vec<_> = audit.user_writes("shop").into_iter().map(|event| event.name).collect();
    assert_eq!(names, ["good"]);
}

#[test]
fn the_operators_own_kinds_may_be_looked_after_and_never_made_or_deleted() {
    let ours = |verb: &str| {
        let mut line = request(verb, "resourcedependencies", "rd", None);
        line["objectRef"]["apiGroup"] = json!("tools.kubestellar.io");
        line
    };
    let (_file, audit) = log(&[ours("watch"), ours("patch"), ours("create"), ours("delete")]);
    let verbs: Vec<_> = audit.overreach().into_iter().map(|event| event.verb).collect();
    assert_eq!(verbs, ["create", "delete"]);
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
