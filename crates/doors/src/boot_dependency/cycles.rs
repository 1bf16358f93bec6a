//! Circles among BootDependencies, as far as names show: the early courtesy of admission.
//!
//! The guarantee is the wait-for graph at run time. Here a BootDependency represents the workload whose pods it holds,
//! and leads to what its entries name: Services as if a workload had their name (the document's rule), workloads, other
//! BootDependencies. Hosts lead nowhere; a selector is nobody. One walk, each node and edge once, no recursion.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
};

use linchpin_api::{BootDependency, BootEntry};
use linchpin_words::{KindWord, Reference, reference::built_in};

use super::selection::WorkloadName;

/// Kinds of Kubernetes that make pods, or are one.
const WORKLOADS: [&str; 7] =
    ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod"];

/// Namespace and name.
type Node = (String, String);

/// Workloads that wait for each other, the first one again at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadCircle(Vec<Node>);

impl WorkloadCircle {
    /// The document's text for it, as seen from a namespace.
    pub fn text(&self, own_namespace: &str) -> String {
        let mut text = String::from("circular dependency detected: ");
        for (index, (namespace, name)) in self.0.iter().enumerate() {
            if index > 0 {
                text.push_str(" → ");
            }
            if namespace != own_namespace {
                // Writing to a String cannot fail.
                let _ = write!(text, "{namespace}/");
            }
            text.push_str(name);
        }
        text
    }
}

/// What a new or changed object would close.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circles {
    /// A circle through it: it is refused.
    pub through: Option<WorkloadCircle>,
    /// A circle that only lies on its way: it is reported.
    pub elsewhere: Option<WorkloadCircle>,
}

/// The circles that `incoming` would be part of or lead to, among all that are stored.
pub fn circles<'a>(
    incoming: &'a BootDependency,
    stored: impl Iterator<Item = &'a BootDependency>,
) -> Circles {
    let Some(start) = node(incoming) else {
        return Circles::default();
    };
    let own = place(incoming);
    let mut all: Vec<&BootDependency> = stored.filter(|object| place(object) != own).collect();
    all.push(incoming);
    let workloads: HashMap<Node, Node> =
        all.iter().filter_map(|object| Some((place(object), node(object)?))).collect();
    let mut edges: BTreeMap<Node, Vec<Node>> = BTreeMap::new();
    for object in all {
        if let Some(from) = node(object) {
            let namespace = &place(object).0;
            let leads =
                object.spec.depends_on.iter().filter_map(|entry| leads_to(entry, namespace, &workloads));
            edges.entry(from).or_default().extend(leads);
        }
    }
    walk(&start, &edges)
}

/// Where a node is in the walk.
enum Colour {
    /// On the path from the start.
    Open,
    /// All that it leads to has been seen.
    Done,
}

fn walk(start: &Node, edges: &BTreeMap<Node, Vec<Node>>) -> Circles {
    const NOTHING: &[Node] = &[];
    let next = |node: &Node| edges.get(node).map_or(NOTHING, Vec::as_slice);
    let mut circles = Circles::default();
    let mut colours: HashMap<&Node, Colour> = HashMap::from([(start, Colour::Open)]);
    let mut path: Vec<(&Node, usize)> = vec![(start, 0)];
    while let Some((node, at)) = path.last_mut() {
        let Some(target) = next(node).get(*at) else {
            colours.insert(*node, Colour::Done);
            path.pop();
            continue;
        };
        *at += 1;
        match colours.get(target) {
            Some(Colour::Done) => (),
            Some(Colour::Open) => {
                let circle = circle(&path, target);
                if target == start {
                    circles.through = Some(circle);
                    return circles;
                }
                circles.elsewhere.get_or_insert(circle);
            }
            None => {
                colours.insert(target, Colour::Open);
                path.push((target, 0));
            }
        }
    }
    circles
}

/// The end of the path, from a node on it to that node again.
fn circle(path: &[(&Node, usize)], target: &Node) -> WorkloadCircle {
    let from = path.iter().position(|(node, _)| *node == target).unwrap_or_default();
    let members = path[from..].iter().map(|(node, _)| (*node).clone());
    WorkloadCircle(members.chain([target.clone()]).collect())
}

fn place(object: &BootDependency) -> Node {
    let name = |part: &Option<String>| part.clone().unwrap_or_default();
    (name(&object.metadata.namespace), name(&object.metadata.name))
}

/// What the object represents.
fn node(object: &BootDependency) -> Option<Node> {
    Some((place(object).0, WorkloadName::of(object)?.name))
}

/// What an entry leads to.
fn leads_to(entry: &BootEntry, own_namespace: &str, workloads: &HashMap<Node, Node>) -> Option<Node> {
    let place = |name: String| (entry.namespace.clone().unwrap_or_else(|| own_namespace.to_owned()), name);
    if let Some(service) = &entry.service {
        return Some(place(service.clone()));
    }
    if entry.object.cluster.is_some() {
        return None;
    }
    let (word, name, namespace) = match (&entry.object.resource, &entry.object.reference) {
        (Some(text), _) => {
            let reference = Reference::parse(text).ok()?;
            (reference.word, reference.name?, None)
        }
        (None, Some(explicit)) => (explicit.kind_word(), explicit.name.clone()?, explicit.namespace.clone()),
        (None, None) => return None,
    };
    let target = namespace.map_or_else(|| place(name.clone()), |namespace| (namespace, name.clone()));
    if is_ours(&word) {
        return Some(workloads.get(&target).cloned().unwrap_or(target));
    }
    built_in(&word).filter(|known| WORKLOADS.contains(&known.kind)).map(|_| target)
}

/// Whether a word means our own kind.
fn is_ours(word: &KindWord) -> bool {
    ["bootdependency", "bootdependencies"].contains(&word.word.as_str())
}
