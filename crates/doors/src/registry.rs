//! All kinds that are served, behind one face: the one place where a kind's type is forgotten.
//!
//! [`registry`] is the list; the operator, every command and the tests go through it, and nothing else names kinds. A new
//! door is one line there. A kind that is no door (it decides by a function of its own, it is not even ours) implements
//! [`DoorKind`] itself; one that another process serves is a definition.

use std::{collections::BTreeSet, fmt, marker::PhantomData, sync::Arc};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::{CustomResourceExt as _, Resource as _, object::HasStatus as _};
use linchpin_api::{Common, CommonStatus, FailedPart, OurStatus, Ours, consist_binding, pod_transition_rule};
use linchpin_engine::{
    graph::{Edge, Node},
    plan::SpecError,
};
use linchpin_words::{GroupKind, Gvk, KindWord};
use serde_json::Value;

use crate::{
    AppBundleDoor, BootDependencyDoor, CapabilityDoor, DependencyGroupDoor, GlobalDependencyDoor,
    ReadinessProfileDoor, ResourceDependencyDoor, SyncDoor,
    door::{self, CompileInput, Compiled, Door, GraphTies, Insight, SideRecords},
    status_edges,
    subject::{Planned, Subject},
};

/// The kinds that are served, in the order in which they are.
pub fn registry() -> Registry {
    Registry::default()
        .with(door::<ResourceDependencyDoor>())
        .with(door::<DependencyGroupDoor>())
        .with(door::<AppBundleDoor>())
        .with(door::<SyncDoor>())
        .with(door::<GlobalDependencyDoor>())
        .with(door::<CapabilityDoor>())
        .with(door::<BootDependencyDoor>())
        .with(door::<ReadinessProfileDoor>())
        .define(consist_binding::definition)
        .define(pod_transition_rule::definition)
}

/// Some kinds.
#[derive(Clone, Default)]
pub struct Registry {
    kinds: Vec<Arc<dyn DoorKind>>,
    /// Those whose objects wait for others, whether they are served or not.
    ours: BTreeSet<GroupKind>,
    /// The definitions of kinds that are not served here.
    elsewhere: Vec<fn() -> CustomResourceDefinition>,
}

impl Registry {
    /// These kinds, and one more; it takes the place of one of the same name.
    #[must_use]
    pub fn with(mut self, kind: Arc<dyn DoorKind>) -> Self {
        let name = kind.names().gvk;
        if kind.waits() {
            self.ours.insert(name.group_kind());
        }
        match self.kinds.iter_mut().find(|known| known.names().gvk == name) {
            Some(known) => *known = kind,
            None => self.kinds.push(kind),
        }
        self
    }

    /// These kinds, and the definition of one that another process serves.
    #[must_use]
    pub fn define(mut self, definition: fn() -> CustomResourceDefinition) -> Self {
        self.elsewhere.push(definition);
        self
    }

    /// Only the kinds that are called like this, in the order in which they are served.
    #[must_use]
    pub fn only(self, wanted: impl Fn(&KindNames) -> bool) -> Self {
        let kinds = self.kinds.into_iter().filter(|kind| wanted(&kind.names())).collect();
        Self { kinds, ..self }
    }

    /// All kinds.
    pub fn kinds(&self) -> &[Arc<dyn DoorKind>] {
        &self.kinds
    }

    /// Whether the objects of a kind wait for others and say so as ours do, whether it is served or not.
    pub fn is_ours(&self, kind: &GroupKind) -> bool {
        self.ours.contains(kind)
    }

    /// The kinds whose objects wait for others.
    pub fn waiting(&self) -> impl Iterator<Item = &Arc<dyn DoorKind>> {
        self.kinds.iter().filter(|kind| kind.waits())
    }

    /// The kind that a manifest names.
    pub fn of_manifest(&self, api_version: &str, kind: &str) -> Option<&Arc<dyn DoorKind>> {
        let wanted = Gvk::from_api_version(api_version, kind);
        self.kinds.iter().find(|kind| kind.names().gvk == wanted)
    }

    /// The kind that a word means, of those whose objects wait for others.
    pub fn called(&self, word: &KindWord) -> Option<&Arc<dyn DoorKind>> {
        self.waiting().find(|kind| kind.names().is_called(word))
    }

    /// The definitions for the API server, ready to be applied, sorted by name.
    pub fn definitions(&self) -> Vec<CustomResourceDefinition> {
        let served = self.kinds.iter().flat_map(|kind| kind.definitions());
        let mut all: Vec<_> = served.chain(self.elsewhere.iter().map(|definition| definition())).collect();
        all.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        all.iter_mut().for_each(linchpin_api::mark);
        all
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.kinds.iter().map(|kind| kind.names().gvk)).finish()
    }
}

/// What a kind is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindNames {
    /// Group, version and kind.
    pub gvk: Gvk,
    /// Its plural, as in URLs.
    pub plural: String,
    /// Its short names.
    pub short: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl KindNames {
    /// Whether a word means it.
    pub fn is_called(&self, word: &KindWord) -> bool {
        let by_name = self.gvk.kind.eq_ignore_ascii_case(&word.word)
            || self.plural == word.word
            || self.short.contains(&word.word);
        by_name && word.group.as_ref().is_none_or(|group| *group == self.gvk.group)
    }

    /// Its shortest name.
    pub fn shortest(&self) -> String {
        self.short
            .iter()
            .min_by_key(|name| name.len())
            .cloned()
            .unwrap_or_else(|| self.gvk.kind.to_lowercase())
    }
}

/// A kind whose objects are served.
pub trait DoorKind: Send + Sync {
    /// What it is called.
    fn names(&self) -> KindNames;

    /// The subject of an object that has arrived for the first time. `default_service_account` acts for objects that name
    /// none.
    ///
    /// # Errors
    /// The object cannot be read.
    fn subject(
        &self,
        text: &str,
        default_service_account: &Arc<str>,
    ) -> Result<Box<dyn Subject>, serde_json::Error>;

    /// Our finalizer on its objects; none where there is none.
    fn finalizer(&self) -> Option<&'static str> {
        None
    }

    /// The definitions for the API server; none for kinds that are not ours.
    fn definitions(&self) -> Vec<CustomResourceDefinition> {
        Vec::new()
    }

    /// The kind of the records of its objects' history; none where there is none.
    fn history_kind(&self) -> Option<KindNames> {
        None
    }

    /// What the wait-for graph shows to its objects.
    fn insight(&self) -> Insight {
        Insight::Causes
    }

    /// Whether its turns are counted, and what its objects wait for.
    fn counted(&self) -> bool {
        false
    }

    /// Whether its objects wait for others, and say so in a status of ours.
    fn waits(&self) -> bool {
        false
    }

    /// An object for people's tools; none where these have nothing to say about its kind.
    fn view(&self, _text: &str) -> Option<Result<Box<dyn ObjectView>, serde_json::Error>> {
        None
    }
}

/// An object of ours as `tree`, `explain` and `rbac` see it.
pub trait ObjectView: Send + Sync {
    /// The part of the spec that every kind has.
    fn common(&self) -> &Common;
    /// What is to be done for it: what it needs rights for.
    fn compile(&self, input: &CompileInput<'_>) -> Result<Compiled, SpecError>;
    /// The object in the wait-for graph.
    fn node(&self) -> Node;
    /// Its parts, as they are written down.
    fn parts(&self) -> Vec<Node>;
    /// What it waits for and makes, as its status says.
    fn edges(&self) -> Vec<Edge>;
    /// Its status; none if nobody has looked at it yet.
    fn status(&self) -> Option<Value>;
    /// What it says of itself; none if nobody has looked at it yet.
    fn said(&self) -> Option<&CommonStatus>;
    /// What it does that did not come to a good end.
    fn troubles(&self) -> Vec<FailedPart<'_>>;
    /// Why it, and everything in it that does not hold, is as it is.
    fn reasons(&self) -> Vec<&str>;
}

/// The kind of a door.
pub fn door<D: Door>() -> Arc<dyn DoorKind> {
    Arc::new(Of::<D>(PhantomData))
}

struct Of<D>(PhantomData<fn() -> D>);

impl<D: Door> DoorKind for Of<D> {
    fn names(&self) -> KindNames {
        KindNames {
            gvk: D::Object::gvk(),
            plural: D::Object::plural(&()).into_owned(),
            short: D::Object::shortnames().iter().map(|&name| name.to_owned()).collect(),
            namespaced: D::Object::is_namespaced(),
        }
    }

    fn subject(
        &self,
        text: &str,
        default_service_account: &Arc<str>,
    ) -> Result<Box<dyn Subject>, serde_json::Error> {
        Ok(Box::new(Planned::<D>::new(text, Arc::clone(default_service_account))?))
    }

    fn finalizer(&self) -> Option<&'static str> {
        Some(D::Object::FINALIZER)
    }

    fn definitions(&self) -> Vec<CustomResourceDefinition> {
        D::Object::definitions()
    }

    fn history_kind(&self) -> Option<KindNames> {
        D::beside().map(SideRecords::history_kind)
    }

    fn insight(&self) -> Insight {
        D::ties().map(GraphTies::insight).unwrap_or_default()
    }

    fn counted(&self) -> bool {
        D::words().is_some()
    }

    fn waits(&self) -> bool {
        D::Object::WAITS
    }

    fn view(&self, text: &str) -> Option<Result<Box<dyn ObjectView>, serde_json::Error>> {
        let object = serde_json::from_str(text);
        Some(object.map(|object| Box::new(Viewed::<D>(object)) as Box<dyn ObjectView>))
    }
}

struct Viewed<D: Door>(D::Object);

impl<D: Door> ObjectView for Viewed<D> {
    fn common(&self) -> &Common {
        self.0.common()
    }

    fn compile(&self, input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        D::compile(&self.0, input)
    }

    fn node(&self) -> Node {
        Node::here(door::object_ref(&self.0))
    }

    fn parts(&self) -> Vec<Node> {
        let node = self.node();
        self.0.parts().into_iter().map(|part| node.clone().part(part.to_owned())).collect()
    }

    fn edges(&self) -> Vec<Edge> {
        status_edges::read(&self.node(), self.0.status().and_then(|status| status.common().edges.as_deref()))
    }

    fn status(&self) -> Option<Value> {
        serde_json::to_value(self.0.status()?).ok()
    }

    fn said(&self) -> Option<&CommonStatus> {
        self.0.status().map(OurStatus::common)
    }

    fn troubles(&self) -> Vec<FailedPart<'_>> {
        self.0.status().map(OurStatus::troubles).unwrap_or_default()
    }

    fn reasons(&self) -> Vec<&str> {
        let Some(status) = self.0.status() else { return Vec::new() };
        let blockers = status.common().blocked_by.iter().map(|blocker| blocker.reason.as_str());
        let conditions = status.common().conditions.iter().map(|condition| condition.reason.as_str());
        blockers.chain(status.entry_reasons()).chain(conditions).collect()
    }
}
