//! Which parts of an object are read.
//!
//! Plans know statically what their conditions and templates read, so the hub keeps only that of each object
//! ([`ReadSet::project`]). Where it cannot be known, the whole object is kept, less `managedFields`.

use std::collections::BTreeSet;

use linchpin_lang::reads::Reads;
use serde_json::{Map, Value};

/// A path of field names from an object's root.
pub type Path = Vec<String>;

/// The paths that somebody reads of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadSet {
    whole: bool,
    paths: BTreeSet<Path>,
}

impl ReadSet {
    /// Nothing but what every record has: name, uid, generation, resourceVersion, deletion.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The whole object.
    pub fn whole() -> Self {
        Self { whole: true, paths: BTreeSet::new() }
    }

    /// These paths, written with dots.
    pub fn dotted<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.add(path.split('.').map(str::to_owned).collect());
        }
        set
    }

    /// Adds one path; the empty path means the whole object.
    pub fn add(&mut self, path: Path) {
        if path.is_empty() {
            self.whole = true;
        }
        if self.whole {
            self.paths.clear();
        } else {
            self.paths.insert(path);
        }
    }

    /// Adds all that `other` reads.
    pub fn merge(&mut self, other: &Self) {
        if other.whole {
            self.add(Path::new());
        }
        for path in &other.paths {
            self.add(path.clone());
        }
    }

    /// Whether the whole object is read.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The paths that are read; empty where the whole object is.
    pub fn paths(&self) -> impl Iterator<Item = &[String]> {
        self.paths.iter().map(Vec::as_slice)
    }

    /// The part of `object` that is read. A path that goes through a list keeps the list whole.
    pub fn project(&self, object: &Value) -> Value {
        if self.whole {
            return without_managed_fields(object);
        }
        let mut kept = Value::Object(Map::new());
        for path in &self.paths {
            copy(object, &mut kept, path);
        }
        kept
    }
}

impl From<&Reads> for ReadSet {
    fn from(reads: &Reads) -> Self {
        let mut set = if reads.whole { Self::whole() } else { Self::nothing() };
        for path in &reads.paths {
            set.add(path.clone());
        }
        set
    }
}

fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Copies what lies at `path`, walking down iteratively: paths may be as long as users like.
fn copy(mut from: &Value, mut to: &mut Value, path: &[String]) {
    for (depth, name) in path.iter().enumerate() {
        let (Some(source), Some(target)) = (from.as_object(), to.as_object_mut()) else {
            return;
        };
        let Some((key, value)) = find_field(source, name) else {
            return;
        };
        if key == "managedFields" && depth == 1 {
            return;
        }
        let last = depth + 1 == path.len() || !value.is_object();
        if last {
            target.insert(key.to_owned(), value.clone());
            return;
        }
        to = target.entry(key).or_insert_with(|| Value::Object(Map::new()));
        from = value;
    }
}

/// Looks a field up as templates written against Go structs expect: exact, then with its first letter lowered
/// (`.Status` finds `status`), then the only one that differs in case alone.
pub fn find_field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<(&'a str, &'a Value)> {
    if let Some((key, value)) = object.get_key_value(name) {
        return Some((key, value));
    }
    let mut letters = name.chars();
    if let Some(first) = letters.next() {
        let lowered: String = first.to_lowercase().chain(letters).collect();
        if let Some((key, value)) = object.get_key_value(&lowered) {
            return Some((key, value));
        }
    }
    let mut alike = object.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
    match (alike.next(), alike.next()) {
        (Some((key, value)), None) => Some((key, value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_read_is_kept() {
        let object = json!({"metadata": {"name": "a", "managedFields": [1]}, "status": {"endpoint": "x", "phase": "Running"}});
        let reads = ReadSet::dotted(["Status.Endpoint", "spec.missing"]);
        assert_eq!(reads.project(&object), json!({"status": {"endpoint": "x"}}));
    }

    #[test]
    fn the_whole_object_comes_without_managed_fields() {
        let object = json!({"metadata": {"name": "a", "managedFields": [1]}});
        assert_eq!(ReadSet::whole().project(&object), json!({"metadata": {"name": "a"}}));
        assert_eq!(ReadSet::dotted(["metadata.managedFields"]).project(&object), json!({"metadata": {}}));
    }

    #[test]
    fn overlapping_paths_keep_the_union() {
        let object = json!({"status": {"a": {"b": 1, "c": 2}, "d": 3}});
        let reads = ReadSet::dotted(["status.a.b", "status.a", "status.d.e"]);
        assert_eq!(reads.project(&object), json!({"status": {"a": {"b": 1, "c": 2}, "d": 3}}));
    }

    #[test]
    fn an_ambiguous_spelling_finds_nothing() {
        let object = json!({"fooBar": 1, "foobar": 2});
        let map = object.as_object().expect("an object");
        assert!(find_field(map, "FOOBAR").is_none());
        assert_eq!(find_field(map, "FooBar").map(|found| found.0), Some("fooBar"));
    }
}
