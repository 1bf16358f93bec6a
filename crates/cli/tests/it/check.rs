//! `linchpin check` on a real API server, in each of the states in which it is asked: every one has its own line and hint.
//!
//! Nothing runs in this cluster but the API server, so the Deployment is as ready as the test says.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use linchpin_local::Cluster;
use serde_json::{Value, json};

use crate::{
    bare,
    boot_dependency::free_address,
    chart::documents,
    eventually,
    operator::{Operator, linchpin},
    seconds,
    tree::feed,
};

struct Asked {
    cluster: Cluster,
}

impl Asked {
    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) {
        let output = self.cluster.kubectl().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn apply(&self, yaml: &str) {
        feed(
            self.cluster.kubectl().args(["apply", "--server-side", "--force-conflicts", "-f", "-"]),
            yaml.as_bytes(),
        );
    }

    /// Writes the status of an object, as the operator.
    fn status(&self, object: &str, namespace: &str, status: &str) {
        self.kubectl(&[
            "patch",
            object,
            "-n",
            namespace,
            "--subresource=status",
            "--type=merge",
            "--as=system:serviceaccount:linchpin-system:linchpin",
            "--as-group=system:masters",
            "-p",
            &format!("{{\"status\":{status}}}"),
        ]);
    }

    /// How `check` ends, and the lines of one check: its result, and what to try.
    #[track_caller]
    fn says(&self, flags: &[&str], id: &str) -> (i32, String) {
        let kubeconfig = self.cluster.kubeconfig();
        says(&[&["--kubeconfig", kubeconfig.to_str().unwrap()], flags].concat(), id)
    }
}

#[track_caller]
fn says(flags: &[&str], id: &str) -> (i32, String) {
    let output = linchpin().env_remove("KUBECONFIG").arg("check").args(flags).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let begin = format!(" {id}: ");
    let mut lines = text.lines().skip_while(|line| !line.contains(&begin));
    let first = lines.next().unwrap_or_else(|| panic!("{id} is not told:\n{text}")).to_owned();
    let hint = lines.next().filter(|line| line.starts_with("    → ")).unwrap_or_default();
    (output.status.code().unwrap(), format!("{first}\n{hint}"))
}

#[test]
fn without_a_cluster_it_says_so_and_what_to_look_at() {
    // Something that is no API server.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    thread::spawn(move || {
        for mut connection in other.incoming().flatten() {
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection
                .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    for (server, why) in [
        ("https://127.0.0.1:1".to_owned(), ""),
        (format!("http://{address}"), "what answers there has no /version\n"),
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        let config = format!(
            "{{apiVersion: v1, kind: Config, current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
             clusters: [{{name: a, cluster: {{server: '{server}'}}}}], users: [{{name: a, user: {{}}}}]}}"
        );
        std::fs::write(file.path(), config).unwrap();
        let (code, told) = says(&["--kubeconfig", file.path().to_str().unwrap()], "api-reachable");
        assert_eq!(code, 1, "{told}");
        assert!(
            told.starts_with(&format!("✗ api-reachable: the API server does not answer: {why}")),
            "{told}"
        );
        assert!(
            told.ends_with("→ is the cluster up, and is it the right one? kubectl config current-context"),
            "{told}"
        );
    }
}

#[test]
fn each_state_of_an_installation_has_its_own_line_and_hint() {
    let asked = Asked { cluster: Cluster::start(&bare()).expect("a local Kubernetes") };
    let (code, told) = asked.says(&["--pre"], "no-other-install");
    assert_eq!((code, told.as_str()), (0, "✓ no-other-install: there is no other installation\n"));
    let (code, told) = asked.says(&[], "crds-served");
    assert_eq!(code, 1);
    assert!(told.starts_with("✗ crds-served: the cluster does not serve "), "{told}");
    assert!(told.ends_with("    → linchpin crds | kubectl apply --server-side -f -"), "{told}");
    let (_, told) = asked.says(&[], "crds-current");
    assert_eq!(told, "· crds-current: there is no definition of ours to compare\n");
    let (_, told) = asked.says(&[], "operator-ready");
    assert!(
        told.starts_with(
            "✗ operator-ready: there is no operator in namespace linchpin-system\n    → install it"
        ),
        "{told}"
    );

    // Installed, and nothing runs.
    asked.kubectl(&["create", "namespace", "linchpin-system"]);
    asked.apply(&without_webhooks(&[]));
    asked.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    let (code, told) = asked.says(&[], "operator-ready");
    assert_eq!(
        (code, told.as_str()),
        (
            1,
            "✗ operator-ready: no Pod of Deployment linchpin-system/linchpin is ready\n    → kubectl describe pods -n \
             linchpin-system -l app.kubernetes.io/part-of=linchpin,app.kubernetes.io/component=operator"
        )
    );
    asked.kubectl(&[
        "patch",
        "deployment",
        "linchpin",
        "-n",
        "linchpin-system",
        "--subresource=status",
        "--type=merge",
        "-p",
        r#"{"status":{"replicas":2,"readyReplicas":2,"availableReplicas":2,"updatedReplicas":2}}"#,
    ]);
    let (code, told) = asked.says(&[], "lease-renewed");
    assert_eq!(
        (code, told.as_str()),
        (
            1,
            "✗ lease-renewed: there is no Lease linchpin-system/linchpin: no operator has led yet\n    → kubectl logs -n \
             linchpin-system -l app.kubernetes.io/part-of=linchpin,app.kubernetes.io/component=operator"
        )
    );
    let lease = |renewed: &str| {
        asked.apply(&format!(
            "{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: linchpin, namespace: linchpin-system}}, \
             spec: {{holderIdentity: pod-a, leaseDurationSeconds: 15, renewTime: '{renewed}'}}}}"
        ));
    };
    lease("2026-01-01T00:00:00.000000Z");
    let (_, told) = asked.says(&[], "lease-renewed");
    assert!(
        told.contains("pod-a holds Lease linchpin-system/linchpin and has not renewed it since 2026-01-01"),
        "{told}"
    );
    lease("2126-01-01T00:00:00.000000Z");
    let (code, told) = asked.says(&[], "lease-renewed");
    assert_eq!((code, told.as_str()), (0, "✓ lease-renewed: pod-a leads\n"), "everything is well now");
    let (_, told) = asked.says(&[], "rights-not-wider");
    assert_eq!(told, "✓ rights-not-wider: the operator's roles give nothing else\n");
    // The chart may be installed under another name.
    let label = ["label", "deployment", "linchpin", "-n", "linchpin-system", "--overwrite"];
    asked.kubectl(&[&label[..], &["app.kubernetes.io/name=other"]].concat());
    let (code, told) = asked.says(&[], "operator-ready");
    assert_eq!(code, 0);
    assert_eq!(told, "✓ operator-ready: 2 of 2 Pods of Deployment linchpin-system/linchpin are ready\n");
    let (code, told) = asked.says(&["--pre"], "no-other-install");
    assert!(code == 1 && told.contains("Linchpin is installed already: linchpin-system/linchpin"), "{told}");

    definitions_of_another_version(&asked);
    a_right_less_and_one_more(&asked);
    objects_that_wait_or_stand(&asked);
    before_it_goes(&asked);
    webhooks(&asked);
}

/// What `linchpin manifests` prints.
fn manifests(flags: &[&str]) -> String {
    let output = linchpin().arg("manifests").args(flags).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The same for an operator that serves no webhooks and has no rights for them: nothing in this cluster reaches a Service.
fn without_webhooks(flags: &[&str]) -> String {
    let mut all = documents(&manifests(flags));
    for one in &mut all {
        if let Some(arguments) = one.pointer_mut("/spec/template/spec/containers/0/args") {
            let arguments = arguments.as_array_mut().unwrap();
            arguments.retain(|argument| !argument.as_str().unwrap().starts_with("--webhook-"));
        }
        let is_the_operators = one["metadata"]["name"] == "linchpin";
        if let Some(rules) = one.get_mut("rules").and_then(Value::as_array_mut).filter(|_| is_the_operators) {
            rules.retain(|rule| {
                rule["apiGroups"] != json!(["admissionregistration.k8s.io"])
                    && rule["resources"] != json!(["secrets"])
            });
        }
    }
    all.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

/// The webhooks of an operator that is not there, that is there and not reached, and that is reached.
fn webhooks(asked: &Asked) {
    let (_, told) = asked.says(&[], "webhook-ca");
    assert_eq!(told, "· webhook-ca: no webhook is configured\n");
    asked.apply(&manifests(&["--no-crds"]));
    let (code, told) = asked.says(&[], "webhook-ca");
    assert_eq!(code, 1);
    assert!(
        told.starts_with(
            "✗ webhook-ca: MutatingWebhookConfiguration linchpin-mutating, ValidatingWebhookConfiguration \
             linchpin-validating does not name the authority of our certificate\n    → the leader writes it: "
        ),
        "{told}"
    );
    let (_, told) = asked.says(&[], "certificate-valid");
    assert!(
        told.starts_with(
            "✗ certificate-valid: there is no Secret linchpin-system/linchpin-webhook-tls: no certificate was made"
        ),
        "{told}"
    );
    let (_, told) = asked.says(&[], "webhook-answers");
    assert!(
        told.starts_with(
            "✗ webhook-answers: the API server does not reach them: what they refuse is accepted"
        ),
        "{told}"
    );

    let address = free_address();
    let (bind, url) =
        (format!("--webhook-bind-address={address}"), format!("--webhook-url=https://{address}"));
    let common = ["--lease-namespace=linchpin-system", "--lease-name=webhooks", "--wait-image=w:1", &bind];
    // What is its own lies in the namespace of its context, as it lies in that of its pod.
    let kubeconfig = asked.cluster.kubeconfig().with_file_name("in-its-namespace");
    std::fs::copy(asked.cluster.kubeconfig(), &kubeconfig).unwrap();
    let home = ["config", "set-context", "--current", "--namespace=linchpin-system", "--kubeconfig"];
    let set = asked.cluster.kubectl().args(home).arg(&kubeconfig).output().unwrap();
    assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    let start = |reached: &str| Operator::start("webhooks", &kubeconfig, &[&common[..], &[reached]].concat());
    let operator = start("--webhook-service=linchpin-system/linchpin-webhook");
    eventually("its authority is named", seconds(30), || {
        asked
            .says(&[], "webhook-ca")
            .1
            .starts_with("✓ webhook-ca: the webhook configurations name the authority")
    });
    let (_, told) = asked.says(&[], "certificate-valid");
    assert_eq!(told, "✓ certificate-valid: the certificate of the webhooks is valid\n");
    let reader = asked.cluster.kubeconfig_for("check-reader", None).unwrap();
    asked.kubectl(&[
        "create",
        "clusterrole",
        "check-reader",
        "--verb=get,list",
        "--resource=deployments.apps",
    ]);
    let bound =
        ["create", "clusterrolebinding", "check-reader", "--clusterrole=check-reader", "--user=check-reader"];
    asked.kubectl(&bound);
    let (_, told) = says(&["--kubeconfig", reader.to_str().unwrap()], "certificate-valid");
    assert_eq!(told, "· certificate-valid: you may not read Secret linchpin-system/linchpin-webhook-tls\n");
    drop(operator);

    // Reached at a URL, they answer; the certificate is for that, and not for the Service.
    let _operator = start(&url);
    eventually("they are called", seconds(30), || {
        asked.says(&[], "webhook-answers").1 == "✓ webhook-answers: the API server reaches them\n"
    });
    let (_, told) = asked.says(&[], "certificate-valid");
    assert!(
        told.starts_with(
            "✗ certificate-valid: the certificate in Secret linchpin-system/linchpin-webhook-tls is not for \
             linchpin-webhook.linchpin-system.svc\n    → kubectl delete secret linchpin-webhook-tls -n linchpin-system"
        ),
        "{told}"
    );
}

fn definitions_of_another_version(asked: &Asked) {
    let crd = "appbundles.app.example.com";
    let hash = |value: &str| {
        asked.kubectl(&["annotate", "crd", crd, "--overwrite", &format!("linchpin.dev/schema-hash={value}")]);
    };
    let now = asked.cluster.kubectl().args(["get", "crd", crd, "-o", "json"]).output().unwrap();
    let now: Value = serde_json::from_slice(&now.stdout).unwrap();
    hash("old");
    let (code, told) = asked.says(&[], "crds-current");
    assert_eq!(
        (code, told.as_str()),
        (
            1,
            "✗ crds-current: appbundles.app.example.com are of another version than this program\n    → linchpin crds | \
             kubectl apply --server-side --force-conflicts -f -"
        )
    );
    hash(now["metadata"]["annotations"]["linchpin.dev/schema-hash"].as_str().unwrap());
}

fn a_right_less_and_one_more(asked: &Asked) {
    let rules = |op: &str, value: &str| {
        asked.kubectl(&[
            "patch",
            "clusterrole",
            "linchpin",
            "--type=json",
            "-p",
            &format!(r#"[{{"op":"{op}","path":"/rules/{}"{value}}}]"#, if op == "add" { "-" } else { "0" }),
        ]);
    };
    rules("add", r#","value":{"apiGroups":[""],"resources":["nodes"],"verbs":["delete"]}"#);
    let (code, told) = asked.says(&[], "rights-not-wider");
    assert_eq!(code, 1, "the operator has exactly its rights");
    assert!(told.starts_with("✗ rights-not-wider: the operator's roles give more than it needs: "), "{told}");
    assert!(
        told.contains("nodes") && told.contains("→ upgrade the release, or: linchpin manifests"),
        "{told}"
    );
    rules("remove", "");
    let (code, told) = asked.says(&[], "rights-current");
    assert!(code == 1 && told.starts_with("✗ rights-current: the operator's roles lack "), "{told}");
    assert!(told.contains("(ClusterRole linchpin)") && told.contains("→ upgrade the release"), "{told}");
    asked.apply(&without_webhooks(&["--no-crds"]));
}

/// Objects that wait for a binding, and one that cannot go on.
fn objects_that_wait_or_stand(asked: &Asked) {
    asked.kubectl(&["create", "namespace", "shop"]);
    asked.apply("{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: web, namespace: shop}, \
                 spec: {dependencies: [{resource: configmap/a}]}}");
    let condition = |kind: &str, status: &str, reason: &str| {
        format!(
            r#"{{"type":"{kind}","status":"{status}","reason":"{reason}","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}}"#
        )
    };
    asked.status(
        "rd/web",
        "shop",
        &format!(r#"{{"conditions":[{}]}}"#, condition("Ready", "False", "NotATenant")),
    );
    let (code, told) = asked.says(&[], "tenants-bound");
    assert_eq!(
        (code, told.as_str()),
        (
            1,
            "✗ tenants-bound: objects of ours wait in namespaces that are no tenants: shop\n    → kubectl create rolebinding \
             linchpin-tenant -n shop --clusterrole=linchpin-tenant --serviceaccount=linchpin-system:linchpin"
        )
    );
    let stalled = condition("Stalled", "True", "SpecInvalid");
    asked.status(
        "rd/web",
        "shop",
        &format!(r#"{{"conditions":[{},{stalled}]}}"#, condition("Ready", "False", "SpecInvalid")),
    );
    let (code, told) = asked.says(&[], "nothing-stalled");
    assert_eq!(code, 0, "what stands is its owner's business");
    assert!(told.starts_with("! nothing-stalled: 1 of 1 objects of ours cannot go on: "), "{told}");
    assert!(told.contains("shop/web") && told.ends_with("→ linchpin explain KIND/NAME says why"), "{told}");
}

fn before_it_goes(asked: &Asked) {
    let (code, told) = asked.says(&["--pre-uninstall"], "no-finalizers");
    assert_eq!((code, told.as_str()), (0, "✓ no-finalizers: no object of ours needs an operator to go\n"));
    asked.kubectl(&[
        "patch",
        "rd",
        "web",
        "-n",
        "shop",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":["linchpin.dev/teardown"]}}"#,
    ]);
    let (code, told) = asked.says(&["--pre-uninstall"], "no-finalizers");
    assert!(
        code == 1
            && told.contains("1 objects of ours would hang without an operator: ResourceDependency shop/web"),
        "{told}"
    );
    assert!(
        told.contains("→ delete them while the operator runs") && told.contains("of an AppBundle: Orphan"),
        "{told}"
    );
    let (_, told) = asked.says(&["--pre-uninstall"], "no-held-pods");
    assert_eq!(told, "✓ no-held-pods: no Pod is held by our scheduling gate\n");
    asked.kubectl(&["create", "serviceaccount", "default", "-n", "shop"]);
    asked.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: held, namespace: shop, labels: {linchpin.dev/boot-gate: held}}, \
         spec: {schedulingGates: [{name: linchpin.dev/boot}], containers: [{name: a, image: a}]}}",
    );
    let (code, told) = asked.says(&["--pre-uninstall"], "no-held-pods");
    assert_eq!(code, 1);
    let line = told.split_once("let each go: kubectl ").map(|(_, line)| line.to_owned());
    assert!(
        told.starts_with(
            "✗ no-held-pods: 1 Pods are held by our scheduling gate, and nobody would let them go: shop/held"
        ),
        "{told}"
    );
    // The line does what it says.
    let line = line.unwrap_or_else(|| panic!("{told}"));
    let words: Vec<&str> = line.split(' ').map(|word| word.trim_matches('\'')).collect();
    asked.kubectl(&words);
    let (_, told) = asked.says(&["--pre-uninstall"], "no-held-pods");
    assert!(told.starts_with("✓ no-held-pods"), "{told}");
}
