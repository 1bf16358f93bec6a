//! Whose rights are used: the ServiceAccount's, for everything a user directs.

use crate::{
    bare,
    world::{World, scenario, world},
};
use linchpin_testkit::{
    Api, OPERATOR,
    audit::{Audit, assert_before},
};
use serde_json::json;

const COPY: &str = "
    serviceAccountName: nobody
    dependencies: [{name: source, resource: configmap/source}]
    actions:
    - {name: copy, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: copy}}}
";

#[test]
fn a_service_account_without_rights_is_told_which_it_lacks_and_nothing_happens_until_it_has_them() {
    let scenario = scenario("no-rights");
    scenario.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: nobody}}");
    scenario.config_map("source", "");
    scenario.resource_dependency("rd", COPY);
    let blocked = scenario.until("says what is missing", "ResourceDependency", "rd", |object| {
        let blockers = object["status"]["blockedBy"].to_string();
        blockers.contains("Forbidden") || blockers.contains("MissingRights")
    });
    let text = blocked["status"].to_string();
    assert!(text.contains("nobody") && text.contains("configmaps"), "{:#}", blocked["status"]);
    assert!(text.contains("list") || text.contains("watch"), "{:#}", blocked["status"]);
    assert!(scenario.audit.user_writes("no-rights").is_empty());

    scenario.apply(
        "
        {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: nobody}, rules: [
          {apiGroups: [''], resources: [configmaps], resourceNames: [source], verbs: [list, watch]},
          {apiGroups: [''], resources: [configmaps], resourceNames: [copy], verbs: [get]},
          {apiGroups: [''], resources: [configmaps], verbs: [create]}]}
---
        {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: nobody},
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: nobody},
         subjects: [{kind: ServiceAccount, name: nobody, namespace: $NS}]}
        ",
    );
    scenario.annotate("ResourceDependency", "rd", "linchpin.dev/requested-at", "now");
    scenario.completed("rd");
    let allowed = scenario.audit.last_by_others("rolebindings", "no-rights", "nobody");
    assert_before(&allowed, &scenario.audit.first_write("configmaps", "no-rights", "copy"));
    let writes = scenario.audit.user_writes("no-rights");
    assert!(
        writes
            .iter()
            .all(|event| event.acting_as.as_deref() == Some("system:serviceaccount:no-rights:nobody"))
    );
}

#[test]
fn a_missing_right_holds_only_what_needs_it_and_is_told_before_anything_is_waited_for() {
    let scenario = scenario("some-rights");
    scenario.resource_dependency(
        "rd",
        "
        dependencies: [{name: gate, resource: configmap/gate}]
        actions:
        - {name: allowed, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: allowed}}}
        - {name: denied, type: create, resource: {apiVersion: v1, kind: ServiceAccount, metadata: {name: denied}}}
        - {name: last, priority: 1, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: last}}}
        ",
    );
    let told = scenario.until("says what will be missing", "ResourceDependency", "rd", |object| {
        object["status"].to_string().contains("create serviceaccounts")
    });
    assert_eq!(told["status"]["phase"], "Waiting", "{:#}", told["status"]);
    scenario.config_map("gate", "");
    scenario.appears("allowed");
    scenario.passes("meanwhile");
    scenario.allow("more", "[{apiGroups: [''], resources: [serviceaccounts], verbs: [get, create, patch]}]");
    scenario.annotate("ResourceDependency", "rd", "linchpin.dev/requested-at", "now");
    scenario.completed("rd");
    assert!(scenario.get("ServiceAccount", "denied").is_some());
    // It comes after what is held.
    let allowed = scenario.audit.last_by_others("rolebindings", "some-rights", "more");
    assert_before(&allowed, &scenario.audit.first_write("configmaps", "some-rights", "last"));
}

#[test]
fn another_namespace_is_closed_without_a_role_binding_there() {
    let vault = scenario("vault");
    vault.apply("{apiVersion: v1, kind: Secret, metadata: {name: gold}, stringData: {value: gold-bars-41}}");
    let thief = scenario("thief");
    thief.resource_dependency(
        "rd",
        "
        dependencies: [{name: gold, resource: secret/gold, namespace: vault}]
        actions:
        - {type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: loot}, data: {gold: '{{ .Dependencies.gold.Object.data.value }}'}}}
        ",
    );
    thief.resource_dependency(
        "writer",
        "actions: [{type: create, resource: {apiVersion: v1, kind: Secret, metadata: {name: planted, namespace: vault}}}]",
    );
    thief.until("says no", "ResourceDependency", "rd", |object| {
        object["status"].to_string().contains("Forbidden")
            || object["status"].to_string().contains("MissingRights")
    });
    thief.until("says no", "ResourceDependency", "writer", |object| {
        object["status"].to_string().contains("Forbidden")
            || object["status"].to_string().contains("MissingRights")
    });
    thief.passes("meanwhile");
    assert!(!thief.has("loot") && vault.get("Secret", "planted").is_none());
    let took = vault.audit.events().into_iter().filter(|event| {
        event.is_by_operator()
            && event.namespace == "vault"
            && event.resource == "secrets"
            && event.code < 300
    });
    assert_eq!(took.collect::<Vec<_>>(), []);

    vault.apply(
        "
        {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: friend},
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: actor},
         subjects: [{kind: ServiceAccount, name: actor, namespace: thief}]}
        ",
    );
    thief.annotate("ResourceDependency", "rd", "linchpin.dev/requested-at", "now");
    thief.completed("rd");
}

#[test]
fn a_missing_service_account_is_named_and_waited_for() {
    let scenario = scenario("no-account");
    scenario.config_map("source", "");
    scenario.resource_dependency("rd", &COPY.replace("nobody", "later"));
    let blocked = scenario.blocked("rd", "IdentityGone");
    assert!(blocked["status"].to_string().contains("later"));
    assert!(scenario.audit.user_writes("no-account").is_empty());
    scenario.apply(
        "
        {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: later},
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: actor},
         subjects: [{kind: ServiceAccount, name: later, namespace: $NS}]}
---
        {apiVersion: v1, kind: ServiceAccount, metadata: {name: later}}
        ",
    );
    scenario.completed("rd");
}

#[test]
fn everything_a_user_directs_is_impersonated_and_nothing_else_is_done_by_the_operator_itself() {
    let scenario = scenario("impersonated");
    scenario.config_map("source", "one");
    scenario.resource_dependency(
        "rd",
        "
        dependencies: [{name: source, resource: configmap/source}, {resource: deployment/web, optional: true}]
        valuesFrom: [{configMapRef: {name: source}}]
        actions:
        - {name: a, priority: 1, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
        - {name: b, priority: 2, type: apply, apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}
        - {name: c, priority: 3, type: patch, patch: {target: {apiVersion: v1, kind: ConfigMap, name: a}, patchType: merge, patch: '{\"data\": {\"x\": \"y\"}}'}}
        - {name: d, priority: 4, type: delete, delete: {target: {apiVersion: v1, kind: ConfigMap, name: b}}}
        ",
    );
    scenario.completed("rd");
    let verbs: Vec<_> = scenario
        .audit
        .user_writes("impersonated")
        .into_iter()
        .map(|event| (event.verb, event.name))
        .collect();
    let expected = [("create", "a"), ("patch", "b"), ("patch", "a"), ("delete", "b")];
    assert_eq!(verbs, expected.map(|(verb, name)| (verb.to_owned(), name.to_owned())));
    let mine = scenario.audit.events().into_iter().filter(|event| {
        event.is_by_operator() && event.namespace == "impersonated" && !event.is_the_operators_own()
    });
    for event in mine {
        assert_eq!(event.acting_as.as_deref(), Some(scenario.actor().as_str()), "{event:?}");
    }
    // All that any test has done so far.
    let everything = Audit::from_the_beginning(&world().cluster.audit_log());
    assert_eq!(everything.overreach(), []);
}

#[test]
fn the_witness_accuses_an_operator_that_acts_as_an_account_of_another_namespace() {
    let world = World::start(&bare(), &["--leader-elect=false"]);
    let (own, other) = (world.scenario("witness-own"), world.scenario("witness-other"));
    own.resource_dependency("rd", "{dependencies: [{name: a, resource: configmap/never}]}");
    own.blocked("rd", "NotFound");
    assert_eq!(own.audit.overreach(), [], "what the operator does by itself");
    // Its own credential, used for what it never does.
    let kubeconfig = std::fs::read_to_string(world.cluster.kubeconfig_for(OPERATOR, None).unwrap()).unwrap();
    let stolen = tempfile::NamedTempFile::new().unwrap();
    let as_other = format!("  user:\n    as: {}\n", other.actor());
    std::fs::write(stolen.path(), kubeconfig.replacen("  user:\n", &as_other, 1)).unwrap();
    let manager = "fieldManager=linchpin%3AResourceDependency%3Awitness-own%2Frd%3Amake";
    let path = format!("/api/v1/namespaces/witness-other/configmaps/treasure?{manager}");
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "treasure"}});
    let thief = Api::connect(stolen.path());
    thief.request(&http::Method::PATCH, &path, "application/apply-patch+yaml", Some(&body)).unwrap();
    let told: Vec<(String, String)> = own
        .audit
        .overreach()
        .into_iter()
        .map(|accusation| (accusation.event.name.clone(), accusation.why))
        .collect();
    let why = "ResourceDependency witness-own/rd directs it, as an account of namespace witness-other";
    assert_eq!(told, [("treasure".to_owned(), why.to_owned())]);
}
