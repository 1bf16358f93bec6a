//! Mistakes on the command line and in files: one clear line, the right exit code.

use crate::{eventually, operator::linchpin, seconds};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::process::Stdio;

/// A kubeconfig of a cluster that nobody serves.
const NOWHERE: &str = "{apiVersion: v1, kind: Config, current-context: a, users: [], \
    clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a}}]}";

/// Exit code and standard error.
fn fails(arguments: &[&str]) -> (i32, String) {
    let output = linchpin().args(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[track_caller]
fn one_line(text: &str, words: &str) {
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    assert!(text.contains(words), "{text:?} does not say {words:?}");
}

#[test]
fn a_mistaken_command_line_is_exit_code_2_and_one_line() {
    for (arguments, words) in [
        (&["operator", "--no-such-flag"][..], "unexpected argument '--no-such-flag'"),
        (&["operator", "--concurrency=0"], "--concurrency"),
        (&["operator", "--log-format=xml"], "xml"),
        (&["operator", "--log-level=a=b=c"], "no log level"),
        (&["operator", "--metrics-bind-address=8080"], "no address to listen on"),
        (&["operator", "--watch-namespaces=shop,Data"], "not the name of a namespace"),
        (&["operator", "--lease-duration=10s"], "renew deadline 10s must be shorter than lease duration 10s"),
        (&["operator", "--retry-period=soon"], "--retry-period"),
        (
            &["no-such-command"],
            "command line: unrecognized subcommand 'no-such-command' (see linchpin --help)",
        ),
        (
            &["manifests", "--foo"],
            "manifests: unexpected argument '--foo' found (see linchpin manifests --help)",
        ),
        (
            &["rbac", "--operator", "-o", "text"],
            "rbac: -o text is not for rbac with --operator (see linchpin rbac --help)",
        ),
        (&["local", "load"], "(see linchpin local load --help)"),
        (&["operator", "--probe-methods=get"], "\"get\" is not an HTTP method: expected upper-case letters"),
        (&["operator", "--cluster-domain="], "\"\" is not a host"),
        (&["operator", "--cluster-domain=a b"], "\"a b\" is not a host"),
        // What is always the command, however many colons the rest has.
        (
            &["explain", "rd/x", "-o", "yaml"],
            "linchpin: explain: invalid value 'yaml' for '--output <OUTPUT>' [",
        ),
        (
            &["rbac"],
            "linchpin: rbac: the following required arguments were not provided: --filename <FILE>...",
        ),
        (&["explain", "rd/a/b", "-n", "c"], "linchpin: explain: rd/a/b names namespace a, and -n names c"),
        (&["manifests", "-n", "Two Words"], "\"Two Words\" is not the name of a namespace"),
        (&["rbac", "--operator", "--tenant", "shop,Two"], "\"Two\" is not the name of a namespace"),
    ] {
        let (code, text) = fails(arguments);
        assert_eq!(code, 2, "{arguments:?}: {text}");
        one_line(&text, words);
    }
}

#[test]
fn a_command_that_was_left_out_is_reported_below_the_help() {
    for (arguments, line) in [
        (&[][..], "linchpin: command line: no command was given (see linchpin --help)"),
        (&["local"], "linchpin: local: no command was given (see linchpin local --help)"),
    ] {
        let (code, text) = fails(arguments);
        assert_eq!(code, 2, "{arguments:?}: {text}");
        assert!(text.contains("Commands:") && text.lines().last() == Some(line), "{text}");
    }
}

#[test]
fn a_mistake_in_the_environment_is_one_too() {
    let output = linchpin().arg("operator").env("LINCHPIN_CONCURRENCY", "many").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    one_line(&String::from_utf8(output.stderr).unwrap(), "--concurrency");
}

#[test]
fn an_unusable_kubeconfig_is_exit_code_1_and_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let broken = directory.path().join("broken");
    std::fs::write(&broken, "clusters: [\n  {").unwrap();
    for path in ["/nonexistent/kubeconfig", broken.to_str().unwrap()] {
        let (code, text) = fails(&["operator", "--log-level=error", "--kubeconfig", path]);
        assert_eq!(code, 1, "{text}");
        one_line(&text, path);
    }
}

#[test]
fn a_taken_port_is_exit_code_1_and_one_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    std::fs::write(&path, NOWHERE).unwrap();
    let health = format!("--health-probe-bind-address={address}");
    let (code, text) =
        fails(&["operator", "--log-level=error", "--kubeconfig", path.to_str().unwrap(), &health]);
    assert_eq!(code, 1, "{text}");
    one_line(&text, &format!("cannot listen on {address} for health"));
    assert!(text.contains("--health-probe-bind-address") && !text.contains("os error"), "{text}");
    let webhooks = [
        &format!("--webhook-bind-address={address}"),
        "--webhook-url=https://127.0.0.1:1",
        "--wait-image=w:1",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ];
    let (code, text) = fails(
        &[&["operator", "--log-level=off", "--kubeconfig", path.to_str().unwrap()], &webhooks[..]].concat(),
    );
    assert_eq!(code, 1, "{text}");
    one_line(&text, &format!("cannot listen on {address} for webhooks: the port is taken"));
    assert!(text.contains("--webhook-bind-address"), "{text}");
}

#[test]
fn the_definitions_and_the_version_are_printed() {
    let version = linchpin().arg("version").output().unwrap();
    assert!(version.status.success());
    assert!(String::from_utf8(version.stdout).unwrap().contains(env!("CARGO_PKG_VERSION")));
    let crds = linchpin().arg("crds").output().unwrap();
    assert!(crds.status.success());
    let text = String::from_utf8(crds.stdout).unwrap();
    assert!(text.contains("kind: CustomResourceDefinition"), "{text}");
}

/// Files are given to every command that needs no cluster in the same way.
#[test]
fn a_directory_gives_its_own_manifests_and_those_below_only_if_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let sync = |path: &str, name: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let manifest = format!(
            "{{apiVersion: linchpin.dev/v1alpha1, kind: Sync, metadata: {{name: {name}}}, spec: {{source: {{objects: []}}}}}}"
        );
        std::fs::write(path, manifest).unwrap();
    };
    sync("own.yaml", "own");
    sync("below/deeper.yml", "deeper");
    sync(".hidden/secret.yaml", "hidden");
    sync("other/other.json", "other");
    let path = |path: &str| directory.path().join(path).display().to_string();
    let plan = |arguments: &[&str]| {
        let output = linchpin().arg("plan").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(plan(&["-f", &path("")]), "layer 1: default/own\n");
    assert_eq!(plan(&["-R", "-f", &path("")]), "layer 1: default/deeper, default/other, default/own\n");
    let both = format!("{},{}", path("below"), path("other/other.json"));
    assert_eq!(plan(&["-f", &both]), "layer 1: default/deeper, default/other\n");
}

/// Whoever reads may have seen enough: that is no failure.
#[test]
fn a_closed_pipe_is_a_quiet_end() {
    for arguments in
        [&["crds"][..], &["manifests"], &["rbac", "--operator"], &["completion", "bash"], &["man"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = linchpin().args(arguments).stdout(writer).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), told.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_standard_error_that_nobody_reads_changes_no_exit_code() {
    for (arguments, code) in [
        (&["rbac", "-f", "/nonexistent"][..], 1),
        (&["explain", "rd"], 2),
        (&["no-such-command"], 2),
        (&["local"], 2),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = linchpin().args(arguments).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure_in_one_line() {
    for arguments in [&["crds"][..], &["rbac", "--operator"], &["completion", "bash"], &["man"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = linchpin().args(arguments).stdout(full).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
        one_line(&text, "linchpin: writing to standard output: No space left on device");
    }
}

/// What is in a file may have been written by anybody, and what is printed is applied, or read on a terminal.
#[test]
fn what_is_in_files_is_shown_and_never_obeyed() {
    let evil = "a\\n---\\nkind: Evil\\n\\u001b[31m";
    let fed = |arguments: &[&str], text: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let output = linchpin().args(arguments).arg("-f").arg(file.path()).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let manifest = format!(
        "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: \"{evil}\"}}, \
         spec: {{serviceAccountName: \"{evil}\", dependencies: [{{resource: configmap/x}}]}}}}"
    );
    let sync = format!(
        "{{apiVersion: linchpin.dev/v1alpha1, kind: Sync, metadata: {{name: \"{evil}\"}}, \
         spec: {{source: {{objects: []}}, dependencies: [{{name: x, sync: {{name: \"{evil}\"}}}}]}}}}"
    );
    for (command, text) in [("rbac", &manifest), ("plan", &sync)] {
        let printed = fed(&[command], text);
        assert!(printed.contains("Evil"), "{command}: {printed}");
        assert!(!printed.lines().any(|line| line.starts_with("kind: Evil")), "{command}: {printed}");
        assert!(!printed.contains('\u{1b}'), "{command}: {printed:?}");
    }
}

#[test]
fn ctrl_c_is_exit_code_130_for_whoever_waits_for_an_answer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    std::fs::write(&path, NOWHERE).unwrap();
    let mut child = linchpin()
        .args(["check", "--wait=5m", "--kubeconfig"])
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = child.id();
    eventually("it hears signals", seconds(30), || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
        caught.is_some_and(|mask| u64::from_str_radix(mask, 16).unwrap() & 0b10 != 0)
    });
    kill(Pid::from_raw(i32::try_from(id).unwrap()), Signal::SIGINT).unwrap();
    let mut code = None;
    eventually("it ends", seconds(30), || {
        code = child.try_wait().unwrap().map(|status| status.code());
        code.is_some()
    });
    assert_eq!(code, Some(Some(130)));
}
