//! A duration as the user wrote it.

use std::borrow::Cow;

use linchpin_words::{Period, duration::DurationError};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::schema;

/// A length of time in Go's notation, such as `30s`, `5m` or `1m30s`; checked when it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationText(pub String);

impl DurationText {
    /// The length it says.
    pub fn period(&self) -> Result<Period, DurationError> {
        Period::parse(&self.0)
    }
}

impl From<&str> for DurationText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl JsonSchema for DurationText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema::duration()
    }
}
