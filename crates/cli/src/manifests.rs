//! `linchpin manifests`: everything that an installation is, for `kubectl apply --server-side -f -`.
//!
//! What is printed is what real Helm renders from the chart's defaults (`packaging/install.yaml`, compared by a test), with
//! the definitions of our kinds and the namespace in front. The flags change parsed documents, never text.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use linchpin_doors::Registry;
use linchpin_lang::template::parse_documents;
use linchpin_operator::rights::NAMESPACE;
use serde_json::{Value, json};

use crate::asked::namespace;

/// The objects of the chart but for the definitions, as Helm renders them.
const INSTALL: &str = include_str!("../../../packaging/install.yaml");

/// Print everything that an installation is, for kubectl apply --server-side -f -.
#[derive(Debug, Args)]
pub(crate) struct ManifestsCommand {
    /// The namespace of the operator.
    #[arg(short, long, default_value = NAMESPACE, value_parser = namespace)]
    namespace: String,
    /// The operator's image [default: that of the release].
    #[arg(long)]
    image: Option<String>,
    /// Leave out the definitions of our kinds: to take an installation away and keep its objects, say.
    #[arg(long)]
    no_crds: bool,
}

/// Prints them.
pub(crate) fn run(command: &ManifestsCommand, kinds: &Registry) -> Result<ExitCode> {
    let definitions = if command.no_crds { Vec::new() } else { kinds.definitions() };
    for document in documents(&command.namespace, command.image.as_deref(), &definitions)? {
        let yaml = serde_saphyr::to_string(&document).context("writing a manifest as YAML")?;
        print!("---\n{yaml}");
    }
    Ok(ExitCode::SUCCESS)
}

/// All of them with these definitions, in the order in which they can be applied.
pub(crate) fn documents(
    namespace: &str,
    image: Option<&str>,
    definitions: &[CustomResourceDefinition],
) -> Result<Vec<Value>> {
    let mut all: Vec<Value> = definitions.iter().map(|definition| json!(definition)).collect();
    let levels = ["enforce", "audit", "warn"]
        .map(|mode| (format!("pod-security.kubernetes.io/{mode}"), Value::from("restricted")));
    all.push(json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": Value::Object(levels.into_iter().collect())}}));
    let rendered = parse_documents("install.yaml", INSTALL)
        .map_err(|error| anyhow!("install.yaml cannot be read: {}", error.message()))?;
    for mut document in rendered.into_iter().filter(|document| !document.is_null()) {
        rename(&mut document, namespace);
        if let Some(image) = image.filter(|_| document["kind"] == "Deployment") {
            document["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        }
        all.push(document);
    }
    Ok(all)
}

/// Puts another namespace where the default one is: in metadata, in subjects, in lists of namespaces, in the operator's user
/// name and in the name of the webhooks' Service.
fn rename(value: &mut Value, namespace: &str) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if key == "namespace" && value == NAMESPACE {
                    *value = json!(namespace);
                } else {
                    rename(value, namespace);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, namespace)),
        Value::String(text) => {
            if text == NAMESPACE {
                namespace.clone_into(text);
            }
            for (before, after) in [("system:serviceaccount:", ":"), ("--webhook-service=", "/")] {
                let old = format!("{before}{NAMESPACE}{after}");
                if text.contains(&old) {
                    *text = text.replace(&old, &format!("{before}{namespace}{after}"));
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_namespace_and_image_are_put_everywhere_they_belong() {
        let all = documents("elsewhere", Some("registry.example/l:2"), &[]).unwrap();
        let text = json!(all).to_string();
        assert!(!text.contains("linchpin-system"), "{text}");
        assert!(text.contains("system:serviceaccount:elsewhere:linchpin"), "the policy names the operator");
        assert!(all.iter().all(|one| one["kind"] != "CustomResourceDefinition"));
        let deployment = all.iter().find(|one| one["kind"] == "Deployment").unwrap();
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "registry.example/l:2");
    }
}
