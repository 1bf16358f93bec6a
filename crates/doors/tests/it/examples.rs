//! The examples that we ship are understood; those that are broken on purpose are told so.

use std::{
    fs,
    path::{Path, PathBuf},
};

use linchpin_doors::{
    AppBundleDoor, CapabilityDoor, DependencyGroupDoor, GlobalDependencyDoor, ResourceDependencyDoor,
    SyncDoor,
};
use linchpin_engine::plan::SpecError;
use serde_json::Value;

use crate::stage::{compile, read};

fn manifests(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            manifests(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "yaml") {
            found.push(entry);
        }
    }
}

/// Compiles a manifest of ours; none where it is of another kind.
fn compiled(manifest: &Value) -> Option<Result<(), SpecError>> {
    let text = manifest.to_string();
    match (manifest["apiVersion"].as_str()?, manifest["kind"].as_str()?) {
        ("tools.kubestellar.io/v1", "ResourceDependency") => {
            Some(compile::<ResourceDependencyDoor>(&read(&text)).map(|_| ()))
        }
        ("tools.kubestellar.io/v1", "DependencyGroup") => {
            Some(compile::<DependencyGroupDoor>(&read(&text)).map(|_| ()))
        }
        ("app.example.com/v1alpha1", "AppBundle") => Some(compile::<AppBundleDoor>(&read(&text)).map(|_| ())),
        ("linchpin.dev/v1alpha1", "Sync") => Some(compile::<SyncDoor>(&read(&text)).map(|_| ())),
        ("linchpin.dev/v1alpha1", "Capability") => Some(compile::<CapabilityDoor>(&read(&text)).map(|_| ())),
        ("linchpin.dev/v1alpha1", "GlobalDependency") => {
            Some(compile::<GlobalDependencyDoor>(&read(&text)).map(|_| ()))
        }
        _ => None,
    }
}

#[test]
fn every_example_compiles_and_every_broken_one_names_its_field() {
    let mut files = Vec::new();
    manifests(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"), &mut files);
    let mut count = 0;
    for file in files {
        let broken = file.components().any(|part| part.as_os_str() == "broken");
        let text = fs::read_to_string(&file).expect("a text");
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
        for result in documents.iter().filter_map(compiled) {
            count += 1;
            match result {
                Ok(()) => assert!(!broken, "{} is not broken", file.display()),
                // Its first look is still to be taken: nothing is wrong with it.
                Err(error) if error.unready => assert!(!broken, "{error}"),
                Err(error) if broken => assert!(error.field.to_string().starts_with("spec."), "{error}"),
                Err(error) => panic!("{}: {error}", file.display()),
            }
        }
    }
    assert!(count >= 20, "only {count} examples were found");
}
