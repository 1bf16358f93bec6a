//! Looking at objects of others as the user, one request each: what is there, and what may be seen of it.
//!
//! Nothing is watched and nothing kept but which kinds there are. Whatever goes wrong beside a missing right is
//! reported as not visible too: an explanation that ends early is better than none.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use kube::{Client, discovery::Scope};
use linchpin_cluster::{Resource, WordMeaning};
use linchpin_engine::{
    descend::{DescendAnswer, DescendAnswers, DescendQuestion, ObjectAddress},
    graph::Node,
    readiness::{RelatedQuery, RelatedSelect},
};
use linchpin_words::{
    GroupKind, Gvk, KindWord, ObjectRef,
    reference::{built_in, built_in_kind},
};
use serde_json::Value;

use crate::live::LiveObjects;

/// How many objects of one kind are looked at.
const MANY: &str = "500";

/// Lists without what is in the objects: names are all that is wanted.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// So many objects of one kind and place are asked for one by one; more are listed.
const FEW: usize = 3;

/// A kind as the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServedResource {
    pub(crate) gvk: Gvk,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

/// What became of a look at one object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LookResult {
    /// It is there.
    Found(Box<Value>),
    /// It is not.
    Absent,
    /// Its namespace is not.
    NoNamespace,
    /// The server does not know such a kind.
    NotServed,
    /// The user may not see it, or it could not be asked for.
    NotVisible,
}

/// Looks at a cluster.
pub(crate) struct ClusterReader {
    client: Client,
    kinds: BTreeMap<GroupKind, Option<ServedResource>>,
}

impl ClusterReader {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, kinds: BTreeMap::new() }
    }

    /// The kind that a word means, by the rules of the operator; none where the server has no such kind, or does not say.
    pub(crate) async fn meaning(&self, word: &KindWord) -> Result<Option<ServedResource>> {
        if let Some(kind) = built_in(word) {
            let (gvk, plural) = (kind.gvk(), kind.plural.to_owned());
            return Ok(Some(ServedResource { gvk, plural, namespaced: kind.namespaced }));
        }
        let Ok(served) = linchpin_cluster::served(&self.client).await else { return Ok(None) };
        match served.meaning(word) {
            WordMeaning::One(Resource { kind: gvk, plural, namespaced }) => {
                Ok(Some(ServedResource { gvk, plural, namespaced }))
            }
            WordMeaning::None => Ok(None),
            WordMeaning::Several(kinds) => {
                let names: Vec<String> = kinds.iter().map(|kind| kind.group_kind().to_string()).collect();
                bail!("{word} names several kinds: {}; write the group too", names.join(", "))
            }
        }
    }

    /// The kind by its name; asked once.
    pub(crate) async fn kind(&mut self, kind: &GroupKind) -> Option<ServedResource> {
        if let Some(known) = built_in_kind(&kind.group, &kind.kind) {
            let (gvk, plural) = (known.gvk(), known.plural.to_owned());
            return Some(ServedResource { gvk, plural, namespaced: known.namespaced });
        }
        if let Some(known) = self.kinds.get(kind) {
            return known.clone();
        }
        let found = kube::discovery::group(&self.client, &kind.group).await.ok();
        let found = found.and_then(|group| group.recommended_kind(&kind.kind));
        let found = found.map(|(resource, capabilities)| ServedResource {
            gvk: Gvk::new(resource.group, resource.version, resource.kind),
            plural: resource.plural,
            namespaced: capabilities.scope == Scope::Namespaced,
        });
        self.kinds.insert(kind.clone(), found.clone());
        found
    }

    /// One object.
    pub(crate) async fn object(
        &mut self,
        kind: &GroupKind,
        namespace: Option<&str>,
        name: &str,
    ) -> LookResult {
        let Some(resource) = self.kind(kind).await else { return LookResult::NotServed };
        let namespace = namespace.filter(|_| resource.namespaced);
        match self.read(&format!("{}/{name}", path(&resource, namespace)), &[]).await {
            Ok(found) => LookResult::Found(Box::new(found)),
            Err(404) => match namespace {
                Some(namespace) if self.lacks_namespace(namespace).await => LookResult::NoNamespace,
                _ => LookResult::Absent,
            },
            Err(_) => LookResult::NotVisible,
        }
    }

    /// The bindings of `linchpin consist` in a namespace; none where they cannot be seen.
    pub(super) async fn bindings(&self, namespace: &str) -> Vec<Value> {
        let path = format!("/apis/linchpin.dev/v1alpha1/namespaces/{namespace}/consistbindings");
        let list = self.read(&path, &[]).await.unwrap_or_default();
        list.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// Whether a namespace is surely not there.
    pub(crate) async fn lacks_namespace(&self, namespace: &str) -> bool {
        self.read(&format!("/api/v1/namespaces/{namespace}"), &[]).await == Err(404)
    }

    /// Why an object of ours is not there, in words.
    pub(crate) async fn explain_missing(&self, live: &LiveObjects, node: &Node) -> String {
        let (kind, name) = (&node.object.kind.kind, &node.object.name);
        let Some(namespace) = node.object.namespace.as_deref() else {
            return format!("there is no {kind} {name}{}", live.meant(node));
        };
        if self.lacks_namespace(namespace).await {
            return format!("namespace {namespace} does not exist");
        }
        format!("there is no {kind} {name} in namespace {namespace}{}", live.meant(node))
    }

    /// Those of these objects that surely are not there, in few requests.
    pub(crate) async fn absent(&mut self, objects: &BTreeSet<ObjectRef>) -> BTreeSet<ObjectRef> {
        let mut places: BTreeMap<(&GroupKind, Option<&str>), Vec<&ObjectRef>> = BTreeMap::new();
        for object in objects {
            places.entry((&object.kind, object.namespace.as_deref())).or_default().push(object);
        }
        let mut absent = BTreeSet::new();
        for members in places.into_values() {
            let listed = if members.len() > FEW { self.names(members[0]).await } else { Vec::new() };
            for object in members.into_iter().filter(|object| !listed.contains(&object.name)) {
                let look = self.object(&object.kind, object.namespace.as_deref(), &object.name).await;
                if matches!(look, LookResult::Absent | LookResult::NoNamespace) {
                    absent.insert(object.clone());
                }
            }
        }
        absent
    }

    /// The names of the objects of the same kind in the same place.
    pub(crate) async fn names(&self, object: &ObjectRef) -> Vec<String> {
        let known = built_in_kind(&object.kind.group, &object.kind.kind).map(|known| ServedResource {
            gvk: known.gvk(),
            plural: known.plural.to_owned(),
            namespaced: known.namespaced,
        });
        let Some(resource) = known.or_else(|| self.kinds.get(&object.kind).cloned().flatten()) else {
            return Vec::new();
        };
        let query = [("limit", MANY.to_owned())];
        let place = path(&resource, object.namespace.as_deref());
        let Ok(found) = self.read_as(&place, &query, METADATA).await else { return Vec::new() };
        let items = found.get("items").and_then(Value::as_array).into_iter().flatten();
        let name =
            |object: &Value| object.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
        items.filter_map(name).collect()
    }

    /// The object at a place, whose kind and version are known.
    pub(crate) async fn at(&mut self, place: &ObjectAddress) -> LookResult {
        self.object(&place.kind.group_kind(), place.namespace.as_deref(), &place.name).await
    }

    /// What these questions need.
    pub(crate) async fn answers(&mut self, questions: Vec<DescendQuestion>) -> DescendAnswers {
        let mut answers = DescendAnswers::default();
        for question in questions {
            let found = self.answer(&question).await;
            answers.0.insert(question, found);
        }
        answers
    }

    async fn answer(&mut self, question: &DescendQuestion) -> DescendAnswer {
        let (gvk, namespace, select) = match question {
            DescendQuestion::Events { namespace, uid } => return self.events(namespace, uid).await,
            DescendQuestion::Related(RelatedQuery::Served { gvk }) => return self.served(gvk).await,
            DescendQuestion::Related(RelatedQuery::Objects { gvk, namespace, select }) => {
                (gvk, namespace.as_deref(), select)
            }
        };
        match select {
            RelatedSelect::Name(name) => match self.object(&gvk.group_kind(), namespace, name).await {
                LookResult::Found(object) => DescendAnswer::Objects(vec![*object]),
                LookResult::Absent | LookResult::NoNamespace | LookResult::NotServed => {
                    DescendAnswer::Objects(Vec::new())
                }
                LookResult::NotVisible => DescendAnswer::NotVisible,
            },
            RelatedSelect::Labels(labels) => {
                let Some(resource) = self.kind(&gvk.group_kind()).await else {
                    return DescendAnswer::NotVisible;
                };
                let labels: Vec<String> =
                    labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let query = [("labelSelector", labels.join(",")), ("limit", MANY.to_owned())];
                self.list(&path(&resource, namespace), &query).await
            }
        }
    }

    /// Whether discovery has a kind at this version: what it says of it, or nothing.
    async fn served(&self, gvk: &Gvk) -> DescendAnswer {
        let root = if gvk.group.is_empty() { "/api" } else { "/apis" };
        match self.read(&format!("{root}/{}", gvk.api_version()), &[]).await {
            Ok(mut list) => {
                let found = list.get_mut("resources").and_then(Value::as_array_mut).map(std::mem::take);
                let of_kind =
                    |one: &Value| one.get("kind").and_then(Value::as_str) == Some(gvk.kind.as_str());
                DescendAnswer::Objects(found.into_iter().flatten().filter(of_kind).collect())
            }
            Err(404) => DescendAnswer::Objects(Vec::new()),
            Err(_) => DescendAnswer::NotVisible,
        }
    }

    /// The Events about an object.
    pub(crate) async fn events(&self, namespace: &str, uid: &str) -> DescendAnswer {
        let place = if namespace.is_empty() { "default" } else { namespace };
        let about = format!("involvedObject.uid={uid}");
        let query = [("fieldSelector", about), ("limit", MANY.to_owned())];
        self.list(&format!("/api/v1/namespaces/{place}/events"), &query).await
    }

    /// The objects at a path.
    pub(crate) async fn list(&self, path: &str, query: &[(&str, String)]) -> DescendAnswer {
        match self.read(path, query).await {
            Ok(mut list) => match list.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => DescendAnswer::Objects(items),
                _ => DescendAnswer::Objects(Vec::new()),
            },
            Err(_) => DescendAnswer::NotVisible,
        }
    }

    /// What is at a path; else the server's code, 0 if it did not answer.
    async fn read(&self, path: &str, query: &[(&str, String)]) -> Result<Value, u16> {
        self.read_as(path, query, "application/json").await
    }

    async fn read_as(&self, path: &str, query: &[(&str, String)], form: &str) -> Result<Value, u16> {
        let query: Vec<String> =
            query.iter().map(|(key, value)| format!("{key}={}", encoded(value))).collect();
        let url = format!("{path}?{}", query.join("&"));
        let request = http::Request::get(url).header("Accept", form).body(Vec::new()).map_err(|_| 0_u16)?;
        self.client.request::<Value>(request).await.map_err(|error| match error {
            kube::Error::Api(status) => status.code,
            _ => 0,
        })
    }
}

/// Where objects of a kind are.
pub(crate) fn path(resource: &ServedResource, namespace: Option<&str>) -> String {
    let group = match resource.gvk.group.as_str() {
        "" => format!("/api/{}", resource.gvk.version),
        group => format!("/apis/{group}/{}", resource.gvk.version),
    };
    match namespace.filter(|_| resource.namespaced) {
        Some(namespace) => format!("{group}/namespaces/{namespace}/{}", resource.plural),
        None => format!("{group}/{}", resource.plural),
    }
}

/// A value fit for a query.
fn encoded(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    value
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::live::server::answering;

    /// A server with these kinds: group, kind, short name.
    fn serving(kinds: &'static [(&str, &str, &str)]) -> ClusterReader {
        ClusterReader::new(answering(move |request| {
            if request.starts_with("GET /api?") || request == "GET /api" {
                return ("200 OK", json!({"kind": "APIGroupDiscoveryList", "items": []}));
            }
            let group = |(group, kind, short): &(&str, &str, &str)| {
                let plural = format!("{}s", kind.to_lowercase());
                let resource = json!({"resource": plural, "responseKind": {"group": group, "version": "v1", "kind": kind},
                    "scope": "Namespaced", "shortNames": [short], "verbs": ["get", "list"]});
                json!({"metadata": {"name": group}, "versions": [{"version": "v1", "resources": [resource]}]})
            };
            let groups: Vec<Value> = kinds.iter().map(group).collect();
            ("200 OK", json!({"kind": "APIGroupDiscoveryList", "items": groups}))
        }))
    }

    #[tokio::test]
    async fn a_word_means_what_it_means_to_the_operator() {
        let reader = serving(&[
            ("a.example.com", "Widget", "wd"),
            ("b.example.com", "Widget", "w"),
            ("metrics.k8s.io", "Gauge", "g"),
            ("b.example.org", "Gauge", "g"),
        ]);
        for (word, expected) in [
            ("wd", Ok(Some("Widget.a.example.com"))),
            ("widget.b.example.com", Ok(Some("Widget.b.example.com"))),
            ("g", Ok(Some("Gauge.metrics.k8s.io"))),
            ("nothing", Ok(None)),
            (
                "widgets",
                Err(
                    "widgets names several kinds: Widget.a.example.com, Widget.b.example.com; write the group too",
                ),
            ),
        ] {
            let found = reader.meaning(&KindWord::parse(word).unwrap()).await;
            let found = found.map(|found| found.map(|found| found.gvk.group_kind().to_string()));
            let expected = expected.map(|kind| kind.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(found.map_err(|error| error.to_string()), expected, "{word}");
        }
    }

    #[test]
    fn paths_and_queries_are_those_of_the_api_server() {
        let resource = |group: &str, namespaced| ServedResource {
            gvk: Gvk::new(group, "v1", "Thing"),
            plural: "things".to_owned(),
            namespaced,
        };
        assert_eq!(path(&resource("", true), Some("shop")), "/api/v1/namespaces/shop/things");
        assert_eq!(path(&resource("apps", true), Some("shop")), "/apis/apps/v1/namespaces/shop/things");
        assert_eq!(path(&resource("apps", false), Some("shop")), "/apis/apps/v1/things");
        assert_eq!(encoded("app=web,tier=a/b ü"), "app%3Dweb%2Ctier%3Da%2Fb%20%C3%BC");
    }
}
