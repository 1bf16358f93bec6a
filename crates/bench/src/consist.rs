//! `linchpin consist` with many employers: what they cost at rest, what one pod's change costs, how soon it reaches the
//! provider, and how long webhooks take.
//!
//! The provider is one of the demo's contract in this process, so that the moment at which a request arrives is known.

mod provider;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use self::provider::ProviderServer;
use crate::{
    Sizes,
    arena::{Arena, PARALLEL},
    crowd,
    operator::OperatorProcess,
    say,
    table::{Table, percentile, time},
};

const NAMESPACE: &str = "consist";
const PODS: usize = 10;
/// How long all of them may take to be served.
const PATIENCE: Duration = Duration::from_mins(15);
/// Between two changes, so that each is one of its own.
const PAUSE: Duration = Duration::from_millis(60);

pub(crate) async fn measure(
    arena: &Arena,
    program: &str,
    sizes: Sizes,
    employers: usize,
    table: &mut Table,
) -> Result<()> {
    let provider = ProviderServer::start().await?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let url = provider.url();
    let bind = format!("--webhook-bind-address={address}");
    let reached = format!("--webhook-url=https://{address}");
    let words = ["consist", "enable", "demo", "--provider", &url, &bind, &reached];
    let mut process = OperatorProcess::start_as(arena, program, &words).await?;
    arena.namespace(NAMESPACE).await?;
    say(&format!("{employers} employers of {PODS} pods each …"));
    let begun = Instant::now();
    let (before, _) = within(&process).await?;
    make(arena, employers).await?;
    let served = "linchpin_consist_employers{adapter=\"demo\",ready=\"true\"}";
    let attached = "linchpin_consist_employees{adapter=\"demo\",state=\"Attached\"}";
    for (name, wanted) in [(served, employers), (attached, employers * PODS)] {
        let wanted = u32::try_from(wanted).map(f64::from)?;
        while process.metric(name).await? < wanted {
            ensure!(begun.elapsed() < PATIENCE, "{name} is {}", process.metric(name).await?);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let crowd = format!("{employers} employers × {PODS} pods");
    table.plain(&format!("{crowd}: made and in sync"), &time(begun.elapsed()), "–");
    let (all, fast) = within(&process).await?;
    let share = format!("{:.2} % of {:.0} within 5 ms", 100.0 * fast / (all - before).max(1.0), all - before);
    table.plain("webhook at creation, server-side", &share, "≥ 99 %");
    at_rest(arena, &process, &provider, sizes, &crowd, table).await?;
    changes(arena, &process, &provider, sizes.hops, employers, table).await?;
    process.stop().await
}

/// How many answers of webhooks there were, and how many took no longer than 5 ms.
async fn within(process: &OperatorProcess) -> Result<(f64, f64)> {
    let bucket = |bound: &'static str| async move {
        process.metric(&format!("linchpin_webhook_seconds_bucket{{le=\"{bound}\"}}")).await
    };
    Ok((bucket("+Inf").await?, bucket("0.005").await?))
}

fn ip(employer: usize, pod: usize) -> String {
    format!("10.{}.{}.{}", employer / 250, employer % 250, pod + 1)
}

async fn status(pods: &Api<Pod>, name: &str, ip: &str, ready: bool) -> Result<()> {
    let ready = if ready { "True" } else { "False" };
    let body = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": ready}]}});
    let written = pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(&body)).await;
    written.map(drop).with_context(|| format!("writing the status of pod {name}"))
}

async fn make(arena: &Arena, employers: usize) -> Result<()> {
    let services: Api<Service> = Api::namespaced(arena.client.clone(), NAMESPACE);
    let pods: Api<Pod> = Api::namespaced(arena.client.clone(), NAMESPACE);
    let control = "kusionstack.io/control";
    let one = async |number: usize| -> Result<()> {
        let app = format!("s{number}");
        let service: Value = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": app, "labels": {control: "true"}},
            "spec": {"selector": {"app": app}, "clusterIP": "None", "ports": [{"port": 80}]}});
        services.create(&PostParams::default(), &serde_json::from_value(service)?).await?;
        for pod in 0..PODS {
            let name = format!("{app}-{pod}");
            let body: Value = json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "labels": {"app": app, control: "true"}},
                "spec": {"serviceAccountName": "builder", "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "app", "image": "app"}]}});
            pods.create(&PostParams::default(), &serde_json::from_value(body)?).await?;
            status(&pods, &name, &ip(number, pod), true).await?;
        }
        Ok(())
    };
    stream::iter((0..employers).map(one)).buffer_unordered(PARALLEL).try_collect().await
}

async fn at_rest(
    arena: &Arena,
    process: &OperatorProcess,
    provider: &ProviderServer,
    sizes: Sizes,
    crowd: &str,
    table: &mut Table,
) -> Result<()> {
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (now, most) = process.memory()?;
    table.plain(&format!("RSS, {crowd}"), &format!("{now:.1} MB (peak {most:.1})"), "–");
    say(&format!("listening to silence for {} s …", sizes.idle_seconds));
    let from = std::fs::metadata(arena.audit_log())?.len();
    provider.forget();
    tokio::time::sleep(Duration::from_secs(sizes.idle_seconds)).await;
    let requests = crowd::requests(arena, from)?;
    let total: usize = requests.values().sum();
    let seconds = sizes.idle_seconds;
    let figure = format!("requests in {seconds} s at rest, {crowd} (without watches, lease)");
    table.plain(&figure, &format!("{total} {requests:?}"), "0");
    let asked = provider.asked();
    let writes = asked.iter().filter(|one| one.method != "GET").count();
    let figure = format!("calls to the provider in {seconds} s at rest, and looks (two lists each)");
    table.plain(&figure, &format!("{writes}, {}", asked.len() - writes), "0, one each resync");
    Ok(())
}

/// From the answer to the write that makes a pod not ready, or ready again, until the provider is asked, and called.
async fn changes(
    arena: &Arena,
    process: &OperatorProcess,
    provider: &ProviderServer,
    count: usize,
    employers: usize,
    table: &mut Table,
) -> Result<()> {
    say(&format!("{count} pods change, one by one …"));
    let pods: Api<Pod> = Api::namespaced(arena.client.clone(), NAMESPACE);
    let from = std::fs::metadata(arena.audit_log())?.len();
    let used = process.processor_time()?;
    let (mut first, mut call) = (Vec::new(), Vec::new());
    for number in 0..count {
        let (employer, ready) = (number / 2 * 7 % employers, number % 2 == 1);
        let scope = format!("/Service/{NAMESPACE}/s{employer}");
        provider.forget();
        status(&pods, &format!("s{employer}-0"), &ip(employer, 0), ready).await?;
        let answered = Instant::now();
        let (looked, changed) = provider.changed(&scope).await?;
        first.push(looked.saturating_duration_since(answered));
        call.push(changed.saturating_duration_since(answered));
        tokio::time::sleep(PAUSE).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let used = process.processor_time()?.saturating_sub(used);
    let requests = crowd::requests(arena, from)?;
    let total: usize = requests.values().sum();
    let each =
        format!("{:.2} {requests:?}", f64::from(u32::try_from(total)?) / f64::from(u32::try_from(count)?));
    table.plain("requests for the change of one pod", &each, "bounded");
    for (what, times) in [("asked", &mut first), ("changed", &mut call)] {
        for (name, hundredths) in [("p50", 50), ("p99", 99)] {
            let figure = format!("pod changed → provider {what}, {employers} employers, {name}");
            table.plain(&figure, &time(percentile(times, hundredths)), "≤ 20 ms");
        }
    }
    table.processor_time("per change of a pod", used, count);
    Ok(())
}
