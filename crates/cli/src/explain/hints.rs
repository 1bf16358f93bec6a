//! What to run next: one command that can be pasted, chosen by where the chain of causes ends.

use linchpin_api::{Common, common::Recovery};
use linchpin_doors::Registry;
use linchpin_engine::graph::{Node, explain};
use linchpin_words::{Reason, keys};
use serde::Serialize;

use crate::output::shell_word;

/// Something to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Hint {
    /// What it is good for.
    pub(super) text: String,
    /// The command.
    pub(super) command: String,
}

impl Hint {
    fn new(text: impl Into<String>, command: impl Into<String>) -> Self {
        Self { text: text.into(), command: command.into() }
    }
}

/// `rd web -n shop`, as kubectl and our own verbs take it.
fn place(node: &Node) -> String {
    let object = &node.object;
    let (kind, name) = (shell_word(&object.kind.kind.to_ascii_lowercase()), shell_word(&object.name));
    match &object.namespace {
        Some(namespace) => format!("{kind} {name} -n {}", shell_word(namespace)),
        None => format!("{kind} {name}"),
    }
}

/// The operator may not act in the namespace: the message of the object has the line that lets it.
pub(super) fn tenant(message: &str) -> Option<Hint> {
    let at = message.find("kubectl create rolebinding ")?;
    let text = "the operator may not act for ServiceAccounts of this namespace; this lets it";
    let line = explain::plain(&message[at..]);
    // Who may write statuses may write anything else in the place of the line.
    let is_plain = line.split(' ').all(|word| shell_word(word) == word);
    is_plain.then(|| Hint::new(text, line))
}

/// The ServiceAccount that acts for an object does not exist.
pub(super) fn account(node: &Node, common: &Common) -> Hint {
    let account = common.service_account_name.as_deref().unwrap_or("default");
    let namespace = node.object.namespace.as_deref().unwrap_or_default();
    Hint::new(
        format!(
            "ServiceAccount {namespace}/{account} does not exist; this makes it, and linchpin rbac its rights"
        ),
        format!("kubectl create serviceaccount {} -n {}", shell_word(account), shell_word(namespace)),
    )
}

/// Rights are missing. The object itself is asked for, so that no file has to be found.
pub(super) fn rights(node: &Node, common: &Common) -> Hint {
    let account = common.service_account_name.as_deref().unwrap_or("default");
    let namespace = node.object.namespace.as_deref().unwrap_or_default();
    let (kind, name) = (node.object.kind.kind.to_ascii_lowercase(), &node.object.name);
    Hint::new(
        format!(
            "ServiceAccount {namespace}/{account} lacks rights; this gives it what {kind}/{name} needs, and no more"
        ),
        format!("kubectl get {} -o yaml | linchpin rbac -f - | kubectl apply -f -", place(node)),
    )
}

/// What the object of ours itself says can be done.
pub(super) fn of_ours(node: &Node, common: &Common, reason: &str, failed: bool) -> Option<Hint> {
    let reason = Reason::from_word(reason);
    match reason {
        Some(Reason::Suspended) => Some(Hint::new(
            "it is suspended (spec.suspend); this lets it go on",
            format!("linchpin resume {}", place(node)),
        )),
        Some(Reason::RolledBack) => Some(Hint::new(
            "this deploys its spec again",
            format!("linchpin rollback {} --undo", place(node)),
        )),
        Some(Reason::OutcomeUnknown) => Some(Hint::new(
            format!(
                "whether it took place cannot be known; if it may happen again, this runs it again (annotation {})",
                keys::RERUN
            ),
            format!("linchpin rerun {}", place(node)),
        )),
        _ if failed && common.recovery == Some(Recovery::Manual) => Some(Hint::new(
            format!("it recovers by hand only; this lets it begin again (annotation {})", keys::REQUESTED_AT),
            format!("linchpin refresh {}", place(node)),
        )),
        _ => None,
    }
}

/// What it made and somebody deleted.
pub(super) fn rerun(node: &Node) -> Hint {
    Hint::new(
        format!("this makes it again (annotation {})", keys::RERUN),
        format!("linchpin rerun {}", place(node)),
    )
}

/// What to look at where a chain ends.
pub(super) fn at_leaf(leaf: &Node, reason: &str, kinds: &Registry) -> Option<Hint> {
    if leaf.cluster.is_some() || leaf.part.is_some() {
        return None;
    }
    let namespace = leaf.object.namespace.as_deref();
    let namespace = namespace.map_or_else(String::new, |it| format!(" -n {}", shell_word(it)));
    let (kind, name) = (leaf.object.kind.kind.as_str(), shell_word(&leaf.object.name));
    Some(match (kind, reason) {
        ("Pod", "CrashLoopBackOff") => {
            Hint::new("what it said before it ended", format!("kubectl logs {name}{namespace} --previous"))
        }
        ("Job", "BackoffLimitExceeded" | "DeadlineExceeded") => {
            Hint::new("what it said", format!("kubectl logs job/{name}{namespace} --tail=20"))
        }
        (_, "NotFound") => Hint::new(
            "what there is instead",
            format!(
                "kubectl get {}{namespace}",
                shell_word(&leaf.object.kind.to_string().to_ascii_lowercase())
            ),
        ),
        // `explain` says it of these itself.
        _ if kinds.is_ours(&leaf.object.kind) => return None,
        // No object: what is known of it is in the binding of whom it serves.
        ("provider", _) => {
            let place = shell_word(leaf.object.name.split('/').nth(1)?);
            Hint::new("all that is known of it", format!("kubectl describe consistbindings -n {place}"))
        }
        _ => Hint::new("all that is known of it", format!("kubectl describe {}", place(leaf))),
    })
}

#[cfg(test)]
mod tests {
    use linchpin_doors::registry;
    use linchpin_words::{GroupKind, ObjectRef};

    use super::*;

    fn node(group: &str, kind: &str) -> Node {
        Node::here(ObjectRef::namespaced(GroupKind::new(group, kind), "shop", "web"))
    }

    #[test]
    fn every_hint_can_be_pasted() {
        let ours = node("tools.kubestellar.io", "ResourceDependency");
        let common = Common { recovery: Some(Recovery::Manual), ..Common::default() };
        for (hint, command) in [
            (
                rights(&ours, &common),
                "kubectl get resourcedependency web -n shop -o yaml | linchpin rbac -f - | kubectl apply -f -",
            ),
            (rerun(&ours), "linchpin rerun resourcedependency web -n shop"),
            (
                of_ours(&ours, &common, "Suspended", false).unwrap(),
                "linchpin resume resourcedependency web -n shop",
            ),
            (
                of_ours(&ours, &common, "TimedOut", true).unwrap(),
                "linchpin refresh resourcedependency web -n shop",
            ),
            (
                at_leaf(&node("", "Pod"), "CrashLoopBackOff", &registry()).unwrap(),
                "kubectl logs web -n shop --previous",
            ),
            (
                at_leaf(&node("batch", "Job"), "BackoffLimitExceeded", &registry()).unwrap(),
                "kubectl logs job/web -n shop --tail=20",
            ),
            (
                at_leaf(&node("", "Pod"), "Unschedulable", &registry()).unwrap(),
                "kubectl describe pod web -n shop",
            ),
            (
                at_leaf(&node("apps", "Deployment"), "NotFound", &registry()).unwrap(),
                "kubectl get deployment.apps -n shop",
            ),
        ] {
            assert_eq!(hint.command, command);
        }
        let line = "kubectl create rolebinding linchpin-tenant -n shop --clusterrole=linchpin-tenant --serviceaccount=a:b";
        let message = format!("the operator may not act for ServiceAccounts of namespace shop: {line}");
        assert_eq!(tenant(&message).unwrap().command, line);
        assert_eq!(tenant("it does not exist"), None);
        assert_eq!(tenant("kubectl create rolebinding a; evil"), None, "nobody else's words are pasted");
        let evil = Common { service_account_name: Some("x; evil".to_owned()), ..Common::default() };
        assert_eq!(account(&ours, &evil).command, "kubectl create serviceaccount 'x; evil' -n shop");
        let leaf = Node::here(ObjectRef::namespaced(GroupKind::new("", "Pod"), "shop", "$(evil)"));
        assert_eq!(
            at_leaf(&leaf, "Forbidden", &registry()).unwrap().command,
            "kubectl describe pod '$(evil)' -n shop"
        );
        assert_eq!(
            account(&ours, &Common::default()).command,
            "kubectl create serviceaccount default -n shop"
        );
        assert_eq!(of_ours(&ours, &Common::default(), "TimedOut", true), None, "it recovers by itself");
        assert_eq!(at_leaf(&ours, "Waiting", &registry()), None);
        assert_eq!(at_leaf(&node("linchpin.dev", "Sync"), "Waiting", &registry()), None);
    }
}
