//! Taking an owner off an object, so that it outlives it.

use super::{Job, classify::AttemptedRequest, written};
use crate::call;
use http::Method;
use linchpin_engine::contract::{Done, EffectTarget, Failure};
use linchpin_words::keys;
use serde_json::{Value, json};

impl Job<'_> {
    pub(super) async fn disown(
        &self,
        target: &EffectTarget,
        uid: &str,
        owner: &str,
    ) -> Result<Done, Failure> {
        let resource = self.meaning(&target.kind).await?;
        let namespace = target.namespace.as_deref().filter(|_| resource.namespaced);
        let attempt = self.attempt("patch", &resource, namespace, &target.name);
        let done = Done { target: Some(written(&resource, namespace, &target.name)), ..Done::default() };
        let Some(found) = self.get(&resource, namespace, &target.name).await? else {
            return Ok(Done { gone: true, ..done });
        };
        if found.pointer("/metadata/uid").and_then(Value::as_str) != Some(uid) {
            // What was made is gone; another one is none of our business.
            return Ok(Done { gone: true, ..done });
        }
        self.take_owner_off(&attempt, &found, owner).await?;
        Ok(Done { disowned: true, ..done })
    }

    /// Takes one owner off an object as it was found. References to anybody else stay.
    pub(super) async fn take_owner_off(
        &self,
        attempt: &AttemptedRequest<'_>,
        found: &Value,
        owner: &str,
    ) -> Result<(), Failure> {
        if !is_owned_by(found, owner) {
            return Ok(());
        }
        let others: Vec<&Value> = owners(found).filter(|reference| !names(reference, owner)).collect();
        let others = if others.is_empty() { Value::Null } else { json!(others) };
        let version = found.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        let patch = json!({"metadata": {"ownerReferences": others, "resourceVersion": version}});
        let url = attempt.resource.object(attempt.namespace, attempt.name);
        let url = url.with("fieldManager", keys::OPERATOR_FIELD_MANAGER);
        self.check()?;
        let answer = async {
            let request = call::send_json(Method::PATCH, &url, "application/merge-patch+json", &patch)?;
            call::call(&self.reach.writes, request).await?.read::<Value>()
        };
        let attempt = AttemptedRequest { verb: "patch", ..*attempt };
        match answer.await {
            Ok(_) => Ok(()),
            Err(error) => Err(match attempt.failure(&error) {
                // Somebody wrote in between: what is there now must be read again.
                Failure::StalePrecondition(message) => Failure::Transient(message),
                failure => failure,
            }),
        }
    }
}

/// Whether an object has this owner.
pub(super) fn is_owned_by(found: &Value, owner: &str) -> bool {
    owners(found).any(|reference| names(reference, owner))
}

fn owners(found: &Value) -> impl Iterator<Item = &Value> {
    found.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten()
}

fn names(reference: &Value, owner: &str) -> bool {
    reference.get("uid").and_then(Value::as_str) == Some(owner)
}
