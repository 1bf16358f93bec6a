//! What is done with an installed operator, so that each of its rights is used and each of its promises tried.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use linchpin_local::Component;
use linchpin_testkit::audit::{Audit, Event};

use super::Installed;
use crate::{chart::text, eventually, operator::linchpin, seconds};

/// How many objects are made at least while operators are replaced.
const LOAD: usize = 20;
/// How many revisions of a bundle are kept.
const KEPT: usize = 10;

/// Who acts in the namespace.
pub(super) fn account(installed: &Installed) {
    installed.apply_text(
        "
{apiVersion: v1, kind: ServiceAccount, metadata: {name: bundler, namespace: shop}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bundler, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: bundler, namespace: shop}]
---
apiVersion: linchpin.dev/v1alpha1
kind: ReadinessProfile
metadata: {name: things}
spec: {group: test.example.com, kind: Thing, readyWhen: {cel: self.status.ok}}
",
    );
}

/// A bundle that changes more often than revisions are kept: the oldest ones go.
pub(super) fn bundles(installed: &Installed) {
    for number in 0..=KEPT {
        installed.apply_text(&format!(
            "
apiVersion: app.example.com/v1alpha1
kind: AppBundle
metadata: {{name: web, namespace: shop}}
spec:
  serviceAccountName: bundler
  groups: [{{name: a, components: [{{name: b, template: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: bundled}}, data: {{number: '{number}'}}}}}}]}}]
"
        ));
        eventually(&format!("number {number} is deployed"), seconds(60), || {
            let found = installed
                .kubectl("get configmap bundled -n shop -o jsonpath={.data.number} --ignore-not-found");
            text(&found.stdout) == number.to_string()
        });
        installed.must("wait --for=condition=Ready ab/web -n shop --timeout=180s");
    }
    eventually("the first revision is gone", seconds(60), || {
        let numbers = installed.must("get bundlerevisions -n shop -o jsonpath={.items[*].spec.revision}");
        let numbers: Vec<&str> = numbers.split(' ').collect();
        numbers.len() == KEPT && !numbers.contains(&"1")
    });
}

/// Objects that take with them what they made: they are marked, and hold their deletion up until it is gone.
pub(super) fn take_with_them(installed: &Installed) {
    installed.apply_text(
        "
{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: takes, namespace: shop}, spec: {serviceAccountName: bundler, deletionPolicy: Delete, actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: taken}}}]}}
---
{apiVersion: tools.kubestellar.io/v1, kind: DependencyGroup, metadata: {name: takes, namespace: shop}, spec: {serviceAccountName: bundler, teardown: Reverse, groups: [{name: a, dependencies: [{name: bundled, resource: configmap/bundled}], actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: grouped}}}]}]}}
",
    );
    installed.must("wait --for=condition=Ready rd/takes dg/takes -n shop --timeout=180s");
    installed.must("get configmap taken grouped -n shop");
    installed.must("delete rd/takes dg/takes -n shop --timeout=180s");
    let left = installed.must("get configmap taken grouped -n shop --ignore-not-found -o name");
    assert_eq!(left, "", "what they made goes before they do");
}

/// Syncs, what is imposed on them, what the cluster is able to do.
pub(super) fn syncs(installed: &Installed) {
    installed.apply_text(
        "
{apiVersion: linchpin.dev/v1alpha1, kind: GlobalDependency, metadata: {name: bundled-first}, spec: {serviceAccount: {namespace: shop, name: bundler}, dependency: {object: {resource: configmap/bundled, namespace: shop}}}}
---
{apiVersion: linchpin.dev/v1alpha1, kind: Capability, metadata: {name: bundles.example.com}, spec: {version: 1.0.0, serviceAccount: {namespace: shop, name: bundler}, dependencies: [{name: bundled, object: {resource: configmap/bundled, namespace: shop}}]}}
---
{apiVersion: linchpin.dev/v1alpha1, kind: Sync, metadata: {name: synced, namespace: shop}, spec: {serviceAccountName: bundler, source: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: synced}}]}}}
",
    );
    for object in ["globaldependency/bundled-first", "capability/bundles.example.com", "sync/synced"] {
        installed.must(&format!("wait --for=condition=Ready {object} -n shop --timeout=180s"));
    }
}

fn boot(name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: core.bootchain-operator.ruicoelho.dev/v1alpha1, kind: BootDependency, metadata: {{name: {name}, namespace: shop}}, \
         spec: {{serviceAccountName: bundler, {spec}}}}}\n---\n"
    )
}

/// A pod's spec that every node here can run.
fn pod(argument: &str) -> String {
    format!(
        "terminationGracePeriodSeconds: 1, containers: [{{name: app, image: 'localhost/workload:1', imagePullPolicy: Never, args: [{argument}]}}]"
    )
}

fn workload(kind: &str, name: &str, more: &str) -> String {
    let app = format!("{{app: {name}}}");
    format!(
        "{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: {name}, namespace: shop}}, spec: {{{more}selector: {{matchLabels: {app}}}, \
         template: {{metadata: {{labels: {app}}}, spec: {{{}}}}}}}}}\n---\n",
        pod("stay")
    )
}

/// Pods of a Deployment and of a Job that are held by the webhook and let go by the controller.
pub(super) fn boots(installed: &Installed) {
    installed.must("label namespace shop linchpin.dev/boot=enabled");
    let gate = |kind: &str, name: &str| {
        boot(
            name,
            &format!(
                "strategy: SchedulingGate, targetRef: {{kind: {kind}, name: {name}}}, dependsOn: [{{resource: configmap/boot-go}}]"
            ),
        )
    };
    installed.apply_text(&[gate("Deployment", "held"), gate("Job", "once")].concat());
    let job = format!(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: once, namespace: shop}}, \
         spec: {{template: {{metadata: {{labels: {{app: once}}}}, spec: {{restartPolicy: Never, {}}}}}}}}}",
        pod("print, done")
    );
    installed.apply_text(&[workload("Deployment", "held", ""), job].concat());
    let gated = || installed.must("get pods -n shop -l linchpin.dev/boot-gate=held -o name").lines().count();
    eventually("both pods are held", seconds(60), || gated() == 2);
    let held = linchpin()
        .args(["check", "--pre-uninstall", "--kubeconfig"])
        .arg(installed.cluster.kubeconfig())
        .output()
        .unwrap();
    assert!(
        text(&held.stdout).contains("✗ no-held-pods: 2 Pods are held by our scheduling gate"),
        "{}",
        text(&held.stdout)
    );
    installed.must("create configmap boot-go -n shop");
    eventually("both are let go", seconds(60), || gated() == 0);
    installed.must("wait --for=condition=Complete job/once -n shop --timeout=180s");
    installed.must("rollout status deployment/held -n shop --timeout=180s");
}

/// The workloads whose pods wait by themselves.
const WAITING: [(&str, &str); 3] = [("Deployment", "web"), ("StatefulSet", "store"), ("DaemonSet", "agent")];

/// Pods that wait by the image of the chart; what a template lost while no operator was there is put back into it.
pub(super) fn templates(installed: &Installed) {
    let wait = |kind: &str, name: &str| {
        boot(
            name,
            &format!(
                "rollout: Immediate, targetRef: {{kind: {kind}, name: {name}}}, dependsOn: [{{service: db, port: 8080, timeout: 10m}}]"
            ),
        )
    };
    installed.apply_text(&WAITING.map(|(kind, name)| wait(kind, name)).concat());
    let all = [
        workload("Deployment", "web", ""),
        workload("StatefulSet", "store", "serviceName: store, "),
        workload("DaemonSet", "agent", ""),
    ];
    installed.apply_text(&all.concat());
    eventually("every workload carries what it waits for", seconds(60), || carry(installed));
    for (_, name) in WAITING {
        eventually(&format!("the pod of {name} waits"), seconds(120), || {
            let waits = format!(
                "get pods -n shop -l app={name} -o jsonpath={{.items[*].status.initContainerStatuses[*].state.running}}"
            );
            installed.must(&waits).contains("startedAt")
        });
    }
    let service = "{apiVersion: v1, kind: Service, metadata: {name: db, namespace: shop}, spec: {selector: {app: db}, ports: [{port: 8080}]}}";
    let pod = format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: db, namespace: shop, labels: {{app: db}}}}, spec: {{{}}}}}",
        pod("serve, '8080'")
    );
    installed.apply_text(&[service, &pod].join("\n---\n"));
    started(installed);

    installed.must("scale deployment/linchpin -n linchpin-system --replicas=0");
    installed
        .must("wait --for=delete pod -n linchpin-system -l app.kubernetes.io/name=linchpin --timeout=60s");
    let lost = r#"{"spec":{"template":{"metadata":{"annotations":null},"spec":{"initContainers":null}}}}"#;
    for (kind, name) in WAITING {
        installed.must(&format!("patch {kind} {name} -n shop --type=merge -p {lost}"));
    }
    // What is created now is repaired whatever its BootDependency says of rollouts, since no pod of it is ready.
    installed.apply_text(
        &[
            boot("late", "dependsOn: [{service: db, port: 8080}]"),
            workload("Deployment", "late", "replicas: 0, "),
        ]
        .concat(),
    );
    assert!(!carry(installed) && !has_init_container(installed, "late"), "nobody is there to say so");
    installed.must("scale deployment/linchpin -n linchpin-system --replicas=2");
    installed.must("rollout status deployment/linchpin -n linchpin-system --timeout=180s");
    eventually("what was lost is put back", seconds(60), || {
        carry(installed) && has_init_container(installed, "late")
    });
    // A template is rolled as soon as somebody leads, and its pods wait only once the API server reaches the webhooks again: a
    // pod between the two is told as missed, and the next rollout repairs what carries no container itself.
    for (kind, name) in WAITING.into_iter().filter(|(kind, _)| *kind != "Deployment") {
        installed.must(&format!("rollout restart {kind}/{name} -n shop"));
    }
    started(installed);
}

fn has_init_container(installed: &Installed, deployment: &str) -> bool {
    let names = "jsonpath={.spec.template.spec.initContainers[*].name}";
    installed.must(&format!("get deployment {deployment} -n shop -o {names}")) == "wait-for-db"
}

/// Whether the Deployment's template has the container, and those of the others the mark that rolls them.
fn carry(installed: &Installed) -> bool {
    let is_marked = |(kind, name): (&str, &str)| {
        let mark = r"jsonpath={.spec.template.metadata.annotations.linchpin\.dev/boot-hash}";
        installed.must(&format!("get {kind} {name} -n shop -o {mark}")).starts_with("v1-")
    };
    has_init_container(installed, "web") && WAITING.into_iter().all(is_marked)
}

/// Everybody starts, each pod after its wait, and everything is said to be as it should.
fn started(installed: &Installed) {
    for (kind, name) in WAITING {
        installed.must(&format!("rollout status {kind}/{name} -n shop --timeout=180s"));
        installed.must(&format!("wait --for=condition=Ready bootdependency/{name} -n shop --timeout=180s"));
        eventually(&format!("{name} is current"), seconds(60), || {
            installed.must(&format!(
                "get bootdependency {name} -n shop -o jsonpath={{.status.workloads[0].state}}"
            )) == "Current"
        });
        eventually(&format!("the pod of {name} is one that waited"), seconds(60), || {
            let waits = "jsonpath={.items[*].status.initContainerStatuses[*].name}";
            installed.must(&format!("get pods -n shop -l app={name} -o {waits}")) == "wait-for-db"
        });
    }
}

/// Under load the leader goes, the kubelet goes and comes, and both operators are replaced: nothing is lost, and nothing
/// done twice.
pub(super) fn replaced_under_load(installed: &Installed, audit: &Audit) {
    let replaced = AtomicBool::new(false);
    let made = thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut made = 0;
            while made < LOAD || !replaced.load(Ordering::Relaxed) {
                installed.apply_text(&format!(
                    "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: load-{made}, namespace: shop}}, \
                     spec: {{serviceAccountName: bundler, actions: [{{name: make, type: create, resource: {{apiVersion: v1, \
                     kind: ConfigMap, metadata: {{name: load-{made}}}}}}}]}}}}"
                ));
                made += 1;
            }
            made
        });
        // Whatever fails below, the load ends: else its thread would be waited for without end.
        let end = EndOfLoad(&replaced);
        let leader = installed.leader();
        installed.must(&format!("delete pod {leader} -n linchpin-system"));
        installed.cluster.restart(Component::Kubelet).unwrap();
        installed.release("upgrade", &["--set", "concurrency=8"]);
        drop(end);
        load.join().unwrap()
    });
    println!("{made} objects were made while operators were replaced");
    installed.must("wait --for=condition=Ready rd --all -n shop --timeout=300s");
    let requests = audit.events();
    for number in 0..made {
        let name = format!("load-{number}");
        let makes = |event: &&Event| {
            (event.verb.as_str(), event.resource.as_str(), event.code) == ("create", "configmaps", 201)
                && event.name == name
        };
        assert_eq!(requests.iter().filter(makes).count(), 1, "ConfigMap {name} is made once");
    }
}

/// Ends the load, also where a test fails.
struct EndOfLoad<'a>(&'a AtomicBool);

impl Drop for EndOfLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
