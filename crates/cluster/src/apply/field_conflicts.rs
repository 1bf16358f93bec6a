//! Fields that others hold: which are taken back, and which are left to them. Pure.
//!
//! Server-side apply without force names every field that is in conflict and who holds it. What another manager of ours
//! holds, what was set through the scale subresource, and what the effect says to yield is left out of the document; the
//! rest is then taken back by force. Of who scales to nothing the server keeps no record ([`is_scaled`]).

use crate::call::Refused;
use linchpin_words::{GroupKind, keys, text};
use serde_json::Value;

/// How much of a manager's name is shown: the server takes no longer ones.
const MANAGER: usize = 128;

/// A field that somebody else holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// Its path, as the server writes it.
    pub(super) field: String,
    manager: String,
    scaled: bool,
}

impl Conflict {
    /// All fields in conflict; none where the refusal is about something else.
    pub(super) fn all(refused: &Refused) -> Vec<Self> {
        let causes = refused.status.details.iter().flat_map(|details| &details.causes);
        causes
            .filter(|cause| refused.code == 409 && cause.reason == "FieldManagerConflict")
            .map(|cause| Self {
                field: cause.field.clone(),
                manager: cause.message.split('"').nth(1).unwrap_or("somebody else").to_owned(),
                scaled: cause.message.contains("with subresource \"scale\""),
            })
            .collect()
    }

    /// Whether it is left to its holder, by the rules or as the effect says. A step of the same object of ours does not
    /// count as another holder: the object moved from it to us.
    pub(super) fn is_yielded(&self, yields: &[String], manager: &str) -> bool {
        let ours =
            keys::is_our_field_manager(&self.manager) && !keys::are_of_one_object(&self.manager, manager);
        self.scaled || ours || self.is_named(yields)
    }

    /// Whether a person holds it who applied or edited the object with kubectl.
    pub(super) fn is_kubectls(&self) -> bool {
        self.manager == "kubectl" || self.manager.starts_with("kubectl-")
    }

    /// Whether the effect itself says to leave it.
    pub(super) fn is_named(&self, yields: &[String]) -> bool {
        let below = |path: &String| {
            self.field
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        yields.iter().any(below)
    }

    /// What is said about it.
    pub(super) fn message(&self) -> String {
        text::line(&format!("{} is left to {}", self.path(), self.holder()))
    }

    /// What is said of it where it is taken back.
    pub(super) fn taken_back(&self) -> String {
        text::line(&format!("{} was changed by {} and is put right", self.path(), self.holder()))
    }

    /// What is said of it where an object that was somebody else's is adopted.
    pub(super) fn taken_over(&self) -> String {
        text::line(&format!(
            "{} was held by {} and is taken over with the object",
            self.path(),
            self.holder()
        ))
    }

    /// The field as people write it.
    fn path(&self) -> &str {
        self.field.trim_start_matches('.')
    }

    /// Who holds it; managers are called as their users like.
    fn holder(&self) -> String {
        text::line_of(&self.manager, MANAGER)
    }
}

/// The number of replicas of workloads, as the server writes its path.
pub(super) const REPLICAS: &str = ".spec.replicas";

/// The kinds that have one replica where nobody says how many.
pub(super) fn has_replicas(kind: &GroupKind) -> bool {
    match kind.group.as_str() {
        "apps" => ["Deployment", "StatefulSet", "ReplicaSet"].contains(&kind.kind.as_str()),
        "" => kind.kind == "ReplicationController",
        _ => false,
    }
}

/// Whether the replicas of a workload of ours were set through the scale subresource although nobody holds them: the
/// server forgets who scaled to nothing, and who scales from there. A number that nobody holds is the default, which is
/// one, or came that way.
pub(super) fn is_scaled(live: &Value, declared: &Value, manager: &str) -> bool {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entries = || entries.into_iter().flatten();
    let is_ours = |entry: &Value| entry.get("manager").and_then(Value::as_str) == Some(manager);
    let is_held = |entry: &Value| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some();
    let is_default = |replicas: &Value| replicas.as_i64() == Some(1);
    live.pointer("/spec/replicas").is_some_and(|replicas| replicas != declared && !is_default(replicas))
        && entries().any(is_ours)
        && !entries().any(is_held)
}

/// Takes what lies at a path of the server's out of a document: `.spec.containers[name="web"].image`.
pub(super) fn leave_out(document: &mut Value, path: &str) {
    let mut here = document;
    let mut rest = path;
    loop {
        match here {
            Value::Object(fields) => {
                let Some(inner) = rest.strip_prefix('.') else { return };
                // Names may have dots in them: the longest one that fits is meant.
                let fits = |name: &&String| {
                    inner
                        .strip_prefix(name.as_str())
                        .is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
                };
                let Some(name) = fields.keys().filter(fits).max_by_key(|name| name.len()).cloned() else {
                    return;
                };
                rest = &inner[name.len()..];
                if rest.is_empty() {
                    fields.remove(&name);
                    return;
                }
                let Some(next) = fields.get_mut(&name) else { return };
                here = next;
            }
            Value::Array(items) => {
                let Some((key, after)) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'))
                else {
                    return;
                };
                let Some(index) = items.iter().position(|item| is_meant(item, key)) else { return };
                rest = after;
                if rest.is_empty() {
                    items.remove(index);
                    return;
                }
                here = &mut items[index];
            }
            _ => return,
        }
    }
}

/// Whether a list's item is the one that a key names: by its fields (`name="web",port=80`) or its value (`="a"`).
fn is_meant(item: &Value, key: &str) -> bool {
    key.split(',').all(|part| {
        let Some((name, value)) = part.split_once('=') else { return false };
        let Ok(value) = serde_json::from_str::<Value>(value) else { return false };
        if name.is_empty() { *item == value } else { item.get(name) == Some(&value) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ME: &str = "linchpin:AppBundle:shop/web:app/web";

    fn conflict(field: &str, manager: &str, scaled: bool) -> Conflict {
        Conflict { field: field.to_owned(), manager: manager.to_owned(), scaled }
    }

    #[test]
    fn only_some_fields_are_left_to_others() {
        let yields = [".spec.paused".to_owned()];
        assert!(!conflict(".spec.replicas", "kubectl", false).is_yielded(&yields, ME));
        assert!(conflict(".spec.replicas", "kube-controller-manager", true).is_yielded(&yields, ME));
        assert!(!conflict(".data.a", "linchpin:AppBundle:shop/web:old/web", false).is_yielded(&yields, ME));
        assert!(conflict(".data.a", "linchpin:AppBundle:a/b:c", false).is_yielded(&yields, ME));
        assert!(conflict(".spec.paused", "kubectl", false).is_yielded(&yields, ME));
        assert!(conflict(".spec.paused.why", "kubectl", false).is_yielded(&yields, ME));
        assert!(!conflict(".spec.pausedAt", "kubectl", false).is_yielded(&yields, ME));
    }

    #[test]
    fn replicas_that_nobody_holds_and_that_are_no_default_were_scaled() {
        let live = |replicas: i64, theirs: &Value| {
            json!({"spec": {"replicas": replicas}, "metadata": {"managedFields": [
                {"manager": ME, "fieldsV1": {"f:spec": {"f:selector": {}}}}, theirs]}})
        };
        let nobody = json!({"manager": "controller", "subresource": "status", "fieldsV1": {"f:status": {}}});
        let scaled = |live: &Value| is_scaled(live, &json!(2), ME);
        assert!(scaled(&live(0, &nobody)) && scaled(&live(3, &nobody)));
        assert!(!scaled(&live(1, &nobody)), "it may be the default");
        assert!(!scaled(&live(2, &nobody)), "it is as declared");
        let somebody = json!({"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}});
        assert!(!scaled(&live(0, &somebody)), "who holds it is message by the server");
        let wiped = json!({"spec": {"replicas": 0}, "metadata": {"managedFields": [nobody]}});
        assert!(!scaled(&wiped), "we never wrote it");
        assert!(has_replicas(&GroupKind::new("apps", "Deployment")));
        assert!(!has_replicas(&GroupKind::new("example.com", "Deployment")));
    }

    #[test]
    fn a_field_is_found_by_the_path_that_the_server_gives() {
        let mut document = json!({"metadata": {"annotations": {"a.b/c": "1", "a": "2"}}, "spec": {"replicas": 1,
            "containers": [{"name": "db", "image": "x"}, {"name": "web", "image": "y", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}});
        for path in [
            ".metadata.annotations.a.b/c",
            ".spec.replicas",
            r#".spec.containers[name="web"].image"#,
            r#".spec.containers[name="web"].ports[containerPort=80,protocol="TCP"]"#,
            ".spec.missing.entirely",
            r#".spec.containers[name="none"].image"#,
        ] {
            leave_out(&mut document, path);
        }
        assert_eq!(
            document,
            json!({"metadata": {"annotations": {"a": "2"}}, "spec": {
                "containers": [{"name": "db", "image": "x"}, {"name": "web", "ports": []}]}})
        );
    }
}
