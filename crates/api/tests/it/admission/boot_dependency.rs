//! BootDependencies that must be refused, and what a stored one looks like.

use linchpin_words::limits;
use serde_json::{Value, json};

use super::{answers, object, server, succeed};

const BD: &str = "BootDependency";

/// Kind, spec, and a part of the answer.
pub(crate) const REFUSED: &[(&str, &str, &str)] = &[
    // The document's rules, in its words.
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpScheme: http}]}",
        "spec.dependsOn[0]: Invalid value: httpScheme requires httpPath to be set",
    ),
    (BD, "{dependsOn: [{service: db, port: 1, insecure: true}]}", "insecure requires httpPath to be set"),
    (BD, "{dependsOn: [{service: db, port: 1, httpMethod: GET}]}", "httpMethod requires httpPath to be set"),
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpHeaders: [{name: A, value: b}]}]}",
        "httpHeaders requires httpPath to be set",
    ),
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpExpectedStatuses: [200]}]}",
        "httpExpectedStatuses requires httpPath to be set",
    ),
    (
        BD,
        "{dependsOn: [{port: 1}]}",
        "spec.dependsOn[0]: Invalid value: exactly one of service or host must be specified",
    ),
    (
        BD,
        "{dependsOn: [{service: db, host: db, port: 1}]}",
        "exactly one of service or host must be specified",
    ),
    (
        BD,
        "{dependsOn: [{service: db, resource: pod/x, port: 1}]}",
        "exactly one of service, host or resource must be specified",
    ),
    (
        BD,
        "{dependsOn: [{host: db, ref: {kind: Pod, name: x}}]}",
        "exactly one of service, host or resource must be specified",
    ),
    // What belongs to what.
    (BD, "{}", "spec.dependsOn: Required value"),
    (BD, "{dependsOn: []}", "should have at least 1 items"),
    (BD, "{dependsOn: [{service: db}]}", "port is required with service and host"),
    (BD, "{dependsOn: [{host: db}]}", "port is required with service and host"),
    (BD, "{dependsOn: [{resource: pod/x, port: 1}]}", "port and httpPath go with service and host only"),
    (BD, "{dependsOn: [{resource: pod/x, httpPath: /}]}", "port and httpPath go with service and host only"),
    (
        BD,
        "{dependsOn: [{resource: pod/x, ref: {kind: Pod, name: x}}]}",
        "give exactly one of resource and ref",
    ),
    (BD, "{dependsOn: [{resource: deployment}]}", "resource is kind/name"),
    (BD, "{dependsOn: [{host: db, port: 1, namespace: a}]}", "namespace goes with service or resource only"),
    (BD, "{dependsOn: [{service: db, port: 1, state: Ready}]}", "go with resource only"),
    (BD, "{dependsOn: [{service: db, port: 1, cel: 'true'}]}", "go with resource only"),
    (
        BD,
        "{dependsOn: [{host: a, port: 1, httpPath: /, serverName: b}]}",
        "caBundleSecretRef, caBundleConfigMapRef and serverName require httpScheme: https",
    ),
    (
        BD,
        "{dependsOn: [{host: a, port: 1, httpPath: /, httpScheme: https, caBundleSecretRef: {name: a}, caBundleConfigMapRef: {name: a}}]}",
        "give one of caBundleSecretRef and caBundleConfigMapRef",
    ),
    (
        BD,
        "{targetRef: {kind: Deployment, name: a}, selector: {}, dependsOn: [{service: db, port: 1}]}",
        "give one of targetRef and selector",
    ),
    (
        BD,
        "{dependsOn: [{name: a, service: db, port: 1}, {name: a, service: db, port: 2}]}",
        "two entries of dependsOn have the same name",
    ),
    // Texts that could never work, or that are meant for a shell.
    (BD, "{dependsOn: [{service: db.shop, port: 1}]}", "spec.dependsOn[0].service: Invalid value"),
    (BD, "{dependsOn: [{service: '$(reboot)', port: 1}]}", "spec.dependsOn[0].service: Invalid value"),
    (BD, "{dependsOn: [{service: Db, port: 1}]}", "spec.dependsOn[0].service: Invalid value"),
    (BD, "{dependsOn: [{host: 'http://db', port: 1}]}", "spec.dependsOn[0].host: Invalid value"),
    (BD, "{dependsOn: [{host: 'db:5432', port: 1}]}", "spec.dependsOn[0].host: Invalid value"),
    (BD, "{dependsOn: [{host: 'me@db', port: 1}]}", "spec.dependsOn[0].host: Invalid value"),
    (BD, "{dependsOn: [{host: 'fe80::1%eth0', port: 1}]}", "spec.dependsOn[0].host: Invalid value"),
    (BD, "{dependsOn: [{host: 'a:b:c', port: 1}]}", "host is a name or an IP address"),
    (BD, "{dependsOn: [{host: '::ffff:fd00::1', port: 1}]}", "host is a name or an IP address"),
    (BD, "{dependsOn: [{host: '[1.2.3.4', port: 1}]}", "spec.dependsOn[0].host: Invalid value"),
    (BD, "{dependsOn: [{host: '[1.2.3.4]', port: 1}]}", "spec.dependsOn[0].host: Invalid value"),
    (BD, "{dependsOn: [{host: 'a..b', port: 1}]}", "spec.dependsOn[0].host: Invalid value"),
    (BD, "{dependsOn: [{host: \"a\\nb\", port: 1}]}", "spec.dependsOn[0].host: Invalid value"),
    (BD, "{dependsOn: [{host: bücher.example, port: 1}]}", "spec.dependsOn[0].host: Invalid value"),
    (BD, "{dependsOn: [{service: db, port: 1, httpPath: healthz}]}", "httpPath: Invalid value"),
    (BD, "{dependsOn: [{service: db, port: 1, httpPath: '/a b'}]}", "httpPath: Invalid value"),
    (BD, "{dependsOn: [{service: db, port: 1, httpPath: \"/a\\r\\nX: y\"}]}", "httpPath: Invalid value"),
    (BD, "{dependsOn: [{service: db, port: 1, httpPath: /, httpMethod: get}]}", "httpMethod: Invalid value"),
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpPath: /, httpScheme: gopher}]}",
        "Unsupported value: \"gopher\"",
    ),
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpPath: /, httpHeaders: [{name: 'A: b', value: c}]}]}",
        "httpHeaders[0].name: Invalid value",
    ),
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpPath: /, httpHeaders: [{name: A, value: \"b\\r\\nC: d\"}]}]}",
        "httpHeaders[0].value: Invalid value",
    ),
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpPath: /, httpHeaders: [{name: A, value: \"b\\x85C\"}]}]}",
        "httpHeaders[0].value: Invalid value",
    ),
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpPath: /, httpHeaders: [{name: A}]}]}",
        "give exactly one of value and valueFrom",
    ),
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpPath: /, httpHeaders: [{name: A, value: b, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]}",
        "give exactly one of value and valueFrom",
    ),
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpPath: /, httpHeaders: [{name: TRANSFER-encoding, value: b}]}]}",
        "cannot be set",
    ),
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpPath: /, httpHeaders: [{name: Proxy-Authorization, value: b}]}]}",
        "cannot be set",
    ),
    (
        BD,
        "{dependsOn: [{service: db, port: 1, httpPath: /, httpExpectedStatuses: [600]}]}",
        "less than or equal to 599",
    ),
    (BD, "{dependsOn: [{service: db, port: 0}]}", "greater than or equal to 1"),
    (BD, "{dependsOn: [{service: db, port: 65536}]}", "less than or equal to 65535"),
    (BD, "{dependsOn: [{service: db, port: 1, timeout: '60'}]}", "write a duration such as 30s"),
    (BD, "{dependsOn: [{service: db, port: 1, timeout: 1d}]}", "write a duration such as 30s"),
    (BD, "{dependsOn: [{service: db, port: 1, timeout: -5s}]}", "write a duration such as 30s"),
    (BD, "{dependsOn: [{service: db, port: 1, timeout: 0s}]}", "timeout is more than 0s and at most 24h"),
    (BD, "{dependsOn: [{service: db, port: 1, timeout: 24h1s}]}", "timeout is more than 0s and at most 24h"),
    (BD, "{strategy: Sleep, dependsOn: [{service: db, port: 1}]}", "Unsupported value: \"Sleep\""),
    (BD, "{rollout: Now, dependsOn: [{service: db, port: 1}]}", "Unsupported value: \"Now\""),
    (BD, "{onTimeout: Ignore, dependsOn: [{service: db, port: 1}]}", "Unsupported value: \"Ignore\""),
    // Not served yet: refused, not dropped.
    (
        BD,
        "{dependsOn: [{host: a, port: 1, httpPath: /, followRedirects: true}]}",
        "followRedirects is not served yet",
    ),
    (BD, "{dependsOn: [{host: a, port: 1, grpc: {tls: true}}]}", "grpc is not served yet"),
];

fn entries(count: usize) -> Value {
    json!({"dependsOn": (0..count).map(|i| json!({"name": format!("e{i}"), "service": "db", "port": 1})).collect::<Vec<_>>()})
}

#[test]
fn entries_and_their_texts_are_bounded() {
    let header = |length: usize| json!({"dependsOn": [{"host": "h", "port": 1, "httpPath": "/", "httpHeaders": [{"name": "A", "value": "v".repeat(length)}]}]});
    let foreign = |length: usize| json!({"dependsOn": [{"host": "h", "port": 1, "httpPath": "/", "httpHeaders": [{"name": "A", "value": "é".repeat(length)}]}]});
    let path = |length: usize| json!({"dependsOn": [{"host": "h", "port": 1, "httpPath": format!("/{}", "p".repeat(length - 1))}]});
    let mut objects = Vec::new();
    for (name, make, limit) in [
        ("entries", &entries as &dyn Fn(usize) -> Value, limits::BOOT_ENTRIES),
        ("header", &header, limits::PROBE_HEADER_VALUE),
        ("foreign-header", &foreign, limits::PROBE_HEADER_VALUE),
        ("path", &path, limits::PROBE_PATH),
    ] {
        for (suffix, size) in [("at", limit), ("over", limit + 1), ("way-over", limit * 100)] {
            objects.push(object(BD, &format!("{name}-{suffix}"), &make(size)));
        }
    }
    for (name, answer) in answers(&objects) {
        assert_eq!(answer.is_empty(), name.ends_with("-at"), "{name}: {answer:.300}");
        assert!(answer.is_empty() || answer.contains("Too"), "{name}: {answer:.300}");
    }
}

#[test]
fn b5_go_durations_are_taken_and_the_documents_default_is_stored() {
    let spec = json!({"dependsOn": [
        {"service": "a", "port": 1}, {"service": "b", "port": 1, "timeout": "1m30s"}, {"service": "c", "port": 1, "timeout": "500ms"},
    ]});
    succeed(server(), &["create", "-f", "-"], &object(BD, "durations", &spec).to_string());
    let stored: Value =
        serde_json::from_str(&succeed(server(), &["get", "bootdependency", "durations", "-o", "json"], ""))
            .unwrap();
    let timeouts: Vec<&str> = stored["spec"]["dependsOn"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["timeout"].as_str())
        .collect();
    assert_eq!(timeouts, ["60s", "1m30s", "500ms"]);
    assert_eq!(stored["status"], json!({"observedGeneration": -1}));
    let shown = succeed(server(), &["get", "bootdependencies", "durations"], "");
    assert_eq!(shown.split_whitespace().take(4).collect::<Vec<_>>(), ["NAME", "READY", "RESOLVED", "AGE"]);
}

#[test]
fn a_host_is_an_address_in_every_form_that_has_a_meaning() {
    let hosts = [
        "192.0.2.1",
        "fd00::1",
        "[fd00::1]",
        "::",
        "::ffff:192.0.2.1",
        "[::FFFF:192.0.2.1]",
        "::ffff:c000:201",
    ];
    for (number, host) in hosts.into_iter().enumerate() {
        let spec = json!({"dependsOn": [{"host": host, "port": 1}]});
        let object = object(BD, &format!("host-{number}"), &spec).to_string();
        succeed(server(), &["create", "--dry-run=server", "-f", "-"], &object);
    }
}

#[test]
fn the_examples_apply() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bootdependency");
    let example = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    succeed(server(), &["apply", "-f", "-"], &example("namespace.yaml"));
    // In a dry run nothing is there that came before.
    let account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: till, namespace: shop}}";
    succeed(server(), &["apply", "-f", "-"], account);
    let mut seen = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|extension| extension == "yaml") && name != "namespace.yaml" {
            eprintln!("{name}");
            succeed(server(), &["apply", "--dry-run=server", "-f", "-"], &example(name));
            seen += 1;
        }
    }
    assert_eq!(seen, 11);
}
