//! What steps are called.
//!
//! A step is called by its `name`. Without one, a dependency is called as its resource is written, and an action by
//! its type and target (`create:ConfigMap/shop/web`); only what would be called the same gets more words, and a number
//! at the very end. In a DependencyGroup the group comes first (`operators/kubeflex`). Never by position: records in
//! the journal, orders by annotation and field managers hang on these names. Compiling and drawing the status ask the
//! same functions, so they agree.
//!
//! Where objects are applied, the act is called `group/component`; what belongs to it has the act's name and a colon,
//! which no name of a user's has: `act:ready` or `act:ready:Kind/namespace/name` (an object is ready), `act:source` (there is
//! something to apply), `act:requires:name` (the author's own requirement). The same for a whole group
//! (`group:requires:name`) and a whole object (`requires:name`).

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::{
    Action, Dependency,
    action::ActionType,
    common::{Cluster, Target},
};
use linchpin_engine::contract::StepId;
use serde_json::Value;

use crate::{cluster, sketch};

/// Further words for a dependency, where it has them.
type Words<'a> = dyn Fn(&Dependency) -> Option<String> + 'a;

/// A step, and the words that people may call it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedStep {
    pub id: StepId,
    /// Its name without the group, and for a dependency its resource as written.
    pub words: Vec<String>,
}

/// The dependencies and actions of one part of an object, in the order they are written in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepNames {
    pub dependencies: Vec<NamedStep>,
    pub actions: Vec<NamedStep>,
}

/// What the steps of one part are called.
pub(crate) fn of_part(part: Option<&str>, dependencies: &[Dependency], actions: &[Action]) -> StepNames {
    let of = |name: &str| StepId::new(part.map_or_else(|| name.to_owned(), |part| format!("{part}/{name}")));
    let action_names = numbered(actions.iter().map(action_name).collect());
    // A record of an action must never be lost, one of a dependency may: where both have one name, the action keeps it.
    let taken: BTreeSet<&str> = action_names.iter().map(String::as_str).collect();
    let dependency_names = unnamed_apart(dependencies)
        .into_iter()
        .map(|name| if taken.contains(name.as_str()) { format!("dependency:{name}") } else { name });
    StepNames {
        dependencies: dependency_names
            .zip(dependencies)
            .map(|(name, dependency)| {
                let words = dependency.name.iter().cloned().chain([resource_text(dependency)]).collect();
                NamedStep { id: of(&name), words }
            })
            .collect(),
        actions: action_names
            .into_iter()
            .map(|name| NamedStep { id: of(&name), words: vec![name] })
            .collect(),
    }
}

/// What a component is called: the act that applies it, and in annotations and messages.
pub(crate) fn component(group: &str, component: &str) -> String {
    format!("{group}/{component}")
}

/// The step that says that an object of an act is ready: the only one, or one of several.
pub(crate) fn ready(act: &str, one_of_several: Option<&str>) -> StepId {
    StepId::new(
        one_of_several.map_or_else(|| format!("{act}:ready"), |object| format!("{act}:ready:{object}")),
    )
}

/// The step that says that there is something for an act to apply.
pub(crate) fn source(act: &str) -> StepId {
    StepId::new(format!("{act}:source"))
}

/// The author's own requirements of a whole object, of a group or of a component.
pub(crate) fn required(of: Option<&str>, entries: &[Dependency]) -> Vec<NamedStep> {
    let prefix = of.map_or_else(|| "requires:".to_owned(), |of| format!("{of}:requires:"));
    let named = of_part(None, entries, &[]).dependencies;
    named
        .into_iter()
        .map(|named| NamedStep { id: StepId::new(format!("{prefix}{}", named.id)), ..named })
        .collect()
}

/// A dependency's resource as written; where it is written field by field, the same in one word.
pub(crate) fn resource_text(dependency: &Dependency) -> String {
    if let Some(resource) = &dependency.object.resource {
        return resource.clone();
    }
    let Some(reference) = &dependency.object.reference else {
        return String::new();
    };
    match &reference.name {
        Some(name) => format!("{}/{name}", reference.kind_word()),
        None => reference.kind_word().to_string(),
    }
}

/// A dependency in the user's words, for messages: with its selector, its namespace where that is not the `own` one, its
/// group and cluster.
pub(crate) fn label(dependency: &Dependency, own: &str) -> String {
    let mut label = with_selector(dependency);
    let inner = dependency.object.reference.as_ref().and_then(|reference| reference.namespace.as_deref());
    if let Some(namespace) = dependency.namespace.as_deref().or(inner).filter(|namespace| *namespace != own) {
        label = format!("{label} in namespace {namespace}");
    }
    if let Some(group) = &dependency.object.group {
        label = format!("{label} (group {group})");
    }
    match dependency.object.cluster.as_ref().and_then(cluster_text) {
        Some(cluster) => format!("{label} in {cluster}"),
        None => label,
    }
}

fn with_selector(dependency: &Dependency) -> String {
    let text = resource_text(dependency);
    let selector =
        dependency.object.selector.as_ref().and_then(|selector| cluster::selector(selector, "").ok());
    selector.map_or(text.clone(), |selector| format!("{text}[{selector}]"))
}

fn cluster_text(cluster: &Cluster) -> Option<String> {
    if let Some(plane) = &cluster.control_plane_ref {
        let labels = plane.selector.as_ref().and_then(|selector| cluster::selector(selector, "").ok());
        let name = plane.name.clone().or_else(|| labels.map(|labels| format!("[{labels}]")));
        return Some(format!("ControlPlane {}", name.unwrap_or_default()));
    }
    let secret = cluster.kubeconfig_secret_ref.as_ref()?;
    Some(format!("the cluster of Secret {}", secret.name))
}

/// Names of dependencies: more words for those without a name that would be called the same.
fn unnamed_apart(dependencies: &[Dependency]) -> Vec<String> {
    let mut names: Vec<String> = dependencies
        .iter()
        .map(|dependency| dependency.name.clone().unwrap_or_else(|| with_selector(dependency)))
        .collect();
    let namespace = |dependency: &Dependency| {
        let inner = dependency.object.reference.as_ref().and_then(|reference| reference.namespace.clone());
        dependency.namespace.clone().or(inner).map(|namespace| format!("in {namespace}"))
    };
    let group =
        |dependency: &Dependency| dependency.object.group.as_ref().map(|group| format!("(group {group})"));
    let place = |dependency: &Dependency| {
        dependency.object.cluster.as_ref().and_then(cluster_text).map(|cluster| format!("in {cluster}"))
    };
    let more: [&Words<'_>; 3] = [&namespace, &group, &place];
    for words in more {
        let counts = count(&names);
        for (name, dependency) in names.iter_mut().zip(dependencies) {
            let twice =
                dependency.name.is_none() && counts.get(name.as_str()).is_some_and(|count| *count > 1);
            if let Some(words) = words(dependency).filter(|_| twice) {
                *name = format!("{name} {words}");
            }
        }
    }
    let fixed: Vec<bool> = dependencies.iter().map(|dependency| dependency.name.is_some()).collect();
    number(names, |index| !fixed[index])
}

fn count(names: &[String]) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name.clone()).or_default() += 1;
    }
    counts
}

/// A number for each after the first of those that are called the same and may be called otherwise.
pub(crate) fn number(names: Vec<String>, may_change: impl Fn(usize) -> bool) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    names
        .into_iter()
        .enumerate()
        .map(|(index, name)| {
            let ordinal = seen.entry(name.clone()).or_default();
            *ordinal += 1;
            if *ordinal > 1 && may_change(index) { format!("{name}#{ordinal}") } else { name }
        })
        .collect()
}

/// Names of actions: `(name, whether the user gave it)`.
fn numbered(names: Vec<(String, bool)>) -> Vec<String> {
    let given: Vec<bool> = names.iter().map(|(_, given)| *given).collect();
    number(names.into_iter().map(|(name, _)| name).collect(), |index| !given[index])
}

fn action_name(action: &Action) -> (String, bool) {
    match &action.name {
        Some(name) => (name.clone(), true),
        None => (format!("{}:{}", action.kind.as_str(), action_target(action)), false),
    }
}

/// What an action is aimed at, as far as its text shows.
fn action_target(action: &Action) -> String {
    let target = |target: &Target| target_text(&target.kind, target.namespace.as_deref(), &target.name);
    let known = match action.kind {
        ActionType::Create => action.resource.as_ref().map(|body| body_text(&Value::Object(body.clone()))),
        ActionType::Template => action.template.as_deref().and_then(first_of_text),
        ActionType::Apply => match (&action.resource, &action.apply) {
            (Some(body), _) => Some(body_text(&Value::Object(body.clone()))),
            (None, Some(Value::Array(bodies))) => bodies.first().map(body_text),
            (None, Some(Value::String(text))) => first_of_text(text),
            (None, Some(body)) => Some(body_text(body)),
            (None, None) => None,
        },
        ActionType::Patch => action.patch.as_ref().map(|patch| target(&patch.target)),
        ActionType::Delete => action.delete.as_ref().map(|delete| target(&delete.target)),
        ActionType::Exec => action.exec.as_ref().map(|exec| target(&exec.target)),
        ActionType::Wait => action.wait.as_ref().map(|wait| wait.0.clone()),
    };
    known.unwrap_or_else(|| "documents".to_owned())
}

fn first_of_text(text: &str) -> Option<String> {
    sketch::documents(text)?.first().map(body_text)
}

fn body_text(body: &Value) -> String {
    let text = |path: &str| body.pointer(path).and_then(Value::as_str).map(sketch::readable);
    target_text(
        &text("/kind").unwrap_or_else(|| "*".to_owned()),
        text("/metadata/namespace").as_deref(),
        &text("/metadata/name").unwrap_or_else(|| "*".to_owned()),
    )
}

fn target_text(kind: &str, namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{kind}/{namespace}/{name}"),
        None => format!("{kind}/{name}"),
    }
}
