//! What a pod gets.

use linchpin_doors::boot_dependency::{BootSet, GatedEntry};
use linchpin_words::keys;
use serde_json::{Value, json};

use super::{boot, init_names, injected, pod, set, settings};

fn only(spec: &str) -> Value {
    let (_, _, patched) = injected(&pod(&Value::Null), &[set("web", spec)]);
    patched["spec"]["initContainers"][0].clone()
}

fn arguments(entry: &str) -> Vec<String> {
    let container = only(&format!("{{dependsOn: [{entry}]}}"));
    serde_json::from_value(container["args"].clone()).unwrap_or_default()
}

#[test]
fn the_container_is_the_documents_by_name_and_ours_by_everything_else() {
    assert_eq!(
        only("{dependsOn: [{service: db, port: 5432, timeout: 30s}]}"),
        json!({
            "name": "wait-for-db",
            "image": "registry.example/linchpin-wait:1",
            "imagePullPolicy": "IfNotPresent",
            "command": ["/linchpin-wait"],
            "args": ["tcp", "db.shop.svc.cluster.local:5432", "--timeout", "30s"],
            "env": [{"name": "LINCHPIN_BOOT_DEPENDENCY", "value": "web"}],
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "privileged": false,
                "readOnlyRootFilesystem": true,
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationMessagePolicy": "FallbackToLogsOnError",
        })
    );
}

#[test]
fn b1_names_of_hosts_are_labels() {
    let names = |entries: &str| {
        let set = set("web", &format!("{{dependsOn: [{entries}]}}"));
        let (_, _, patched) = injected(&pod(&Value::Null), &[set]);
        init_names(&patched).join(" ")
    };
    assert_eq!(names("{host: db.example.com, port: 1}"), "wait-for-db-example-com");
    assert_eq!(names("{host: '2001:DB8::1', port: 1}"), "wait-for-2001-db8--1");
    assert_eq!(names("{host: '_dns.Example.com.', port: 1}"), "wait-for-dns-example-com");
    // Without a letter or digit nothing is left of a host, and a label ends with neither dash.
    assert_eq!(names("{host: '::', port: 80}"), "wait-for--80");
    assert_eq!(names("{host: _, port: 80}"), "wait-for--80");
    let long = names(&format!("{{host: {}.example, port: 1}}", "a".repeat(200)));
    assert_eq!(long.len(), 63);
    assert!(long.starts_with("wait-for-aaaa") && !long.contains('.'), "{long}");
}

#[test]
fn b2_b4_no_shell_ever_sees_what_users_write() {
    let words = arguments(
        r#"{host: h, port: 1, httpPath: "/a?b='\"&c;$(LINCHPIN_HEADER_1)`id`", httpHeaders: [{name: X, value: "it's $(HOME) \"q\""}], timeout: 1s}"#,
    );
    assert_eq!(
        words,
        [
            "http",
            "http://h:1/a?b='\"&c;$$(LINCHPIN_HEADER_1)`id`",
            "--header",
            "X: it's $$(HOME) \"q\"",
            "--timeout",
            "1s"
        ]
    );
}

#[test]
fn b3_entries_of_one_target_have_names_of_their_own() {
    let (_, _, patched) = injected(
        &pod(&Value::Null),
        &[set(
            "web",
            "{dependsOn: [{service: db, port: 5432}, {service: db, port: 8080, httpPath: /health}, {service: x, port: 1, httpPath: /a}, {service: x, port: 1, httpPath: /b}, {service: x, port: 1, httpPath: /b}]}",
        )],
    );
    let names = init_names(&patched);
    assert_eq!(names[..2], ["wait-for-db-5432", "wait-for-db-8080"]);
    assert_eq!(names.len(), 4, "equal entries share a container: {names:?}");
    assert!(names[2].starts_with("wait-for-x-") && names[2] != names[3], "{names:?}");
    // The document's own name belongs to whom it is the target of.
    let (_, _, patched) = injected(
        &pod(&Value::Null),
        &[set("web", "{dependsOn: [{service: db, port: 5432}, {service: db-5432, port: 80}]}")],
    );
    assert_eq!(init_names(&patched), ["wait-for-db", "wait-for-db-5432"]);
}

#[test]
fn a_name_does_not_depend_on_the_place_of_its_entry() {
    let names = |spec: &str| {
        let (_, _, patched) = injected(&pod(&Value::Null), &[set("web", spec)]);
        let mut names: Vec<String> = init_names(&patched).into_iter().map(str::to_owned).collect();
        names.sort();
        names
    };
    let (one, two) = ("{service: db, port: 1, httpPath: /a}", "{service: db, port: 1, httpPath: /b}");
    assert_eq!(
        names(&format!("{{dependsOn: [{one}, {two}, {{service: db-1, port: 2}}]}}")),
        names(&format!("{{dependsOn: [{{service: db-1, port: 2}}, {two}, {one}]}}"))
    );
}

#[test]
fn b20_a_service_is_asked_for_by_its_full_name_and_ipv6_in_brackets() {
    assert_eq!(
        arguments("{service: api, namespace: backend, port: 80}")[1],
        "api.backend.svc.cluster.local:80"
    );
    assert_eq!(arguments("{host: '::1', port: 80}")[1], "[::1]:80");
    assert_eq!(arguments("{host: '[::1]', port: 80}")[1], "[::1]:80");
}

#[test]
fn every_field_of_an_http_check_is_a_word_of_its_own() {
    let container = only(
        "{onTimeout: Proceed, dependsOn: [{service: api, namespace: backend, port: 8443, httpPath: '/healthz?deep=1', httpScheme: https, httpMethod: GET, httpHeaders: [{name: X-Tenant, value: shop}, {name: Authorization, valueFrom: {secretKeyRef: {name: api-token, key: header}}}], httpExpectedStatuses: [200, 204], caBundleSecretRef: {name: api-ca}, serverName: api.internal, timeout: 1m30s}]}",
    );
    let words: Vec<&str> =
        container["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let expected = [
        "http",
        "https://api.backend.svc.cluster.local:8443/healthz?deep=1",
        "--method",
        "GET",
        "--header",
        "X-Tenant: shop",
        "--header-env",
        "Authorization=LINCHPIN_HEADER_1",
        "--expect",
        "200,204",
        "--ca-env",
        "LINCHPIN_CA",
        "--server-name",
        "api.internal",
        "--timeout",
        "1m30s",
        "--on-timeout",
        "proceed",
    ];
    assert_eq!(words, expected);
    assert_eq!(
        container["env"],
        json!([
            {"name": "LINCHPIN_BOOT_DEPENDENCY", "value": "web"},
            {"name": "LINCHPIN_HEADER_1", "valueFrom": {"secretKeyRef": {"name": "api-token", "key": "header"}}},
            {"name": "LINCHPIN_CA", "valueFrom": {"secretKeyRef": {"name": "api-ca", "key": "ca.crt"}}},
        ])
    );
}

#[test]
fn b15_it_takes_what_the_pod_takes_and_runs_as_nobody() {
    let mut host = pod(&Value::Null);
    host["spec"]["securityContext"] = json!({"runAsUser": 0});
    host["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1", "nvidia.com/gpu": "1"}, "limits": {"memory": "1Gi"}, "claims": [{"name": "x"}]});
    let sets = [set("web", "{dependsOn: [{service: db, port: 1}]}")];
    let (_, _, patched) = injected(&host, &sets);
    let container = &patched["spec"]["initContainers"][0];
    assert_eq!(container["resources"], json!({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}));
    assert_eq!(container["securityContext"]["runAsUser"], 65532);
    host["spec"]["resources"] = json!({"limits": {"cpu": "2"}});
    let (_, _, patched) = injected(&host, &sets);
    assert_eq!(patched["spec"]["initContainers"][0]["resources"], Value::Null);
}

#[test]
fn b21_no_value_of_a_secret_is_written_into_a_pod() {
    let entry = "{host: h, port: 1, httpPath: /, httpHeaders: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}";
    let object = boot("web", &format!("{{dependsOn: [{entry}]}}"));
    let (division, _, patched) = injected(&pod(&Value::Null), &[BootSet::of(&object, &|_| false)]);
    assert_eq!(init_names(&patched), Vec::<&str>::new(), "what the account may not read is put into no pod");
    assert_eq!(division.gated, [GatedEntry { owner: "web".into(), entry: "h:1".into() }]);
    assert_eq!(patched["spec"]["schedulingGates"], json!([{"name": "linchpin.dev/boot"}]));
}

#[test]
fn b26_ours_stand_behind_sidecars_and_before_a_classic_mesh() {
    let sidecar = json!({"name": "istio-proxy", "restartPolicy": "Always"});
    let (classic, user) = (json!({"name": "istio-init"}), json!({"name": "migrate"}));
    let names = |inits: Value| {
        let (_, _, patched) = injected(&pod(&inits), &[set("web", "{dependsOn: [{service: db, port: 1}]}")]);
        init_names(&patched).join(" ")
    };
    assert_eq!(names(json!([sidecar, user])), "istio-proxy wait-for-db migrate");
    assert_eq!(
        names(json!([{"name": "istio-validation"}, sidecar, user])),
        "istio-validation istio-proxy wait-for-db migrate"
    );
    assert_eq!(names(json!([classic])), "wait-for-db istio-init");
    assert_eq!(names(json!([user, sidecar])), "wait-for-db migrate istio-proxy", "a later sidecar stays");
    let validator = json!([{"name": "linkerd-network-validator"}, user]);
    let (division, _, patched) =
        injected(&pod(&validator), &[set("web", "{dependsOn: [{service: db, port: 1}]}")]);
    assert_eq!((init_names(&patched).len(), division.gated.len()), (2, 1), "without a network: the gate");
}

#[test]
fn what_no_container_can_wait_for_is_held_by_the_gate() {
    let sets =
        [set("web", "{dependsOn: [{service: db, port: 1}, {resource: job/migrate, state: Completed}]}")];
    let (division, _, patched) = injected(&pod(&Value::Null), &sets);
    assert_eq!((division.carried.len(), division.gated.len()), (1, 1));
    assert_eq!(patched["metadata"]["labels"][keys::BOOT_GATE], "held");
    assert_eq!(patched["metadata"]["annotations"][keys::BOOT], "web");
    for change in
        [json!({"os": {"name": "windows"}}), json!({"nodeSelector": {"kubernetes.io/os": "windows"}})]
    {
        let mut windows = pod(&Value::Null);
        for (key, value) in change.as_object().into_iter().flatten() {
            windows["spec"][key] = value.clone();
        }
        let (division, ..) = injected(&windows, &sets);
        assert_eq!((division.carried.len(), division.gated.len()), (0, 2));
    }
    let mut once = pod(&Value::Null);
    once["spec"]["restartPolicy"] = json!("Never");
    assert_eq!(injected(&once, &sets).0.gated.len(), 2, "a Job's backoffLimit is not spent");
    let chosen = [set("web", "{strategy: InitContainer, dependsOn: [{service: db, port: 1}]}")];
    assert_eq!(injected(&once, &chosen).0.carried.len(), 1, "unless the strategy is written");
    let gate = [set("web", "{strategy: SchedulingGate, dependsOn: [{service: db, port: 1}]}")];
    let (_, _, patched) = injected(&pod(&Value::Null), &gate);
    assert_eq!(init_names(&patched).len(), 0);
    assert_eq!(patched["metadata"]["annotations"].get(keys::BOOT_HASH), None);
}

#[test]
fn foreign_gates_and_their_order_stay() {
    let mut gated = pod(&Value::Null);
    gated["spec"]["schedulingGates"] = json!([{"name": "a"}, {"name": "b"}]);
    let sets = [set("web", "{strategy: SchedulingGate, dependsOn: [{service: db, port: 1}]}")];
    let (_, _, patched) = injected(&gated, &sets);
    assert_eq!(
        patched["spec"]["schedulingGates"],
        json!([{"name": "a"}, {"name": "b"}, {"name": keys::BOOT}])
    );
    let mut forged = pod(&Value::Null);
    forged["spec"]["schedulingGates"] = json!([{"name": keys::BOOT}]);
    let (_, _, patched) = injected(&forged, &[]);
    assert_eq!(patched["metadata"]["labels"][keys::BOOT_GATE], "held", "so that it is found and released");
}

#[test]
fn a_users_container_with_our_name_wins_and_is_told() {
    let sets = [set("web", "{dependsOn: [{service: db, port: 1}]}")];
    let mine = json!([{"name": "wait-for-db", "image": "mine"}]);
    let (_, injection, patched) = injected(&pod(&mine), &sets);
    assert_eq!(patched["spec"]["initContainers"], mine);
    assert_eq!(injection.skipped, ["db:1"]);
    let mut app = pod(&Value::Null);
    app["spec"]["containers"][0]["name"] = json!("wait-for-db");
    let (_, _, patched) = injected(&app, &sets);
    let name = init_names(&patched)[0];
    assert!(name.starts_with("wait-for-db-") && name.len() == "wait-for-db-".len() + 8, "{name}");
}

#[test]
fn the_predecessors_containers_are_replaced() {
    let old = json!([
        {"name": "wait-for-db", "image": "registry:5000/user-cube/bootchain-operator/minimal-tools:latest", "command": ["sh"]},
        {"name": "wait-for-cache", "image": "registry/user-cube/bootchain-operator/minimal-tools@sha256:00", "command": ["sh"]},
        {"name": "wait-for-mine", "image": "my/tools"},
    ]);
    let (_, _, patched) = injected(&pod(&old), &[set("web", "{dependsOn: [{service: db, port: 1}]}")]);
    assert_eq!(init_names(&patched), ["wait-for-db", "wait-for-mine"]);
    assert_eq!(patched["spec"]["initContainers"][0]["image"], settings().image);
    let (_, injection, _) = injected(&pod(&old), &[]);
    assert!(injection.patch.is_empty(), "without a BootDependency they are not ours to touch");
}

#[test]
fn several_boot_dependencies_are_one_set_in_the_order_of_their_names() {
    let sets = [
        set("zoo", "{dependsOn: [{service: db, port: 1}, {service: z, port: 1}]}"),
        set("app", "{dependsOn: [{service: db, port: 1}, {service: a, port: 1}]}"),
    ];
    let (_, _, patched) = injected(&pod(&Value::Null), &sets);
    assert_eq!(init_names(&patched), ["wait-for-db", "wait-for-a", "wait-for-z"]);
    assert_eq!(patched["metadata"]["annotations"][keys::BOOT], "app,zoo");
}

#[test]
fn the_hash_is_of_what_users_wrote() {
    let hash = |spec: &str| injected(&pod(&Value::Null), &[set("web", spec)]).0.hash();
    let plain = hash("{dependsOn: [{service: db, port: 1}]}");
    assert_eq!(
        plain,
        hash("{dependsOn: [{service: db, port: 1, timeout: 60s}]}"),
        "the stored default is no change"
    );
    assert_ne!(plain, hash("{dependsOn: [{service: db, port: 1, timeout: 61s}]}"));
    assert_ne!(plain, hash("{onTimeout: Proceed, dependsOn: [{service: db, port: 1}]}"));
    let shown = plain.unwrap_or_default();
    assert!(shown.starts_with("v1-") && shown.len() == 19, "{shown}");
}
