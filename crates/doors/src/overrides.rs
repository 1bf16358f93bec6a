//! Orders that people give by annotation: look again, run again, let a gate pass.
//!
//! Steps are named as they are written: an action by its name, a dependency by its name or its resource. An order that
//! names nothing of this object is no order.

use linchpin_engine::{
    contract::StepId,
    plan::{ManualOverrides, RerunOverride},
};
use linchpin_words::keys;

use crate::{names::Named, owner::Owner};

/// The orders on an object.
pub(crate) fn on_object(owner: &Owner, dependencies: &[Named], actions: &[Named]) -> ManualOverrides {
    let annotation =
        |key: &str| owner.annotations.get(key).map(|text| text.trim()).filter(|text| !text.is_empty());
    ManualOverrides {
        requested_at: annotation(keys::REQUESTED_AT).map(str::to_owned),
        rerun: annotation(keys::RERUN).and_then(|text| rerun(text, actions)),
        proceed: annotation(keys::PROCEED)
            .map(|text| {
                text.split(',')
                    .filter_map(|one| proceed(one.trim(), owner.generation, dependencies))
                    .collect()
            })
            .unwrap_or_default(),
    }
}

/// `<step|all>@<value>`.
fn rerun(text: &str, actions: &[Named]) -> Option<RerunOverride> {
    let step = text.rsplit_once('@').map_or(text, |(step, _)| step);
    let steps = if step == "all" { None } else { Some(vec![find(step, actions)?]) };
    Some(RerunOverride { value: text.to_owned(), steps })
}

/// `<dependency>@<generation>`: an order for an older generation is void.
fn proceed(text: &str, generation: i64, dependencies: &[Named]) -> Option<StepId> {
    let (step, for_generation) = text.rsplit_once('@')?;
    if for_generation.parse::<i64>().ok()? != generation {
        return None;
    }
    find(step, dependencies)
}

/// The only step that is called so.
fn find(word: &str, steps: &[Named]) -> Option<StepId> {
    if let Some(exact) = steps.iter().find(|step| step.id.as_str() == word) {
        return Some(exact.id.clone());
    }
    let mut called = steps.iter().filter(|step| step.words.iter().any(|known| known == word));
    match (called.next(), called.next()) {
        (Some(step), None) => Some(step.id.clone()),
        _ => None,
    }
}
