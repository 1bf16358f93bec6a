//! A dependency on objects that anybody may have made: one by its name, or several by their labels.

use linchpin_api::{SyncDependency, sync::dependency::ObjectRef as ObjectWord};
use linchpin_engine::{
    contract::{Question, ReadSet, Scope, Seen, StepId, Want},
    plan::{BoundView, ExpectedCount, SpecError},
    readiness::{self, Wanted},
};
use linchpin_words::{GroupKind, KindWord, ObjectRef, Reference};
use serde_json::Value;

use super::{
    DependencyContext, ResolvedEntry, Terms, bound,
    version::{range_conditions, version_obstacle, version_of, version_path},
};
use crate::{
    cluster,
    dependency::expect,
    errors::at,
    kinds::KindLookup,
    requirement::{RequiredObjects, RequiredThing, RequirementDraft, RequirementSpec},
    sync::{kind, outline::What},
};

/// The reference that an entry on one object makes.
fn reference(object: &ObjectWord, field: &str) -> Result<(KindWord, String), SpecError> {
    match (&object.resource, &object.kind, &object.name) {
        (Some(text), None, None) => {
            let parsed = Reference::parse(text).map_err(|error| at(format!("{field}.resource"), error))?;
            let name = parsed.name.ok_or_else(|| at(format!("{field}.resource"), "it names no object"))?;
            Ok((parsed.word, name))
        }
        (None, Some(kind), Some(name)) => {
            Ok((KindWord::from_manifest(object.api_version.as_deref(), kind), name.clone()))
        }
        _ => Err(at(field, "give resource, or kind and name")),
    }
}

/// What is said of an object without a namespace where there is no namespace of one's own.
const NAMELESS: &str = "name the namespace: there is no other to be meant";

/// Whether a kind does not run to an end: it is completed once it was there as it should be.
fn is_completed_by_being_there(kinds: &KindLookup<'_>, kind: &GroupKind, entry: &SyncDependency) -> bool {
    !ends(kinds, kind) || entry.ready_expr.is_some() && !runs(kind)
}

/// Whether a kind runs to an end, or may say so itself.
fn ends(kinds: &KindLookup<'_>, kind: &GroupKind) -> bool {
    let runs = [("batch", "Job"), ("", "Pod"), ("linchpin.dev", "Sync")];
    runs.contains(&(kind.group.as_str(), kind.kind.as_str()))
        || readiness::row(kind, kinds.registry().is_ours(kind)).is_generic()
}

pub(super) fn on_object(
    around: &DependencyContext<'_>,
    entry: &SyncDependency,
    terms: &Terms,
    object: &ObjectWord,
    field: &str,
) -> Result<ResolvedEntry, SpecError> {
    let frame = around.frame;
    let place = format!("{field}.object");
    let (word, name) = reference(object, &place)?;
    let completed = terms.state == Some(Wanted::Completed);
    let spec = |state: Option<Wanted>| RequirementSpec {
        kind_field: place.clone(),
        state,
        about: RequiredThing::Objects {
            word: word.clone(),
            namespace: object.namespace.clone(),
            which: RequiredObjects::Name(name.clone()),
        },
        ..RequirementSpec::on_object(
            StepId::new(&entry.name),
            field,
            around.via.clone(),
            &kind("Sync"),
            object.namespace.as_deref(),
            &name,
        )
    };
    let mut draft = RequirementDraft::new(frame, spec(terms.state.clone()))?;
    let resolved =
        draft.object().map(|(gvk, namespace, name)| (gvk.clone(), namespace.cloned(), name.clone()));
    if let Some((gvk, namespace, _)) = &resolved {
        if around.explicit && namespace.is_some() && object.namespace.is_none() {
            return Err(at(format!("{place}.namespace"), NAMELESS));
        }
        if completed && is_completed_by_being_there(&frame.kinds, &gvk.group_kind(), entry) {
            draft = RequirementDraft::new(frame, spec(Some(Wanted::Ready)))?;
        }
    }
    let mut defined = None;
    if resolved.is_none() {
        defined = around.objects.iter().find_map(|one| kind_that_is_defined(&one.object().body, &word));
        match &defined {
            Some(kind) => draft.is_of_defined_kind(kind.clone()),
            None => draft.is_of_kind(&object.kind.clone().unwrap_or_else(|| capitalised(&word.word))),
        }
    }
    let wanted = draft.wanted.clone();
    let target = draft.target().clone();
    let own = around.objects.iter().position(|one| {
        let object = one.object();
        if let Some((gvk, namespace, name)) = &resolved {
            return one.is(&gvk.group_kind(), namespace.as_deref(), name);
        }
        // A kind that the source itself defines is not served before it is applied.
        let called = object.gvk.kind.eq_ignore_ascii_case(&word.word)
            && word.group.as_ref().is_none_or(|group| *group == object.gvk.group);
        let meant = called || defined.as_ref() == Some(&object.gvk.group_kind());
        object.name == name && meant && object.kind.is_err()
    });
    if let Some(bound) = bound(around, entry, BoundView::Whole, field)? {
        draft.is_bound(bound);
    }
    let mut version = None;
    if let (Some(range), Some((gvk, namespace, name))) = (&terms.range, resolved) {
        let path = version_path(entry, field)?;
        let reads = path
            .as_ref()
            .map_or_else(|| ReadSet::dotted(["metadata.labels"]), |path| ReadSet::from(&path.reads()));
        let want = Want::object(around.via.clone(), gvk, namespace, name, reads);
        if let Some(Seen::Objects(observed)) = frame.kinds.ask(want)
            && let Some(item) = observed.items.first()
        {
            version = version_of(path.as_ref(), &item.content);
            if let Some(obstacle) = version_obstacle(&shown(&target), Some(range), version.as_deref()) {
                draft.is_held(obstacle, None);
            }
        }
    }
    Ok(ResolvedEntry {
        step: draft.finish(Vec::new(), None),
        depends_on: shown(&target),
        state: if completed { Wanted::Completed } else { wanted },
        what: if own.is_some() { What::Own } else { What::Object },
        object: Some(target),
        own,
        completed,
        cyclic: false,
        shown_state: None,
        revision: None,
        version,
    })
}

/// The kind that a body defines, if this word is one of its names.
pub fn kind_that_is_defined(body: &Value, word: &KindWord) -> Option<GroupKind> {
    let text = |path: &str| body.pointer(path).and_then(Value::as_str).unwrap_or_default();
    if text("/kind") != "CustomResourceDefinition" {
        return None;
    }
    let kind = GroupKind::new(text("/spec/group"), text("/spec/names/kind"));
    let short = body.pointer("/spec/names/shortNames").and_then(Value::as_array);
    let short = short.into_iter().flatten().filter_map(Value::as_str);
    let mut names =
        short.chain(["kind", "plural", "singular"].map(|name| text(&format!("/spec/names/{name}"))));
    let is_called = names.any(|name| !name.is_empty() && name.eq_ignore_ascii_case(&word.word));
    let is_meant = word.group.as_ref().is_none_or(|group| *group == kind.group);
    (is_called && is_meant).then_some(kind)
}

/// A kind as people write it, where only its resource is known.
fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Whether a kind certainly runs to an end.
fn runs(kind: &GroupKind) -> bool {
    [("batch", "Job"), ("", "Pod")].contains(&(kind.group.as_str(), kind.kind.as_str()))
}

/// An object as people are shown it: kinds that are neither Kubernetes' own nor ours with their group.
pub(in crate::sync) fn shown(object: &ObjectRef) -> String {
    let group = object.kind.group.as_str();
    let plain = group.is_empty()
        || linchpin_words::reference::built_in_kind(group, &object.kind.kind).is_some()
        || group == "linchpin.dev";
    if plain {
        return object.to_string();
    }
    match &object.namespace {
        Some(namespace) => format!("{} {namespace}/{}", object.kind, object.name),
        None => format!("{} {}", object.kind, object.name),
    }
}

pub(super) fn on_objects(
    around: &DependencyContext<'_>,
    entry: &SyncDependency,
    terms: &Terms,
    field: &str,
) -> Result<ResolvedEntry, SpecError> {
    let frame = around.frame;
    let Some(objects) = &entry.objects else { return Err(at(field, "it names nothing")) };
    let place = format!("{field}.objects");
    let selector = cluster::selector(&objects.selector, &format!("{place}.selector"))?;
    let word = KindWord::from_manifest(objects.api_version.as_deref(), &objects.kind);
    let expect = expect(objects.expect.as_ref(), true, &place)?;
    let spec = |state: Option<Wanted>| RequirementSpec {
        kind_field: place.clone(),
        state,
        expect,
        about: RequiredThing::Objects {
            word: word.clone(),
            namespace: objects.namespace.clone(),
            which: RequiredObjects::Labels(selector.clone()),
        },
        ..RequirementSpec::on_object(
            StepId::new(&entry.name),
            field,
            around.via.clone(),
            &kind("Sync"),
            objects.namespace.as_deref(),
            "",
        )
    };
    let completed = terms.state == Some(Wanted::Completed);
    let mut draft = RequirementDraft::new(frame, spec(terms.state.clone()))?;
    if let Some((gvk, Scope::Labels { namespace, .. })) = draft.selection() {
        if around.explicit && namespace.is_some() && objects.namespace.is_none() {
            return Err(at(format!("{place}.namespace"), NAMELESS));
        }
        if completed && is_completed_by_being_there(&frame.kinds, &gvk.group_kind(), entry) {
            draft = RequirementDraft::new(frame, spec(Some(Wanted::Ready)))?;
        }
    }
    let wanted = draft.wanted.clone();
    if let Some(bound) = bound(around, entry, BoundView::Whole, field)? {
        draft.is_bound(bound);
    }
    let target = draft.target().clone();
    let mut version = None;
    if let Some(range) = &terms.range {
        let path = version_path(entry, field)?;
        let reads = path
            .as_ref()
            .map_or_else(|| ReadSet::dotted(["metadata.labels"]), |path| ReadSet::from(&path.reads()));
        if let Some((gvk, scope)) = draft.selection() {
            let question = Question::Objects { via: around.via.clone(), kind: gvk, scope, reads };
            if let Some(Seen::Objects(observed)) = frame.kinds.ask(Want::new(question)) {
                let mut outside = None;
                let mut inside = 0_u64;
                for item in observed.items.iter().filter(|item| !item.deleting) {
                    let found = version_of(path.as_ref(), &item.content);
                    let what = item.object_ref().to_string();
                    match version_obstacle(&what, Some(range), found.as_deref()) {
                        None => {
                            inside += 1;
                            version = version.or(found);
                        }
                        Some(obstacle) => outside = outside.or(Some((obstacle, found))),
                    }
                }
                // Where some of them will do, those that count must be in the range; else each of them, and the first
                // that is not says why.
                let some = matches!(expect, Some(ExpectedCount::AtLeast(least)) if least <= inside);
                match outside {
                    Some((obstacle, found)) if !some => {
                        version = found;
                        draft.is_held(obstacle, None);
                    }
                    _ => draft.also_requires(range_conditions(entry, range, field)?),
                }
            }
        }
    }
    Ok(ResolvedEntry {
        step: draft.finish(Vec::new(), None),
        depends_on: shown(&target),
        state: if completed { Wanted::Completed } else { wanted },
        what: What::Objects,
        object: None,
        own: None,
        completed,
        cyclic: false,
        shown_state: None,
        revision: None,
        version,
    })
}
