//! What of the objects of a source serves webhooks: a global rule on a webhook configuration must not hold the pods
//! that answer it, whichever Sync they are in.

use linchpin_words::ObjectRef;
use serde_json::Value;

use super::pods;
use crate::door::{Backing, LabelMap};

const WEBHOOKS: &str = "admissionregistration.k8s.io";

/// Whether a kind is a configuration of webhooks.
pub(crate) fn is_configuration(group: &str, kind: &str) -> bool {
    group == WEBHOOKS && ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"].contains(&kind)
}

/// The Services that a configuration names: namespace and name.
pub(crate) fn services(configuration: &Value) -> Vec<(String, String)> {
    let webhooks = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    let text = |service: &Value, name: &str| Some(service.get(name)?.as_str()?.to_owned());
    webhooks
        .filter_map(|webhook| {
            let service = webhook.pointer("/clientConfig/service")?;
            Some((text(service, "namespace")?, text(service, "name")?))
        })
        .collect()
}

/// Labels as a map.
pub(crate) fn labels(found: Option<&Value>) -> LabelMap {
    let found = found.and_then(Value::as_object).into_iter().flatten();
    found.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Adds what one object is.
pub(super) fn note(backing: &mut Backing, object: &ObjectRef, body: &Value) {
    let kind = &object.kind;
    if is_configuration(&kind.group, &kind.kind) {
        backing.webhooks.extend(services(body).into_iter().map(|service| (object.clone(), service)));
    }
    let Some(namespace) = &object.namespace else { return };
    if kind.group.is_empty() && kind.kind == "Service" {
        let selected = labels(body.pointer("/spec/selector"));
        backing.services.push(((namespace.clone(), object.name.clone()), selected));
    }
    if let Some(template) = pods::template(body) {
        backing.pods.push((object.clone(), labels(template.labels)));
    }
}
