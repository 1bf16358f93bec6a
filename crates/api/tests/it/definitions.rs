//! The definitions themselves: committed, bounded, without surprises.

use std::{env, fs, path::PathBuf};

use serde_json::{Value, json};

fn committed() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../charts/linchpin/files/crds")
}

#[test]
fn b28_the_committed_definitions_are_the_generated_ones() {
    let update = env::var_os("LINCHPIN_UPDATE").is_some();
    let mut names = Vec::new();
    for definition in linchpin_doors::registry().definitions() {
        let name = format!("{}.yaml", definition.metadata.name.clone().unwrap());
        let generated = linchpin_api::to_yaml(&definition).unwrap();
        let path = committed().join(&name);
        if update {
            fs::create_dir_all(committed()).unwrap();
            fs::write(&path, &generated).unwrap();
        }
        let stored = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            stored == generated,
            "{name} is out of date: run this test with LINCHPIN_UPDATE=1 and commit what it writes"
        );
        names.push(name);
    }
    let mut files: Vec<String> = fs::read_dir(committed())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, names, "no file is left over from a kind that is gone");
}

/// Calls `check` with the path and value of every schema below `schema`.
fn walk(path: &str, schema: &Value, check: &mut impl FnMut(&str, &Value)) {
    check(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), property, check);
    }
    for part in ["items", "additionalProperties"] {
        if schema[part].is_object() {
            walk(&format!("{path}[]"), &schema[part], check);
        }
    }
}

fn schemas() -> Vec<(String, Value)> {
    linchpin_doors::registry()
        .definitions()
        .iter()
        .map(|definition| serde_json::to_value(definition).unwrap())
        .map(|crd| {
            let schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
            (crd["spec"]["names"]["kind"].as_str().unwrap().to_owned(), schema)
        })
        .collect()
}

#[test]
fn everything_in_a_spec_is_bounded_and_described() {
    let mut seen = 0;
    for (kind, schema) in schemas() {
        walk(&kind, &schema["properties"]["spec"], &mut |path, field| {
            seen += 1;
            // The one default in a spec of ours: its document has it.
            let documented = path == "BootDependency.dependsOn[].timeout" && field["default"] == "60s";
            assert!(
                (field["default"].is_null() || documented) && field["nullable"].is_null(),
                "{path}: defaults change what the user wrote"
            );
            match field["type"].as_str() {
                Some("array") => {
                    assert!(field["maxItems"].is_u64(), "{path} has no maxItems");
                    assert!(field["x-kubernetes-list-type"].is_string(), "{path} does not say how it merges");
                }
                Some("string") if !path.ends_with("matchLabels[]") => {
                    assert!(
                        field["maxLength"].is_u64() || field["enum"].is_array(),
                        "{path} has no maxLength"
                    );
                }
                _ => (),
            }
            assert!(path.ends_with("[]") || field["description"].is_string(), "{path} has no description");
        });
    }
    assert!(seen > 300, "the walk must reach the fields: {seen}");
}

#[test]
fn a_fresh_status_never_looks_ready() {
    for (kind, schema) in schemas().into_iter().filter(|(kind, _)| kind != "BundleRevision") {
        assert_eq!(schema["properties"]["status"]["default"], json!({"observedGeneration": -1}), "{kind}");
    }
}

#[test]
fn a_journal_is_never_pruned() {
    for (kind, schema) in schemas().into_iter().filter(|(kind, schema)| {
        kind != "ConsistBinding" && !schema["properties"]["status"]["properties"]["phase"].is_null()
    }) {
        let journal = &schema["properties"]["status"]["properties"]["journal"];
        assert_eq!(journal["x-kubernetes-preserve-unknown-fields"], json!(true), "{kind}");
    }
}

/// What `kubectl get` shows beside the name, without `-o wide`.
#[test]
fn kubectl_shows_these_columns_in_this_order() {
    const FIRST_DOORS: &[&str] = &["Ready", "Phase", "Age", "Message"];
    let expected = [
        ("AppBundle", FIRST_DOORS),
        ("BootDependency", &["Ready", "Resolved", "Age"]),
        ("BundleRevision", &["Bundle", "Revision", "Result", "Changes", "Age"]),
        ("Capability", &["Ready", "Version", "Age", "Message"]),
        ("ConsistBinding", &["Adapter", "Employer", "Attached", "Ready", "Message", "Age"]),
        ("DependencyGroup", FIRST_DOORS),
        ("GlobalDependency", &["Ready", "Phase", "Held", "Age", "Message"]),
        ("PodTransitionRule", &["Targets", "Age"]),
        ("ReadinessProfile", &["Kind", "Ready", "Age", "Message"]),
        ("ResourceDependency", FIRST_DOORS),
        ("Sync", &["Phase", "Ready", "Revision", "Message", "Age"]),
    ];
    let mut shown: Vec<(String, Vec<String>)> = linchpin_doors::registry()
        .definitions()
        .into_iter()
        .map(|definition| {
            let columns = definition.spec.versions[0].additional_printer_columns.clone().unwrap_or_default();
            let columns = columns.into_iter().filter(|column| column.priority.unwrap_or_default() == 0);
            (definition.spec.names.kind, columns.map(|column| column.name).collect())
        })
        .collect();
    shown.sort();
    let expected = expected.map(|(kind, names)| {
        (kind.to_owned(), names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    });
    assert_eq!(shown, expected);
}
