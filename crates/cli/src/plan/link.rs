//! Which dependency is provided by what, from manifests alone.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_api::{
    Sync, SyncDependency,
    common::LabelSelector,
    sync::{NeededFor, Strength, SyncSource, dependency::RequiredStatus},
};
use linchpin_doors::kind_that_is_defined;
use linchpin_engine::readiness::Wanted;
use linchpin_lang::template::parse_documents;
use linchpin_words::{GroupKind, KindWord, ObjectRef, Reference, reference::built_in};
use serde_json::Value;

/// What is known of one dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkVerdict {
    /// Something provides it: what.
    Ok(String),
    /// Nothing does.
    None,
    /// It is not known from here.
    Unknown(String),
}

/// Objects that a cluster may have.
#[derive(Clone, Debug)]
pub(super) struct SearchedObjects {
    pub(super) word: KindWord,
    pub(super) namespace: String,
    pub(super) which: SearchedBy,
}

/// Which objects of a kind.
#[derive(Clone, Debug)]
pub(super) enum SearchedBy {
    /// The one of this name.
    Name(String),
    /// Those with these labels.
    Labels(LabelSelector),
}

/// One dependency, and who provides it.
#[derive(Clone, Debug)]
pub(super) struct DependencyLink {
    pub(super) sync: ObjectRef,
    pub(super) name: String,
    pub(super) what: String,
    pub(super) verdict: LinkVerdict,
    /// What could be looked for in a cluster.
    pub(super) object: Option<SearchedObjects>,
    /// The export of a Sync that is meant.
    pub(super) export: Option<String>,
    /// What must be served: group, version, kind.
    pub(super) api: Option<(String, Option<String>, String)>,
    /// What it leads to, for the order: another Sync.
    pub(super) to: Option<ObjectRef>,
    pub(super) soft: bool,
}

impl DependencyLink {
    /// The namespace of the Sync that depends.
    pub(super) fn namespace(&self) -> String {
        self.sync.namespace.clone().unwrap_or_default()
    }
}

/// A Sync whose objects are not known.
pub(super) struct UnseenSync {
    pub(super) sync: ObjectRef,
    pub(super) namespace: String,
    pub(super) source: SyncSource,
    /// The ConfigMap or Secret that they are in.
    pub(super) kept: Option<(&'static str, String)>,
    /// The Secret that opens the door to them.
    pub(super) secret: Option<String>,
}

fn unseen(sync: ObjectRef, namespace: String, source: SyncSource) -> UnseenSync {
    let map = source.config_map_ref.as_ref().map(|map| ("configmap", map.name.clone()));
    let kept = map.or_else(|| source.secret_ref.as_ref().map(|secret| ("secret", secret.name.clone())));
    let http = source.http.as_ref().and_then(|http| http.secret_ref.as_ref());
    let secret = http.or_else(|| source.oci.as_ref().and_then(|oci| oci.secret_ref.as_ref()));
    let secret = secret.map(|secret| secret.name.clone());
    UnseenSync { sync, namespace, source, kept, secret }
}

/// An object that is given itself or in a Sync.
struct GivenObject {
    kind: GroupKind,
    namespace: String,
    name: String,
    labels: Value,
    /// The Sync that has it.
    by: Option<ObjectRef>,
}

/// Where the template of pods is in an object that makes some.
const TEMPLATES: [&str; 2] = ["/spec/template", "/spec/jobTemplate/spec/template"];

/// Everything that was given.
pub(super) struct PlanManifests {
    pub(super) syncs: Vec<Sync>,
    /// Every object that is given itself or in a Sync.
    objects: Vec<GivenObject>,
    capabilities: Vec<String>,
    /// Definitions of kinds.
    definitions: Vec<Value>,
    /// ConfigMaps and Secrets, by kind, namespace and name.
    maps: BTreeMap<(String, String, String), Value>,
    /// The Syncs whose objects are not known.
    blind: BTreeSet<ObjectRef>,
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// A kind as people write it, where only its resource is known.
fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

pub(super) fn sync_ref(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef::namespaced(GroupKind::new("linchpin.dev", "Sync"), namespace, name)
}

impl PlanManifests {
    /// Sorts documents; objects without a namespace are in this one.
    pub(super) fn new(documents: Vec<Value>, namespace: &str) -> Result<Self> {
        let mut given = Self {
            syncs: Vec::new(),
            objects: Vec::new(),
            capabilities: Vec::new(),
            definitions: Vec::new(),
            maps: BTreeMap::new(),
            blind: BTreeSet::new(),
        };
        let mut open: Vec<Value> = documents.into_iter().rev().collect();
        while let Some(mut document) = open.pop() {
            if let Some(items) = document.get_mut("items").and_then(Value::as_array_mut) {
                open.extend(items.drain(..).rev());
                continue;
            }
            let (version, kind) =
                (text(&document, "/apiVersion").to_owned(), text(&document, "/kind").to_owned());
            let place = Some(text(&document, "/metadata/namespace")).filter(|place| !place.is_empty());
            let place = place.unwrap_or(namespace).to_owned();
            let name = text(&document, "/metadata/name").to_owned();
            given.take(&document, &place, None);
            match (version.as_str(), kind.as_str()) {
                ("linchpin.dev/v1alpha1", "Sync") => {
                    document["metadata"]["namespace"] = place.into();
                    if let Some(fields) = document.as_object_mut() {
                        fields.remove("status");
                    }
                    let read = serde_json::from_value(document);
                    given.syncs.push(read.with_context(|| format!("Sync {name} is not understood"))?);
                }
                ("linchpin.dev/v1alpha1", "Capability") => given.capabilities.push(name),
                ("v1", "ConfigMap" | "Secret") => {
                    given.maps.insert((kind, place, name), document);
                }
                _ => {}
            }
        }
        for sync in given.syncs.clone() {
            given.render(&sync);
        }
        Ok(given)
    }

    /// Notes an object.
    fn take(&mut self, body: &Value, namespace: &str, by: Option<&ObjectRef>) {
        let (version, kind) = (text(body, "/apiVersion"), text(body, "/kind"));
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let place = Some(text(body, "/metadata/namespace")).filter(|place| !place.is_empty());
        let name = text(body, "/metadata/name").to_owned();
        if kind == "CustomResourceDefinition" {
            self.definitions.push(body.clone());
        }
        let namespace = place.unwrap_or(namespace).to_owned();
        let labels = |path: &str| body.pointer(path).cloned().unwrap_or_default();
        let one = |kind: GroupKind, name: String, labels: Value| GivenObject {
            kind,
            namespace: namespace.clone(),
            name,
            labels,
            by: by.cloned(),
        };
        // What makes pods gives them too: nobody knows their names, and everybody their labels.
        let pods = TEMPLATES.iter().filter(|place| body.pointer(place).is_some());
        let pods = pods.map(|place| labels(&format!("{place}/metadata/labels")));
        let pods: Vec<_> = pods.map(|labels| one(GroupKind::new("", "Pod"), String::new(), labels)).collect();
        self.objects.push(one(GroupKind::new(group, kind), name, labels("/metadata/labels")));
        self.objects.extend(pods);
    }

    /// Notes the objects of a Sync, as far as they can be seen.
    fn render(&mut self, sync: &Sync) {
        let namespace = sync.metadata.namespace.clone().unwrap_or_default();
        let by = sync_ref(&namespace, sync.metadata.name.as_deref().unwrap_or_default());
        let source = &sync.spec.source;
        if let Some(objects) = &source.objects {
            for object in objects {
                self.take(&Value::Object(object.clone()), &namespace, Some(&by));
            }
            return;
        }
        self.blind.insert(by.clone());
        let unseen = unseen(by, namespace, source.clone());
        let place = unseen.kept.as_ref().map(|(kind, name)| {
            let kind = if *kind == "secret" { "Secret" } else { "ConfigMap" };
            (kind.to_owned(), unseen.namespace.clone(), name.clone())
        });
        if let Some(found) = place.and_then(|place| self.maps.get(&place).cloned()) {
            self.supply_kept(&unseen, &found);
        }
    }

    /// The Syncs whose objects are not known.
    pub(super) fn unseen(&self) -> Vec<UnseenSync> {
        let name = |sync: &Sync| {
            let namespace = sync.metadata.namespace.clone().unwrap_or_default();
            let by = sync_ref(&namespace, sync.metadata.name.as_deref().unwrap_or_default());
            (by, namespace)
        };
        let all = self.syncs.iter().map(|sync| (name(sync), sync));
        let blind = all.filter(|((by, _), _)| self.blind.contains(by));
        blind.map(|((by, namespace), sync)| unseen(by, namespace, sync.spec.source.clone())).collect()
    }

    /// A Secret that was given.
    pub(super) fn secret(&self, namespace: &str, name: &str) -> Option<Value> {
        self.maps.get(&("Secret".to_owned(), namespace.to_owned(), name.to_owned())).cloned()
    }

    /// Says which objects a Sync has.
    pub(super) fn supply(&mut self, unseen: &UnseenSync, objects: &[Value]) {
        self.blind.remove(&unseen.sync);
        for object in objects {
            self.take(object, &unseen.namespace, Some(&unseen.sync));
        }
    }

    /// Says what the ConfigMap or Secret of a Sync's source holds.
    pub(super) fn supply_kept(&mut self, unseen: &UnseenSync, found: &Value) {
        let source = &unseen.source;
        let named = source.config_map_ref.as_ref().or(source.secret_ref.as_ref());
        let key = named.and_then(|named| named.key.as_ref());
        let encoded = found.get("kind").and_then(Value::as_str) == Some("Secret");
        let mut objects = Vec::new();
        for field in ["data", "stringData"] {
            for (name, value) in found.get(field).and_then(Value::as_object).into_iter().flatten() {
                let text = value.as_str().unwrap_or_default();
                let decoded = || String::from_utf8(STANDARD.decode(text).ok()?).ok();
                let text = if encoded && field == "data" { decoded() } else { Some(text.to_owned()) };
                let text = text.filter(|_| key.is_none_or(|wanted| wanted == name));
                let documents = text.map(|text| parse_documents(name, &text));
                objects.extend(documents.into_iter().flatten().flatten());
            }
        }
        self.supply(unseen, &objects);
    }

    /// Whether no Sync was given.
    pub(super) fn is_empty(&self) -> bool {
        self.syncs.is_empty()
    }

    /// Every dependency of every Sync.
    pub(super) fn links(&self) -> Vec<DependencyLink> {
        let all =
            self.syncs.iter().flat_map(|sync| sync.spec.dependencies.iter().map(move |entry| (sync, entry)));
        all.map(|(sync, entry)| self.link(sync, entry)).collect()
    }

    fn link(&self, sync: &Sync, entry: &SyncDependency) -> DependencyLink {
        let own = sync.metadata.namespace.clone().unwrap_or_default();
        let me = sync_ref(&own, sync.metadata.name.as_deref().unwrap_or_default());
        let available = entry.state.as_deref().is_none_or(|word| Wanted::parse(word) == Wanted::Ready)
            && entry.required_status != Some(RequiredStatus::InProgress);
        let soft = match entry.strength {
            Some(strength) => strength == Strength::Soft,
            None => entry.needed_for == Some(NeededFor::Available) && available,
        };
        let mut link = DependencyLink {
            sync: me,
            name: entry.name.clone(),
            what: String::new(),
            verdict: LinkVerdict::None,
            object: None,
            export: None,
            api: None,
            to: None,
            soft,
        };
        let given = [
            entry.sync.is_some(),
            entry.object.is_some(),
            entry.objects.is_some(),
            entry.capability.is_some(),
        ];
        // The API server takes no such entry.
        if given.iter().filter(|given| **given).count() != 1 {
            "it needs exactly one of sync, object, objects and capability".clone_into(&mut link.what);
            return link;
        }
        if let Some(other) = &entry.on_sync() {
            let place = other.namespace.as_ref().unwrap_or(&own);
            let to = sync_ref(place, &other.name);
            link.what = match &other.export {
                Some(export) => format!("export {export} of {to}"),
                None => to.to_string(),
            };
            let found = self.syncs.iter().find(|one| {
                one.metadata.name.as_ref() == Some(&other.name)
                    && one.metadata.namespace.as_ref() == Some(place)
            });
            let declared = found.is_some_and(|one| {
                other
                    .export
                    .as_ref()
                    .is_none_or(|export| one.spec.exports.iter().any(|known| known.name == *export))
            });
            if declared {
                link.verdict = LinkVerdict::Ok("given".to_owned());
            } else if found.is_none() {
                link.object = Some(SearchedObjects {
                    word: KindWord::new("sync"),
                    namespace: place.clone(),
                    which: SearchedBy::Name(other.name.clone()),
                });
                link.export.clone_from(&other.export);
            }
            link.to = Some(to);
        } else if let Some(object) = &entry.object {
            let (word, name) = match (&object.resource, &object.kind, &object.name) {
                (Some(resource), _, _) => match Reference::parse(resource) {
                    Ok(reference) => (reference.word, reference.name.unwrap_or_default()),
                    Err(error) => {
                        link.what.clone_from(resource);
                        link.verdict = LinkVerdict::Unknown(error.to_string());
                        return link;
                    }
                },
                (None, kind, name) => {
                    let kind = kind.as_deref().unwrap_or_default();
                    (
                        KindWord::from_manifest(object.api_version.as_deref(), kind),
                        name.clone().unwrap_or_default(),
                    )
                }
            };
            let namespace = object.namespace.clone().unwrap_or(own);
            let sought = SearchedObjects { word, namespace, which: SearchedBy::Name(name) };
            self.link_objects(&mut link, object.kind.as_deref(), sought);
        } else if let Some(objects) = &entry.objects {
            let word = KindWord::from_manifest(objects.api_version.as_deref(), &objects.kind);
            let namespace = objects.namespace.clone().unwrap_or(own);
            let which = SearchedBy::Labels(objects.selector.clone());
            self.link_objects(&mut link, Some(&objects.kind), SearchedObjects { word, namespace, which });
            let none_will_do =
                objects.expect.is_some_and(|expect| [expect.at_least, expect.exactly].contains(&Some(0)));
            if none_will_do {
                link.verdict = LinkVerdict::Ok("none will do".to_owned());
            }
        } else if let Some(capability) = &entry.capability {
            self.link_capability(&mut link, capability, &own);
        }
        if entry.state.as_deref().is_some_and(|word| Wanted::parse(word) == Wanted::Absent) {
            link.verdict = LinkVerdict::Ok("is to be absent".to_owned());
            link.to = None;
        }
        link
    }

    /// `written` is the kind as it is written, where it is.
    fn link_objects(&self, link: &mut DependencyLink, written: Option<&str>, sought: SearchedObjects) {
        let SearchedObjects { word, namespace, which } = &sought;
        let known = built_in(word);
        let namespaced = known.is_none_or(|known| known.namespaced);
        let as_written = || written.map_or_else(|| capitalised(&word.word), str::to_owned);
        let defined = || self.definitions.iter().find_map(|body| kind_that_is_defined(body, word));
        let found = known.map(|known| known.gvk().group_kind()).or_else(defined);
        let kind = found.as_ref().map_or_else(as_written, |found| found.kind.clone());
        let group = found.map(|found| found.group).or_else(|| word.group.clone());
        let called = match which {
            SearchedBy::Name(name) => name.clone(),
            SearchedBy::Labels(selector) => format!("[{}]", selector.requirements().join(",")),
        };
        // Kinds that are neither Kubernetes' own nor ours are called as their group has them.
        let shown = match (known, group.as_deref()) {
            (None, Some(group)) if !["", "linchpin.dev"].contains(&group) => format!("{kind}.{group}"),
            _ => kind.clone(),
        };
        link.what =
            if namespaced { format!("{shown} {namespace}/{called}") } else { format!("{shown} {called}") };
        let is = |object: &&GivenObject| match which {
            SearchedBy::Name(name) => object.name == *name,
            SearchedBy::Labels(selector) => {
                selector.matches(&|key| object.labels.get(key).and_then(Value::as_str).map(str::to_owned))
            }
        };
        let found = self
            .objects
            .iter()
            .filter(|object| object.kind.kind.eq_ignore_ascii_case(&kind))
            .filter(|object| group.as_ref().is_none_or(|group| *group == object.kind.group))
            .filter(|object| !namespaced || object.namespace == *namespace)
            .find(is);
        match found.map(|object| &object.by) {
            Some(Some(by)) => {
                link.verdict = LinkVerdict::Ok(format!("{by} makes it"));
                link.to = Some(by.clone()).filter(|by| *by != link.sync);
            }
            Some(None) => link.verdict = LinkVerdict::Ok("given".to_owned()),
            None if !self.blind.is_empty() => {
                link.verdict = LinkVerdict::Unknown("the source of a Sync is not given here".to_owned());
            }
            None => {}
        }
        link.object = Some(sought);
    }

    fn link_capability(
        &self,
        link: &mut DependencyLink,
        capability: &linchpin_api::sync::dependency::CapabilityRef,
        own: &str,
    ) {
        if let Some(name) = &capability.name {
            link.what = format!("Capability {name}");
            let provider = self.syncs.iter().find(|one| {
                one.metadata.namespace.as_deref() == Some(own)
                    && one.spec.provides.iter().any(|provided| provided.capability == *name)
            });
            if self.capabilities.contains(name) {
                link.verdict = LinkVerdict::Ok("given".to_owned());
            } else if let Some(provider) = provider {
                let by = sync_ref(own, provider.metadata.name.as_deref().unwrap_or_default());
                link.verdict = LinkVerdict::Ok(format!("{by} provides it"));
                link.to = Some(by).filter(|by| *by != link.sync);
            }
            link.object = Some(SearchedObjects {
                word: KindWord::new("capability"),
                namespace: String::new(),
                which: SearchedBy::Name(name.clone()),
            });
        } else if let Some(api) = &capability.api {
            let group = api.group.clone().unwrap_or_default();
            let kind = GroupKind::new(&group, &api.kind);
            let defines = |body: &Value| {
                text(body, "/spec/group") == kind.group && text(body, "/spec/names/kind") == kind.kind
            };
            link.what = format!("kind {kind}");
            let word = KindWord { group: Some(group.clone()), ..KindWord::new(&api.kind) };
            link.api = Some((group, api.version.clone(), api.kind.clone()));
            if built_in(&word).is_some() {
                link.verdict = LinkVerdict::Ok("Kubernetes' own".to_owned());
            } else if self.definitions.iter().any(defines) {
                link.verdict = LinkVerdict::Ok("given".to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests;
