//! Greeting: says something in a ConfigMap once somebody is there to read it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt as _;
use kube_derive::CustomResource;
use linchpin_api::{Common, CommonStatus, OurStatus, Ours};
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
    /// What every kind says.
    #[serde(flatten)]
    pub(crate) common: CommonStatus,
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
    fn common(&self) -> &CommonStatus {
        &self.common
    }

    fn common_mut(&mut self) -> &mut CommonStatus {
        &mut self.common
    }
}
