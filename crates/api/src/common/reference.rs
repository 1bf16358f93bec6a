//! Objects named field by field.

use linchpin_words::{KindWord, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its API version, such as `apps/v1`; found by discovery if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub api_version: Option<String>,
    /// Its kind.
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// Its namespace; the object's own if omitted, ignored for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub namespace: Option<String>,
}

impl Target {
    /// The kind as a word for discovery.
    pub fn kind_word(&self) -> KindWord {
        KindWord::from_manifest(self.api_version.as_deref(), &self.kind)
    }
}

/// One object, or with a selector a kind of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KindRef {
    /// API version, such as `apps/v1`; found by discovery if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub api_version: Option<String>,
    /// Kind.
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub kind: String,
    /// Name; omitted with a selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: Option<String>,
    /// Namespace; may be given here or beside the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub namespace: Option<String>,
}

impl KindRef {
    /// The kind as a word for discovery.
    pub fn kind_word(&self) -> KindWord {
        KindWord::from_manifest(self.api_version.as_deref(), &self.kind)
    }
}
