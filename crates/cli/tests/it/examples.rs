//! The shipped examples, applied as they are: they wait, are released by what their first line names, and end.

use crate::{seconds, world::World};
use linchpin_local::{Cluster, ClusterOptions};
use linchpin_testkit::{
    Api,
    audit::{Audit, Event, assert_before},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Output,
    thread,
    time::{Duration, Instant},
};

pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Where examples are applied: a cluster in which an operator serves.
pub(crate) struct Stage<'c> {
    pub(crate) cluster: &'c Cluster,
    pub(crate) api: &'c Api,
    /// What stands for the kubeconfigs of other clusters: this one's, as the operator reaches it.
    pub(crate) planes: PathBuf,
}

impl<'c> Stage<'c> {
    fn of(world: &'c World) -> Self {
        Self { cluster: &world.cluster, api: &world.api, planes: world.cluster.kubeconfig() }
    }
}

fn run(cluster: &Cluster, arguments: &[&str]) -> Output {
    cluster.kubectl().args(arguments).output().unwrap()
}

#[track_caller]
fn kubectl(cluster: &Cluster, arguments: &[&str]) -> String {
    let output = run(cluster, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
pub(crate) fn apply(cluster: &Cluster, path: &Path) {
    let how: &[&str] = if path.to_str().unwrap().ends_with(".status.yaml") {
        &["--server-side", "--subresource=status"]
    } else {
        &[]
    };
    apply_together(cluster, how, &[path]);
}

/// Applies several files with one process: each of them asks the server for all that it serves.
#[track_caller]
fn apply_together(cluster: &Cluster, how: &[&str], files: &[&Path]) {
    let named = files.iter().flat_map(|file| ["-f", file.to_str().unwrap()]);
    let arguments: Vec<&str> = ["apply"].into_iter().chain(how.iter().copied()).chain(named).collect();
    let begun = Instant::now();
    loop {
        let output = run(cluster, &arguments);
        if output.status.success() {
            return;
        }
        // A kind may have been defined a moment ago.
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(begun.elapsed() < seconds(60), "{files:?}: {error}");
        thread::sleep(Duration::from_millis(200));
    }
}

/// The examples in a folder, in order of their names.
fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{}", folder.display());
    files
}

/// What an example says it is released by, in order.
fn released_by(example: &Path) -> Vec<String> {
    let text = fs::read_to_string(example).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("# Released by: "))
        .unwrap_or_else(|| panic!("{}", example.display()));
    if line.starts_with("nothing") { Vec::new() } else { line.split(' ').map(str::to_owned).collect() }
}

/// The objects of ours in an example.
fn ours(example: &Path) -> Vec<(String, String, String)> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(example).unwrap()).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("default").to_owned();
    let mine = documents.iter().filter(|document| document["apiVersion"] == "tools.kubestellar.io/v1");
    mine.map(|object| {
        (text(&object["kind"]), text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
    })
    .collect()
}

fn is_done(api: &Api, (kind, namespace, name): &(String, String, String)) -> bool {
    let object = api.get(kind, namespace, name).unwrap_or_default();
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
}

#[track_caller]
pub(crate) fn all_are_done(api: &Api, examples: &[PathBuf]) {
    for example in examples {
        for object in ours(example) {
            let begun = Instant::now();
            while !is_done(api, &object) {
                let (kind, namespace, name) = &object;
                let seen = api.get(kind, namespace, name).unwrap_or_default();
                assert!(
                    begun.elapsed() < seconds(120),
                    "{}: {object:?}: {:#}",
                    example.display(),
                    seen["status"]
                );
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// Does one of the things that an example is released by.
fn release(stage: &Stage<'_>, stubs: &Path, folder: &Path, what: &str) {
    let cluster = stage.cluster;
    match what.split_once(':') {
        None if what == "definitions.yaml" => apply(cluster, &stubs.join(what)),
        None => apply(cluster, &folder.join(what)),
        Some(("kubeconfig", plane)) => {
            let config = &stage.planes;
            let (secret, key) = match plane {
                "its1" => ("vc-vcluster", "config"),
                "ext1" => ("bootstrap", "kubeconfig"),
                _ => ("admin-kubeconfig", "kubeconfig"),
            };
            let namespace = format!("{plane}-system");
            let files = [key.to_owned(), format!("{key}-incluster")]
                .map(|key| format!("--from-file={key}={}", config.display()));
            kubectl(
                cluster,
                &["create", "secret", "generic", secret, "-n", &namespace, &files[0], &files[1]],
            );
        }
        Some(("delete", object)) => {
            kubectl(cluster, &["delete", object]);
        }
        Some((_, file)) => apply(cluster, &folder.join(file)),
    }
}

/// Examples that are applied together, what they need, and what releases them.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    stubs: PathBuf,
    release: PathBuf,
    rights: Vec<PathBuf>,
    examples: Vec<PathBuf>,
}

/// The three sets of KubeStellar: some objects have the same name in two of them, so each needs a cluster.
pub(crate) fn sets() -> [Set; 3] {
    let folder = kubestellar();
    let of = |name: &'static str, home: &Path, with_rights: bool| {
        let own = folder.join(name);
        let rights = if with_rights { in_folder(&own.join("rbac")) } else { Vec::new() };
        let (stubs, release) = (home.join("stubs"), home.join("release"));
        Set { name, stubs, release, rights, examples: in_folder(&own) }
    };
    let printed = folder.join("as-printed");
    [of("as-printed", &printed, true), of("real", &folder, true), of("waits", &folder, false)]
}

/// Applies stubs, then all examples, then releases them one by one.
pub(crate) fn play(stage: &Stage<'_>, set: &Set) {
    let Set { stubs, release: release_folder, rights, examples, .. } = set;
    let (cluster, api) = (stage.cluster, stage.api);
    let waits_for: Vec<Vec<String>> = examples.iter().map(|example| released_by(example)).collect();
    apply(cluster, &stubs.join("namespaces.yaml"));
    let workloads = stubs.join("workloads.yaml");
    let files = [&workloads].into_iter().chain(rights).chain(examples);
    apply_together(cluster, &[], &files.map(PathBuf::as_path).collect::<Vec<_>>());
    // Those that wait for nothing are done, the others are not.
    let at_once: Vec<PathBuf> = examples
        .iter()
        .zip(&waits_for)
        .filter(|(_, by)| by.is_empty())
        .map(|(example, _)| example.clone())
        .collect();
    all_are_done(api, &at_once);
    for (example, by) in examples.iter().zip(&waits_for) {
        let done = ours(example).iter().all(|object| is_done(api, object));
        assert_eq!(done, by.is_empty(), "{}", example.display());
    }
    let mut released: BTreeMap<&str, Event> = BTreeMap::new();
    for (example, by) in examples.iter().zip(&waits_for) {
        for what in by {
            if !released.contains_key(what.as_str()) {
                let audit = Audit::from_now(&cluster.audit_log());
                release(stage, stubs, release_folder, what);
                released.insert(what, audit.events().into_iter().find(is_by_hand).unwrap());
            }
        }
        all_are_done(api, std::slice::from_ref(example));
    }
    all_are_done(api, examples);
    let audit = Audit::from_the_beginning(&cluster.audit_log());
    assert_eq!(audit.overreach(), []);
    for (example, by) in examples.iter().zip(&waits_for) {
        nothing_precedes(&audit, example, by.iter().map(|what| &released[what.as_str()]));
    }
}

/// Whether this was done by hand: not by the operator, a controller, or whoever plays the nodes.
fn is_by_hand(event: &Event) -> bool {
    event.is_write()
        && !event.is_by_operator()
        && !event.user.starts_with("system:")
        && !["pods", "nodes", "leases", "events"].contains(&event.resource.as_str())
}

/// No ResourceDependency of an example wrote anything before the last thing that it is released by.
fn nothing_precedes<'e>(audit: &Audit, example: &Path, released: impl Iterator<Item = &'e Event>) {
    let Some(last) = released.max_by(|one, other| one.received.cmp(&other.received)) else { return };
    for (kind, namespace, name) in ours(example) {
        // Groups act one after another, as they are released.
        if kind == "ResourceDependency" {
            for write in audit.writes_for(&kind, &namespace, &name) {
                assert!(last.received < write.received, "{}: {write:?} precedes {last:?}", example.display());
            }
        }
    }
}

fn kubestellar() -> PathBuf {
    examples().join("kubestellar")
}

fn world_of_its_own() -> World {
    World::start(
        &ClusterOptions { kwok: Some(1), ..ClusterOptions::default() },
        &["--allow-loopback-clusters"],
    )
}

#[test]
fn the_examples_as_printed_wait_and_end() {
    let world = world_of_its_own();
    let [printed, _, _] = sets();
    play(&Stage::of(&world), &printed);
    let object = world.api.get("ResourceDependency", "kubeflex-system", "kubeflex-bootstrap").unwrap();
    let message = object["status"]["message"].as_str().unwrap();
    assert!(
        message.ends_with("spec.actions[1].patch.patch: what closes nothing at its end is left out"),
        "{message}"
    );
}

#[test]
fn the_real_examples_wait_and_end() {
    let [_, real, _] = sets();
    play(&Stage::of(&world_of_its_own()), &real);
}

#[test]
fn the_catalogue_of_waits_waits_and_ends() {
    let [_, _, waits] = sets();
    play(&Stage::of(&world_of_its_own()), &waits);
}

/// Opens the shop of the quickstart, one release after another.
pub(crate) fn open_the_shop(stage: &Stage<'_>) {
    let folder = examples().join("quickstart");
    for file in ["rbac.yaml", "shop.yaml"] {
        apply(stage.cluster, &folder.join(file));
    }
    let shop = ("DependencyGroup".to_owned(), "shop".to_owned(), "shop".to_owned());
    for release in in_folder(&folder.join("release")) {
        assert!(!is_done(stage.api, &shop), "before {}", release.display());
        apply(stage.cluster, &release);
    }
    all_are_done(stage.api, &[folder.join("shop.yaml")]);
}

#[test]
fn the_shop_opens_step_by_step() {
    let world = world_of_its_own();
    open_the_shop(&Stage::of(&world));
    let audit = Audit::from_the_beginning(&world.cluster.audit_log());
    let made = ["db-config", "schema", "storefront", "shop-open"]
        .map(|name| audit.first_write("configmaps", "shop", name));
    for pair in made.windows(2) {
        assert_before(&pair[0], &pair[1]);
    }
    assert_eq!(audit.overreach(), []);
}
