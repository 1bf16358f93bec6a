//! Templates of Deployments: changes, other mutators, and owners that write everything anew.

use linchpin_doors::boot_dependency::{
    BootSet, PatchTarget, PodGate, WaiterSettings, divide, inject, keep_old_part,
};
use linchpin_words::keys;
use serde_json::{Value, json};

use super::{apply, pod, set, settings};

fn deployment(inits: &Value) -> Value {
    let mut deployment =
        json!({"metadata": {"name": "web"}, "spec": {"replicas": 1, "template": pod(inits)}});
    deployment["spec"]["template"]["metadata"] = json!({"labels": {"app": "web"}});
    deployment
}

fn brought(deployment: &Value, sets: &[BootSet], settings: &WaiterSettings) -> Value {
    let template = &deployment["spec"]["template"];
    let division = divide(&template["spec"], sets);
    let injection = inject(template, PatchTarget::DeploymentTemplate, &division, PodGate::Open, settings);
    apply(deployment, &injection.patch)
}

fn sets(entries: &str) -> [BootSet; 1] {
    [set("web", &format!("{{dependsOn: [{entries}]}}"))]
}

#[test]
fn b11_changes_and_removals_are_followed() {
    let settings = settings();
    let old = brought(
        &deployment(&json!([{"name": "user"}])),
        &sets("{service: a, port: 1}, {service: b, port: 1}"),
        &settings,
    );
    let changed = brought(&old, &sets("{service: b, port: 2, timeout: 5s}"), &settings);
    let inits = &changed["spec"]["template"]["spec"]["initContainers"];
    assert_eq!(inits.as_array().map(Vec::len), Some(2));
    assert_eq!(inits[0]["args"], json!(["tcp", "b.shop.svc.cluster.local:2", "--timeout", "5s"]));
    let marks =
        |object: &Value| object["spec"]["template"]["metadata"]["annotations"][keys::BOOT_HASH].clone();
    assert_ne!(marks(&old), marks(&changed));
    let cleared = brought(&changed, &[], &settings);
    assert_eq!(
        cleared["spec"]["template"]["spec"],
        deployment(&json!([{"name": "user"}]))["spec"]["template"]["spec"]
    );
    assert_eq!(cleared["spec"]["template"]["metadata"]["annotations"], json!({}));
    let alone = brought(&deployment(&Value::Null), &sets("{service: a, port: 1}"), &settings);
    let cleared = brought(&alone, &[], &settings);
    assert_eq!(cleared["spec"]["template"]["spec"].get("initContainers"), None);
}

#[test]
fn a_template_is_never_gated_and_the_objects_own_metadata_is_never_touched() {
    let brought =
        brought(&deployment(&Value::Null), &sets("{resource: job/x}, {service: a, port: 1}"), &settings());
    assert_eq!(brought["spec"]["template"]["spec"].get("schedulingGates"), None);
    assert_eq!(brought["metadata"], json!({"name": "web"}));
    assert_eq!(brought["spec"]["template"]["metadata"]["labels"], json!({"app": "web"}));
}

#[test]
fn an_upgrade_changes_no_template_and_what_others_did_to_our_container_stays() {
    let mut old = brought(&deployment(&Value::Null), &sets("{service: a, port: 1}"), &settings());
    old["spec"]["template"]["spec"]["initContainers"][0]["image"] = json!("mirror/linchpin-wait@sha256:0");
    old["spec"]["template"]["spec"]["initContainers"][0]["volumeMounts"] = json!([{"name": "token"}]);
    old["spec"]["template"]["spec"]["initContainers"][0]["env"]
        .as_array_mut()
        .expect("variables")
        .push(json!({"name": "HTTP_PROXY", "value": "p"}));
    let newer = WaiterSettings { image: "linchpin-wait:2".into(), ..settings() };
    assert_eq!(brought(&old, &sets("{service: a, port: 1}"), &newer), old);
    // What follows the pod does change.
    old["spec"]["template"]["spec"]["securityContext"] = json!({"runAsUser": 0});
    let rooted = brought(&old, &sets("{service: a, port: 1}"), &newer);
    let container = &rooted["spec"]["template"]["spec"]["initContainers"][0];
    assert_eq!(container["securityContext"]["runAsUser"], 65532);
    assert_eq!(container["image"], "mirror/linchpin-wait@sha256:0");
}

#[test]
fn what_the_api_server_adds_to_our_container_is_no_difference() {
    let settings = settings();
    let mut stored = brought(&deployment(&json!([])), &sets("{service: db, port: 5432}"), &settings);
    let ours = &mut stored["spec"]["template"]["spec"]["initContainers"][0];
    ours["resources"] = json!({});
    ours["terminationMessagePath"] = json!("/dev/termination-log");
    let again = brought(&stored, &sets("{service: db, port: 5432}"), &settings);
    assert_eq!(again, stored);
}

#[test]
fn an_owner_that_writes_its_template_whole_starts_no_rollout() {
    let bare = deployment(&json!([{"name": "user"}]));
    let old = brought(&bare, &sets("{service: a, port: 1}"), &settings());
    let patch = keep_old_part(&old, &bare).expect("it differs in our part only");
    assert_eq!(apply(&bare, &patch), old);
    assert_eq!(keep_old_part(&old, &old), Some(Vec::new()));
    let mut edited = bare.clone();
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:2");
    assert_eq!(keep_old_part(&old, &edited), None, "a change of the user's is brought to the present set");
}
