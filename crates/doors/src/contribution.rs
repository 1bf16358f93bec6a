//! What an object of ours contributes to the wait-for graph, read from its spec and its status alone.
//!
//! The operator's own graph is fed by the engine. Whoever only reads objects, such as `linchpin tree` and
//! `linchpin explain`, draws the same edges from what the status says: each dependency that was looked at is a wait,
//! each object that an action writes is a product, and each group is a part that its object waits for. What has not
//! been looked at yet contributes nothing. Pure, like everything here.

mod app_bundle;

use kube_core::Resource;
use linchpin_api::{
    Action, AppBundle, Common, Dependency, DependencyGroup, ResourceDependency,
    action::ActionType,
    status::{ActionStatus, DependencyStatus, GroupStatus, ObjectName},
};
use linchpin_engine::{
    contract::Via,
    graph::{Edge, Node, Wait, WaitState},
};
use linchpin_words::{
    GroupKind, Gvk, KindWord, ObjectRef, Reason, Text, Timestamp,
    reference::{Reference, built_in, built_in_kind},
};
use serde_json::Value;

pub use self::app_bundle::of_app_bundle;
use crate::{cluster, names, owner::Owner, sketch};

/// An object of ours, and what it waits for and makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contribution {
    /// The object.
    pub node: Node,
    /// Its edges: give them to `Graph::set` with the object as their owner.
    pub edges: Vec<Edge>,
    /// How each of its parts stands.
    pub parts: Vec<PartState>,
}

/// How one part of an object says that it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartState {
    /// The part.
    pub node: Node,
    /// How far it is.
    pub progress: Progress,
    /// Why, in one word.
    pub reason: String,
    /// Why, in one line.
    pub message: String,
    /// Since when.
    pub since: Option<Timestamp>,
}

/// How far a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All of it is done and holds.
    Ready,
    /// Something is being done.
    Running,
    /// It is held.
    Waiting,
    /// It does not go on by itself.
    Failed,
}

impl PartState {
    fn of_group(node: Node, status: &GroupStatus) -> Self {
        let progress = match status.phase.as_str() {
            _ if status.ready => Progress::Ready,
            "Failed" => Progress::Failed,
            "Running" => Progress::Running,
            _ => Progress::Waiting,
        };
        let (reason, message) = (status.reason.clone(), status.message.clone());
        Self { node, progress, reason, message, since: Some(status.since) }
    }

    /// The wait of the whole for this part.
    fn wait(&self) -> Wait {
        let standing = match self.progress {
            Progress::Ready => WaitState::Met,
            Progress::Failed => WaitState::Failed,
            Progress::Running | Progress::Waiting => WaitState::InProgress,
        };
        let mut wait = Wait::new(standing, self.reason.clone()).detail(self.message.clone());
        wait.since = self.since.map(Into::into);
        wait
    }

    /// The wait of a part that comes after this one: that this one has to wait itself makes it no less of a cause.
    fn wait_in_order(&self) -> Wait {
        let mut wait = self.wait();
        if is_in_line(&wait.reason) {
            wait.reason = Reason::Waiting.as_str().into();
        }
        wait
    }
}

/// Whether a reason says no more than that something has its turn later.
fn is_in_line(reason: &str) -> bool {
    [Reason::WaitingForTier, Reason::WaitingForGroup, Reason::WaitingForStep]
        .iter()
        .any(|turn| turn.as_str() == reason)
}

/// What a ResourceDependency contributes.
pub fn of_resource_dependency(object: &ResourceDependency) -> Contribution {
    let owner = Owner::of(object);
    let node = Node::here(owner.object_ref());
    let mut edges = Vec::new();
    if let Some(status) = &object.status {
        let part = Part {
            owner: &owner,
            common: &object.spec.common,
            from: &node,
            name: None,
            dependencies: &object.spec.dependencies,
            actions: &object.spec.actions,
        };
        part.waits(&status.dependencies, &mut edges);
        part.products(&status.actions, &mut edges);
    }
    Contribution { node, edges, parts: Vec::new() }
}

/// What a DependencyGroup contributes: it waits for its groups, and they for each other and for what they name.
pub fn of_dependency_group(object: &DependencyGroup) -> Contribution {
    let owner = Owner::of(object);
    let node = Node::here(owner.object_ref());
    let mut edges = Vec::new();
    let shown = object.status.as_ref().map_or(&[][..], |status| status.groups.as_slice());
    let parts: Vec<PartState> =
        shown.iter().map(|status| PartState::of_group(node.clone().part(&status.name), status)).collect();
    for group in &object.spec.groups {
        let found = shown.iter().zip(&parts).find(|(status, _)| status.name == group.name);
        let Some((status, state)) = found else { continue };
        let from = state.node.clone();
        edges.push(Edge::waits(node.clone(), from.clone(), state.wait()));
        let before = shown.iter().zip(&parts).filter(|(other, _)| group.depends_on.contains(&other.name));
        edges.extend(
            before.map(|(_, state)| Edge::waits(from.clone(), state.node.clone(), state.wait_in_order())),
        );
        let part = Part {
            owner: &owner,
            common: &object.spec.common,
            from: &from,
            name: Some(&group.name),
            dependencies: &group.dependencies,
            actions: &group.actions,
        };
        part.waits(&status.dependencies, &mut edges);
        part.products(&status.actions, &mut edges);
    }
    Contribution { node, edges, parts }
}

/// Dependencies and actions that belong together.
struct Part<'a> {
    owner: &'a Owner,
    common: &'a Common,
    from: &'a Node,
    name: Option<&'a str>,
    dependencies: &'a [Dependency],
    actions: &'a [Action],
}

impl Part<'_> {
    /// An optional dependency that is not met holds nothing up, so it is no wait.
    fn waits(&self, shown: &[DependencyStatus], edges: &mut Vec<Edge>) {
        let names = names::of_part(self.name, self.dependencies, self.actions);
        for (entry, named) in self.dependencies.iter().zip(&names.dependencies) {
            let name = entry.name.as_deref().unwrap_or(named.id.as_str());
            let status = shown.iter().find(|status| status.name == name);
            let Some(status) = status.filter(|status| status.met || !entry.optional) else { continue };
            let Some(to) = self.target(entry, status) else { continue };
            let wait = Wait::new(standing(status), status.reason.clone())
                .detail(status.message.clone())
                .since(status.since.into());
            edges.push(Edge::waits(self.from.clone(), to, wait));
        }
    }

    fn products(&self, shown: &[ActionStatus], edges: &mut Vec<Edge>) {
        let names = names::of_part(self.name, self.dependencies, self.actions);
        for (entry, named) in self.actions.iter().zip(&names.actions) {
            let name = entry.name.as_ref().unwrap_or(&named.words[0]);
            let Some(status) = shown.iter().find(|status| status.name == *name) else { continue };
            // A skipped action makes nothing, and nobody waits for it to.
            let done = match status.state.as_str() {
                "Skipped" => continue,
                state => state == "Completed",
            };
            for object in written(entry) {
                let made = object_ref(&object, &self.owner.namespace);
                edges.extend(made.map(|made| {
                    Edge::produces(self.from.clone(), self.somewhere(made, entry.cluster.as_ref()), done)
                }));
            }
        }
    }

    fn target(&self, entry: &Dependency, status: &DependencyStatus) -> Option<Node> {
        let object = match &status.resolved {
            Some(resolved) => resolved_ref(resolved, entry),
            None => self.as_written(entry)?,
        };
        let mut node = self.somewhere(object, entry.cluster.as_ref());
        node.part = entry.group.as_ref().map(Text::from);
        Some(node)
    }

    /// A dependency whose kind is not served yet, as it is written.
    fn as_written(&self, entry: &Dependency) -> Option<ObjectRef> {
        let reference = match (&entry.resource, &entry.reference) {
            (Some(text), _) => Reference::parse(text).or_else(|_| Reference::parse_kind(text)).ok()?,
            (None, Some(explicit)) => Reference { word: explicit.kind_word(), name: explicit.name.clone() },
            (None, None) => return None,
        };
        if reference.is_server_version() {
            return Some(ObjectRef::cluster_scoped(GroupKind::new("", "Version"), "kubernetes"));
        }
        let (kind, namespaced) = kind_of(&reference.word);
        let explicit = entry.reference.as_ref().and_then(|reference| reference.namespace.clone());
        let namespace = entry.namespace.clone().or(explicit).unwrap_or_else(|| self.owner.namespace.clone());
        Some(ObjectRef {
            kind,
            namespace: namespaced.then_some(namespace),
            name: reference.name.unwrap_or_else(|| selected(entry)),
        })
    }

    fn somewhere(&self, object: ObjectRef, own: Option<&linchpin_api::common::Cluster>) -> Node {
        let here = Via::service_account(&self.owner.namespace, "");
        let via = cluster::via(&here, &self.owner.namespace, own, self.common.cluster.as_ref(), "");
        let node = Node::here(object);
        match via {
            Ok(via) if !via.cluster.is_here() => node.in_cluster(via.cluster.to_string()),
            _ => node,
        }
    }
}

fn standing(status: &DependencyStatus) -> WaitState {
    match status.state.as_str() {
        _ if status.met => WaitState::Met,
        "Failed" | "TimedOut" => WaitState::Failed,
        "NotFound" => WaitState::Absent,
        // Its turn has not come, so nobody has looked; that is no trouble.
        _ if is_in_line(&status.reason) => WaitState::InProgress,
        "Unknown" | "Error" => WaitState::Unknown,
        _ => WaitState::InProgress,
    }
}

fn resolved_ref(resolved: &ObjectName, entry: &Dependency) -> ObjectRef {
    ObjectRef {
        kind: kind_in_status(resolved),
        namespace: resolved.namespace.clone(),
        name: resolved.name.clone().unwrap_or_else(|| selected(entry)),
    }
}

fn kind_in_status(object: &ObjectName) -> GroupKind {
    let version = object.api_version.as_deref().unwrap_or_default();
    Gvk::from_api_version(version, &object.kind).group_kind()
}

/// What stands for the name of objects that are chosen by their labels.
fn selected(entry: &Dependency) -> String {
    let selector = entry.selector.as_ref().and_then(|selector| cluster::selector(selector, "").ok());
    selector.map_or_else(|| "*".to_owned(), |selector| format!("[{selector}]"))
}

fn kind_of(word: &KindWord) -> (GroupKind, bool) {
    if let Some(known) = built_in(word) {
        return (known.gvk().group_kind(), known.namespaced);
    }
    let as_written = || GroupKind::new(word.group.clone().unwrap_or_default(), &word.word);
    (kind_of_ours(word).unwrap_or_else(as_written), true)
}

/// The kind of ours that a word means: one whose objects wait for others.
pub fn kind_of_ours(word: &KindWord) -> Option<GroupKind> {
    called::<ResourceDependency>(word, &["rd", "resdep"])
        .or_else(|| called::<DependencyGroup>(word, &["dg", "depgroup"]))
        .or_else(|| called::<AppBundle>(word, &["ab"]))
}

fn called<K: Resource<DynamicType = ()>>(word: &KindWord, short: &[&str]) -> Option<GroupKind> {
    let (group, kind, plural) = (K::group(&()), K::kind(&()), K::plural(&()));
    let meant =
        kind.eq_ignore_ascii_case(&word.word) || plural == word.word || short.contains(&word.word.as_str());
    (meant && word.group.as_ref().is_none_or(|wanted| *wanted == group)).then(|| GroupKind::new(group, kind))
}

/// The objects that an action writes, as far as its text tells.
fn written(action: &Action) -> Vec<Value> {
    let body = action.resource.clone().map(Value::Object);
    match (action.kind, &action.template, &action.apply) {
        (ActionType::Template, Some(text), _) | (ActionType::Apply, _, Some(Value::String(text))) => {
            sketch::documents(text).unwrap_or_default()
        }
        (ActionType::Apply, _, Some(Value::Array(bodies))) => bodies.clone(),
        (ActionType::Apply, _, Some(one)) => vec![one.clone()],
        (ActionType::Create, ..) | (ActionType::Apply, _, None) => body.into_iter().collect(),
        _ => Vec::new(),
    }
}

fn object_ref(object: &Value, default_namespace: &str) -> Option<ObjectRef> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let known = |path: &str| text(path).filter(|text| !sketch::has_holes(text));
    let kind = Gvk::from_api_version(known("/apiVersion")?, known("/kind")?).group_kind();
    let namespaced = built_in_kind(&kind.group, &kind.kind).is_none_or(|known| known.namespaced);
    let namespace = match text("/metadata/namespace") {
        None => default_namespace.to_owned(),
        Some(_) => known("/metadata/namespace")?.to_owned(),
    };
    Some(ObjectRef {
        kind,
        namespace: namespaced.then_some(namespace),
        name: known("/metadata/name")?.to_owned(),
    })
}
