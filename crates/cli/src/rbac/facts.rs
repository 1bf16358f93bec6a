//! What compiling asks beside kinds, as far as manifests or a cluster can answer: the ConfigMaps, Secrets and other objects
//! that objects of ours are read from.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::Result;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_engine::{
    contract::{Actor, Observed, Projection, Question, Right, Scope, Seen, Served, Via, Want, Why},
    rights::{RightResource, observing},
};
use linchpin_words::{Gvk, KindWord, Reason, reference::built_in};
use serde_json::{Value, json};

use super::kinds::KnownKinds;
use crate::{live::Connection, operator::awaited};

/// Kind, namespace and name.
type Key = (String, String, String);

/// The objects that are given, and the cluster that may be asked for others.
pub(super) struct RbacFacts<'a> {
    given: BTreeMap<Key, Value>,
    connection: Option<&'a Connection>,
}

impl<'a> RbacFacts<'a> {
    /// The ConfigMaps and Secrets among manifests, and a cluster.
    pub(super) fn new(kept: &[Value], connection: Option<&'a Connection>) -> Self {
        let text = |object: &Value, path: &str| {
            object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let key = |object: &Value| {
            (text(object, "/kind"), text(object, "/metadata/namespace"), text(object, "/metadata/name"))
        };
        Self { given: kept.iter().map(|object| (key(object), stored(object.clone()))).collect(), connection }
    }

    /// The answer to a question about objects, or about what has to be fetched.
    pub(super) fn answer(&self, want: &Want) -> Seen {
        let nothing = || Seen::Objects(Arc::new(Observed::default()));
        let (kind, scope) = match want.question() {
            Question::Objects { kind, scope, via, .. } if is_a_users(via) => (kind, scope),
            Question::Artifact { .. } => {
                return Seen::Unknown(Why::new(Reason::FetchFailed, "it is not fetched by linchpin rbac"));
            }
            // Profiles, rules and other objects of ours: they change verdicts, never rights.
            _ => return nothing(),
        };
        let Scope::Name { namespace, name } = scope else { return nothing() };
        let key = (kind.kind.clone(), namespace.clone().unwrap_or_default(), name.clone());
        let found = match (self.given.get(&key), self.connection) {
            (Some(given), _) => Some(given.clone()),
            (None, Some(connection)) => live(connection, kind, namespace.as_deref(), name).unwrap_or(None),
            (None, None) => None,
        };
        let Some(content) = found else { return nothing() };
        let item = Projection {
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
            uid: String::new(),
            generation: 0,
            version: 0,
            deleting: false,
            content,
        };
        Seen::Objects(Arc::new(Observed { items: vec![Arc::new(item)], ..Observed::default() }))
    }
}

fn is_a_users(via: &Via) -> bool {
    via.cluster.is_here() && matches!(via.actor, Actor::ServiceAccount { .. })
}

/// An object as the API server has it: `stringData` is for writing.
fn stored(mut object: Value) -> Value {
    let texts = object.get("stringData").and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, text) in texts {
        object["data"][key] = json!(STANDARD.encode(text.as_str().unwrap_or_default()));
    }
    object
}

/// An object of a cluster; none where it is not there or may not be seen.
fn live(connection: &Connection, kind: &Gvk, namespace: Option<&str>, name: &str) -> Result<Option<Value>> {
    let word = KindWord { group: Some(kind.group.clone()), ..KindWord::new(&kind.kind) };
    let plural = built_in(&word).map_or_else(
        || super::kinds::plural_of(&kind.kind.to_ascii_lowercase()),
        |known| known.plural.to_owned(),
    );
    let root = if kind.group.is_empty() { "/api" } else { "/apis" };
    let place = namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    let path = format!("{root}/{}{place}/{plural}/{name}", kind.api_version());
    awaited(async {
        let (client, _) = connection.open().await?;
        let request = http::Request::get(path).body(Vec::new())?;
        Ok(client.request::<Value>(request).await.ok())
    })?
}

/// The rights to look at what compiling asked for.
pub(super) fn reading(asks: &BTreeSet<Want>, kinds: &mut KnownKinds) -> Vec<(Via, Right)> {
    let mut found = Vec::new();
    for want in asks {
        let Question::Objects { via, kind, scope, .. } = want.question() else { continue };
        if !is_a_users(via) {
            continue;
        }
        let word = KindWord { group: Some(kind.group.clone()), ..KindWord::new(&kind.kind) };
        let resource = match built_in(&word) {
            Some(known) => RightResource {
                group: kind.group.clone(),
                plural: known.plural.to_owned(),
                namespaced: known.namespaced,
            },
            None => match kinds.answer(&word, true) {
                Served::Yes { plural, namespaced, .. } => {
                    RightResource { group: kind.group.clone(), plural, namespaced }
                }
                _ => continue,
            },
        };
        // Only that it is there: what readiness looks at beside it is a requirement's.
        let rights = observing(&resource, &Gvk::new("", "", ""), scope);
        found.extend(rights.into_iter().map(|right| (via.clone(), right)));
    }
    found
}
