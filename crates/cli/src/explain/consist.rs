//! What `linchpin consist` says of an employer or of a pod: why it is not in traffic, or why it is not let go.

use jiff::Timestamp;
use linchpin_consist::lifecycle::operations;
use linchpin_engine::graph::explain;
use linchpin_words::keys::consist as keys;
use serde_json::Value;

/// A line of the answer, and whether something is waited for.
pub(super) struct ConsistLine {
    pub(super) line: String,
    pub(super) waits: bool,
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// `Service shop/web`, of a binding.
fn employer(binding: &Value) -> String {
    let (kind, name) = (text(binding, "/spec/employer/kind"), text(binding, "/spec/employer/name"));
    format!("{kind} {}/{name}", text(binding, "/metadata/namespace"))
}

fn since(value: &str, now: Timestamp) -> String {
    value
        .parse::<Timestamp>()
        .map_or_else(|_| String::new(), |at| format!(", since {}", explain::age(at, now)))
}

/// What the binding of an employer says.
pub(super) fn of_employer(kind: &str, name: &str, bindings: &[Value], now: Timestamp) -> Option<ConsistLine> {
    let binding = bindings.iter().find(|binding| {
        text(binding, "/spec/employer/kind") == kind && text(binding, "/spec/employer/name") == name
    })?;
    let conditions = binding.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|one| text(one, "/type") == "Ready");
    let message = explain::plain(text(binding, "/status/message"));
    let age = since(ready.map_or("", |ready| text(ready, "/lastTransitionTime")), now);
    let (employer, adapter) = (employer(binding), text(binding, "/spec/adapter"));
    if ready.is_some_and(|ready| text(ready, "/status") == "True") {
        return Some(ConsistLine {
            line: format!("{employer} is in sync with provider {adapter}: {message}{age}"),
            waits: false,
        });
    }
    Some(ConsistLine {
        line: format!("{employer} waits for provider {adapter}: {message}{age}"),
        waits: true,
    })
}

/// What bindings say of a pod, and what is under way on it.
pub(super) fn of_pod(pod: &Value, bindings: &[Value], now: Timestamp) -> Option<ConsistLine> {
    let name = text(pod, "/metadata/name");
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    let under_way = operations(&labels);
    let asked_by = pod
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(keys::DELETE_REQUESTED_BY)?.as_str())
        .and_then(|user| user.rsplit(':').next());
    let what = under_way.first().map(|operation| {
        let kind = if operation.kind.is_empty() { &operation.id } else { &operation.kind };
        match asked_by {
            Some(user) => format!(" ({kind}, asked by {user})"),
            None => format!(" ({kind})"),
        }
    });
    let what = what.unwrap_or_default();
    let pod_name = format!("Pod {}/{name}{what}", text(pod, "/metadata/namespace"));
    let mut settled = None;
    // Before that stage an operation waits for its checks, and no employer has anything to do.
    let leaves = under_way.first().is_some_and(|operation| operation.stage == "Preparing");
    for binding in bindings {
        let rows = binding.pointer("/status/employees").and_then(Value::as_array);
        let Some(row) = rows.into_iter().flatten().find(|row| text(row, "/name") == name) else { continue };
        let (employer, state) = (employer(binding), text(row, "/state"));
        let age = since(text(row, "/since"), now);
        let adapter = text(binding, "/spec/adapter");
        let reason = match explain::plain(text(row, "/reason")) {
            // Of whom nothing is known the binding says why.
            reason if reason.is_empty() && state == "Unknown" => {
                explain::plain(text(binding, "/status/message"))
            }
            reason if reason.is_empty() => format!("{adapter} says {state}"),
            // An adapter that names its provider itself says enough.
            reason if reason.starts_with(&format!("{adapter} ")) => reason,
            reason => format!("{adapter} {name}: {reason}"),
        };
        let protected = row.get("protected").and_then(Value::as_bool).unwrap_or_default();
        let settled_state = matches!(state, "Attached" | "Detached");
        if !settled_state || (protected && leaves) {
            return Some(ConsistLine {
                line: format!("{pod_name} waits for {employer}: {reason}{age}"),
                waits: true,
            });
        }
        let place = if state == "Attached" { "in traffic of" } else { "out of traffic of" };
        settled.get_or_insert(ConsistLine {
            line: format!("{pod_name} is {place} {employer}{age}"),
            waits: false,
        });
    }
    match under_way.first() {
        Some(operation) if !matches!(operation.stage, "Operate") => {
            let held = held(pod, operation.stage);
            let age = operation.since.map(|at| at.to_string()).unwrap_or_default();
            Some(ConsistLine { line: format!("{pod_name} {held}{}", since(&age, now)), waits: true })
        }
        _ => settled,
    }
}

/// What an operation in a stage waits for.
fn held(pod: &Value, stage: &str) -> String {
    if matches!(stage, "PreCheck" | "PostCheck") {
        let annotations =
            pod.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
        for (key, value) in annotations {
            let Some(rule) =
                key.strip_prefix(keys::RULE_DETAIL_PREFIX).and_then(|rest| rest.strip_prefix('/'))
            else {
                continue;
            };
            let detail: Value = serde_json::from_str(value.as_str().unwrap_or_default()).unwrap_or_default();
            let reason = text(&detail, "/rejectInfo/0/reason");
            if !reason.is_empty() {
                return format!("waits for PodTransitionRule {rule}: {}", explain::plain(reason));
            }
        }
        return format!("waits to pass {stage}");
    }
    format!("is in stage {stage}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:04Z".parse().unwrap()
    }

    fn binding(row: &Value) -> Value {
        json!({"metadata": {"namespace": "shop"}, "spec": {"adapter": "haproxy", "employer": {"kind": "Service", "name": "web"}},
            "status": {"message": "web-1 is Draining", "employees": [row],
                "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    }

    #[test]
    fn a_pod_that_waits_to_be_deleted_says_for_whom_and_why() {
        let pod = json!({"metadata": {"namespace": "shop", "name": "web-1",
            "labels": {"operating.podopslifecycle.kusionstack.io/pod-delete": "1", "preparing.podopslifecycle.kusionstack.io/pod-delete": "1",
                "operation-type.podopslifecycle.kusionstack.io/pod-delete": "delete"},
            "annotations": {"linchpin.dev/delete-requested-by": "system:serviceaccount:kube-system:replicaset-controller"}}});
        let row = json!({"name": "web-1", "state": "Draining", "reason": "haproxy shop_web/web-1 still has 3 sessions",
            "since": "2026-01-01T00:00:00Z", "protected": true});
        let line_of = of_pod(&pod, &[binding(&row)], now()).unwrap();
        assert!(line_of.waits);
        assert_eq!(
            line_of.line,
            "Pod shop/web-1 (delete, asked by replicaset-controller) waits for Service shop/web: haproxy shop_web/web-1 still has 3 sessions, since 4s"
        );
        assert!(of_pod(&json!({"metadata": {"name": "other"}}), &[binding(&row)], now()).is_none());
    }

    #[test]
    fn a_pod_that_waits_for_its_checks_does_not_wait_for_the_employer_that_it_is_attached_to() {
        let pod = json!({"metadata": {"namespace": "shop", "name": "web-1",
            "labels": {"operating.podopslifecycle.kusionstack.io/up": "1", "pre-check.podopslifecycle.kusionstack.io/up": "1767225600000000000",
                "operation-type.podopslifecycle.kusionstack.io/up": "update"},
            "annotations": {"detail.podtransitionrule.kusionstack.io/slowly":
                r#"{"stage":"PreCheck","passed":false,"rejectInfo":[{"ruleName":"one","reason":"1 of 2 pods are unavailable, 1 may be"}]}"#}}});
        let row =
            json!({"name": "web-1", "state": "Attached", "since": "2026-01-01T00:00:00Z", "protected": true});
        let said = of_pod(&pod, &[binding(&row)], now()).unwrap();
        assert!(said.waits);
        assert_eq!(
            said.line,
            "Pod shop/web-1 (update) waits for PodTransitionRule slowly: 1 of 2 pods are unavailable, 1 may be, since 4s"
        );
    }

    #[test]
    fn an_employer_says_what_its_provider_lacks() {
        let line_of = of_employer("Service", "web", &[binding(&json!({}))], now()).unwrap();
        assert_eq!(line_of.line, "Service shop/web waits for provider haproxy: web-1 is Draining, since 4s");
        assert!(of_employer("Service", "api", &[binding(&json!({}))], now()).is_none());
    }
}
