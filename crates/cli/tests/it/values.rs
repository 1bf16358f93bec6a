//! Values of templates from ConfigMaps and Secrets, and where a Secret's value must never be seen.

use crate::world::{scenario, world};

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

    let object = scenario.get("ResourceDependency", "rd").unwrap();
    assert!(!object.to_string().contains(CANARY), "{object:#}");
    assert!(!object.to_string().contains(&base64(CANARY.as_bytes())), "{object:#}");
    assert!(!format!("{:?}", scenario.events("rd")).contains(CANARY));
    assert!(!world().operator.log().contains(CANARY));
    assert!(!world().operator.metrics().contains(CANARY));
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
