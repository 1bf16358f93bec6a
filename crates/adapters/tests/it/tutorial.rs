//! The tutorial's adapter in Python, asked as the controller asks. docs/consist-tutorial.md shows the files as they are.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use linchpin_consist::Call;
use serde_json::json;

use crate::stage::{Stage, adapter, of, pod, unready};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The adapter as a process, ended with the test.
struct Python {
    child: Child,
    url: String,
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(directory: &Path) -> Option<Python> {
    let file = root().join("examples/consist/directory.py");
    let mut command = Command::new("python3");
    command.arg(file).arg(directory).arg("0").stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(child) = command.spawn() else {
        // Not through the print macros: a skipped test must be seen also when it passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: the tutorial in Python: there is no python3");
        return None;
    };
    let mut python = Python { child, url: String::new() };
    let mut line = String::new();
    BufReader::new(python.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim().rsplit(' ').next().unwrap().clone_into(&mut python.url);
    Some(python)
}

#[tokio::test]
async fn the_controller_in_python_keeps_a_directory_as_the_pods_are() {
    let directory = tempfile::tempdir().unwrap();
    let Some(python) = start(directory.path()) else { return };
    let port = adapter(json!({"adapter": "remote", "adapterUrl": python.url})).await;
    assert_eq!(port.controller_name(), "directory-controller");
    let mut stage = Stage::new(vec![pod("web-1", "10.0.0.7"), unready(pod("web-2", "10.0.0.8"))]);
    let answer = stage.settle(&*port).await;
    assert!(of(&answer, "web-1").same && of(&answer, "web-1").ready == Some(true));
    let files = || {
        let entries = fs::read_dir(directory.path().join("shop/web")).unwrap();
        let mut files: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        files
    };
    assert_eq!(files(), ["web-1"]);
    assert_eq!(fs::read_to_string(directory.path().join("shop/web/web-1")).unwrap(), "10.0.0.7");
    // Drift: changed, and too much.
    fs::write(directory.path().join("shop/web/web-1"), "10.9.9.9").unwrap();
    fs::write(directory.path().join("shop/web/stray"), "").unwrap();
    stage.pods[1] = pod("web-2", "10.0.0.8");
    stage.settle(&*port).await;
    assert_eq!(files(), ["web-1", "web-2"]);
    // A directory with pods in it is not removed yet, and the adapter says so.
    stage.leaving = true;
    let looked = stage.look(&*port).await.unwrap();
    let made = stage.act(&*port, &looked).await.unwrap();
    assert_eq!(made[0].0, Call::DeleteEmployer);
    assert_eq!(made[0].1.pending, [("web".to_owned(), "Directory not empty".to_owned())]);
    stage.settle(&*port).await;
    assert!(!directory.path().join("shop/web").exists(), "nothing remains");
}

#[test]
fn the_tutorial_shows_the_controllers_as_they_are_and_the_first_is_short() {
    let page = fs::read_to_string(root().join("docs/consist-tutorial.md")).unwrap();
    let rust = fs::read_to_string(root().join("crates/operator/examples/directory.rs")).unwrap();
    let python = fs::read_to_string(root().join("examples/consist/directory.py")).unwrap();
    assert!(page.contains(&format!("```rust\n{rust}```")), "the page has another controller in Rust");
    assert!(page.contains(&format!("```python\n{python}```")), "the page has another controller in Python");
    let counts = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines = rust.lines().filter(counts).count();
    assert!(lines <= 100, "{lines} lines without blank and comment lines");
}
