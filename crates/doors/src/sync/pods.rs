//! What of an object makes pods, and what those pods name.

use serde_json::Value;

/// The template of the pods that an object makes, itself if it is a pod: labels and spec.
pub(super) struct PodTemplate<'a> {
    pub labels: Option<&'a Value>,
    pub spec: &'a Value,
}

/// Where the pod is in an object: a pod itself, what has a template, what has a template of a Job.
const PLACES: [&str; 3] = ["", "/spec/template", "/spec/jobTemplate/spec/template"];

/// The pods that an object makes; none where it makes none.
pub(super) fn template(body: &Value) -> Option<PodTemplate<'_>> {
    PLACES.iter().find_map(|place| {
        let spec = body.pointer(&format!("{place}/spec"))?;
        spec.get("containers")?.as_array()?;
        Some(PodTemplate { labels: body.pointer(&format!("{place}/metadata/labels")), spec })
    })
}

/// Something that pods name: kind and name, in their own namespace.
pub(super) type PodReference<'a> = (&'static str, &'a str);

impl<'a> PodTemplate<'a> {
    /// The ConfigMaps, Secrets, claims and accounts that the pods name.
    pub(super) fn names(&self) -> Vec<PodReference<'a>> {
        let mut found = Vec::new();
        let text = |value: &'a Value, path: &str| value.pointer(path).and_then(Value::as_str);
        let list = |value: &'a Value, name: &str| {
            value.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
        };
        for volume in list(self.spec, "volumes") {
            found.extend(text(volume, "/configMap/name").map(|name| ("ConfigMap", name)));
            found.extend(text(volume, "/secret/secretName").map(|name| ("Secret", name)));
            let claim = text(volume, "/persistentVolumeClaim/claimName");
            found.extend(claim.map(|name| ("PersistentVolumeClaim", name)));
            let sources = volume.get("projected").map_or(&[][..], |projected| list(projected, "sources"));
            for source in sources {
                found.extend(text(source, "/configMap/name").map(|name| ("ConfigMap", name)));
                found.extend(text(source, "/secret/name").map(|name| ("Secret", name)));
            }
        }
        for containers in ["initContainers", "containers"] {
            for container in list(self.spec, containers) {
                for from in list(container, "envFrom") {
                    found.extend(text(from, "/configMapRef/name").map(|name| ("ConfigMap", name)));
                    found.extend(text(from, "/secretRef/name").map(|name| ("Secret", name)));
                }
                for env in list(container, "env") {
                    let map = text(env, "/valueFrom/configMapKeyRef/name");
                    found.extend(map.map(|name| ("ConfigMap", name)));
                    let secret = text(env, "/valueFrom/secretKeyRef/name");
                    found.extend(secret.map(|name| ("Secret", name)));
                }
            }
        }
        let pulls = list(self.spec, "imagePullSecrets").iter().filter_map(|pull| text(pull, "/name"));
        found.extend(pulls.map(|name| ("Secret", name)));
        let account = ["serviceAccountName", "serviceAccount"].iter().find_map(|name| self.spec.get(*name));
        found.extend(account.and_then(Value::as_str).map(|name| ("ServiceAccount", name)));
        found
    }

    /// Whether a Service with this selector leads to the pods.
    pub(super) fn is_selected_by(&self, selector: &Value) -> bool {
        let Some(wanted) = selector.as_object().filter(|wanted| !wanted.is_empty()) else { return false };
        wanted.iter().all(|(key, value)| self.labels.and_then(|labels| labels.get(key)) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_pods_name_is_found_wherever_the_template_is() {
        let pod = json!({
            "serviceAccountName": "sa",
            "imagePullSecrets": [{"name": "pull"}],
            "volumes": [{"configMap": {"name": "a"}}, {"secret": {"secretName": "b"}},
                {"persistentVolumeClaim": {"claimName": "c"}},
                {"projected": {"sources": [{"configMap": {"name": "d"}}, {"secret": {"name": "e"}}]}}],
            "initContainers": [{"envFrom": [{"configMapRef": {"name": "f"}}, {"secretRef": {"name": "g"}}]}],
            "containers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "h"}}},
                {"valueFrom": {"secretKeyRef": {"name": "i"}}}]}],
        });
        for body in [
            json!({"kind": "Pod", "spec": pod}),
            json!({"kind": "Deployment", "spec": {"template": {"spec": pod}}}),
            json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": pod}}}}}),
        ] {
            let mut names: Vec<&str> =
                template(&body).expect("pods").names().into_iter().map(|(_, name)| name).collect();
            names.sort_unstable();
            assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "h", "i", "pull", "sa"]);
        }
        assert!(template(&json!({"kind": "ConfigMap", "data": {}})).is_none());
    }
}
