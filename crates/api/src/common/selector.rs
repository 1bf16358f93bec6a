//! Several objects by their labels, and how many of them there must be.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// Objects by their labels, as everywhere in Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must have these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = limits::MATCH_LABELS))]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements on labels; all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::MATCH_LABELS), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<LabelRequirement>,
}

impl LabelSelector {
    /// Whether labels match; an empty selector matches all.
    pub fn matches(&self, label: &dyn Fn(&str) -> Option<String>) -> bool {
        let exact = self.match_labels.iter().all(|(key, value)| label(key).as_ref() == Some(value));
        exact && self.match_expressions.iter().all(|one| one.matches(label(&one.key).as_ref()))
    }

    /// Each requirement as a request writes it; none where it matches all.
    pub fn requirements(&self) -> Vec<String> {
        let exact = self.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
        exact.chain(self.match_expressions.iter().map(LabelRequirement::text)).collect()
    }
}

impl LabelRequirement {
    fn matches(&self, found: Option<&String>) -> bool {
        let among = found.is_some_and(|found| self.values.contains(found));
        match self.operator {
            SelectorOperator::In => among,
            SelectorOperator::NotIn => !among,
            SelectorOperator::Exists => found.is_some(),
            SelectorOperator::DoesNotExist => found.is_none(),
        }
    }

    fn text(&self) -> String {
        let key = &self.key;
        let values: BTreeSet<&str> = self.values.iter().map(String::as_str).collect();
        let values = values.into_iter().collect::<Vec<_>>().join(",");
        match self.operator {
            SelectorOperator::In => format!("{key} in ({values})"),
            SelectorOperator::NotIn => format!("{key} notin ({values})"),
            SelectorOperator::Exists => key.clone(),
            SelectorOperator::DoesNotExist => format!("!{key}"),
        }
    }
}

/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[(
    "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
    "In and NotIn need values, Exists and DoesNotExist take none",
)])))]
pub struct LabelRequirement {
    /// The label's key.
    #[schemars(length(min = 1, max = limits::NAME + 1 + limits::LABEL))]
    pub key: String,
    /// How the label is compared with the values.
    pub operator: SelectorOperator,
    /// The values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::MATCH_VALUES),
        inner(length(max = limits::LABEL)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SelectorOperator {
    /// Its value is one of these.
    In,
    /// It is missing or its value is none of these.
    NotIn,
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
}

/// How many of the selected objects must be in the required state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("(has(self.atLeast) ? 1 : 0) + (has(self.exactly) ? 1 : 0) + (has(self.all) ? 1 : 0) == 1",
     "give exactly one of atLeast, exactly and all"),
    ("!has(self.all) || self.all", "all can only be true; leave it out otherwise"),
])))]
pub struct Expect {
    /// At least so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::SELECTED))]
    pub at_least: Option<i32>,
    /// Exactly so many, and no others that match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::SELECTED))]
    pub exactly: Option<i32>,
    /// All that match, and there must be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}
