//! The objects of our kinds, and the pods that are held for them.

use std::collections::BTreeSet;

use linchpin_operator::rights::NAME;
use linchpin_words::{Reason, keys};
use serde_json::Value;

use super::{items, place, text};
use crate::{
    check::{
        facts::{CheckFacts, Looked, UnseenFact, deployment},
        report::{CheckEnd, failed, list, ok, skipped, unseen, warning},
    },
    rbac::check::tenant_line,
};

pub(super) fn tenants_bound(namespace: &str, facts: &CheckFacts) -> CheckEnd {
    let is_closed = |object: &&Value| {
        condition(object, "Ready").is_some_and(|ready| ready["reason"] == Reason::NotATenant.as_str())
    };
    let closed: BTreeSet<String> = objects(facts)
        .filter(is_closed)
        .map(|object| text(&object["metadata"]["namespace"]).to_owned())
        .collect();
    let closed: Vec<String> = closed.into_iter().collect();
    let Some(first) = closed.first() else {
        return unread(facts).unwrap_or_else(|| ok("every namespace with objects of ours is a tenant"));
    };
    let deployment = deployment(facts);
    let name = deployment.map_or(NAME, |deployment| text(&deployment["metadata"]["name"]));
    let account = deployment.map_or(NAME, |one| text(&one["spec"]["template"]["spec"]["serviceAccountName"]));
    failed(
        format!("objects of ours wait in namespaces that are no tenants: {}", list(&closed)),
        tenant_line(first, name, namespace, account),
    )
}

pub(super) fn nothing_stalled(facts: &CheckFacts) -> CheckEnd {
    let all = objects(facts).count();
    let stalled: Vec<String> = objects(facts)
        .filter(|object| condition(object, "Stalled").is_some_and(|stalled| stalled["status"] == "True"))
        .map(called)
        .collect();
    if stalled.is_empty() {
        unread(facts).unwrap_or_else(|| ok(format!("none of {all} objects of ours is stalled")))
    } else {
        warning(
            format!("{} of {all} objects of ours cannot go on: {}", stalled.len(), list(&stalled)),
            "linchpin explain KIND/NAME says why",
        )
    }
}

pub(super) fn no_finalizers(facts: &CheckFacts) -> CheckEnd {
    let ours = [keys::TEARDOWN_FINALIZER, keys::APP_BUNDLE_FINALIZER];
    let held: Vec<String> = objects(facts)
        .filter(|object| {
            let finalizers = object["metadata"]["finalizers"].as_array();
            finalizers.into_iter().flatten().any(|one| ours.iter().any(|ours| one == ours))
        })
        .map(called)
        .collect();
    if held.is_empty() {
        unread(facts).unwrap_or_else(|| ok("no object of ours needs an operator to go"))
    } else {
        failed(
            format!("{} objects of ours would hang without an operator: {}", held.len(), list(&held)),
            "delete them while the operator runs, or let what they made stay (spec.deletionPolicy: Retain; of an AppBundle: \
             Orphan) and delete them then",
        )
    }
}

/// Pods that our scheduling gate holds: without an operator nobody lets them go.
pub(super) fn no_held_pods(pods: Option<&Looked>) -> CheckEnd {
    let pods = match pods {
        Some(Ok(pods)) => pods,
        Some(Err(why)) => return unseen("Pods of all namespaces", why),
        None => return skipped("not looked at"),
    };
    let held: Vec<String> = items(pods).filter(|pod| is_held(pod)).map(place).collect();
    let Some(first) = items(pods).find(|pod| is_held(pod)) else {
        return ok("no Pod is held by our scheduling gate");
    };
    let (namespace, name) = (text(&first["metadata"]["namespace"]), text(&first["metadata"]["name"]));
    failed(
        format!(
            "{} Pods are held by our scheduling gate, and nobody would let them go: {}",
            held.len(),
            list(&held)
        ),
        format!(
            "delete their BootDependencies while the operator runs, or let each go: kubectl patch pod {name} -n {namespace} \
             -p '{{\"spec\":{{\"schedulingGates\":[{{\"name\":\"{}\",\"$patch\":\"delete\"}}]}}}}'",
            keys::BOOT
        ),
    )
}

/// Whether our gate is on a pod.
fn is_held(pod: &Value) -> bool {
    let gates = pod["spec"]["schedulingGates"].as_array();
    gates.into_iter().flatten().any(|gate| gate["name"] == keys::BOOT)
}

/// Why objects could not be read, where that is so. It says nothing of what was found wrong with the others.
fn unread(facts: &CheckFacts) -> Option<CheckEnd> {
    let unread = |(kind, looked): (&String, &Looked)| match looked {
        Err(why @ (UnseenFact::Forbidden(_) | UnseenFact::Failed(_))) => Some(unseen(kind, why)),
        Ok(_) | Err(UnseenFact::Absent) => None,
    };
    facts.objects.iter().find_map(unread)
}

/// `AppBundle shop/web`.
fn called(object: &Value) -> String {
    format!("{} {}", text(&object["kind"]), place(object)).trim().to_owned()
}

fn objects(facts: &CheckFacts) -> impl Iterator<Item = &Value> {
    facts.objects.values().filter_map(|looked| looked.as_ref().ok()).flat_map(items)
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}
