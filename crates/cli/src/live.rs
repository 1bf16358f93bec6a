//! The objects of ours in a cluster, read as the user, and the wait-for graph among them.
//!
//! `tree`, `explain` and `demo` look at a cluster through this module. It reads with the user's own rights: all
//! namespaces where that is allowed, so that causes in other namespaces are found too, and else the one asked for. A
//! kind that cannot be read is reported and does not keep the others from being shown.

mod connection;
mod employment;
mod reading;
#[cfg(test)]
pub(crate) mod server;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::{Result, bail};
use kube::Client;
use linchpin_api::CommonStatus;
use linchpin_cluster::own::OwnObject;
use linchpin_doors::{
    DoorKind, Registry,
    registry::{KindNames, ObjectView},
};
use linchpin_engine::graph::{Edge, Graph, Node, Relation, Wait, WaitState};
use linchpin_view::{NodeFacts, PictureState};
use linchpin_words::{ConditionStatus, ConditionType, GroupKind, Reason, condition, similar};
use serde_json::Value;

pub(crate) use self::{
    connection::Connection,
    reading::{ReadScope, while_busy},
};

/// How many objects that cannot be read are named.
const FEW: usize = 5;

/// How an object of a kind is read from its text; none where there is nothing to say about it.
type Reader = Arc<dyn Fn(&str) -> Option<Result<Box<dyn ObjectView>, serde_json::Error>> + Send + Sync>;

/// Where an object is: namespace and name.
pub(crate) type LiveKey = (String, String);

/// All objects of ours that could be read.
#[derive(Clone, Default)]
pub(crate) struct LiveObjects {
    kinds: Vec<(KindNames, Reader)>,
    /// The objects of each of these kinds.
    objects: Vec<BTreeMap<LiveKey, Arc<dyn ObjectView>>>,
    /// Where each kind can be read.
    pub(crate) reach: BTreeMap<GroupKind, ReadScope>,
    /// The labels of each of them.
    labels: BTreeMap<Node, BTreeMap<String, String>>,
    /// Objects that are there and cannot be read, by kind.
    unreadable: BTreeMap<GroupKind, BTreeSet<LiveKey>>,
}

impl LiveObjects {
    /// None yet, of these kinds.
    fn new(registry: &Registry) -> Self {
        let reader = |kind: &Arc<dyn DoorKind>| -> (KindNames, Reader) {
            let of = Arc::clone(kind);
            (kind.names(), Arc::new(move |text| of.view(text)))
        };
        let mut kinds: Vec<(KindNames, Reader)> = registry.waiting().map(reader).collect();
        // Not served by the operator, but waited for and waiting like the others.
        kinds.push((employment::names(), Arc::new(|text| Some(employment::view(text)))));
        Self { objects: vec![BTreeMap::new(); kinds.len()], kinds, ..Self::default() }
    }

    /// Reads them: each kind everywhere if the user may, else in one namespace. Fails if no kind can be read at all.
    pub(crate) async fn read(client: &Client, namespace: &str, registry: &Registry) -> Result<Self> {
        let mut live = Self::new(registry);
        for names in live.kinds() {
            let found = reading::list(client, &names, namespace).await?;
            let kind = names.gvk.group_kind();
            for object in &found.objects {
                live.put(&kind, object);
            }
            live.reach.insert(kind, found.reach);
        }
        live.check()?;
        Ok(live)
    }

    /// The kinds that are looked at.
    pub(crate) fn kinds(&self) -> Vec<KindNames> {
        self.kinds.iter().map(|(names, _)| names.clone()).collect()
    }

    /// What a kind is called.
    pub(crate) fn names(&self, kind: &GroupKind) -> Option<&KindNames> {
        self.kinds.get(self.position(kind)?).map(|(names, _)| names)
    }

    fn position(&self, kind: &GroupKind) -> Option<usize> {
        self.kinds.iter().position(|(names, _)| names.gvk.group_kind() == *kind)
    }

    /// An object is there, new or changed.
    pub(crate) fn put(&mut self, kind: &GroupKind, object: &OwnObject) {
        let Some(index) = self.position(kind) else { return };
        let (namespace, name) = object.place();
        let place = (namespace.unwrap_or_default(), name);
        self.remove(kind, &place);
        match (self.kinds[index].1)(object.text()) {
            Some(Ok(view)) => {
                self.labels.insert(view.node(), labels_of(object.text()));
                self.objects[index].insert(place, Arc::from(view));
            }
            Some(Err(_)) => drop(self.unreadable.entry(kind.clone()).or_default().insert(place)),
            None => {}
        }
    }

    /// An object is gone.
    pub(crate) fn remove(&mut self, kind: &GroupKind, place: &LiveKey) {
        if let Some(index) = self.position(kind) {
            self.objects[index].remove(place);
        }
        if let Some(unreadable) = self.unreadable.get_mut(kind) {
            unreadable.remove(place);
        }
    }

    /// Where each kind can be read, and no objects.
    pub(crate) fn emptied(self) -> Self {
        Self { objects: vec![BTreeMap::new(); self.kinds.len()], unreadable: BTreeMap::new(), ..self }
    }

    /// Nothing is known of a kind any more.
    pub(crate) fn forget(&mut self, kind: &GroupKind) {
        if let Some(index) = self.position(kind) {
            self.objects[index].clear();
        }
        self.unreadable.remove(kind);
    }

    /// The objects of one namespace, by name.
    pub(crate) fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = (&str, &dyn ObjectView)> {
        let all = self.objects.iter().flatten().filter(move |(place, _)| place.0 == namespace);
        all.map(|(place, object)| (place.1.as_str(), &**object))
    }

    /// Fails if nothing can be read, with what the first kind says.
    pub(crate) fn check(&self) -> Result<()> {
        let first = self.kinds.first().and_then(|(names, _)| self.lacks(&names.gvk.group_kind()));
        match first {
            Some(why) if self.reach.values().all(|reach| reach.why_not().is_some()) => bail!("{why}"),
            _ => Ok(()),
        }
    }

    /// Why objects of a kind are not among these at all.
    pub(crate) fn lacks(&self, kind: &GroupKind) -> Option<&str> {
        self.reach.get(kind).and_then(ReadScope::why_not)
    }

    /// What is not shown, in one line: kinds that cannot be read and, where all namespaces were asked for, kinds that
    /// can be read in one only.
    pub(crate) fn gaps(&self, asked: RequestedScope<'_>) -> Option<String> {
        let gap = |(kind, reach): (&GroupKind, &ReadScope)| match (reach, asked) {
            // A user who does not run consist misses nothing.
            (ReadScope::NotServed(_), _) if *kind == employment::names().gvk.group_kind() => None,
            (ReadScope::NotServed(why) | ReadScope::Forbidden(why), _) => Some(why.clone()),
            (ReadScope::Here, RequestedScope::Everywhere { instead }) => {
                let kind = &kind.kind;
                Some(format!(
                    "objects of kind {kind} outside namespace {instead}: you may not list them there"
                ))
            }
            _ => None,
        };
        let mut gaps: Vec<String> = self.reach.iter().filter_map(gap).collect();
        let unreadable = || {
            self.unreadable.iter().flat_map(|(kind, places)| places.iter().map(move |place| (kind, place)))
        };
        gaps.extend(unreadable().take(FEW).map(|(kind, (namespace, name))| {
            format!("{} {namespace}/{name}, which cannot be read", kind.kind)
        }));
        if let Some(more) = unreadable().count().checked_sub(FEW + 1) {
            gaps.push(format!("and {} more", more + 1));
        }
        (!gaps.is_empty()).then(|| format!("not shown: {}", gaps.join("; ")))
    }

    fn objects(&self) -> impl Iterator<Item = &dyn ObjectView> {
        self.objects.iter().flat_map(|objects| objects.values().map(|object| &**object))
    }

    /// The object that a node is.
    pub(crate) fn find(&self, node: &Node) -> Option<&dyn ObjectView> {
        self.objects().find(|object| object.node() == *node)
    }

    /// The labels of an object of ours.
    pub(crate) fn labels(&self, node: &Node) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.labels.get(node).unwrap_or(&NONE)
    }

    /// An object of ours that is called almost so.
    pub(crate) fn meant(&self, node: &Node) -> String {
        let nodes = self.nodes(node.object.namespace.as_deref());
        let names = nodes.iter().filter(|other| other.object.kind == node.object.kind);
        similar::did_you_mean(&node.object.name, names.map(|other| other.object.name.as_str()))
    }

    /// What kinds of ours are called in short.
    pub(crate) fn short_kinds(&self) -> BTreeMap<GroupKind, String> {
        self.kinds.iter().map(|(names, _)| (names.gvk.group_kind(), names.shortest())).collect()
    }

    /// The parts of all of them, as they are written down.
    pub(crate) fn parts(&self) -> Vec<Node> {
        self.objects().flat_map(ObjectView::parts).collect()
    }

    /// A part of one of them, or what parts it has.
    pub(crate) fn part(&self, whole: &Node, part: &str) -> Result<Node> {
        let wanted = whole.clone().part(part.to_owned());
        let known: Vec<Node> = self.parts().into_iter().filter(|one| one.whole() == *whole).collect();
        if known.contains(&wanted) {
            return Ok(wanted);
        }
        let names: Vec<String> =
            known.iter().filter_map(|one| one.part.as_ref()).map(ToString::to_string).collect();
        let meant = similar::did_you_mean(part, names.iter().map(String::as_str));
        match names.as_slice() {
            [] => bail!("{whole} is not there, or has no parts"),
            _ => bail!("{whole} has no part {part}{meant} (there are: {})", names.join(", ")),
        }
    }

    /// The wait-for graph among them.
    pub(crate) fn graph(&self) -> Graph {
        let mut graph = Graph::new();
        for object in self.objects() {
            graph.set(&object.node(), object.edges());
        }
        graph
    }

    /// The same as it is drawn: people know parts, and not the batches of them.
    pub(crate) fn drawn_graph(&self) -> Graph {
        let mut graph = Graph::new();
        for object in self.objects() {
            let edges: Vec<Edge> = object.edges().into_iter().filter_map(drawn).collect();
            graph.set(&object.node(), edges);
        }
        graph
    }

    /// The objects of one namespace, or of all, as nodes, and those of others that their statuses say wait.
    pub(crate) fn nodes(&self, namespace: Option<&str>) -> Vec<Node> {
        let nodes = self.objects().flat_map(|object| {
            let own = object.node();
            let others = object.edges().into_iter().map(|edge| edge.from).filter(|from| from.whole() != own);
            let others: BTreeSet<Node> = others.collect();
            std::iter::once(own).chain(others)
        });
        let wanted = |node: &Node| namespace.is_none() || node.object.namespace.as_deref() == namespace;
        nodes.filter(wanted).collect()
    }

    /// How each of them, and each of their parts, says that it is.
    pub(crate) fn known(&self) -> BTreeMap<Node, NodeFacts> {
        let mut known = BTreeMap::new();
        for object in self.objects() {
            let edges = object.edges();
            known.extend(others(&object.node(), &edges));
            known.insert(object.node(), reported_state(object.said()));
            known.extend(parts(&edges));
        }
        known
    }
}

/// The labels in the text of an object.
fn labels_of(object: &str) -> BTreeMap<String, String> {
    let object: Value = serde_json::from_str(object).unwrap_or_default();
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// What somebody asked to see.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequestedScope<'n> {
    /// All namespaces; where that is not allowed, this one instead.
    Everywhere {
        /// The one.
        instead: &'n str,
    },
    /// One namespace, and what there is elsewhere as far as it may be looked at.
    Here,
}

/// An edge as it is drawn; none for what a batch waits for, which its part waits for too.
fn drawn(edge: Edge) -> Option<Edge> {
    let Edge { from, to, relation } = edge;
    let waits_of_a_batch = from.batch > 0 && matches!(relation, Relation::WaitsFor(_));
    (!waits_of_a_batch).then(|| Edge { from: from.batch(0), to: to.batch(0), relation })
}

/// How the parts of an object are: as the object that waits for them says.
fn parts(edges: &[Edge]) -> impl Iterator<Item = (Node, NodeFacts)> {
    edges.iter().filter_map(|edge| {
        let Edge { from, to, relation: Relation::WaitsFor(wait) } = edge else { return None };
        // While the object is suspended, its parts wait for it.
        let part = if from.part.is_none() { to } else { from };
        let between_whole_and_part = from.whole() == to.whole() && from.part.is_some() != to.part.is_some();
        (between_whole_and_part && part.batch == 0).then(|| (part.clone(), of_part(part, wait, edges)))
    })
}

/// How objects of others are that an object says wait for it.
fn others(node: &Node, edges: &[Edge]) -> impl Iterator<Item = (Node, NodeFacts)> {
    edges.iter().filter_map(|edge| match &edge.relation {
        Relation::WaitsFor(wait) if edge.from.whole() != *node && !wait.met() => {
            let (reason, detail) = (wait.reason.to_string(), wait.detail.to_string());
            Some((
                edge.from.clone(),
                NodeFacts { state: PictureState::Waiting, reason, detail, since: wait.since },
            ))
        }
        _ => None,
    })
}

fn of_part(part: &Node, wait: &Wait, edges: &[Edge]) -> NodeFacts {
    let own = || edges.iter().filter(|edge| edge.from.batch(0) == *part);
    let begun = own().any(|edge| matches!(edge.relation, Relation::Produces { done: true }));
    let held = own().any(|edge| matches!(&edge.relation, Relation::WaitsFor(wait) if !wait.met()));
    let state = match wait.state {
        WaitState::Met => PictureState::Ready,
        WaitState::Failed => PictureState::Failed,
        _ if wait.reason == Reason::Suspended.as_str() => PictureState::Waiting,
        _ if begun || !held => PictureState::Running,
        _ => PictureState::Waiting,
    };
    NodeFacts { state, reason: wait.reason.to_string(), detail: wait.detail.to_string(), since: wait.since }
}

/// The state that an object reports. Conditions are asked before the phase, whose word a user may replace.
pub(crate) fn reported_state(said: Option<&CommonStatus>) -> NodeFacts {
    let said = said.and_then(|said| Some((said, condition::find(&said.conditions, ConditionType::Ready)?)));
    let Some((said, ready)) = said else {
        let detail = "the operator has not looked at it yet".to_owned();
        return NodeFacts { state: PictureState::Unknown, reason: "Pending".to_owned(), detail, since: None };
    };
    let holds = |kind| {
        condition::find(&said.conditions, kind)
            .is_some_and(|condition| condition.status == ConditionStatus::True)
    };
    let state = match said.phase.as_deref() {
        _ if ready.status == ConditionStatus::True => PictureState::Ready,
        _ if holds(ConditionType::Stalled) => PictureState::Failed,
        Some("Running" | "Deploying" | "Deleting") => PictureState::Running,
        _ => PictureState::Waiting,
    };
    NodeFacts {
        state,
        reason: ready.reason.clone(),
        detail: said.message.clone().unwrap_or_default(),
        since: Some(ready.last_transition_time.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_api::{AppBundle, Ours as _, ResourceDependency};
    use linchpin_words::ObjectRef;
    use serde_json::json;

    fn status(phase: &str, ready: &str, stalled: &str) -> CommonStatus {
        let at = "2026-01-01T00:00:00Z";
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "Because", "lastTransitionTime": at});
        serde_json::from_value(json!({"phase": phase, "message": "so it is",
            "conditions": [condition("Ready", ready), condition("Stalled", stalled)]}))
        .unwrap()
    }

    #[test]
    fn an_object_stands_as_its_conditions_say() {
        let state = |status: &CommonStatus| reported_state(Some(status)).state;
        assert_eq!(state(&status("Completed", "True", "False")), PictureState::Ready);
        assert_eq!(
            state(&status("Completed", "False", "False")),
            PictureState::Waiting,
            "what it had is lost"
        );
        assert_eq!(
            state(&status("Call us", "False", "True")),
            PictureState::Failed,
            "a word of the user's own"
        );
        assert_eq!(state(&status("Running", "False", "False")), PictureState::Running);
        assert_eq!(state(&status("Deploying", "False", "False")), PictureState::Running);
        assert_eq!(reported_state(Some(&status("Waiting", "False", "False"))).detail, "so it is");
    }

    #[test]
    fn an_object_nobody_has_looked_at_is_unknown() {
        assert_eq!(reported_state(None).state, PictureState::Unknown);
        assert_eq!(reported_state(Some(&CommonStatus::default())).state, PictureState::Unknown);
    }

    #[test]
    fn a_part_is_as_its_object_says_and_no_other_object_is_taken_for_one() {
        let kind = || linchpin_words::GroupKind::new("tools.kubestellar.io", "ResourceDependency");
        let object = |name: &str| Node::here(ObjectRef::namespaced(kind(), "shop", name));
        let (whole, part) = (object("a"), object("a").part("data"));
        let wait = |state| Wait::new(state, "NotReady").detail("0 of 1");
        let edges = [
            Edge::waits(whole.clone(), part.clone(), wait(WaitState::InProgress)),
            Edge::waits(whole.clone(), object("a").in_cluster("east"), wait(WaitState::Failed)),
            Edge::waits(part.clone(), object("b"), wait(WaitState::Absent)),
            Edge::waits(part.batch(1), whole.clone(), wait(WaitState::Failed)),
            Edge::produces(part.batch(1), object("c"), false),
        ];
        let state = |edges: &[Edge]| -> Vec<(Node, PictureState)> {
            parts(edges).map(|(node, known)| (node, known.state)).collect()
        };
        assert_eq!(state(&edges), [(part.clone(), PictureState::Waiting)]);
        let made = Edge::produces(part.batch(1), object("c"), true);
        let begun: Vec<Edge> = edges.iter().cloned().chain([made]).collect();
        assert_eq!(state(&begun), [(part.clone(), PictureState::Running)]);
        let met = [Edge::waits(whole.clone(), part.clone(), wait(WaitState::Met))];
        assert_eq!(state(&met), [(part.clone(), PictureState::Ready)]);
        let held = [Edge::waits(part.clone(), whole, Wait::new(WaitState::InProgress, "Suspended"))];
        assert_eq!(state(&held), [(part, PictureState::Waiting)]);
    }

    fn read(reach: [ReadScope; 3]) -> LiveObjects {
        let live = LiveObjects::new(&linchpin_doors::registry());
        let kinds = live.kinds().into_iter().map(|names| names.gvk.group_kind());
        LiveObjects { reach: kinds.zip(reach).collect(), ..live }
    }

    #[test]
    fn what_cannot_be_read_is_told_in_one_line() {
        let nowhere = |words: &str| ReadScope::NotServed(words.to_owned());
        let everywhere = RequestedScope::Everywhere { instead: "shop" };
        assert_eq!(
            read([ReadScope::Everywhere, ReadScope::Here, ReadScope::Everywhere]).gaps(RequestedScope::Here),
            None
        );
        let some = read([nowhere("no such kind"), ReadScope::Here, ReadScope::Everywhere]);
        assert_eq!(some.gaps(RequestedScope::Here).unwrap(), "not shown: no such kind");
        assert_eq!(
            some.gaps(everywhere).unwrap(),
            "not shown: objects of kind DependencyGroup outside namespace shop: you may not list them there; no such \
             kind"
        );
        assert!(some.check().is_ok(), "the others can be shown");
        assert_eq!(some.lacks(&ResourceDependency::gvk().group_kind()), Some("no such kind"));
        assert_eq!(some.lacks(&AppBundle::gvk().group_kind()), None);
    }

    #[test]
    fn whoever_can_read_nothing_is_told_so_once() {
        let nothing = read(["one", "two", "three"].map(|words| ReadScope::Forbidden(words.to_owned())));
        assert_eq!(nothing.check().unwrap_err().to_string(), "one");
    }
}
