use super::*;
use crate::check::{
    facts::{LiveRole, Looked, UnseenFact, Webhooks},
    report::text_of,
};
use linchpin_operator::rights::{NAME, RightScope};
use linchpin_operator::rights::{NAMESPACE, manifests::Installation};
use linchpin_words::{Timestamp, keys};
use serde_json::json;

/// The flag of an operator that serves webhooks.
const SERVED: &str = "--webhook-bind-address=:9443";

/// A cluster in which everything is well.
fn well() -> CheckFacts {
    let now = Timestamp::parse("2026-01-01T00:00:10Z").unwrap();
    let established = json!([{"type": "Established", "status": "True"}]);
    let ours = linchpin_doors::registry().definitions();
    let definitions = ours.clone().into_iter().map(|definition| {
        let name = definition.metadata.name.clone().unwrap();
        let mut found = json!(definition);
        found["status"] = json!({"conditions": established});
        (name, Ok(found))
    });
    let deployment = json!({"metadata": {"name": NAME, "namespace": NAMESPACE,
            "labels": {"app.kubernetes.io/version": env!("CARGO_PKG_VERSION")}},
        "spec": {"replicas": 2, "template": {"spec": {"serviceAccountName": NAME, "containers": [{"args": ["operator", SERVED]}]}}},
        "status": {"availableReplicas": 2}});
    let roles = Installation::default().manifests().into_iter().filter_map(|role| {
        let kind = role["kind"].as_str()?.to_owned();
        let scope = match (kind.as_str(), role["metadata"]["name"].as_str()?) {
            ("Role", _) => RightScope::Release,
            ("ClusterRole", NAME) => RightScope::Cluster,
            ("ClusterRole", _) => RightScope::Tenant,
            _ => return None,
        };
        Some(LiveRole { called: format!("{kind} {}", place(&role)), scope, watched: false, role: Ok(role) })
    });
    CheckFacts {
        now: Some(now),
        version: Some(Ok(json!({"major": "1", "minor": "36+", "gitVersion": "v1.36.4"}))),
        definitions: definitions.collect(),
        ours,
        deployments: Some(Ok(json!({"items": [deployment]}))),
        elsewhere: Some(Ok(json!({"items": []}))),
        lease: Some(Ok(json!({"spec": {"holderIdentity": "linchpin-a_1", "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:08.000000Z"}}))),
        roles: roles.collect(),
        objects: [("resourcedependencies.tools.kubestellar.io".to_owned(), Ok(json!({"items": []})))].into(),
        may_create: [("deployments.apps".to_owned(), Ok(true))].into(),
        ..CheckFacts::default()
    }
}

/// What is not well, as one line each; what was skipped aside.
fn problems(mode: CheckMode, facts: &CheckFacts) -> Vec<String> {
    let mut lines = short(mode, facts);
    lines.retain(|line| !line.starts_with('·'));
    lines
}

/// The lines of `-o short` but for the last.
fn short(mode: CheckMode, facts: &CheckFacts) -> Vec<String> {
    let text = text_of(&judge(mode, NAMESPACE, facts), true);
    let lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    lines[..lines.len() - 1].to_vec()
}

#[test]
fn where_all_is_well_nothing_is_told() {
    for mode in [CheckMode::Pre, CheckMode::Installed, CheckMode::PreUninstall] {
        let mut facts = well();
        if mode == CheckMode::Pre {
            facts.definitions.values_mut().for_each(|found| *found = Err(UnseenFact::Absent));
        }
        assert_eq!(problems(mode, &facts), [] as [&str; 0], "{mode:?}");
    }
    let text = text_of(&judge(CheckMode::Installed, NAMESPACE, &well()), false);
    assert!(text.ends_with("11 ok, 0 warnings, 0 failed, 3 skipped\n"), "{text}");
}

#[test]
fn no_cluster_is_one_failure_and_the_rest_is_skipped() {
    let facts = CheckFacts { unreachable: Some("connection refused".to_owned()), ..CheckFacts::default() };
    let expected = [
        "✗ api-reachable: the API server does not answer: connection refused",
        "→ is the cluster up, and is it the right one? kubectl config current-context",
    ];
    assert_eq!(problems(CheckMode::Installed, &facts), expected);
    let skipped = "· operator-ready: the API server does not answer".to_owned();
    assert!(short(CheckMode::Installed, &facts).contains(&skipped), "what is skipped is not ok");
}

#[test]
fn an_old_cluster_is_refused() {
    let version = Some(Ok(json!({"major": "1", "minor": "32", "gitVersion": "v1.32.0"})));
    let lines = problems(CheckMode::Pre, &CheckFacts { version, ..well() });
    assert!(lines[0].starts_with("✗ api-version: Kubernetes v1.32.0 is older than 1.33"), "{lines:?}");
}

#[test]
fn definitions_that_are_missing_or_old_are_named_with_the_command_that_brings_them() {
    let mut facts = well();
    *facts.definitions.get_mut("appbundles.app.example.com").unwrap() = Err(UnseenFact::Absent);
    let expected = [
        "✗ crds-served: the cluster does not serve appbundles.app.example.com",
        "→ linchpin crds | kubectl apply --server-side -f -",
    ];
    assert_eq!(problems(CheckMode::Installed, &facts), expected);

    let mut facts = well();
    let old = facts.definitions.get_mut("appbundles.app.example.com").unwrap().as_mut().unwrap();
    old["metadata"]["annotations"][keys::SCHEMA_HASH] = json!("older");
    assert_eq!(
        problems(CheckMode::Installed, &facts)[0],
        "✗ crds-current: appbundles.app.example.com are of another version than this program"
    );
    old_is_foreign_without_our_mark(facts);
}

fn old_is_foreign_without_our_mark(mut facts: CheckFacts) {
    let old = facts.definitions.get_mut("appbundles.app.example.com").unwrap().as_mut().unwrap();
    old["metadata"]["annotations"] = json!({});
    let lines = problems(CheckMode::Pre, &facts);
    assert!(
        lines[0].starts_with("✗ no-foreign-crds: appbundles.app.example.com are there and not ours"),
        "{lines:?}"
    );
}

#[test]
fn a_door_that_is_off_needs_no_definition_and_no_rights() {
    let mut facts = well();
    let deployment = &mut facts.deployments.as_mut().unwrap().as_mut().unwrap()["items"][0];
    deployment["spec"]["template"]["spec"]["containers"][0]["args"] =
        json!(["--doors=resourceDependency,bootDependency", SERVED]);
    *facts.definitions.get_mut("appbundles.app.example.com").unwrap() = Err(UnseenFact::Absent);
    let lines = problems(CheckMode::Installed, &facts);
    assert!(lines[0].starts_with("✗ rights-not-wider: the operator's roles give more"), "{lines:?}");
    assert!(lines[0].contains("appbundles.app.example.com (ClusterRole linchpin)"), "{lines:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn rights_for_webhooks_and_their_certificate_are_needed_where_they_are_served() {
    let with = |flags: &[&str]| {
        let mut facts = well();
        let deployment = &mut facts.deployments.as_mut().unwrap().as_mut().unwrap()["items"][0];
        deployment["spec"]["template"]["spec"]["containers"][0]["args"] = json!(flags);
        problems(CheckMode::Installed, &facts)
    };
    assert_eq!(with(&[SERVED]), [] as [&str; 0]);
    let given = with(&[SERVED, "--webhook-cert-dir=/certificate"]);
    let wider = "✗ rights-not-wider: the operator's roles give more than it needs: create secrets (Role \
                 linchpin-system/linchpin), get secrets linchpin-webhook-tls (Role linchpin-system/linchpin), ";
    assert!(given[0].starts_with(wider), "{given:?}");
    let unserved = with(&[]);
    assert!(
        unserved[0].contains("get mutatingwebhookconfigurations.admissionregistration.k8s.io"),
        "{unserved:?}"
    );
}

#[test]
fn an_operator_that_is_not_there_or_down_says_which() {
    let facts = CheckFacts { deployments: Some(Ok(json!({"items": []}))), ..well() };
    assert_eq!(
        problems(CheckMode::Installed, &facts)[0],
        "✗ operator-ready: there is no operator in namespace linchpin-system"
    );
    let mut facts = well();
    let deployment = &mut facts.deployments.as_mut().unwrap().as_mut().unwrap()["items"][0];
    deployment["status"]["availableReplicas"] = json!(0);
    let expected = [
        "✗ operator-ready: no Pod of Deployment linchpin-system/linchpin is ready",
        "→ kubectl describe pods -n linchpin-system -l app.kubernetes.io/part-of=linchpin,app.kubernetes.io/component=operator",
    ];
    assert_eq!(problems(CheckMode::Installed, &facts), expected);
}

#[test]
fn nobody_who_leads_is_a_failure() {
    let lease = |spec: Value| CheckFacts { lease: Some(Ok(json!({"spec": spec}))), ..well() };
    let old = lease(
        json!({"holderIdentity": "a", "leaseDurationSeconds": 3, "renewTime": "2026-01-01T00:00:00.000000Z"}),
    );
    assert_eq!(
        problems(CheckMode::Installed, &old)[0],
        "✗ lease-renewed: a holds Lease linchpin-system/linchpin and has not renewed it since 2026-01-01T00:00:00Z"
    );
    let free = lease(json!({"holderIdentity": "", "leaseDurationSeconds": 15}));
    assert!(problems(CheckMode::Installed, &free)[0].starts_with("✗ lease-renewed: nobody holds"));
}

fn tenant_rules(facts: &mut CheckFacts) -> &mut Value {
    let live = facts.roles.iter_mut().find(|live| live.scope == RightScope::Tenant).unwrap();
    live.role.as_mut().unwrap()
}

#[test]
fn a_right_that_is_missing_fails_and_so_does_one_too_many() {
    let mut facts = well();
    let role = tenant_rules(&mut facts);
    role["rules"][0]["verbs"] = json!(["impersonate", "get", "list", "watch", "delete"]);
    assert_eq!(
        problems(CheckMode::Installed, &facts)[0],
        "✗ rights-not-wider: the operator's roles give more than it needs: delete serviceaccounts (ClusterRole linchpin-tenant)"
    );
    let role = tenant_rules(&mut facts);
    role["rules"][0]["verbs"] = json!(["get", "list", "watch"]);
    assert_eq!(
        problems(CheckMode::Installed, &facts)[0],
        "✗ rights-current: the operator's roles lack impersonate serviceaccounts (ClusterRole linchpin-tenant)"
    );
}

/// KusionStack has a kind of ours too, and the chart leaves its definition alone.
#[test]
fn a_definition_that_is_kusionstacks_own_is_neither_foreign_nor_old() {
    let name = "podtransitionrules.apps.kusionstack.io";
    let mut facts = well();
    let found = facts.definitions.get_mut(name).unwrap().as_mut().unwrap();
    found["metadata"]["annotations"] = json!({});
    assert_eq!(
        problems(CheckMode::Pre, &facts)[0],
        format!("✗ no-foreign-crds: {name} are there and not ours"),
        "with our label it is ours"
    );
    let found = facts.definitions.get_mut(name).unwrap().as_mut().unwrap();
    found["metadata"]["labels"] = json!({});
    for mode in [CheckMode::Pre, CheckMode::Installed] {
        assert_eq!(problems(mode, &facts), [] as [&str; 0], "{mode:?}");
    }
}

#[test]
fn what_cannot_be_read_hides_nothing_that_was_found_wrong() {
    let forbidden = || Err(UnseenFact::Forbidden("no".to_owned()));
    let mut facts = well();
    let object = json!({"metadata": {"namespace": "shop", "name": "a", "finalizers": [keys::TEARDOWN_FINALIZER]},
        "status": {"conditions": [{"type": "Stalled", "status": "True"}, {"type": "Ready", "reason": "NotATenant"}]}});
    facts.objects.insert("b".to_owned(), Ok(json!({"items": [object]})));
    facts.objects.insert("a".to_owned(), forbidden());
    tenant_rules(&mut facts)["rules"][0]["verbs"] = json!(["get", "list", "watch", "delete"]);
    facts.roles.iter_mut().find(|live| live.scope == RightScope::Cluster).unwrap().role = forbidden();
    let lines = problems(CheckMode::Installed, &facts);
    let ids = ["rights-current", "rights-not-wider", "tenants-bound", "nothing-stalled"];
    for (line, id) in lines.iter().filter(|line| !line.starts_with('→')).zip(ids) {
        assert!(line.contains(id), "{lines:?}");
    }
    assert_eq!(lines.len(), 2 * ids.len(), "{lines:?}");
    assert!(problems(CheckMode::PreUninstall, &facts)[0].starts_with("✗ no-finalizers"));
    // Where nothing was found wrong, it is not known that nothing is.
    facts.objects.remove("b");
    tenant_rules(&mut facts)["rules"][0]["verbs"] = json!(["impersonate", "get", "list", "watch"]);
    assert_eq!(problems(CheckMode::Installed, &facts), [] as [&str; 0]);
    let lines = short(CheckMode::Installed, &facts);
    for id in ids {
        assert!(lines.iter().any(|line| line.starts_with(&format!("· {id}: you may not read"))), "{lines:?}");
    }
}

#[test]
fn objects_in_a_namespace_that_is_no_tenant_bring_the_line() {
    let mut facts = well();
    let object = json!({"metadata": {"namespace": "shop", "name": "a"}, "status": {"conditions": [
        {"type": "Ready", "status": "False", "reason": "NotATenant",
         "message": "whatever"}]}});
    facts.objects.insert("a".to_owned(), Ok(json!({"items": [object]})));
    let expected = [
        "✗ tenants-bound: objects of ours wait in namespaces that are no tenants: shop",
        "→ kubectl create rolebinding linchpin-tenant -n shop --clusterrole=linchpin-tenant \
         --serviceaccount=linchpin-system:linchpin",
    ];
    assert_eq!(problems(CheckMode::Installed, &facts), expected);
}

#[test]
fn stalled_objects_are_counted_and_finalizers_keep_from_uninstalling() {
    let mut facts = well();
    let object = json!({"metadata": {"namespace": "shop", "name": "a", "finalizers": [keys::TEARDOWN_FINALIZER]},
        "status": {"conditions": [{"type": "Stalled", "status": "True"}]}});
    facts.objects.insert("a".to_owned(), Ok(json!({"items": [object]})));
    let stalled = problems(CheckMode::Installed, &facts);
    assert_eq!(stalled[0], "! nothing-stalled: 1 of 1 objects of ours cannot go on: shop/a");
    let held = problems(CheckMode::PreUninstall, &facts);
    assert!(
        held[0].starts_with("✗ no-finalizers: 1 objects of ours would hang without an operator: shop/a"),
        "{held:?}"
    );
}

#[test]
fn what_the_caller_may_not_read_is_skipped_and_said() {
    let mut facts = well();
    facts.lease = Some(Err(UnseenFact::Forbidden("no".to_owned())));
    facts.may_create.insert("secrets".to_owned(), Ok(false));
    let text = text_of(&judge(CheckMode::Installed, NAMESPACE, &facts), false);
    assert!(text.contains("· lease-renewed: you may not read Lease linchpin-system/linchpin"), "{text}");
    let lines = problems(CheckMode::Pre, &facts);
    assert!(lines[0].starts_with("✗ can-install: you may not create secrets"), "{lines:?}");
}

/// Webhooks of an operator, with these bundles in their configurations and this Secret.
fn with_webhooks(bundle: &str, secret: Looked) -> CheckFacts {
    let configuration = json!({"webhooks": [{"clientConfig": {"caBundle": bundle}}]});
    let names = [
        "MutatingWebhookConfiguration linchpin-mutating",
        "ValidatingWebhookConfiguration linchpin-validating",
    ];
    let webhooks = Webhooks {
        service: "linchpin-webhook.linchpin-system.svc".to_owned(),
        configurations: names.map(|name| (name.to_owned(), Ok(configuration.clone()))).into(),
        may_be_absent: false,
        secret_name: "linchpin-webhook-tls".to_owned(),
        secret,
    };
    let refused =
        r#"admission webhook "vbootdependency-v1alpha1.kb.io" denied the request: spec.dependsOn: Forbidden"#;
    let circle = Some(Err(UnseenFact::Forbidden(refused.to_owned())));
    CheckFacts { webhooks: vec![webhooks], circle, ..well() }
}

#[test]
fn webhooks_that_are_not_reached_or_not_believed_are_told() {
    let secret = json!({"data": {"ca.crt": "Y2E=", "tls.crt": ""}});
    let mut facts = with_webhooks("Y2E=", Ok(secret.clone()));
    let expected = [
        "✗ certificate-valid: the certificate in Secret linchpin-system/linchpin-webhook-tls cannot be read",
        "→ kubectl delete secret linchpin-webhook-tls -n linchpin-system: the leader makes a new one",
    ];
    assert_eq!(problems(CheckMode::Installed, &facts), expected);
    facts.circle = Some(Ok(json!({})));
    let lines = problems(CheckMode::Installed, &facts);
    assert_eq!(
        lines[0],
        "✗ webhook-answers: the API server does not reach them: what they refuse is accepted"
    );
    for bundle in ["", "b3RoZXI="] {
        let lines = problems(CheckMode::Installed, &with_webhooks(bundle, Ok(secret.clone())));
        assert!(
            lines[0].starts_with("✗ webhook-ca: MutatingWebhookConfiguration linchpin-mutating, "),
            "{lines:?}"
        );
    }
    // Who may not read the Secret sees that an authority is named, and learns what was not looked at.
    let forbidden = || Err(UnseenFact::Forbidden("no".to_owned()));
    let mut facts = with_webhooks("b3RoZXI=", forbidden());
    assert_eq!(problems(CheckMode::Installed, &facts), [] as [&str; 0]);
    facts.circle = Some(forbidden());
    let text = text_of(&judge(CheckMode::Installed, NAMESPACE, &facts), false);
    assert!(
        text.contains("· webhook-answers: you may not create bootdependencies in linchpin-system"),
        "{text}"
    );
    let flags = ["--webhook-bind-address=:8443", "--watch-namespaces=shop,bank"];
    let deployment = &mut facts.deployments.as_mut().unwrap().as_mut().unwrap()["items"][0];
    deployment["spec"]["template"]["spec"]["containers"][0]["args"] = json!(flags);
    let lines = short(CheckMode::Installed, &facts);
    let watched = "· webhook-answers: you may not create bootdependencies in shop, which a dry run needs";
    assert!(lines.iter().any(|line| line == watched), "{lines:?}");
    facts.circle = Some(Ok(json!({})));
    let lines = problems(CheckMode::Installed, &facts);
    assert!(lines.iter().any(|line| line.ends_with("; is port 8443 open for the API server?")), "{lines:?}");
    assert!(
        text.contains("· certificate-valid: you may not read Secret linchpin-system/linchpin-webhook-tls"),
        "{text}"
    );
    let mut facts = with_webhooks("b3RoZXI=", forbidden());
    facts.webhooks[0].configurations[1].1 = Err(UnseenFact::Absent);
    let lines = problems(CheckMode::Installed, &facts);
    assert_eq!(lines[0], "✗ webhook-ca: ValidatingWebhookConfiguration linchpin-validating is not there");
}

#[test]
fn pods_that_are_held_keep_from_uninstalling() {
    let pod = json!({"metadata": {"namespace": "shop", "name": "a"}, "spec": {"schedulingGates": [{"name": keys::BOOT}]}});
    let facts = CheckFacts { held_pods: Some(Ok(json!({"items": [pod]}))), ..well() };
    let lines = problems(CheckMode::PreUninstall, &facts);
    let expected =
        "✗ no-held-pods: 1 Pods are held by our scheduling gate, and nobody would let them go: shop/a";
    assert_eq!(lines[0], expected);
    assert!(lines[1].ends_with("kubectl patch pod a -n shop -p '{\"spec\":{\"schedulingGates\":[{\"name\":\"linchpin.dev/boot\",\"$patch\":\"delete\"}]}}'"), "{lines:?}");
}

/// Every check in a state in which it is not well: how its line begins, and what to try.
#[test]
#[allow(clippy::too_many_lines, reason = "a table, a row for each check")]
fn every_check_that_is_not_well_says_what_to_try() {
    let changed = |change: &dyn Fn(&mut CheckFacts)| {
        let mut facts = well();
        change(&mut facts);
        facts
    };
    let object = json!({"metadata": {"namespace": "shop", "name": "a", "finalizers": [keys::TEARDOWN_FINALIZER]},
        "status": {"conditions": [{"type": "Stalled", "status": "True"}]}});
    let objects = changed(&|facts| {
        facts.objects.insert("a".to_owned(), Ok(json!({"items": [object]})));
    });
    let secret = json!({"data": {"ca.crt": "Y2E=", "tls.crt": ""}});
    let unreached = CheckFacts { circle: Some(Ok(json!({}))), ..with_webhooks("Y2E=", Ok(secret.clone())) };
    let logs = "kubectl logs -n linchpin-system -l app.kubernetes.io/part-of=linchpin,app.kubernetes.io/component=operator";
    let apply = "upgrade the release, or: linchpin manifests --no-crds | kubectl apply --server-side --force-conflicts -f -";
    let cases: Vec<(CheckMode, CheckFacts, &str, String)> = vec![
        (
            CheckMode::Pre,
            changed(&|facts| facts.version = Some(Ok(json!({"major": "1", "minor": "32"})))),
            "✗ api-version: ",
            "Linchpin needs Kubernetes 1.33 or newer".to_owned(),
        ),
        (
            CheckMode::Pre,
            changed(&|facts| drop(facts.may_create.insert("secrets".to_owned(), Ok(false)))),
            "✗ can-install: you may not create secrets",
            "ask somebody who may, or for a role with these".to_owned(),
        ),
        (
            CheckMode::Pre,
            changed(&|facts| {
                let other = json!({"metadata": {"namespace": "other", "name": "linchpin"}});
                facts.elsewhere = Some(Ok(json!({"items": [other]})));
            }),
            "✗ no-other-install: Linchpin is installed already: other/linchpin",
            "a second one needs watchNamespaces that do not overlap, and crds.install=false".to_owned(),
        ),
        (
            CheckMode::Pre,
            changed(&|facts| {
                let foreign = facts.definitions.get_mut("appbundles.app.example.com").unwrap();
                foreign.as_mut().unwrap()["metadata"]["annotations"] = json!({});
            }),
            "✗ no-foreign-crds: appbundles.app.example.com are there and not ours",
            "look who made them: kubectl get crd NAME -o yaml; their objects would be read as ours".to_owned(),
        ),
        (
            CheckMode::Installed,
            changed(&|facts| {
                let old = facts.definitions.get_mut("appbundles.app.example.com").unwrap().as_mut().unwrap();
                old["metadata"]["annotations"][keys::SCHEMA_HASH] = json!("older");
            }),
            "✗ crds-current: appbundles.app.example.com are of another version",
            "linchpin crds | kubectl apply --server-side --force-conflicts -f -".to_owned(),
        ),
        (
            CheckMode::Installed,
            changed(&|facts| {
                let deployment = &mut facts.deployments.as_mut().unwrap().as_mut().unwrap()["items"][0];
                deployment["metadata"]["labels"]["app.kubernetes.io/version"] = json!("0.9.0");
            }),
            "! operator-version: the operator is \"0.9.0\", this program ",
            "use a linchpin of the operator's version".to_owned(),
        ),
        (
            CheckMode::Installed,
            changed(&|facts| facts.lease = Some(Err(UnseenFact::Absent))),
            "✗ lease-renewed: there is no Lease linchpin-system/linchpin: no operator has led yet",
            logs.to_owned(),
        ),
        (
            CheckMode::Installed,
            changed(&|facts| tenant_rules(facts)["rules"][0]["verbs"] = json!(["get", "list", "watch"])),
            "✗ rights-current: the operator's roles lack impersonate serviceaccounts",
            apply.to_owned(),
        ),
        (
            CheckMode::Installed,
            unreached,
            "✗ webhook-answers: ",
            format!("{logs}; is port 9443 open for the API server?"),
        ),
        (
            CheckMode::Installed,
            with_webhooks("", Ok(secret)),
            "✗ webhook-ca: ",
            format!("the leader writes it: {logs}"),
        ),
        (
            CheckMode::PreUninstall,
            changed(&|facts| facts.objects.clone_from(&objects.objects)),
            "✗ no-finalizers: ",
            "delete them while the operator runs, or let what they made stay (spec.deletionPolicy: Retain; of an AppBundle: \
             Orphan) and delete them then"
                .to_owned(),
        ),
        (
            CheckMode::Installed,
            objects,
            "! nothing-stalled: ",
            "linchpin explain KIND/NAME says why".to_owned(),
        ),
    ];
    for (mode, facts, line, hint) in &cases {
        let lines = problems(*mode, facts);
        let at =
            lines.iter().position(|one| one.starts_with(line)).unwrap_or_else(|| panic!("{line}: {lines:?}"));
        assert_eq!(lines[at + 1], format!("→ {hint}"), "{line}");
    }
}
