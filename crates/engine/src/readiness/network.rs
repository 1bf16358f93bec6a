//! What others connect to: Services, Ingresses, admission webhooks.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    RelatedQuery, Verdict,
    related::ready_endpoints,
    subject::{JudgedObject, at, list, text},
};

/// Whether the cluster itself finds the endpoints of a Service, so that there must be some.
fn selects(service: &Value) -> bool {
    let selector = at(service, &["spec", "selector"]).and_then(Value::as_object);
    text(service, &["spec", "type"]) != "ExternalName" && selector.is_some_and(|labels| !labels.is_empty())
}

fn has_address(object: &Value) -> bool {
    let entries = list(object, &["status", "loadBalancer", "ingress"]);
    entries.iter().any(|entry| !text(entry, &["ip"]).is_empty() || !text(entry, &["hostname"]).is_empty())
}

pub(super) fn service_needs(object: &Value) -> Vec<RelatedQuery> {
    if !selects(object) {
        return Vec::new();
    }
    vec![RelatedQuery::endpoints(
        text(object, &["metadata", "namespace"]),
        text(object, &["metadata", "name"]),
    )]
}

pub(super) fn service(subject: &JudgedObject<'_>) -> Verdict {
    if subject.text(&["spec", "type"]) == "ExternalName" {
        return Verdict::ready("ExternalName", "it is a name for something outside the cluster");
    }
    let balanced = subject.text(&["spec", "type"]) == "LoadBalancer";
    let addressed = has_address(subject.object);
    subject.mark(&[u8::from(addressed)]);
    let mut message = "it has no selector: its endpoints are somebody else's".to_owned();
    if selects(subject.object) {
        let (namespace, name) =
            (subject.text(&["metadata", "namespace"]), subject.text(&["metadata", "name"]));
        let Some(count) = ready_endpoints(subject.related, namespace, name) else {
            return Verdict::in_progress("EndpointsUnknown", "its EndpointSlices could not be read yet");
        };
        // More endpoints are no more progress than the first one.
        subject.mark(&[u8::from(count > 0)]);
        if count == 0 {
            return Verdict::in_progress(
                "NoReadyEndpoints",
                "no ready endpoint: no pod that it selects is ready",
            );
        }
        message = format!("{count} ready endpoints");
    }
    if balanced && !addressed {
        return Verdict::in_progress("NoLoadBalancerAddress", "the load balancer has no address yet");
    }
    let reason = if selects(subject.object) { "EndpointsReady" } else { "NoSelector" };
    Verdict::ready(reason, message)
}

pub(super) fn ingress(subject: &JudgedObject<'_>) -> Verdict {
    let addressed = has_address(subject.object);
    subject.mark(&[u8::from(addressed)]);
    if addressed {
        return Verdict::ready("AddressAssigned", "it has an address");
    }
    let class = subject.text(&["spec", "ingressClassName"]);
    let annotated = subject.text(&["metadata", "annotations", "kubernetes.io/ingress.class"]);
    match if class.is_empty() { annotated } else { class } {
        "" => Verdict::in_progress(
            "NoIngressClass",
            "it has no address and no ingress class: name one in spec.ingressClassName or mark one as default",
        ),
        class => {
            Verdict::in_progress("NoAddress", format!("ingress class {class} has given it no address yet"))
        }
    }
}

/// The services behind the webhooks of a configuration.
fn backends(configuration: &Value) -> BTreeSet<(&str, &str)> {
    let webhooks = list(configuration, &["webhooks"]).iter();
    let services = webhooks.filter_map(|webhook| at(webhook, &["clientConfig", "service"]));
    services.map(|service| (text(service, &["namespace"]), text(service, &["name"]))).collect()
}

pub(super) fn webhook_needs(object: &Value) -> Vec<RelatedQuery> {
    backends(object).into_iter().map(|(namespace, name)| RelatedQuery::endpoints(namespace, name)).collect()
}

pub(super) fn webhooks(subject: &JudgedObject<'_>) -> Verdict {
    let mut problem = None;
    for (namespace, name) in backends(subject.object) {
        let count = ready_endpoints(subject.related, namespace, name);
        subject.mark(&[u8::from(count.is_some_and(|count| count > 0))]);
        let found = match count {
            None => Verdict::in_progress(
                "EndpointsUnknown",
                format!("the EndpointSlices of service {namespace}/{name} could not be read yet"),
            ),
            Some(0) => Verdict::in_progress(
                "NoReadyEndpoints",
                format!("service {namespace}/{name} behind it has no ready endpoint"),
            ),
            Some(_) => continue,
        };
        problem.get_or_insert(found);
    }
    for webhook in list(subject.object, &["webhooks"]) {
        // Nothing in the world's trust store vouches for a name ending in .svc.
        let trusted = !text(webhook, &["clientConfig", "caBundle"]).is_empty();
        subject.mark(&[u8::from(trusted)]);
        if !trusted && at(webhook, &["clientConfig", "service"]).is_some() {
            let message = format!(
                "webhook {} has no caBundle yet: the API server cannot trust its service",
                text(webhook, &["name"])
            );
            problem.get_or_insert(Verdict::in_progress("NoCaBundle", message));
        }
    }
    problem.unwrap_or_else(|| {
        Verdict::ready("BackendsReady", "every service behind its webhooks has ready endpoints")
    })
}
