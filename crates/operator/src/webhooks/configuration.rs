//! The two webhook configurations: what they say, and what is to be changed in those that are stored.
//!
//! In a cluster the chart owns them and only their `caBundle` is kept; where the server is reached at a URL, in
//! development, they are written whole. All of them ignore failures: without us everything works as if we did not exist.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{boot, settings::WebhookAddress};

/// Namespaces that are never touched, besides our own.
pub(crate) const SYSTEM: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

/// Who else writes the `caBundle`.
const INJECTED: &str = "cert-manager.io/inject-ca-from";

/// One of the two configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WebhookType {
    Mutating,
    Validating,
}

impl WebhookType {
    pub(super) const ALL: [Self; 2] = [Self::Mutating, Self::Validating];

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }

    /// Its name, with the prefix that the user chose.
    pub(crate) fn name(self, prefix: &str) -> String {
        match self {
            Self::Mutating => format!("{prefix}-mutating"),
            Self::Validating => format!("{prefix}-validating"),
        }
    }
}

/// Everything that a configuration is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConfigurationInput<'a> {
    pub(crate) reached: &'a WebhookAddress,
    pub(crate) bundle: &'a str,
    pub(crate) namespaces: &'a Value,
    pub(crate) own_namespace: &'a str,
    pub(crate) prefix: &'a str,
    /// The last segment of the paths of guarded webhooks.
    pub(crate) word: &'a str,
}

/// The whole configuration.
pub(super) fn whole(which: WebhookType, ingredients: &ConfigurationInput<'_>) -> Value {
    let mut namespaces = ingredients.namespaces.clone();
    let mut never: Vec<&str> = SYSTEM.to_vec();
    if !ingredients.own_namespace.is_empty() {
        never.push(ingredients.own_namespace);
    }
    let excluded = json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": never});
    match namespaces["matchExpressions"].as_array_mut() {
        Some(expressions) => expressions.push(excluded),
        None => namespaces["matchExpressions"] = json!([excluded]),
    }
    let webhook =
        |name: &str, path: &str, rule: Value, seconds: i64, selector: &Value, condition: (&str, &str)| {
            let mut webhook = json!({
                "name": name,
                "clientConfig": client_config(path, ingredients),
                "rules": [rule],
                "failurePolicy": "Ignore",
                "matchPolicy": "Equivalent",
                "namespaceSelector": selector,
                "sideEffects": "None",
                "timeoutSeconds": seconds,
                "admissionReviewVersions": ["v1"],
                "matchConditions": [{"name": condition.0, "expression": condition.1}],
            });
            if which == WebhookType::Mutating {
                webhook["reinvocationPolicy"] = json!("IfNeeded");
            }
            webhook
        };
    let rule = |group: &str, version: &str, plural: &str, operations: &[&str]| json!({"apiGroups": [group], "apiVersions": [version], "resources": [plural], "operations": operations, "scope": "Namespaced"});
    let webhooks = match which {
        WebhookType::Mutating => json!([
            webhook(
                boot::DEPLOYMENTS.0,
                boot::DEPLOYMENTS.1,
                rule("apps", "v1", "deployments", &["CREATE", "UPDATE"]),
                2,
                &namespaces,
                (
                    "template-changes",
                    "request.operation == 'CREATE' || object.spec.template != oldObject.spec.template"
                ),
            ),
            webhook(
                boot::PODS.0,
                boot::PODS.1,
                rule("", "v1", "pods", &["CREATE"]),
                2,
                &namespaces,
                (
                    "no-mirror-pod",
                    "!has(object.metadata.annotations) || !('kubernetes.io/config.mirror' in object.metadata.annotations)"
                ),
            ),
        ]),
        WebhookType::Validating => json!([webhook(
            boot::BOOT_DEPENDENCIES.0,
            boot::BOOT_DEPENDENCIES.1,
            rule(boot::GROUP, boot::VERSION, boot::PLURAL, &["CREATE", "UPDATE"]),
            3,
            &json!({}),
            (
                "spec-changes",
                "request.operation == 'CREATE' || (object.spec != oldObject.spec && !has(object.metadata.deletionTimestamp))"
            ),
        )]),
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": which.kind(),
        "metadata": {"name": which.name(ingredients.prefix)},
        "webhooks": webhooks,
    })
}

/// How the webhook at a path is reached, and whom the API server believes there.
pub(crate) fn client_config(path: &str, ingredients: &ConfigurationInput<'_>) -> Value {
    let bundle = STANDARD.encode(ingredients.bundle);
    match ingredients.reached {
        WebhookAddress::Url { url, .. } => json!({"url": format!("{url}{path}"), "caBundle": bundle}),
        WebhookAddress::Service { namespace, name } => {
            json!({"service": {"namespace": namespace, "name": name, "path": path, "port": 443}, "caBundle": bundle})
        }
    }
}

/// Whether somebody else keeps the authorities of a stored configuration.
fn is_injected(stored: &Value) -> bool {
    stored["metadata"]["annotations"].get(INJECTED).is_some()
}

/// Whether a stored configuration names exactly these authorities, or leaves them to somebody else.
pub(super) fn is_published(stored: &Value, bundle: &str) -> bool {
    let bundle = STANDARD.encode(bundle);
    is_injected(stored)
        || webhooks(stored).iter().all(|webhook| webhook["clientConfig"]["caBundle"] == bundle.as_str())
}

/// The JSON patch that makes a stored configuration name these authorities, if it is still at its version; none where it
/// does already.
pub(super) fn publish(stored: &Value, bundle: &str) -> Option<Value> {
    if is_published(stored, bundle) {
        return None;
    }
    let version = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": stored["metadata"]["resourceVersion"]});
    let bundles = (0..webhooks(stored).len()).map(|index| {
        json!({
            "op": "add",
            "path": format!("/webhooks/{index}/clientConfig/caBundle"),
            "value": STANDARD.encode(bundle),
        })
    });
    Some(std::iter::once(version).chain(bundles).collect())
}

/// What takes the place of a stored configuration: its metadata stays, and the authorities that somebody else keeps.
pub(super) fn over(stored: &Value, mut wanted: Value) -> Value {
    wanted["metadata"] = stored["metadata"].clone();
    let wanted_webhooks = wanted["webhooks"].as_array_mut().into_iter().flatten();
    for webhook in wanted_webhooks.filter(|_| is_injected(stored)) {
        let same = webhooks(stored).iter().find(|known| known["name"] == webhook["name"]);
        let kept = same.and_then(|known| known["clientConfig"].get("caBundle")).cloned();
        let Some(client) = webhook["clientConfig"].as_object_mut() else { continue };
        match kept {
            Some(kept) => drop(client.insert("caBundle".to_owned(), kept)),
            None => drop(client.shift_remove("caBundle")),
        }
    }
    wanted
}

/// Whether a stored configuration says what it should; what the API server adds does not matter.
pub(super) fn covers(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| stored.get(key).is_some_and(|is| covers(is, value)))
        }
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len()
                && stored.iter().zip(wanted).all(|(stored, wanted)| covers(stored, wanted))
        }
        (stored, wanted) => stored == wanted,
    }
}

fn webhooks(stored: &Value) -> &[Value] {
    stored["webhooks"].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ingredients(bundle: &str) -> (WebhookAddress, Value, String) {
        ("https://127.0.0.1:9443".parse().unwrap(), json!({"matchExpressions": []}), bundle.to_owned())
    }

    #[test]
    fn both_configurations_ignore_failures_and_name_the_documents_webhooks() {
        let (reached, namespaces, bundle) = ingredients("ca");
        let ingredients = ConfigurationInput {
            reached: &reached,
            bundle: &bundle,
            namespaces: &namespaces,
            own_namespace: "linchpin",
            prefix: "linchpin",
            word: "",
        };
        let mutating = whole(WebhookType::Mutating, &ingredients);
        assert_eq!(mutating["metadata"]["name"], "linchpin-mutating");
        let names: Vec<&Value> = webhooks(&mutating).iter().map(|webhook| &webhook["name"]).collect();
        assert_eq!(names, ["mdeployment-v1.kb.io", "mpod-v1.linchpin.dev"]);
        assert_eq!(
            mutating["webhooks"][0]["clientConfig"]["url"],
            "https://127.0.0.1:9443/mutate-apps-v1-deployment"
        );
        let validating = whole(WebhookType::Validating, &ingredients);
        assert_eq!(validating["webhooks"][0]["name"], "vbootdependency-v1alpha1.kb.io");
        for webhook in webhooks(&mutating).iter().chain(webhooks(&validating)) {
            assert_eq!(webhook["failurePolicy"], "Ignore");
        }
        let excluded = &mutating["webhooks"][1]["namespaceSelector"]["matchExpressions"][0]["values"];
        assert_eq!(excluded, &json!(["kube-system", "kube-public", "kube-node-lease", "linchpin"]));
    }

    #[test]
    fn an_emptied_or_foreign_bundle_is_put_back_unless_somebody_else_keeps_it() {
        let stored = |bundle: Value| json!({"metadata": {"resourceVersion": "5"}, "webhooks": [{"clientConfig": {"caBundle": bundle}}]});
        let good = STANDARD.encode("ca");
        assert_eq!(publish(&stored(json!(good)), "ca"), None);
        for bad in [json!(null), json!(""), json!("Zm9yZWlnbg==")] {
            let patch = publish(&stored(bad), "ca").unwrap();
            assert_eq!(patch[0]["value"], "5");
            assert_eq!(patch[1]["value"], good);
        }
        let mut injected = stored(json!(null));
        injected["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "a/b"});
        assert_eq!(publish(&injected, "ca"), None);
    }

    #[test]
    fn a_configuration_that_is_written_whole_keeps_its_metadata_and_the_bundle_of_somebody_else() {
        let wanted = json!({"metadata": {"name": "a"}, "webhooks": [{"name": "w", "clientConfig": {"url": "u", "caBundle": "ours"}}]});
        let stored = |notes: Value, client: Value| json!({"metadata": {"name": "a", "resourceVersion": "5", "annotations": notes}, "webhooks": [{"name": "w", "clientConfig": client}]});
        let injected = json!({"cert-manager.io/inject-ca-from": "a/b"});
        let theirs = json!({"url": "old", "caBundle": "theirs"});
        let bundle = |stored: &Value| over(stored, wanted.clone())["webhooks"][0]["clientConfig"].clone();
        assert_eq!(bundle(&stored(json!({}), theirs.clone()))["caBundle"], "ours");
        let kept = stored(injected.clone(), theirs);
        assert_eq!(bundle(&kept), json!({"url": "u", "caBundle": "theirs"}));
        assert_eq!(over(&kept, wanted.clone())["metadata"], kept["metadata"]);
        let empty = stored(injected, json!({"url": "u"}));
        assert!(covers(&empty, &over(&empty, wanted.clone())), "they have not come to it yet");
    }

    #[test]
    fn what_the_server_adds_is_no_difference_and_what_somebody_changes_is() {
        let wanted = json!({"a": [{"b": 1}]});
        assert!(covers(&json!({"a": [{"b": 1, "added": 2}], "more": 3}), &wanted));
        assert!(!covers(&json!({"a": [{"b": 2}]}), &wanted));
        assert!(!covers(&json!({"a": [{"b": 1}, {"b": 1}]}), &wanted));
    }
}
