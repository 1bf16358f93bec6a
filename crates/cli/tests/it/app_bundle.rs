//! AppBundle on a real API server: order, drift, prune, deletion, trouble; judged from the audit log.
//!
//! Defects of the original are numbered P1 to P28; the test that shows one mended bears its number.

mod crashes;
mod drift;
pub(crate) mod examples;
mod history;
mod order;
mod porch;
mod random;
mod removal;
mod trouble;

use linchpin_testkit::{Scenario, audit::Event};
use serde_json::Value;
use std::fmt::Write as _;

/// A component that is a ConfigMap.
fn map(name: &str, more: &str) -> String {
    format!(
        "{{name: {name}, template: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, \
         data: {{value: one}}}}{more}}}"
    )
}

/// A component that is a Deployment of so many replicas.
fn workload(name: &str, replicas: usize, more: &str) -> String {
    format!(
        "{{name: {name}, template: {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}}}, \
         spec: {{replicas: {replicas}, selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: \
         {{app: {name}}}}}, spec: {{containers: [{{name: c, image: none}}]}}}}}}}}{more}}}"
    )
}

/// Groups of ConfigMaps, one after another.
fn maps(groups: &[&[&str]]) -> String {
    let mut text = "{groups: [".to_owned();
    for (index, names) in groups.iter().enumerate() {
        let components: Vec<String> = names.iter().map(|name| map(name, "")).collect();
        write!(text, "{{name: g{index}, components: [{}]}}, ", components.join(", ")).unwrap();
    }
    text.push_str("]}");
    text
}

/// What the operator wrote for users to ConfigMaps, in order.
fn written(scenario: &Scenario) -> Vec<Event> {
    let writes = scenario.audit.user_writes(&scenario.namespace);
    writes.into_iter().filter(|event| event.resource == "configmaps").collect()
}

/// The names in a list of writes of one verb.
fn names<'e>(writes: &'e [Event], verb: &str) -> Vec<&'e str> {
    writes.iter().filter(|event| event.verb == verb).map(|event| event.name.as_str()).collect()
}

/// The entry of a component in a status.
#[track_caller]
fn component<'a>(object: &'a Value, group: &str, name: &str) -> &'a Value {
    let named = |list: &'a Value, name: &str| {
        list.as_array().and_then(|all| all.iter().find(|one| one["name"] == name)).unwrap_or(&Value::Null)
    };
    named(&named(&object["status"]["groupStatuses"], group)["componentStatuses"], name)
}
