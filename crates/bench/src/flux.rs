//! The hop between two Kustomizations of Flux, one of which names the other in `dependsOn`: from the status that says that the
//! dependency is ready until the dependent's object is seen. Flux looks again at a dependency that is not ready after
//! `--requeue-dependency`; measured with its default and with a very short one.
//!
//! Only where `make flux` has built the controller and `LINCHPIN_FLUX` and `LINCHPIN_FLUX_CRD` name it and its definition.

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
};
use linchpin_words::hash::sha256_hex;
use serde_json::{Value, json};
use std::{env, ffi::OsString, fs, path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    process::{Child, Command},
};

use crate::{Stage, arena::Arena, say, sightings::Sightings, table::Table};

/// How many hops: each may take as long as Flux waits.
const HOPS: usize = 20;
/// Between two releases: the hops of one run are under way together, and do not begin together.
const PAUSE: Duration = Duration::from_millis(1500);
/// The fast run: it looks again four times a second, and no limit of its own keeps it from that.
const FAST: [&str; 4] =
    ["--requeue-dependency=250ms", "--kube-api-qps=1000", "--kube-api-burst=2000", "--concurrent=20"];

/// Measures it, if the controller is there.
pub(crate) async fn measure(Stage { arena, table, .. }: Stage<'_>) -> Result<()> {
    let (Some(program), Some(definition)) = (env::var_os("LINCHPIN_FLUX"), env::var_os("LINCHPIN_FLUX_CRD"))
    else {
        say("Flux is left out: make flux builds it, LINCHPIN_FLUX and LINCHPIN_FLUX_CRD name it");
        return Ok(());
    };
    define(arena, Path::new(&definition)).await?;
    for (namespace, what, flags) in [
        ("flux-usual", "at its defaults".to_owned(), [].as_slice()),
        ("flux-fast", format!("with {}", FAST.join(" ")), FAST.as_slice()),
    ] {
        say(&format!("{HOPS} hops between Kustomizations of Flux, {what} …"));
        let mut times = run(arena, namespace, &program, flags).await?;
        report(table, &what, &mut times);
    }
    Ok(())
}

fn report(table: &mut Table, what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |hundredths: usize| times.get(times.len() * hundredths / 100).copied().unwrap_or_default();
    let shown = format!("p50 {:.0} ms, slowest {:.0} ms", millis(at(50)), millis(at(99)));
    table.plain(&format!("hop between two Kustomizations of Flux, {what}"), &shown, "–");
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Ours to define: Kustomizations, and the kinds of sources that the controller watches.
async fn define(arena: &Arena, kustomizations: &Path) -> Result<()> {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let source = |kind: &str, plural: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.source.toolkit.fluxcd.io")},
            "spec": {"group": "source.toolkit.fluxcd.io", "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": any}}]}})
    };
    let text = fs::read_to_string(kustomizations).context("reading the definition of Kustomization")?;
    let documents = linchpin_lang::template::parse_documents("crd.yaml", &text)
        .map_err(|error| anyhow::anyhow!("the definition of Kustomization: {}", error.message()))?;
    let sources = [
        source("GitRepository", "gitrepositories"),
        source("OCIRepository", "ocirepositories"),
        source("Bucket", "buckets"),
        source("ExternalArtifact", "externalartifacts"),
    ];
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(arena.client.clone(), &ApiResource::from_gvk(&gvk));
    for definition in documents.iter().chain(&sources).filter(|document| !document.is_null()) {
        let name = definition["metadata"]["name"].as_str().context("a definition without a name")?;
        api.patch(name, &parameters(), &Patch::Apply(definition)).await?;
    }
    for _ in 0..100 {
        if kind(arena, "default", "kustomize", "Kustomization").list(&ListParams::default()).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("Flux's kinds are not served after 10 s")
}

fn parameters() -> PatchParams {
    PatchParams::apply("bench").force()
}

/// A kind of Flux in a namespace.
fn kind(arena: &Arena, namespace: &str, group: &str, kind: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(&format!("{group}.toolkit.fluxcd.io"), "v1", kind);
    let plural = if kind == "GitRepository" { "gitrepositories" } else { "kustomizations" };
    Api::namespaced_with(arena.client.clone(), namespace, &ApiResource::from_gvk_with_plural(&gvk, plural))
}

async fn run(arena: &Arena, namespace: &str, program: &OsString, flags: &[&str]) -> Result<Vec<Duration>> {
    arena.namespace(namespace).await?;
    let file = archive(namespace).await?;
    let status = artifact(&file);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/artifact.tar.gz", listener.local_addr()?);
    let server = tokio::spawn(serve(listener, file));
    let _controller = controller(arena, namespace, program, flags)?;

    let sources = kind(arena, namespace, "source", "GitRepository");
    let source = json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "repo"},
        "spec": {"interval": "1h", "url": "https://git.invalid/repo"}});
    sources.patch("repo", &parameters(), &Patch::Apply(&source)).await?;
    let mut status = status;
    status["status"]["artifact"]["url"] = json!(url);
    sources.patch_status("repo", &PatchParams::default(), &Patch::Merge(&status)).await?;

    let kustomizations = kind(arena, namespace, "kustomize", "Kustomization");
    for number in 0..HOPS {
        let (cause, effect) = (format!("cause-{number}"), format!("effect-{number}"));
        for (name, more) in
            [(&cause, json!({"suspend": true})), (&effect, json!({"dependsOn": [{"name": cause}]}))]
        {
            let body = kustomization(name, &more);
            kustomizations.patch(name, &parameters(), &Patch::Apply(&body)).await?;
        }
    }
    let is = |wanted: &'static str| {
        move |object: &DynamicObject| {
            let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == wanted)
        }
    };
    // Every dependent was looked at once and waits.
    let waiting = Sightings::watching(kustomizations.clone(), is("False")).await?;
    let effects: Vec<String> = (0..HOPS).map(|number| format!("effect-{number}")).collect();
    waiting.when_all(&effects).await?;

    let ready = Sightings::watching(kustomizations.clone(), is("True")).await?;
    let objects = Sightings::of(arena, namespace).await?;
    for number in 0..HOPS {
        let resume = json!({"spec": {"suspend": false}});
        let name = format!("cause-{number}");
        kustomizations.patch(&name, &PatchParams::default(), &Patch::Merge(&resume)).await?;
        tokio::time::sleep(PAUSE).await;
    }
    let mut times = Vec::new();
    for number in 0..HOPS {
        let from = ready.when(&format!("cause-{number}")).await?;
        let seen = objects.when(&format!("effect-{number}")).await?;
        times.push(seen.saturating_duration_since(from));
    }
    // The next controller sees these too, and would wait for a server that is gone.
    let suspend = json!({"spec": {"suspend": true}});
    for number in 0..HOPS {
        for name in [format!("cause-{number}"), format!("effect-{number}")] {
            kustomizations.patch(&name, &PatchParams::default(), &Patch::Merge(&suspend)).await?;
        }
    }
    server.abort();
    Ok(times)
}

fn kustomization(name: &str, more: &Value) -> Value {
    let mut body = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": name},
        "spec": {"interval": "10m", "timeout": "1m", "prune": true, "path": format!("./{name}"),
            "sourceRef": {"kind": "GitRepository", "name": "repo"}}});
    for (field, value) in more.as_object().into_iter().flatten() {
        body["spec"][field] = value.clone();
    }
    body
}

/// The controller, which ends with what is returned.
fn controller(arena: &Arena, namespace: &str, program: &OsString, flags: &[&str]) -> Result<Child> {
    let mut command = Command::new(program);
    command.args(["--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0", "--watch-all-namespaces=true"]);
    command.args(flags);
    command.env("KUBECONFIG", arena.kubeconfig()).env("RUNTIME_NAMESPACE", namespace);
    command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().context("starting Flux's kustomize-controller")
}

/// A gzipped tar with a folder for each Kustomization, and a ConfigMap of its name in it.
async fn archive(namespace: &str) -> Result<Vec<u8>> {
    let folder = env::temp_dir().join(format!("linchpin-bench-{}-{namespace}", std::process::id()));
    for number in 0..HOPS {
        for name in [format!("cause-{number}"), format!("effect-{number}")] {
            fs::create_dir_all(folder.join(&name))?;
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace}, "data": {"k": "v"}});
            // Flux takes no file with another ending where nothing lists them; JSON is YAML.
            fs::write(folder.join(&name).join("map.yaml"), body.to_string())?;
        }
    }
    let packed = Command::new("tar").args(["-cz", "-C"]).arg(&folder).arg(".").output().await;
    fs::remove_dir_all(&folder)?;
    let packed = packed.context("running tar")?;
    ensure!(packed.status.success(), "tar: {}", String::from_utf8_lossy(&packed.stderr));
    Ok(packed.stdout)
}

/// The status of a source that was fetched, but for its address.
fn artifact(file: &[u8]) -> Value {
    let now = "2026-01-01T00:00:00Z";
    json!({"status": {"observedGeneration": 1,
        "artifact": {"path": "artifact.tar.gz", "revision": "main@sha1:0000000000000000000000000000000000000000",
            "digest": format!("sha256:{}", sha256_hex(file)), "lastUpdateTime": now, "size": file.len()},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored",
            "lastTransitionTime": now}]}})
}

/// Serves one file to everybody.
async fn serve(listener: TcpListener, file: Vec<u8>) {
    while let Ok((mut connection, _)) = listener.accept().await {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", file.len());
        let answer = [head.as_bytes(), &file].concat();
        tokio::spawn(async move {
            let _ = connection.read(&mut [0; 4096]).await;
            let _ = connection.write_all(&answer).await;
        });
    }
}
