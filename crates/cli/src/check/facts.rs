//! What `check` looks at, read with the caller's rights. Nothing is concluded here.

use std::collections::BTreeMap;

use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use linchpin_cluster::transport::{Transport, TransportOptions};
use linchpin_operator::{
    rights::RightScope,
    webhooks::{CONSIST_SECRET, SECRET},
};
use linchpin_words::{Timestamp, keys};
use serde_json::{Value, json};

use super::{CheckCommand, CheckMode};
use crate::{live::while_busy, manifests, output::words_of};

/// Why something could not be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnseenFact {
    /// There is no such object, or no such kind.
    Absent,
    /// The caller may not look.
    Forbidden(String),
    /// It failed.
    Failed(String),
}

pub(super) type Looked = Result<Value, UnseenFact>;

/// A role of the operator, as the cluster has it.
#[derive(Debug)]
pub(super) struct LiveRole {
    /// What it is called: `ClusterRole linchpin`.
    pub(super) called: String,
    /// Which part of the table it gives.
    pub(super) scope: RightScope,
    /// Whether it is the one of a watched namespace.
    pub(super) watched: bool,
    pub(super) role: Looked,
}

/// A binding of one of these roles, as the cluster has it.
#[derive(Debug)]
pub(super) struct LiveBinding {
    /// What it is called: `ClusterRoleBinding linchpin`.
    pub(super) called: String,
    pub(super) binding: Looked,
}

/// The webhooks of one process, as the cluster has them.
#[derive(Debug)]
pub(super) struct Webhooks {
    /// The name by which the API server calls them.
    pub(super) service: String,
    /// Both configurations, by what they are called.
    pub(super) configurations: Vec<(String, Looked)>,
    /// Whether a configuration is only there while it is needed.
    pub(super) may_be_absent: bool,
    /// The Secret with certificate and authority.
    pub(super) secret_name: String,
    pub(super) secret: Looked,
}

/// Everything that is looked at.
#[derive(Debug, Default)]
pub(super) struct CheckFacts {
    pub(super) now: Option<Timestamp>,
    /// Why there is no cluster to look at.
    pub(super) unreachable: Option<String>,
    /// `/version`.
    pub(super) version: Option<Looked>,
    /// The definitions of this program.
    pub(super) ours: Vec<CustomResourceDefinition>,
    /// The same as the cluster has them, by name.
    pub(super) definitions: BTreeMap<String, Looked>,
    /// Operators in the namespace, and anywhere.
    pub(super) deployments: Option<Looked>,
    pub(super) elsewhere: Option<Looked>,
    pub(super) lease: Option<Looked>,
    /// The operator's live roles.
    pub(super) roles: Vec<LiveRole>,
    /// What gives them to the operator; tenants are bound each for itself.
    pub(super) bindings: Vec<LiveBinding>,
    /// Objects of ours, by plural and group.
    pub(super) objects: BTreeMap<String, Looked>,
    /// The webhooks that processes here are started with.
    pub(super) webhooks: Vec<Webhooks>,
    /// What came of a BootDependency that waits for itself, in a dry run; none where no webhook would refuse it.
    pub(super) circle: Option<Looked>,
    /// Pods that our scheduling gate holds.
    pub(super) held_pods: Option<Looked>,
    /// Whether the caller may create objects of a kind, by plural and group.
    pub(super) may_create: BTreeMap<String, Result<bool, UnseenFact>>,
}

/// The operator's Deployment and what it is called.
pub(super) fn deployment(facts: &CheckFacts) -> Option<&Value> {
    facts.deployments.as_ref()?.as_ref().ok()?["items"].as_array()?.first()
}

/// A flag of the operator's container.
pub(super) fn flag<'a>(deployment: &'a Value, name: &str) -> Option<&'a str> {
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array()?;
    let prefix = format!("--{name}=");
    arguments.iter().filter_map(Value::as_str).find_map(|argument| argument.strip_prefix(prefix.as_str()))
}

/// The namespace in which a BootDependency is tried: the webhook is asked about those alone that the operator watches.
pub(super) fn tried_in<'a>(facts: &'a CheckFacts, namespace: &'a str) -> &'a str {
    let watched = deployment(facts).and_then(|deployment| flag(deployment, "watch-namespaces"));
    watched.and_then(|watched| watched.split(',').find(|one| !one.is_empty())).unwrap_or(namespace)
}

/// By what a chart's value cannot change: its name may be another (`nameOverride`).
pub(super) const OPERATORS: &str = "app.kubernetes.io/part-of=linchpin,app.kubernetes.io/component=operator";
/// The same in a query.
const SELECTOR: &str =
    "labelSelector=app.kubernetes.io%2Fpart-of%3Dlinchpin,app.kubernetes.io%2Fcomponent%3Doperator";
const CONSIST_SELECTOR: &str =
    "labelSelector=app.kubernetes.io%2Fpart-of%3Dlinchpin,app.kubernetes.io%2Fcomponent%3Dconsist";

/// Reads what this mode needs.
pub(super) async fn read(
    command: &CheckCommand,
    mode: CheckMode,
    ours: Vec<CustomResourceDefinition>,
) -> CheckFacts {
    let now = Timestamp::from(jiff::Timestamp::now());
    let mut facts = CheckFacts { now: Some(now), ours, ..CheckFacts::default() };
    let client = match open(command).await {
        Ok(client) => client,
        Err(error) => {
            facts.unreachable = Some(error);
            return facts;
        }
    };
    let reader = Reader(client);
    let version = reader.get("/version").await;
    facts.unreachable = match &version {
        Err(UnseenFact::Failed(error)) => Some(error.clone()),
        Err(UnseenFact::Absent) => Some("what answers there has no /version".to_owned()),
        Ok(_) | Err(UnseenFact::Forbidden(_)) => None,
    };
    if facts.unreachable.is_some() {
        return facts;
    }
    facts.version = Some(version);
    for definition in &facts.ours {
        let name = definition.metadata.name.clone().unwrap_or_default();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        facts.definitions.insert(name, reader.get(&path).await);
    }
    let namespace = &command.namespace;
    match mode {
        CheckMode::Pre => {
            facts.elsewhere = Some(reader.get(&format!("/apis/apps/v1/deployments?{SELECTOR}")).await);
            reader.may_create(namespace, &mut facts).await;
        }
        CheckMode::Installed => {
            let deployments =
                reader.get(&format!("/apis/apps/v1/namespaces/{namespace}/deployments?{SELECTOR}")).await;
            facts.deployments = Some(deployments);
            let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/linchpin");
            facts.lease = Some(reader.get(&lease).await);
            reader.roles(namespace, &mut facts).await;
            reader.webhooks(namespace, &mut facts).await;
            reader.objects(&mut facts).await;
        }
        CheckMode::PreUninstall => {
            reader.objects(&mut facts).await;
            let held = format!(
                "/api/v1/pods?labelSelector={}%3D{}",
                keys::BOOT_GATE.replace('/', "%2F"),
                keys::BOOT_HELD
            );
            facts.held_pods = Some(reader.get(&held).await);
        }
    }
    facts
}

async fn open(command: &CheckCommand) -> Result<Client, String> {
    if !command.in_cluster {
        return command.connection.open().await.map(|(client, _)| client).map_err(|error| words_of(&error));
    }
    let config = kube::Config::incluster().map_err(|error| error.to_string())?;
    let transport =
        Transport::new(&config, &TransportOptions::default()).map_err(|error| error.to_string())?;
    Ok(transport.watches(None))
}

struct Reader(Client);

impl Reader {
    async fn get(&self, path: &str) -> Looked {
        let request =
            Request::get(path).body(Vec::new()).map_err(|error| UnseenFact::Failed(error.to_string()))?;
        self.send(request).await
    }

    async fn post(&self, path: &str, body: &Value) -> Looked {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(body.to_string().into_bytes());
        self.send(request.map_err(|error| UnseenFact::Failed(error.to_string()))?).await
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Looked {
        match while_busy(|| self.0.request::<Value>(request.clone())).await {
            Ok(found) => Ok(found),
            Err(kube::Error::Api(status)) if status.code == 404 => Err(UnseenFact::Absent),
            Err(kube::Error::Api(status)) if status.code == 403 => Err(UnseenFact::Forbidden(status.message)),
            Err(kube::Error::Api(status)) => Err(UnseenFact::Failed(status.message)),
            Err(error) => Err(UnseenFact::Failed(words_of(&error.into()))),
        }
    }

    /// The live roles of the operator that was found.
    async fn roles(&self, namespace: &str, facts: &mut CheckFacts) {
        let Some(deployment) = deployment(facts) else { return };
        let name = deployment["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let watched: Vec<String> = flag(deployment, "watch-namespaces")
            .map(|list| list.split(',').map(str::to_owned).collect())
            .unwrap_or_default();
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let mut places = vec![
            (format!("ClusterRole {name}"), RightScope::Cluster, false, format!("clusterroles/{name}")),
            (
                format!("ClusterRole {name}-tenant"),
                RightScope::Tenant,
                false,
                format!("clusterroles/{name}-tenant"),
            ),
            (
                format!("Role {namespace}/{name}"),
                RightScope::Release,
                false,
                format!("namespaces/{namespace}/roles/{name}"),
            ),
        ];
        places.extend(watched.into_iter().map(|watched| {
            let called = format!("Role {watched}/{name}-watched");
            (called, RightScope::Cluster, true, format!("namespaces/{watched}/roles/{name}-watched"))
        }));
        for (called, scope, watched, path) in places {
            if scope != RightScope::Tenant {
                let (place, name) = path.rsplit_once("roles/").unwrap_or_default();
                let binding = self.get(&format!("{rbac}/{place}rolebindings/{name}")).await;
                let called = called.replacen("Role", "RoleBinding", 1);
                facts.bindings.push(LiveBinding { called, binding });
            }
            let role = self.get(&format!("{rbac}/{path}")).await;
            facts.roles.push(LiveRole { called, scope, watched, role });
        }
    }

    /// The webhooks of the operator that was found, and of consist beside it.
    async fn webhooks(&self, namespace: &str, facts: &mut CheckFacts) {
        let is_served = if let Some(deployment) = deployment(facts).cloned() {
            let found = self.webhooks_of(&deployment, namespace, SECRET, false).await;
            facts.webhooks.extend(found);
            !facts.webhooks.is_empty()
        } else {
            // An operator that runs elsewhere.
            let path =
                "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/linchpin-validating";
            self.get(path).await.is_ok()
        };
        if is_served {
            let path = format!(
                "/apis/core.bootchain-operator.ruicoelho.dev/v1alpha1/namespaces/{}/bootdependencies?dryRun=All",
                tried_in(facts, namespace)
            );
            let circle = json!({"apiVersion": "core.bootchain-operator.ruicoelho.dev/v1alpha1", "kind": "BootDependency",
                "metadata": {"name": "linchpin-check"}, "spec": {"dependsOn": [{"service": "linchpin-check", "port": 1}]}});
            facts.circle = Some(self.post(&path, &circle).await);
        }
        let consist = format!("/apis/apps/v1/namespaces/{namespace}/deployments?{CONSIST_SELECTOR}");
        let Ok(found) = self.get(&consist).await else { return };
        for deployment in found["items"].as_array().into_iter().flatten() {
            facts.webhooks.extend(self.webhooks_of(deployment, namespace, CONSIST_SECRET, true).await);
        }
    }

    /// The webhooks that a process is started with; none if it serves none.
    async fn webhooks_of(
        &self,
        deployment: &Value,
        namespace: &str,
        secret: &str,
        may_be_absent: bool,
    ) -> Option<Webhooks> {
        flag(deployment, "webhook-bind-address").filter(|address| *address != "0")?;
        let (home, service) = flag(deployment, "webhook-service")?.split_once('/')?;
        let prefix = flag(deployment, "webhook-config-name").unwrap_or("linchpin");
        let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array();
        let mounted =
            volumes.into_iter().flatten().find_map(|volume| volume["secret"]["secretName"].as_str());
        let mounted = mounted.filter(|_| flag(deployment, "webhook-cert-dir").is_some());
        let secret_name = mounted.unwrap_or(secret).to_owned();
        let mut configurations = Vec::new();
        for (kind, plural, end) in [
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "mutating"),
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "validating"),
        ] {
            let name = format!("{prefix}-{end}");
            let found = self.get(&format!("/apis/admissionregistration.k8s.io/v1/{plural}/{name}")).await;
            configurations.push((format!("{kind} {name}"), found));
        }
        let secret = self.get(&format!("/api/v1/namespaces/{namespace}/secrets/{secret_name}")).await;
        Some(Webhooks {
            service: format!("{service}.{home}.svc"),
            configurations,
            may_be_absent,
            secret_name,
            secret,
        })
    }

    /// All objects of our kinds.
    async fn objects(&self, facts: &mut CheckFacts) {
        for definition in &facts.ours {
            let spec = &definition.spec;
            if spec.names.kind == "BundleRevision" {
                continue;
            }
            let version = spec.versions.first().map(|version| version.name.clone()).unwrap_or_default();
            let (group, plural) = (&spec.group, &spec.names.plural);
            let found = self.get(&format!("/apis/{group}/{version}/{plural}")).await;
            facts.objects.insert(format!("{plural}.{group}"), found);
        }
    }

    /// Whether the caller may create every kind of an installation.
    async fn may_create(&self, namespace: &str, facts: &mut CheckFacts) {
        let Ok(documents) = manifests::documents(namespace, None, &facts.ours) else { return };
        for document in documents {
            let text = |field: &str| document[field].as_str().unwrap_or_default();
            let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group).to_owned();
            let plural = plural(text("kind"));
            let called = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
            if facts.may_create.contains_key(&called) {
                continue;
            }
            let mut attributes = json!({"verb": "create", "group": group, "resource": plural});
            if document["metadata"].get("namespace").is_some() {
                attributes["namespace"] = json!(namespace);
            }
            let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes}});
            let answer = self.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await;
            let allowed = answer.map(|answer| answer["status"]["allowed"].as_bool().unwrap_or(false));
            facts.may_create.insert(called, allowed);
        }
    }
}

/// The plural of a kind that an installation has.
fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    if let Some(stem) = lower.strip_suffix('y') { format!("{stem}ies") } else { format!("{lower}s") }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::live::server::answering;

    #[test]
    fn every_kind_of_an_installation_has_its_plural() {
        for (kind, expected) in [
            ("CustomResourceDefinition", "customresourcedefinitions"),
            ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
            ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
            ("ClusterRole", "clusterroles"),
        ] {
            assert_eq!(plural(kind), expected);
        }
    }

    /// As a server is for a moment after a definition was installed.
    #[tokio::test]
    async fn a_server_that_is_too_busy_is_asked_again() {
        let mut answers =
            [("429 Too Many Requests", json!({"code": 429})), ("200 OK", json!({"items": []}))].into_iter();
        let reader = Reader(answering(move |_| answers.next().unwrap()));
        assert_eq!(reader.get("/apis/linchpin.dev/v1alpha1/syncs").await, Ok(json!({"items": []})));
    }

    /// Elsewhere the API server asks no webhook, and accepts what should be refused.
    #[tokio::test]
    async fn a_circle_is_tried_in_a_namespace_that_the_operator_watches() {
        for (flag, tried) in [("--watch-namespaces=shop,bank", "shop"), ("--doors=all", "linchpin-system")] {
            let asked = Arc::new(Mutex::new(Vec::new()));
            let heard = Arc::clone(&asked);
            let reader = Reader(answering(move |request| {
                heard.lock().unwrap().push(request.to_owned());
                ("404 Not Found", json!({"code": 404}))
            }));
            let deployment = json!({"spec": {"template": {"spec": {"containers": [{"args": [
                "--webhook-bind-address=:9443", "--webhook-service=linchpin-system/linchpin-webhook", flag]}]}}}});
            let deployments = Some(Ok(json!({"items": [deployment]})));
            let mut facts = CheckFacts { deployments, ..CheckFacts::default() };
            reader.webhooks("linchpin-system", &mut facts).await;
            let path =
                format!("POST /apis/core.bootchain-operator.ruicoelho.dev/v1alpha1/namespaces/{tried}/");
            let asked = asked.lock().unwrap();
            assert!(asked.iter().any(|request| request.starts_with(&path)), "{asked:?}");
        }
    }

    #[test]
    fn a_flag_of_the_operator_is_read_from_its_deployment() {
        let deployment = json!({"spec": {"template": {"spec": {"containers": [
            {"args": ["operator", "--doors=appBundle", "--watch-namespaces=a,b"]}]}}}});
        assert_eq!(flag(&deployment, "doors"), Some("appBundle"));
        assert_eq!(flag(&deployment, "door"), None);
    }
}
