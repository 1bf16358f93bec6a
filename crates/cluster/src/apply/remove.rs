//! Deleting one object, and only the one that was meant.

use super::{Job, classify::Attempt, stamp::stamp, written};
use crate::call;
use http::Method;
use linchpin_engine::contract::{Done, Failure, Propagation, Target};
use linchpin_words::keys;
use serde_json::{Value, json};

impl Job<'_> {
    pub(super) async fn delete(
        &self,
        target: &Target,
        uid: Option<&str>,
        creator: Option<&str>,
        propagation: Propagation,
    ) -> Result<Done, Failure> {
        let resource = self.meaning(&target.kind).await?;
        let namespace = target.namespace.as_deref().filter(|_| resource.namespaced);
        let attempt =
            Attempt { verb: "delete", resource: &resource, subresource: None, namespace, name: &target.name };
        let policy = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let done = Done { target: Some(written(&resource, namespace, &target.name)), ..Done::default() };
        let mut uid = uid.map(str::to_owned);
        if let Some(creator) = creator {
            let Some(found) = self.get(&resource, namespace, &target.name).await? else {
                return Ok(Done { gone: true, ..done });
            };
            let mark = found.pointer("/metadata/annotations").and_then(|all| all.get(keys::CREATED_BY));
            if mark.and_then(Value::as_str) != Some(creator) {
                return Err(Failure::StalePrecondition(format!("{target} was not made by this object")));
            }
            uid = uid.or_else(|| found.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned));
        }
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        if let Some(uid) = uid {
            options["preconditions"] = json!({"uid": uid});
        }
        self.check()?;
        let answer = async {
            let url = resource.object(namespace, &target.name);
            let request = call::send_json(Method::DELETE, &url, "application/json", &options)?;
            call::call(&self.reach.writes, request).await?.read::<Value>()
        };
        match answer.await {
            // An object that answers is still there, waiting for its finalizers; a status says that it is gone.
            Ok(returned) => {
                let gone = returned.get("kind").and_then(Value::as_str) == Some("Status");
                Ok(Done { gone, stamp: if gone { None } else { stamp(&returned, None) }, ..done })
            }
            Err(error) => match attempt.failure(&error) {
                Failure::Gone(_) => Ok(Done { gone: true, ..done }),
                failure => Err(failure),
            },
        }
    }
}
