//! Files of manifests: objects of ours, and definitions of kinds; everything else is left alone.

use std::{fmt, sync::Arc};

use anyhow::{Context, Result, anyhow, bail};
use linchpin_doors::{DoorKind, Registry, registry::ObjectView};
use linchpin_lang::template::parse_documents;
use serde_json::{Value, json};

/// An object of ours, and where it was found.
pub(super) struct OwnManifest {
    /// File, kind and name.
    pub(super) label: String,
    pub(super) object: Box<dyn ObjectView>,
    kind: Arc<dyn DoorKind>,
    document: Value,
}

impl OwnManifest {
    /// The same as if its source had nothing in it; none where it has no source.
    pub(super) fn without_source(&self) -> Option<Self> {
        let mut document = self.document.clone();
        let source = document.pointer_mut("/spec/source")?;
        *source = json!({"objects": []});
        document["spec"]["allowEmpty"] = json!(true);
        let object = self.kind.view(&document.to_string())?.ok()?;
        Some(Self { label: self.label.clone(), object, kind: Arc::clone(&self.kind), document })
    }
}

impl fmt::Display for OwnManifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// All that matters in the files.
#[derive(Default)]
pub(super) struct ManifestFiles {
    pub(super) ours: Vec<OwnManifest>,
    /// Definitions of kinds.
    pub(super) definitions: Vec<Value>,
    /// ConfigMaps and Secrets: sources may be among them.
    pub(super) kept: Vec<Value>,
    /// ServiceAccounts: namespace and name.
    pub(super) accounts: Vec<(String, String)>,
}

/// Takes in the texts of files.
pub(super) fn read(
    texts: &[(String, String)],
    namespace: &str,
    registry: &Registry,
) -> Result<ManifestFiles> {
    let mut found = ManifestFiles::default();
    for (label, text) in texts {
        take_in(&mut found, label, text, namespace, registry)?;
    }
    if found.ours.is_empty() {
        let kinds: Vec<String> = registry.waiting().map(|kind| kind.names().gvk.kind).collect();
        bail!("there is no {} in what was given with -f", either(&kinds));
    }
    Ok(found)
}

/// One of several words, as people say it.
fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn take_in(
    found: &mut ManifestFiles,
    label: &str,
    text: &str,
    namespace: &str,
    registry: &Registry,
) -> Result<()> {
    let documents = parse_documents(label, text).map_err(|error| {
        let (line, column) = error.position();
        anyhow!("{label}: at line {line} column {column}: {}", error.message())
    })?;
    // `kubectl get -o yaml` wraps several objects in a list.
    let mut open: Vec<Value> = documents.into_iter().rev().collect();
    while let Some(mut document) = open.pop() {
        if let Some(items) = document.get_mut("items").and_then(Value::as_array_mut) {
            open.extend(items.drain(..).rev());
            continue;
        }
        let text = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let label = format!("{label}: {kind} {name}");
        if (version.as_str(), kind.as_str()) == ("apiextensions.k8s.io/v1", "CustomResourceDefinition") {
            found.definitions.push(document);
            continue;
        }
        if (version.as_str(), kind.as_str()) == ("v1", "ServiceAccount") {
            let place = Some(text("/metadata/namespace")).filter(|it| !it.is_empty());
            found.accounts.push((place.unwrap_or_else(|| namespace.to_owned()), name));
            continue;
        }
        let document = tidied(document, namespace);
        if version == "v1" && ["ConfigMap", "Secret"].contains(&kind.as_str()) {
            found.kept.push(document);
            continue;
        }
        let Some(kind) = registry.of_manifest(&version, &kind).filter(|kind| kind.waits()) else { continue };
        if let Some(object) = kind.view(&document.to_string()) {
            let object = object.with_context(|| format!("{label}: it is not understood"))?;
            found.ours.push(OwnManifest { label, object, kind: Arc::clone(kind), document });
        }
    }
    Ok(())
}

/// Its status says nothing about its needs, and an older one may not even be readable.
fn tidied(mut document: Value, namespace: &str) -> Value {
    if let Some(fields) = document.as_object_mut() {
        fields.remove("status");
    }
    if document.pointer("/metadata/namespace").is_none()
        && let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>> {
        let mut found = ManifestFiles::default();
        take_in(&mut found, "f", text, "ns", &linchpin_doors::registry())?;
        Ok(found.ours.iter().map(ToString::to_string).collect())
    }

    const ONE: &str =
        "apiVersion: tools.kubestellar.io/v1\nkind: ResourceDependency\nmetadata: {name: a}\nspec: {}\n";

    #[test]
    fn objects_of_ours_are_found_among_others_and_in_lists() {
        let text = format!("---\n{ONE}---\nkind: Namespace\napiVersion: v1\n---\n");
        assert_eq!(names(&text).unwrap(), ["f: ResourceDependency a"]);
        let list = "{apiVersion: v1, kind: List, items: [
            {apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: b}, spec: {}, status: 7},
            {apiVersion: tools.kubestellar.io/v1, kind: DependencyGroup, metadata: {name: c}, spec: {groups: []}}]}";
        assert_eq!(names(list).unwrap(), ["f: ResourceDependency b", "f: DependencyGroup c"]);
    }

    #[test]
    fn a_text_that_is_no_yaml_says_where_it_is_not() {
        let error = names("a: b\nc: [").unwrap_err().to_string();
        assert!(error.starts_with("f: at line "), "{error}");
        let error = names(&ONE.replace("spec: {}", "spec: {dependencies: 3}")).unwrap_err().to_string();
        assert_eq!(error, "f: ResourceDependency a: it is not understood");
    }
}
