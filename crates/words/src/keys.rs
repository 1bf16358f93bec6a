//! Keys that we put on objects or look for on them: labels, annotations, finalizers, field managers.
//!
//! Ours live under `linchpin.dev/`; those that a document gives are kept verbatim under its own name. No other file
//! spells one out.

pub mod consist;

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{
    kind::{group_problem, word_problem},
    limits,
};

/// Annotation on what we created: the uid of the object of ours that did. With the matching uid in the inventory
/// it permits prune, teardown and an owner reference.
pub const CREATED_BY: &str = "linchpin.dev/created-by";

/// Annotation on an object of ours: any new value asks for an immediate fresh look.
pub const REQUESTED_AT: &str = "linchpin.dev/requested-at";

/// Annotation on an object of ours: `<dependency|component>@<generation>` lets one gate pass by hand.
pub const PROCEED: &str = "linchpin.dev/proceed";

/// Annotation on an object of ours: `<step|all>@<value>` starts a new run.
pub const RERUN: &str = "linchpin.dev/rerun";

/// The annotations that are orders: no other one on an object of ours changes what is done.
pub const ORDERS: [&str; 3] = [REQUESTED_AT, PROCEED, RERUN];

/// Annotation on an object of ours: its journal, from before the first effect until the status holds it.
pub const FIRST_JOURNAL: &str = "linchpin.dev/first-journal";

/// Annotation on the definitions of our kinds: which schema it is, so that one of another version is noticed.
pub const SCHEMA_HASH: &str = "linchpin.dev/schema-hash";

/// Annotations on what is kept of an object's history: its number, the generation it was taken of, how it went, and a
/// fingerprint of it. They say in metadata what the record says, so that nobody has to read the records to know which there are.
pub const HISTORY_NUMBER: &str = "linchpin.dev/history-number";
/// See there.
pub const HISTORY_GENERATION: &str = "linchpin.dev/history-generation";
/// See there.
pub const HISTORY_RESULT: &str = "linchpin.dev/history-result";
/// See there.
pub const HISTORY_DIGEST: &str = "linchpin.dev/history-digest";

/// Finalizer on an object of ours while there is something that we must delete before it may go.
pub const TEARDOWN_FINALIZER: &str = "linchpin.dev/teardown";

/// Finalizer of AppBundle, as its document has it.
pub const APP_BUNDLE_FINALIZER: &str = "app.example.com/finalizer";

/// Label on what an AppBundle made: the bundle's name.
pub const APP_BUNDLE: &str = "app.example.com/appbundle";

/// Label on what an AppBundle made: the group.
pub const APP_BUNDLE_GROUP: &str = "app.example.com/group";

/// Label on what an AppBundle made: the component.
pub const APP_BUNDLE_COMPONENT: &str = "app.example.com/component";

/// Annotation on what an AppBundle made: Argo CD's sync wave.
pub const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";

/// Label on what a Sync made: the Sync's name.
pub const SYNC: &str = "linchpin.dev/sync";

/// Annotation on an object of a Sync's source: whether it is deleted when it leaves the source.
pub const PRUNE: &str = "linchpin.dev/prune";

/// Annotation on an object of a Sync's source: whether one that exists is taken over.
pub const ADOPT: &str = "linchpin.dev/adopt";

/// Annotation on an object of a Sync's source: what happens when a field changes that cannot.
pub const IMMUTABLE: &str = "linchpin.dev/immutable";

/// Annotation on an object of a Sync's source: whether its end is final.
pub const RUN_ONCE: &str = "linchpin.dev/run-once";

/// Annotation on an object of a Sync's source: JSON pointers of fields that are left to others.
pub const IGNORE_FIELDS: &str = "linchpin.dev/ignore-fields";

/// Annotation on an object of a Sync's source: `ignore` lets it count neither for Ready nor as a gate.
pub const READY: &str = "linchpin.dev/ready";

/// Label on a ConfigMap, Secret or any object: the version of what is in it.
pub const APP_VERSION: &str = "app.kubernetes.io/version";

/// Annotation of cli-utils on any object: what it depends on.
pub const DEPENDS_ON: &str = "config.kubernetes.io/depends-on";

/// Label on a Namespace, with the value [`BOOT_ENABLED`]: pods and workloads there may be held by `BootDependency` objects.
/// Annotation on a pod or pod template: the `BootDependency` objects whose entries it carries or is held for. And the name of
/// the scheduling gate that only we take away.
pub const BOOT: &str = "linchpin.dev/boot";

/// The value of the label [`BOOT`] on a Namespace that has opted in.
pub const BOOT_ENABLED: &str = "enabled";

/// Annotation on a pod or pod template: a hash of the entries that its containers carry.
pub const BOOT_HASH: &str = "linchpin.dev/boot-hash";

/// Label on a pod while our scheduling gate holds it, with the value [`BOOT_HELD`].
pub const BOOT_GATE: &str = "linchpin.dev/boot-gate";

/// The value of the label [`BOOT_GATE`].
pub const BOOT_HELD: &str = "held";

/// Annotation on a pod, pod template, workload or BootDependency: `true` bypasses the wait.
pub const SKIP_BOOT_WAIT: &str = "linchpin.dev/skip-boot-wait";

/// Annotation on a Namespace: the waiter's image there.
pub const WAIT_IMAGE: &str = "linchpin.dev/wait-image";

/// What every field manager of ours begins with.
pub const FIELD_MANAGER_PREFIX: &str = "linchpin:";

/// The operator's own field manager, for status, finalizers and leases.
pub const OPERATOR_FIELD_MANAGER: &str = "linchpin";

/// The field manager of one step of one object of ours: `linchpin:<kind>:<ns>/<name>:<step>`.
///
/// Kubernetes takes 128 bytes of printable text. A longer or unprintable one keeps its readable beginning and ends
/// in a hash of the whole, so that two steps never share a manager.
pub fn field_manager(kind: &str, namespace: &str, name: &str, step: &str) -> String {
    let full = format!("{FIELD_MANAGER_PREFIX}{kind}:{namespace}/{name}:{step}");
    if full.len() <= limits::FIELD_MANAGER && full.bytes().all(|byte| byte.is_ascii_graphic()) {
        return full;
    }
    let mut hash = String::with_capacity(33);
    hash.push('#');
    for byte in &Sha256::digest(&full)[..16] {
        // Writing to a String cannot fail.
        let _ = write!(hash, "{byte:02x}");
    }
    let mut manager: String = full
        .chars()
        .map(|character| if character.is_ascii_graphic() { character } else { '_' })
        .take(limits::FIELD_MANAGER - hash.len())
        .collect();
    manager.push_str(&hash);
    manager
}

/// Whether a field manager is one of ours: of exactly the shape that [`field_manager`] gives, since anybody may begin
/// theirs with our name.
pub fn is_our_field_manager(manager: &str) -> bool {
    let Some((head, hash)) = manager.rsplit_once('#') else { return is_spelled_out(manager) };
    let hashed = hash.len() == HASH && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    // Cut short, or with what cannot be printed replaced: as far as it goes it is spelled out all the same.
    let cut = manager.len() == limits::FIELD_MANAGER || head.contains('_');
    if hashed && cut { begins_like_ours(head) } else { is_spelled_out(manager) }
}

/// How many characters of a hash end a manager that was cut short.
const HASH: usize = 32;

/// The parts of a manager that is not cut short: `linchpin:<kind>:<ns>/<name>:<step>`.
fn is_spelled_out(manager: &str) -> bool {
    let Some(rest) = manager.strip_prefix(FIELD_MANAGER_PREFIX) else { return false };
    let mut parts = rest.splitn(3, ':');
    let (kind, object, step) = (parts.next(), parts.next(), parts.next());
    let named = |object: &str| {
        object.split_once('/').is_some_and(|(namespace, name)| is_name(namespace) && is_name(name))
    };
    manager.len() <= limits::FIELD_MANAGER
        && kind.is_some_and(|kind| word_problem(kind).is_none())
        && object.is_some_and(named)
        && step.is_some_and(|step| !step.is_empty())
}

/// Whether a text that may end anywhere begins as a manager of ours does.
fn begins_like_ours(head: &str) -> bool {
    let Some(rest) = head.strip_prefix(FIELD_MANAGER_PREFIX) else { return false };
    rest.split_once(':').is_some_and(|(kind, object)| {
        let namespace = object.split_once('/').map(|(namespace, _)| namespace);
        word_problem(kind).is_none() && namespace.is_some_and(is_name)
    })
}

/// Whether an object or a namespace of ours can have this name; cluster-scoped objects have no namespace.
fn is_name(name: &str) -> bool {
    name.len() <= limits::NAME && group_problem(name).is_none()
}

/// Whether two field managers are steps of one object of ours. Of a manager that was cut short it is not known.
pub fn are_of_one_object(one: &str, other: &str) -> bool {
    let object = |manager: &'_ str| -> Option<usize> {
        manager.match_indices(':').nth(2).map(|(end, _)| end).filter(|_| is_our_field_manager(manager))
    };
    matches!((object(one), object(other)), (Some(end), Some(same)) if one[..end] == other[..same])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_field_manager_names_object_and_step() {
        assert_eq!(
            field_manager("ResourceDependency", "shop", "web", "create-config"),
            "linchpin:ResourceDependency:shop/web:create-config"
        );
    }

    #[test]
    fn steps_of_one_object_are_told_from_those_of_another() {
        let manager = |name: &str, step: &str| field_manager("AppBundle", "shop", name, step);
        assert!(are_of_one_object(&manager("a", "x/y"), &manager("a", "z")));
        assert!(!are_of_one_object(&manager("a", "x"), &manager("b", "x")));
        assert!(!are_of_one_object("kubectl", "kubectl"));
        let long = "n".repeat(200);
        assert!(!are_of_one_object(&manager(&long, "x"), &manager(&long, "z")));
    }

    #[test]
    fn long_field_managers_stay_within_the_limit_and_apart() {
        let name = "n".repeat(200);
        let one = field_manager("ResourceDependency", "shop", &name, "a");
        let two = field_manager("ResourceDependency", "shop", &name, "b");
        assert_eq!(one.len(), limits::FIELD_MANAGER);
        assert_ne!(one, two);
        assert!(one.starts_with("linchpin:ResourceDependency:shop/nnn"));
        assert!(is_our_field_manager(&one) && !is_our_field_manager(OPERATOR_FIELD_MANAGER));
    }

    #[test]
    fn a_manager_that_merely_begins_like_ours_is_not_ours() {
        for ours in [
            field_manager("AppBundle", "shop", "web", "app/web"),
            field_manager("ReadinessProfile", "", "web", "x"),
            field_manager("ResourceDependency", "shop", "web", "a b"),
            field_manager("ResourceDependency", "shop", "web", "a#b"),
            field_manager("ResourceDependency", "shop", &"n".repeat(200), "a"),
            field_manager("ResourceDependency", &"n".repeat(63), &"n".repeat(253), "a"),
        ] {
            assert!(is_our_field_manager(&ours), "{ours}");
        }
        let long = format!("linchpin:{}", "x".repeat(119));
        let hashed = format!("linchpin:{}#{}", "x".repeat(86), "0".repeat(32));
        for theirs in [
            "linchpin:",
            "linchpin:me",
            "linchpin:AppBundle",
            "linchpin:AppBundle:web:step",
            "linchpin:AppBundle:shop/web",
            "linchpin:AppBundle:shop/web:",
            "linchpin:App Bundle:shop/web:x",
            "linchpin:AppBundle:Shop/web:x",
            "linchpin:AppBundle:shop/a/b:x",
            "linchpin:x#00000000000000000000000000000000",
            "kubectl",
            &long,
            &hashed,
        ] {
            assert!(!is_our_field_manager(theirs), "{theirs}");
        }
    }

    #[test]
    fn a_step_name_with_odd_characters_still_gives_a_printable_manager() {
        let one = field_manager("ResourceDependency", "shop", "web", "a b");
        assert!(one.starts_with("linchpin:ResourceDependency:shop/web:a_b#"));
        assert_ne!(one, field_manager("ResourceDependency", "shop", "web", "a_b"));
    }

    proptest! {
        #[test]
        fn every_field_manager_is_acceptable(kind in "[A-Za-z]{1,63}", name in any::<String>(), step in any::<String>()) {
            let manager = field_manager(&kind, "ns", &name, &step);
            prop_assert!(manager.len() <= limits::FIELD_MANAGER);
            prop_assert!(manager.bytes().all(|byte| byte.is_ascii_graphic()));
        }

        #[test]
        fn every_field_manager_of_ours_is_known_again(name in "[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", step in any::<String>()) {
            let name = name.replace("..", ".").replace(".-", ".").replace("-.", ".");
            prop_assume!(!step.is_empty() && group_problem(&name).is_none());
            prop_assert!(is_our_field_manager(&field_manager("AppBundle", "shop", &name, &step)));
        }
    }
}
