//! Pods and texts that nobody means well with: whatever arrives, there is an answer, and nobody else's part is touched.

use linchpin_api::BootDependency;
use linchpin_doors::boot_dependency::{
    BootSet, PatchTarget, PodGate, circles, divide, ignored_skip, inject, is_skipped, keep_old_part,
    label_selector_matches,
};
use linchpin_words::limits;
use serde_json::{Value, json};

use super::{apply, boot, init_names, injected, pod, set, settings, workloads};

/// Texts that break out of quotes, lines, shells and terminals, and large ones.
fn texts() -> Vec<String> {
    let plain = [
        "",
        "'",
        "\"",
        "`id`",
        "$(reboot)",
        "$$(A)",
        "a;b&c|d",
        "../../etc",
        "a\nb\r\nC: d",
        "\u{0}",
        "\u{1b}[2J",
        "\u{202e}x",
        "\u{feff}",
        "bücher",
        "💥",
        "%00%0a",
        "{{.}}",
        "- a: b",
        "null",
        "-1",
        "~1~0",
        "\\",
    ];
    plain.iter().map(ToString::to_string).chain(["x".repeat(64 << 10), "é".repeat(32 << 10)]).collect()
}

/// Shapes that no API server stores, but that anybody can send.
fn shapes() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1e308),
        json!("x"),
        json!([]),
        json!({}),
        json!([null]),
        json!([[]]),
        json!({"name": null}),
        json!([{"name": 7, "env": {}, "args": "x"}]),
        json!([{"env": [null, {"name": []}]}]),
        json!({"a": {"b": {"c": []}}}),
    ]
}

#[test]
fn whatever_a_pod_looks_like_there_is_an_answer() {
    let sets = [set("web", "{dependsOn: [{service: db, port: 5432}, {resource: job/x}]}")];
    let paths = [
        "/metadata",
        "/metadata/annotations",
        "/metadata/labels",
        "/metadata/ownerReferences",
        "/spec",
        "/spec/initContainers",
        "/spec/containers",
        "/spec/schedulingGates",
        "/spec/securityContext",
        "/spec/resources",
        "/spec/nodeSelector",
        "/spec/os",
    ];
    for path in paths {
        for shape in shapes() {
            let mut hostile = json!({
                "metadata": {"annotations": {}, "labels": {}, "ownerReferences": []},
                "spec": {"initContainers": [], "containers": [{"name": "app"}], "schedulingGates": [], "securityContext": {}, "resources": {}, "nodeSelector": {}, "os": {}},
            });
            *hostile.pointer_mut(path).unwrap() = shape.clone();
            let division = divide(&hostile["spec"], &sets);
            for place in [PatchTarget::Pod, PatchTarget::DeploymentTemplate] {
                let _ = inject(&hostile, place, &division, PodGate::Hold, &settings());
            }
            let whole = json!({"spec": {"template": hostile}});
            let _ = keep_old_part(&whole, &json!({"spec": {"template": {}}}));
            let _ = (
                is_skipped(&shape),
                ignored_skip(&shape),
                label_selector_matches(
                    &serde_json::from_value(json!({"matchLabels": {"a": "b"}})).unwrap(),
                    &shape,
                ),
            );
        }
    }
}

#[test]
fn every_text_is_one_word_of_the_command_line_and_nothing_of_it_is_a_name() {
    for text in texts() {
        let mut object =
            boot("web", "{dependsOn: [{host: a, port: 1, httpPath: /, httpHeaders: [{name: A, value: b}]}]}");
        let entry = &mut object.spec.depends_on[0];
        entry.host = Some(text.clone());
        entry.http_path = Some(text.clone());
        entry.http_method = Some(text.clone());
        entry.server_name = Some(text.clone());
        entry.http_headers[0].name.clone_from(&text);
        entry.http_headers[0].value = Some(text.clone());
        let set = BootSet::of(&object, &|_| true);
        let (_, injection, patched) = injected(&pod(&json!(null)), &[set]);
        let [name] = init_names(&patched)[..] else { panic!("{text:.40}") };
        assert!(
            name.len() <= 63
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
            "{name}"
        );
        let container = &patched["spec"]["initContainers"][0];
        assert_eq!(container["command"], json!(["/linchpin-wait"]));
        let words: Vec<&str> =
            container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let at = words.iter().position(|word| *word == "--header").unwrap();
        let doubled = text.replace('$', "$$");
        assert_eq!(words[at + 1], format!("{doubled}: {doubled}"), "one word, as it was written");
        // The kubelet would put a variable in where it finds $(NAME) behind an odd number of dollars.
        assert!(!words.concat().replace("$$", "").contains("$("), "{text:.40}");
        assert_eq!(apply(&pod(&json!(null)), &injection.patch), patched);
    }
}

/// An object that says something in every field that takes a text.
fn talkative() -> Value {
    let secret = json!({"secretKeyRef": {"name": "token", "key": "header"}});
    let labels = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}]});
    let kubeconfig = json!({"kubeconfigSecretRef": {"name": "k", "key": "value", "namespace": "shop"}});
    let who = json!({"user": "u", "groups": ["g"]});
    let mut object = workloads::object(&json!({
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "serviceAccountName": "actor",
        "dependsOn": [
            {"name": "db", "service": "db", "namespace": "shop", "port": 5432, "httpPath": "/healthz", "httpScheme": "https",
             "httpMethod": "GET", "httpHeaders": [{"name": "A", "value": "b"}, {"name": "C", "valueFrom": secret}],
             "caBundleSecretRef": {"name": "ca", "key": "ca.crt"}, "serverName": "db.internal", "timeout": "30s"},
            {"host": "vault.example.com", "port": 8200, "httpPath": "/", "httpScheme": "https",
             "caBundleConfigMapRef": {"name": "ca", "key": "ca.crt"}},
            {"resource": "job/migrate", "state": "Completed", "cel": "self.x == 1", "namespace": "shop"},
            {"ref": {"apiVersion": "v1", "kind": "ConfigMap", "name": "flags", "namespace": "shop"},
             "conditions": [{"jsonPath": ".data.ready", "operator": "eq", "value": "yes"}]},
            {"resource": "pod", "selector": labels, "group": "g"},
            {"resource": "deployment/far", "cluster": {"kubeconfigSecretRef": kubeconfig["kubeconfigSecretRef"], "impersonate": who}},
        ],
    }));
    object["metadata"]["annotations"] = json!({
        "linchpin.dev/skip-boot-wait": "no", "linchpin.dev/proceed": "db@1", "linchpin.dev/requested-at": "now",
    });
    object
}

/// Where the texts of a value are, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), found));
        }
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, item)| places(item, &format!("{at}/{}", key.replace('/', "~1")), found)),
        _ => (),
    }
}

/// All texts of a status that people read.
fn shown(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| shown(item, texts)),
        Value::Object(fields) => fields.values().for_each(|item| shown(item, texts)),
        _ => (),
    }
}

#[test]
fn every_text_in_every_field_has_an_answer_of_one_line() {
    let usual = talkative();
    let mut found = Vec::new();
    places(&usual["spec"], "/spec", &mut found);
    places(&usual["metadata"]["annotations"], "/metadata/annotations", &mut found);
    assert!(found.len() >= 45, "{found:?}");
    let service = json!({"spec": {"selector": {"app": "db"}, "ports": [{"port": 5432}]}});
    let slice = json!({"ports": [{"port": 5432}], "endpoints": [{"addresses": ["192.0.2.7"]}]});
    let secret = json!({"data": {"header": "eA==", "ca.crt": "eA=="}});
    let mut read = 0;
    for place in &found {
        for text in texts() {
            let mut hostile = usual.clone();
            *hostile.pointer_mut(place).unwrap() = json!(text);
            // What is one of a few words is nothing else, and gets no further than the schema.
            let Ok(object) = serde_json::from_value::<BootDependency>(hostile.clone()) else { continue };
            read += 1;
            let _ = circles(&object, std::slice::from_ref(&object).iter());
            let _ = injected(&pod(&json!(null)), &[BootSet::of(&object, &|_| true)]);
            let mut things = workloads::world(workloads::deployment("2026-01-01T00:00:05Z", 0, &json!({})));
            things.push(("Service", "db", service.clone()));
            things.push(("EndpointSlice", "db-1", slice.clone()));
            things.push(("Secret", "token", secret.clone()));
            things.push(("Secret", "ca", secret.clone()));
            let (_, status) = workloads::look_at(&hostile, &things, "");
            let mut texts = Vec::new();
            for part in ["message", "conditions", "blockedBy", "entries", "workloads"] {
                shown(&status[part], &mut texts);
            }
            for said in texts {
                assert!(
                    said.len() <= limits::MESSAGE && !said.chars().any(char::is_control),
                    "{place}: {said:.200}"
                );
            }
        }
    }
    assert!(read > 800, "{read}");
}
