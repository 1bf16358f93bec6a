//! Chains through a cluster that is a list of objects.

use serde_json::json;

use super::*;

/// A cluster: all objects there are, and kinds that may not be read.
struct Cluster {
    objects: Vec<Value>,
    hidden: &'static [&'static str],
}

impl Cluster {
    fn of(objects: Vec<Value>) -> Self {
        Self { objects, hidden: &[] }
    }

    fn answer(&self, question: &DescendQuestion) -> DescendAnswer {
        let kind = match question {
            DescendQuestion::Events { .. } => "Event",
            DescendQuestion::Related(RelatedQuery::Objects { gvk, .. } | RelatedQuery::Served { gvk }) => {
                &gvk.kind
            }
        };
        if self.hidden.contains(&kind) {
            return DescendAnswer::NotVisible;
        }
        let fits = |object: &&Value| match question {
            DescendQuestion::Events { uid, .. } => text(object, &["regarding"]) == uid,
            DescendQuestion::Related(RelatedQuery::Served { .. }) => false,
            DescendQuestion::Related(RelatedQuery::Objects { gvk, select, .. }) => {
                text(object, &["kind"]) == gvk.kind
                    && match select {
                        RelatedSelect::Name(name) => text(object, &["metadata", "name"]) == name,
                        RelatedSelect::Labels(labels) => labels
                            .iter()
                            .all(|(key, value)| text(object, &["metadata", "labels", key]) == value),
                    }
            }
        };
        DescendAnswer::Objects(self.objects.iter().filter(fits).cloned().collect())
    }

    /// The way from an object to its cause, one object a line, and what the last one lacks.
    fn chain(&self, start: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut name = start.to_owned();
        while lines.len() < 10 {
            let Some(object) = self.objects.iter().find(|object| text(object, &["metadata", "name"]) == name)
            else {
                lines.push(format!("{name}: not there"));
                break;
            };
            let kind =
                Gvk::from_api_version(text(object, &["apiVersion"]), text(object, &["kind"])).group_kind();
            let asked = questions(&kind, object);
            let answers =
                DescendAnswers(asked.into_iter().map(|one| (one.clone(), self.answer(&one))).collect());
            let Descent { lack, next, hidden } = descend(&kind, false, object, &answers);
            let Some(next) = next else {
                let more = if hidden { " (hidden)" } else { "" };
                lines.push(format!("{} {name}: {}: {}{more}", kind.kind, lack.reason, lack.message));
                break;
            };
            lines.push(format!("{} {name} {:?}", kind.kind, next.relation));
            name = next.place.name;
        }
        lines
    }
}

fn deployment(status: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "d", "generation": 1},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}, "status": status})
}

fn replica_set(name: &str, revision: &str, conditions: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "generation": 1, "labels": {"app": "web"},
            "annotations": {"deployment.kubernetes.io/revision": revision},
            "ownerReferences": [{"uid": "d", "controller": true}]},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"observedGeneration": 1, "conditions": conditions}})
}

fn pod(name: &str, owner: &str, made: &str, status: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app": "web"},
            "creationTimestamp": made, "ownerReferences": [{"uid": owner, "controller": true}]},
        "spec": {}, "status": status})
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"phase": "Pending", "containerStatuses":
        [{"name": "app", "ready": false, "state": {"waiting": {"reason": reason, "message": message}}}]})
}

const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-02T00:00:00Z";

fn in_progress() -> Value {
    json!({"observedGeneration": 1, "updatedReplicas": 2, "replicas": 2})
}

#[test]
fn a_deployment_leads_through_its_newest_replica_set_to_the_worst_pod() {
    let cluster = Cluster::of(vec![
        deployment(&in_progress()),
        replica_set("web-old", "9", &json!([])),
        replica_set("web-new", "10", &json!([])),
        pod("other", "somebody", EARLY, &waiting("CrashLoopBackOff", "not ours")),
        pod("old", "web-old", EARLY, &waiting("CrashLoopBackOff", "of the old one")),
        pod("slow", "web-new", EARLY, &waiting("ContainerCreating", "")),
        pod("late", "web-new", LATE, &waiting("ImagePullBackOff", "later")),
        pod("bad", "web-new", EARLY, &waiting("ImagePullBackOff", "Back-off pulling image \"nginx:9\"")),
    ]);
    assert_eq!(
        cluster.chain("web"),
        [
            "Deployment web Owns",
            "ReplicaSet web-new Runs",
            "Pod bad: ImagePullBackOff: container app: ImagePullBackOff: Back-off pulling image \"nginx:9\"",
        ]
    );
}

#[test]
fn pods_that_cannot_be_made_are_the_cause() {
    let quota = "pods \"web-x\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2";
    let failure =
        json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": quota}]);
    let cluster = Cluster::of(vec![deployment(&in_progress()), replica_set("web-1", "1", &failure)]);
    assert_eq!(
        cluster.chain("web"),
        ["Deployment web Owns".to_owned(), format!("ReplicaSet web-1: FailedCreate: {quota}")]
    );
    // A Job has no such condition: the event says it.
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate", "namespace": "shop", "uid": "j"},
        "spec": {"selector": {"matchLabels": {"job": "j"}}}, "status": {}});
    let warning = |reason: &str, message: &str, at: &str| {
        json!({"kind": "Event", "metadata": {"name": at}, "regarding": "j", "reason": reason, "message": message,
            "lastTimestamp": at})
    };
    let denied = "Error creating: admission webhook \"pods.example.com\" denied the request: no";
    let cluster = Cluster::of(vec![
        job,
        warning("FailedCreate", "long ago", EARLY),
        warning("FailedCreate", denied, LATE),
        warning("Other", "later still", "2026-01-03T00:00:00Z"),
    ]);
    assert_eq!(cluster.chain("migrate"), [format!("Job migrate: FailedCreate: {denied}")]);
}

#[test]
fn a_failed_job_is_the_cause_and_its_pod_says_why() {
    let ended = json!({"phase": "Failed", "containerStatuses": [{"name": "main", "state":
        {"terminated": {"exitCode": 3, "reason": "Error", "message": "connecting\nno such table: users\n"}}}]});
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "migrate", "namespace": "shop", "uid": "j", "labels": {}},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit", "lastTransitionTime": EARLY}]}});
    let cluster = |job: &Value| Cluster::of(vec![job.clone(), pod("migrate-x", "j", EARLY, &ended)]);
    assert_eq!(
        cluster(&job).chain("migrate"),
        [
            "Job migrate: BackoffLimitExceeded: job failed: BackoffLimitExceeded: Job has reached the specified backoff \
          limit (Pod migrate-x: container main: exit code 3: no such table: users)"
        ]
    );
    job["status"] = json!({});
    assert_eq!(
        cluster(&job).chain("migrate"),
        ["Job migrate Runs", "Pod migrate-x: Error: pod failed: container main: Error, exit code 3"]
    );
    job["spec"]["suspend"] = json!(true);
    assert!(cluster(&job).chain("migrate")[0].starts_with("Job migrate: JobSuspended: the job is suspended"));
}

#[test]
fn a_pod_says_what_holds_it() {
    let chain = |status: &Value, spec: Value, others: Vec<Value>| {
        let mut it = pod("it", "nobody", EARLY, status);
        it["spec"] = spec;
        let mut objects = vec![it];
        objects.extend(others);
        Cluster::of(objects).chain("it")
    };
    let unscheduled = |message: &str| json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]});
    assert_eq!(
        chain(
            &json!({"phase": "Pending"}),
            json!({"schedulingGates": [{"name": "linchpin.dev/boot"}]}),
            vec![]
        ),
        ["Pod it: SchedulingGated: held by scheduling gate linchpin.dev/boot"]
    );
    // Our own gate says whose it is.
    let mut held = pod("it", "nobody", EARLY, &json!({"phase": "Pending"}));
    held["spec"] = json!({"schedulingGates": [{"name": "linchpin.dev/boot"}]});
    held["metadata"]["annotations"] = json!({"linchpin.dev/boot": "web,other"});
    assert_eq!(Cluster::of(vec![held]).chain("it"), ["Pod it Uses", "web: not there"]);
    assert_eq!(
        chain(&unscheduled("0/1 nodes are available: 1 Insufficient cpu."), json!({}), vec![]),
        ["Pod it: Unschedulable: not scheduled: 0/1 nodes are available: 1 Insufficient cpu."]
    );
    let claimed = json!({"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]});
    let unbound = unscheduled("pod has unbound immediate PersistentVolumeClaims");
    assert_eq!(chain(&unbound, claimed.clone(), vec![]), ["Pod it Uses", "data: not there"]);
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop", "uid": "c"},
        "spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}});
    assert_eq!(
        chain(&unbound, claimed, vec![claim]),
        [
            "Pod it Uses",
            "PersistentVolumeClaim data: StorageClassNotFound: storage class fast does not exist"
        ]
    );
    let crashed = json!({"phase": "Running", "containerStatuses": [{"name": "app", "ready": false, "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": "up\npanic: no config\n"}}}]});
    assert_eq!(
        chain(&crashed, json!({}), vec![]),
        [
            "Pod it: CrashLoopBackOff: container app: CrashLoopBackOff (last time: Error, exit code 1; 4 restarts): panic: no config"
        ]
    );
    let mount = json!({"kind": "Event", "metadata": {"name": "e"}, "regarding": "it", "reason": "FailedMount",
        "message": "MountVolume.SetUp failed for volume \"c\" : secret \"key\" not found"});
    assert_eq!(
        chain(&waiting("ContainerCreating", ""), json!({}), vec![mount]),
        ["Pod it: FailedMount: MountVolume.SetUp failed for volume \"c\" : secret \"key\" not found"]
    );
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}]}});
    let lost = chain(&json!({"phase": "Running"}), json!({"nodeName": "n1"}), vec![node]);
    assert_eq!(lost[0], "Pod it Uses");
    assert!(lost[1].starts_with("Node n1: ") && lost[1].contains("Kubelet stopped"), "{lost:?}");
}

#[test]
fn a_service_leads_to_the_pods_it_selects() {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}}});
    assert_eq!(
        Cluster::of(vec![service.clone()]).chain("front"),
        ["Service front: NoEndpoints: it selects no pod: no pod has app=web"]
    );
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    assert_eq!(
        Cluster::of(vec![service.clone(), pod("good", "x", EARLY, &ready)]).chain("front"),
        [
            "Service front: NoEndpoints: the pods that it selects are ready, and it has no endpoint: does its targetPort name a port of theirs?"
        ]
    );
    let bad = pod("bad", "x", EARLY, &waiting("CreateContainerConfigError", "configmap \"conf\" not found"));
    assert_eq!(
        Cluster::of(vec![service, bad]).chain("front"),
        [
            "Service front Uses",
            "Pod bad: CreateContainerConfigError: container app: CreateContainerConfigError: configmap \"conf\" not found"
        ]
    );
}

#[test]
fn a_claim_that_waits_for_its_pod_leads_to_it_and_a_provisioner_is_quoted() {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop", "uid": "c"},
        "spec": {"storageClassName": "local"}, "status": {"phase": "Pending"}});
    let class = json!({"kind": "StorageClass", "metadata": {"name": "local"}, "volumeBindingMode": "WaitForFirstConsumer"});
    let mut user = pod(
        "user",
        "x",
        EARLY,
        &json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node fits"}]}),
    );
    user["spec"] = json!({"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]});
    let cluster = Cluster::of(vec![claim.clone(), class.clone(), user]);
    assert_eq!(
        cluster.chain("data"),
        ["PersistentVolumeClaim data Uses", "Pod user: Unschedulable: not scheduled: no node fits"]
    );
    let event = json!({"kind": "Event", "metadata": {"name": "e"}, "regarding": "c", "reason": "ProvisioningFailed", "message": "disk full"});
    assert_eq!(
        Cluster::of(vec![claim, class, event]).chain("data"),
        ["PersistentVolumeClaim data: ProvisioningFailed: disk full"]
    );
}

#[test]
fn what_may_not_be_read_ends_the_chain() {
    let mut cluster = Cluster::of(vec![deployment(&in_progress()), replica_set("web-1", "1", &json!([]))]);
    cluster.hidden = &["Pod", "Event"];
    let chain = cluster.chain("web");
    assert!(chain[1].starts_with("ReplicaSet web-1: ") && chain[1].ends_with("(hidden)"), "{chain:?}");
    cluster.hidden = &["ReplicaSet"];
    assert!(cluster.chain("web")[0].ends_with("(hidden)"));
}

#[test]
fn other_kinds_are_leaves_with_their_own_reason_and_who_deploys_them() {
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop",
        "annotations": {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "prod"}},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NoQuota", "message": "too many"}]}});
    let chain = Cluster::of(vec![widget]).chain("w");
    assert!(
        chain[0].starts_with("Widget w: NoQuota: ")
            && chain[0].ends_with("(deployed by Helm release prod/shop)"),
        "{chain:?}"
    );
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "d"},
        "status": {"conditions": [{"type": "NamesAccepted", "status": "False", "reason": "X", "message": "\"w\" is taken"}]}});
    assert_eq!(
        Cluster::of(vec![definition]).chain("d"),
        ["CustomResourceDefinition d: NamesNotAccepted: \"w\" is taken"]
    );
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old", "deletionTimestamp": EARLY},
        "status": {"phase": "Terminating", "conditions": [
            {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "fine"},
            {"type": "NamespaceFinalizersRemaining", "status": "True", "message": "Some content has finalizers remaining: a in 1"}]}});
    assert_eq!(
        Cluster::of(vec![namespace]).chain("old"),
        ["Namespace old: Terminating: it is being deleted: Some content has finalizers remaining: a in 1"]
    );
}

#[test]
fn a_ready_object_lacks_nothing() {
    let ready = json!({"observedGeneration": 1, "updatedReplicas": 2, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2});
    let chain = Cluster::of(vec![deployment(&ready), replica_set("web-1", "1", &json!([]))]).chain("web");
    assert_eq!(chain, ["Deployment web: AllReplicasAvailable: 2 of 2 replicas available"]);
}
