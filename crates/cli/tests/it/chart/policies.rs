//! The admission policies of the chart, on a real API server.

use std::process::Output;

use linchpin_local::Cluster;
use linchpin_testkit::Api;

use super::{rendered, rendered_as, text};
use crate::{bare, tree::feed};

struct Stage {
    cluster: Cluster,
}

/// A cluster with our definitions, the policies of the chart with these values, and a user `ann` who may edit `shop`.
fn stage(values: &[&str]) -> Stage {
    let cluster = Cluster::start(&bare()).expect("a local Kubernetes");
    linchpin_testkit::grant_operator(&Api::connect(&cluster.kubeconfig()));
    let policies = rendered(&[&["--show-only", "templates/policies.yaml"], values].concat());
    feed(cluster.kubectl().args(["apply", "-f", "-"]), policies.as_bytes());
    let stage = Stage { cluster };
    for line in [
        "create namespace shop",
        "create serviceaccount builder -n shop",
        "create clusterrole ours --verb=* --resource=resourcedependencies.tools.kubestellar.io \
         --resource=resourcedependencies.tools.kubestellar.io/status --resource=bundlerevisions.app.example.com",
        "create rolebinding ann -n shop --clusterrole=ours --user=ann",
        "create clusterrolebinding operator-of-the-chart --clusterrole=ours --serviceaccount=linchpin-system:linchpin",
    ] {
        let output = stage.kubectl(line);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    }
    stage
}

impl Stage {
    fn kubectl(&self, line: &str) -> Output {
        self.cluster.kubectl().args(line.split_whitespace()).output().unwrap()
    }

    /// Applies a ResourceDependency as somebody; what the server says if it refuses.
    fn write(&self, user: &str, spec: &str) -> Option<String> {
        let manifest = format!(
            "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: rd, namespace: shop}}, spec: {spec}}}"
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), manifest).unwrap();
        let path = file.path().to_str().unwrap();
        let output = self.cluster.kubectl().args(["apply", "--as", user, "-f", path]).output().unwrap();
        (!output.status.success()).then(|| text(&output.stderr))
    }
}

/// Tries something until the server, which learns of policies a little later, says what it should.
fn until(what: &str, holds: impl Fn() -> bool) {
    crate::eventually(what, crate::seconds(30), holds);
}

#[test]
fn who_may_not_use_the_service_account_may_not_write_objects_that_act_as_it() {
    let stage = stage(&["--set", "policy.requireUse=true"]);
    until("ann is refused", || {
        let _ = stage.kubectl("delete resourcedependency rd -n shop --ignore-not-found");
        stage
            .write("ann", "{serviceAccountName: builder}")
            .is_some_and(|said| said.contains("you may not use ServiceAccount shop/builder"))
    });
    let said = stage.write("ann", "{}").unwrap();
    assert!(said.contains("you may not use ServiceAccount shop/default"), "{said}");
    // kubectl does not know the verb, and would refuse to make such a role itself.
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: use, namespace: shop}, \
                rules: [{apiGroups: [''], resources: [serviceaccounts], resourceNames: [builder], verbs: [use]}]}";
    feed(stage.cluster.kubectl().args(["apply", "-f", "-"]), role.as_bytes());
    assert!(stage.kubectl("create rolebinding use -n shop --role=use --user=ann").status.success());
    assert_eq!(stage.write("ann", "{serviceAccountName: builder}"), None);
    let said = stage.write("ann", "{serviceAccountName: default}").unwrap();
    assert!(said.contains("shop/default"), "a change of the spec is asked about: {said}");

    // Others, who may not use it, still write status and metadata, and delete.
    assert!(stage.kubectl("create rolebinding bob -n shop --clusterrole=ours --user=bob").status.success());
    let annotate = "annotate resourcedependency rd -n shop a=b --as bob";
    assert!(stage.kubectl(annotate).status.success());
    let finalizer = r#"patch resourcedependency rd -n shop --type=merge -p {"metadata":{"finalizers":["a.example/b"]}} --as bob"#;
    assert!(stage.kubectl(finalizer).status.success());
    let status = r#"patch resourcedependency rd -n shop --subresource=status --type=merge -p {"status":{"phase":"Waiting"}} --as system:serviceaccount:linchpin-system:linchpin"#;
    let output = stage.kubectl(status);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(stage.kubectl("delete resourcedependency rd -n shop --wait=false --as bob").status.success());
    let release =
        r#"patch resourcedependency rd -n shop --type=merge -p {"metadata":{"finalizers":null}} --as bob"#;
    assert!(stage.kubectl(release).status.success());
    until("it is gone", || !stage.kubectl("get resourcedependency rd -n shop").status.success());
}

#[test]
fn only_the_operator_writes_a_status_and_a_revision_and_everybody_may_delete() {
    let stage = stage(&[]);
    asks_for_a_drain(&stage);
    assert_eq!(stage.write("ann", "{}"), None);
    let patch = |user: &str| {
        let line = format!(
            r#"patch resourcedependency rd -n shop --subresource=status --type=merge -p {{"status":{{"phase":"Completed"}}}} --as {user}"#
        );
        let output = stage.kubectl(&line);
        (!output.status.success()).then(|| text(&output.stderr))
    };
    until("ann is refused", || {
        patch("ann").is_some_and(|said| said.contains("only the operator writes the status"))
    });
    assert_eq!(patch("system:serviceaccount:linchpin-system:linchpin"), None);
    let revision = "{apiVersion: app.example.com/v1alpha1, kind: BundleRevision, metadata: {name: r, namespace: shop}, \
                    spec: {bundle: b, revision: 1, generation: 1, changedAt: 2026-01-01T00:00:00Z, result: x, digest: x, snapshot: {}}}";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), revision).unwrap();
    let create = |user: &str| {
        let manifest = file.path().to_str().unwrap();
        let output = stage
            .cluster
            .kubectl()
            .args(["create", "--validate=false", "--as", user, "-f", manifest])
            .output()
            .unwrap();
        text(&output.stderr)
    };
    let said = create("ann");
    assert!(said.contains("only the operator writes"), "{said}");
    let said = create("system:serviceaccount:linchpin-system:linchpin");
    assert!(!said.contains("only the operator writes"), "{said}");
    let annotate = |user: &str| {
        text(
            &stage
                .kubectl(&format!("annotate bundlerevision r -n shop --overwrite a={user} --as {user}"))
                .stderr,
        )
    };
    let said = annotate("ann");
    assert!(
        said.contains("only the operator writes"),
        "what a revision is known by is in its annotations: {said}"
    );
    assert_eq!(annotate("system:serviceaccount:linchpin-system:linchpin"), "");
    // While an object goes nobody else says what is still there to be taken down either.
    let held = r#"patch resourcedependency rd -n shop --type=merge -p {"metadata":{"finalizers":["example.com/held"]}}"#;
    assert!(stage.kubectl(held).status.success());
    let delete = "delete resourcedependency rd -n shop --wait=false --as ann";
    assert!(stage.kubectl(delete).status.success());
    assert!(patch("ann").is_some_and(|said| said.contains("only the operator writes the status")));
    assert_eq!(patch("system:serviceaccount:linchpin-system:linchpin"), None);
    let release =
        r#"patch resourcedependency rd -n shop --type=merge -p {"metadata":{"finalizers":null}} --as ann"#;
    assert!(stage.kubectl(release).status.success(), "what goes may go");
}

/// Two releases that watch different namespaces: neither forbids the other's operator what it is there for.
#[test]
fn the_policies_of_a_release_are_about_the_namespaces_that_it_watches() {
    let only = ["--show-only", "templates/policies.yaml", "--set"];
    let first = "watchNamespaces={shop},policy.requireUse=true,consist.enabled=true,consist.adapters={demo},consist.namespaces={shop}";
    let stage = stage(&["--set", first]);
    let second = rendered_as(
        "second",
        "second-system",
        &[&only[..], &["watchNamespaces={stock},policy.requireUse=true"]].concat(),
    );
    feed(stage.cluster.kubectl().args(["apply", "-f", "-"]), second.as_bytes());
    let operators = ["linchpin-system:linchpin", "second-system:second-linchpin"]
        .map(|name| format!("system:serviceaccount:{name}"));
    for line in [
        "create namespace stock",
        "create clusterrole statuses --verb=get,patch --resource=readinessprofiles.linchpin.dev/status,\
         readinessprofiles.linchpin.dev,consistbindings.linchpin.dev,consistbindings.linchpin.dev/status",
        "create clusterrolebinding other --clusterrole=ours --user=system:serviceaccount:second-system:second-linchpin",
        "create clusterrolebinding statuses --clusterrole=statuses --user=system:serviceaccount:linchpin-system:linchpin \
         --user=system:serviceaccount:second-system:second-linchpin --user=ann \
         --user=system:serviceaccount:linchpin-system:linchpin-consist",
    ] {
        let output = stage.kubectl(line);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    }
    let objects = ["shop", "stock"].map(|namespace| {
        format!(
            "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: rd, namespace: {namespace}}}, spec: {{}}}}"
        )
    });
    let others = "{apiVersion: linchpin.dev/v1alpha1, kind: ReadinessProfile, metadata: {name: things}, spec: {group: test.example.com, kind: Thing, readyWhen: {cel: self.status.ok}}}";
    let binding = "{apiVersion: linchpin.dev/v1alpha1, kind: ConsistBinding, metadata: {name: web, namespace: shop}, spec: {adapter: demo, key: Service/shop/web, finalizer: f.example.com/web, followPodOpsLifecycle: false, employee: {apiVersion: v1, kind: Pod}, employer: {apiVersion: v1, kind: Service, name: web, uid: u}}}";
    let all = [objects[0].as_str(), objects[1].as_str(), others, binding].join("\n---\n");
    feed(stage.cluster.kubectl().args(["apply", "-f", "-"]), all.as_bytes());
    let refused = |object: &str, user: &str| {
        let line = format!(
            r#"patch {object} --subresource=status --type=merge -p {{"status":{{"observedGeneration":1}}}} --as {user}"#
        );
        let output = stage.kubectl(&line);
        let said = text(&output.stderr);
        assert!(output.status.success() || said.contains("only the operator writes"), "{line}: {said}");
        !output.status.success()
    };
    for (own, namespace) in [(0, "shop"), (1, "stock")] {
        let object = format!("resourcedependency rd -n {namespace}");
        until("the other one is refused", || refused(&object, &operators[1 - own]));
        assert!(!refused(&object, &operators[own]), "{namespace}");
    }
    for operator in &operators {
        assert!(!refused("readinessprofile things", operator), "both look at what belongs to nobody");
    }
    let binding = "consistbinding web -n shop";
    assert!(refused(binding, "ann") && !refused(binding, &format!("{}-consist", operators[0])));
}

/// Who may change a pod but not delete it may not ask `linchpin consist` to do so, neither directly nor through the status.
fn asks_for_a_drain(stage: &Stage) {
    let values = ["consist.enabled=true", "consist.adapters={demo}", "consist.namespaces={shop}"];
    let set: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
    let policy = rendered(&[&["--show-only", "templates/consist-policy.yaml"], set.as_slice()].concat());
    feed(stage.cluster.kubectl().args(["apply", "-f", "-"]), policy.as_bytes());
    for line in [
        "create role changes -n shop --verb=get,patch --resource=pods,pods/status",
        "create rolebinding changes -n shop --role=changes --user=ann",
        "create role deletes -n shop --verb=get,patch,delete --resource=pods",
        "create rolebinding deletes -n shop --role=deletes --user=bob",
        "create serviceaccount default -n shop",
        "run web -n shop --image=web --restart=Never",
    ] {
        let output = stage.kubectl(line);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    }
    let said = |line: &str| {
        let output = stage.kubectl(line);
        (!output.status.success()).then(|| text(&output.stderr))
    };
    let label = "label pod web -n shop --overwrite collaset.kusionstack.io/to-delete";
    until("ann is refused", || {
        let _ = stage.kubectl("label pod web -n shop collaset.kusionstack.io/to-delete-");
        said(&format!("{label}=1 --as ann"))
            .is_some_and(|said| said.contains("you may not delete pod shop/web"))
    });
    let status = r#"patch pod web -n shop --subresource=status --type=merge -p {"metadata":{"labels":{"collaset.kusionstack.io/to-delete":"1"}}} --as ann"#;
    assert!(said(status).is_some_and(|said| said.contains("you may not delete pod")), "through the status");
    for annotation in ["linchpin.dev/evict-requested", "linchpin.dev/delete-requested-by"] {
        let line = format!("annotate pod web -n shop {annotation}=1 --as ann");
        assert!(said(&line).is_some_and(|said| said.contains("you may not delete pod")), "{annotation}");
    }
    assert_eq!(said("label pod web -n shop tier=front --as ann"), None, "other labels are nobody's concern");
    assert_eq!(said(&format!("{label}=2 --as bob")), None);
    assert_eq!(said("label pod web -n shop tier=back --overwrite --as ann"), None, "what is there may stay");
    assert!(said(&format!("{label}=3 --as ann")).is_some(), "nor may she ask again");
    assert_eq!(
        said("label pod web -n shop collaset.kusionstack.io/to-delete- --as ann"),
        None,
        "undoing is free"
    );
}
