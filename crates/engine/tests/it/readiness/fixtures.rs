//! Loads the fixtures: one file per row of the table.

use std::{collections::BTreeMap, fs, path::Path};

use linchpin_engine::readiness::{
    GENERIC, OURS, ReadinessOptions, ReadinessRow, Related, RelatedAnswer, RelatedQuery, RelatedSelect,
    State, Verdict, row, table,
};
use linchpin_words::{GroupKind, Gvk};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    object: Value,
    cases: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    case: String,
    #[serde(default)]
    with: Value,
    #[serde(default)]
    options: Extra,
    related: Option<Vec<Value>>,
    served: Option<Vec<String>>,
    expect: Expected,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Extra {
    min_replicas: Option<i64>,
    status_declared: Option<bool>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) state: String,
    pub(crate) reason: String,
    pub(crate) message: Option<String>,
}

/// What is known besides the object; none = nothing yet.
#[derive(Clone, Default)]
pub(crate) struct Known {
    pub(crate) objects: Option<Vec<Value>>,
    pub(crate) served: Option<Vec<String>>,
}

/// One object in one situation, and what is to be said of it.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) row: &'static str,
    pub(crate) name: String,
    pub(crate) kind: GroupKind,
    pub(crate) object: Value,
    pub(crate) known: Known,
    pub(crate) extra: Extra,
    pub(crate) expect: Expected,
}

impl Case {
    pub(crate) fn verdict(&self) -> Verdict {
        self.verdict_on(&self.object, &self.known)
    }

    pub(crate) fn verdict_on(&self, object: &Value, known: &Known) -> Verdict {
        let options = ReadinessOptions {
            min_replicas: self.extra.min_replicas,
            status_declared: self.extra.status_declared,
            profile: None,
        };
        self.rule().verdict(&self.kind, object, &options, known)
    }

    /// The rule that the case is judged by.
    pub(crate) fn rule(&self) -> &'static ReadinessRow {
        row(&self.kind, self.row == OURS.name)
    }

    /// Which column of the table the case shows.
    pub(crate) fn column(&self) -> &'static str {
        match (self.expect.state.as_str(), self.expect.reason.as_str()) {
            ("InProgress", "StaleGeneration") => "older generation",
            ("InProgress", _) => "in progress",
            ("Failed", _) => "failed",
            _ => "ready",
        }
    }
}

impl Related for Known {
    fn get(&self, need: &RelatedQuery) -> RelatedAnswer<'_> {
        match need {
            RelatedQuery::Served { gvk } => self.served.as_ref().map_or(RelatedAnswer::Unknown, |served| {
                RelatedAnswer::Served(served.contains(&gvk.to_string()))
            }),
            RelatedQuery::Objects { gvk, namespace, select } => {
                let Some(objects) = &self.objects else {
                    return RelatedAnswer::Unknown;
                };
                let found =
                    objects.iter().filter(|object| matches(object, gvk, namespace.as_deref(), select));
                match found.collect::<Vec<_>>() {
                    found if found.is_empty() => RelatedAnswer::Absent,
                    found => RelatedAnswer::Objects(found),
                }
            }
        }
    }
}

fn matches(object: &Value, gvk: &Gvk, namespace: Option<&str>, select: &RelatedSelect) -> bool {
    let metadata = &object["metadata"];
    object["kind"] == gvk.kind.as_str()
        && object["apiVersion"] == gvk.api_version()
        && metadata["namespace"].as_str() == namespace
        && match select {
            RelatedSelect::Name(name) => metadata["name"] == name.as_str(),
            RelatedSelect::Labels(labels) => {
                labels.iter().all(|(key, value)| metadata["labels"][key.as_str()] == value.as_str())
            }
        }
}

pub(crate) fn rows() -> impl Iterator<Item = &'static ReadinessRow> {
    table().chain([&GENERIC])
}

/// `ConfigMap, Secret and the like` → `configmap-secret-and-the-like`.
pub(crate) fn file_of(row: &ReadinessRow) -> String {
    let words =
        row.name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// Every case of every file, by row. A row without a file has no cases.
pub(crate) fn load() -> BTreeMap<&'static str, Vec<Case>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/readiness");
    let mut cases = BTreeMap::new();
    for row in rows() {
        let path = directory.join(file_of(row)).with_extension("yaml");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let documents = text.split("\n---\n").filter(|document| !document.trim().is_empty());
        let found = documents.flat_map(|document| {
            let document: Document = serde_saphyr::from_str(document)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            cases_of(row, document)
        });
        cases.insert(row.name, found.collect());
    }
    cases
}

fn cases_of(row: &'static ReadinessRow, document: Document) -> Vec<Case> {
    let api_version = document.object["apiVersion"].as_str().expect("an apiVersion");
    let kind =
        Gvk::from_api_version(api_version, document.object["kind"].as_str().expect("a kind")).group_kind();
    let case = |entry: Entry| {
        let mut object = document.object.clone();
        merge(&mut object, &entry.with);
        Case {
            row: row.name,
            name: format!("{kind}: {}", entry.case),
            kind: kind.clone(),
            object,
            known: Known { objects: entry.related, served: entry.served },
            extra: entry.options,
            expect: entry.expect,
        }
    };
    document.cases.into_iter().map(case).collect()
}

/// JSON merge patch, except that no patch at all changes nothing.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return };
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.as_object_mut().map(|target| target.remove(key));
            }
            Value::Object(_) if target[key.as_str()].is_object() => merge(&mut target[key.as_str()], value),
            _ => target[key.as_str()] = value.clone(),
        }
    }
}

pub(crate) fn state(word: &str) -> State {
    match word {
        "Ready" => State::Ready,
        "InProgress" => State::InProgress,
        "Completed" => State::Completed,
        "Failed" => State::Failed,
        other => panic!("no such state: {other}"),
    }
}
