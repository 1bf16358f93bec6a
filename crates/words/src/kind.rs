//! Names of kinds and of objects.
//!
//! [`Gvk`] says which kind at which version, [`GroupKind`] which kind whatever the version, [`ObjectRef`] which
//! object. They are plain values: resolving a word such as `deploy` to a kind is discovery's work, in the rim.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits;

/// A kind at one version: `apps/v1, Deployment`. The core group is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gvk {
    /// API group; empty for the core group.
    pub group: String,
    /// API version inside the group.
    pub version: String,
    /// Kind in singular CamelCase.
    pub kind: String,
}

impl Gvk {
    /// A kind from its three parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// A kind from a manifest's `apiVersion` (`v1`, `apps/v1`) and `kind`.
    pub fn from_api_version(api_version: &str, kind: impl Into<String>) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// The API group of a manifest's `apiVersion`.
    pub fn group_of(api_version: &str) -> &str {
        api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The manifest's `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// What is wrong with its parts, if no API server can serve such a kind.
    pub fn problem(&self) -> Option<&'static str> {
        group_problem(&self.group)
            .or_else(|| version_problem(&self.version))
            .or_else(|| word_problem(&self.kind))
    }

    /// The same kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }
}

/// What is wrong with an API group; the core group is empty.
pub fn group_problem(group: &str) -> Option<&'static str> {
    let good = group.is_empty() || group.len() <= limits::GROUP_NAME && group.split('.').all(is_part);
    (!good).then_some(
        "its API group is no DNS name: lower-case letters, digits, '-' and '.', 253 characters at most",
    )
}

/// What is wrong with an API version.
pub fn version_problem(version: &str) -> Option<&'static str> {
    (!is_label(version)).then_some(
        "its API version is no DNS label: lower-case letters, digits and '-', 63 characters at most",
    )
}

/// What is wrong with a kind, plural or short name.
pub fn word_problem(word: &str) -> Option<&'static str> {
    (!is_label(&word.to_ascii_lowercase()))
        .then_some("its kind is no word of letters, digits and '-' of 63 characters at most")
}

/// Whether a text is a DNS-1123 label.
fn is_label(text: &str) -> bool {
    text.len() <= limits::LABEL && is_part(text)
}

/// Whether a text is a part of a DNS name, of any length.
fn is_part(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}

/// A kind, whatever its version: what identity is compared by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind in singular CamelCase.
    pub kind: String,
}

impl GroupKind {
    /// A kind from group and kind.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

/// One object, by kind and name. Shown as people write it: `Deployment shop/web`, `Namespace shop`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// What it is.
    #[serde(flatten)]
    pub kind: GroupKind,
    /// Its namespace; none for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectRef {
    /// A reference to a namespaced object.
    pub fn namespaced(kind: GroupKind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind, namespace: Some(namespace.into()), name: name.into() }
    }

    /// A reference to a cluster-scoped object.
    pub fn cluster_scoped(kind: GroupKind, name: impl Into<String>) -> Self {
        Self { kind, namespace: None, name: name.into() }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {}/{}", self.kind.kind, namespace, self.name),
            None => write!(f, "{} {}", self.kind.kind, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_no_server_can_serve_is_told_from_one_that_may_be() {
        for (group, version, kind) in [
            ("", "v1", "Pod"),
            ("apps", "v1", "Deployment"),
            ("rbac.authorization.k8s.io", "v1beta1", "ClusterRole"),
            ("a.b", "2024-01-01", "X-y"),
        ] {
            assert_eq!(Gvk::new(group, version, kind).problem(), None, "{group} {version} {kind}");
        }
        for (group, version, kind) in [
            ("..", "v1", "X"),
            ("a/b", "v1", "X"),
            ("Apps", "v1", "X"),
            ("apps", "", "X"),
            ("apps", "v1/..", "X"),
            ("apps", "v1", ""),
            ("apps", "v1", "Pod?watch=true"),
            ("apps", "v1", "../secrets"),
        ] {
            assert!(Gvk::new(group, version, kind).problem().is_some(), "{group} {version} {kind}");
        }
    }

    #[test]
    fn the_parts_of_a_kind_have_a_length() {
        let group = |length: usize| vec!["a"; length.div_ceil(2)].join(".");
        assert_eq!(group_problem(&group(limits::GROUP_NAME)), None);
        assert!(group_problem(&group(limits::GROUP_NAME + 2)).is_some());
        assert!(group_problem(&group(limits::GROUP_NAME * 100)).is_some());
        for problem in [version_problem, word_problem] {
            assert_eq!(problem(&"a".repeat(limits::LABEL)), None);
            assert!(problem(&"a".repeat(limits::LABEL + 1)).is_some());
            assert!(problem(&"a".repeat(limits::LABEL * 100)).is_some());
        }
    }
}
