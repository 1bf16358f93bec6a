//! Values of templates from ConfigMaps and Secrets, and where a Secret's value must never be seen.

use crate::world::{scenario, world};
use linchpin_testkit::{Scenario, entry};
use serde_json::{Value, json};

const CANARY: &str = "canary-7f3a9c51";

#[test]
fn values_come_from_config_maps_and_secrets_and_a_secret_is_seen_nowhere_else() {
    let scenario = scenario("values");
    scenario.apply(&format!(
        "
        {{apiVersion: v1, kind: ConfigMap, metadata: {{name: base}}, data: {{host: base, port: '5432', user: base}}}}
---
        {{apiVersion: v1, kind: Secret, metadata: {{name: login}}, stringData: {{user: secret, password: {CANARY}}}}}
        "
    ));
    scenario.resource_dependency(
        "rd",
        "
        values: {host: top}
        valuesFrom: [{configMapRef: {name: base}}, {secretRef: {name: login}}, {configMapRef: {name: none, optional: true}}]
        actions:
        - {name: write, type: create, resource: {apiVersion: v1, kind: Secret, metadata: {name: out}, stringData: {
            url: '{{ .Values.user }}:{{ .Values.password }}@{{ .Values.host }}:{{ .Values.port }}'}}}
        - {name: bad, priority: 2, type: create, resource: {apiVersion: v1, kind: Secret, metadata: {name: bad}, type: '{{ .Values.password }}', data: {
            not-base64: '{{ .Values.password }}!'}}}
        ",
    );
    scenario.phase("ResourceDependency", "rd", "Failed");
    let url = scenario.get("Secret", "out").unwrap()["data"]["url"].as_str().unwrap().to_owned();
    let expected = format!("secret:{CANARY}@top:5432");
    assert_eq!(url, base64(expected.as_bytes()));

    is_seen_nowhere(&scenario, CANARY);
}

/// Everything that we write down and say: our objects, events, log and metrics.
fn is_seen_nowhere(scenario: &Scenario, canary: &str) {
    let mut said = vec![world().operator.log(), world().operator.metrics()];
    for kind in ["ResourceDependency", "DependencyGroup", "AppBundle", "BundleRevision"] {
        said.extend(scenario.api.list(kind, &scenario.namespace).iter().map(Value::to_string));
    }
    let events = format!("/apis/events.k8s.io/v1/namespaces/{}/events", scenario.namespace);
    said.push(scenario.api.read(&events).unwrap().to_string());
    for text in said {
        for form in [canary.to_owned(), base64(canary.as_bytes())] {
            let place = text.find(&form).map(|at| &text[at.saturating_sub(400)..at]);
            assert_eq!(place, None, "{form}");
        }
    }
}

/// Every way in which a rendered document can be, or be called, what a Secret says.
#[test]
fn what_an_object_is_and_is_called_does_not_come_from_a_secret() {
    const HIDDEN: &str = "canary-names-3d1b";
    let scenario = scenario("secret-names");
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: login}}, stringData: {{password: {HIDDEN}, config: '{{\"name\": \"{HIDDEN}\"}}'}}}}"
    ));
    let value = "{{ .Values.password }}";
    let read = "{{ .Dependencies.login.Object.data.password | b64dec }}";
    let parsed = "{{ (fromJson .Values.config).name }}";
    let object = |kind: &str, version: &str, name: &str, namespace: &str| {
        format!(
            "{{apiVersion: '{version}', kind: '{kind}', metadata: {{name: '{name}', namespace: '{namespace}'}}}}"
        )
    };
    let fields = [
        object("ConfigMap", "v1", value, "secret-names"),
        object("ConfigMap", "v1", &format!("x-{read}"), "secret-names"),
        object("ConfigMap", "v1", parsed, "secret-names"),
        object("ConfigMap", "v1", "a", value),
        object(value, "v1", "a", "secret-names"),
        object("Widget", &format!("{value}/v1"), "a", "secret-names"),
    ];
    let mut failed = Vec::new();
    for (index, object) in fields.iter().enumerate() {
        // As an object whose strings are templates, and as one text.
        let text = object.replace('\'', "\"");
        let bodies = [
            ("create", format!("resource: {object}")),
            ("apply", format!("apply: {object}")),
            ("template", format!("template: '{text}'")),
        ];
        for (form, body) in bodies {
            let name = format!("{form}-{index}");
            scenario.resource_dependency(
                &name,
                &format!(
                    "{{valuesFrom: [{{secretRef: {{name: login}}}}], dependencies: [{{name: login, resource: secret/login}}],
                      actions: [{{name: leak, type: {form}, {body}}}]}}"
                ),
            );
            failed.push(name);
        }
    }
    // A key of a text is named in refusals too.
    scenario.resource_dependency(
        "key",
        "{valuesFrom: [{secretRef: {name: login}}], actions: [{name: leak, type: template,
          template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: key}, {{ .Values.password }}: x}'}]}",
    );
    failed.push("key".to_owned());
    for name in failed {
        let object = scenario.phase("ResourceDependency", &name, "Failed");
        let message = entry(&object, "actions", "leak")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("is rendered from a value of a Secret"), "{name}: {message}");
    }
    // A bundle must know what its objects are called before it applies them.
    scenario.app_bundle(
        "bundle",
        &format!("{{valuesFrom: [{{secretRef: {{name: login}}}}], groups: [{{name: g, components: [{{name: c, template: {}}}]}}]}}", fields[0]),
    );
    scenario.until("is refused", "AppBundle", "bundle", |object| {
        let message = object["status"]["message"].as_str().unwrap_or_default();
        message.contains("metadata.name") && message.contains("this is rendered from a value of a Secret")
    });
    is_seen_nowhere(&scenario, HIDDEN);
    assert_eq!(scenario.audit.user_writes("secret-names"), []);
}

#[test]
fn a_text_that_reads_a_secret_may_have_any_name_that_does_not() {
    let scenario = scenario("secret-text");
    scenario.apply(
        "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {user: maker, port: '90'}}",
    );
    scenario.resource_dependency(
        "rd",
        r#"
        values: {name: maker}
        valuesFrom: [{secretRef: {name: login}}]
        dependencies: [{name: login, resource: secret/login}]
        actions:
        - {name: text, type: template, template: '{apiVersion: v1, kind: Secret, metadata: {name: {{ .Dependencies.login.Name }}-{{ .Values.name }}-out},
            stringData: {user: {{ .Values.user }}, port: "{{ add (atoi .Values.port) 1 }}"}}'}
        - {name: fields, type: create, resource: {apiVersion: v1, kind: Secret, metadata: {name: '{{ .Values.name }}-out'}, stringData: {user: '{{ .Values.user }}'}}}
        "#,
    );
    scenario.completed("rd");
    let written = scenario.get("Secret", "login-maker-out").unwrap();
    assert_eq!(written["data"], json!({"user": base64(b"maker"), "port": base64(b"91")}));
    assert!(scenario.get("Secret", "maker-out").is_some());
}

#[test]
fn a_missing_source_of_values_is_waited_for() {
    let scenario = scenario("values-later");
    scenario.resource_dependency(
        "rd",
        "
        valuesFrom: [{configMapRef: {name: later}}]
        actions: [{type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: out}, data: {value: '{{ .Values.value }}'}}}]
        ",
    );
    scenario.until("waits", "ResourceDependency", "rd", |object| {
        object["status"]["blockedBy"].to_string().contains("later")
    });
    scenario.config_map("later", "now");
    scenario.completed("rd");
    assert_eq!(scenario.data("out", "value").unwrap(), "now");
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0_usize, |sum, byte| (sum << 8) | usize::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * place)) & 63];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}
