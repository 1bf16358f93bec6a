//! `linchpin explain`, on objects that really wait.

use crate::operator::linchpin;
use crate::{
    eventually, seconds,
    tree::{all_wait, apply, bundles, chain, feed, key, looks, phase, serving, watched},
};
use serde_json::{Value, json};

#[test]
fn the_first_line_names_the_root_cause_and_the_chain_follows() {
    let _operator = serving("explain-chain");
    apply(&chain("explain-chain"));
    eventually("all wait", seconds(20), || {
        ["rd/first", "rd/last", "dg/all"].iter().all(|object| phase("explain-chain", object) == "Waiting")
    });
    let (code, text, error) = looks(&["explain", "dg/all", "-n", "explain-chain"]);
    assert_eq!(code, 0, "{error}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with(
            "DependencyGroup explain-chain/all waits for DependencyGroup explain-chain/all[one], which waits for \
             ResourceDependency explain-chain/last, which waits for ConfigMap explain-chain/made, to be made by \
             ResourceDependency explain-chain/first, which waits for ConfigMap explain-chain/go: "
        ),
        "{text}"
    );
    let last = lines.iter().rfind(|line| line.contains("└─ ")).unwrap();
    assert!(last.contains("└─ waits for ConfigMap explain-chain/go: "), "{text}");
    assert!(last.contains(", for "), "{text}");
    assert_eq!(lines.last().unwrap().trim(), "kubectl get configmap -n explain-chain", "{text}");

    // The same for programs, by two words and with the namespace inside.
    let (code, json, error) = looks(&["explain", "dg", "explain-chain/all", "-o", "json"]);
    assert_eq!(code, 0, "{error}");
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["schema"], "linchpin.dev/explain/v1");
    assert_eq!(document["id"], "DependencyGroup.tools.kubestellar.io explain-chain/all");
    assert_eq!(document["answer"], lines[0]);
    let root = &document["chains"][0]["root"];
    assert_eq!((&root["id"], &root["reason"]), (&json!("ConfigMap explain-chain/go"), &json!("NotFound")));
    let relations: Vec<&Value> =
        document["chains"][0]["links"].as_array().unwrap().iter().map(|link| &link["relation"]).collect();
    assert_eq!(relations, ["waitsFor", "waitsFor", "waitsFor", "madeBy", "waitsFor"]);
    assert_eq!(document["hints"][0]["command"], "kubectl get configmap -n explain-chain");

    // A part of an object, as it is called above.
    let (code, text, error) = looks(&["explain", "DependencyGroup", "explain-chain/all[one]"]);
    assert_eq!(code, 0, "{error}");
    let rest = lines[0].strip_prefix("DependencyGroup explain-chain/all waits for ").unwrap();
    assert_eq!(text.lines().next().unwrap(), rest.replacen(", which waits", " waits", 1));
    for command in ["explain", "tree"] {
        let (code, _, error) = looks(&[command, "dg/explain-chain/all[oen]"]);
        let told = "DependencyGroup explain-chain/all has no part oen; did you mean one? (there are: one)";
        assert!(code == 1 && error.contains(told), "{error}");
    }
    let (code, text, error) = looks(&["tree", "dg/explain-chain/all[one]", "-o", "name"]);
    assert!(
        code == 0 && text.contains("resourcedependency.tools.kubestellar.io/explain-chain/last"),
        "{text}{error}"
    );
    let (code, _, error) = looks(&["suspend", "dg/explain-chain/all[one]"]);
    assert!(code == 2 && error.contains("not to part one of one"), "{error}");

    let (code, text, error) = looks(&["explain", "cm/go", "-n", "explain-chain"]);
    assert_eq!(code, 0, "{error}");
    assert!(text.starts_with("4 objects wait for ConfigMap explain-chain/go\n"), "{text}");
    assert!(text.contains("  ResourceDependency explain-chain/first\n"), "{text}");

    apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: go, namespace: explain-chain}}");
    eventually("it is done", seconds(20), || phase("explain-chain", "dg/all") == "Completed");
    let (code, text, _) =
        looks(&["explain", "dependencygroups.tools.kubestellar.io/all", "-n", "explain-chain"]);
    assert_eq!(code, 0);
    assert!(text.starts_with("DependencyGroup explain-chain/all is ready: "), "{text}");
}

#[test]
fn bundles_are_explained_and_chains_go_through_them() {
    let _operator = serving("explain-bundles");
    apply(&bundles("explain-bundles"));
    all_wait("explain-bundles");
    let base = "AppBundle explain-bundles/base waits for AppBundle explain-bundles/base[data], which waits for Secret \
                explain-bundles/key: it does not exist (for component conf), NotFound\n";
    for word in [
        "ab",
        "appbundle",
        "appbundles",
        "AppBundle",
        "appbundle.app.example.com",
        "appbundles.app.example.com",
    ] {
        let (code, text, error) = looks(&["explain", &format!("{word}/base"), "-n", "explain-bundles"]);
        assert_eq!((code, error.as_str()), (0, ""), "{word}");
        assert!(text.starts_with(base), "{word}: {text}");
    }
    let (_, text, _) = looks(&["explain", "ab/shop", "-n", "explain-bundles"]);
    let shop = format!(
        "AppBundle explain-bundles/shop waits for {}",
        base.replacen(" waits for", ", which waits for", 1)
    );
    assert!(text.starts_with(&shop), "{text}");
    assert!(!text.contains("(and "), "{text}");
    let (_, text, _) = looks(&["explain", "rd/last", "-n", "explain-bundles"]);
    let lines: Vec<&str> = text.lines().collect();
    let last = format!(
        "ResourceDependency explain-bundles/last waits for {}",
        shop.replacen(" waits for", ", which waits for", 1)
    );
    assert_eq!(format!("{}\n", lines[0]), last, "{text}");
    let last = lines.iter().rfind(|line| line.contains("└─ ")).unwrap();
    assert!(last.contains("└─ waits for Secret explain-bundles/key: "), "{text}");
    // An object that a bundle is to make leads to what the bundle waits for.
    let (_, text, _) = looks(&["explain", "cm/page", "-n", "explain-bundles"]);
    assert!(
        text.starts_with(
            "ConfigMap explain-bundles/page is to be made by AppBundle explain-bundles/shop[front], which waits for \
             AppBundle explain-bundles/base, which waits for "
        ),
        "{text}"
    );
    let (_, text, _) = looks(&["explain", "secret/key", "-n", "explain-bundles"]);
    assert!(text.contains("  AppBundle explain-bundles/shop (through others)\n"), "{text}");
    apply(&key("explain-bundles"));
    eventually("all is ready", seconds(20), || phase("explain-bundles", "rd/last") == "Completed");
    let (_, text, _) = looks(&["explain", "ab/shop", "-n", "explain-bundles"]);
    assert!(
        text.starts_with("AppBundle explain-bundles/shop is ready: All groups deployed successfully"),
        "{text}"
    );
}

#[test]
fn a_bundle_that_lacks_rights_is_told_what_to_run_and_that_helps() {
    let _operator = serving("explain-bundle-rights");
    apply(
        "{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {name: poor, namespace: explain-bundle-rights},
  spec: {groups: [{name: app, components: [{name: web, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]}]}}",
    );
    let command = "kubectl get appbundle poor -n explain-bundle-rights -o yaml | linchpin rbac -f - | kubectl apply -f -";
    let mut told = String::new();
    eventually("it is told what to run", seconds(20), || {
        told = looks(&["explain", "ab/poor", "-n", "explain-bundle-rights"]).1;
        told.contains(command)
    });
    assert!(
        told.contains(
            "AppBundle explain-bundle-rights/poor waits for AppBundle explain-bundle-rights/poor[app]: "
        ),
        "{told}"
    );
    assert!(told.lines().next().unwrap().ends_with(", MissingRights"), "{told}");
    let get = ["get", "appbundle", "poor", "-n", "explain-bundle-rights", "-o", "yaml"];
    let object = watched().kubectl().args(get).output().unwrap();
    let roles = feed(linchpin().args(["rbac", "-f", "-"]), &object.stdout);
    feed(watched().kubectl().args(["apply", "-f", "-"]), &roles.stdout);
    eventually("it is done", seconds(60), || phase("explain-bundle-rights", "ab/poor") == "Deployed");
}

#[test]
fn what_is_not_there_is_exit_code_1_and_what_is_no_reference_2() {
    for (object, code, words) in [
        ("rd/nowhere", 1, "there is no ResourceDependency nowhere in namespace default"),
        ("ab/nowhere", 1, "there is no AppBundle nowhere in namespace default"),
        (
            "secret/nowhere",
            1,
            "there is no Secret default/nowhere, and no object of ours waits for it or makes it",
        ),
        ("secret/othr/x", 1, "namespace othr does not exist"),
        ("rd/othr/x", 1, "namespace othr does not exist"),
        ("deploymnet/x", 1, "the cluster serves no kind deploymnet; did you mean deployment?"),
        ("nowhere", 2, "has no name"),
    ] {
        let (found, _, error) = looks(&["explain", object]);
        assert_eq!(found, code, "{error}");
        assert!(error.contains(words), "{error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    }
}

#[test]
fn whoever_lacks_rights_is_told_what_to_run_and_that_helps() {
    let _operator = serving("explain-rights");
    apply(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: poor, namespace: explain-rights},
  spec: {dependencies: [{name: go, resource: configmap/go}],
    actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: go, namespace: explain-rights}}",
    );
    let command = "kubectl get resourcedependency poor -n explain-rights -o yaml | linchpin rbac -f - | kubectl apply -f -";
    eventually("it is told what to run", seconds(20), || {
        let (_, text, _) = looks(&["explain", "rd/poor", "-n", "explain-rights"]);
        text.contains("ServiceAccount explain-rights/default lacks rights") && text.contains(command)
    });
    // Exactly that, step by step.
    let get = ["get", "resourcedependency", "poor", "-n", "explain-rights", "-o", "yaml"];
    let object = watched().kubectl().args(get).output().unwrap();
    let roles = feed(linchpin().args(["rbac", "-f", "-"]), &object.stdout);
    feed(watched().kubectl().args(["apply", "-f", "-"]), &roles.stdout);
    // A watch that was forbidden is tried again within half a minute.
    eventually("it is done", seconds(60), || phase("explain-rights", "rd/poor") == "Completed");
}

#[test]
fn a_chain_goes_on_to_what_holds_a_pod_and_as_far_as_the_user_may_look() {
    let _operator = serving("explain-beyond");
    apply(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: web, namespace: explain-beyond},
  spec: {serviceAccountName: web, dependencies: [{name: db, resource: deployment/db}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: db, namespace: explain-beyond},
  spec: {replicas: 1, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: db}]}}}}",
    );
    // There are no controllers here: what they would make and say is written by hand.
    let uid = |object: &str| {
        let get = ["get", object, "-n", "explain-beyond", "-o", "jsonpath={.metadata.uid}"];
        String::from_utf8(watched().kubectl().args(get).output().unwrap().stdout).unwrap()
    };
    let owned = |kind: &str, version: &str, name: &str, uid: &str| {
        format!(
            "ownerReferences: [{{apiVersion: {version}, kind: {kind}, name: {name}, uid: {uid}, controller: true}}]"
        )
    };
    let status = |object: &str, status: &str| {
        let patch =
            ["patch", object, "-n", "explain-beyond", "--subresource=status", "--type=merge", "-p", status];
        let done = watched().kubectl().args(patch).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    status("deployment/db", r#"{"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}}"#);
    apply(&format!(
        "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: db-1, namespace: explain-beyond, labels: {{app: db}}, {}}},
  spec: {{replicas: 1, selector: {{matchLabels: {{app: db}}}}, template: {{metadata: {{labels: {{app: db}}}}, spec: {{containers: [{{name: db, image: db}}]}}}}}}}}",
        owned("Deployment", "apps/v1", "db", &uid("deployment/db"))
    ));
    apply(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: db-1-x, namespace: explain-beyond, labels: {{app: db}}, {}}},
  spec: {{containers: [{{name: db, image: db}}]}}}}",
        owned("ReplicaSet", "apps/v1", "db-1", &uid("rs/db-1"))
    ));
    status("rs/db-1", r#"{"status": {"observedGeneration": 1, "replicas": 1}}"#);
    status(
        "pod/db-1-x",
        r#"{"status": {"phase": "Pending", "containerStatuses": [{"name": "db", "image": "db", "imageID": "", "ready": false,
            "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"db\""}}}]}}"#,
    );
    let all = "ResourceDependency explain-beyond/web waits for Deployment explain-beyond/db, which waits for ReplicaSet \
               explain-beyond/db-1, which waits for Pod explain-beyond/db-1-x: container db: ImagePullBackOff: Back-off \
               pulling image \"db\"\n";
    let mut told = String::new();
    eventually("the chain is told", seconds(20), || {
        told = looks(&["explain", "rd/web", "-n", "explain-beyond"]).1;
        told.starts_with(all)
    });
    assert!(told.contains("kubectl describe pod db-1-x -n explain-beyond"), "{told}");
    let (_, json, _) = looks(&["explain", "rd/web", "-n", "explain-beyond", "-o", "json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    let relations: Vec<&Value> =
        document["chains"][0]["links"].as_array().unwrap().iter().map(|link| &link["relation"]).collect();
    assert_eq!(relations, ["waitsFor", "owns", "runs"]);
    // Any object can be asked about, and it says who waits.
    let (_, text, _) = looks(&["explain", "deploy/explain-beyond/db"]);
    assert!(
        text.starts_with(
            "Deployment explain-beyond/db waits for ReplicaSet explain-beyond/db-1, which waits for Pod "
        ),
        "{text}"
    );
    assert!(text.contains("held up by it:\n  ResourceDependency explain-beyond/web\n"), "{text}");
    // Whoever may not look at pods is told that there is more.
    apply(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: explain-beyond}, rules: [
  {apiGroups: [tools.kubestellar.io, app.example.com], resources: ['*'], verbs: [get, list]},
  {apiGroups: [apps], resources: [deployments, replicasets], verbs: [get, list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: explain-beyond},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: explain-beyond},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: short-sighted}]}",
    );
    let kubeconfig = watched().kubeconfig_for("short-sighted", None).unwrap();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let (code, text, error) =
        looks(&["explain", "rd/web", "-n", "explain-beyond", "--kubeconfig", kubeconfig]);
    assert_eq!(code, 0, "{error}");
    assert!(text.lines().next().unwrap().ends_with(" (not visible to you)"), "{text}");
    assert!(!text.contains("Pod "), "{text}");
}

#[test]
fn a_kind_is_ready_once_it_is_served_and_one_that_is_not_says_who_waits() {
    let (code, text, error) = looks(&["explain", "crd/resourcedependencies.tools.kubestellar.io"]);
    assert_eq!(code, 0, "{error}");
    assert!(
        text.starts_with("CustomResourceDefinition resourcedependencies.tools.kubestellar.io is ready"),
        "{text}"
    );
    let _operator = serving("explain-unserved");
    apply(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: web, namespace: explain-unserved},
  spec: {serviceAccountName: web, dependencies: [{resource: widget.example.org/y}]}}",
    );
    eventually("it waits", seconds(20), || phase("explain-unserved", "rd/web") == "Waiting");
    // As `tree -o name` calls it.
    let (_, names, _) = looks(&["tree", "-n", "explain-unserved", "-o", "name"]);
    let name = names.lines().find(|name| name.starts_with("widget")).unwrap_or_else(|| panic!("{names}"));
    let (code, text, error) = looks(&["explain", name, "-n", "explain-unserved"]);
    assert_eq!(code, 0, "{error}");
    assert!(text.starts_with("ResourceDependency explain-unserved/web waits for "), "{text}");
    assert!(text.contains("the cluster serves no kind widget.example.org now"), "{text}");
}

#[test]
fn an_object_that_nobody_serves_says_whether_an_operator_is_there() {
    apply("{apiVersion: v1, kind: Namespace, metadata: {name: explain-alone}}");
    apply(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: web, namespace: explain-alone},
  spec: {dependencies: [{resource: configmap/go}]}}",
    );
    let (code, text, error) = looks(&["explain", "rd/web", "-n", "explain-alone"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(
        text,
        "ResourceDependency explain-alone/web: no operator holds a Lease linchpin in any namespace: is it running?\n"
    );
}

#[test]
fn what_was_made_and_deleted_is_told_and_how_to_make_it_again() {
    let _operator = serving("explain-gone");
    apply(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: web, namespace: explain-gone},
  spec: {serviceAccountName: web, actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]}}",
    );
    eventually("it is done", seconds(20), || phase("explain-gone", "rd/web") == "Completed");
    let (_, text, _) = looks(&["explain", "rd/web", "-n", "explain-gone"]);
    assert!(!text.contains("is gone"), "{text}");
    let delete = ["delete", "configmap", "made", "-n", "explain-gone"];
    assert!(watched().kubectl().args(delete).output().unwrap().status.success());
    let (_, text, _) = looks(&["explain", "rd/web", "-n", "explain-gone"]);
    assert!(text.contains("\nConfigMap explain-gone/made, which it made, is gone\n"), "{text}");
    assert!(
        text.contains(
            "\ntry: this makes it again (annotation linchpin.dev/rerun)\n\n  linchpin rerun resourcedependency web -n \
             explain-gone\n"
        ),
        "{text}"
    );

    // Exactly that; a step that is not there is told at once.
    let (code, _, error) = looks(&["rerun", "rd/web", "-n", "explain-gone", "--step", "maek"]);
    assert_eq!(
        (code, error.as_str()),
        (
            1,
            "linchpin: ResourceDependency explain-gone/web: it has no action maek; did you mean make? (there are: make)\n"
        )
    );
    let (code, text, error) = looks(&["rerun", "resourcedependency", "web", "-n", "explain-gone"]);
    assert_eq!(code, 0, "{error}");
    assert!(
        text.starts_with(
            "ResourceDependency explain-gone/web runs all its actions again\n  kubectl annotate "
        ),
        "{text}"
    );
    eventually("it is made again", seconds(20), || {
        let get = ["get", "configmap", "made", "-n", "explain-gone"];
        watched().kubectl().args(get).output().unwrap().status.success()
    });
}

#[test]
fn orders_are_given_with_the_users_rights_and_printed_as_kubectl_lines() {
    let _operator = serving("orders");
    apply(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: web, namespace: orders},
  spec: {serviceAccountName: web, dependencies: [{name: gate, resource: configmap/never}]}}",
    );
    eventually("it waits", seconds(20), || phase("orders", "rd/web") == "Waiting");
    let (code, text, error) = looks(&["suspend", "rd/orders/web"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(
        text,
        "ResourceDependency orders/web is suspended: nothing starts\n  kubectl patch resourcedependency web -n orders \
         --type merge -p '{\"spec\":{\"suspend\":true}}'\n"
    );
    eventually("it is suspended", seconds(20), || phase("orders", "rd/web") == "Suspended");
    let (_, text, _) = looks(&["explain", "rd/orders/web"]);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("ResourceDependency orders/web: ") && first.contains("suspended"), "{text}");
    assert!(text.contains("\n  linchpin resume resourcedependency web -n orders\n"), "{text}");
    // Who waits for it is told what lets it go.
    apply(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: next, namespace: orders},
  spec: {serviceAccountName: web, dependencies: [{resource: rd/web}]}}",
    );
    eventually("it waits too", seconds(20), || phase("orders", "rd/next") == "Waiting");
    let (_, text, _) = looks(&["explain", "rd/orders/next"]);
    let first = text.lines().next().unwrap();
    assert!(first.ends_with("waits for ResourceDependency orders/web: it is not ready: Suspended"), "{text}");
    assert!(text.contains("\n  linchpin resume resourcedependency web -n orders\n"), "{text}");
    let (code, text, _) = looks(&["resume", "rd/orders/web", "--dry-run"]);
    assert_eq!(code, 0);
    assert_eq!(
        text,
        "kubectl patch resourcedependency web -n orders --type merge -p '{\"spec\":{\"suspend\":null}}'\n"
    );
    assert_eq!(phase("orders", "rd/web"), "Suspended", "nothing was changed");
    assert_eq!(looks(&["resume", "rd/orders/web"]).0, 0);
    eventually("it waits", seconds(20), || phase("orders", "rd/web") == "Waiting");
    assert_eq!(looks(&["refresh", "rd/orders/web"]).0, 0);
    assert_eq!(looks(&["proceed", "rd/orders/web"]).0, 0);
    eventually("it is done", seconds(20), || phase("orders", "rd/web") == "Completed");
    apply(
        "
{apiVersion: linchpin.dev/v1alpha1, kind: Sync, metadata: {name: synced, namespace: orders}, spec: {serviceAccountName: web, source: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: synced}}]}}}
---
{apiVersion: linchpin.dev/v1alpha1, kind: Capability, metadata: {name: orders.example.com}, spec: {version: 1.0.0, serviceAccount: {namespace: orders, name: web}}}
---
{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {name: bundle, namespace: orders}, spec: {serviceAccountName: web, groups: [{name: a, components: [{name: b, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: bundled}}}]}]}}
",
    );
    for (object, line) in [
        (
            "sync/orders/synced",
            "kubectl annotate sync synced -n orders --overwrite 'linchpin.dev/requested-at=",
        ),
        (
            "capability/orders.example.com",
            "kubectl annotate capability orders.example.com --overwrite 'linchpin.dev/requested-at=",
        ),
    ] {
        let (code, text, error) = looks(&["refresh", object, "--dry-run"]);
        assert_eq!(code, 0, "{error}");
        assert!(text.starts_with(line), "{text}");
    }
    for (arguments, code, words) in [
        (&["suspend", "readinessprofile/x"][..], 2, "suspend: a ReadinessProfile cannot be suspended (see "),
        (
            &["rollback", "ab/orders/bundle", "--to", "7"],
            1,
            "AppBundle orders/bundle has no revision 7: kubectl get bundlerevisions",
        ),
        (&["rollback", "rd/web", "--to", "2"], 2, "a ResourceDependency has no revisions to go back to"),
        (&["rollback", "ab/web"], 2, "--to"),
        (&["rollback", "ab/nowhere", "-n", "orders", "--to", "2"], 1, "reading AppBundle orders/nowhere: "),
        (&["suspend", "deploy/web"], 2, "deploy is no kind of Linchpin (kinds: ab, "),
    ] {
        let (found, _, error) = looks(arguments);
        assert_eq!(found, code, "{error}");
        assert!(error.contains(words), "{error}");
    }
}
