//! The trail of what was written: one line of the log per write that an object of ours ordered.
//!
//! Who ordered it (object and step), what was done to which object, where and as whom, how that ended and how long it
//! took. Never a body, and of a refusal only its kind: the object's status says the rest. The lines have the target
//! `linchpin::trail`, so that they can be kept apart or left out (`--log-level=info,linchpin::trail=warn`).

use crate::events::Regarding;
use linchpin_engine::contract::{Actor, Done, Effect, Failure, Verb, Via};
use serde_json::Value;
use std::time::Duration;

/// Leaves a line. An Event is no change of anything, and what did not start has left no trail.
pub(super) fn leave(effect: &Effect, about: &Regarding, result: &Result<Done, Failure>, took: Duration) {
    if matches!(effect.verb, Verb::Notice(_)) || matches!(result, Err(Failure::NotStarted)) {
        return;
    }
    let namespace = about.namespace.as_deref().unwrap_or_default();
    tracing::info!(
        target: "linchpin::trail",
        object = %format_args!("{} {namespace}/{}", about.kind.kind, about.name),
        step = %effect.ticket.step,
        verb = effect.verb.word(),
        target_object = %target(&effect.verb, result),
        cluster = %effect.via.cluster,
        identity = %identity(&effect.via),
        result = outcome(&effect.verb, result),
        took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "write"
    );
}

/// As whom.
fn identity(via: &Via) -> String {
    match &via.actor {
        Actor::ServiceAccount { namespace, name } => format!("system:serviceaccount:{namespace}:{name}"),
        Actor::Operator => "operator".to_owned(),
    }
}

/// What was written: as the server has it, else as it was meant.
fn target(verb: &Verb, result: &Result<Done, Failure>) -> String {
    if let Ok(Done { target: Some(target), .. }) = result {
        return target.to_string();
    }
    match verb {
        Verb::Apply { body, default_namespace, .. } | Verb::Create { body, default_namespace, .. } => {
            let text = |path: &str| body.pointer(path).and_then(Value::as_str);
            let namespace = text("/metadata/namespace").unwrap_or(default_namespace);
            let (kind, name) =
                (text("/kind").unwrap_or_default(), text("/metadata/name").unwrap_or_default());
            format!("{} {namespace}/{name}", kind.to_ascii_lowercase())
        }
        Verb::Patch { target, .. } | Verb::Delete { target, .. } | Verb::Disown { target, .. } => {
            target.to_string()
        }
        Verb::Exec(order) => format!("pod {}/{}", order.namespace, order.pod),
        Verb::Notice(_) => String::new(),
    }
}

/// How it ended, in one word.
fn outcome(verb: &Verb, result: &Result<Done, Failure>) -> &'static str {
    match result {
        Err(failure) => failure.word(),
        Ok(done) if done.skipped => "left_as_it_was",
        Ok(done) if done.created => "created",
        Ok(_) if matches!(verb, Verb::Delete { .. }) => "deleted",
        Ok(_) => "written",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_engine::contract::Existing;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_line_names_the_object_and_never_what_is_in_it() {
        let verb = Verb::Create {
            body: Arc::new(
                json!({"kind": "Secret", "metadata": {"name": "key"}, "stringData": {"a": "hunter2"}}),
            ),
            default_namespace: "shop".to_owned(),
            manager: String::new(),
            existing: Existing::Skip,
            creator: String::new(),
        };
        let refused = Err(Failure::Invalid("hunter2".to_owned()));
        assert_eq!(target(&verb, &refused), "secret shop/key");
        assert_eq!(outcome(&verb, &refused), "invalid");
        assert_eq!(outcome(&verb, &Ok(Done { created: true, ..Done::default() })), "created");
        assert_eq!(outcome(&verb, &Ok(Done { skipped: true, ..Done::default() })), "left_as_it_was");
        assert_eq!(identity(&Via::service_account("shop", "web")), "system:serviceaccount:shop:web");
    }
}
