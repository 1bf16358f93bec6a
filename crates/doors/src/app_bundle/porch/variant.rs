//! The PackageVariant of a component: what it is called and what it says.

use linchpin_api::app_bundle::component::PorchPackageRef;
use linchpin_words::{Gvk, hash::sha256_hex, limits};
use serde_json::{Map, Value, json};

use super::{CONFIG, revision::UpstreamChoice};
use crate::{
    apply::{Marks, as_json},
    owner::Owner,
};

/// What Nephio's approval controller reads: the first revision is approved by itself.
const APPROVAL: (&str, &str) = ("approval.nephio.org/policy", "initial");
/// How much of the hash is in a name.
const DIGITS: usize = 10;

/// The kind of variants.
pub(super) fn kind() -> Gvk {
    Gvk::new(CONFIG, "v1alpha1", "PackageVariant")
}

/// What a variant is made from.
pub(super) struct Variant<'v> {
    pub owner: &'v Owner,
    /// The component it is of, as `group/component`.
    pub path: &'v str,
    pub marks: &'v Marks,
    pub namespace: &'v str,
    pub reference: &'v PorchPackageRef,
    /// The Repository it goes to.
    pub downstream: &'v str,
    /// Whether what it made stays when it goes.
    pub kept: bool,
}

impl Variant<'_> {
    /// Its name, which is that of the downstream package too: `appbundle-<package>` and a hash of the bundle's
    /// namespace and name, of group and component, and of the package with its Repository. No other component of any
    /// bundle has it, and another package is another variant. It is the value of labels, so it is short enough for one.
    pub(super) fn name(&self) -> String {
        let parts = json!([
            self.owner.namespace,
            self.owner.name,
            self.path,
            self.reference.repository,
            self.reference.package_name,
        ]);
        let hash = &sha256_hex(parts.to_string().as_bytes())[..DIGITS];
        let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let room = limits::LABEL - "appbundle--".len() - DIGITS;
        let package: String =
            self.reference.package_name.chars().map(letter).take(room).collect::<String>().to_lowercase();
        match package.trim_matches('-') {
            "" => format!("appbundle-{hash}"),
            package => format!("appbundle-{package}-{hash}"),
        }
    }

    /// The object that is applied, but for the marks that every object of a bundle gets.
    pub(super) fn body(&self, choice: &UpstreamChoice) -> Value {
        let mut upstream = choice.fields();
        upstream.insert("repo".to_owned(), json!(self.reference.repository));
        upstream.insert("package".to_owned(), json!(self.reference.package_name));
        let name = self.name();
        let labels: Map<String, Value> = as_json(&self.marks.labels).collect();
        let mut annotations: Map<String, Value> = as_json(&self.marks.annotations).collect();
        annotations.insert(APPROVAL.0.to_owned(), json!(APPROVAL.1));
        json!({
            "apiVersion": kind().api_version(),
            "kind": kind().kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "upstream": upstream,
                "downstream": {"repo": self.downstream, "package": name},
                "annotations": annotations,
                "labels": labels,
                "adoptionPolicy": "adoptExisting",
                "deletionPolicy": if self.kept { "orphan" } else { "delete" },
            },
        })
    }
}
