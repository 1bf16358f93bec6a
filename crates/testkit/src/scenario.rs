//! A namespace of its own, with a ServiceAccount `actor` that may do what tests usually direct, and no more.

use std::{
    thread,
    time::{Duration, Instant},
};

use http::Method;
use serde_json::{Value, json};

use crate::{Api, audit::Audit, kinds, pause};

/// How long anything may take that should happen at once. Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(2);

/// A test's own part of a cluster. At its end the audit log of the cluster is judged: see [`Audit::overreach`].
pub struct Scenario {
    /// The administrator's client.
    pub api: Api,
    /// The witness, from the beginning of the scenario on.
    pub audit: Audit,
    /// The namespace.
    pub namespace: String,
}

impl Drop for Scenario {
    fn drop(&mut self) {
        self.audit.assert_no_overreach();
    }
}

impl Scenario {
    /// Makes a namespace of this name.
    pub fn begin(api: &Api, audit: Audit, name: &str) -> Self {
        let scenario = Self { api: api.clone(), audit, namespace: name.to_owned() };
        scenario.apply(&format!(
            r#"
{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}
---
{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: actor}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: actor}}
rules:
- {{apiGroups: [""], resources: [configmaps, secrets, pods, services], verbs: ["*"]}}
- {{apiGroups: [apps], resources: [deployments], verbs: ["*"]}}
- {{apiGroups: [batch], resources: [jobs], verbs: ["*"]}}
- {{apiGroups: [test.example.com], resources: ["*"], verbs: ["*"]}}
- {{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}}
- {{apiGroups: [app.example.com], resources: [appbundles], verbs: [get, list, watch]}}
- {{apiGroups: [linchpin.dev], resources: [syncs], verbs: [get, list, watch]}}
- {{apiGroups: [tools.kubestellar.io], resources: [resourcedependencies, dependencygroups], verbs: [get, list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: actor}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: actor}}
subjects: [{{kind: ServiceAccount, name: actor, namespace: {name}}}]
"#
        ));
        scenario.wait_for_rights();
        scenario
    }

    /// Waits until what `actor` may do is in force: the API server notices a binding a moment after it was written.
    fn wait_for_rights(&self) {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": self.actor(),
            "resourceAttributes": {"namespace": self.namespace, "verb": "watch", "resource": "configmaps"}}});
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let answer = self.api.request(&Method::POST, path, "application/json", Some(&review));
            if answer.is_ok_and(|answer| answer["status"]["allowed"] == true) {
                return;
            }
            thread::sleep(pause(begun.elapsed()));
        }
        panic!("actor may not watch config maps in {} after {PATIENCE:?}", self.namespace);
    }

    /// The identity everything is done as.
    pub fn actor(&self) -> String {
        format!("system:serviceaccount:{}:actor", self.namespace)
    }

    /// Gives `actor` more rights in this namespace: rules of a Role.
    #[track_caller]
    pub fn allow(&self, name: &str, rules: &str) {
        self.bind(name, rules, "Role");
    }

    /// Gives `actor` more rights in the whole cluster: rules of a `ClusterRole`.
    #[track_caller]
    pub fn allow_everywhere(&self, name: &str, rules: &str) {
        self.bind(&format!("{name}-{}", self.namespace), rules, "ClusterRole");
    }

    #[track_caller]
    fn bind(&self, name: &str, rules: &str, role: &str) {
        self.apply(&format!(
            "
{{apiVersion: rbac.authorization.k8s.io/v1, kind: {role}, metadata: {{name: {name}}}, rules: {rules}}}
---
{{apiVersion: rbac.authorization.k8s.io/v1, kind: {role}Binding, metadata: {{name: {name}}},
  roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role}, name: {name}}},
  subjects: [{{kind: ServiceAccount, name: actor, namespace: $NS}}]}}
"
        ));
    }

    fn documents(&self, yaml: &str) -> Vec<Value> {
        let mut documents: Vec<Value> =
            serde_saphyr::from_multiple(&yaml.replace("$NS", &self.namespace)).unwrap();
        documents.retain(|document| !document.is_null());
        for document in &mut documents {
            let namespaced = kinds::is_namespaced(document["kind"].as_str().unwrap_or_default());
            if namespaced && document["metadata"].get("namespace").is_none() {
                document["metadata"]["namespace"] = json!(self.namespace);
            }
        }
        documents
    }

    /// Applies manifests; those without a namespace go into this one, and `$NS` is its name.
    #[track_caller]
    pub fn apply(&self, yaml: &str) {
        for document in self.documents(yaml) {
            if let Err(refused) = self.api.apply(&document) {
                panic!("applying {document}: {refused:?}");
            }
        }
    }

    /// Applies a manifest that the API server must refuse, and returns what it says.
    #[track_caller]
    pub fn refused(&self, yaml: &str) -> String {
        let answers: Vec<_> = self.documents(yaml).iter().map(|document| self.api.apply(document)).collect();
        match answers.into_iter().find_map(Result::err) {
            Some(refused) => refused.message,
            None => panic!("not refused: {yaml}"),
        }
    }

    fn manifest(kind: &str, name: &str, spec: &str) -> String {
        let mut spec: Value = serde_saphyr::from_str(spec).unwrap();
        if spec.get("serviceAccountName").is_none() {
            spec["serviceAccountName"] = json!("actor");
        }
        let version = kinds::api_version(kind);
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}).to_string()
    }

    /// Applies a ResourceDependency with this spec; it acts as `actor` unless it says otherwise.
    #[track_caller]
    pub fn resource_dependency(&self, name: &str, spec: &str) {
        self.apply(&Self::manifest("ResourceDependency", name, spec));
    }

    /// Applies a ResourceDependency that must be refused.
    #[track_caller]
    pub fn refused_resource_dependency(&self, name: &str, spec: &str) -> String {
        self.refused(&Self::manifest("ResourceDependency", name, spec))
    }

    /// Applies a DependencyGroup with this spec.
    #[track_caller]
    pub fn dependency_group(&self, name: &str, spec: &str) {
        self.apply(&Self::manifest("DependencyGroup", name, spec));
    }

    /// Applies an AppBundle with this spec.
    #[track_caller]
    pub fn app_bundle(&self, name: &str, spec: &str) {
        self.apply(&Self::manifest("AppBundle", name, spec));
    }

    /// Applies an AppBundle that must be refused.
    #[track_caller]
    pub fn refused_app_bundle(&self, name: &str, spec: &str) -> String {
        self.refused(&Self::manifest("AppBundle", name, spec))
    }

    /// Applies a Sync with this spec.
    #[track_caller]
    pub fn sync(&self, name: &str, spec: &str) {
        self.apply(&Self::manifest("Sync", name, spec));
    }

    /// Applies a Sync that must be refused.
    #[track_caller]
    pub fn refused_sync(&self, name: &str, spec: &str) -> String {
        self.refused(&Self::manifest("Sync", name, spec))
    }

    /// Waits until a Sync is synced and ready.
    #[track_caller]
    pub fn synced(&self, name: &str) -> Value {
        self.until("is synced", "Sync", name, |object| {
            object["status"]["phase"] == "Synced"
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
                && condition(object, "Ready")["status"] == "True"
        })
    }

    /// Waits until an AppBundle is deployed and ready.
    #[track_caller]
    pub fn deployed(&self, name: &str) -> Value {
        self.until("is deployed", "AppBundle", name, |object| {
            object["status"]["phase"] == "Deployed"
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
                && condition(object, "Ready")["status"] == "True"
        })
    }

    /// Lets `actor` do these things everywhere; the name is for the test alone.
    #[track_caller]
    pub fn grant(&self, name: &str, rules: &str) {
        self.apply(&format!(
            r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules: {rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}
subjects: [{{kind: ServiceAccount, name: actor, namespace: $NS}}]
"
        ));
    }

    /// Applies a ConfigMap with one key, `value`.
    #[track_caller]
    pub fn config_map(&self, name: &str, value: &str) {
        self.apply(&format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{value: {value:?}}}}}"
        ));
    }

    /// An object of this namespace.
    pub fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.api.get(kind, &self.namespace, name)
    }

    /// A key of a ConfigMap.
    pub fn data(&self, config_map: &str, key: &str) -> Option<String> {
        self.get("ConfigMap", config_map)?["data"][key].as_str().map(str::to_owned)
    }

    /// Whether there is such a ConfigMap.
    pub fn has(&self, config_map: &str) -> bool {
        self.get("ConfigMap", config_map).is_some()
    }

    /// Deletes an object of this namespace.
    pub fn delete(&self, kind: &str, name: &str) {
        self.api.delete(kind, &self.namespace, name);
    }

    /// Merges something into an object of this namespace.
    #[track_caller]
    pub fn merge(&self, kind: &str, name: &str, patch: &Value) {
        self.api.merge(kind, &self.namespace, name, "", patch).unwrap();
    }

    /// Puts an annotation on an object of this namespace.
    #[track_caller]
    pub fn annotate(&self, kind: &str, name: &str, key: &str, value: &str) {
        self.merge(kind, name, &json!({"metadata": {"annotations": {key: value}}}));
    }

    /// Waits until an object is as it should be, and returns it. What was seen last is shown if it never is.
    #[track_caller]
    pub fn until(&self, what: &str, kind: &str, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let seen = self.get(kind, name).unwrap_or_default();
            if holds(&seen) {
                return seen;
            }
            if begun.elapsed() > PATIENCE {
                let mut shown = seen;
                if let Some(metadata) = shown["metadata"].as_object_mut() {
                    metadata.remove("managedFields");
                }
                panic!("not within {PATIENCE:?}: {kind} {name} {what}; last seen:\n{shown:#}");
            }
            thread::sleep(pause(begun.elapsed()));
        }
    }

    /// Waits until an object of ours is in a phase.
    #[track_caller]
    pub fn phase(&self, kind: &str, name: &str, phase: &str) -> Value {
        self.until(&format!("is {phase}"), kind, name, |object| {
            object["status"]["phase"] == phase
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        })
    }

    /// Waits until a ResourceDependency is done.
    #[track_caller]
    pub fn completed(&self, name: &str) -> Value {
        self.phase("ResourceDependency", name, "Completed")
    }

    /// Waits until a ResourceDependency waits, says so, and is blocked by this reason.
    #[track_caller]
    pub fn blocked(&self, name: &str, reason: &str) -> Value {
        self.until(&format!("is blocked by {reason}"), "ResourceDependency", name, |object| {
            let blockers = object["status"]["blockedBy"].as_array();
            blockers.is_some_and(|blockers| blockers.iter().any(|blocker| blocker["reason"] == reason))
        })
    }

    /// Waits until an object of ours cannot be understood, and returns what it says about that.
    #[track_caller]
    pub fn stalled(&self, kind: &str, name: &str) -> String {
        let stalled = self.until("is stalled", kind, name, |object| {
            let conditions = object["status"]["conditions"].as_array();
            conditions.is_some_and(|all| {
                all.iter()
                    .any(|c| c["type"] == "Stalled" && c["status"] == "True" && c["reason"] == "SpecInvalid")
            })
        });
        stalled["status"]["message"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a condition of an object has a status, and returns the object.
    #[track_caller]
    pub fn condition(&self, kind: &str, name: &str, condition: &str, status: &str) -> Value {
        self.until(&format!("has {condition}={status}"), kind, name, |object| {
            let conditions = object["status"]["conditions"].as_array();
            conditions.is_some_and(|all| all.iter().any(|c| c["type"] == condition && c["status"] == status))
        })
    }

    /// Waits until an object is gone.
    #[track_caller]
    pub fn gone(&self, kind: &str, name: &str) {
        self.until("is gone", kind, name, Value::is_null);
    }

    /// Waits until there is such a ConfigMap.
    #[track_caller]
    pub fn appears(&self, config_map: &str) -> Value {
        self.until("appears", "ConfigMap", config_map, |object| !object.is_null())
    }

    /// Waits until the operator has done something new in this namespace from the beginning to the end: what it had to
    /// do before has had its turn by then. `name` is for this alone.
    #[track_caller]
    pub fn passes(&self, name: &str) {
        self.resource_dependency(
            name,
            &format!("actions: [{{type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}}}]"),
        );
        self.completed(name);
    }

    /// The Events about an object, as reason and message.
    pub fn events(&self, name: &str) -> Vec<(String, String)> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", self.namespace);
        let list = self.api.read(&path).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let about = items.iter().filter(|event| event["regarding"]["name"] == name);
        about.map(|event| (text(&event["reason"]), text(&event["note"]))).collect()
    }

    /// Asserts that nothing was written to an object before another one was written.
    #[track_caller]
    pub fn in_order(&self, config_maps: &[&str]) {
        let writes: Vec<_> = config_maps
            .iter()
            .map(|name| self.audit.first_write("configmaps", &self.namespace, name))
            .collect();
        for pair in writes.windows(2) {
            if pair[0].is_by_operator() {
                crate::audit::assert_finished_before(&pair[0], &pair[1]);
            } else {
                crate::audit::assert_before(&pair[0], &pair[1]);
            }
        }
    }
}

/// A condition of an object, by its type; null if it has none.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.and_then(|all| all.iter().find(|one| one["type"] == kind)).unwrap_or(&Value::Null)
}

/// An entry of a status list, by its name.
#[track_caller]
pub fn entry<'a>(object: &'a Value, list: &str, name: &str) -> &'a Value {
    let entries = object["status"][list].as_array();
    let found = entries.and_then(|entries| entries.iter().find(|entry| entry["name"] == name));
    found.unwrap_or_else(|| panic!("{list} has no {name}: {:#}", object["status"]))
}
