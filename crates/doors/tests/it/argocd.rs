//! Argo CD's health scripts, run by a real Lua on statuses as the doors draw them.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use linchpin_doors::ResourceDependencyDoor;
use mlua::{Lua, LuaSerdeExt, Table};
use serde_json::{Value, json};

use crate::{stage::Stage, things::config_map};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../charts/linchpin/files/argocd")
}

/// What Argo CD would show for an object of this kind.
fn health(kind: &str, object_given: &Value) -> (String, String) {
    let script = fs::read_to_string(folder().join(format!("{kind}.lua"))).expect("a script");
    let lua = Lua::new();
    let options =
        mlua::serde::ser::Options::new().serialize_none_to_null(false).serialize_unit_to_null(false);
    let object = lua.to_value_with(object_given, options).expect("a Lua value");
    lua.globals().set("obj", object).expect("a global");
    let health: Table = lua.load(script).eval().expect("a script that runs");
    let health = (health.get("status").expect("a status"), health.get("message").expect("a message"));
    if let Some(program) = std::env::var_os("LINCHPIN_ARGOCD") {
        assert_eq!(
            argocd(Path::new(&program), kind, object_given),
            health,
            "Argo CD itself sees it otherwise"
        );
    }
    health
}

/// What Argo CD's own library says (`make argocd`).
fn argocd(program: &Path, kind: &str, object: &Value) -> (String, String) {
    let script = folder().join(format!("{kind}.lua"));
    let mut child = Command::new(program)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program of make argocd");
    let mut standard_input = child.stdin.take().expect("its input");
    standard_input.write_all(object.to_string().as_bytes()).expect("an object that is read");
    drop(standard_input);
    let output = child.wait_with_output().expect("its end");
    let health: Value = serde_json::from_slice(&output.stdout).expect("a health");
    let text = |field: &str| health[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
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

/// The script of a kind: the one of all kinds that say how they are; to be there is all there is to the others.
fn script(kind: &str, says_how_it_is: bool) -> String {
    if says_how_it_is {
        return fs::read_to_string(folder().with_file_name("health.lua")).expect("the one script");
    }
    format!(
        "-- Argo CD's health of a {kind}: it only records something, so to be there is all there is to it.\n\
         return {{ status = \"Healthy\", message = \"it exists\" }}\n"
    )
}

#[test]
fn every_script_is_rendered_from_one_and_what_nobody_has_looked_at_is_on_its_way() {
    let mut wanted = BTreeSet::new();
    for definition in linchpin_doors::registry().definitions() {
        let spec = json!(definition.spec);
        let kind = &definition.spec.names.kind;
        let name = format!("{}_{kind}", definition.spec.group);
        let status = "/versions/0/schema/openAPIV3Schema/properties/status/properties";
        let says = |field: &str| spec.pointer(&format!("{status}/{field}")).is_some();
        let says_how_it_is = says("conditions") && says("observedGeneration");
        let file = folder().join(format!("{name}.lua"));
        let expected = script(kind, says_how_it_is);
        if std::env::var_os("LINCHPIN_UPDATE").is_some() {
            fs::write(&file, &expected).expect("a written file");
        }
        assert!(
            fs::read_to_string(&file).is_ok_and(|text| text == expected),
            "{name}.lua: make docs writes it"
        );
        let fresh = json!({"metadata": {"name": "x", "generation": 1}, "spec": {}, "status": {"observedGeneration": -1}});
        let shown = if says_how_it_is { "Progressing" } else { "Healthy" };
        assert_eq!(health(&name, &fresh).0, shown, "{name}");
        wanted.insert(format!("{name}.lua"));
    }
    let files = fs::read_dir(folder()).expect("the folder");
    let found: BTreeSet<String> =
        files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(found, wanted, "and there is no script of any other kind");
}
