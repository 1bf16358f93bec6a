//! The checks: pure functions of what was read. Ids are headings of `docs/troubleshooting.md`.

mod installation;
mod objects;
mod operator;
mod webhooks;

use linchpin_operator::settings::Doors;
use linchpin_words::text::line_of;
use serde_json::Value;

use super::{
    CheckMode,
    facts::{CheckFacts, deployment, flag},
    report::{Category, Check, CheckEnd, failed, ok, skipped},
};

/// Every id, by what is asked and by category, in the order of output.
pub(super) const IDS: &[(CheckMode, &str, &[&str])] = &[
    (CheckMode::Pre, "kubernetes", &["api-reachable", "api-version"]),
    (CheckMode::Pre, "installation", &["can-install", "no-other-install", "no-foreign-crds"]),
    (CheckMode::Installed, "kubernetes", &["api-reachable", "api-version"]),
    (CheckMode::Installed, "definitions", &["crds-served", "crds-current"]),
    (CheckMode::Installed, "operator", &["operator-ready", "operator-version", "lease-renewed"]),
    (CheckMode::Installed, "rights", &["rights-current", "rights-not-wider"]),
    (CheckMode::Installed, "webhooks", &["webhook-answers", "webhook-ca", "certificate-valid"]),
    (CheckMode::Installed, "objects", &["tenants-bound", "nothing-stalled"]),
    (CheckMode::PreUninstall, "kubernetes", &["api-reachable"]),
    (CheckMode::PreUninstall, "objects", &["no-finalizers", "no-held-pods"]),
];

/// Judges all checks of a mode.
pub(super) fn judge(mode: CheckMode, namespace: &str, facts: &CheckFacts) -> Vec<Category> {
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
                    // What servers say is shown as text and obeyed by no terminal.
                    Check { id, verdict, message: line_of(&message, usize::MAX), hint }
                })
                .collect(),
        })
        .collect()
}

fn check(id: &str, namespace: &str, facts: &CheckFacts) -> CheckEnd {
    match id {
        "api-reachable" => ok("the API server answers"),
        "api-version" => installation::api_version(facts.version.as_ref()),
        "can-install" => installation::can_install(facts),
        "no-other-install" => installation::no_other_install(facts.elsewhere.as_ref()),
        "no-foreign-crds" => installation::no_foreign_crds(facts),
        "crds-served" => installation::crds_served(facts),
        "crds-current" => installation::crds_current(facts),
        "operator-ready" => operator::operator_ready(namespace, facts.deployments.as_ref()),
        "operator-version" => operator::operator_version(facts),
        "lease-renewed" => operator::lease_renewed(namespace, facts),
        "rights-current" => operator::rights(facts, true),
        "rights-not-wider" => operator::rights(facts, false),
        "webhook-answers" => webhooks::webhook_answers(namespace, facts),
        "webhook-ca" => webhooks::webhook_ca(namespace, facts),
        "certificate-valid" => webhooks::certificate_valid(namespace, facts),
        "tenants-bound" => objects::tenants_bound(namespace, facts),
        "nothing-stalled" => objects::nothing_stalled(facts),
        "no-finalizers" => objects::no_finalizers(facts),
        _ => objects::no_held_pods(facts.held_pods.as_ref()),
    }
}

/// The doors of the operator that was found.
fn doors(facts: &CheckFacts) -> Doors {
    let given = deployment(facts).and_then(|deployment| flag(deployment, "doors"));
    given.and_then(|given| given.parse().ok()).unwrap_or_default()
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

#[cfg(test)]
mod tests;
