//! Patching one object that is there.
//!
//! A patch that must not happen twice (`once`) names the version it was decided on, in the way its kind of patch can:
//! a `test` operation for JSON patches, `metadata.resourceVersion` for the others. A server-side apply patch names the
//! object's uid, because it would create a missing object otherwise.

use super::{Job, stamp::stamp, written};
use crate::call::{self, CallError, Resource};
use http::Method;
use linchpin_engine::contract::{Done, EffectTarget, Failure, PatchKind};
use linchpin_words::limits;
use serde_json::{Value, json};

impl Job<'_> {
    pub(super) async fn patch(
        &self,
        target: &EffectTarget,
        kind: PatchKind,
        body: &Value,
        manager: &str,
        once: bool,
    ) -> Result<Done, Failure> {
        if body.to_string().len() > limits::DOCUMENT {
            return Err(Failure::Invalid(format!("the patch is larger than {} bytes", limits::DOCUMENT)));
        }
        let resource = self.meaning(&target.kind).await?;
        let namespace = target.namespace.as_deref().filter(|_| resource.namespaced);
        let attempt = self.attempt("patch", &resource, namespace, &target.name);
        let seen = if once || kind == PatchKind::Apply {
            let found = self.get(&resource, namespace, &target.name).await?;
            Some(found.ok_or_else(|| Failure::Gone(format!("{} does not exist", attempt.what())))?)
        } else {
            None
        };
        let text = |path: &str| {
            let found = seen.as_ref().and_then(|seen| seen.pointer(path)).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let (uid, version) = (text("/metadata/uid"), text("/metadata/resourceVersion"));
        let body = bound(kind, body, &resource, &target.name, once.then_some(version.as_str()), &uid)?;
        let content_type = match kind {
            PatchKind::Strategic => "application/strategic-merge-patch+json",
            PatchKind::Merge => "application/merge-patch+json",
            PatchKind::Json => "application/json-patch+json",
            PatchKind::Apply => "application/apply-patch+yaml",
        };
        // What the server does not know it would drop without a word.
        let url = resource.object(namespace, &target.name).with("fieldManager", manager);
        let url = url.with("fieldValidation", "Strict");
        self.check()?;
        let answer = async {
            let request = call::send_json(Method::PATCH, &url, content_type, &body)?;
            call::call(&self.reach.writes, request).await?.read::<Value>()
        };
        match answer.await {
            Ok(returned) => Ok(Done {
                target: Some(written(&resource, namespace, &target.name)),
                stamp: stamp(&returned, None),
                ..Done::default()
            }),
            Err(error @ (CallError::Unanswered { maybe_sent: true, .. } | CallError::TooLarge { .. }))
                if once =>
            {
                Err(Failure::Unknowable(error.to_string()))
            }
            Err(error) => {
                let failure = attempt.failure(&error);
                if once && kind == PatchKind::Json && matches!(failure, Failure::Invalid(_)) {
                    // A failed `test` and a bad patch look the same; whether the object has changed since decides.
                    let now = self.get(&resource, namespace, &target.name).await?;
                    let now = now.as_ref().and_then(|now| now.pointer("/metadata/resourceVersion"));
                    if now.and_then(Value::as_str) != Some(version.as_str()) {
                        return Err(Failure::StalePrecondition(format!("{} has changed", attempt.what())));
                    }
                }
                Err(failure)
            }
        }
    }
}

/// The patch with what binds it to the version or incarnation that was seen.
fn bound(
    kind: PatchKind,
    body: &Value,
    resource: &Resource,
    name: &str,
    version: Option<&str>,
    uid: &str,
) -> Result<Value, Failure> {
    let mut body = body.clone();
    if kind == PatchKind::Json {
        let Some(operations) = body.as_array_mut() else {
            return Err(Failure::Invalid("a JSON patch is a list of operations".to_owned()));
        };
        if let Some(version) = version {
            operations
                .insert(0, json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
        }
        return Ok(body);
    }
    let Some(fields) = body.as_object_mut() else {
        return Err(Failure::Invalid("the patch is no object".to_owned()));
    };
    if kind == PatchKind::Apply {
        fields.insert("apiVersion".to_owned(), json!(resource.kind.api_version()));
        fields.insert("kind".to_owned(), json!(resource.kind.kind));
    }
    let bind = version.is_some() || kind == PatchKind::Apply;
    if bind {
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        let Some(metadata) = metadata.as_object_mut() else {
            return Err(Failure::Invalid("metadata of the patch is no object".to_owned()));
        };
        if let Some(version) = version {
            metadata.insert("resourceVersion".to_owned(), json!(version));
        }
        if kind == PatchKind::Apply {
            metadata.insert("name".to_owned(), json!(name));
            metadata.insert("uid".to_owned(), json!(uid));
        }
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_words::Gvk;

    fn bind(kind: PatchKind, body: &Value, version: Option<&str>) -> Result<Value, Failure> {
        let resource = Resource::new(Gvk::new("apps", "v1", "Deployment"), "deployments", true);
        bound(kind, body, &resource, "web", version, "u")
    }

    #[test]
    fn each_kind_of_patch_is_bound_in_its_own_way() {
        let add = json!([{"op": "add", "path": "/a/-", "value": 1}]);
        assert_eq!(
            bind(PatchKind::Json, &add, Some("7")).unwrap()[0],
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"})
        );
        assert_eq!(bind(PatchKind::Json, &add, None).unwrap(), add);
        let merge = json!({"spec": {"replicas": 2}});
        assert_eq!(
            bind(PatchKind::Merge, &merge, Some("7")).unwrap(),
            json!({"spec": {"replicas": 2}, "metadata": {"resourceVersion": "7"}})
        );
        assert_eq!(bind(PatchKind::Strategic, &merge, None).unwrap(), merge);
        assert_eq!(
            bind(PatchKind::Apply, &merge, None).unwrap(),
            json!({"spec": {"replicas": 2}, "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "uid": "u"}})
        );
    }

    #[test]
    fn a_patch_of_the_wrong_shape_is_refused_before_it_is_sent() {
        assert!(bind(PatchKind::Json, &json!({}), None).is_err());
        assert!(bind(PatchKind::Merge, &json!([]), None).is_err());
        assert!(bind(PatchKind::Merge, &json!({"metadata": 1}), Some("7")).is_err());
    }
}
