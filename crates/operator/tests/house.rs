//! The directions of dependency that keep the deciding crates pure.
//!
//! Read from the manifests themselves. A new crate must be given its place in the table here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Who may depend on whom, besides tests.
const ALLOWED: &[(&str, &[&str])] = &[
    ("words", &[]),
    ("lang", &["words"]),
    ("engine", &["words", "lang"]),
    ("api", &["words", "engine"]),
    ("doors", &["words", "lang", "engine", "api"]),
    ("view", &["words", "engine"]),
    ("probe", &["words"]),
    ("wait", &["probe"]),
    ("cluster", &["words", "engine"]),
    ("consist", &["words", "engine", "api", "cluster"]),
    ("operator", &["words", "lang", "engine", "api", "doors", "view", "probe", "cluster", "consist"]),
    ("local", &[]),
    ("bench", &["words", "api", "local"]),
    ("testkit", &["words", "lang", "engine", "api", "doors", "cluster", "operator", "local"]),
    (
        "cli",
        &[
            "words", "lang", "engine", "api", "doors", "view", "probe", "cluster", "consist", "operator",
            "local",
        ],
    ),
];

/// The crates that decide.
const PURE: &[&str] = &["words", "lang", "engine", "api", "doors", "view"];

/// What must not be near a decision.
const WORLDLY: &[&str] = &[
    "kube",
    "kube-client",
    "kube-runtime",
    "tokio",
    "hyper",
    "hyper-util",
    "tower",
    "rustls",
    "tokio-rustls",
];

/// Names in the `[dependencies]` of each crate's manifest, by the crate's folder.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifests = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path());
    manifests
        .filter(|path| path.join("Cargo.toml").exists())
        .map(|path| {
            let text = fs::read_to_string(path.join("Cargo.toml")).unwrap();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), names(&text))
        })
        .collect()
}

fn names(manifest: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut names = BTreeSet::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            inside = section.starts_with("dependencies]") || section.contains(".dependencies]");
        } else if inside && line.starts_with(|first: char| first.is_ascii_lowercase()) {
            names.insert(line.split(['.', ' ', '=']).next().unwrap().to_owned());
        }
    }
    names
}

#[test]
fn crates_depend_only_in_the_allowed_direction() {
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    let found = dependencies();
    assert!(found.len() >= 10, "no manifests found: {found:?}");
    for (name, needs) in found {
        let Some(allowed) = allowed.get(name.as_str()) else { panic!("{name} has no place in the table") };
        for need in needs.iter().filter_map(|need| need.strip_prefix("linchpin-")) {
            assert!(allowed.contains(&need), "{name} must not depend on {need}");
        }
    }
}

#[test]
fn the_deciding_crates_know_no_client_and_no_runtime() {
    let found = dependencies();
    for name in PURE {
        let Some(needs) = found.get(*name) else { continue };
        for worldly in WORLDLY {
            assert!(!needs.contains(*worldly), "{name} must not depend on {worldly}");
        }
    }
}

#[test]
fn a_manifest_is_read_as_cargo_reads_it() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\nlinchpin-words.workspace = true\ntokio = { version = \"1\" }\n\
                    # kube = \"5\"\n[target.'cfg(unix)'.dependencies]\nnix = \"1\"\n[dev-dependencies]\nkube = \"5\"\n";
    let expected: BTreeSet<_> = ["linchpin-words", "tokio", "nix"].map(str::to_owned).into();
    assert_eq!(names(manifest), expected);
}
