//! `linchpin rbac`: what is printed, without a cluster. That it is enough is shown where `explain` advises it.

use crate::{
    eventually,
    operator::linchpin,
    seconds,
    tree::{apply, feed, looks},
};
use std::path::PathBuf;

fn example(path: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    folder.join(path).to_str().unwrap().to_owned()
}

fn printed(arguments: &[&str]) -> String {
    let output = linchpin().arg("rbac").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const SHOP: &str = r#"# What ServiceAccount shop/shop needs for DependencyGroup shop/shop, ResourceDependency shop/database, ResourceDependency shop/migrate, ResourceDependency shop/storefront.
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: shop, namespace: shop}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "linchpin:dg:shop", namespace: shop}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [create]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [shop-open], verbs: [get]}
- {apiGroups: [tools.kubestellar.io], resources: [resourcedependencies], resourceNames: [database, migrate, storefront], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "linchpin:dg:shop", namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "linchpin:dg:shop"}
subjects: [{kind: ServiceAccount, name: shop, namespace: shop}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "linchpin:rd:database", namespace: shop}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [create]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [db-config], verbs: [get]}
- {apiGroups: [""], resources: [secrets], resourceNames: [db-credentials], verbs: [list, watch]}
- {apiGroups: [batch], resources: [jobs], verbs: [create]}
- {apiGroups: [batch], resources: [jobs], resourceNames: [migrate], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "linchpin:rd:database", namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "linchpin:rd:database"}
subjects: [{kind: ServiceAccount, name: shop, namespace: shop}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "linchpin:rd:migrate", namespace: shop}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [create]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [db-config], verbs: [list, watch]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [schema], verbs: [get, patch]}
- {apiGroups: [batch], resources: [jobs], resourceNames: [migrate], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "linchpin:rd:migrate", namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "linchpin:rd:migrate"}
subjects: [{kind: ServiceAccount, name: shop, namespace: shop}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "linchpin:rd:storefront", namespace: shop}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [create]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [storefront], verbs: [get, patch]}
- {apiGroups: [shop.example.com], resources: [payments], resourceNames: [default], verbs: [list, watch]}
- {apiGroups: [tools.kubestellar.io], resources: [resourcedependencies], resourceNames: [migrate], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "linchpin:rd:storefront", namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "linchpin:rd:storefront"}
subjects: [{kind: ServiceAccount, name: shop, namespace: shop}]
"#;

#[test]
fn the_quickstart_needs_no_more_than_this() {
    let shop = example("quickstart/shop.yaml");
    let kind = example("quickstart/release/3-payment-kind.yaml");
    assert_eq!(printed(&["-f", &shop, &kind]), SHOP);
    assert_eq!(printed(&["-f", &kind, "-f", &shop]), SHOP, "the order does not matter");
}

#[test]
fn what_is_guessed_is_said() {
    let text = printed(&["-f", &example("quickstart/shop.yaml")]);
    let note = "# guessed: that payments.shop.example.com is its plural, and that its objects live in namespaces; give";
    assert!(text.contains(note), "{text}");
}

#[test]
fn each_namespace_and_each_account_gets_its_own() {
    let manifests = "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: a},
  spec: {dependencies: [{resource: pod, selector: {matchLabels: {app: db}}, namespace: data}, {resource: namespace/x},
    {resource: job/far, cluster: {kubeconfigSecretRef: {name: east}}}],
    actions: [{type: exec, exec: {target: {kind: Pod, name: db-0, namespace: data}, command: [a]}}]}}
---
{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: b, namespace: other},
  spec: {serviceAccountName: builder, dependencies: [{resource: configmap/c}]}}";
    let output = feed(linchpin().args(["rbac", "-n", "own", "-f", "-"]), manifests.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    for words in [
        "# In the cluster of Secret own/east, its credential must allow: list jobs.batch far in own, watch jobs.batch far in own\n",
        "kind: ClusterRole\nmetadata: {name: \"linchpin:rd:own:a\"}\nrules:\n\
         - {apiGroups: [\"\"], resources: [namespaces], resourceNames: [x], verbs: [list, watch]}\n",
        "kind: Role\nmetadata: {name: \"linchpin:rd:a\", namespace: own}\nrules:\n\
         - {apiGroups: [\"\"], resources: [secrets], resourceNames: [east], verbs: [get, list, watch]}\n",
        "- {apiGroups: [\"\"], resources: [pods], verbs: [list, watch]}\n",
        "- {apiGroups: [\"\"], resources: [pods/exec], resourceNames: [db-0], verbs: [create, get]}\n",
        "kind: Role\nmetadata: {name: \"linchpin:rd:b\", namespace: other}\n",
        "kind: Role\nmetadata: {name: \"linchpin:rd:own:a\", namespace: data}\n",
        "kind: ServiceAccount\nmetadata: {name: builder, namespace: other}\n",
    ] {
        assert!(text.contains(words), "{words}\n--- is not in\n{text}");
    }
}

#[test]
fn a_control_plane_is_reached_through_its_secret() {
    let manifest = "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: a, namespace: own},
  spec: {dependencies: [{resource: job/x, cluster: {controlPlaneRef: {name: its1}}}, {resource: controlplane/its1}]}}";
    let output = feed(linchpin().args(["rbac", "-f", "-"]), manifest.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("guessed"), "{text}");
    let planes = "- {apiGroups: [tenancy.kflex.kubestellar.org], resources: [controlplanes], resourceNames: [its1], verbs: [list, watch]}";
    assert_eq!(text.matches(planes).count(), 1, "{text}");
    let secrets = "namespace: its1-system}\nrules:\n- {apiGroups: [\"\"], resources: [secrets], resourceNames: \
        [admin-kubeconfig, multicluster-controlplane-kubeconfig, vc-vcluster], verbs: [get, list, watch]}\n";
    assert!(text.contains(secrets), "{text}");
}

#[test]
fn a_package_of_porch_needs_its_variant_and_to_look_at_packages() {
    let text = printed(&["-f", &example("appbundle/porch.yaml")]);
    assert!(!text.contains("guessed"), "{text}");
    for words in [
        "- {apiGroups: [config.porch.kpt.dev], resources: [packagevariants], verbs: [create]}\n",
        "- {apiGroups: [config.porch.kpt.dev], resources: [repositories], resourceNames: [blueprints], verbs: [list, watch]}\n",
        "- {apiGroups: [porch.kpt.dev], resources: [packagerevisionresources, packagerevisions], verbs: [list, watch]}\n",
        "add list and watch of the objects in package db: they are not known before it is published",
    ] {
        assert!(text.contains(words), "{words}\n--- is not in\n{text}");
    }
}

#[test]
fn a_cluster_that_is_asked_knows_its_kinds() {
    let manifest = tempfile::NamedTempFile::new().unwrap();
    let text = "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: a},
        spec: {dependencies: [{resource: readinessprofile/x, state: Exists}, {resource: widget.example.com/y}]}}";
    std::fs::write(manifest.path(), text).unwrap();
    let kubeconfig = crate::tree::watched().kubeconfig();
    let (code, text, error) = looks(&[
        "rbac",
        "-f",
        manifest.path().to_str().unwrap(),
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
    ]);
    assert_eq!(code, 0, "{error}");
    assert!(text.contains("kind: ClusterRole\n"), "ReadinessProfile has no namespace: {text}");
    assert!(text.contains("the cluster does not serve it yet"), "{text}");
}

#[test]
fn what_cannot_be_used_is_told_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let wrong = "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: a},
        spec: {dependencies: [{resource: nonsense}]}}";
    for (file, words) in [
        (write("none", "kind: ConfigMap"), "there is no ResourceDependency, DependencyGroup, AppBundle"),
        (write("yaml", "a: ["), "at line "),
        (write("wrong", wrong), "wrong: ResourceDependency a: spec.dependencies[0].resource"),
        ("/nonexistent".to_owned(), "reading /nonexistent"),
    ] {
        let output = linchpin().args(["rbac", "-f", &file]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(words), "{error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    }
    assert_eq!(linchpin().arg("rbac").output().unwrap().status.code(), Some(2));
}

#[test]
fn the_rights_of_a_sync_are_told_with_and_without_its_source_at_hand() {
    let sync = "
apiVersion: linchpin.dev/v1alpha1
kind: Sync
metadata: {name: web, namespace: shop}
spec: {serviceAccountName: deployer, source: SOURCE, dependencies: [{name: db, sync: {name: db}}]}
---
";
    let printed = |source: &str, more: &str| {
        let text = format!("{}{more}", sync.replace("SOURCE", source));
        let output = feed(linchpin().args(["rbac", "-f", "-"]), text.as_bytes());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let waits = "{apiGroups: [linchpin.dev], resources: [syncs], resourceNames: [db], verbs: [list, watch]}";
    let read = r#"{apiGroups: [""], resources: [configmaps], resourceNames: [app], verbs: [list, watch]}"#;
    let service = "x: '{apiVersion: v1, kind: Service, metadata: {name: front}}'";
    let map = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: app, namespace: shop}}, data: {{{service}}}}}"
    );
    let with = printed("{configMapRef: {name: app}}", &map);
    for told in [waits, read, "resources: [services], resourceNames: [front]"] {
        assert!(with.contains(told), "{told}: {with}");
    }
    assert!(!with.contains("not known"), "{with}");
    let secret = map.replace("ConfigMap", "Secret").replace(", data:", ", stringData:");
    let with = printed("{secretRef: {name: app}}", &secret);
    assert!(
        with.contains("resources: [secrets], resourceNames: [app]") && with.contains("[front]"),
        "{with}"
    );
    for (source, told) in [
        ("{configMapRef: {name: app}}", "the source, ConfigMap shop/app, isn't present"),
        ("{http: {url: 'https://example.com/a.tar.gz'}}", "it is not fetched by linchpin rbac"),
        ("{oci: {url: 'oci://example.com/a', tag: v1}}", "it is not fetched by linchpin rbac"),
        ("{fluxRef: {kind: GitRepository, name: app}}", "the source, GitRepository shop/app, isn't present"),
    ] {
        let without = printed(source, "");
        assert!(
            without.contains("# not known: what Sync shop/web applies") && without.contains(told),
            "{without}"
        );
        assert!(without.contains(waits), "all else is told: {without}");
    }
    assert!(printed("{configMapRef: {name: app}}", "").contains(read));
}

#[test]
fn what_is_missing_is_told_and_what_is_printed_for_it_repairs_and_takes_nothing_away() {
    let manifest = tempfile::NamedTempFile::new().unwrap();
    let text = "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: web, namespace: rbac-check},
        spec: {serviceAccountName: web, dependencies: [{resource: configmap/go}],
        actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]}}";
    std::fs::write(manifest.path(), text).unwrap();
    let check = |more: &[&str]| {
        looks(&[&["rbac", "-f", manifest.path().to_str().unwrap(), "--check"], more].concat())
    };
    apply("{apiVersion: v1, kind: Namespace, metadata: {name: rbac-check}}");
    let (code, text, error) = check(&[]);
    assert_eq!(code, 1);
    let expected = ["list configmaps go", "watch configmaps go", "create configmaps", "get configmaps made"];
    let lines = expected.map(|right| {
        format!("missing  ServiceAccount rbac-check/web  {right} in rbac-check  for ResourceDependency rbac-check/web\n")
    });
    assert_eq!(text, lines.concat());
    let absent =
        "ServiceAccount rbac-check/web does not exist: kubectl create serviceaccount web -n rbac-check\n";
    assert!(error.contains(absent), "{error}");

    let (code, yaml, _) = check(&["-o", "yaml"]);
    assert_eq!(code, 1);
    assert!(yaml.contains("kind: ServiceAccount\nmetadata: {name: web,"), "{yaml}");
    apply(&yaml);
    let well = || {
        let (code, text, error) = check(&[]);
        assert_eq!(code, 0, "{text}{error}");
        assert_eq!(text, lines.concat().replace("missing", "ok     "));
        assert_eq!(check(&["-o", "yaml"]).1, "", "there is nothing to repair");
    };
    // Authorization learns of new roles a moment later.
    eventually("the rights are there", seconds(30), || check(&[]).0 == 0);
    well();

    // One right is gone, as if the object had changed: the Role for it takes none of the others away.
    let cluster = crate::tree::watched();
    let less = r#"[{"op": "remove", "path": "/rules/0"}]"#;
    let patch = ["patch", "role", "linchpin:rd:web", "-n", "rbac-check", "--type=json", "-p", less];
    assert!(cluster.kubectl().args(patch).output().unwrap().status.success());
    eventually("it is missing", seconds(30), || check(&[]).0 == 1);
    let (_, yaml, _) = check(&["-o", "yaml"]);
    assert_eq!(yaml.matches("apiGroups: [\"\"]").count(), 1, "{yaml}");
    assert!(!yaml.contains("kind: ServiceAccount\nmetadata"), "it is there: {yaml}");
    assert!(yaml.contains("kind: Role\nmetadata: {name: \"linchpin:rd:web:"), "{yaml}");
    apply(&yaml);
    eventually("it is there again", seconds(30), || check(&[]).0 == 0);
    well();
}
