//! The first hour: what somebody new is told to run is run, on this machine and on a cluster of one's own.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use linchpin_local::Cluster;

use super::{blocks, pages, root};
use crate::{bare, operator::linchpin};

/// The commands under a heading of a page.
fn commands(page: &str, heading: &str) -> Vec<String> {
    let part = &page[page.find(heading).unwrap() + heading.len()..];
    let part = part.find("\n## ").map_or(part, |end| &part[..end]);
    blocks(part).iter().flat_map(|(_, _, body)| body.lines().map(str::to_owned)).collect()
}

/// Somebody who reads waits a moment before the next command.
fn patiently(script: &str) -> String {
    let look = "linchpin explain dg/shop/shop";
    let patient = format!(
        "for _ in $(seq 100); do {look} | grep -q 'Secret shop/db-credentials' && break; sleep 0.2; done; {look}"
    );
    let script = script.replace(look, &patient);
    let flags = "--metrics-bind-address=127.0.0.1:0 --health-probe-bind-address=127.0.0.1:0";
    script
        .replace("linchpin operator --log-level=warn", &format!("linchpin operator --log-level=warn {flags}"))
}

/// The answer of `explain` in what was printed.
#[track_caller]
fn explained(output: &Output) {
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{error}");
    let answer = text
        .lines()
        .find(|line| line.starts_with("DependencyGroup shop/shop waits for "))
        .unwrap_or_else(|| panic!("{text}\n{error}"));
    assert!(answer.contains("Secret shop/db-credentials: it does not exist, NotFound"), "{text}");
}

#[test]
fn on_a_cluster_of_ones_own_a_blocked_thing_is_explained_in_five_commands() {
    let cluster = Cluster::start(&bare()).expect("a local Kubernetes");
    let pages = pages();
    let all = commands(&pages[Path::new("docs/quickstart.md")], "## On a cluster of your own");
    // The program is built already, and the operator ends with the shell.
    assert!(all[0].starts_with("cargo build "));
    let script = format!("set -m\n{}\nkill %1\nwait", patiently(&all[1..].join("\n")));
    let programs = [PathBuf::from(linchpin().get_program()), PathBuf::from(cluster.kubectl().get_program())];
    let folders: Vec<String> =
        programs.iter().map(|program| program.parent().unwrap().display().to_string()).collect();
    let output = Command::new("bash")
        .args(["-ec", &script])
        .current_dir(root())
        .env("PATH", format!("{}:{}", folders.join(":"), env::var("PATH").unwrap()))
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("KUBECACHEDIR", cluster.dir().join("kubectl-cache"))
        .output()
        .unwrap();
    explained(&output);
}

#[test]
fn from_nothing_to_a_blocked_thing_explained_in_five_commands() {
    let page = &pages()[Path::new("docs/quickstart.md")];
    let all = blocks(page);
    for heading in ["## On this machine", "## On a cluster of your own", "## Installed in a cluster"] {
        let part = commands(page, heading);
        assert!(part.len() <= 5, "{part:#?}");
        assert!(part.last().unwrap().starts_with("linchpin explain "), "{part:#?}");
    }
    // Exactly as they are written, in one shell; the directory of the cluster is the test's own.
    let directory = tempfile::tempdir().unwrap();
    let script: Vec<&str> =
        all.iter().filter(|(mark, ..)| mark == "sh").map(|(_, _, body)| body.as_str()).collect();
    let mut script = script.join("\n");
    script = patiently(&script);
    script = script.replace("linchpin tree -n shop", "linchpin tree -n shop; kill %1");
    let program = PathBuf::from(linchpin().get_program());
    let path = format!("{}:{}", program.parent().unwrap().display(), env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-ec", &format!("set -m\n{script}")])
        .current_dir(root())
        .env("PATH", path)
        .env("XDG_STATE_HOME", directory.path())
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    explained(&output);
}

/// Who reads nothing but the README gets as far: the same commands stand there.
#[test]
fn the_readme_has_the_commands_of_the_quickstart_and_says_before_them_on_which_cluster() {
    let pages = pages();
    let five = |page: &str, heading: &str| commands(&pages[Path::new(page)], heading);
    let [here, own] = ["## On this machine", "## On a cluster of your own"]
        .map(|heading| five("docs/quickstart.md", heading));
    assert_eq!(five("README.md", "## Five commands"), [here, own].concat());
}
