//! Taking an owner off an object, so that it outlives it.

use super::{Job, classify::Attempt, written};
use crate::call;
use http::Method;
use linchpin_engine::contract::{Done, Failure, Target};
use linchpin_words::keys;
use serde_json::{Value, json};

impl Job<'_> {
    pub(super) async fn disown(&self, target: &Target, uid: &str, owner: &str) -> Result<Done, Failure> {
        let resource = self.meaning(&target.kind).await?;
        let namespace = target.namespace.as_deref().filter(|_| resource.namespaced);
        let attempt =
            Attempt { verb: "patch", resource: &resource, subresource: None, namespace, name: &target.name };
        let done = Done { target: Some(written(&resource, namespace, &target.name)), ..Done::default() };
        let Some(found) = self.get(&resource, namespace, &target.name).await? else {
            return Ok(Done { gone: true, ..done });
        };
        let text = |path: &str| found.pointer(path).and_then(Value::as_str).unwrap_or_default();
        if text("/metadata/uid") != uid {
            return Err(Failure::StalePrecondition(format!("{} is another one now", attempt.what())));
        }
        let owners = found.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let ours = |reference: &&Value| reference.get("uid").and_then(Value::as_str) == Some(owner);
        let others: Vec<&Value> = owners.into_iter().flatten().filter(|reference| !ours(reference)).collect();
        if others.len() == owners.map_or(0, Vec::len) {
            return Ok(Done { disowned: true, ..done });
        }
        let others = if others.is_empty() { Value::Null } else { json!(others) };
        let patch = json!({"metadata": {"ownerReferences": others, "resourceVersion": text("/metadata/resourceVersion")}});
        let url = resource.object(namespace, &target.name).with("fieldManager", keys::OPERATOR_FIELD_MANAGER);
        self.check()?;
        let answer = async {
            let request = call::send_json(Method::PATCH, &url, "application/merge-patch+json", &patch)?;
            call::call(&self.reach.writes, request).await?.read::<Value>()
        };
        match answer.await {
            Ok(_) => Ok(Done { disowned: true, ..done }),
            Err(error) => Err(match attempt.failure(&error) {
                // Somebody wrote in between: what is there now must be read again.
                Failure::StalePrecondition(message) => Failure::Transient(message),
                failure => failure,
            }),
        }
    }
}
