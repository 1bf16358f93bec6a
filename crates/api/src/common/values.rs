//! Where values for templates come from.

use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// An object of the same namespace whose keys become values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("has(self.configMapRef) != has(self.secretRef)", "give exactly one of configMapRef and secretRef"),
])))]
pub struct ValuesFrom {
    /// A ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ValuesSource>,
    /// A Secret. Its values go into what is applied and nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<ValuesSource>,
}

/// A ConfigMap or Secret by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesSource {
    /// Its name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// Whether to go on without it; otherwise actions wait for it.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub optional: bool,
}
