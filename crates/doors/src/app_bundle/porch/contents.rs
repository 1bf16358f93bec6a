//! What a package contains: the objects that somebody will create of it. Pure.
//!
//! Files that are no YAML, what is marked as local to the package, and the words of kpt itself are left out.

use std::collections::BTreeSet;

use linchpin_engine::plan::Obstacle;
use linchpin_lang::template::parse_documents;
use linchpin_words::{Gvk, Reason, limits};
use serde_json::Value;

/// Groups whose kinds are about packages, and nothing that is created.
const ABOUT_PACKAGES: [&str; 3] = ["kpt.dev", "fn.kpt.dev", "config.kubernetes.io"];
/// What is in a package for its functions alone.
const LOCAL: &str = "/metadata/annotations/config.kubernetes.io~1local-config";

/// An object in a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::app_bundle) struct Contained {
    pub gvk: Gvk,
    /// Its namespace, if it names one.
    pub namespace: Option<String>,
    pub name: String,
    /// The file it is in.
    pub file: String,
}

/// The objects in the files of a package, in order of their files.
pub(super) fn objects(files: Option<&Value>) -> Result<Vec<Contained>, Obstacle> {
    let mut found: Vec<Contained> = Vec::new();
    let mut seen = BTreeSet::new();
    let is_yaml = |file: &str| [".yaml", ".yml"].iter().any(|end| file.ends_with(end));
    for (file, text) in files.and_then(Value::as_object).into_iter().flatten() {
        let Some(text) = text.as_str().filter(|_| is_yaml(file)) else { continue };
        let documents = parse_documents(file, text).map_err(|error| Obstacle {
            reason: Reason::Invalid,
            message: format!("the package cannot be read: {error}"),
        })?;
        for object in documents.iter().filter_map(|document| object(document, file)) {
            if seen.insert((object.gvk.group_kind(), object.namespace.clone(), object.name.clone())) {
                found.push(object);
            }
        }
    }
    if found.len() > limits::RENDERED_OBJECTS {
        let message = format!(
            "there are {} objects in the package; {} can be waited for",
            found.len(),
            limits::RENDERED_OBJECTS
        );
        return Err(Obstacle { reason: Reason::TooLarge, message });
    }
    Ok(found)
}

/// The object that a document is; none where it is none that will be created.
fn object(document: &Value, file: &str) -> Option<Contained> {
    let text = |path: &str| document.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
    let gvk = Gvk::from_api_version(text("/apiVersion")?, text("/kind")?);
    let local = text(LOCAL) == Some("true") || ABOUT_PACKAGES.contains(&gvk.group.as_str());
    (!local).then_some(Contained {
        gvk,
        namespace: text("/metadata/namespace").map(str::to_owned),
        name: text("/metadata/name")?.to_owned(),
        file: file.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_will_be_created_is_found_and_what_is_about_the_package_is_not() {
        let files = json!({
            "Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: web}",
            "README.md": "kind: no",
            "package-context.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: kptfile.kpt.dev,
                annotations: {config.kubernetes.io/local-config: 'true'}}}",
            "fn.yaml": "{apiVersion: fn.kpt.dev/v1alpha1, kind: SetLabels, metadata: {name: x}}",
            "web/all.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}}",
        });
        let found = objects(Some(&files)).expect("objects");
        let names: Vec<String> =
            found.iter().map(|one| format!("{} {:?} {}", one.gvk.kind, one.namespace, one.file)).collect();
        assert_eq!(names, ["Deployment Some(\"shop\") web/all.yaml", "Service None web/all.yaml"]);
    }

    #[test]
    fn a_file_that_is_no_yaml_is_named() {
        let held = objects(Some(&json!({"bad.yaml": "a: ["}))).expect_err("not YAML");
        assert_eq!(held.reason, Reason::Invalid);
        assert!(held.message.starts_with("the package cannot be read: bad.yaml:"), "{}", held.message);
    }

    #[test]
    fn a_package_with_too_many_objects_is_told_so() {
        use std::fmt::Write as _;
        let text = |count: usize| {
            (0..count).fold(String::new(), |mut text, index| {
                write!(text, "---\n{{apiVersion: v1, kind: Secret, metadata: {{name: s{index}}}}}\n")
                    .unwrap();
                text
            })
        };
        let read = |count| objects(Some(&json!({"all.yaml": text(count)})));
        assert_eq!(read(limits::RENDERED_OBJECTS).expect("as many").len(), limits::RENDERED_OBJECTS);
        assert_eq!(read(limits::RENDERED_OBJECTS + 1).expect_err("one more").reason, Reason::TooLarge);
    }
}
