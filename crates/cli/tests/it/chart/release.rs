//! How a release is made, as far as that can be seen without making one.

use std::fs;

use serde_json::Value;

use super::root;

/// The scripts of the workflow that makes a release.
fn scripts() -> Vec<String> {
    let workflow = fs::read_to_string(root().join(".github/workflows/release.yaml")).unwrap();
    let workflow: Value = serde_saphyr::from_str(&workflow).unwrap();
    let jobs = workflow["jobs"].as_object().unwrap().values();
    let steps = jobs.flat_map(|job| job["steps"].as_array().unwrap());
    steps.filter_map(|step| step["run"].as_str()).map(str::to_owned).collect()
}

/// The time of the commit stands where the time of the run would: in the image's own fields and in its layers.
#[test]
fn the_images_of_a_release_are_the_same_whenever_they_are_built() {
    let scripts = scripts();
    let script = scripts.iter().find(|script| script.contains("docker buildx build")).unwrap();
    let time = script.find("SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)").expect("the time of the commit");
    assert!(
        script.contains("export SOURCE_DATE_EPOCH") && time < script.find("docker buildx build").unwrap()
    );
    assert!(script.contains("rewrite-timestamp=true"), "{script}");
}
