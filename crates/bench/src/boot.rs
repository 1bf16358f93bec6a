//! BootDependency: how long webhooks take at a steady rate, how soon a held pod is released, and what a crowd costs at rest.

mod reviews;

use anyhow::{Context as _, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::{core::v1::Pod, discovery::v1::EndpointSlice};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
    runtime::watcher::{self, Event},
};
use serde_json::{Value, json};
use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use crate::{
    Sizes,
    arena::{Arena, PARALLEL},
    crowd,
    operator::OperatorProcess,
    say,
    sightings::Sightings,
    table::{Table, percentile},
};

/// The gate of held pods; on the floor's side another one, which nobody else takes off.
const GATE: &str = "linchpin.dev/boot";
const FLOOR_GATE: &str = "bench.example.com/gate";

/// Between two releases, so that each is one of its own.
const PAUSE: Duration = Duration::from_millis(60);

pub(crate) async fn measure(
    arena: &Arena,
    program: &str,
    sizes: Sizes,
    reviews: usize,
    table: &mut Table,
) -> Result<()> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let flags = [
        format!("--webhook-bind-address={address}"),
        format!("--webhook-url=https://{address}"),
        "--wait-image=localhost/linchpin-wait:1".to_owned(),
        "--probe-allow=127.0.0.1/32".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut operator = OperatorProcess::start_with(arena, program, &flags).await?;
    at_rest(arena, &operator, sizes, table).await?;
    reviews::measure(arena, &operator, address, reviews, table).await?;
    releases(arena, sizes.hops, table).await?;
    operator.stop().await
}

/// Objects of any kind, applied as people do.
async fn apply(arena: &Arena, objects: &[Value]) -> Result<()> {
    let parameters = PatchParams::apply("bench").force();
    let writes = objects.iter().map(|object| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = match kind {
            "BootDependency" => ApiResource::from_gvk_with_plural(&gvk, "bootdependencies"),
            _ => ApiResource::from_gvk(&gvk),
        };
        let api: Api<DynamicObject> = match text("/metadata/namespace") {
            "" => Api::all_with(arena.client.clone(), &resource),
            namespace => Api::namespaced_with(arena.client.clone(), namespace, &resource),
        };
        let (kind, name, parameters) = (kind.to_owned(), name.to_owned(), parameters.clone());
        async move {
            let applied = api.patch(&name, &parameters, &Patch::Apply(object)).await;
            applied.map(drop).with_context(|| format!("applying {kind} {name}"))
        }
    });
    stream::iter(writes).buffer_unordered(PARALLEL).try_collect().await
}

/// A namespace that has opted in, whose account `builder` may read what entries are answered from.
async fn namespace(arena: &Arena, name: &str) -> Result<()> {
    arena.namespace(name).await?;
    let rules = json!([{"apiGroups": ["", "discovery.k8s.io"], "resources": ["services", "endpointslices"],
        "verbs": ["get", "list", "watch"]}]);
    let rbac = "rbac.authorization.k8s.io";
    apply(
        arena,
        &[
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {GATE: "enabled"}}}),
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role",
                "metadata": {"name": "services", "namespace": name}, "rules": rules}),
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
                "metadata": {"name": "services", "namespace": name},
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "services"},
                "subjects": [{"kind": "ServiceAccount", "name": "builder", "namespace": name}]}),
        ],
    )
    .await
}

/// A Service, and a slice of it with one endpoint that is ready or not.
fn service(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": name}, "ports": [{"port": 5432}]}})
}

fn slice(namespace: &str, service: &str, ready: bool) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": service, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4", "ports": [{"name": "", "port": 5432}],
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": ready}}]})
}

fn boot(namespace: &str, name: &str, spec: &Value) -> Value {
    let version = "core.bootchain-operator.ruicoelho.dev/v1alpha1";
    let mut whole = spec.clone();
    whole["serviceAccountName"] = json!("builder");
    json!({"apiVersion": version, "kind": "BootDependency",
        "metadata": {"name": name, "namespace": namespace}, "spec": whole})
}

/// A crowd whose entries hold: two Services each, and one host that all share.
async fn at_rest(arena: &Arena, operator: &OperatorProcess, sizes: Sizes, table: &mut Table) -> Result<()> {
    const NAMESPACE: &str = "boot-crowd";
    const SERVICES: usize = 20;
    let count = sizes.size;
    say(&format!("{count} BootDependencies of two Services and one host …"));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    // Takes connections and hangs up, until the process ends.
    std::thread::spawn(move || listener.incoming().for_each(drop));
    namespace(arena, NAMESPACE).await?;
    let names: Vec<String> = (0..SERVICES).map(|number| format!("service-{number}")).collect();
    let services = names.iter().flat_map(|name| [service(NAMESPACE, name), slice(NAMESPACE, name, true)]);
    apply(arena, &services.collect::<Vec<_>>()).await?;
    let boots: Vec<Value> = (0..count)
        .map(|number| {
            let entry = |shift: usize| json!({"service": names[(number + shift) % SERVICES], "port": 5432});
            let host = json!({"host": "127.0.0.1", "port": port});
            boot(NAMESPACE, &format!("boot-{number}"), &json!({"dependsOn": [entry(0), entry(1), host]}))
        })
        .collect();
    apply(arena, &boots).await?;
    operator.settle_at("bootchain_dependencies_ready", 3 * count).await?;
    let (now, most) = operator.memory()?;
    let figure = format!("RSS, {count} BootDependencies × (2 services + 1 shared host)");
    table.plain(&figure, &format!("{now:.1} MB (peak {most:.1})"), "–");
    say(&format!("listening to silence for {} s …", sizes.idle_seconds));
    let from = std::fs::metadata(arena.audit_log())?.len();
    let before = operator.metric("linchpin_probe_seconds_count").await?;
    tokio::time::sleep(Duration::from_secs(sizes.idle_seconds)).await;
    let probes = operator.metric("linchpin_probe_seconds_count").await? - before;
    let requests = crowd::requests(arena, from)?;
    let total: usize = requests.values().sum();
    let seconds = sizes.idle_seconds;
    let figure = format!("requests in {seconds} s, {count} BootDependencies (without watches, lease)");
    table.plain(&figure, &format!("{total} {requests:?}"), "0");
    let figure = format!("probes in {seconds} s of the one host that {count} BootDependencies share");
    table.plain(&figure, &format!("{probes}"), &format!("≤ {}", seconds / 27 + 1));
    Ok(())
}

/// From the answer to the write that makes an endpoint ready until a watch sees the pod without its gate.
async fn releases(arena: &Arena, count: usize, table: &mut Table) -> Result<()> {
    say(&format!("{count} held pods are released, one by one …"));
    namespace(arena, "boot-floor").await?;
    namespace(arena, "boot-release").await?;
    let plain = tokio::spawn(plain_client(arena.client.clone(), "boot-floor"));
    let mut floor = released(arena, "boot-floor", count, FLOOR_GATE).await?;
    plain.abort();
    let boots: Vec<Value> = (0..count)
        .map(|number| {
            let name = format!("pod-{number}");
            let entry = json!({"service": format!("db-{name}"), "port": 5432, "timeout": "24h"});
            let spec = json!({"targetRef": {"kind": "Pod", "name": name}, "strategy": "SchedulingGate",
                "dependsOn": [entry]});
            boot("boot-release", &name, &spec)
        })
        .collect();
    apply(arena, &boots).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut ours = released(arena, "boot-release", count, "").await?;
    for (name, hundredths) in [("endpoint ready → pod released, p50", 50), ("the same, p99", 99)] {
        table.comparison(name, percentile(&mut floor, hundredths), percentile(&mut ours, hundredths));
    }
    let worst = percentile(&mut ours, 99);
    table.plain("endpoint ready → gate patch answered, p99", &crate::table::time(worst), "≤ 200 ms");
    Ok(())
}

/// Makes pods that are held, and lets them go.
async fn released(arena: &Arena, namespace: &str, count: usize, gate: &str) -> Result<Vec<Duration>> {
    let names: Vec<String> = (0..count).map(|number| format!("pod-{number}")).collect();
    let services = names.iter().flat_map(|name| {
        let name = format!("db-{name}");
        [service(namespace, &name), slice(namespace, &name, false)]
    });
    apply(arena, &services.collect::<Vec<_>>()).await?;
    let pods: Vec<Value> = names
        .iter()
        .map(|name| {
            let gates: Vec<Value> =
                [gate].iter().filter(|gate| !gate.is_empty()).map(|gate| json!({"name": gate})).collect();
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
                "spec": {"serviceAccountName": "builder", "schedulingGates": gates,
                    "containers": [{"name": "app", "image": "app"}]}})
        })
        .collect();
    apply(arena, &pods).await?;
    let api: Api<Pod> = Api::namespaced(arena.client.clone(), namespace);
    let is_free = |pod: &Pod| {
        let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
        gates.is_none_or(Vec::is_empty)
    };
    for pod in &api.list(&ListParams::default()).await?.items {
        anyhow::ensure!(!is_free(pod), "a pod is not held: the API server does not call the webhooks");
    }
    let sightings = Sightings::watching(api, is_free).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut times = Vec::new();
    for name in &names {
        apply(arena, &[slice(namespace, &format!("db-{name}"), true)]).await?;
        let answered = Instant::now();
        times.push(sightings.when(name).await?.saturating_duration_since(answered));
        tokio::time::sleep(PAUSE).await;
    }
    Ok(times)
}

/// What somebody would write by hand: a watch of slices, and a patch for each that is ready.
async fn plain_client(client: kube::Client, namespace: &'static str) -> Result<()> {
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let body = json!({"spec": {"schedulingGates": [{"name": FLOOR_GATE, "$patch": "delete"}]}});
    let mut events = watcher::watcher(slices, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        let Ok(Event::Apply(slice)) = event else { continue };
        let is_ready = |endpoint: &k8s_openapi::api::discovery::v1::Endpoint| {
            endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true))
        };
        if let Some(name) = slice.metadata.name.filter(|_| slice.endpoints.iter().any(is_ready)) {
            let pod = name.trim_start_matches("db-");
            pods.patch(pod, &PatchParams::default(), &Patch::Strategic(&body)).await?;
        }
    }
    Ok(())
}
