//! What every test needs: a cluster, a namespace of its own with a ServiceAccount, a hub, and patience.

use kube::{
    Api, Client, Config,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, GroupVersionKind},
};
use linchpin_cluster::{
    Hub, HubSettings, SubscriberId,
    remote::RemoteSettings,
    transport::{Transport, TransportOptions},
};
use linchpin_engine::contract::{Question, ReadSet, Scope, Seen, Selector, Via, Want};
use linchpin_local::{Cluster, ClusterOptions, Component};
use linchpin_words::{Gvk, Reason, egress::Egress};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;

/// How long anything that is triggered by an event may take on a busy machine.
pub const SOON: Duration = Duration::from_mins(2);
/// Nobody is named for this long: everything that has happened has been reported.
const QUIET: Duration = Duration::from_secs(1);
/// The subscriber of most tests.
pub const ME: SubscriberId = SubscriberId(1);

/// The cluster that all gentle tests share.
pub fn shared() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(start)
}

/// A cluster of one's own: nothing but etcd and an API server.
pub fn start() -> Cluster {
    let options =
        ClusterOptions::default().without(Component::Scheduler).without(Component::ControllerManager);
    Cluster::start(&options).unwrap()
}

/// One test's stage.
pub struct Stage {
    pub cluster: &'static Cluster,
    pub client: Client,
    pub namespace: String,
}

pub fn gvk(api_version: &str, kind: &str) -> Gvk {
    Gvk::from_api_version(api_version, kind)
}

pub fn config_map() -> Gvk {
    gvk("v1", "ConfigMap")
}

async fn config(cluster: &Cluster) -> Config {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()
}

pub async fn transport(cluster: &Cluster) -> Transport {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Transport::new(&config(cluster).await, &TransportOptions::default()).unwrap()
}

impl Stage {
    pub async fn new() -> Self {
        let cluster = tokio::task::spawn_blocking(shared).await.unwrap();
        Self::on(cluster).await
    }

    pub async fn on(cluster: &'static Cluster) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let client = transport(cluster).await.writes(None);
        let namespace = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let stage = Self { cluster, client, namespace };
        stage
            .put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stage.namespace}}))
            .await;
        stage.account("builder").await;
        stage
    }

    pub async fn account(&self, name: &str) {
        self.put(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": self.namespace}})).await;
    }

    /// Lets an account do these verbs on these resources (`group/plural` or `plural`), here, to these names or any.
    pub async fn allow(&self, account: &str, verbs: &[&str], resource: &str, names: &[&str]) {
        let (group, plural) = resource.split_once('/').unwrap_or(("", resource));
        let name = format!("{account}-{}-{}", plural.replace('/', "-"), verbs.join("-"));
        let mut rule = json!({"apiGroups": [group], "resources": [plural], "verbs": verbs});
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        let metadata = json!({"name": name, "namespace": self.namespace});
        let rbac = "rbac.authorization.k8s.io/v1";
        self.put(json!({"apiVersion": rbac, "kind": "Role", "metadata": metadata, "rules": [rule]})).await;
        self.put(json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.namespace}]}))
            .await;
    }

    pub async fn allow_all(&self, account: &str, resource: &str) {
        self.allow(account, &["get", "list", "watch", "create", "patch", "delete"], resource, &[]).await;
    }

    fn api(&self, object: &Value) -> (Api<DynamicObject>, String) {
        let kind = gvk(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
        let resource = ApiResource::from_gvk(&gvk);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let api = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        (api, name)
    }

    /// Applies an object as the administrator.
    pub async fn put(&self, object: Value) -> Value {
        let (api, name) = self.api(&object);
        let parameters = PatchParams::apply("test").force();
        let stored = api.patch(&name, &parameters, &Patch::Apply(&object)).await.unwrap();
        serde_json::to_value(stored).unwrap()
    }

    /// Creates an object as the administrator, the way another tool would.
    pub async fn create(&self, object: Value) -> Value {
        let (api, _) = self.api(&object);
        let parsed: DynamicObject = serde_json::from_value(object).unwrap();
        let stored = api.create(&PostParams::default(), &parsed).await.unwrap();
        serde_json::to_value(stored).unwrap()
    }

    /// Replaces an object as the administrator, the way an editor would.
    pub async fn replace(&self, object: Value) -> Value {
        let (api, name) = self.api(&object);
        let parsed: DynamicObject = serde_json::from_value(object).unwrap();
        let stored = api.replace(&name, &PostParams::default(), &parsed).await.unwrap();
        serde_json::to_value(stored).unwrap()
    }

    /// Scales an object as the administrator, the way an autoscaler would.
    pub async fn scale(&self, object: &Value, replicas: u32) {
        let (api, name) = self.api(object);
        let patch = json!({"spec": {"replicas": replicas}});
        api.patch_scale(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    pub async fn delete(&self, object: &Value) {
        let (api, name) = self.api(object);
        api.delete(&name, &Default::default()).await.unwrap();
    }

    pub async fn get(&self, object: &Value) -> Option<Value> {
        let (api, name) = self.api(object);
        api.get_opt(&name).await.unwrap().map(|found| serde_json::to_value(found).unwrap())
    }

    /// A ConfigMap of this namespace.
    pub fn map(&self, name: &str, data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": self.namespace}, "data": data})
    }

    pub fn via(&self, account: &str) -> Via {
        Via::service_account(&self.namespace, account)
    }

    /// The ConfigMap of that name with its data, as an account.
    pub fn want(&self, account: &str, name: &str) -> Want {
        let reads = ReadSet::dotted(["data"]);
        Want::object(self.via(account), config_map(), Some(self.namespace.clone()), name, reads)
    }

    pub fn want_labelled(&self, account: &str, labels: &str) -> Want {
        let selector = Selector::requirements(vec![labels.to_owned()]);
        let scope = Scope::Labels { namespace: Some(self.namespace.clone()), selector };
        let reads = ReadSet::dotted(["data"]);
        Want::new(Question::Objects { via: self.via(account), kind: config_map(), scope, reads })
    }

    pub async fn audience(&self) -> Audience {
        Audience::of(self.cluster).await
    }

    /// Lines of the audit log that hold all of these texts.
    pub fn audit(&self, texts: &[&str]) -> Vec<Value> {
        let log = fs::read_to_string(self.cluster.audit_log()).unwrap();
        log.lines()
            .filter(|line| texts.iter().all(|text| line.contains(text)))
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }
}

/// A hub, and an ear for whom it names.
pub struct Audience {
    pub hub: Hub,
    changes: mpsc::UnboundedReceiver<SubscriberId>,
}

impl Audience {
    pub async fn of(cluster: &Cluster) -> Self {
        let remote = RemoteSettings { egress: Egress::default().with_loopback(), in_cluster: false };
        Self::with(cluster, HubSettings { remote, ..HubSettings::default() }).await
    }

    pub async fn with(cluster: &Cluster, settings: HubSettings) -> Self {
        let (sender, changes) = mpsc::unbounded_channel();
        let listener: linchpin_cluster::AnswerListener = Arc::new(move |subscribers: &[SubscriberId]| {
            for subscriber in subscribers {
                let _ = sender.send(*subscriber);
            }
        });
        Self { hub: Hub::new(transport(cluster).await, settings, listener), changes }
    }

    pub fn ask(&self, wants: impl IntoIterator<Item = Want>) {
        self.hub.subscribe(ME, wants.into_iter().collect::<BTreeSet<_>>());
    }

    pub fn seen(&self, want: &Want) -> Seen {
        self.hub.read([want]).get(want).cloned().unwrap()
    }

    /// Waits until the answer is as expected, looking only when the hub says that something has changed.
    pub async fn until(&mut self, want: &Want, what: &str, holds: impl Fn(&Seen) -> bool) -> Seen {
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            let seen = self.seen(want);
            if holds(&seen) {
                return seen;
            }
            match tokio::time::timeout_at(deadline, self.changes.recv()).await {
                Ok(_) => {}
                Err(_) => panic!("never saw {what}, but {:?}", self.seen(want)),
            }
        }
    }

    pub async fn until_data(&mut self, want: &Want, data: Value) -> Seen {
        let what = data.to_string();
        self.until(want, &what, |seen| items(seen).first().is_some_and(|item| item["data"] == data)).await
    }

    pub async fn until_absent(&mut self, want: &Want) -> Seen {
        self.until(want, "its absence", |seen| matches!(seen, Seen::Objects(seen) if seen.items.is_empty()))
            .await
    }

    pub async fn until_unknown(&mut self, want: &Want, reason: Reason) -> String {
        let holds = |seen: &Seen| matches!(seen, Seen::Unknown(why) if why.reason == reason);
        match self.until(want, reason.as_str(), holds).await {
            Seen::Unknown(why) => why.message,
            _ => unreachable!(),
        }
    }

    /// Forgets who was named so far, and who is still to be named for what has already happened: an answer can be read
    /// a moment before all its subscribers are named.
    pub async fn forget(&mut self) {
        while tokio::time::timeout(QUIET, self.changes.recv()).await.is_ok() {}
    }

    /// Who is named within a while.
    pub async fn named_within(&mut self, time: Duration) -> BTreeSet<u64> {
        tokio::time::sleep(time).await;
        let mut named = BTreeSet::new();
        while let Ok(subscriber) = self.changes.try_recv() {
            named.insert(subscriber.0);
        }
        named
    }
}

/// The contents of an answer.
pub fn items(seen: &Seen) -> Vec<Value> {
    match seen {
        Seen::Objects(observed) => observed.items.iter().map(|item| item.content.clone()).collect(),
        _ => Vec::new(),
    }
}

/// Waits until something holds that nobody is told of.
pub async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + SOON;
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
