//! Sources that are fetched, through a real operator: what is good is applied and followed; what is hostile is told, applies
//! nothing, keeps what runs, and recovers.

use crate::{operator::linchpin, world::World};
use linchpin_local::Options;
use linchpin_testkit::{Scenario, condition};
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

/// An archive that the system's tar makes of what a script leaves in a directory.
fn archive(script: &str, arguments: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("sh").arg("-ec").arg(script).current_dir(folder.path()).status().unwrap();
    assert!(made.success(), "{script}");
    let made = Command::new("tar").arg("-cz").args(arguments).current_dir(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    made.stdout
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
    let world = World::start(&Options::default(), &[&hosts, "--probe-allow=127.0.0.0/8"]);
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
    let world = World::start(&Options::default(), &[&hosts, "--probe-allow=127.0.0.0/8"]);
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

/// "for a given configuration you should be able to tell whether all requirements are met": also of what has to be fetched,
/// and with what the cluster has.
fn plan_fetches(world: &World, scenario: &Scenario, port: u16) {
    scenario.sync("exporter", &json!({"source": {"objects": [json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "exported"}})]}, "exports": [{"name": "one", "object": {"apiVersion": "v1", "kind": "ConfigMap",
        "name": "exported"}}], "provides": [{"capability": "there.example.com"}]}).to_string());
    let manifests = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "maker", "namespace": "sync-hostile"},
         "spec": {"source": {"http": {"url": format!("http://127.0.0.1:{port}/slip")}}}},
        {"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "user", "namespace": "sync-hostile"},
         "spec": {"source": {"objects": []}, "dependencies": [
            {"name": "made", "object": {"resource": "configmap/slip"}},
            {"name": "nobody", "object": {"resource": "configmap/nobody"}},
            {"name": "export", "sync": {"name": "exporter", "export": "one"}},
            {"name": "mistaken", "sync": {"name": "exporter", "export": "two"}},
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
        "ok   sync-hostile/user  provided  Capability there.example.com (in the cluster)",
        "ok   sync-hostile/user  served  kind Sync.linchpin.dev (in the cluster)",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert_eq!(code, Some(1));
}
