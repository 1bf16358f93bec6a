//! One look of the fake at everything in its namespace: what Porch and those around it would do next.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{Api, ApiRefusal, kinds};

/// Porch's finalizer on variants.
const FINALIZER: &str = "config.porch.kpt.dev/packagevariants";

/// Plays Porch in a namespace.
pub(super) struct PorchController {
    pub(super) api: Api,
    pub(super) namespace: String,
}

/// A condition as Porch writes it.
pub(super) fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2025-01-01T00:00:00Z"})
}

fn text(value: &Value, path: &str) -> String {
    match value.pointer(path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn number(revision: &Value) -> u64 {
    text(revision, "/spec/revision").trim_start_matches('v').parse().unwrap_or_default()
}

impl PorchController {
    /// Does the next step for every variant and every published package. What is refused is tried again at the next
    /// look: objects go away and kinds change under its hands.
    pub(super) fn look(&self, approves: bool) {
        let variants = self.list("PackageVariant");
        let revisions = self.list("PackageRevision");
        for variant in &variants {
            let _ = self.serve(variant, &revisions);
        }
        for revision in &revisions {
            let _ = self.advance(revision, approves);
        }
        let made = revisions.iter().filter(|one| {
            !one["metadata"]["ownerReferences"].is_null() && one["spec"]["lifecycle"] == "Published"
        });
        let mut newest: BTreeMap<String, &Value> = BTreeMap::new();
        for one in made {
            let kept = newest.entry(text(one, "/spec/packageName")).or_insert(one);
            if number(one) > number(kept) {
                *kept = one;
            }
        }
        for revision in newest.values() {
            let _ = self.deploy(&text(revision, "/metadata/name"));
        }
    }

    /// Nothing where the kind is not served (any more).
    fn list(&self, kind: &str) -> Vec<Value> {
        let collection = kinds::collection(&kinds::api_version(kind), kind, &self.namespace);
        let list = self.api.read(&collection).unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    fn merge(&self, kind: &str, name: &str, subresource: &str, change: &Value) -> Result<Value, ApiRefusal> {
        self.api.merge(kind, &self.namespace, name, subresource, change)
    }

    /// Serves one variant: a downstream revision of what it asks for, and its conditions.
    fn serve(&self, variant: &Value, revisions: &[Value]) -> Result<(), ApiRefusal> {
        let name = text(variant, "/metadata/name");
        if variant["metadata"].get("deletionTimestamp").is_some() {
            for one in revisions.iter().filter(|one| is_made_of(one, variant)) {
                let name = text(one, "/metadata/name");
                self.api.delete("PackageRevisionResources", &self.namespace, &name);
                self.api.delete("PackageRevision", &self.namespace, &name);
            }
            self.merge("PackageVariant", &name, "", &json!({"metadata": {"finalizers": null}}))?;
            return Ok(());
        }
        if variant["metadata"]["finalizers"].is_null() {
            self.merge("PackageVariant", &name, "", &json!({"metadata": {"finalizers": [FINALIZER]}}))?;
        }
        let Some(upstream) = revisions.iter().find(|one| is_asked_for(one, &variant["spec"]["upstream"]))
        else {
            let message = "could not find upstream package revision";
            let conditions = [
                condition("Stalled", "True", "ValidationError", message),
                condition("Ready", "False", "Error", "invalid packagevariant object"),
            ];
            return self.write_status(variant, &json!({"conditions": conditions}));
        };
        let source = format!("{}/v{}", text(upstream, "/spec/packageName"), number(upstream));
        let made: Vec<&Value> = revisions.iter().filter(|one| is_made_of(one, variant)).collect();
        let current = made.iter().find(|one| text(one, "/status/upstreamLock/git/ref") == source);
        let target = match current {
            Some(current) => text(current, "/metadata/name"),
            None => self.draft(variant, upstream, &source, made.len() + 1)?,
        };
        let conditions = [
            condition("Stalled", "False", "Valid", "all validation checks passed"),
            condition("Ready", "True", "NoErrors", "successfully ensured downstream package variant"),
        ];
        self.write_status(
            variant,
            &json!({"conditions": conditions, "downstreamTargets": [{"name": target}]}),
        )
    }

    fn write_status(&self, variant: &Value, status: &Value) -> Result<(), ApiRefusal> {
        if variant["status"] != *status {
            let name = text(variant, "/metadata/name");
            self.merge("PackageVariant", &name, "/status", &json!({"status": status}))?;
        }
        Ok(())
    }

    /// Makes a draft with the files of its upstream.
    fn draft(
        &self,
        variant: &Value,
        upstream: &Value,
        source: &str,
        count: usize,
    ) -> Result<String, ApiRefusal> {
        let downstream = &variant["spec"]["downstream"];
        let (repository, package) = (text(downstream, "/repo"), text(downstream, "/package"));
        let workspace = format!("packagevariant-{count}");
        let name = format!("{repository}.{package}.{workspace}");
        let files =
            self.api.get("PackageRevisionResources", &self.namespace, &text(upstream, "/metadata/name"));
        let files = files.unwrap_or_default()["spec"]["resources"].clone();
        let spec = json!({"repository": repository, "packageName": package, "workspaceName": workspace});
        let mut revision = json!({"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision",
            "metadata": {"name": name, "namespace": self.namespace, "ownerReferences": [{
                "apiVersion": variant["apiVersion"], "kind": "PackageVariant", "controller": true,
                "name": variant["metadata"]["name"], "uid": variant["metadata"]["uid"]}],
                "labels": variant["spec"]["labels"], "annotations": variant["spec"]["annotations"]},
            "spec": spec});
        let mut resources = revision.clone();
        resources["kind"] = json!("PackageRevisionResources");
        resources["spec"]["resources"] = files;
        revision["spec"]["lifecycle"] = json!("Draft");
        self.api.apply(&resources)?;
        self.api.apply(&revision)?;
        self.lock(&name, source)?;
        Ok(name)
    }

    fn lock(&self, name: &str, source: &str) -> Result<(), ApiRefusal> {
        let lock = json!({"status": {"upstreamLock": {"type": "git", "git": {"ref": source}}}});
        self.merge("PackageRevision", name, "/status", &lock).map(|_| ())
    }

    /// A draft is proposed, a proposal is approved and gets its number.
    fn advance(&self, revision: &Value, approves: bool) -> Result<(), ApiRefusal> {
        let name = text(revision, "/metadata/name");
        if revision["metadata"]["ownerReferences"].is_null() || !approves {
            return Ok(());
        }
        match revision["spec"]["lifecycle"].as_str() {
            Some("Draft") => {
                self.merge("PackageRevision", &name, "", &json!({"spec": {"lifecycle": "Proposed"}}))?;
            }
            Some("Proposed") => {
                let count: u64 = name.rsplit('-').next().and_then(|count| count.parse().ok()).unwrap_or(1);
                let published =
                    |revision: Value| json!({"spec": {"lifecycle": "Published", "revision": revision}});
                let by_number = self.merge("PackageRevision", &name, "", &published(json!(count)));
                if by_number.is_err() {
                    self.merge("PackageRevision", &name, "", &published(json!(format!("v{count}"))))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Creates the objects of a package, as Config Sync or Argo CD would, and says that Deployments are available.
    fn deploy(&self, name: &str) -> Result<(), ApiRefusal> {
        let Some(resources) = self.api.get("PackageRevisionResources", &self.namespace, name) else {
            return Ok(());
        };
        for (file, content) in resources["spec"]["resources"].as_object().into_iter().flatten() {
            if file == "Kptfile" {
                continue;
            }
            let documents: Vec<Value> =
                serde_saphyr::from_multiple(content.as_str().unwrap_or_default()).unwrap_or_default();
            for document in documents.iter().filter(|one| !is_local(one)) {
                let made = self.api.apply(document)?;
                if made["kind"] == "Deployment" && made["status"]["availableReplicas"].is_null() {
                    let status = json!({"status": {"observedGeneration": made["metadata"]["generation"],
                        "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
                    let (space, name) = (text(&made, "/metadata/namespace"), text(&made, "/metadata/name"));
                    self.api.merge("Deployment", &space, &name, "/status", &status)?;
                }
            }
        }
        Ok(())
    }

    /// Publishes a revision of an upstream package, in whichever shape is installed.
    pub(super) fn publish(&self, repository: &str, package: &str, count: u64, files: &Value) {
        let name = format!("{repository}.{package}.v{count}");
        let base = |kind: &str, revision: Value| {
            json!({"apiVersion": "porch.kpt.dev/v1alpha1", "kind": kind,
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"repository": repository, "packageName": package, "workspaceName": format!("v{count}"),
                    "revision": revision}})
        };
        for revision in [json!(count), json!(format!("v{count}"))] {
            let mut resources = base("PackageRevisionResources", revision.clone());
            resources["spec"]["resources"] = files.clone();
            let mut published = base("PackageRevision", revision);
            published["spec"]["lifecycle"] = json!("Published");
            if self.api.apply(&resources).is_ok() && self.api.apply(&published).is_ok() {
                return;
            }
        }
        panic!("cannot publish {name}");
    }
}

fn is_local(document: &Value) -> bool {
    let annotations = &document["metadata"]["annotations"];
    document.is_null() || annotations["config.kubernetes.io/local-config"] == "true"
}

/// Whether a revision is the one that `spec.upstream` names: by workspace where there is one, else by number or branch.
fn is_asked_for(revision: &Value, upstream: &Value) -> bool {
    let same = |field: &str, key: &str| text(revision, field) == text(upstream, key);
    if !same("/spec/repository", "/repo") || !same("/spec/packageName", "/package") {
        return false;
    }
    if upstream.get("workspaceName").is_some() {
        return same("/spec/workspaceName", "/workspaceName");
    }
    let bare = |text: String| text.trim_start_matches('v').to_owned();
    bare(text(revision, "/spec/revision")) == bare(text(upstream, "/revision"))
}

/// Whether a revision was made for a variant.
fn is_made_of(revision: &Value, variant: &Value) -> bool {
    let owners = revision.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| owner["uid"] == variant["metadata"]["uid"])
}
