//! What the cluster must be able to do: a kind that is served, or a capability that somebody provides. It is never
//! installed.
//!
//! A named capability is a Capability object that is Ready, or what a Sync of the same namespace provides while it is
//! Ready (`provider`). Both are objects of ours, read as the operator.

mod provider;

use std::collections::BTreeSet;

use linchpin_api::{SyncDependency, sync::dependency::CapabilityRef};
use linchpin_engine::{
    contract::{
        Actor, ClusterRef, Observed, Projection, Question, ReadSet, Scope, Seen, Selector, StepId, Via, Want,
    },
    plan::{BoundView, Obstacle, Requirement, SpecError, Step, StepKind, Test},
    readiness::Wanted,
};
use linchpin_words::{GroupKind, KindWord, ObjectRef, Reason, limits};
use serde_json::{Value, json};

use self::provider::Provider;
use super::{
    dependency::{DependencyContext, ResolvedEntry, bound, version_obstacle},
    kind,
    outline::What,
    range::Range,
};
use crate::{
    assemble::Frame,
    errors::{at, not_yet},
    requirement::{RequirementDraft, RequirementSpec},
};

/// This cluster, as the operator itself.
pub(super) fn ourselves() -> Via {
    Via { cluster: ClusterRef::Here, actor: Actor::Operator }
}

/// Reads an entry on a capability.
pub(super) fn read(
    around: &DependencyContext<'_>,
    entry: &SyncDependency,
    range: Option<&Range>,
    capability: &CapabilityRef,
    field: &str,
) -> Result<ResolvedEntry, SpecError> {
    match (&capability.name, &capability.api) {
        (Some(name), None) => named(around, entry, range, name, field),
        (None, Some(api)) => {
            let group = api.group.clone().unwrap_or_default();
            let word = KindWord {
                group: Some(group.clone()),
                version: api.version.clone(),
                ..KindWord::new(&api.kind)
            };
            if let Some(problem) = word.problem() {
                return Err(at(format!("{field}.capability.api"), problem));
            }
            if range.is_some() {
                return Err(at(
                    format!("{field}.version"),
                    "a kind that is served has no version to compare: name a capability",
                ));
            }
            if entry.ready_expr.is_some() {
                return Err(at(
                    format!("{field}.readyExpr"),
                    "a kind that is served has nothing to ask of it: name a capability",
                ));
            }
            let places = [api.group.as_deref(), api.version.as_deref()];
            let place: Vec<&str> = places.into_iter().flatten().filter(|part| !part.is_empty()).collect();
            let depends_on = format!("{} {}", api.kind, place.join("/")).trim_end().to_owned();
            let want = Want::new(Question::Kind { via: around.via.clone(), word });
            let test = Test { served: true, ..Test::default() };
            let target = ObjectRef::cluster_scoped(GroupKind::new(&group, &api.kind), "");
            let requirement =
                Requirement { target: Some(target), ..Requirement::new(&depends_on, want, test) };
            let step =
                Step::new(StepId::new(&entry.name), field, "", StepKind::Require(Box::new(requirement)));
            Ok(found(step, &depends_on, None, None))
        }
        _ => Err(at(format!("{field}.capability"), "give exactly one of name and api")),
    }
}

fn found(
    step: Step,
    depends_on: &str,
    version: Option<String>,
    shown_state: Option<&'static str>,
) -> ResolvedEntry {
    ResolvedEntry {
        step,
        depends_on: format!("Capability {depends_on}"),
        state: Wanted::Ready,
        what: What::Capability,
        object: None,
        own: None,
        completed: false,
        cyclic: false,
        shown_state,
        revision: None,
        version,
    }
}

/// All objects of a kind of ours: of the cluster, or of one namespace.
fn all(kind_name: &str, namespace: Option<&str>, reads: &[&str]) -> Want {
    Want::new(Question::Objects {
        via: ourselves(),
        kind: kind(kind_name),
        scope: Scope::Labels { namespace: namespace.map(str::to_owned), selector: Selector::default() },
        reads: ReadSet::dotted(reads.iter().copied()),
    })
}

/// The capabilities that count, the first by name.
fn counted(observed: &Observed) -> Vec<&Projection> {
    let mut all: Vec<&Projection> = observed.items.iter().map(|item| &**item).collect();
    all.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    all.truncate(limits::CAPABILITIES);
    all
}

/// Why a capability provides nothing: there are too many before it.
pub(crate) fn is_counted(frame: &Frame<'_>, name: &str) -> Result<(), SpecError> {
    let all = match frame.kinds.ask(all("Capability", None, &[])) {
        None => return Err(not_yet("metadata.name")),
        Some(Seen::Unknown(why)) if why.is_passing() => return Err(not_yet("metadata.name")),
        known => seen(known).map(counted).unwrap_or_default(),
    };
    match all.last().filter(|_| all.len() == limits::CAPABILITIES) {
        Some(last) if last.name.as_str() < name => {
            let most = limits::CAPABILITIES;
            let problem = format!(
                "{most} capabilities count, the first by name: this one comes after them and provides nothing"
            );
            Err(at("metadata.name", problem).because(Reason::TooLarge))
        }
        _ => Ok(()),
    }
}

fn named(
    around: &DependencyContext<'_>,
    entry: &SyncDependency,
    range: Option<&Range>,
    name: &str,
    field: &str,
) -> Result<ResolvedEntry, SpecError> {
    let frame = around.frame;
    let own = (!around.explicit).then_some(frame.owner.namespace.as_str());
    let capabilities = seen(frame.kinds.ask(all("Capability", None, &["status.version"]))).map(counted);
    let reads = ["spec.provides", "status.version"];
    let syncs = own.and_then(|own| seen(frame.kinds.ask(all("Sync", Some(own), &reads))));
    let others: Vec<&Projection> =
        syncs.iter().flat_map(|observed| &observed.items).map(|item| &**item).collect();
    let others: Vec<&Projection> = others.into_iter().filter(|item| item.name != frame.owner.name).collect();
    let object = capabilities.iter().flatten().find(|item| item.name == name);
    let provided = others.iter().filter_map(|item| Provider::sync(item, name));
    let candidates = object.map(|item| Provider::capability(item)).into_iter().chain(provided).collect();
    let chosen = provider::best(frame, candidates, range, field)?;
    let is_there = chosen.is_some();
    let none = || Provider { kind: "Capability", namespace: None, name: name.to_owned(), version: None };
    let Provider { kind: provider_kind, namespace, name: called, version } = chosen.unwrap_or_else(none);
    let gvk = kind(provider_kind);
    let spec = RequirementSpec {
        state: Some(Wanted::Ready),
        ..RequirementSpec::on_object(
            StepId::new(&entry.name),
            field,
            ourselves(),
            &gvk,
            namespace.as_deref(),
            &called,
        )
    };
    let mut draft = RequirementDraft::new(frame, spec)?;
    let mut given = json!({"name": name});
    if let Some(version) = &version {
        given["version"] = json!(version);
    }
    if let Some(bound) = bound(around, entry, BoundView::Given(given), field)? {
        draft.is_bound(bound);
    }
    let obstacle = if !is_there && capabilities.is_some() {
        let provided = others.iter().flat_map(|item| provider::offers(&item.content)).map(|(name, _)| name);
        let known = capabilities.iter().flatten().map(|item| item.name.as_str());
        let there: BTreeSet<&str> = known.chain(provided).collect();
        let there: Vec<&str> = there.into_iter().take(8).collect();
        let instead =
            if there.is_empty() { String::new() } else { format!(" (there are: {})", there.join(", ")) };
        let message = format!(
            "needs {name} in this cluster, which nothing provides{instead}; it is never installed for you"
        );
        Some(Obstacle { reason: Reason::CapabilityMissing, message })
    } else {
        version_obstacle(&format!("Capability {name}"), range, version.as_deref())
    };
    // It is there or not: with another version it is there, and while its provider is not ready it is not.
    let shown_state = is_there.then_some(if obstacle.is_some() { "Available" } else { "Absent" });
    if let Some(obstacle) = obstacle {
        draft.is_held(obstacle, None);
    }
    Ok(found(draft.finish(Vec::new(), None), name, version, shown_state))
}

fn seen(seen: Option<&Seen>) -> Option<&Observed> {
    match seen {
        Some(Seen::Objects(observed)) => Some(observed),
        _ => None,
    }
}

fn text(content: &Value, path: &str) -> Option<String> {
    content.pointer(path).and_then(Value::as_str).map(str::to_owned)
}
