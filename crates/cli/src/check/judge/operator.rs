//! The operator that runs, who leads, and what it may do.

use linchpin_operator::rights::{ForWebhooks, NAME, RightRow, RightScope, compare::compare};
use linchpin_words::Timestamp;
use serde_json::{Value, json};

use super::{doors, items, place, text};
use crate::check::{
    facts::{CheckFacts, LiveBinding, Looked, OPERATORS, UnseenFact, deployment, flag},
    report::{CheckEnd, failed, list, ok, skipped, unseen, warning},
};

/// A lease that was not renewed for so many of its own lengths is nobody's, however clocks differ.
const LENGTHS: i64 = 3;

pub(super) fn operator_ready(namespace: &str, deployments: Option<&Looked>) -> CheckEnd {
    let found = match deployments {
        Some(Ok(found)) => found,
        Some(Err(why)) => return unseen(&format!("Deployments in {namespace}"), why),
        None => return skipped("not looked at"),
    };
    let Some(one) = items(found).next() else {
        return failed(
            format!("there is no operator in namespace {namespace}"),
            "install it (linchpin manifests | kubectl apply --server-side -f -), or say where it is with -n",
        );
    };
    let count = |field: &str| one["status"][field].as_i64().unwrap_or_default();
    let (wanted, available) = (one["spec"]["replicas"].as_i64().unwrap_or(1), count("availableReplicas"));
    let called = place(one);
    if wanted > 0 && available == 0 {
        failed(
            format!("no Pod of Deployment {called} is ready"),
            format!("kubectl describe pods -n {namespace} -l {OPERATORS}"),
        )
    } else if wanted == 0 {
        failed(
            format!("Deployment {called} is scaled to 0"),
            format!(
                "kubectl scale deployment {} -n {namespace} --replicas=2",
                text(&one["metadata"]["name"])
            ),
        )
    } else if available < wanted {
        warning(
            format!("{available} of {wanted} Pods of Deployment {called} are ready"),
            format!("kubectl describe pods -n {namespace} -l {OPERATORS}"),
        )
    } else {
        ok(format!("{available} of {wanted} Pods of Deployment {called} are ready"))
    }
}

pub(super) fn operator_version(facts: &CheckFacts) -> CheckEnd {
    let Some(deployment) = deployment(facts) else { return skipped("there is no operator to ask") };
    let theirs = text(&deployment["metadata"]["labels"]["app.kubernetes.io/version"]);
    let ours = env!("CARGO_PKG_VERSION");
    match (minor(theirs), minor(ours)) {
        (Some(one), Some(other)) if one.0 == other.0 && one.1.abs_diff(other.1) <= 1 => {
            ok(format!("the operator is {theirs}, this program {ours}"))
        }
        _ => warning(
            format!("the operator is {theirs:?}, this program {ours}: more than one minor version apart"),
            "use a linchpin of the operator's version",
        ),
    }
}

fn minor(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.trim_start_matches('v').split(['.', '-', '+']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) fn lease_renewed(namespace: &str, facts: &CheckFacts) -> CheckEnd {
    let lease = match &facts.lease {
        Some(Ok(lease)) => lease,
        Some(Err(UnseenFact::Absent)) => {
            return failed(
                format!("there is no Lease {namespace}/linchpin: no operator has led yet"),
                format!("kubectl logs -n {namespace} -l {OPERATORS}"),
            );
        }
        Some(Err(why)) => return unseen(&format!("Lease {namespace}/linchpin"), why),
        None => return skipped("not looked at"),
    };
    let holder = text(&lease["spec"]["holderIdentity"]);
    let length = lease["spec"]["leaseDurationSeconds"].as_i64().unwrap_or(15);
    let renewed = Timestamp::parse(text(&lease["spec"]["renewTime"])).ok();
    let hint = format!("kubectl logs -n {namespace} -l {OPERATORS}");
    match (holder, renewed, facts.now) {
        ("", ..) => failed(format!("nobody holds Lease {namespace}/linchpin: no operator leads"), hint),
        (_, Some(renewed), Some(now)) if now.as_second() - renewed.as_second() > LENGTHS * length => failed(
            format!("{holder} holds Lease {namespace}/linchpin and has not renewed it since {renewed}"),
            hint,
        ),
        (_, None, _) => failed(format!("Lease {namespace}/linchpin was never renewed"), hint),
        _ => ok(format!("{holder} leads")),
    }
}

pub(super) fn rights(facts: &CheckFacts, missing: bool) -> CheckEnd {
    let Some(deployment) = deployment(facts) else {
        return skipped("there is no operator to compare with");
    };
    let doors = doors(facts);
    let has = |name: &str| flag(deployment, name).is_some();
    let by_namespace = has("watch-namespaces");
    let serves = flag(deployment, "webhook-bind-address").is_some_and(|address| address != "0");
    let configured = flag(deployment, "webhook-config-name").unwrap_or(NAME);
    let is_served = |row: &RightRow| match row.webhooks {
        ForWebhooks::No => true,
        ForWebhooks::Served => serves,
        ForWebhooks::OwnCertificate => serves && !has("webhook-cert-dir"),
    };
    let (mut found, mut unread) = (Vec::new(), None);
    for live in &facts.roles {
        let rules = match &live.role {
            Ok(role) => role["rules"].clone(),
            Err(UnseenFact::Absent) => json!([]),
            Err(why) => {
                unread.get_or_insert_with(|| unseen(&live.called, why));
                continue;
            }
        };
        let wanted = |row: &RightRow| {
            let is_here = match live.scope {
                RightScope::Cluster if live.watched => row.by_namespace,
                RightScope::Cluster => !(by_namespace && row.by_namespace),
                RightScope::Release | RightScope::Tenant => true,
            };
            is_here && is_served(row)
        };
        let compared = compare(live.scope, &doors, configured, &rules, wanted);
        let differs = if missing { compared.missing } else { compared.extra };
        found.extend(differs.into_iter().map(|permission| format!("{permission} ({})", live.called)));
    }
    let update = "upgrade the release, or: linchpin manifests --no-crds | kubectl apply --server-side --force-conflicts -f -";
    let unbound: Vec<String> =
        facts.bindings.iter().filter(|one| !binds(one, deployment)).map(|one| one.called.clone()).collect();
    if missing && !unbound.is_empty() {
        return failed(format!("the operator is not given its roles: not by {}", list(&unbound)), update);
    }
    match (missing, found.is_empty(), unread) {
        (true, false, _) => failed(format!("the operator's roles lack {}", list(&found)), update),
        (false, false, _) => {
            failed(format!("the operator's roles give more than it needs: {}", list(&found)), update)
        }
        (_, true, Some(unread)) => unread,
        (true, true, None) => ok("the operator's roles give what this version needs"),
        (false, true, None) => ok("the operator's roles give nothing else"),
    }
}

/// Whether a binding is for the operator's own ServiceAccount, as far as it can be seen.
fn binds(live: &LiveBinding, deployment: &Value) -> bool {
    let account = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
    let is_own = |subject: &Value| {
        subject["kind"] == "ServiceAccount"
            && subject["name"] == *account
            && subject["namespace"] == deployment["metadata"]["namespace"]
    };
    match &live.binding {
        Ok(binding) => binding["subjects"].as_array().is_some_and(|subjects| subjects.iter().any(is_own)),
        Err(why) => *why != UnseenFact::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_that_is_not_bound_to_its_roles_lacks_rights() {
        let deployment = json!({"metadata": {"name": "linchpin", "namespace": "linchpin-system"},
            "spec": {"template": {"spec": {"serviceAccountName": "linchpin", "containers": [{"args": []}]}}}});
        let bound = |name: &str| {
            Ok(json!({"subjects": [
            {"kind": "ServiceAccount", "name": name, "namespace": "linchpin-system"}]}))
        };
        let said = |binding: Looked| {
            let live = LiveBinding { called: "ClusterRoleBinding linchpin".to_owned(), binding };
            let facts = CheckFacts {
                deployments: Some(Ok(json!({"items": [deployment]}))),
                bindings: vec![live],
                ..CheckFacts::default()
            };
            (rights(&facts, true).1, rights(&facts, false).1)
        };
        let unbound = "the operator is not given its roles: not by ClusterRoleBinding linchpin";
        let well = "the operator's roles give what this version needs";
        for (binding, expected) in [
            (bound("linchpin"), well),
            (bound("another"), unbound),
            (Err(UnseenFact::Absent), unbound),
            (Err(UnseenFact::Forbidden(String::new())), well),
        ] {
            let (missing, wider) = said(binding);
            assert_eq!(missing, expected);
            assert_eq!(wider, "the operator's roles give nothing else");
        }
    }
}
