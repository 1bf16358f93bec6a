//! Tenancy: whom the operator may not act for is told so, with the line that changes it, and nothing of it is read.

use crate::{bare, eventually, needed, operator::Operator, seconds};
use linchpin_local::Cluster;
use linchpin_operator::{
    rights::manifests::{Installation, Tenants},
    settings::DoorName,
};
use linchpin_testkit::{
    Api, OPERATOR, Scenario,
    audit::{Audit, Event},
    condition, grant, installation,
};
use serde_json::{Value, json};

const MAKES: &str = "actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]";

/// The requests of the operator, in its own name and in others'.
pub(crate) fn own_requests(audit: &Audit, is_operator: impl Fn(&Event) -> bool) -> Vec<Event> {
    audit.events().into_iter().filter(is_operator).collect()
}

fn start(installation: &Installation, flags: &[&str]) -> (Cluster, Api, Operator) {
    let cluster = Cluster::start(&bare()).expect("a local Kubernetes");
    let api = Api::connect(&cluster.kubeconfig());
    grant(&api, installation);
    let kubeconfig = cluster.kubeconfig_for(OPERATOR, None).unwrap();
    let operator = Operator::start("operator", &kubeconfig, flags);
    eventually("the operator is ready", seconds(60), || operator.is_ready());
    (cluster, api, operator)
}

/// One line of the log for a write: who ordered it, what was done to what, as whom, how it ended, how long it took.
#[track_caller]
fn leaves_a_trail(log: &str) {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let fields = |line: Value| if line["fields"].is_object() { line["fields"].clone() } else { line };
    let trail: Vec<Value> = lines.filter(|line| line["target"] == "linchpin::trail").map(fields).collect();
    let made: Vec<&Value> =
        trail.iter().filter(|line| line["object"] == "ResourceDependency shop/makes").collect();
    let [made] = made.as_slice() else { panic!("one write, one line: {trail:#?}") };
    for (field, word) in [
        ("step", "make"),
        ("verb", "create"),
        ("target_object", "configmap shop/made"),
        ("identity", "system:serviceaccount:shop:actor"),
        ("result", "created"),
    ] {
        assert_eq!(made[field], word, "{made:#}");
    }
    assert!(made["took_ms"].is_u64() && !made.to_string().contains("apiVersion"), "{made:#}");
}

#[test]
fn a_namespace_is_served_from_the_moment_on_at_which_the_line_in_its_objects_was_run() {
    let none = Installation { tenants: Tenants::Namespaces(Vec::new()), ..installation() };
    let role = format!("--tenant-role={}", none.tenant_role());
    let (cluster, api, operator) = start(&none, &[&role]);
    let scenario = Scenario::begin(&api, Audit::from_the_beginning(&cluster.audit_log()), "shop");
    scenario.config_map("gate", "");
    scenario.resource_dependency("makes", MAKES);
    scenario.resource_dependency("waits", "dependencies: [{resource: configmap/gate}]");
    scenario.app_bundle(
        "bundle",
        "groups: [{name: a, components: [{name: b, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: bundled}}}]}]",
    );
    let line = format!(
        "kubectl create rolebinding {role} -n shop --clusterrole={role} --user={OPERATOR}",
        role = none.tenant_role()
    );
    for (kind, name) in
        [("ResourceDependency", "makes"), ("ResourceDependency", "waits"), ("AppBundle", "bundle")]
    {
        let closed = scenario.until("says that it is no tenant", kind, name, |object| {
            condition(object, "Ready")["reason"] == "NotATenant"
        });
        let message = condition(&closed, "Ready")["message"].as_str().unwrap();
        assert!(message.ends_with(&line), "{message}");
        assert_eq!(condition(&closed, "Ready")["status"], "False");
    }
    // Nothing was read but the objects of ours, and nothing was even tried that is not allowed.
    let ours: Vec<_> = scenario.audit.events().into_iter().filter(Event::is_by_operator).collect();
    let read: Vec<_> = ours
        .iter()
        .filter(|event| event.namespace == "shop" && !event.is_about_ours() && event.resource != "events")
        .collect();
    assert!(read.is_empty(), "{read:#?}");
    assert!(ours.iter().all(|event| event.acting_as.is_none()));

    let arguments: Vec<&str> = line.split(' ').skip(1).collect();
    assert!(cluster.kubectl().args(arguments).output().unwrap().status.success());
    eventually("it is served", seconds(15), || {
        scenario.get("ResourceDependency", "makes").unwrap()["status"]["phase"] == "Completed"
    });
    scenario.completed("waits");
    scenario.deployed("bundle");
    assert!(scenario.has("made") && scenario.has("bundled"));
    leaves_a_trail(&operator.log());
    scenario.apply(
        "
{apiVersion: tools.kubestellar.io/v1, kind: DependencyGroup, metadata: {name: group}, spec: {serviceAccountName: actor, groups: [{name: a, dependencies: [{name: gate, resource: configmap/gate}]}]}}
---
{apiVersion: linchpin.dev/v1alpha1, kind: ReadinessProfile, metadata: {name: things}, spec: {group: test.example.com, kind: Thing, readyWhen: {cel: 'self.status.ok'}}}
---
{apiVersion: linchpin.dev/v1alpha1, kind: Sync, metadata: {name: synced}, spec: {serviceAccountName: actor, source: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: synced}}]}}}
---
{apiVersion: linchpin.dev/v1alpha1, kind: GlobalDependency, metadata: {name: first}, spec: {serviceAccount: {namespace: shop, name: actor}, dependency: {object: {resource: configmap/gate, namespace: shop}}}}
---
{apiVersion: linchpin.dev/v1alpha1, kind: Capability, metadata: {name: gate.example.com}, spec: {version: 1.0.0, serviceAccount: {namespace: shop, name: actor}, dependencies: [{name: gate, object: {resource: configmap/gate, namespace: shop}}]}}
",
    );
    scenario.synced("synced");
    for (kind, name) in [("GlobalDependency", "first"), ("Capability", "gate.example.com")] {
        eventually(&format!("{kind} is looked at"), seconds(60), || {
            api.get(kind, "", name).unwrap_or_default()["status"]["observedGeneration"] == 1
        });
    }
    scenario.phase("DependencyGroup", "group", "Completed");
    eventually("the profile is looked at", seconds(60), || {
        api.get("ReadinessProfile", "", "things").unwrap_or_default()["status"]["observedGeneration"] == 1
    });
    // What takes with it what it made is marked; of a bundle's history the last ten are kept.
    scenario.resource_dependency(
        "takes",
        &format!("deletionPolicy: Delete\n{}", MAKES.replace("name: made", "name: taken")),
    );
    scenario.completed("takes");
    scenario.apply("{apiVersion: tools.kubestellar.io/v1, kind: DependencyGroup, metadata: {name: takes}, spec: {serviceAccountName: actor, teardown: Reverse, groups: [{name: a, dependencies: [{name: gate, resource: configmap/gate}], actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: grouped}}}]}]}}");
    scenario.phase("DependencyGroup", "takes", "Completed");
    for number in 0..11 {
        let template = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bundled"}, "data": {"number": number.to_string()}});
        scenario.merge("AppBundle", "bundle", &json!({"spec": {"groups": [{"name": "a", "components": [{"name": "b", "template": template}]}]}}));
        eventually("it is written", seconds(30), || {
            scenario.data("bundled", "number") == Some(number.to_string())
        });
        scenario.deployed("bundle");
    }
    // What must be deleted with it needs the operator, and a look at its namespace.
    scenario.delete("AppBundle", "bundle");
    eventually("the bundle is gone", seconds(60), || scenario.get("AppBundle", "bundle").is_none());
    let own = own_requests(&scenario.audit, Event::is_by_operator);
    let doors = [DoorName::ResourceDependency, DoorName::AppBundle, DoorName::Sync];
    let unused = needed::unused(&own, needed::rules(&doors));
    assert!(unused.is_empty(), "rights that nothing needed: {unused:#?}");
    // Any rule that is taken away makes a request fail; those of BootDependency are tried by its own test.
    let removable = needed::removable(&own, |row| row.door.is_none_or(|door| doors.contains(&door)));
    assert_eq!(removable, [] as [String; 0]);
    let refused: Vec<_> = scenario
        .audit
        .events()
        .into_iter()
        .filter(|event| event.is_by_operator() && event.code == 403)
        .collect();
    assert!(refused.is_empty(), "the operator asked for what it may not: {refused:#?}");
}

#[test]
fn a_tenant_that_goes_is_not_held_by_what_the_operator_may_not_do_any_more() {
    let one = Installation { tenants: Tenants::Namespaces(vec!["leaves".to_owned()]), ..installation() };
    let cluster = Cluster::start(&linchpin_local::ClusterOptions::default()).expect("a local Kubernetes");
    let api = Api::connect(&cluster.kubeconfig());
    api.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leaves"}})).unwrap();
    grant(&api, &one);
    let kubeconfig = cluster.kubeconfig_for(OPERATOR, None).unwrap();
    let operator = Operator::start("operator", &kubeconfig, &[]);
    eventually("the operator is ready", seconds(60), || operator.is_ready());
    let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), "leaves");
    scenario.resource_dependency("rd", &format!("deletionPolicy: Delete\n{MAKES}"));
    scenario.completed("rd");
    // The binding goes first, as it may while a namespace is emptied.
    scenario.delete("RoleBinding", &one.tenant_role());
    api.delete("Namespace", "", "leaves");
    eventually("the namespace is gone", seconds(60), || api.get("Namespace", "", "leaves").is_none());
}

#[test]
fn with_watched_namespaces_and_one_door_roles_there_are_enough() {
    let few = Installation {
        doors: "resourceDependency".parse().unwrap(),
        watched: "mine".parse().unwrap(),
        tenants: Tenants::Namespaces(vec!["mine".to_owned()]),
        ..installation()
    };
    let cluster = Cluster::start(&bare()).expect("a local Kubernetes");
    let api = Api::connect(&cluster.kubeconfig());
    api.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})).unwrap();
    grant(&api, &few);
    let kubeconfig = cluster.kubeconfig_for(OPERATOR, None).unwrap();
    let flags = ["--watch-namespaces=mine", "--doors=resourceDependency"];
    let operator = Operator::start("operator", &kubeconfig, &flags);
    eventually("the operator is ready", seconds(60), || operator.is_ready());
    let scenario = Scenario::begin(&api, Audit::from_the_beginning(&cluster.audit_log()), "mine");
    scenario.app_bundle(
        "ignored",
        "groups: [{name: a, components: [{name: b, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}]}]",
    );
    scenario.resource_dependency("rd", MAKES);
    scenario.completed("rd");
    let bundle = scenario.get("AppBundle", "ignored").unwrap();
    assert_eq!(bundle["status"]["observedGeneration"], -1, "its door is closed");
    let refused: Vec<_> = scenario
        .audit
        .events()
        .into_iter()
        .filter(|event| event.is_by_operator() && event.code == 403)
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}
