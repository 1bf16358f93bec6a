//! The checks: pure functions of what was read. Ids are headings of `docs/troubleshooting.md`.

mod webhooks;

use std::{collections::BTreeSet, fmt::Write as _};

use linchpin_operator::{
    rights::{NAME, Row, Scope, compare::compare},
    settings::Doors,
};
use linchpin_words::{Reason, Timestamp, keys};
use serde_json::{Value, json};

use super::{
    Mode,
    facts::{Facts, Looked, Unseen, deployment, flag},
};
use crate::rbac::check::tenant_line;

/// Every id, by what is asked and by category, in the order of output.
pub(super) const IDS: &[(Mode, &str, &[&str])] = &[
    (Mode::Pre, "kubernetes", &["api-reachable", "api-version"]),
    (Mode::Pre, "installation", &["can-install", "no-other-install", "no-foreign-crds"]),
    (Mode::Installed, "kubernetes", &["api-reachable", "api-version"]),
    (Mode::Installed, "definitions", &["crds-served", "crds-current"]),
    (Mode::Installed, "operator", &["operator-ready", "operator-version", "lease-renewed"]),
    (Mode::Installed, "rights", &["rights-current", "rights-not-wider"]),
    (Mode::Installed, "webhooks", &["webhook-answers", "webhook-ca", "certificate-valid"]),
    (Mode::Installed, "objects", &["tenants-bound", "nothing-stalled"]),
    (Mode::PreUninstall, "kubernetes", &["api-reachable"]),
    (Mode::PreUninstall, "objects", &["no-finalizers", "no-held-pods"]),
];

/// The oldest minor version of Kubernetes 1 that is served.
const OLDEST: u64 = 33;
/// A lease that was not renewed for so many of its own lengths is nobody's, however clocks differ.
const LENGTHS: i64 = 3;
/// How many names are listed; of more, the number.
const FEW: usize = 3;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Ok,
    Warning,
    Failed,
    Skipped,
}

impl Verdict {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    fn sign(self) -> char {
        match self {
            Self::Ok => '✓',
            Self::Warning => '!',
            Self::Failed => '✗',
            Self::Skipped => '·',
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) id: &'static str,
    pub(super) verdict: Verdict,
    pub(super) message: String,
    /// What to try; empty where nothing is to be done.
    pub(super) hint: String,
}

/// Checks that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Category {
    pub(super) name: &'static str,
    pub(super) checks: Vec<Check>,
}

type Told = (Verdict, String, String);

fn ok(message: impl Into<String>) -> Told {
    (Verdict::Ok, message.into(), String::new())
}

fn failed(message: impl Into<String>, hint: impl Into<String>) -> Told {
    (Verdict::Failed, message.into(), hint.into())
}

fn warning(message: impl Into<String>, hint: impl Into<String>) -> Told {
    (Verdict::Warning, message.into(), hint.into())
}

fn skipped(message: impl Into<String>) -> Told {
    (Verdict::Skipped, message.into(), String::new())
}

/// What was not seen, as the reason why nothing is said about it.
fn unseen(what: &str, why: &Unseen) -> Told {
    match why {
        Unseen::Absent => skipped(format!("{what}: it is not there")),
        Unseen::Forbidden(_) => skipped(format!("you may not read {what}")),
        Unseen::Failed(error) => skipped(format!("{what} cannot be read: {error}")),
    }
}

/// Judges all checks of a mode.
pub(super) fn judge(mode: Mode, namespace: &str, facts: &Facts) -> Vec<Category> {
    let asked = IDS.iter().filter(|(of, ..)| *of == mode);
    asked
        .map(|(_, name, ids)| Category {
            name,
            checks: ids
                .iter()
                .map(|id| {
                    let (verdict, message, hint) = match &facts.unreachable {
                        Some(error) if *id == "api-reachable" => failed(
                            format!("the API server does not answer: {error}"),
                            "is the cluster up, and is it the right one? kubectl config current-context",
                        ),
                        Some(_) => skipped("the API server does not answer"),
                        None => check(id, namespace, facts),
                    };
                    Check { id, verdict, message, hint }
                })
                .collect(),
        })
        .collect()
}

fn check(id: &str, namespace: &str, facts: &Facts) -> Told {
    match id {
        "api-reachable" => ok("the API server answers"),
        "api-version" => api_version(facts.version.as_ref()),
        "can-install" => can_install(facts),
        "no-other-install" => no_other_install(facts.elsewhere.as_ref()),
        "no-foreign-crds" => no_foreign_crds(facts),
        "crds-served" => crds_served(facts),
        "crds-current" => crds_current(facts),
        "operator-ready" => operator_ready(namespace, facts.deployments.as_ref()),
        "operator-version" => operator_version(facts),
        "lease-renewed" => lease_renewed(namespace, facts),
        "rights-current" => rights(facts, true),
        "rights-not-wider" => rights(facts, false),
        "tenants-bound" => tenants_bound(namespace, facts),
        "nothing-stalled" => nothing_stalled(facts),
        "no-finalizers" => no_finalizers(facts),
        "webhook-answers" => webhooks::answers(facts),
        "webhook-ca" => webhooks::authority(facts),
        "certificate-valid" => webhooks::certificate(facts),
        _ => webhooks::no_held_pods(facts.held_pods.as_ref()),
    }
}

fn api_version(version: Option<&Looked>) -> Told {
    let version = match version {
        Some(Ok(version)) => version,
        Some(Err(why)) => return unseen("/version", why),
        None => return skipped("not looked at"),
    };
    let number = |field: &str| {
        let digits: String =
            version[field].as_str().unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap_or_default()
    };
    let (major, minor) = (number("major"), number("minor"));
    let called = version["gitVersion"].as_str().unwrap_or("of no version");
    if (major, minor) >= (1, OLDEST) {
        ok(format!("Kubernetes {called}"))
    } else {
        failed(
            format!("Kubernetes {called} is older than 1.{OLDEST}"),
            format!("Linchpin needs Kubernetes 1.{OLDEST} or newer"),
        )
    }
}

fn can_install(facts: &Facts) -> Told {
    let mut lacking = Vec::new();
    for (kind, allowed) in &facts.may_create {
        match allowed {
            Ok(true) => {}
            Ok(false) => lacking.push(kind.clone()),
            Err(why) => return unseen("what you may do", why),
        }
    }
    if lacking.is_empty() {
        ok(format!("you may create all {} kinds of an installation", facts.may_create.len()))
    } else {
        failed(
            format!("you may not create {}", list(&lacking)),
            "ask somebody who may, or for a role with these",
        )
    }
}

fn no_other_install(elsewhere: Option<&Looked>) -> Told {
    let found = match elsewhere {
        Some(Ok(found)) => found,
        Some(Err(why)) => return unseen("Deployments of all namespaces", why),
        None => return skipped("not looked at"),
    };
    let places: Vec<String> = items(found).map(place).collect();
    if places.is_empty() {
        ok("there is no other installation")
    } else {
        failed(
            format!("Linchpin is installed already: {}", list(&places)),
            "a second one needs watchNamespaces that do not overlap, and crds.install=false",
        )
    }
}

fn no_foreign_crds(facts: &Facts) -> Told {
    let mut foreign = Vec::new();
    for (name, looked) in &facts.definitions {
        match looked {
            Err(Unseen::Absent) => {}
            Err(why) => return unseen("definitions", why),
            Ok(found) if found["metadata"]["annotations"].get(keys::SCHEMA_HASH).is_none() => {
                foreign.push(name.clone());
            }
            Ok(_) => {}
        }
    }
    if foreign.is_empty() {
        ok("no definition of ours is somebody else's")
    } else {
        failed(
            format!("{} are there and not ours", list(&foreign)),
            "look who made them: kubectl get crd NAME -o yaml; their objects would be read as ours",
        )
    }
}

/// The definitions that an operator with these doors needs.
fn needed(facts: &Facts) -> BTreeSet<String> {
    let doors = doors(facts);
    let all = linchpin_api::all_crds();
    let served = all.into_iter().filter(|definition| doors.serve(&definition.spec.names.kind));
    served.filter_map(|definition| definition.metadata.name).collect()
}

fn doors(facts: &Facts) -> Doors {
    let given = deployment(facts).and_then(|deployment| flag(deployment, "doors"));
    given.and_then(|given| given.parse().ok()).unwrap_or_default()
}

fn crds_served(facts: &Facts) -> Told {
    let mut missing = Vec::new();
    for name in needed(facts) {
        match facts.definitions.get(&name) {
            Some(Ok(found)) => {
                let conditions = found["status"]["conditions"].as_array();
                let served = conditions
                    .into_iter()
                    .flatten()
                    .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
                if !served {
                    missing.push(name);
                }
            }
            Some(Err(Unseen::Absent)) | None => missing.push(name),
            Some(Err(why)) => return unseen("definitions", why),
        }
    }
    if missing.is_empty() {
        ok("all kinds are served")
    } else {
        failed(
            format!("the cluster does not serve {}", list(&missing)),
            "linchpin crds | kubectl apply --server-side -f -",
        )
    }
}

fn crds_current(facts: &Facts) -> Told {
    let needed = needed(facts);
    let mut old = Vec::new();
    for definition in linchpin_api::all_crds() {
        let name = definition.metadata.name.clone().unwrap_or_default();
        let Some(Ok(found)) = facts.definitions.get(&name).filter(|_| needed.contains(&name)) else {
            continue;
        };
        let ours = definition.metadata.annotations.unwrap_or_default().get(keys::SCHEMA_HASH).cloned();
        if found["metadata"]["annotations"][keys::SCHEMA_HASH].as_str() != ours.as_deref() {
            old.push(name);
        }
    }
    if old.is_empty() {
        ok("the definitions are those of this version")
    } else {
        failed(
            format!("{} are of another version than this program", list(&old)),
            "linchpin crds | kubectl apply --server-side --force-conflicts -f -",
        )
    }
}

fn operator_ready(namespace: &str, deployments: Option<&Looked>) -> Told {
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
            format!("kubectl describe pods -n {namespace} -l app.kubernetes.io/name=linchpin"),
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
            format!("kubectl describe pods -n {namespace} -l app.kubernetes.io/name=linchpin"),
        )
    } else {
        ok(format!("{available} of {wanted} Pods of Deployment {called} are ready"))
    }
}

fn operator_version(facts: &Facts) -> Told {
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

fn lease_renewed(namespace: &str, facts: &Facts) -> Told {
    let lease = match &facts.lease {
        Some(Ok(lease)) => lease,
        Some(Err(Unseen::Absent)) => {
            return failed(
                format!("there is no Lease {namespace}/linchpin: no operator has led yet"),
                format!("kubectl logs -n {namespace} -l app.kubernetes.io/name=linchpin"),
            );
        }
        Some(Err(why)) => return unseen(&format!("Lease {namespace}/linchpin"), why),
        None => return skipped("not looked at"),
    };
    let holder = text(&lease["spec"]["holderIdentity"]);
    let length = lease["spec"]["leaseDurationSeconds"].as_i64().unwrap_or(15);
    let renewed = Timestamp::parse(text(&lease["spec"]["renewTime"])).ok();
    let hint = format!("kubectl logs -n {namespace} -l app.kubernetes.io/name=linchpin");
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

fn rights(facts: &Facts, missing: bool) -> Told {
    if deployment(facts).is_none() {
        return skipped("there is no operator to compare with");
    }
    let doors = doors(facts);
    let by_namespace =
        deployment(facts).and_then(|deployment| flag(deployment, "watch-namespaces")).is_some();
    let mut found = Vec::new();
    for live in &facts.roles {
        let rules = match &live.role {
            Ok(role) => role["rules"].clone(),
            Err(Unseen::Absent) => json!([]),
            Err(why) => return unseen(&live.called, why),
        };
        let wanted = |row: &Row| match live.scope {
            Scope::Cluster if live.watched => row.by_namespace,
            Scope::Cluster => !(by_namespace && row.by_namespace),
            Scope::Release | Scope::Tenant => true,
        };
        let told = compare(live.scope, &doors, &rules, wanted);
        let differs = if missing { told.missing } else { told.extra };
        found.extend(differs.into_iter().map(|permission| format!("{permission} ({})", live.called)));
    }
    let update = "upgrade the release, or: linchpin manifests --no-crds | kubectl apply --server-side --force-conflicts -f -";
    match (missing, found.is_empty()) {
        (true, true) => ok("the operator's roles give what this version needs"),
        (true, false) => failed(format!("the operator's roles lack {}", list(&found)), update),
        (false, true) => ok("the operator's roles give nothing else"),
        (false, false) => {
            warning(format!("the operator's roles give more than it needs: {}", list(&found)), update)
        }
    }
}

fn tenants_bound(namespace: &str, facts: &Facts) -> Told {
    if let Some(told) = unread(facts) {
        return told;
    }
    let is_closed = |object: &&Value| {
        condition(object, "Ready").is_some_and(|ready| ready["reason"] == Reason::NotATenant.as_str())
    };
    let closed: BTreeSet<String> = objects(facts)
        .filter(is_closed)
        .map(|object| text(&object["metadata"]["namespace"]).to_owned())
        .collect();
    let closed: Vec<String> = closed.into_iter().collect();
    let Some(first) = closed.first() else { return ok("every namespace with objects of ours is a tenant") };
    let deployment = deployment(facts);
    let name = deployment.map_or(NAME, |deployment| text(&deployment["metadata"]["name"]));
    let account = deployment.map_or(NAME, |one| text(&one["spec"]["template"]["spec"]["serviceAccountName"]));
    failed(
        format!("objects of ours wait in namespaces that are no tenants: {}", list(&closed)),
        tenant_line(first, name, namespace, account),
    )
}

fn nothing_stalled(facts: &Facts) -> Told {
    if let Some(told) = unread(facts) {
        return told;
    }
    let all = objects(facts).count();
    let stalled: Vec<String> = objects(facts)
        .filter(|object| condition(object, "Stalled").is_some_and(|stalled| stalled["status"] == "True"))
        .map(|object| format!("{} {}", text(&object["kind"]), place(object)).trim().to_owned())
        .collect();
    if stalled.is_empty() {
        ok(format!("none of {all} objects of ours is stalled"))
    } else {
        warning(
            format!("{} of {all} objects of ours cannot go on: {}", stalled.len(), list(&stalled)),
            "linchpin explain KIND/NAME says why",
        )
    }
}

fn no_finalizers(facts: &Facts) -> Told {
    if let Some(told) = unread(facts) {
        return told;
    }
    let ours = [keys::TEARDOWN_FINALIZER, keys::APP_BUNDLE_FINALIZER];
    let held: Vec<String> = objects(facts)
        .filter(|object| {
            let finalizers = object["metadata"]["finalizers"].as_array();
            finalizers.into_iter().flatten().any(|one| ours.iter().any(|ours| one == ours))
        })
        .map(place)
        .collect();
    if held.is_empty() {
        ok("no object of ours needs an operator to go")
    } else {
        failed(
            format!("{} objects of ours would hang without an operator: {}", held.len(), list(&held)),
            "delete them while the operator runs, or let what they made stay (spec.deletionPolicy: Retain) and delete them then",
        )
    }
}

/// Why the objects could not be read, where that is so.
fn unread(facts: &Facts) -> Option<Told> {
    let unread = |(kind, looked): (&String, &Looked)| match looked {
        Err(why @ (Unseen::Forbidden(_) | Unseen::Failed(_))) => Some(unseen(kind, why)),
        Ok(_) | Err(Unseen::Absent) => None,
    };
    facts.objects.iter().find_map(unread)
}

fn objects(facts: &Facts) -> impl Iterator<Item = &Value> {
    facts.objects.values().filter_map(|looked| looked.as_ref().ok()).flat_map(items)
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn place(object: &Value) -> String {
    let metadata = &object["metadata"];
    match text(&metadata["namespace"]) {
        "" => text(&metadata["name"]).to_owned(),
        namespace => format!("{namespace}/{}", text(&metadata["name"])),
    }
}

fn list(names: &[String]) -> String {
    let mut shown = names.iter().take(FEW).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > FEW {
        let _ = write!(shown, " and {} more", names.len() - FEW);
    }
    shown
}

/// For people: a line for each check, and one that counts.
pub(super) fn text_of(categories: &[Category], short: bool) -> String {
    let mut out = String::new();
    for category in categories {
        let shown: Vec<&Check> = category
            .checks
            .iter()
            .filter(|check| !short || matches!(check.verdict, Verdict::Warning | Verdict::Failed))
            .collect();
        if shown.is_empty() {
            continue;
        }
        if !short {
            let _ = writeln!(out, "{}", category.name);
        }
        for check in shown {
            let _ = writeln!(out, "{} {}: {}", check.verdict.sign(), check.id, check.message);
            if !check.hint.is_empty() {
                let _ = writeln!(out, "    → {}", check.hint);
            }
        }
    }
    let count = |verdict: Verdict| {
        let all = categories.iter().flat_map(|category| &category.checks);
        all.filter(|check| check.verdict == verdict).count()
    };
    let _ = writeln!(
        out,
        "{} ok, {} warnings, {} failed, {} skipped",
        count(Verdict::Ok),
        count(Verdict::Warning),
        count(Verdict::Failed),
        count(Verdict::Skipped)
    );
    out
}

#[cfg(test)]
mod tests;
