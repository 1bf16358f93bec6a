//! The order inside a Sync: which of its objects come after which others, and what is waited for.
//!
//! Hard edges are what the API server or the author demands; a circle of them refuses the revision. Soft edges make
//! things smoother and are left out where they would close a circle. Everything that no edge joins is independent, so a
//! stuck object holds only what comes after it. Pure: from bodies to edges, by position.

mod edges;

use std::collections::{BTreeMap, BTreeSet};

use linchpin_engine::sequence::sequence;
use linchpin_words::{GroupKind, Gvk};
use serde_json::Value;

use self::edges::Edges;
use super::{depends_on::DependsOnReference, pods};

/// One object of a Sync.
pub(super) struct OrderedObject<'a> {
    pub gvk: &'a Gvk,
    /// As URLs name its kind.
    pub plural: String,
    pub namespace: Option<&'a str>,
    pub name: &'a str,
    pub body: &'a Value,
    /// What its annotation says it depends on.
    pub depends_on: Vec<DependsOnReference>,
    /// Its sync wave, where it has one.
    pub wave: Option<i64>,
    /// As people call it.
    pub label: String,
}

/// What is waited for of an earlier object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AwaitedState {
    /// That it is ready, or good enough to go on.
    Ready,
    /// That it was tried to write it.
    Written,
}

/// Objects of which those of a higher wave wait.
#[derive(Debug)]
pub(super) struct Wave {
    pub number: i64,
    /// The objects that are waited for.
    pub earlier: Vec<usize>,
    /// The objects that wait.
    pub later: Vec<usize>,
}

/// The order of all objects, by position.
#[derive(Debug, Default)]
pub(super) struct ObjectOrder {
    /// For each object, what comes before it.
    pub before: Vec<Vec<(usize, AwaitedState)>>,
    /// For each object, what it depends on outside of the Sync.
    pub outside: Vec<Vec<DependsOnReference>>,
    /// Objects that must really be ready before others, where existence would otherwise do.
    pub strict: BTreeSet<usize>,
    pub waves: Vec<Wave>,
    /// For each object the longest way to it, from 0.
    pub layers: Vec<usize>,
}

/// A circle of hard edges, by position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ObjectCircle(pub Vec<usize>);

/// Orders objects. `first` are positions that everything comes after that is not before them: own objects that the
/// Sync's dependencies name.
pub(super) fn order(items: &[OrderedObject<'_>], first: &[usize]) -> Result<ObjectOrder, ObjectCircle> {
    let mut order = ObjectOrder { outside: vec![Vec::new(); items.len()], ..ObjectOrder::default() };
    let mut edges = Edges::new(items.len());
    demanded(items, &mut edges, &mut order);
    if let Some(circle) = circle(&edges.before) {
        return Err(circle);
    }
    for position in first {
        for later in 0..items.len() {
            edges.add_if_open(*position, later, AwaitedState::Ready);
        }
    }
    smoother(items, &mut edges);
    admission(items, &mut edges, &mut order);
    waves(items, &edges, &mut order);
    order.layers = layers(&edges.before, &order.waves);
    order.before = edges.before.into_iter().map(|before| before.into_iter().collect()).collect();
    Ok(order)
}

/// Edges that the API server or the author demands.
fn demanded(items: &[OrderedObject<'_>], edges: &mut Edges, order: &mut ObjectOrder) {
    let text = |item: &OrderedObject<'_>, path: &str| {
        item.body.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    for (position, item) in items.iter().enumerate() {
        let kind = (item.gvk.group.as_str(), item.gvk.kind.as_str());
        let mut leads = |leads: &dyn Fn(&OrderedObject<'_>) -> bool| {
            for (later, other) in items.iter().enumerate() {
                if later != position && leads(other) {
                    edges.add(position, later, AwaitedState::Ready);
                }
            }
        };
        match kind {
            ("", "Namespace") => leads(&|other| other.namespace == Some(item.name)),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                let defined = GroupKind::new(text(item, "/spec/group"), text(item, "/spec/names/kind"));
                leads(&|other| other.gvk.group_kind() == defined);
            }
            ("apiregistration.k8s.io", "APIService") => {
                let served = (text(item, "/spec/group"), text(item, "/spec/version"));
                leads(&|other| other.gvk.group == served.0 && other.gvk.version == served.1);
                order.strict.insert(position);
            }
            _ => {}
        }
    }
    for (later, item) in items.iter().enumerate() {
        for reference in &item.depends_on {
            let is = |other: &OrderedObject<'_>| {
                let named = other.gvk.group_kind() == reference.kind && other.name == reference.name;
                named && (other.namespace == reference.namespace.as_deref() || other.namespace.is_none())
            };
            match items.iter().position(is) {
                Some(earlier) => edges.add(earlier, later, AwaitedState::Ready),
                None => order.outside[later].push(reference.clone()),
            }
        }
    }
}

/// Kinds that workloads of their namespace, or of all where they have none, had better come after.
fn is_setting(gvk: &Gvk) -> bool {
    let core = ["LimitRange", "ResourceQuota", "ServiceAccount"];
    match gvk.group.as_str() {
        "" => core.contains(&gvk.kind.as_str()),
        "rbac.authorization.k8s.io" => true,
        "networking.k8s.io" => ["NetworkPolicy", "IngressClass"].contains(&gvk.kind.as_str()),
        "storage.k8s.io" => gvk.kind == "StorageClass",
        "scheduling.k8s.io" => gvk.kind == "PriorityClass",
        "node.k8s.io" => gvk.kind == "RuntimeClass",
        _ => false,
    }
}

/// Edges that save restarts: what pods name, and what rules over them, first.
fn smoother(items: &[OrderedObject<'_>], edges: &mut Edges) {
    let mut found = Vec::new();
    for (later, item) in items.iter().enumerate() {
        let Some(template) = pods::template(item.body) else { continue };
        for (kind, name) in template.names() {
            let is = |other: &OrderedObject<'_>| {
                other.gvk.group.is_empty()
                    && other.gvk.kind == kind
                    && other.name == name
                    && other.namespace == item.namespace
            };
            found.extend(items.iter().position(is).map(|earlier| (earlier, later)));
        }
        for (earlier, other) in items.iter().enumerate() {
            let rules = other.namespace.is_none() || other.namespace == item.namespace;
            if is_setting(other.gvk) && rules {
                found.push((earlier, later));
            }
        }
    }
    found.sort_by_key(|(earlier, later)| (&items[*earlier].label, &items[*later].label));
    for (earlier, later) in found {
        edges.add_if_open(earlier, later, AwaitedState::Written);
    }
}

/// A webhook comes after the Service and the workloads that answer it, and before what it is asked about, unless it
/// needs that itself.
fn admission(items: &[OrderedObject<'_>], edges: &mut Edges, order: &mut ObjectOrder) {
    let configurations: Vec<usize> = (0..items.len())
        .filter(|position| {
            let gvk = items[*position].gvk;
            gvk.group == "admissionregistration.k8s.io" && gvk.kind.ends_with("WebhookConfiguration")
        })
        .collect();
    for configuration in &configurations {
        for webhook in webhooks(&items[*configuration]) {
            let Some(service) = webhook.pointer("/clientConfig/service") else { continue };
            let is = |item: &OrderedObject<'_>| {
                item.gvk.group.is_empty()
                    && item.gvk.kind == "Service"
                    && service["name"] == item.name
                    && service["namespace"].as_str() == item.namespace
            };
            let Some(service) = items.iter().position(is) else { continue };
            order.strict.insert(service);
            edges.add_if_open(service, *configuration, AwaitedState::Ready);
            let selector = items[service].body.pointer("/spec/selector").unwrap_or(&Value::Null);
            for (workload, item) in items.iter().enumerate() {
                let behind = item.namespace == items[service].namespace
                    && pods::template(item.body).is_some_and(|template| template.is_selected_by(selector));
                if behind {
                    edges.add_if_open(workload, *configuration, AwaitedState::Ready);
                }
            }
        }
    }
    for configuration in configurations {
        let asked = webhooks(&items[configuration]);
        let rules: Vec<&Value> =
            asked.iter().filter_map(|webhook| webhook.get("rules")?.as_array()).flatten().collect();
        for (later, item) in items.iter().enumerate() {
            if later != configuration && rules.iter().any(|rule| is_asked_about(rule, item)) {
                order.strict.insert(configuration);
                edges.add_if_open(configuration, later, AwaitedState::Ready);
            }
        }
    }
}

fn webhooks<'a>(item: &OrderedObject<'a>) -> Vec<&'a Value> {
    item.body.get("webhooks").and_then(Value::as_array).into_iter().flatten().collect()
}

/// Whether a rule of a webhook is about an object, or about the pods that it makes.
fn is_asked_about(rule: &Value, item: &OrderedObject<'_>) -> bool {
    let has = |list: &str, word: &str| {
        let words = rule.get(list).and_then(Value::as_array).into_iter().flatten();
        words.filter_map(Value::as_str).any(|one| one == word || one == "*" || one == "*/*")
    };
    let itself = has("apiGroups", &item.gvk.group) && has("resources", &item.plural);
    itself || has("apiGroups", "") && has("resources", "pods") && pods::template(item.body).is_some()
}

/// Waves: where any object has one, those of a lower wave first.
fn waves(items: &[OrderedObject<'_>], edges: &Edges, order: &mut ObjectOrder) {
    if items.iter().all(|item| item.wave.is_none()) {
        return;
    }
    let mut numbered: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (position, item) in items.iter().enumerate() {
        numbered.entry(item.wave.unwrap_or(0)).or_default().push(position);
    }
    // Each wave is one more node between two numbers; an object that is needed by what comes after it is not waited
    // for.
    let mut all = edges.with_more(numbered.len());
    let numbers: Vec<(&i64, &Vec<usize>)> = numbered.iter().collect();
    for (index, pair) in numbers.windows(2).enumerate() {
        let ((number, earlier), (_, later)) = (pair[0], pair[1]);
        let barrier = items.len() + index;
        for position in later {
            all.add(barrier, *position, AwaitedState::Ready);
        }
        let mut waited = Vec::new();
        for position in earlier {
            if !all.comes_before(barrier, *position) {
                all.add(*position, barrier, AwaitedState::Ready);
                waited.push(*position);
            }
        }
        order.waves.push(Wave { number: *number, earlier: waited, later: later.clone() });
    }
}

/// For each object what comes before it, by position alone.
fn rows(before: &[BTreeMap<usize, AwaitedState>]) -> Vec<Vec<usize>> {
    before.iter().map(|before| before.keys().copied().collect()).collect()
}

/// A circle, if there is one, from the first of its objects on.
fn circle(before: &[BTreeMap<usize, AwaitedState>]) -> Option<ObjectCircle> {
    let mut round = sequence(&rows(before)).err()?;
    if let Some(least) = (0..round.len()).min_by_key(|at| round[*at]) {
        round.rotate_left(least);
    }
    Some(ObjectCircle(round))
}

/// The longest way to each object.
fn layers(before: &[BTreeMap<usize, AwaitedState>], waves: &[Wave]) -> Vec<usize> {
    let mut all = rows(before);
    for wave in waves {
        for later in &wave.later {
            all[*later].extend(&wave.earlier);
        }
    }
    let mut layers = vec![0; all.len()];
    for position in sequence(&all).unwrap_or_default() {
        layers[position] = all[position].iter().map(|earlier| layers[*earlier] + 1).max().unwrap_or(0);
    }
    layers
}

#[cfg(test)]
#[path = "order/tests.rs"]
mod tests;
