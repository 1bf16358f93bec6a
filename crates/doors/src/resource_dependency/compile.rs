//! From a ResourceDependency to a plan.

use linchpin_api::{Ours, ResourceDependency};
use linchpin_engine::plan::{SpecError, Step};

use crate::{
    action,
    assemble::{self, Frame, Part},
    door::{self, CompileInput, Compiled},
    edges,
};

pub(super) fn compile(
    object: &ResourceDependency,
    compile_input: &CompileInput<'_>,
) -> Result<Compiled, SpecError> {
    let spec = &object.spec;
    let removal = door::removal(object.deletion_policy());
    let frame = Frame::new(object, &spec.common, compile_input, removal)?;
    let part = Part {
        name: None,
        field: "spec".to_owned(),
        dependencies: &spec.dependencies,
        actions: &spec.actions,
    };
    let drafts = assemble::drafts(&frame, &[part])?;
    // Without watchMode a completed object is done: nothing runs again.
    let watched = spec.watch_mode.then(|| drafts.watched());
    let (tiers, gate) = edges::tiers(&drafts.dependencies);
    let order = edges::actions(&drafts.actions.iter().collect::<Vec<&action::ActionDraft>>(), &gate)?;
    let dependencies = drafts.dependencies.into_iter().zip(tiers);
    let mut steps: Vec<Step> =
        dependencies.map(|(draft, after)| draft.requirement.finish(after, None)).collect();
    for (draft, after) in drafts.actions.into_iter().zip(order) {
        steps.push(draft.finish(&frame, after, None, watched.as_ref()));
    }
    frame.plan(steps, &drafts.named_dependencies, &drafts.named_actions, spec.watch_mode)
}
