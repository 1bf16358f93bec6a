//! What an action reads, known before it runs.
//!
//! Doors collect the static reads of an action's templates here. From the result the hub knows what to keep of each
//! object, the engine when to run the action again, and people which action uses which dependency.

use std::collections::BTreeMap;

use linchpin_lang::{cel::Expression, template::StaticReads};

use super::{Plan, Requirement};
use crate::contract::{ReadPath, ReadSet, StepId};

/// By which names templates read what a plan waits for: a door may call it otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roots(pub &'static [&'static str]);

impl Roots {
    /// Whether a name is one of them.
    pub fn contain(self, name: &str) -> bool {
        self.0.contains(&name)
    }
}

impl Default for Roots {
    fn default() -> Self {
        Self(&["Dependencies"])
    }
}

impl Plan {
    /// The dependencies that an expression reads, with their positions.
    pub(crate) fn dependencies_of(&self, expression: &Expression) -> Vec<(usize, &Requirement)> {
        let Some(reads) = expression.reads().get("dependencies") else { return Vec::new() };
        let named = |requirement: &Requirement| {
            let first = |path: &Vec<String>| path.first().is_some_and(|key| requirement.keys.contains(key));
            reads.whole || reads.paths.iter().any(first)
        };
        let all = self.steps().iter().enumerate();
        all.filter_map(|(position, step)| Some((position, step.requirement()?)))
            .filter(|(_, requirement)| named(requirement))
            .collect()
    }
}

/// The reads of one action, while they are being collected.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// What is read of which dependency; none once it cannot be known any more.
    pub dependencies: Option<BTreeMap<StepId, ReadSet>>,
    /// Whether `.Values` is read.
    pub values: bool,
    /// The top-level keys of `.Values` that are read, where they are known.
    pub value_keys: Option<Vec<String>>,
    /// Whether `.Now` is read.
    pub now: bool,
}

impl Readings {
    /// Reads nothing yet.
    pub fn new() -> Self {
        Self { dependencies: Some(BTreeMap::new()), values: false, value_keys: Some(Vec::new()), now: false }
    }

    /// Adds what a template reads. `keys` says which dependencies a key under one of the roots may mean.
    pub fn add(&mut self, reads: &StaticReads, roots: Roots, keys: &BTreeMap<String, Vec<StepId>>) {
        if reads.dynamic {
            self.everything();
        }
        for path in &reads.paths {
            let segments = path.segments();
            match segments.first().map(String::as_str) {
                Some("Now") => self.now = true,
                Some("Values") => self.read_value(segments.get(1)),
                Some(root) if roots.contain(root) => self.read_dependency(&segments[1..], keys),
                Some(_) => {}
                None => self.everything(),
            }
        }
    }

    fn everything(&mut self) {
        self.dependencies = None;
        self.values = true;
        self.value_keys = None;
        self.now = true;
    }

    fn read_value(&mut self, key: Option<&String>) {
        self.values = true;
        match (key, &mut self.value_keys) {
            (Some(key), Some(keys)) => {
                if !keys.contains(key) {
                    keys.push(key.clone());
                    keys.sort();
                }
            }
            (None, keys) => *keys = None,
            (Some(_), None) => {}
        }
    }

    fn read_dependency(&mut self, below: &[String], keys: &BTreeMap<String, Vec<StepId>>) {
        let Some(dependencies) = &mut self.dependencies else {
            return;
        };
        let Some((key, rest)) = below.split_first() else {
            self.dependencies = None;
            return;
        };
        for step in keys.get(key).into_iter().flatten() {
            let reads = dependencies.entry(step.clone()).or_default();
            if let Some(path) = object_path(rest) {
                reads.add(path);
            }
        }
    }
}

/// The path in the object that a path under `.Dependencies.<key>` reads; none where it reads no part of the object.
fn object_path(below: &[String]) -> Option<ReadPath> {
    let (first, rest) = below.split_first()?;
    let mut path: ReadPath = match first.as_str() {
        "Spec" | "spec" => vec!["spec".to_owned()],
        "Status" | "status" => vec!["status".to_owned()],
        "Labels" | "labels" => vec!["metadata".to_owned(), "labels".to_owned()],
        "Annotations" | "annotations" => vec!["metadata".to_owned(), "annotations".to_owned()],
        "Object" | "object" => Vec::new(),
        // `.Items` of a selector: each has the same parts, and which are read is not followed through the list.
        "Items" | "items" => return Some(ReadPath::new()),
        _ => return None,
    };
    path.extend(rest.iter().cloned());
    Some(path)
}

#[cfg(test)]
mod tests {
    use linchpin_lang::template::Template;

    use super::*;

    fn readings(source: &str) -> Readings {
        let keys = BTreeMap::from([("db".to_owned(), vec![StepId::new("db")])]);
        let mut readings = Readings::new();
        readings.add(&Template::parse("t", source).expect("a template").reads(), Roots::default(), &keys);
        readings
    }

    #[test]
    fn a_field_of_a_status_is_all_that_is_read() {
        let readings = readings("{{ .Dependencies.db.Status.Endpoint }} {{ .Now }}");
        let expected = BTreeMap::from([(StepId::new("db"), ReadSet::dotted(["status.Endpoint"]))]);
        assert_eq!(readings.dependencies, Some(expected));
        assert!(readings.now && !readings.values);
    }

    #[test]
    fn name_and_state_read_the_dependency_but_nothing_of_the_object() {
        let readings = readings("{{ .Dependencies.db.Name }}{{ .Values.a.b }}");
        assert_eq!(readings.dependencies, Some(BTreeMap::from([(StepId::new("db"), ReadSet::nothing())])));
        assert_eq!(readings.value_keys, Some(vec!["a".to_owned()]));
    }

    #[test]
    fn what_cannot_be_known_reads_everything() {
        let readings = readings("{{ toJson . }}");
        assert!(readings.dependencies.is_none() && readings.values && readings.now);
    }
}
