//! The checks of webhooks and of the pods that they hold.

use serde_json::Value;

use super::{Told, failed, items, list, ok, place, skipped, unseen};
use crate::check::facts::{Facts, Looked, Unseen};

/// How the API server speaks of a refusal of ours.
const REFUSED: &str = "vbootdependency-v1alpha1.kb.io";

/// Whether the API server calls our webhooks: one of them refuses a circle.
pub(super) fn answers(facts: &Facts) -> Told {
    if let Some(told) = unconfigured(facts) {
        return told;
    }
    match facts.circle.as_ref() {
        Some(Err(Unseen::Forbidden(message))) if message.contains(REFUSED) => {
            ok("the API server calls them, and they answer")
        }
        Some(Err(Unseen::Forbidden(_))) => skipped("you may not create BootDependencies, to try it"),
        Some(Ok(_)) => failed(
            "the API server cannot call our webhooks: new pods and Deployments get nothing to wait for",
            "is the operator ready, and may the API server reach its Service? kubectl logs deployment/linchpin",
        ),
        Some(Err(why)) => unseen("bootdependencies", why),
        None => skipped("not looked at"),
    }
}

/// Whether the configurations say whom the API server is to believe.
pub(super) fn authority(facts: &Facts) -> Told {
    if let Some(told) = unconfigured(facts) {
        return told;
    }
    let found = facts.webhooks.iter().filter_map(|looked| looked.as_ref().ok());
    let without: Vec<String> = found
        .filter(|configuration| {
            let all = configuration["webhooks"].as_array();
            let has_authority = |webhook: &Value| {
                webhook["clientConfig"]["caBundle"].as_str().is_some_and(|bundle| !bundle.is_empty())
            };
            !all.is_some_and(|all| all.iter().all(has_authority))
        })
        .map(|configuration| configuration["metadata"]["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    if without.is_empty() {
        ok("the webhook configurations have their CA")
    } else {
        failed(
            format!("there is no caBundle in {}", list(&without)),
            "the operator that leads puts it there within seconds: does it run, and may it patch them?",
        )
    }
}

/// The API server looks at date, name and authority of a certificate before it calls.
pub(super) fn certificate(facts: &Facts) -> Told {
    match facts.circle.as_ref() {
        _ if unconfigured(facts).is_some() => skipped("no webhook is configured"),
        Some(Err(Unseen::Forbidden(message))) if message.contains(REFUSED) => {
            ok("the API server accepts the certificate of the webhooks")
        }
        _ => skipped("the webhooks do not answer"),
    }
}

/// Why nothing is said of webhooks, where that is so.
fn unconfigured(facts: &Facts) -> Option<Told> {
    let hidden = facts.webhooks.iter().find_map(|looked| match looked {
        Err(why @ (Unseen::Forbidden(_) | Unseen::Failed(_))) => Some(unseen("webhook configurations", why)),
        _ => None,
    });
    hidden.or_else(|| {
        let none = facts.webhooks.iter().all(Result::is_err);
        none.then(|| skipped("no webhook is configured"))
    })
}

/// Whether pods would stay held without an operator.
pub(super) fn no_held_pods(pods: Option<&Looked>) -> Told {
    let pods = match pods {
        Some(Ok(pods)) => pods,
        Some(Err(why)) => return unseen("Pods of all namespaces", why),
        None => return skipped("not looked at"),
    };
    let held: Vec<String> = items(pods).map(place).collect();
    if held.is_empty() {
        return ok("no Pod is held by our scheduling gate");
    }
    failed(
        format!("{} Pods are held by our scheduling gate: {}", held.len(), list(&held)),
        "delete their BootDependencies while the operator runs, or let them go by hand: kubectl patch pod P -p \
         '{\"spec\":{\"schedulingGates\":[{\"name\":\"linchpin.dev/boot\",\"$patch\":\"delete\"}]}}'",
    )
}
