//! PodTransitionRule: which pods of a namespace may pass the checks of PodOpsLifecycle, and when.
//!
//! The kind of KusionStack, with its group, names and fields, so that its manifests apply unchanged. What we do not serve
//! (`webhook`, growth functions) is refused when it is written.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::{Timestamp, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{schema, status};

/// The most rules of one object.
const RULES: usize = 64;

/// Which pods may pass the checks before and after an operation.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "apps.kusionstack.io",
    version = "v1alpha1",
    kind = "PodTransitionRule",
    plural = "podtransitionrules",
    singular = "podtransitionrule",
    shortname = "ptr",
    category = "linchpin",
    namespaced,
    status = "PodTransitionRuleStatus",
    doc = "Which pods may pass the checks before and after an operation.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Targets", type_ = "string", json_path = ".status.targets"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
pub struct PodTransitionRuleSpec {
    /// The pods, in the rule's own namespace.
    #[schemars(schema_with = "selector")]
    pub selector: LabelTest,
    /// What is asked of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = RULES),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub rules: Vec<TransitionRule>,
}

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("!has(self.webhook)", "webhook is not served: use availablePolicy or labelCheck"),
])))]
pub struct TransitionRule {
    /// Its name.
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub name: String,
    /// Whether it is asked at all.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub disabled: bool,
    /// PreCheck, which is meant where none is given, or PostCheck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "stage")]
    pub stage: Option<String>,
    /// The types of operations that it is about; all, where none is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = RULES),
        inner(length(max = limits::LABEL)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub conditions: Vec<String>,
    /// Which of the selected pods it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<RuleFilter>,
    /// How many pods may be unavailable at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_policy: Option<AvailablePolicy>,
    /// Labels that a pod must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_check: Option<LabelCheck>,
    /// A question to a server of somebody's: not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub webhook: Option<Value>,
}

/// Which of the selected pods a rule is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleFilter {
    /// Those with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector")]
    pub label_selector: Option<LabelTest>,
}

/// How many pods may be unavailable at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("!has(self.maxUnavailablePolicy) && !has(self.minAvailablePolicy)",
     "growth functions (expFunc) are not served: give maxUnavailableValue or minAvailableValue"),
])))]
pub struct AvailablePolicy {
    /// The most that may be unavailable: a number, or a share such as 25%, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amount")]
    pub max_unavailable_value: Option<Value>,
    /// The least that must be available: a number, or a share such as 75%, rounded down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amount")]
    pub min_available_value: Option<Value>,
    /// A growth function: not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub max_unavailable_policy: Option<Value>,
    /// A growth function: not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub min_available_policy: Option<Value>,
}

/// Labels that a pod must have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelCheck {
    /// The labels.
    #[schemars(schema_with = "selector")]
    pub requires: LabelTest,
}

/// A label selector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelTest {
    /// Labels with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Tests on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelExpression>,
}

/// A test on a label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelExpression {
    /// The label.
    pub key: String,
    /// In, NotIn, Exists or DoesNotExist.
    pub operator: String,
    /// The values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// What a rule object says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodTransitionRuleStatus {
    /// The generation that this is about; -1 until it has been looked at.
    #[serde(default = "status::never_observed")]
    pub observed_generation: i64,
    /// When this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub update_time: Option<Timestamp>,
    /// The pods that are selected, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// What is said of the pods that are in a check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<TransitionDetail>,
}

impl Default for PodTransitionRuleStatus {
    fn default() -> Self {
        Self {
            observed_generation: status::never_observed(),
            update_time: None,
            targets: Vec::new(),
            details: Vec::new(),
        }
    }
}

/// What is said of one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransitionDetail {
    /// The pod.
    pub name: String,
    /// The check that it is in.
    pub stage: String,
    /// Whether it passed.
    pub passed: bool,
    /// Rules that it passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_rules: Vec<String>,
    /// Rules that it did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reject_info: Vec<RejectInfo>,
}

/// Why a pod did not pass a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectInfo {
    /// The rule.
    pub rule_name: String,
    /// Why.
    pub reason: String,
}

fn amount(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 0,
        "maxLength": 10,
        "pattern": "^[0-9]+%?$"
    })
}

fn stage(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": ["PreCheck", "PostCheck"]})
}

fn selector(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": "Labels with these values.",
                "additionalProperties": {"type": "string", "maxLength": limits::LABEL}
            },
            "matchExpressions": {
                "type": "array",
                "description": "Tests on labels.",
                "maxItems": RULES,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {"type": "string", "maxLength": limits::NAME, "description": "The label."},
                        "operator": {
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                            "description": "What is asked of it."
                        },
                        "values": {
                            "type": "array",
                            "description": "The values.",
                            "maxItems": RULES,
                            "x-kubernetes-list-type": "atomic",
                            "items": {"type": "string", "maxLength": limits::LABEL}
                        }
                    }
                }
            }
        }
    })
}

/// The definition for the API server.
pub fn definition() -> CustomResourceDefinition {
    schema::finish(PodTransitionRule::crd(), |_| ())
}
