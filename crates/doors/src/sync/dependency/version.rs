//! The versions that a dependency must have, and where an object says its own.

use std::sync::Arc;

use linchpin_api::SyncDependency;
use linchpin_engine::plan::{Obstacle, SpecError};
use linchpin_lang::{compare::FieldCondition, jsonpath::JsonPath};
use linchpin_words::{Reason, keys};
use serde_json::Value;

use crate::{errors::at, sync::range::Range};

/// A version outside of the range that is needed.
pub(in crate::sync) fn version_obstacle(
    what: &str,
    range: Option<&Range>,
    version: Option<&str>,
) -> Option<Obstacle> {
    let range = range?;
    let needs = range.as_str();
    let (reason, message) = match version.map(|version| (version, range.contains(version))) {
        Some((_, Some(true))) => return None,
        Some((version, Some(false))) => {
            (Reason::VersionNotMet, format!("{what} is at {version}, needs {needs}"))
        }
        Some((version, None)) => {
            (Reason::VersionUnknown, format!("{what} is at {version}, which cannot be compared with {needs}"))
        }
        None => (Reason::VersionUnknown, format!("{what} says no version, needs {needs}")),
    };
    Some(Obstacle { reason, message })
}

pub(super) fn version_path(entry: &SyncDependency, field: &str) -> Result<Option<JsonPath>, SpecError> {
    let place = format!("{field}.versionPath");
    let path = entry.version_path.as_ref().map(|path| JsonPath::compile(&place, path));
    path.transpose().map_err(|error| at(place, error.problem()))
}

/// The same as conditions on each of several objects.
pub(super) fn range_conditions(
    entry: &SyncDependency,
    range: &Range,
    field: &str,
) -> Result<Vec<Arc<FieldCondition>>, SpecError> {
    let label = || format!(".metadata.labels['{}']", keys::APP_VERSION.replace('.', "\\."));
    let path = entry.version_path.clone().unwrap_or_else(label);
    let condition = |(operator, version): (&str, &str)| {
        FieldCondition::compile(field, &path, Some(operator), Some(&Value::from(version))).map(Arc::new)
    };
    let compiled: Result<_, _> = range.comparisons().map(condition).collect();
    compiled.map_err(|error| at(format!("{field}.version"), error.to_string()))
}

/// The version that an object says it has.
pub(super) fn version_of(path: Option<&JsonPath>, content: &Value) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match path {
        Some(path) => path.find(content).ok()?.first().copied().and_then(text),
        None => content
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(keys::APP_VERSION))
            .and_then(text),
    }
}
