//! The cluster that both sides are measured on, and what a plain client does there.

use anyhow::{Context as _, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
    config::{KubeConfigOptions, Kubeconfig},
};
use linchpin_api::Sync;
use linchpin_local::{Cluster, ClusterOptions, Component};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Writes under way at a time where many are made at once: more does not make the API server faster.
pub(crate) const PARALLEL: usize = 16;
/// What the API server writes into its audit log: of both sides the same.
const AUDIT_POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/audit-policy.yaml");
/// Who the operator is in the audit log.
pub(crate) const OPERATOR: &str = "linchpin-operator";

/// A cluster with our kinds.
pub(crate) struct Arena {
    cluster: Cluster,
    operator_kubeconfig: PathBuf,
    pub(crate) client: Client,
}

impl Arena {
    /// Starts a cluster and makes it know our kinds.
    pub(crate) async fn start() -> Result<Self> {
        let options = ClusterOptions::default()
            .flag(Component::ApiServer, format!("--audit-policy-file={AUDIT_POLICY}"));
        let cluster = tokio::task::spawn_blocking(move || Cluster::start(&options)).await??;
        let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig())?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let operator_kubeconfig = cluster.kubeconfig_for(OPERATOR, Some("system:masters"))?;
        let arena = Self { cluster, operator_kubeconfig, client };
        let definitions: Api<CustomResourceDefinition> = Api::all(arena.client.clone());
        for definition in linchpin_doors::registry().definitions() {
            let name = definition.metadata.name.clone().unwrap_or_default();
            definitions.patch(&name, &parameters(), &Patch::Apply(&definition)).await?;
        }
        let waits = arena.waits("default");
        for _ in 0..100 {
            if waits.list(&ListParams::default().limit(1)).await.is_ok() {
                return Ok(arena);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        anyhow::bail!("our kinds are not served after 10 s")
    }

    pub(crate) async fn stop(self) -> Result<()> {
        Ok(tokio::task::spawn_blocking(|| self.cluster.stop()).await??)
    }

    pub(crate) fn operator_kubeconfig(&self) -> &Path {
        &self.operator_kubeconfig
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.cluster.kubeconfig()
    }

    /// The address of the API server.
    pub(crate) fn server(&self) -> String {
        self.cluster.server()
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.cluster.audit_log()
    }

    /// Where the operator's log goes.
    pub(crate) fn operator_log(&self) -> PathBuf {
        std::env::var_os("BENCH_LOG").map_or_else(|| self.cluster.dir().join("operator.log"), PathBuf::from)
    }

    pub(crate) fn config_maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) fn waits(&self, namespace: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("tools.kubestellar.io", "v1", "ResourceDependency");
        let resource = ApiResource::from_gvk_with_plural(&kind, "resourcedependencies");
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    /// A namespace whose ServiceAccount may do what the plans here need; connections are warm afterwards.
    pub(crate) async fn namespace(&self, name: &str) -> Result<()> {
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"],
            "verbs": ["get", "list", "watch", "create", "patch", "update", "delete"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["linchpin.dev"], "resources": ["syncs"], "verbs": ["get", "list", "watch"]}]);
        let subject = json!([{"kind": "ServiceAccount", "name": "builder", "namespace": name}]);
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "builder"});
        let meta = json!({"name": "builder", "namespace": name});
        for (version, kind, plural, rest) in [
            ("v1", "Namespace", "namespaces", json!({"metadata": {"name": name}})),
            ("v1", "ServiceAccount", "serviceaccounts", json!({"metadata": meta})),
            ("rbac.authorization.k8s.io/v1", "Role", "roles", json!({"metadata": meta, "rules": rules})),
            (
                "rbac.authorization.k8s.io/v1",
                "RoleBinding",
                "rolebindings",
                json!({"metadata": meta, "roleRef": role, "subjects": subject}),
            ),
        ] {
            let mut object = rest;
            object["apiVersion"] = json!(version);
            object["kind"] = json!(kind);
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let gvk = GroupVersionKind::gvk(group, version, kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
            let api: Api<DynamicObject> = if kind == "Namespace" {
                Api::all_with(self.client.clone(), &resource)
            } else {
                Api::namespaced_with(self.client.clone(), name, &resource)
            };
            let object_name = if kind == "Namespace" { name } else { "builder" };
            api.patch(object_name, &parameters(), &Patch::Apply(&object))
                .await
                .with_context(|| format!("creating {kind} {object_name}"))?;
        }
        let warm: Vec<String> = (0..PARALLEL * 2).map(|number| format!("warm-{number}")).collect();
        self.write_all(name, &warm).await
    }

    /// Writes one ConfigMap, as a plain client does.
    pub(crate) async fn write(&self, namespace: &str, name: &str) -> Result<()> {
        write(&self.config_maps(namespace), name).await
    }

    /// Writes many objects at once.
    pub(crate) async fn write_all(&self, namespace: &str, names: &[String]) -> Result<()> {
        let bodies: Vec<Value> = names.iter().map(|name| config_map(name)).collect();
        self.apply_all(namespace, &bodies).await
    }

    /// Writes many objects at once, these.
    pub(crate) async fn apply_all(&self, namespace: &str, bodies: &[Value]) -> Result<()> {
        let api = self.config_maps(namespace);
        let writes = bodies.iter().map(|body| apply(&api, body));
        stream::iter(writes).buffer_unordered(PARALLEL).try_collect().await
    }

    /// Creates plans that wait for one ConfigMap and then create another.
    pub(crate) async fn plans(&self, namespace: &str, plans: &[BenchWait]) -> Result<()> {
        let bodies: Vec<Value> = plans.iter().map(|plan| plan.body(namespace)).collect();
        create_all(&self.waits(namespace), &bodies).await
    }

    /// Creates plans of any shape.
    pub(crate) async fn waits_of(&self, namespace: &str, bodies: &[Value]) -> Result<()> {
        create_all(&self.waits(namespace), bodies).await
    }

    /// Creates a Secret with a kubeconfig.
    pub(crate) async fn secret(&self, namespace: &str, name: &str, kubeconfig: &str) -> Result<()> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"kubeconfig": kubeconfig}});
        let written = api.patch(name, &parameters(), &Patch::Apply(&body)).await;
        written.map(drop).with_context(|| format!("writing Secret {name}"))
    }

    /// Creates bundles.
    pub(crate) async fn bundles(&self, namespace: &str, bodies: &[Value]) -> Result<()> {
        let kind = GroupVersionKind::gvk("app.example.com", "v1alpha1", "AppBundle");
        let resource = ApiResource::from_gvk_with_plural(&kind, "appbundles");
        create_all(&Api::namespaced_with(self.client.clone(), namespace, &resource), bodies).await
    }

    pub(crate) fn sync_api(&self, namespace: &str) -> Api<Sync> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Creates Syncs.
    pub(crate) async fn syncs(&self, namespace: &str, bodies: &[Value]) -> Result<()> {
        let kind = GroupVersionKind::gvk("linchpin.dev", "v1alpha1", "Sync");
        let resource = ApiResource::from_gvk_with_plural(&kind, "syncs");
        create_all(&Api::namespaced_with(self.client.clone(), namespace, &resource), bodies).await
    }

    /// Removes all plans of a namespace.
    pub(crate) async fn remove_plans(&self, namespace: &str) -> Result<()> {
        let api = self.waits(namespace);
        let _ = api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        Ok(())
    }
}

/// Creates many objects of one kind at once, as `kubectl apply` does with what is not there.
async fn create_all(api: &Api<DynamicObject>, bodies: &[Value]) -> Result<()> {
    let writes = bodies.iter().map(async |body| {
        let object: DynamicObject = serde_json::from_value(body.clone())?;
        let written = api.create(&PostParams::default(), &object).await;
        written.map(drop).with_context(|| format!("creating {} {}", body["kind"], body["metadata"]["name"]))
    });
    stream::iter(writes).buffer_unordered(PARALLEL).try_collect().await
}

/// Writes one ConfigMap by server-side apply.
pub(crate) async fn write(api: &Api<ConfigMap>, name: &str) -> Result<()> {
    apply(api, &config_map(name)).await
}

async fn apply(api: &Api<ConfigMap>, body: &Value) -> Result<()> {
    let name = body["metadata"]["name"].as_str().unwrap_or_default();
    let written = api.patch(name, &parameters(), &Patch::Apply(body)).await;
    written.map(drop).with_context(|| format!("writing ConfigMap {name}"))
}

/// A ConfigMap as people write it.
pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"go": "yes"}})
}

fn parameters() -> PatchParams {
    PatchParams::apply("bench").force()
}

/// A `ResourceDependency`: waits for a ConfigMap, creates another.
pub(crate) struct BenchWait {
    pub(crate) name: String,
    pub(crate) waits_for: String,
    pub(crate) creates: String,
    /// Whether the ConfigMap it waits for must also say so: then it may be there from the start.
    pub(crate) on_content: bool,
}

impl BenchWait {
    /// The plan of one hop: answers `cause-n` with `effect-n`.
    pub(crate) fn hop(number: usize) -> Self {
        Self {
            name: format!("hop-{number}"),
            waits_for: format!("cause-{number}"),
            creates: format!("effect-{number}"),
            on_content: false,
        }
    }

    fn body(&self, namespace: &str) -> Value {
        let mut dependency = json!({"name": "it", "resource": format!("configmap/{}", self.waits_for)});
        if self.on_content {
            dependency["conditions"] =
                json!([{"jsonPath": ".data.released", "operator": "eq", "value": "yes"}]);
        }
        json!({
            "apiVersion": "tools.kubestellar.io/v1",
            "kind": "ResourceDependency",
            "metadata": {"name": self.name, "namespace": namespace},
            "spec": {
                "serviceAccountName": "builder",
                "dependencies": [dependency],
                "actions": [{"name": "make", "type": "create", "resource": {
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.creates},
                    "data": {"go": "yes"},
                }}],
            },
        })
    }
}
