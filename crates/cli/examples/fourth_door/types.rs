//! Greeting: says something in a ConfigMap once somebody is there to read it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt as _;
use kube_derive::CustomResource;
use linchpin_api::{Common, Journal, OurStatus, Ours, status::Blocker};
use linchpin_words::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Says something in a ConfigMap once somebody is there to read it.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "fourth.example",
    version = "v1",
    kind = "Greeting",
    plural = "greetings",
    shortname = "greet",
    namespaced,
    status = "GreetingStatus",
    crates(kube_core = "::kube_core")
)]
pub(crate) struct GreetingSpec {
    /// What every kind has.
    #[serde(flatten)]
    pub(crate) common: Common,
    /// The ConfigMap that must be there first.
    pub(crate) reader: String,
    /// What is said, in ConfigMap `greeting-NAME`.
    pub(crate) text: String,
}

/// What a Greeting says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GreetingStatus {
    /// In one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<String>,
    /// In one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Ready.
    #[serde(default)]
    #[schemars(schema_with = "anything")]
    pub(crate) conditions: Vec<Condition>,
    /// What it waits for.
    #[serde(default)]
    #[schemars(schema_with = "anything")]
    pub(crate) blocked_by: Vec<Blocker>,
    /// What it waits for and makes, as tools read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edges: Option<String>,
    /// What the operator must remember.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub(crate) journal: Option<Journal>,
}

fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

impl Ours for Greeting {
    fn definitions() -> Vec<CustomResourceDefinition> {
        vec![Self::crd()]
    }

    fn common(&self) -> &Common {
        &self.spec.common
    }
}

impl OurStatus for GreetingStatus {
    fn phase(&self) -> Option<&str> {
        self.phase.as_deref()
    }

    fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    fn set_journal(&mut self, journal: Option<Journal>) {
        self.journal = journal;
    }

    fn edges(&self) -> Option<&str> {
        self.edges.as_deref()
    }

    fn blocked_by(&self) -> &[Blocker] {
        &self.blocked_by
    }
}
