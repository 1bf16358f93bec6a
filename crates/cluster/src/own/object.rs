//! An object of ours as it arrived: its text, and as much of its metadata as everybody needs.
//!
//! The text is read into a kind's own type by the part that serves it. The metadata can be read whatever the rest looks
//! like (a value nested too deeply, a field of the wrong type). Errors say where, never what.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned, de::IgnoredAny};
use serde_json::value::RawValue;

use super::NamespacedName;
use crate::watch::parse::ListPage;

/// Why an object cannot be read; names the place in its text and repeats nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnreadableObject(String);

impl From<serde_json::Error> for UnreadableObject {
    fn from(error: serde_json::Error) -> Self {
        let at = format!("line {}, column {}", error.line(), error.column());
        // The only words of the parser that repeat nothing of what was read.
        let deep = error.to_string().starts_with("recursion limit exceeded");
        Self(if deep {
            format!("it is nested more than 120 levels deep ({at})")
        } else {
            format!("a field has not the type that its kind asks for ({at})")
        })
    }
}

/// The objects of one page of a list, and where the next page begins. Those whose very metadata cannot be read are left
/// out.
pub fn page(text: &str) -> Result<(Vec<OwnObject>, Option<String>), UnreadableObject> {
    let unreadable = || UnreadableObject("the list cannot be read".to_owned());
    let page = ListPage::read(text.as_bytes()).map_err(|_| unreadable())?;
    let objects = page.items.unwrap_or_default().into_iter().filter_map(|item| OwnObject::new(item).ok());
    Ok((objects.collect(), page.metadata.next.filter(|next| !next.is_empty())))
}

/// An object of ours as it arrived.
#[derive(Debug)]
pub struct OwnObject {
    text: Box<RawValue>,
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: Option<String>,
    name: String,
    uid: String,
    resource_version: String,
    generation: i64,
    deletion_timestamp: Option<IgnoredAny>,
    finalizers: Option<Vec<String>>,
    annotations: Option<BTreeMap<String, String>>,
}

impl OwnObject {
    /// Reads the metadata, and nothing else.
    pub(crate) fn new(text: &RawValue) -> Result<Self, UnreadableObject> {
        #[derive(Deserialize)]
        struct Head {
            metadata: Metadata,
        }
        let Head { metadata } = serde_json::from_str(text.get())?;
        Ok(Self { text: text.to_owned(), metadata })
    }

    /// The whole object as its type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, UnreadableObject> {
        Ok(serde_json::from_str(self.text.get())?)
    }

    /// The whole object, as text.
    pub fn text(&self) -> &str {
        self.text.get()
    }

    /// Where it is.
    pub fn place(&self) -> NamespacedName {
        (self.metadata.namespace.clone(), self.metadata.name.clone())
    }

    /// Which incarnation.
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// Its resourceVersion.
    pub fn version(&self) -> &str {
        &self.metadata.resource_version
    }

    /// Its generation.
    pub fn generation(&self) -> i64 {
        self.metadata.generation
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Its finalizers.
    pub fn finalizers(&self) -> &[String] {
        self.metadata.finalizers.as_deref().unwrap_or_default()
    }

    /// One of its annotations.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn object(depth: usize) -> OwnObject {
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let text = format!(
            r#"{{"metadata": {{"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": "7", "generation": 3,
                "finalizers": ["x/y"], "annotations": {{"k": "v"}}, "deletionTimestamp": "2026-01-01T00:00:00Z"}},
                "spec": {{"values": {deep}, "serviceAccountName": "actor"}}, "status": {{"journal": "{{}}"}}}}"#
        );
        OwnObject::new(&RawValue::from_string(text).unwrap()).unwrap()
    }

    #[test]
    fn what_is_nested_too_deeply_cannot_be_read_but_its_metadata_can() {
        assert!(object(100).read::<Value>().is_ok());
        for depth in [200, 20_000, 500_000] {
            let object = object(depth);
            let error = object.read::<Value>().unwrap_err().to_string();
            assert!(error.contains("nested"), "{error}");
            assert_eq!(object.place(), (Some("shop".to_owned()), "a".to_owned()));
            assert_eq!((object.uid(), object.version(), object.generation()), ("u", "7", 3));
            assert!(object.is_deleting());
            assert_eq!(object.finalizers(), ["x/y"]);
            assert_eq!(object.annotation("k"), Some("v"));
        }
    }

    #[test]
    fn an_error_repeats_nothing_of_the_object() {
        #[derive(Debug, Deserialize)]
        struct Typed {
            #[allow(dead_code, reason = "only read")]
            spec: bool,
        }
        let text =
            RawValue::from_string(r#"{"metadata": {"name": "a"}, "spec": "hunter2"}"#.to_owned()).unwrap();
        let error = OwnObject::new(&text).unwrap().read::<Typed>().unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
