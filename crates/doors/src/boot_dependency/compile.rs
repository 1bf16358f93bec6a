//! From a BootDependency to a plan: a requirement for each entry.
//!
//! A Service is answered by the API server alone where it knows; a host, and whatever needs a request, by a probe; an
//! object like every other dependency of ours. `timeout` is no clock here: it is how long a pod waits.

use std::collections::BTreeMap;

use linchpin_api::{BootDependency, BootEntry};
use linchpin_engine::{
    contract::{Question, StepId},
    plan::{Notes, Plan, Removal, Requirement, SpecError, Step, StepKind, definition},
};
use linchpin_words::{GroupKind, ObjectRef, limits};
use serde_json::Value;

use super::{
    address::{as_dependency, target_and_port},
    dial::{self, Dialled},
    division::fragment,
    references::Holder,
    step_names,
};
use crate::{
    assemble::Frame,
    dependency,
    door::{CompileInput, Compiled},
    errors::{at, bounded},
    names::NamedStep,
};

/// The plan of an object: a requirement for each entry, which Ready follows for ever.
pub fn compile(object: &BootDependency, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
    let spec = &object.spec;
    bounded(spec.depends_on.len(), limits::BOOT_ENTRIES, "spec.dependsOn", "entries")?;
    let frame = Frame::new(object, &spec.common, compile_input, Removal::Retain)?;
    let names = step_names(&spec.depends_on.iter().collect::<Vec<_>>());
    let mut steps = Vec::with_capacity(names.len());
    let mut closed = BTreeMap::new();
    for (index, (entry, named)) in spec.depends_on.iter().zip(&names).enumerate() {
        let field = format!("spec.dependsOn[{index}]");
        if entry.service.is_none() && entry.host.is_none() {
            let draft = dependency::read(&frame, &as_dependency(entry), named, &field, None, None)?;
            steps.push(draft.finish(Vec::new(), None));
        } else {
            let (step, forbidden) = dialled(&frame, entry, named, field, compile_input.cluster_domain)?;
            closed.extend(forbidden.map(|why| (named.id.clone(), why)));
            steps.push(step);
        }
    }
    let mut compiled = frame.plan(steps, &names, &[], true)?;
    compiled.plan.notes = Notes::new(Forbidden(closed));
    Ok(compiled)
}

/// Why an entry is dialled that the API server knows more about: what its ServiceAccount may not read.
pub(super) fn forbidden<'p>(plan: Option<&'p Plan>, id: &StepId) -> Option<&'p str> {
    plan?.notes.get::<Forbidden>()?.0.get(id).map(String::as_str)
}

/// What may not be read, by entry.
struct Forbidden(BTreeMap<StepId, String>);

/// Where an entry is seen from: by what the API server says, or from where the operator runs.
pub(super) fn observed_from(plan: Option<&Plan>, id: &StepId) -> &'static str {
    let requirement = plan.and_then(|plan| plan.steps()[plan.position(id)?].requirement());
    match requirement.map(|requirement| requirement.want.question()) {
        Some(Question::Probe { .. }) => "Operator",
        _ => "API",
    }
}

/// Whether what an entry waits for now is a Secret or a ConfigMap that it refers to: until that is there, what the entry is
/// about cannot be asked.
pub(super) fn waits_for_reference(plan: Option<&Plan>, entry: &BootEntry, id: &StepId) -> bool {
    let requirement = plan.and_then(|plan| plan.steps()[plan.position(id)?].requirement());
    let question = requirement.map(|requirement| requirement.want.question());
    let Some(Question::Objects { kind, .. }) = question else { return false };
    let is_object = entry.service.is_none() && entry.host.is_none();
    !is_object && [Holder::Secret, Holder::ConfigMap].iter().any(|holder| holder.kind() == *kind)
}

fn dialled(
    frame: &Frame<'_>,
    entry: &BootEntry,
    named: &NamedStep,
    field: String,
    cluster_domain: &str,
) -> Result<(Step, Option<String>), SpecError> {
    let Dialled { want, test, held, rights, forbidden } =
        dial::question(frame, entry, cluster_domain).map_err(|problem| at(field.clone(), problem))?;
    let namespace = entry.namespace.as_deref().unwrap_or(&frame.owner.namespace);
    let kind = GroupKind { group: String::new(), kind: "Service".to_owned() };
    // Also where it is dialled it is the Service that is waited for.
    let target = entry.service.clone().map(|service| ObjectRef::namespaced(kind, namespace, service));
    let requirement =
        Requirement { rights, held, target, ..Requirement::new(target_and_port(entry), want, test) };
    let text = definition(&fragment(entry), &Value::Null);
    let step = Step::new(named.id.clone(), field, text, StepKind::Require(Box::new(requirement)));
    Ok((step, forbidden))
}
