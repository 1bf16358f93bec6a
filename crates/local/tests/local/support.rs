//! What the tests share: a cluster, kubectl with an opinion, and a search for anything a cluster left behind.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use linchpin_local::{Cluster, ClusterOptions};
use sha2::{Digest, Sha256};

/// A cluster for tests that leave it as it was. Nobody ends it: it dies with this process.
pub(crate) static SHARED: LazyLock<Cluster> =
    LazyLock::new(|| Cluster::start(&ClusterOptions::default()).unwrap());

/// Runs kubectl and returns what it printed; fails the test if it fails.
pub(crate) fn kubectl(cluster: &Cluster, arguments: &[&str]) -> String {
    succeed(&cluster.kubectl().args(arguments).output().unwrap(), arguments)
}

/// Gives kubectl a manifest on standard input.
pub(crate) fn kubectl_with(cluster: &Cluster, arguments: &[&str], input: &str) -> String {
    let mut command = cluster.kubectl();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    succeed(&child.wait_with_output().unwrap(), arguments)
}

fn succeed(output: &Output, arguments: &[&str]) -> String {
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "kubectl {arguments:?}: {said}{complained}");
    said
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Everything that still speaks of the cluster in `dir`: processes, mounts, control groups, the directory.
pub(crate) fn traces(dir: &Path) -> Vec<String> {
    let mut found: Vec<String> =
        processes(dir).iter().map(|(pid, what)| format!("process {pid}: {what}")).collect();
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let path = dir.display().to_string();
    found.extend(mounts.lines().filter(|line| line.contains(&path)).map(|line| format!("mount {line}")));
    let digest = Sha256::digest(path.as_bytes());
    let name = format!("linchpin-{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);
    let groups =
        fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().map(|entry| entry.path().join(&name));
    found.extend(
        groups.filter(|group| group.exists()).map(|group| format!("control group {}", group.display())),
    );
    if dir.exists() {
        found.push(format!("directory {path}"));
    }
    found
}

/// The live processes that were started for the cluster in `dir`, or speak of it on their command line.
pub(crate) fn processes(dir: &Path) -> Vec<(i32, String)> {
    let path = dir.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let read =
            |name: &str| text(&fs::read(entry.path().join(name)).unwrap_or_default()).replace('\0', " ");
        let (command, environment) = (read("cmdline"), read("environ"));
        // A test that is looked for by its own arguments would always find itself.
        if pid != std::process::id().cast_signed() && (command.contains(&path) || environment.contains(&path))
        {
            found.push((pid, command));
        }
    }
    found
}

/// Waits until nothing is left of a cluster; fails with what is.
pub(crate) fn assert_gone(dir: &Path, within: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < within && !traces(dir).is_empty() {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(traces(dir), Vec::<String>::new());
}

/// A path for a cluster's directory, which does not exist yet.
pub(crate) fn fresh_path() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::Builder::new().prefix("lt-").tempdir().unwrap();
    let path = fs::canonicalize(parent.path()).unwrap().join("c");
    (parent, path)
}

/// Kills as a stranger would, without a word to the cluster.
pub(crate) fn kill(pid: i32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}
