//! Argo CD's health scripts, run by a real Lua on statuses as the doors draw them.

use std::{collections::BTreeSet, fs, path::PathBuf};

use linchpin_doors::ResourceDependencyDoor;
use mlua::{Lua, LuaSerdeExt, Table};
use serde_json::{Value, json};

use crate::{stage::Stage, things::config_map};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../charts/linchpin/files/argocd")
}

/// What Argo CD would show for an object of this kind.
fn health(kind: &str, object: &Value) -> (String, String) {
    let script = fs::read_to_string(folder().join(format!("{kind}.lua"))).expect("a script");
    let lua = Lua::new();
    let options =
        mlua::serde::ser::Options::new().serialize_none_to_null(false).serialize_unit_to_null(false);
    let object = lua.to_value_with(object, options).expect("a Lua value");
    lua.globals().set("obj", object).expect("a global");
    let health: Table = lua.load(script).eval().expect("a script that runs");
    (health.get("status").expect("a status"), health.get("message").expect("a message"))
}

/// A ResourceDependency as it stands on a stage.
fn object(stage: &mut Stage<ResourceDependencyDoor>, spec: &Value) -> Value {
    json!({"metadata": {"name": "x", "generation": 1}, "spec": spec, "status": stage.status()})
}

fn stage(entry: &str) -> Stage<ResourceDependencyDoor> {
    Stage::new(&format!(
        "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: x}}, spec: {{dependencies: [{entry}]}}}}"
    ))
}

const KIND: &str = "tools.kubestellar.io_ResourceDependency";

#[test]
fn argo_cd_waits_while_an_object_waits_and_goes_on_when_it_is_ready() {
    let mut stage = stage("{resource: configmap/go}");
    stage.settle();
    let (status, message) = health(KIND, &object(&mut stage, &json!({})));
    assert_eq!(
        (status.as_str(), message.as_str()),
        ("Progressing", "waiting for configmap/go: it does not exist")
    );
    stage.put(config_map("own", "go", &json!({}))).settle();
    assert_eq!(health(KIND, &object(&mut stage, &json!({}))).0, "Healthy");
    assert_eq!(health(KIND, &object(&mut stage, &json!({"suspend": true}))).0, "Suspended");
    let mut edited = object(&mut stage, &json!({}));
    edited["metadata"]["generation"] = json!(2);
    assert_eq!(health(KIND, &edited).0, "Progressing", "what is said of an older generation does not count");
    let mut leaving = object(&mut stage, &json!({}));
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(health(KIND, &leaving).0, "Progressing");
}

#[test]
fn argo_cd_shows_what_somebody_must_look_at() {
    let mut stage = stage("{resource: configmap/go, timeout: 1s}");
    stage.settle();
    stage.pass(2).settle();
    let (status, message) = health(KIND, &object(&mut stage, &json!({})));
    assert_eq!(status, "Degraded");
    assert!(message.starts_with("timed out"), "{message}");
}

#[test]
fn every_kind_of_ours_has_a_script_and_what_nobody_has_looked_at_is_on_its_way() {
    let wanted: BTreeSet<String> = linchpin_api::all_crds()
        .iter()
        .map(|definition| format!("{}_{}.lua", definition.spec.group, definition.spec.names.kind))
        .collect();
    let files = fs::read_dir(folder()).expect("the folder");
    let found: BTreeSet<String> =
        files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(found, wanted);
    for kind in [
        "tools.kubestellar.io_ResourceDependency",
        "tools.kubestellar.io_DependencyGroup",
        "app.example.com_AppBundle",
        "core.bootchain-operator.ruicoelho.dev_BootDependency",
    ] {
        let fresh = json!({"metadata": {"name": "x", "generation": 1}, "spec": {}, "status": {"observedGeneration": -1}});
        assert_eq!(health(kind, &fresh).0, "Progressing", "{kind}");
    }
}
