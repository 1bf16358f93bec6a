//! Which kind a word means, and what is asked about it.

use linchpin_doors::ResourceDependencyDoor;
use linchpin_engine::{
    contract::{ClusterRef, ControlPlaneSelect, Question, Scope},
    plan::Plan,
    step::Phase,
};
use linchpin_words::Gvk;
use serde_json::json;

use crate::{
    stage::{Custom, Stage},
    things::config_map,
};

type Rd = Stage<ResourceDependencyDoor>;

fn stage(spec: &str) -> Rd {
    Stage::new(&format!(
        "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: x}}, spec: {spec}}}"
    ))
}

fn widget(group: &str) -> Custom {
    Custom { kind: Gvk::new(group, "v1", "Widget"), plural: "widgets", namespaced: true }
}

fn reads(plan: &Plan, step: &str) -> Vec<String> {
    let position = plan.position(&step.into()).expect("a step");
    match plan.steps()[position].requirement().expect("a requirement").want.question() {
        Question::Objects { reads, .. } if reads.is_whole() => vec!["*".to_owned()],
        Question::Objects { reads, .. } => reads.paths().map(|path| path.join(".")).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_kind_that_is_not_served_blocks_and_is_no_mistake() {
    let mut stage = stage("{dependencies: [{resource: widget/a}]}");
    stage.settle();
    assert_eq!(stage.report().phase, Phase::Waiting);
    assert_eq!(stage.report().blocked[0].reason, "KindNotServed");
    stage.customs.push(widget("one.example"));
    stage.put(json!({"apiVersion": "one.example/v1", "kind": "Widget", "metadata": {"namespace": "own", "name": "a"}}));
    stage.settle();
    assert_eq!(stage.report().phase, Phase::Completed);
}

#[test]
fn a_word_keeps_its_meaning_when_another_definition_comes() {
    let mut stage = stage("{watchMode: true, dependencies: [{resource: widget/a}]}");
    stage.customs.push(widget("one.example"));
    stage.settle();
    stage.customs.push(widget("two.example"));
    stage.settle();
    assert!(stage.wrong.is_none());
    assert_eq!(stage.memory.journal.kinds["widget"].group, "one.example");
    stage.put(json!({"apiVersion": "one.example/v1", "kind": "Widget", "metadata": {"namespace": "own", "name": "a"}}));
    stage.settle();
    assert!(stage.report().ready);
}

#[test]
fn a_word_with_several_meanings_stalls_and_lists_them() {
    let mut stage = stage("{dependencies: [{resource: widget/a}]}");
    stage.customs.extend([widget("one.example"), widget("two.example")]);
    stage.settle();
    let wrong = stage.wrong.as_ref().expect("a mistake");
    assert_eq!(
        wrong.to_string(),
        "spec.dependencies[0].resource: \"widget\" names several kinds: Widget.one.example, Widget.two.example; write \
         the group too"
    );
    let status = stage.status();
    assert_eq!(status.common.conditions[2].kind, "Stalled");
    assert_eq!(status.common.conditions[2].status, linchpin_words::ConditionStatus::True);
}

#[test]
fn a_namespace_is_the_objects_own_unless_given_and_ignored_for_cluster_scoped_kinds() {
    let mut stage = stage(
        "{dependencies: [{name: own, resource: pod/a}, {name: other, resource: pod/a, namespace: b}, \
         {name: wide, resource: node/a, namespace: b}, \
         {name: explicit, ref: {apiVersion: v1, kind: Pod, name: a, namespace: c}}]}",
    );
    stage.settle();
    let place = |step: &str| {
        let plan = stage.plan();
        let position = plan.position(&step.into()).expect("a step");
        match plan.steps()[position].requirement().expect("a requirement").want.question() {
            Question::Objects { scope: Scope::Name { namespace, .. }, .. } => namespace.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(place("own").as_deref(), Some("own"));
    assert_eq!(place("other").as_deref(), Some("b"));
    assert_eq!(place("wide"), None);
    assert_eq!(place("explicit").as_deref(), Some("c"));
}

#[test]
fn only_what_somebody_reads_is_kept_of_an_object() {
    let mut stage = stage(
        r#"{dependencies: [
            {name: bare, resource: configmap/a},
            {name: tested, resource: configmap/b, conditions: [{jsonPath: .data.x, value: "1"}], cel: "self.data.y == '1'"},
            {name: rendered, resource: configmap/c},
            {name: guarded, resource: configmap/d},
            {name: anything, resource: configmap/e}],
          actions: [
            {type: template, template: "kind: {{ .Dependencies.rendered.Object.data.z }}"},
            {type: wait, wait: 1s, condition: {expression: "dependencies.guarded.object.data.w == '1'"}}]}"#,
    );
    stage.settle();
    let base = ["metadata.deletionTimestamp", "metadata.generation"];
    assert_eq!(reads(stage.plan(), "bare"), base);
    assert_eq!(reads(stage.plan(), "tested"), ["data.x", "data.y", "metadata.deletionTimestamp"]);
    assert_eq!(reads(stage.plan(), "rendered"), [&["data.z"][..], &base[..]].concat());
    assert_eq!(reads(stage.plan(), "guarded"), [&["data.w"][..], &base[..]].concat());
    stage
        .edit(|object| object["spec"]["actions"][0]["template"] = json!("{{ toJson .Dependencies }}"))
        .settle();
    assert_eq!(reads(stage.plan(), "anything"), ["*"], "what cannot be known is kept whole");
}

#[test]
fn a_guard_for_another_state_has_what_it_looks_at_kept() {
    let mut stage = stage(
        "{dependencies: [{name: db, resource: deployment/db, state: Exists}], \
         actions: [{type: wait, wait: 1s, condition: {dependency: db, state: Ready}}]}",
    );
    stage.settle();
    assert!(reads(stage.plan(), "db").contains(&"status.availableReplicas".to_owned()));
}

#[test]
fn an_omitted_state_is_existence_where_conditions_say_what_matters() {
    let wanted = |entry: &str| {
        let mut stage = stage(&format!("{{dependencies: [{entry}]}}"));
        stage.customs.push(widget("one.example"));
        stage.settle();
        let step = &stage.plan().steps()[0];
        step.requirement().expect("a requirement").test.state.as_ref().map(ToString::to_string)
    };
    assert_eq!(wanted("{resource: deployment/a}").as_deref(), Some("Ready"));
    assert_eq!(wanted("{resource: widget/a}").as_deref(), Some("Exists"));
    assert_eq!(wanted("{resource: deployment/a, cel: 'true'}").as_deref(), Some("Exists"));
    assert_eq!(wanted("{resource: deployment/a, requireReady: false}").as_deref(), Some("Exists"));
    assert_eq!(wanted("{resource: deployment/a, cel: 'true', state: Available}").as_deref(), Some("Ready"));
    assert_eq!(wanted("{resource: deployment/a, state: Progressing}").as_deref(), Some("Progressing"));
}

#[test]
fn other_clusters_are_asked_where_an_entry_or_the_object_says_so() {
    let mut stage = stage(
        "{cluster: {kubeconfigSecretRef: {name: k}}, dependencies: [
            {name: inherited, resource: pod/a},
            {name: here, resource: pod/a, cluster: {}},
            {name: plane, resource: pod/a, cluster: {controlPlaneRef: {selector: {matchLabels: {a: b}}, requireReady: false}}}]}",
    );
    stage.settle();
    let cluster = |step: &str| {
        let plan = stage.plan();
        let position = plan.position(&step.into()).expect("a step");
        plan.steps()[position].requirement().expect("a requirement").want.via().cluster.clone()
    };
    assert_eq!(
        cluster("inherited"),
        ClusterRef::Kubeconfig {
            namespace: "own".into(),
            name: "k".into(),
            key: String::new(),
            impersonate: None
        }
    );
    assert_eq!(cluster("here"), ClusterRef::Here);
    assert!(matches!(
        cluster("plane"),
        ClusterRef::ControlPlane { select: ControlPlaneSelect::Labels(_), require_ready: false, .. }
    ));
}

#[test]
fn a_profile_teaches_what_ready_means_for_a_foreign_kind() {
    let mut stage = stage("{dependencies: [{resource: widget/a}]}");
    stage.customs.push(widget("one.example"));
    stage.put(
        json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "ReadinessProfile", "metadata": {"name": "w"},
        "spec": {"apiVersion": "one.example/v1", "kind": "Widget", "readyWhen": {"cel": "self.status.ok"},
            "failedWhen": {"conditions": [{"jsonPath": ".status.broken", "value": true}]}}}),
    );
    let object = |status: serde_json::Value| {
        json!({"apiVersion": "one.example/v1", "kind": "Widget", "metadata": {"namespace": "own", "name": "a"},
            "status": status})
    };
    stage.put(object(json!({"ok": false}))).settle();
    assert_eq!(stage.report().blocked[0].reason, "NotReadyByProfile");
    stage.put(object(json!({"ok": false, "broken": true}))).settle();
    assert_eq!(stage.report().phase, Phase::Failed);
    stage.put(object(json!({"ok": true}))).settle();
    assert_eq!(stage.report().phase, Phase::Completed, "what had failed recovers by itself");
}

#[test]
fn a_profile_that_does_not_fit_an_object_says_so_and_decides_nothing() {
    let object = |status: serde_json::Value| {
        json!({"apiVersion": "one.example/v1", "kind": "Widget", "metadata": {"namespace": "own", "name": "a"},
            "status": status})
    };
    for (ready, failed, status, reason, words) in [
        (
            "self.status.ok",
            "self.status.errors > 3",
            json!({"ok": true, "errors": "none"}),
            "ProfileError",
            "failedWhen of the readiness profile for this kind cannot be evaluated: spec.failedWhen.cel: at 1:",
        ),
        (
            "self.status.ok > 1",
            "false",
            json!({"ok": true}),
            "ProfileError",
            "readyWhen of the readiness profile for this kind cannot be evaluated: spec.readyWhen.cel: at 1:",
        ),
        (
            "self.status.ok",
            "self.status.errors > 3",
            json!({}),
            "UndecidedByProfile",
            "is not there yet: self.status.ok is not there yet",
        ),
    ] {
        let mut stage = stage("{dependencies: [{resource: widget/a}]}");
        stage.customs.push(widget("one.example"));
        stage.put(
            json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "ReadinessProfile", "metadata": {"name": "w"},
            "spec": {"apiVersion": "one.example/v1", "kind": "Widget", "readyWhen": {"cel": ready},
                "failedWhen": {"cel": failed}}}),
        );
        stage.put(object(status)).settle();
        let blocked = &stage.report().blocked[0];
        assert_eq!(blocked.reason, reason, "{}", blocked.message);
        assert!(blocked.message.contains(words), "{}", blocked.message);
    }
}

#[test]
fn a_profile_with_a_mistake_is_told_so_with_its_field() {
    let spec = serde_json::from_value(json!({"kind": "Widget", "readyWhen": {"cel": "self.status.("}}))
        .expect("a spec");
    let error = linchpin_doors::readiness_profile::compile(&spec).expect_err("a mistake");
    assert_eq!(error.field.to_string(), "spec.readyWhen.cel");
}

#[test]
fn the_servers_version_is_an_object_with_a_status() {
    let mut stage = stage(
        "{dependencies: [{resource: version/kubernetes, conditions: [\
         {jsonPath: .status.version, operator: gte, value: v1.34.0}, {jsonPath: .minor, operator: lt, value: 99}]}]}",
    );
    stage.settle();
    assert_eq!(stage.report().phase, Phase::Completed);
}

#[test]
fn rights_are_known_before_anything_is_waited_for() {
    let mut stage = stage(
        r#"{dependencies: [{resource: service/a, namespace: b}], actions: [
            {name: made, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}},
            {name: rendered, type: template, template: "apiVersion: one.example/v1\nkind: Widget\nmetadata: {name: '{{ .Now }}'}"},
            {name: ran, type: exec, exec: {target: {kind: Pod, name: p}, command: [a]}}]}"#,
    );
    stage.customs.push(widget("one.example"));
    stage.settle();
    let rights: Vec<String> =
        stage.plan().rights().iter().map(|(_, right, step)| format!("{step}: {right}")).collect();
    assert_eq!(
        rights,
        [
            "service/a: list services a in b",
            "service/a: watch services a in b",
            "service/a: list endpointslices.discovery.k8s.io in b",
            "service/a: watch endpointslices.discovery.k8s.io in b",
            "made: create configmaps in own",
            "made: get configmaps c in own",
            "rendered: create widgets.one.example in own",
            "rendered: get widgets.one.example in own",
            "rendered: patch widgets.one.example in own",
            "ran: get pods p in own",
            "ran: get pods/exec p in own",
            "ran: create pods/exec p in own",
        ]
    );
}

#[test]
fn a_missing_right_blocks_only_the_step_that_needs_it() {
    let mut stage = stage(
        "{dependencies: [{resource: configmap/go}], actions: [\
         {name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}, \
         {name: b, type: create, resource: {apiVersion: v1, kind: Secret, metadata: {name: s}}}]}",
    );
    stage.denied.push("create secrets in own".to_owned());
    stage.settle().put(config_map("own", "go", &json!({}))).settle();
    assert_eq!(stage.done(), ["create ConfigMap own/c"]);
    assert_eq!(stage.report().blocked[0].reason, "MissingRights");
    stage.denied.clear();
    stage.settle();
    assert_eq!(stage.done(), ["create Secret own/s"]);
}

#[test]
fn values_come_from_config_maps_and_secrets_and_are_waited_for() {
    let mut stage = stage(
        r#"{values: {a: own}, valuesFrom: [{configMapRef: {name: c}}, {secretRef: {name: s}},
            {configMapRef: {name: missing, optional: true}}],
          actions: [{type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: out},
            data: {all: "{{ .Values.a }} {{ .Values.b }} {{ .Values.c }}"}}}]}"#,
    );
    stage.put(config_map("own", "c", &json!({"a": "lost", "b": "lost", "c": "map"}))).settle();
    assert!(stage.done().is_empty());
    assert_eq!(stage.report().blocked[0].reason, "ValueMissing");
    stage.put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "own", "name": "s"},
        "data": {"b": "c2VjcmV0"}}));
    stage.settle();
    assert_eq!(stage.bodies[0]["data"]["all"], "own secret map");
    let status = serde_json::to_string(&stage.status()).expect("JSON");
    assert!(!status.contains("secret map") && !status.contains("c2VjcmV0"), "{status}");
}
