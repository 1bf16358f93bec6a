//! Which parts of an object are read.
//!
//! Plans know statically what their conditions and templates read, so the hub keeps only that of each object
//! ([`ReadSet::project`]). Where it cannot be known, the whole object is kept, less `managedFields`.
//!
//! Of `managedFields` only one thing is ever read: which fields a field manager of ours holds, as a fingerprint
//! ([`held_fields`]). The server takes a field away from its manager in the very moment somebody else changes or removes
//! it, so a fingerprint that differs from the one our own write left behind is drift, whatever the schema of the kind.

use linchpin_lang::reads::Reads;
use linchpin_words::{hash::sha256_hex, similar};
use serde_json::{Map, Value};

/// How many names are listed.
const NAMED: usize = 5;

/// A path of field names from an object's root.
pub type ReadPath = Vec<String>;

/// The paths that somebody reads of an object. There are few, and every question has some: they are kept sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadSet {
    whole: bool,
    paths: Vec<ReadPath>,
    /// Maps of which the names in them are read, so that the message can list which there are.
    shapes: Vec<ReadPath>,
    /// Field managers whose held fields are read.
    managers: Vec<String>,
}

impl ReadSet {
    /// Nothing but what every record has: name, uid, generation, resourceVersion, deletion.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The whole object.
    pub fn whole() -> Self {
        Self { whole: true, ..Self::default() }
    }

    /// Which fields a field manager holds, and nothing else.
    pub fn held_by(manager: impl Into<String>) -> Self {
        Self { managers: vec![manager.into()], ..Self::default() }
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
    pub fn add(&mut self, path: ReadPath) {
        if path.is_empty() {
            self.whole = true;
        }
        if self.whole {
            self.paths.clear();
        } else {
            put(&mut self.paths, path);
        }
    }

    /// Adds the names in a map, without their values.
    pub fn add_shape(&mut self, path: ReadPath) {
        put(&mut self.shapes, path);
    }

    /// Adds all that `other` reads.
    pub fn merge(&mut self, other: &Self) {
        if other.whole {
            self.add(ReadPath::new());
        }
        other.paths.iter().for_each(|path| self.add(path.clone()));
        other.shapes.iter().for_each(|path| put(&mut self.shapes, path.clone()));
        other.managers.iter().for_each(|manager| put(&mut self.managers, manager.clone()));
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
        let mut kept = Value::Object(Map::new());
        self.project_onto(object, &mut kept);
        kept
    }

    /// Adds the part of `object` that is read to what is kept of the same object for others.
    pub fn project_onto(&self, object: &Value, kept: &mut Value) {
        if self.whole {
            keep_whole(object, kept);
        }
        for path in &self.paths {
            copy(object, kept, path);
        }
        for path in &self.shapes {
            copy_names(object, kept, path);
        }
        for manager in &self.managers {
            let held =
                held_fields(object, manager).or_else(|| kept_fingerprint(object, manager).map(str::to_owned));
            if let Some(held) = held {
                keep_fingerprint(kept, manager, held);
            }
        }
    }
}

/// Puts a value where it belongs among others, once.
fn put<T: Ord>(sorted: &mut Vec<T>, value: T) {
    if let Err(position) = sorted.binary_search(&value) {
        sorted.reserve_exact(1);
        sorted.insert(position, value);
    }
}

/// The fingerprint that a projection holds of a manager's fields ([`ReadSet::held_by`]); none where it holds no field.
pub fn kept_fingerprint<'a>(content: &'a Value, manager: &str) -> Option<&'a str> {
    content.get("metadata")?.get("managedFields")?.as_object()?.get(manager)?.as_str()
}

/// A fingerprint of the fields that a manager holds by server-side apply in an object as the server sent it; none where
/// it holds none. Names of fields only, no values: it says nothing about a Secret.
pub fn held_fields(object: &Value, manager: &str) -> Option<String> {
    let entries = object.get("metadata")?.get("managedFields")?.as_array()?;
    let text = |entry: &'_ Value, key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let ours = entries.iter().find(|entry| {
        text(entry, "manager").as_deref() == Some(manager)
            && text(entry, "operation").as_deref() == Some("Apply")
            && text(entry, "subresource").is_none_or(|subresource| subresource.is_empty())
    })?;
    let mut hash = sha256_hex(ours.get("fieldsV1")?.to_string().as_bytes());
    hash.truncate(32);
    Some(hash)
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

/// Keeps all of an object but its managed fields, of which the fingerprints stay that are kept already.
fn keep_whole(object: &Value, kept: &mut Value) {
    let (Some(source), Some(target)) = (object.as_object(), kept.as_object_mut()) else {
        return;
    };
    for (key, value) in source {
        insert(target, key, value, 0);
    }
}

fn keep_fingerprint(kept: &mut Value, manager: &str, fingerprint: String) {
    let mut place = kept;
    for name in ["metadata", "managedFields"] {
        let Some(fields) = place.as_object_mut() else {
            return;
        };
        place = fields.entry(name).or_insert_with(|| Value::Object(Map::new()));
    }
    if let Some(fields) = place.as_object_mut() {
        fields.insert(manager.to_owned(), Value::String(fingerprint));
    }
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
            insert(target, key, value, depth);
            return;
        }
        to = target.entry(key).or_insert(Value::Null);
        if to.is_null() {
            *to = Value::Object(Map::new());
        }
        from = value;
    }
}

/// Keeps which names there are in the map at `path`; values that are kept already stay.
fn copy_names(mut from: &Value, mut to: &mut Value, path: &[String]) {
    for name in path {
        let (Some(source), Some(target)) = (from.as_object(), to.as_object_mut()) else { return };
        let Some((key, value)) = find_field(source, name).filter(|(_, value)| value.is_object()) else {
            return;
        };
        to = target.entry(key).or_insert(Value::Null);
        if to.is_null() {
            *to = Value::Object(Map::new());
        }
        from = value;
    }
    let (Some(source), Some(target)) = (from.as_object(), to.as_object_mut()) else { return };
    for name in source.keys() {
        target.entry(name).or_insert(Value::Null);
    }
}

/// Which names there are instead of one that is missing in the map that `path` leads to. Of data and of values all are
/// listed (`; .data has: host, port`), of other maps, to which more may come, the one that was probably meant.
pub fn names_instead(content: &Value, path: &[String]) -> String {
    let Some((missing, maps)) = path.split_last().filter(|(_, maps)| !maps.is_empty()) else {
        return String::new();
    };
    let found = maps.iter().try_fold(content, |place, map| Some(find_field(place.as_object()?, map)?.1));
    let Some(fields) =
        found.and_then(Value::as_object).filter(|fields| find_field(fields, missing).is_none())
    else {
        return String::new();
    };
    let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
    names.sort_unstable();
    let near = similar::did_you_mean(missing, names.iter().copied());
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    match (maps, names.is_empty(), more) {
        (_, true, _) => String::new(),
        ([map], _, 0) if is_complete(map) => format!("; .{map} has: {}{near}", names.join(", ")),
        ([map], _, more) if is_complete(map) => {
            format!("; .{map} has: {} and {more} more{near}", names.join(", "))
        }
        _ => near,
    }
}

/// Whether what is in a map is all that will be in it, as far as anybody knows.
fn is_complete(map: &str) -> bool {
    map == "data" || map == "Values"
}

/// Puts a field there: metadata without its managed fields, beside the fingerprints of them that are kept.
fn insert(target: &mut Map<String, Value>, key: &str, value: &Value, depth: usize) {
    match (key, depth, value) {
        ("metadata", 0, Value::Object(metadata)) => {
            let kept = target.entry(key).or_insert_with(|| Value::Object(Map::new()));
            if let Some(kept) = kept.as_object_mut() {
                let fields = metadata.iter().filter(|(name, _)| *name != "managedFields");
                kept.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        _ => drop(target.insert(key.to_owned(), value.clone())),
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
    fn of_managed_fields_only_a_fingerprint_of_ours_is_kept() {
        let object = |fields: Value| {
            json!({"metadata": {"name": "a", "managedFields": [
                {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:x": {}}},
                {"manager": "us", "operation": "Apply", "fieldsV1": fields},
            ]}})
        };
        let reads = ReadSet::held_by("us");
        let one = reads.project(&object(json!({"f:spec": {"f:replicas": {}}})));
        let other = reads.project(&object(json!({"f:spec": {}})));
        let print = kept_fingerprint(&one, "us").expect("a fingerprint");
        assert_ne!(Some(print), kept_fingerprint(&other, "us"), "a field was taken from us");
        assert_eq!(one, json!({"metadata": {"managedFields": {"us": print}}}));
        assert_eq!(reads.project(&one), one, "a projection can be projected again");
        assert_eq!(
            kept_fingerprint(&ReadSet::held_by("kubectl").project(&object(json!({}))), "kubectl"),
            None
        );
        let mut whole = ReadSet::whole();
        whole.merge(&reads);
        assert_eq!(
            kept_fingerprint(&whole.project(&object(json!({"f:spec": {}}))), "us"),
            kept_fingerprint(&other, "us")
        );
    }

    #[test]
    fn the_whole_object_comes_without_managed_fields() {
        let object = json!({"metadata": {"name": "a", "managedFields": [1]}});
        assert_eq!(ReadSet::whole().project(&object), json!({"metadata": {"name": "a"}}));
        assert_eq!(ReadSet::dotted(["metadata.managedFields"]).project(&object), json!({"metadata": {}}));
    }

    #[test]
    fn all_metadata_comes_without_managed_fields_beside_a_fingerprint_of_them() {
        let ours = json!([{"manager": "us", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]);
        let object = json!({"metadata": {"name": "a", "managedFields": ours}, "spec": 1});
        for all in [ReadSet::dotted(["metadata"]), ReadSet::whole()] {
            let mut reads = all.clone();
            reads.merge(&ReadSet::held_by("us"));
            let kept = reads.project(&object);
            assert_eq!(kept["metadata"]["name"], "a");
            assert!(kept_fingerprint(&kept, "us").is_some(), "{kept}");
            let mut other_way_round = ReadSet::held_by("us").project(&object);
            all.project_onto(&object, &mut other_way_round);
            assert_eq!(other_way_round, kept);
            assert_eq!(reads.project(&kept), kept, "a projection can be projected again");
        }
    }

    #[test]
    fn of_a_map_the_names_may_be_kept_without_their_values() {
        let object = json!({"data": {"host": "a", "port": "b", "deep": {"c": 1}}});
        let mut names = ReadSet::dotted(["data.host"]);
        names.add_shape(vec!["data".to_owned()]);
        let kept = names.project(&object);
        assert_eq!(kept, json!({"data": {"host": "a", "port": null, "deep": null}}));
        assert_eq!(names.project(&kept), kept, "a projection can be projected again");
        let mut further = kept.clone();
        ReadSet::dotted(["data.deep.c"]).project_onto(&object, &mut further);
        assert_eq!(further, json!({"data": {"host": "a", "port": null, "deep": {"c": 1}}}));
        let path = |name: &str| vec!["data".to_owned(), name.to_owned()];
        assert_eq!(names_instead(&kept, &path("hots")), "; .data has: deep, host, port; did you mean host?");
        assert_eq!(names_instead(&json!({}), &path("hots")), "");
        assert_eq!(names_instead(&kept, &path("host")), "", "it is there");
        let status = json!({"status": {"phase": null, "replicas": null}});
        let path = |name: &str| vec!["Status".to_owned(), name.to_owned()];
        assert_eq!(names_instead(&status, &path("phsae")), "; did you mean phase?");
        assert_eq!(names_instead(&status, &path("endpoint")), "", "it may come");
    }

    #[test]
    fn what_several_read_one_after_the_other_is_what_they_read_together() {
        let object = json!({"metadata": {"name": "a", "labels": {"l": "v"}}, "status": {"a": 1, "b": [2]}});
        let (one, other) =
            (ReadSet::dotted(["status.a", "metadata"]), ReadSet::dotted(["status.b.c", "kind"]));
        let mut together = one.clone();
        together.merge(&other);
        let mut kept = one.project(&object);
        other.project_onto(&object, &mut kept);
        assert_eq!(kept, together.project(&object));
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
