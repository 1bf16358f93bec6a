//! The init container that waits for one entry.
//!
//! No shell, no volume, no right: a static program, one word of its command line for each value, within the strictest
//! pod security standard. What it takes is a copy of what the pod's first container takes, so that it breaks no quota,
//! limit or quality of service that the pod kept without it.

use linchpin_api::boot_dependency::OnTimeout;
use serde_json::{Map, Value, json};

use super::{
    address::address,
    division::CarriedEntry,
    references::{self, Holder, KeyReference},
};

/// The variable that marks a container as ours, with the BootDependency's name.
pub(super) const MARKER: &str = "LINCHPIN_BOOT_DEPENDENCY";

/// What every variable of ours begins with.
const OURS: &str = "LINCHPIN_";

/// The user of the waiter's image.
const WAITER_USER: i64 = 65532;

/// The document's timeout.
const DEFAULT_TIMEOUT: &str = "60s";

/// The predecessor's image, whatever registry it came from.
const PREDECESSOR: &str = "bootchain-operator/minimal-tools";

/// How the waiter is put into pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterSettings {
    /// Its image.
    pub image: String,
    /// The cluster's domain, such as `cluster.local`.
    pub cluster_domain: String,
    /// Init containers that come before ours, if they are first; none for what is known of meshes.
    pub after: Option<Vec<String>>,
}

/// The container for an entry, in a pod with this spec.
pub(super) fn build(
    name: &str,
    carried: &CarriedEntry,
    pod_spec: &Value,
    settings: &WaiterSettings,
) -> Value {
    let mut container = json!({
        "name": name,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/linchpin-wait"],
        "args": arguments(carried, &settings.cluster_domain),
        "env": environment(carried),
    });
    if let Some(resources) = resources(pod_spec) {
        container["resources"] = resources;
    }
    container["securityContext"] = security_context(pod_spec);
    container["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
    container
}

/// Whether a container of a pod was put there by us, or by the predecessor.
pub(super) fn is_ours(container: &Value) -> bool {
    is_marked(container) || is_predecessors(container)
}

/// Whether a container carries our mark.
pub(super) fn is_marked(container: &Value) -> bool {
    variables(container).iter().any(|variable| variable["name"] == MARKER)
}

fn is_predecessors(container: &Value) -> bool {
    let named = container["name"].as_str().is_some_and(|name| name.starts_with("wait-for-"));
    let image = container["image"].as_str().unwrap_or_default();
    let without_digest = image.split('@').next().unwrap_or_default();
    // A colon after the last slash begins the tag; one before it a port.
    let slash = without_digest.rfind('/').map_or(0, |at| at + 1);
    let end = without_digest[slash..].find(':').map_or(without_digest.len(), |at| slash + at);
    let repository = &without_digest[..end];
    named && (repository == PREDECESSOR || repository.ends_with(&format!("/{PREDECESSOR}")))
}

/// The same container with what others have changed of it: it waits for the same, so it is kept as it is, but for what
/// follows the pod.
pub(super) fn keep(existing: &Value, wanted: &Value) -> Option<Value> {
    let ours = |container: &Value| -> Vec<Value> {
        let is_ours =
            |variable: &&Value| variable["name"].as_str().is_some_and(|name| name.starts_with(OURS));
        variables(container).iter().filter(is_ours).cloned().collect()
    };
    let same = existing["name"] == wanted["name"]
        && existing["args"] == wanted["args"]
        && existing["command"] == wanted["command"]
        && ours(existing) == ours(wanted);
    let mut kept = existing.as_object().filter(|_| same)?.clone();
    match wanted.get("resources") {
        Some(resources) => drop(kept.insert("resources".to_owned(), resources.clone())),
        // The API server writes an empty one where there is none: that is no difference.
        None if kept.get("resources").is_some_and(is_empty) => (),
        None => drop(kept.shift_remove("resources")),
    }
    let user = &wanted["securityContext"]["runAsUser"];
    if let Some(context) = kept.get_mut("securityContext").and_then(Value::as_object_mut) {
        if user.is_null() && context.get("runAsUser") == Some(&json!(WAITER_USER)) {
            context.shift_remove("runAsUser");
        } else if !user.is_null() {
            context.insert("runAsUser".to_owned(), user.clone());
        }
    }
    Some(Value::Object(kept))
}

fn variables(container: &Value) -> &[Value] {
    container["env"].as_array().map_or(&[], Vec::as_slice)
}

/// The waiter's command line. The kubelet replaces `$(NAME)` in it by the container's variables, Secrets included, so
/// a dollar of the user's is written twice.
fn arguments(carried: &CarriedEntry, cluster_domain: &str) -> Vec<String> {
    let entry = &carried.entry;
    let Some((host, port)) = address(entry, &carried.namespace, cluster_domain) else {
        return Vec::new();
    };
    let plain = |text: &str| text.replace('$', "$$");
    let mut words: Vec<String> = Vec::new();
    if let Some(path) = &entry.http_path {
        let scheme = entry.http_scheme.unwrap_or_default().as_str();
        words.extend(["http".to_owned(), format!("{scheme}://{}:{port}{}", plain(&host), plain(path))]);
        let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(method) = &entry.http_method {
            flag("--method", plain(method));
        }
        let mut secrets = 0;
        for header in &entry.http_headers {
            if let Some(value) = &header.value {
                flag("--header", format!("{}: {}", plain(&header.name), plain(value)));
            } else {
                secrets += 1;
                flag("--header-env", format!("{}={}", plain(&header.name), header_variable(secrets)));
            }
        }
        if !entry.http_expected_statuses.is_empty() {
            let statuses: Vec<String> = entry.http_expected_statuses.iter().map(i32::to_string).collect();
            flag("--expect", statuses.join(","));
        }
        if entry.ca_bundle_secret_ref.is_some() || entry.ca_bundle_config_map_ref.is_some() {
            flag("--ca-env", CA_VARIABLE.to_owned());
        }
        if let Some(name) = &entry.server_name {
            flag("--server-name", plain(name));
        }
        if entry.insecure == Some(true) {
            words.push("--insecure".to_owned());
        }
    } else {
        words.extend(["tcp".to_owned(), format!("{}:{port}", plain(&host))]);
    }
    let timeout = entry.timeout.as_ref().map_or(DEFAULT_TIMEOUT, |timeout| timeout.0.as_str());
    words.extend(["--timeout".to_owned(), timeout.to_owned()]);
    if carried.on_timeout == OnTimeout::Proceed {
        words.extend(["--on-timeout".to_owned(), "proceed".to_owned()]);
    }
    words
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// The variable with a bundle of certificates.
const CA_VARIABLE: &str = "LINCHPIN_CA";

/// The variable of the header with the nth value that is not written in the object.
fn header_variable(number: usize) -> String {
    format!("LINCHPIN_HEADER_{number}")
}

/// The mark, and references to values: no value is ever written into a pod.
fn environment(carried: &CarriedEntry) -> Vec<Value> {
    let entry = &carried.entry;
    let mut variables = vec![json!({"name": MARKER, "value": carried.owner})];
    let headers = references::headers(entry).enumerate();
    variables.extend(headers.map(|(index, header)| variable(&header_variable(index + 1), &header)));
    variables.extend(references::bundle(entry).map(|bundle| variable(CA_VARIABLE, &bundle)));
    variables
}

fn variable(name: &str, from: &KeyReference<'_>) -> Value {
    let field = match from.holder {
        Holder::Secret => "secretKeyRef",
        Holder::ConfigMap => "configMapKeyRef",
    };
    json!({"name": name, "valueFrom": {(field): {"name": from.name, "key": from.key}}})
}

/// What the pod's first container asks for, of what init containers are counted by.
fn resources(pod_spec: &Value) -> Option<Value> {
    const COUNTED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
    if pod_spec.get("resources").is_some_and(|resources| !resources.is_null()) {
        return None;
    }
    let theirs = &pod_spec["containers"][0]["resources"];
    let mut copy = Map::new();
    for part in ["requests", "limits"] {
        let amounts: Map<String, Value> = COUNTED
            .iter()
            .filter_map(|name| theirs[part].get(*name).map(|amount| ((*name).to_owned(), amount.clone())))
            .collect();
        if !amounts.is_empty() {
            copy.insert(part.to_owned(), Value::Object(amounts));
        }
    }
    (!copy.is_empty()).then_some(Value::Object(copy))
}

fn security_context(pod_spec: &Value) -> Value {
    let mut context = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "privileged": false,
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    // The pod's own user would win over the image's, and the kubelet would refuse it; where the pod names none, a user
    // of ours might be refused by a server that gives out ranges of them.
    if pod_spec["securityContext"]["runAsUser"] == 0 {
        context["runAsUser"] = json!(WAITER_USER);
    }
    context
}
