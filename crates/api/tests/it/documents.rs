//! Manifests that must stay readable for ever.

use linchpin_api::{
    AppBundle, BootDependency, BundleRevision, DependencyGroup, ReadinessProfile, ResourceDependency,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The manifests of the documents, as printed there; the bundle is its table, written out.
pub(crate) const DOCUMENT: [(&str, &str); 9] = [
    ("bootstrap", include_str!("manifests/bootstrap.yaml")),
    ("kubeflex-bootstrap", include_str!("manifests/kubeflex-bootstrap.yaml")),
    ("wds-prerequisites", include_str!("manifests/wds-prerequisites.yaml")),
    ("postgres-setup", include_str!("manifests/postgres-setup.yaml")),
    ("its-wds-binding", include_str!("manifests/its-wds-binding.yaml")),
    ("prereq-check", include_str!("manifests/prereq-check.yaml")),
    ("full-deployment", include_str!("manifests/full-deployment.yaml")),
    ("three-tier", include_str!("manifests/three-tier.yaml")),
    ("payments-api", include_str!("manifests/payments-api.yaml")),
];

/// Every field of every kind.
pub(crate) const EVERY_FIELD: &str = include_str!("manifests/every-field.yaml");

/// Reads a manifest into its type and checks that writing it again loses and invents nothing.
fn survives<T: Serialize + DeserializeOwned>(manifest: &Value) {
    let object: T = serde_json::from_value(manifest.clone()).unwrap();
    let mut written = serde_json::to_value(&object).unwrap();
    if let Some(fields) = written.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    assert_eq!(&written, manifest);
}

fn survives_as_its_kind(manifest: &Value) {
    match manifest["kind"].as_str().unwrap() {
        "ResourceDependency" => survives::<ResourceDependency>(manifest),
        "DependencyGroup" => survives::<DependencyGroup>(manifest),
        "AppBundle" => survives::<AppBundle>(manifest),
        "BootDependency" => survives::<BootDependency>(manifest),
        "BundleRevision" => survives::<BundleRevision>(manifest),
        "ReadinessProfile" => survives::<ReadinessProfile>(manifest),
        other => panic!("a manifest of an unknown kind {other}"),
    }
}

#[test]
fn the_documents_manifests_are_understood_without_loss() {
    for (name, manifest) in DOCUMENT {
        eprintln!("{name}");
        survives_as_its_kind(&serde_saphyr::from_str(manifest).unwrap());
    }
}

#[test]
fn every_field_is_understood_without_loss() {
    let manifests: Vec<Value> = serde_saphyr::from_multiple(EVERY_FIELD).unwrap();
    assert_eq!(manifests.len(), 6);
    manifests.iter().for_each(survives_as_its_kind);
}

#[test]
fn an_empty_depends_on_is_not_a_missing_one() {
    let read = |text| serde_json::from_str::<linchpin_api::Component>(text).unwrap().depends_on;
    assert_eq!(read(r#"{"name": "a"}"#), None);
    assert_eq!(read(r#"{"name": "a", "dependsOn": []}"#), Some(vec![]));
}

#[test]
fn an_empty_after_is_not_a_missing_one() {
    let read = |text| serde_json::from_str::<linchpin_api::Action>(text).unwrap().after;
    assert_eq!(read(r#"{"type": "wait", "wait": "1s"}"#), None);
    assert_eq!(read(r#"{"type": "wait", "wait": "1s", "after": []}"#), Some(vec![]));
}
