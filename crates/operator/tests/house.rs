//! The directions of dependency that keep the deciding crates pure.
//!
//! Read from the manifests themselves. A new crate must be given its place in the table here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Who depends on whom, besides tests.
const ALLOWED: &[(&str, &[&str])] = &[
    ("words", &[]),
    ("lang", &["words"]),
    ("engine", &["words", "lang"]),
    ("api", &["words"]),
    ("doors", &["words", "lang", "engine", "api"]),
    ("view", &["words", "engine"]),
    ("probe", &["words"]),
    ("wait", &["probe"]),
    ("cluster", &["words", "engine"]),
    ("source", &["words"]),
    ("consist", &["words", "api"]),
    ("adapters", &["words", "consist", "source"]),
    ("operator", &["words", "engine", "api", "doors", "probe", "cluster", "source", "consist"]),
    ("local", &[]),
    ("bench", &["words", "lang", "api", "doors", "local"]),
    ("testkit", &["doors", "operator"]),
    (
        "cli",
        &[
            "words", "lang", "engine", "api", "doors", "view", "source", "cluster", "consist", "adapters",
            "operator", "local",
        ],
    ),
];

/// The crates that decide.
const PURE: &[&str] = &["words", "lang", "engine", "api", "doors", "view", "consist"];

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
        let needs: BTreeSet<&str> = needs.iter().filter_map(|need| need.strip_prefix("linchpin-")).collect();
        for need in &needs {
            assert!(allowed.contains(need), "{name} must not depend on {need}");
        }
        for allowed in *allowed {
            assert!(
                needs.contains(allowed),
                "{name} does not depend on {allowed}: the table must not allow it"
            );
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

/// The Rust sources below a folder, each with its text.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                sources(&path)
            } else {
                let text = fs::read_to_string(&path).unwrap();
                vec![(path, text)]
            }
        })
        .collect()
}

/// What a text takes from the engine: the first name after `linchpin_engine::`.
fn taken_from_engine(text: &str) -> Vec<&str> {
    text.split("linchpin_engine")
        .skip(1)
        .map(|rest| rest.split([':', ';', ' ', ',', ')', '>']).find(|name| !name.is_empty()).unwrap_or(""))
        .collect()
}

/// The rim carries out what the engine orders and answers what it asks; plans, journals and steps are none of its business.
#[test]
fn cluster_knows_only_the_contract_of_the_engine() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cluster/src");
    let mut uses = 0;
    for (path, text) in sources(&folder) {
        for taken in taken_from_engine(&text) {
            assert_eq!(taken, "contract", "{}: cluster may use engine::contract alone", path.display());
            uses += 1;
        }
    }
    assert!(uses > 20, "the sources are not read any more: {uses}");
}

#[test]
fn what_is_taken_from_the_engine_is_found_however_it_is_written() {
    let text = "use linchpin_engine::contract::Want;\nuse linchpin_engine::{journal, step};\nlinchpin_engine::plan::Plan";
    assert_eq!(taken_from_engine(text), ["contract", "{journal", "plan"]);
}

/// Whether a text has a name in it, and not only a longer one that holds it.
fn mentions(text: &str, name: &str) -> bool {
    let inner = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = text.as_bytes();
    text.match_indices(name).any(|(start, _)| {
        !inner(start.checked_sub(1).and_then(|before| bytes.get(before)))
            && !inner(bytes.get(start + name.len()))
    })
}

/// What the pages of limits and reasons publish, the program has: each is used by some crate besides the one that names it.
#[test]
fn every_limit_and_reason_that_is_published_is_used() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let found = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path());
    let others = found.filter(|path| !path.ends_with("words") && path.join("src").is_dir());
    let is_test =
        |path: &Path| path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"));
    let texts: Vec<String> = others
        .flat_map(|path| sources(&path.join("src")))
        .filter(|(path, _)| !is_test(path))
        .map(|(_, text)| text)
        .chain(sources(&crates.join("words/src")).into_iter().filter_map(|(path, text)| {
            (!path.ends_with("limits.rs") && !path.ends_with("reason.rs")).then_some(text)
        }))
        .collect();
    assert!(texts.len() > 300, "the sources are not read any more: {}", texts.len());
    let limits = linchpin_words::limits::TABLE.iter().map(|(name, ..)| (*name).to_owned());
    // What a newer version wrote is read as this one.
    let reasons =
        linchpin_words::Reason::ALL.iter().filter(|reason| **reason != linchpin_words::Reason::Unrecognised);
    let reasons = reasons.map(|reason| format!("Reason::{}", reason.as_str()));
    let unused: Vec<String> =
        limits.chain(reasons).filter(|name| !texts.iter().any(|text| mentions(text, name))).collect();
    assert!(unused.is_empty(), "published and used by nothing: {}", unused.join(", "));
}

#[test]
fn a_name_is_found_where_it_stands_for_itself() {
    assert!(mentions("limits::CHAIN)", "CHAIN") && mentions("CHAIN", "CHAIN"));
    assert!(!mentions("MAX_CHAIN CHAINS", "CHAIN"));
}

#[test]
fn a_manifest_is_read_as_cargo_reads_it() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\nlinchpin-words.workspace = true\ntokio = { version = \"1\" }\n\
                    # kube = \"5\"\n[target.'cfg(unix)'.dependencies]\nnix = \"1\"\n[dev-dependencies]\nkube = \"5\"\n";
    let expected: BTreeSet<_> = ["linchpin-words", "tokio", "nix"].map(str::to_owned).into();
    assert_eq!(names(manifest), expected);
}

/// The attack table names a test for each attack: the test must be there.
#[test]
fn every_test_that_the_attack_table_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let named: Vec<(&str, &str)> = page
        .split('`')
        .filter_map(|text| text.split_once(".rs::").filter(|_| text.starts_with("crates/")))
        .collect();
    assert!(named.len() > 30, "the table is not read any more: {named:?}");
    for (file, test) in named {
        let source = fs::read_to_string(root.join(format!("{file}.rs"))).unwrap_or_default();
        assert!(source.contains(&format!("fn {test}(")), "docs/security.md: there is no {file}.rs::{test}");
    }
    let table = page.split("## Attacks").nth(1).unwrap_or_default();
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| attack |")) {
        assert!(row.contains(".rs::"), "docs/security.md: an attack without a test: {row}");
    }
}
