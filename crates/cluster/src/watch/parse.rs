//! What arrives, read only as far as needed: objects nobody asked for cost no more than a look at their name.

use super::{WatchItem, WatchTarget, interest::Interest};
use kube::core::Status;
use linchpin_engine::contract::Projection;
use linchpin_words::limits;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// Why something that arrived cannot be understood; says where, never what.
#[derive(Debug, thiserror::Error)]
#[error("the server sent something that cannot be read (line {line}, column {column})")]
pub(crate) struct UnreadableReply {
    line: usize,
    column: usize,
}

impl From<serde_json::Error> for UnreadableReply {
    fn from(error: serde_json::Error) -> Self {
        Self { line: error.line(), column: error.column() }
    }
}

/// What one line of a watch says.
pub(super) enum WatchLine<'a> {
    /// An object is new or has changed.
    There(Head, &'a RawValue),
    /// An object is gone, or left the selection.
    Gone(Head),
    /// The watch has come so far.
    Mark(Bookmark),
}

/// Why a line of a watch says nothing.
pub(super) enum Broken {
    /// It cannot be understood.
    UnreadableReply(UnreadableReply),
    /// The server goes no further.
    Refused(Box<Status>),
}

impl From<serde_json::Error> for Broken {
    fn from(error: serde_json::Error) -> Self {
        Self::UnreadableReply(error.into())
    }
}

impl From<UnreadableReply> for Broken {
    fn from(error: UnreadableReply) -> Self {
        Self::UnreadableReply(error)
    }
}

impl<'a> WatchLine<'a> {
    pub(super) fn read(line: &'a [u8]) -> Result<Self, Broken> {
        #[derive(Deserialize)]
        struct Event<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            object: &'a RawValue,
        }
        let Event { kind, object } = serde_json::from_slice(line)?;
        Ok(match &*kind {
            "BOOKMARK" => Self::Mark(Bookmark::read(object)?),
            "ERROR" => return Err(Broken::Refused(serde_json::from_str(object.get())?)),
            "DELETED" => Self::Gone(Head::read(object)?),
            _ => Self::There(Head::read(object)?, object),
        })
    }
}

/// One page of a list.
#[derive(Deserialize)]
pub(crate) struct ListPage<'a> {
    #[serde(default)]
    pub(crate) metadata: PageMetadata,
    #[serde(borrow, default)]
    pub(crate) items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageMetadata {
    #[serde(default)]
    pub(super) resource_version: String,
    #[serde(default, rename = "continue")]
    pub(crate) next: Option<String>,
    #[serde(default)]
    pub(super) remaining_item_count: Option<u64>,
}

impl<'a> ListPage<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, UnreadableReply> {
        Ok(serde_json::from_slice(body)?)
    }
}

/// The metadata every record has.
#[derive(Deserialize)]
pub(crate) struct Head {
    pub(super) metadata: ObjectMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectMetadata {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    generation: i64,
    #[serde(default)]
    pub(super) resource_version: String,
    #[serde(default)]
    deletion_timestamp: Option<IgnoredAny>,
}

impl Head {
    pub(super) fn read(object: &RawValue) -> Result<Self, UnreadableReply> {
        Ok(serde_json::from_str(object.get())?)
    }

    /// Namespace and name.
    pub(crate) fn place(&self) -> (Option<String>, String) {
        (self.metadata.namespace.clone(), self.metadata.name.clone())
    }

    /// The version as a number; 0 where a server counts in another way.
    pub(super) fn version(&self) -> u64 {
        self.metadata.resource_version.parse().unwrap_or(0)
    }

    /// The record of an object with this head. Of one that is nested too deeply to be read nothing is kept: it is there.
    pub(super) fn item(&self, object: &RawValue, watched: &WatchTarget, interest: &Interest) -> WatchItem {
        let ObjectMetadata { name, namespace, uid, generation, deletion_timestamp, .. } = &self.metadata;
        let version = self.version();
        let kind = &watched.resource.kind;
        let content = serde_json::from_str(object.get()).ok().map(|mut value: Value| {
            if let Some(fields) = value.as_object_mut() {
                // Objects in lists do not say what they are, and metadata says that it is metadata.
                fields.insert("apiVersion".to_owned(), Value::String(kind.api_version()));
                fields.insert("kind".to_owned(), Value::String(kind.kind.clone()));
            }
            interest.project(&value)
        });
        let small = |content: &Value| {
            object.get().len() <= limits::PROJECTION || content.to_string().len() <= limits::PROJECTION
        };
        let kept = content.filter(small).map(|content| {
            Arc::new(Projection {
                kind: kind.clone(),
                namespace: namespace.clone(),
                name: name.clone(),
                uid: uid.clone(),
                generation: *generation,
                version,
                deleting: deletion_timestamp.is_some(),
                content,
            })
        });
        let bytes = RECORD + name.len() + kept.as_ref().map_or(0, |kept| size(&kept.content));
        WatchItem { name: name.clone(), version, revision: interest.revision, kept, bytes }
    }
}

/// What a record takes besides its content and name, about.
const RECORD: usize = 320;

/// What a value takes in memory, about.
fn size(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(size).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| size_of::<String>() + key.len() + size(value)).sum()
        }
    };
    size_of::<Value>() + inside
}

/// A bookmark: how far the watch is, and whether the first state is complete.
pub(super) struct Bookmark {
    pub(super) version: String,
    pub(super) completes_first_state: bool,
}

impl Bookmark {
    /// The version as a number; 0 where a server counts in another way.
    pub(super) fn version(&self) -> u64 {
        self.version.parse().unwrap_or(0)
    }

    fn read(object: &RawValue) -> Result<Self, UnreadableReply> {
        #[derive(Deserialize)]
        struct Mark {
            metadata: MarkMetadata,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct MarkMetadata {
            #[serde(default)]
            resource_version: String,
            #[serde(default)]
            annotations: Option<BTreeMap<String, String>>,
        }
        let mark: Mark = serde_json::from_str(object.get())?;
        let complete =
            mark.metadata.annotations.as_ref().and_then(|all| all.get("k8s.io/initial-events-end"));
        Ok(Self {
            completes_first_state: complete.is_some_and(|value| value == "true"),
            version: mark.metadata.resource_version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{WatchSelect, interest::tests::interest},
        *,
    };
    use crate::call::Resource;
    use linchpin_engine::contract::ReadSet;
    use linchpin_words::Gvk;
    use serde_json::json;

    fn watched() -> WatchTarget {
        let resource = Resource::new(Gvk::new("", "v1", "ConfigMap"), "configmaps", true);
        WatchTarget { resource, namespace: Some("shop".into()), select: WatchSelect::All }
    }

    fn item(object: &Value, reads: &ReadSet) -> WatchItem {
        let raw = serde_json::value::to_raw_value(object).unwrap();
        Head::read(&raw).unwrap().item(&raw, &watched(), &interest([reads.clone()]))
    }

    #[test]
    fn an_object_is_reduced_to_what_is_read_of_it() {
        let object = json!({"metadata": {"name": "a", "namespace": "shop", "uid": "u", "generation": 3,
            "resourceVersion": "17", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "data": {"x": "1", "y": "2"}});
        let item = item(&object, &ReadSet::dotted(["data.x", "kind"]));
        let kept = item.kept.unwrap();
        assert_eq!((kept.uid.as_str(), kept.generation, kept.version, kept.deleting), ("u", 3, 17, true));
        assert_eq!(kept.content, json!({"metadata": {}, "data": {"x": "1"}, "kind": "ConfigMap"}));
    }

    #[test]
    fn what_is_too_large_is_not_kept() {
        let sized = |length: usize| json!({"metadata": {"name": "a"}, "data": {"x": "z".repeat(length)}});
        let data = ReadSet::dotted(["data"]);
        let overhead = json!({"metadata": {}, "data": {"x": ""}}).to_string().len();
        let limit = limits::PROJECTION - overhead;
        assert!(item(&sized(limit), &data).kept.is_some());
        assert!(item(&sized(limit + 1), &data).kept.is_none());
        assert!(item(&sized(limit * 100), &data).kept.is_none());
        assert!(item(&sized(limit * 100), &ReadSet::nothing()).kept.is_some(), "only what is kept counts");
    }

    #[test]
    fn what_is_nested_too_deeply_is_there_and_not_kept() {
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let line =
            format!(r#"{{"type": "ADDED", "object": {{"metadata": {{"name": "a"}}, "data": {deep}}}}}"#);
        let Ok(WatchLine::There(head, object)) = WatchLine::read(line.as_bytes()) else { panic!() };
        let item = head.item(object, &watched(), &interest([ReadSet::nothing()]));
        assert_eq!((item.name.as_str(), item.kept), ("a", None));
    }

    #[test]
    fn garbage_is_an_error_that_repeats_nothing_of_it() {
        let error = WatchLine::read(b"{\"type\": \"ADDED\", \"object\": hunter2}").err();
        let Some(Broken::UnreadableReply(error)) = error else { panic!() };
        let error = error.to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
