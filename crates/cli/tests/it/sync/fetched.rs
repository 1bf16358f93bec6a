//! Sources that are fetched, through a real operator: what is good is applied and followed; what is hostile is told, applies
//! nothing, keeps what runs, and recovers.

use crate::{operator::linchpin, world::World};
use linchpin_local::ClusterOptions;
use linchpin_testkit::{Scenario, condition};
use linchpin_words::hash::sha256_hex;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// What the server answers with now, by path: status and body; of a redirect the body is where it leads.
type Answers = Arc<Mutex<BTreeMap<String, (u16, Vec<u8>)>>>;

/// A web server on loopback, as long as the test lives. What it has no answer for is not found.
fn serve() -> (u16, Answers) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers: Answers = Arc::default();
    let shared = Arc::clone(&answers);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let shared = Arc::clone(&shared);
            thread::spawn(move || answer(stream, &shared));
        }
    });
    (port, answers)
}

fn answer(mut stream: TcpStream, answers: &Answers) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().and_then(Result::ok).unwrap_or_default();
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (status, body) = answers.lock().unwrap().get(path).cloned().unwrap_or((404, Vec::new()));
    if status == SLOW {
        thread::sleep(Duration::from_secs(10));
        return;
    }
    if status == ENDLESS {
        let _ = stream.write_all(b"HTTP/1.1 200 X\r\nconnection: close\r\n\r\n");
        let more = vec![b'#'; 1 << 16];
        while stream.write_all(&more).is_ok() {}
        return;
    }
    let more = if status == 302 {
        format!("location: {}\r\n", String::from_utf8_lossy(&body))
    } else {
        String::new()
    };
    // What is told and what is sent differ where the answer is cut off.
    let (status, told) = if status == CUT { (200, body.len() * 2) } else { (status, body.len()) };
    let head = format!("HTTP/1.1 {status} X\r\n{more}content-length: {told}\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&body);
}

/// An answer that never comes.
const SLOW: u16 = 1;
/// An answer that is cut off.
const CUT: u16 = 2;
/// An answer that never ends.
const ENDLESS: u16 = 3;

/// An archive that the system's tar makes of what a script leaves in a directory.
fn archive(script: &str, arguments: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("sh").arg("-ec").arg(script).current_dir(folder.path()).status().unwrap();
    assert!(made.success(), "{script}");
    let made = Command::new("tar").arg("-cz").args(arguments).current_dir(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    made.stdout
}

/// A zip of one entry with this name and this text, so many times.
fn zip(name: &str, text: &str, times: usize) -> Vec<u8> {
    let script = "import io, sys, zipfile\n\
        packed = io.BytesIO()\n\
        with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as z: z.writestr(sys.argv[1], sys.argv[2] * int(sys.argv[3]))\n\
        sys.stdout.buffer.write(packed.getvalue())";
    let made = Command::new("python3").args(["-c", script, name, text, &times.to_string()]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    made.stdout
}

/// The first half of one archive and the second half of another: the file was replaced while it was read.
fn torn() -> Vec<u8> {
    let filled = |letter: &str| {
        let noise = format!(
            "seq -f '{letter}%.0f' 20000 | sha256sum | cut -c1-64 | sed 's/^/# /' > a.yaml; seq -f '# {letter}%.0f' 20000 >> a.yaml"
        );
        archive(&noise, &["a.yaml"])
    };
    let (old, new) = (filled("a"), filled("b"));
    let middle = old.len().min(new.len()) / 2;
    [&old[..middle], &new[middle..]].concat()
}

const LAYER: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

/// The manifest of an artifact with this layer.
fn manifest(layer: &[u8]) -> Vec<u8> {
    let layers = json!([{"mediaType": LAYER, "digest": digest(layer), "size": layer.len()}]);
    json!({"schemaVersion": 2, "layers": layers}).to_string().into_bytes()
}

fn map(value: &str) -> Vec<u8> {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fetched"}, "data": {"value": value}})
        .to_string()
        .into_bytes()
}

/// Asks for a look, and waits until the Sync says so of its source.
fn told(scenario: &Scenario, order: &str, reason: &str) -> Value {
    scenario.annotate("Sync", "app", "linchpin.dev/requested-at", order);
    scenario.until(&format!("tells {reason}"), "Sync", "app", |object| {
        condition(object, "SourceReady")["reason"] == reason
    })
}

#[test]
fn what_is_hostile_is_told_applies_nothing_keeps_what_runs_and_recovers() {
    let (port, answers) = serve();
    let answer = |status: u16, body: Vec<u8>| {
        answers.lock().unwrap().insert("/app.yaml".to_owned(), (status, body));
    };
    let hosts = format!("--source-hosts=http://127.0.0.1:{port}");
    let world = World::start(&ClusterOptions::default(), &[&hosts, "--probe-allow=127.0.0.0/8"]);
    let scenario = world.scenario("sync-fetched");
    let url = format!("http://127.0.0.1:{port}/app.yaml");
    scenario.sync("app", &json!({"source": {"http": {"url": url}, "interval": "10s"}}).to_string());
    let missing = scenario.until("is not found", "Sync", "app", |object| {
        condition(object, "SourceReady")["reason"] == "SourceNotFound"
    });
    assert_eq!(missing["status"]["phase"], "Waiting");
    answer(200, map("1"));
    scenario.annotate("Sync", "app", "linchpin.dev/requested-at", "1");
    let done = scenario.synced("app");
    assert!(done["status"]["observedRevision"].as_str().unwrap().starts_with("sha256:"));
    assert!(done["status"]["source"]["size"].is_i64() && done["status"]["source"]["fetchedAt"].is_string());
    answer(401, b"hunter2".to_vec());
    let kept = told(&scenario, "2", "Unauthorized");
    assert_eq!(condition(&kept, "Ready")["status"], "True", "what was read stays the desired state");
    assert!(!kept["status"].to_string().contains("hunter2"));
    answer(200, b"a: [".to_vec());
    let refused = told(&scenario, "3", "ManifestInvalid");
    assert_eq!(condition(&refused, "Stalled")["status"], "True");
    answer(200, vec![0x1f, 0x8b, 8, 0, 1, 2, 3]);
    told(&scenario, "4", "ArchiveInvalid");
    answer(200, Vec::new());
    told(&scenario, "5", "SourceEmpty");
    assert_eq!(scenario.data("fetched", "value").as_deref(), Some("1"), "nothing was pruned or changed");
    answer(200, map("2"));
    scenario.annotate("Sync", "app", "linchpin.dev/requested-at", "6");
    scenario.until("recovers", "ConfigMap", "fetched", |object| object["data"]["value"] == "2");
    scenario.synced("app");
    scenario.sync("other", r#"{"source": {"http": {"url": "https://elsewhere.example/x"}}}"#);
    let other = scenario.until("is not allowed", "Sync", "other", |object| {
        condition(object, "SourceReady")["reason"] == "HostNotAllowed"
    });
    assert!(other["status"]["message"].as_str().unwrap().contains("--source-hosts"));
}

#[test]
fn every_hostile_source_gives_a_clear_condition_applies_nothing_keeps_what_runs_and_recovers() {
    let (port, answers) = serve();
    let hosts = format!("--source-hosts=http://127.0.0.1:{port}");
    let world = World::start(&ClusterOptions::default(), &[&hosts, "--probe-allow=127.0.0.0/8"]);
    let scenario = world.scenario("sync-hostile");
    let good = |name: &str, value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
            .to_string()
    };
    let aliases = (0..20).fold("a0: &a0 [x, x]\n".to_owned(), |text, level| {
        format!("{text}a{}: &a{} [*a{level}, *a{level}, *a{level}]\n", level + 1, level + 1)
    });
    let plain = "echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: evil}}' > a.yaml";
    let cases: Vec<(&str, u16, Vec<u8>, &str, bool)> = vec![
        ("slip", 200, archive(plain, &["-P", "--transform=s,^,../,", "a.yaml"]), "ArchiveUnsafe", true),
        ("absolute", 200, archive(plain, &["-P", "--transform=s,^,/tmp/,", "a.yaml"]), "ArchiveUnsafe", true),
        ("link", 200, archive("ln -s /etc/passwd a.yaml", &["a.yaml"]), "ArchiveUnsafe", true),
        ("pipe", 200, archive("mkfifo a.yaml", &["a.yaml"]), "ArchiveUnsafe", true),
        ("bomb", 200, archive("head -c 60000000 /dev/zero > a.bin", &["a.bin"]), "TooLarge", true),
        ("crowd", 200, archive("seq -f 'f%.0f' 10001 | xargs touch", &["."]), "TooLarge", true),
        ("long", 200, vec![b'#'; 11 << 20], "TooLarge", true),
        ("aliases", 200, aliases.into_bytes(), "ManifestInvalid", true),
        ("kustomize", 200, archive("touch kustomization.yaml", &["."]), "SourceUnsupported", true),
        ("chart", 200, archive("touch Chart.yaml", &["."]), "SourceUnsupported", true),
        ("garbage", 200, vec![0x50, 0x4b, 3, 4, 9, 9, 9, 9], "ArchiveInvalid", true),
        ("zip-bomb", 200, zip("a.yaml", "# nothing\n", 6_000_000), "TooLarge", true),
        ("zip-slip", 200, zip("../a.yaml", "a: 1\n", 1), "ArchiveUnsafe", true),
        ("torn", 200, torn(), "ArchiveInvalid", true),
        ("endless", ENDLESS, Vec::new(), "TooLarge", true),
        ("nothing", 200, b"# nothing".to_vec(), "SourceEmpty", true),
        ("word", 200, b"just a word".to_vec(), "ManifestInvalid", true),
        ("cut", CUT, good("cut", "evil").into_bytes(), "FetchFailed", false),
        ("slow", SLOW, Vec::new(), "FetchFailed", false),
        ("broken", 500, b"hunter2".to_vec(), "FetchFailed", false),
        ("locked", 401, b"hunter2".to_vec(), "Unauthorized", false),
        ("gone", 410, Vec::new(), "SourceNotFound", false),
        ("elsewhere", 302, b"http://169.254.169.254/latest".to_vec(), "HostNotAllowed", false),
    ];
    let path = |name: &str| format!("/{name}");
    for (name, ..) in &cases {
        answers.lock().unwrap().insert(path(name), (200, good(name, "1").into_bytes()));
        let url = format!("http://127.0.0.1:{port}/{name}");
        let source = json!({"http": {"url": url}, "interval": "1h", "timeout": "2s"});
        scenario.sync(name, &json!({"source": source}).to_string());
    }
    for (name, ..) in &cases {
        scenario.synced(name);
    }
    let before = scenario.audit.user_writes("sync-hostile").len();
    for (name, status, body, ..) in &cases {
        answers.lock().unwrap().insert(path(name), (*status, body.clone()));
        scenario.annotate("Sync", name, "linchpin.dev/requested-at", "1");
    }
    for (name, _, _, reason, refused) in &cases {
        let told = scenario.until(&format!("tells {reason}"), "Sync", name, |object| {
            let told = condition(object, "SourceReady");
            told["status"] == "False" && told["reason"] == *reason
        });
        assert!(!told["status"].to_string().contains("hunter2"), "{told:#}");
        let (ready, stalled) = (condition(&told, "Ready"), condition(&told, "Stalled"));
        let expected = if *refused { ("False", "True") } else { ("True", "False") };
        assert_eq!(
            (&ready["status"], &stalled["status"]),
            (&json!(expected.0), &json!(expected.1)),
            "{name}: {told:#}"
        );
        assert_eq!(scenario.data(name, "value").as_deref(), Some("1"), "{name} keeps what runs");
    }
    assert!(!scenario.has("evil"));
    assert_eq!(scenario.audit.user_writes("sync-hostile").len(), before, "nothing is applied");
    for (name, ..) in &cases {
        answers.lock().unwrap().insert(path(name), (200, good(name, "2").into_bytes()));
        scenario.annotate("Sync", name, "linchpin.dev/requested-at", "2");
    }
    for (name, ..) in &cases {
        scenario.until("recovers", "ConfigMap", name, |object| object["data"]["value"] == "2");
        scenario.synced(name);
    }
    plan_fetches(&world, &scenario, port);
}

/// Puts an artifact into the registry that `answers` stand for.
fn push(answers: &Answers, repository: &str, value: &str) {
    let script = format!("printf '%s' '{}' > a.yaml", String::from_utf8_lossy(&named(repository, value)));
    let layer = archive(&script, &["a.yaml"]);
    let mut answers = answers.lock().unwrap();
    answers.insert(format!("/v2/{repository}/blobs/{}", digest(&layer)), (200, layer.clone()));
    answers.insert(format!("/v2/{repository}/manifests/1.0.0"), (200, manifest(&layer)));
}

fn named(name: &str, value: &str) -> Vec<u8> {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
        .to_string()
        .into_bytes()
}

#[test]
fn a_registry_that_fails_lies_or_babbles_applies_nothing_keeps_what_runs_and_recovers() {
    let (port, answers) = serve();
    let hosts = format!("--source-hosts=http://127.0.0.1:{port}");
    let world = World::start(&ClusterOptions::default(), &[&hosts, "--probe-allow=127.0.0.0/8"]);
    let scenario = world.scenario("sync-registry");
    let lie = manifest(b"something else");
    let cases: [(&str, u16, Vec<u8>, &str, bool); 8] = [
        ("missing", 404, Vec::new(), "SourceNotFound", false),
        ("locked", 401, b"hunter2".to_vec(), "Unauthorized", false),
        ("broken", 500, b"hunter2".to_vec(), "FetchFailed", false),
        ("slow", SLOW, Vec::new(), "FetchFailed", false),
        ("babbles", 200, b"<html>hunter2</html>".to_vec(), "ArchiveInvalid", true),
        ("index", 200, br#"{"manifests": [{"digest": "x"}]}"#.to_vec(), "SourceUnsupported", true),
        ("fat", 200, vec![b' '; 2 << 20], "TooLarge", true),
        ("lies", 200, lie.clone(), "DigestMismatch", true),
    ];
    let apply = |name: &str| {
        let url = format!("oci://127.0.0.1:{port}/{name}");
        let source = json!({"oci": {"url": url, "tag": "1.0.0"}, "interval": "1h", "timeout": "2s"});
        scenario.sync(name, &json!({"source": source}).to_string());
    };
    for (name, ..) in &cases {
        push(&answers, name, "1");
        apply(name);
    }
    for (name, ..) in &cases {
        let done = scenario.synced(name);
        let revision = done["status"]["observedRevision"].as_str().unwrap();
        assert!(revision.starts_with("1.0.0@sha256:"), "{revision}");
        assert_eq!(done["status"]["version"], "1.0.0", "the tag is its version");
    }
    let before = scenario.audit.user_writes("sync-registry").len();
    for (name, status, body, ..) in &cases {
        let mut answers = answers.lock().unwrap();
        answers.insert(format!("/v2/{name}/manifests/1.0.0"), (*status, body.clone()));
        // A blob under a name that is not its own.
        let blob = format!("/v2/{name}/blobs/{}", digest(b"something else"));
        answers.insert(blob, (200, b"a: evil".to_vec()));
        drop(answers);
        scenario.annotate("Sync", name, "linchpin.dev/requested-at", "1");
    }
    for (name, _, _, reason, refused) in &cases {
        let told = scenario.until(&format!("tells {reason}"), "Sync", name, |object| {
            let told = condition(object, "SourceReady");
            told["status"] == "False" && told["reason"] == *reason
        });
        assert!(!told["status"].to_string().contains("hunter2"), "{told:#}");
        let shown = (&condition(&told, "Ready")["status"], &condition(&told, "Stalled")["status"]);
        let expected = if *refused { ("False", "True") } else { ("True", "False") };
        assert_eq!(shown, (&json!(expected.0), &json!(expected.1)), "{name}: {told:#}");
        assert_eq!(scenario.data(name, "value").as_deref(), Some("1"), "{name} keeps what runs");
    }
    assert_eq!(scenario.audit.user_writes("sync-registry").len(), before, "nothing is applied");
    for (name, ..) in &cases {
        push(&answers, name, "2");
        scenario.annotate("Sync", name, "linchpin.dev/requested-at", "2");
    }
    for (name, ..) in &cases {
        scenario.until("recovers", "ConfigMap", name, |object| object["data"]["value"] == "2");
        scenario.synced(name);
    }
    // "wrong digest": before anything is unpacked, and another digest recovers.
    let file = named("pinned", "1");
    answers.lock().unwrap().insert("/pinned".to_owned(), (200, file.clone()));
    let pin = |digest: &str| {
        let http = json!({"url": format!("http://127.0.0.1:{port}/pinned"), "digest": digest});
        scenario.sync("pinned", &json!({"source": {"http": http}}).to_string());
    };
    pin(&digest(b"another file"));
    let told = scenario.until("tells that it is another file", "Sync", "pinned", |object| {
        condition(object, "SourceReady")["reason"] == "DigestMismatch"
    });
    assert_eq!(condition(&told, "Stalled")["status"], "True");
    assert!(!scenario.has("pinned"));
    pin(&digest(&file));
    scenario.synced("pinned");
}

/// "for a given configuration you should be able to tell whether all requirements are met": also of what has to be fetched,
/// and with what the cluster has.
fn plan_fetches(world: &World, scenario: &Scenario, port: u16) {
    scenario.sync("exporter", &json!({"source": {"objects": [json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "exported"}})]}, "exports": [{"name": "one", "object": {"apiVersion": "v1", "kind": "ConfigMap",
        "name": "exported"}}], "provides": [{"capability": "there.example.com"}]}).to_string());
    scenario.synced("exporter");
    let manifests = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "maker", "namespace": "sync-hostile"},
         "spec": {"source": {"http": {"url": format!("http://127.0.0.1:{port}/slip")}}}},
        {"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "user", "namespace": "sync-hostile"},
         "spec": {"source": {"objects": []}, "dependencies": [
            {"name": "made", "object": {"resource": "configmap/slip"}},
            {"name": "nobody", "object": {"resource": "configmap/nobody"}},
            {"name": "export", "sync": {"name": "exporter", "export": "one"}},
            {"name": "mistaken", "sync": {"name": "exporter", "export": "two"}},
            {"name": "labelled", "objects": {"kind": "ConfigMap", "selector": {"matchLabels": {"linchpin.dev/sync": "exporter"}}}},
            {"name": "unlabelled", "objects": {"kind": "ConfigMap", "selector": {"matchLabels": {"linchpin.dev/sync": "x"}}}},
            {"name": "provided", "capability": {"name": "there.example.com"}},
            {"name": "served", "capability": {"api": {"group": "linchpin.dev", "version": "v1alpha1", "kind": "Sync"}}}]}}]});
    let plan = |arguments: &[&str]| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), manifests.to_string()).unwrap();
        let output = linchpin().args(["plan", "-f"]).arg(file.path()).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, told) = plan(&[]);
    assert!(
        told.contains("?    sync-hostile/user  made  ConfigMap sync-hostile/slip (cannot tell"),
        "{told}"
    );
    assert_eq!(code, Some(1), "{told}");
    let (_, told) = plan(&["--fetch"]);
    let made = "ok   sync-hostile/user  made  ConfigMap sync-hostile/slip (Sync sync-hostile/maker makes it)";
    assert!(told.contains(made), "{told}");
    assert!(told.contains("none sync-hostile/user  nobody  ConfigMap sync-hostile/nobody"), "{told}");
    let kubeconfig = world.cluster.kubeconfig().display().to_string();
    let (code, told) = plan(&["--fetch", "--kubeconfig", &kubeconfig]);
    for line in [
        made,
        "none sync-hostile/user  nobody",
        "ok   sync-hostile/user  export  export one of Sync sync-hostile/exporter (in the cluster)",
        "none sync-hostile/user  mistaken",
        "ok   sync-hostile/user  labelled  ConfigMap sync-hostile/[linchpin.dev/sync=exporter] (in the cluster)",
        "none sync-hostile/user  unlabelled  ConfigMap sync-hostile/[linchpin.dev/sync=x]",
        "ok   sync-hostile/user  provided  Capability there.example.com (in the cluster)",
        "ok   sync-hostile/user  served  kind Sync.linchpin.dev (in the cluster)",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert_eq!(code, Some(1));
}
