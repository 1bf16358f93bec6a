//! What others rely on: claims, Services, definitions, namespaces, and objects of kinds without a rule.

use linchpin_words::Gvk;
use serde_json::Value;

use super::{
    DescendAnswers, DescendQuestion, DescendRelation, Descent, ObjectAddress, condition_is, events, labelled,
    newest_event, pod, pods, said, selector, text, time,
};
use crate::readiness::subject::list;

/// How many conditions of a namespace are shown.
const SHOWN: usize = 3;

pub(super) fn claim_questions(object: &Value) -> Vec<DescendQuestion> {
    vec![events(object), labelled(&pods(), object, None)]
}

/// A claim: what its provisioner says, or the pod that it waits for.
pub(super) fn claim(object: &Value, answers: &DescendAnswers, here: Descent) -> Descent {
    if text(object, &["status", "phase"]) == "Bound" {
        return here;
    }
    if let Some(event) = newest_event(object, answers, &["ProvisioningFailed", "FailedBinding"]) {
        let (reason, message) = said(event);
        return here.because(reason, message);
    }
    if here.lack.reason != "WaitForFirstConsumer" {
        return here;
    }
    let question = labelled(&pods(), object, None);
    let users =
        answers.objects(&question).iter().filter(|pod| uses(pod, text(object, &["metadata", "name"])));
    if let Some(pod) = pod::worst(users) {
        return here.goes_on(DescendRelation::Uses, ObjectAddress::of(&pods(), pod));
    }
    here.hidden(answers.is_hidden(&question))
}

fn uses(pod: &Value, claim: &str) -> bool {
    let volumes = list(pod, &["spec", "volumes"]).iter();
    let mut names = volumes.map(|volume| text(volume, &["persistentVolumeClaim", "claimName"]));
    names.any(|name| name == claim)
}

pub(super) fn service_questions(object: &Value) -> Vec<DescendQuestion> {
    match selector(object, &["spec", "selector"]) {
        Some(labels) => vec![labelled(&pods(), object, Some(labels))],
        None => Vec::new(),
    }
}

/// A Service without endpoints: the worst of the pods that it selects, or that it selects none.
pub(super) fn service(object: &Value, answers: &DescendAnswers, here: Descent) -> Descent {
    if here.lack.reason != "NoReadyEndpoints" {
        return here;
    }
    let Some(labels) = selector(object, &["spec", "selector"]) else { return here };
    let question = labelled(&pods(), object, Some(labels));
    if answers.is_hidden(&question) {
        return here.hidden(true);
    }
    let selected = answers.objects(&question);
    if selected.is_empty() {
        let labels = labels.as_object().into_iter().flatten();
        let labels: Vec<String> =
            labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
        return here.because("NoEndpoints", format!("it selects no pod: no pod has {}", labels.join(",")));
    }
    match pod::worst(selected.iter()) {
        Some(pod) => here.goes_on(DescendRelation::Uses, ObjectAddress::of(&pods(), pod)),
        None => here.because(
            "NoEndpoints",
            "the pods that it selects are ready, and it has no endpoint: does its targetPort name a port of theirs?",
        ),
    }
}

/// A definition whose names are taken.
pub(super) fn definition(object: &Value, here: Descent) -> Descent {
    match condition_is(object, "NamesAccepted", "False") {
        Some(refused) => here
            .because("NamesNotAccepted", text(refused, &["message"]))
            .since(time(refused, &["lastTransitionTime"])),
        None => here,
    }
}

/// A namespace that does not go away says what is left in it.
pub(super) fn namespace(object: &Value, here: Descent) -> Descent {
    let conditions = list(object, &["status", "conditions"]).iter();
    let remaining = conditions.filter(|one| text(one, &["status"]) == "True");
    let messages: Vec<&str> = remaining.map(|one| text(one, &["message"])).take(SHOWN).collect();
    let deleted = time(object, &["metadata", "deletionTimestamp"]);
    match (deleted, messages.as_slice()) {
        (None, _) => here,
        (since, []) => here.because("Terminating", "it is being deleted").since(since),
        (since, messages) => {
            here.because("Terminating", format!("it is being deleted: {}", messages.join(" "))).since(since)
        }
    }
}

/// An object of any other kind: what its controller says, and who deploys it.
pub(super) fn owned(object: &Value, here: Descent) -> Descent {
    let Some(deployer) = deployer(object) else { return owner(object, here) };
    let message = format!("{} (deployed by {deployer})", here.lack.message);
    let reason = here.lack.reason.clone();
    here.because(reason, message)
}

/// Helm and Flux name themselves on what they deploy.
fn deployer(object: &Value) -> Option<String> {
    let annotation = |key: &str| text(object, &["metadata", "annotations", key]);
    let label = |key: &str| text(object, &["metadata", "labels", key]);
    let named = |what: &str, namespace: &str, name: &str| {
        (!name.is_empty()).then(|| format!("{what} {namespace}/{name}"))
    };
    named(
        "Helm release",
        annotation("meta.helm.sh/release-namespace"),
        annotation("meta.helm.sh/release-name"),
    )
    .or_else(|| {
        let prefix = "kustomize.toolkit.fluxcd.io";
        named("Flux Kustomization", label(&format!("{prefix}/namespace")), label(&format!("{prefix}/name")))
    })
    .or_else(|| {
        let prefix = "helm.toolkit.fluxcd.io";
        named("Flux HelmRelease", label(&format!("{prefix}/namespace")), label(&format!("{prefix}/name")))
    })
}

/// The controller that owns an object, unless it is a leaf by itself.
fn owner(object: &Value, here: Descent) -> Descent {
    let owners = list(object, &["metadata", "ownerReferences"]).iter();
    let controller = owners.into_iter().find(|entry| crate::readiness::subject::flag(entry, &["controller"]));
    let Some(controller) = controller else { return here };
    let kind = Gvk::from_api_version(text(controller, &["apiVersion"]), text(controller, &["kind"]));
    let message = format!("{} (owned by {} {})", here.lack.message, kind.kind, text(controller, &["name"]));
    let reason = here.lack.reason.clone();
    here.because(reason, message)
}
