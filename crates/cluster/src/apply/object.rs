//! A document about to be written: checked, placed and marked. Pure.

use crate::call::Resource;
use linchpin_engine::contract::{Actor, Failure, OwnerReference};
use linchpin_words::{Gvk, keys, limits, text};
use serde_json::{Map, Value, json};

/// What only the server may say about an object.
const SERVER_SIDE: [&str; 7] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
];

/// What only we say about an object that somebody directs: an owner that the author names could make the garbage
/// collector delete it, or keep another object from going.
const OURS_TO_SAY: &str = "ownerReferences";

/// Finalizers with which a document would make the garbage collector, or us, do something. Others are the author's own.
const RESERVED_FINALIZERS: [&str; 4] =
    ["foregroundDeletion", "orphan", keys::TEARDOWN_FINALIZER, keys::APP_BUNDLE_FINALIZER];

/// The resourceVersion of no object: versions are revisions of the store, and its first one is empty.
const NEVER: &str = "1";

/// Which objects a write may hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteScope<'a> {
    /// Any.
    Whatever,
    /// The one with this uid: nothing is created, and no successor is hit.
    Incarnation(&'a str),
    /// None: server-side apply creates the object or is refused with a conflict.
    IfAbsent,
}

/// A document that can be written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WritableDocument {
    /// All but the metadata.
    fields: Map<String, Value>,
    metadata: Map<String, Value>,
    pub(super) kind: Gvk,
    pub(super) name: String,
}

impl WritableDocument {
    /// Reads what a plan rendered, or what the operator itself writes down.
    pub(super) fn read(body: &Value, actor: &Actor) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::Invalid(format!("the document {what}"));
        let mut fields = body.as_object().cloned().ok_or_else(|| wrong("is no object"))?;
        let text_at = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = Gvk::from_api_version(&text_at(fields.get("apiVersion")), text_at(fields.get("kind")));
        if kind.version.is_empty() || kind.kind.is_empty() {
            return Err(wrong("has no apiVersion or kind"));
        }
        if let Some(problem) = kind.problem() {
            return Err(Failure::Invalid(format!("the document cannot be written: {problem}")));
        }
        let Some(Value::Object(mut metadata)) = fields.remove("metadata") else {
            return Err(wrong("has no metadata"));
        };
        for field in SERVER_SIDE {
            metadata.remove(field);
        }
        if *actor != Actor::Operator {
            metadata.remove(OURS_TO_SAY);
            if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") {
                finalizers.retain(|one| !one.as_str().is_some_and(|one| RESERVED_FINALIZERS.contains(&one)));
            }
        }
        let name = text_at(metadata.get("name"));
        if name.is_empty() || name.len() > limits::NAME {
            let message = format!("{} has no usable metadata.name", text::quote(&kind.kind));
            return Err(wrong(&message));
        }
        if body.to_string().len() > limits::DOCUMENT {
            return Err(wrong(&format!("is larger than {} bytes", limits::DOCUMENT)));
        }
        Ok(Self { fields, metadata, kind, name })
    }

    /// Puts it where it belongs: into its namespace, the default one, or none; says which.
    pub(super) fn place(&mut self, resource: &Resource, default_namespace: &str) -> Option<String> {
        let metadata = &mut self.metadata;
        if !resource.namespaced {
            metadata.remove("namespace");
            return None;
        }
        let own = metadata.get("namespace").and_then(Value::as_str).filter(|namespace| !namespace.is_empty());
        let namespace = own.unwrap_or(default_namespace).to_owned();
        metadata.insert("namespace".to_owned(), Value::String(namespace.clone()));
        Some(namespace)
    }

    /// The body to send: with the mark of its creator or without any, with an owner beside its own or without, and what
    /// it may hit.
    pub(super) fn body(
        &self,
        mark: Option<&str>,
        owner: Option<&OwnerReference>,
        only: WriteScope<'_>,
    ) -> Value {
        let mut metadata = self.metadata.clone();
        if let Some(owner) = owner {
            let owners = metadata.entry("ownerReferences").or_insert_with(|| Value::Array(Vec::new()));
            if let Some(owners) = owners.as_array_mut() {
                owners.push(json!({"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name,
                    "uid": owner.uid, "blockOwnerDeletion": false}));
            }
        }
        let precondition = match only {
            WriteScope::Whatever => None,
            WriteScope::Incarnation(uid) => Some(("uid", uid)),
            WriteScope::IfAbsent => Some(("resourceVersion", NEVER)),
        };
        if let Some((field, value)) = precondition {
            metadata.insert(field.to_owned(), Value::String(value.to_owned()));
        }
        let mut annotations = match metadata.remove("annotations") {
            Some(Value::Object(annotations)) => annotations,
            _ => Map::new(),
        };
        // Only we say who created an object.
        annotations.remove(keys::CREATED_BY);
        if let Some(mark) = mark {
            annotations.insert(keys::CREATED_BY.to_owned(), Value::String(mark.to_owned()));
        }
        if !annotations.is_empty() {
            metadata.insert("annotations".to_owned(), Value::Object(annotations));
        }
        let mut fields = self.fields.clone();
        fields.insert("metadata".to_owned(), Value::Object(metadata));
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Result<WritableDocument, Failure> {
        let actor = Actor::ServiceAccount { namespace: "shop".into(), name: "actor".into() };
        WritableDocument::read(body, &actor)
    }

    fn maps() -> Resource {
        Resource::new(Gvk::new("", "v1", "ConfigMap"), "configmaps", true)
    }

    #[test]
    fn a_document_goes_into_its_own_or_the_default_namespace() {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let mut document = read(&body).unwrap();
        assert_eq!(document.place(&maps(), "shop").as_deref(), Some("shop"));
        assert_eq!(
            document.body(None, None, WriteScope::Whatever)["metadata"],
            json!({"name": "a", "namespace": "shop"})
        );

        let cluster = Resource::new(Gvk::new("", "v1", "Namespace"), "namespaces", false);
        let body =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "namespace": "x"}});
        let mut document = read(&body).unwrap();
        assert_eq!(document.place(&cluster, "shop"), None);
        assert_eq!(document.body(None, None, WriteScope::Whatever)["metadata"], json!({"name": "a"}));
    }

    #[test]
    fn nobody_else_sets_the_mark_or_what_the_server_says() {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "x",
            "resourceVersion": "1", "managedFields": [], "annotations": {"linchpin.dev/created-by": "me", "k": "v"}}});
        let document = read(&body).unwrap();
        assert_eq!(
            document.body(None, None, WriteScope::Whatever)["metadata"],
            json!({"name": "a", "annotations": {"k": "v"}})
        );
        assert_eq!(
            document.body(Some("us"), None, WriteScope::Incarnation("u"))["metadata"],
            json!({"name": "a", "uid": "u", "annotations": {"k": "v", "linchpin.dev/created-by": "us"}})
        );
        assert_eq!(
            document.body(None, None, WriteScope::IfAbsent)["metadata"]["resourceVersion"],
            json!("1")
        );
    }

    #[test]
    fn an_owner_takes_the_place_of_those_that_the_document_names_and_blocks_nothing() {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "ownerReferences": [{"uid": "x"}]}});
        let owner = OwnerReference {
            api_version: "app.example.com/v1alpha1".into(),
            kind: "AppBundle".into(),
            namespace: "shop".into(),
            name: "web".into(),
            uid: "o".into(),
        };
        let written = read(&body).unwrap();
        assert_eq!(written.body(None, None, WriteScope::Whatever)["metadata"].get("ownerReferences"), None);
        let owners =
            &written.body(Some("us"), Some(&owner), WriteScope::Whatever)["metadata"]["ownerReferences"];
        assert_eq!((owners[0]["uid"].as_str(), owners.get(1)), (Some("o"), None));
        assert_eq!(owners[0]["blockOwnerDeletion"], json!(false));
        assert_eq!(owners[0].get("controller"), None);
        let own =
            WritableDocument::read(&body, &Actor::Operator).unwrap().body(None, None, WriteScope::Whatever);
        assert_eq!(own["metadata"]["ownerReferences"][0]["uid"], "x", "our own records have their owner");
    }

    #[test]
    fn finalizers_of_the_garbage_collector_and_of_ours_are_left_out() {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a",
            "finalizers": ["foregroundDeletion", "example.com/hold", "orphan", "linchpin.dev/teardown"]}});
        let written = read(&body).unwrap().body(None, None, WriteScope::Whatever);
        assert_eq!(written["metadata"]["finalizers"], json!(["example.com/hold"]));
    }

    #[test]
    fn a_kind_that_no_server_can_serve_is_refused() {
        for (version, kind) in
            [("a".repeat(70_000), "X"), ("../v1".to_owned(), "X"), ("v1".to_owned(), "X/y")]
        {
            let body = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
            let Err(Failure::Invalid(message)) = read(&body) else { panic!("{kind}") };
            assert!(message.len() < 300, "{message}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for body in [
            json!(null),
            json!([]),
            json!({"kind": "ConfigMap", "metadata": {"name": "a"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap"}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": "x"}),
        ] {
            assert!(matches!(read(&body), Err(Failure::Invalid(_))), "{body}");
        }
    }

    #[test]
    fn a_document_has_a_size_limit() {
        let sized = |length: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "x".repeat(length)}});
        let overhead = sized(0).to_string().len();
        assert!(read(&sized(limits::DOCUMENT - overhead)).is_ok());
        assert!(read(&sized(limits::DOCUMENT - overhead + 1)).is_err());
        assert!(read(&sized(limits::DOCUMENT * 100)).is_err());
    }
}
