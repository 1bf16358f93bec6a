//! `GlobalDependency`: what every Sync it is about relies on. It judges its dependency once, as the account that it names,
//! and is Ready with it; each subject has it as one more gate (`sync::global`). What the dependency itself needs is exempt:
//! the controller finds that in the wait-for graph.

use linchpin_api::{
    GlobalDependency, GlobalDependencyStatus, Ours as _, SyncDependency,
    global_dependency::SubjectCount,
    sync::{Strength, status::SyncDependencyStatus},
};
use linchpin_engine::{
    contract::{ReadSet, Seen, Want},
    plan::{Notes, Plan, Removal, SpecError},
};
use linchpin_words::{Gvk, ObjectRef, limits};
use serde_json::Value;

use crate::{
    assemble::Frame,
    door::{self, Backing, CompileInput, Compiled, Door, GraphTies, Insight, StatusInput},
    entries,
    sync::{
        backing,
        dependency_status::{self, RowNotes},
        global,
    },
};

/// The door of `GlobalDependency`.
#[derive(Clone, Copy, Debug)]
pub enum GlobalDependencyDoor {}

impl Door for GlobalDependencyDoor {
    type Object = GlobalDependency;

    fn compile(object: &GlobalDependency, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        let mut frame = Frame::new(object, object.common(), compile_input, Removal::Retain)?;
        frame.via = door::via(object, compile_input.default_service_account);
        let entry = SyncDependency { name: "dependency".to_owned(), ..object.spec.dependency.clone() };
        let imposed = global::is_imposed(&frame, object.metadata.name.as_deref().unwrap_or_default());
        let (outline, step) =
            match imposed.and_then(|()| dependency_status::read(&frame, &entry, "spec.dependency")) {
                Ok(found) => found,
                Err(error) => return Err(error.asking(frame.kinds.into_parts().0)),
            };
        let backing = outline.object.as_ref().map(|object| behind(&frame, object)).unwrap_or_default();
        let mut compiled = frame.plan(vec![step], &[], &[], true)?;
        compiled.plan.terms.suspended = object.spec.suspend;
        compiled.plan.notes = Notes::new(RowNotes { outlines: vec![outline], backing });
        Ok(compiled)
    }

    fn ties() -> Option<&'static dyn GraphTies<GlobalDependency>> {
        Some(&RuleTies)
    }

    fn status(object: &GlobalDependency, input: &StatusInput<'_>) -> GlobalDependencyStatus {
        let generation = object.metadata.generation.unwrap_or_default();
        if let Some(same) = entries::still(object.status.as_ref(), generation, input) {
            return same;
        }
        let current = object.status.clone().unwrap_or_default();
        let before: Vec<_> = current.dependency.clone().into_iter().collect();
        let (common, rows) = dependency_status::draw(&current.common, &before, generation, input);
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let (subjects, exempt, exempt_count) = match &input.causes.imposed {
            None => (current.subjects, current.exempt, current.exempt_count),
            Some(imposed) => (
                Some(SubjectCount { total: count(imposed.total), held: count(imposed.held) }),
                imposed.exempt.iter().take(limits::GLOBAL_EXEMPT).map(ToString::to_string).collect(),
                count(imposed.exempt.len()),
            ),
        };
        let strength = object.spec.strength.unwrap_or(Strength::Hard).as_str().to_owned();
        let dependency = rows.into_iter().next().map(|row| SyncDependencyStatus { strength, ..row });
        GlobalDependencyStatus { common, dependency, subjects, exempt, exempt_count }
    }
}

/// A rule sees whom it is imposed on, and may be about what serves webhooks.
struct RuleTies;

impl GraphTies<GlobalDependency> for RuleTies {
    fn insight(&self) -> Insight {
        Insight::Subjects
    }

    fn backing<'p>(&self, plan: &'p Plan) -> Option<&'p Backing> {
        RowNotes::of(Some(plan)).map(|notes| &notes.backing)
    }
}

/// What serves a configuration of webhooks that is there: the Services that it names, and whom these lead to, as far
/// as the account may see them.
fn behind(frame: &Frame<'_>, object: &ObjectRef) -> Backing {
    let mut backing = Backing::default();
    if !backing::is_configuration(&object.kind.group, &object.kind.kind) {
        return backing;
    }
    let gvk = Gvk::new(&object.kind.group, "v1", &object.kind.kind);
    let reads =
        ReadSet::dotted(["webhooks.clientConfig.service.namespace", "webhooks.clientConfig.service.name"]);
    for service in
        look(frame, gvk, None, &object.name, reads).as_ref().map(backing::services).unwrap_or_default()
    {
        let (namespace, name) = service.clone();
        let reads = ReadSet::dotted(["spec.selector"]);
        if let Some(found) = look(frame, Gvk::new("", "v1", "Service"), Some(namespace), &name, reads) {
            backing.services.push((service.clone(), backing::labels(found.pointer("/spec/selector"))));
        }
        backing.webhooks.push((object.clone(), service));
    }
    backing
}

fn look(frame: &Frame<'_>, gvk: Gvk, namespace: Option<String>, name: &str, reads: ReadSet) -> Option<Value> {
    match frame.kinds.ask(Want::object(frame.via.clone(), gvk, namespace, name, reads))? {
        Seen::Objects(observed) => observed.items.first().map(|item| item.content.clone()),
        _ => None,
    }
}
