//! Pods and texts that nobody means well with: whatever arrives, there is an answer, and nobody else's part is touched.

use linchpin_doors::boot_dependency::{
    Gate, Place, divide, ignored_skip, inject, is_skipped, keep_old_part, label_selector_matches,
};
use serde_json::{Value, json};

use super::{apply, boot, init_names, injected, pod, set, settings};

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
            for place in [Place::Pod, Place::DeploymentTemplate] {
                let _ = inject(&hostile, place, &division, Gate::Hold, &settings());
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
        let set = linchpin_doors::boot_dependency::BootSet::of(&object, &|_| true);
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
