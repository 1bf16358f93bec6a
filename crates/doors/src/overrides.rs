//! Orders that people give by annotation: look again, run again, let a gate pass.
//!
//! Steps are named as they are written: an action by its name, a dependency by its name or its resource. An order that
//! names nothing of this object is no order, and the status says so.

use linchpin_engine::{
    contract::StepId,
    plan::{ManualOverrides, RerunOverride},
};
use linchpin_words::{keys, similar, text};

use crate::{names::NamedStep, owner::Owner};

/// The orders on an object.
pub(crate) fn on_object(owner: &Owner, dependencies: &[NamedStep], actions: &[NamedStep]) -> ManualOverrides {
    let annotation =
        |key: &str| owner.annotations.get(key).map(|text| text.trim()).filter(|text| !text.is_empty());
    let mut orders = ManualOverrides {
        requested_at: annotation(keys::REQUESTED_AT).map(str::to_owned),
        ..ManualOverrides::default()
    };
    let mut wrong = |key: &str, problem: String| {
        orders.problems.push(text::line(&format!("annotation {key}: {problem}")));
    };
    match annotation(keys::RERUN).map(|text| rerun(text, actions)) {
        Some(Ok(rerun)) => orders.rerun = Some(rerun),
        Some(Err(problem)) => wrong(keys::RERUN, problem),
        None => {}
    }
    for one in annotation(keys::PROCEED).into_iter().flat_map(|text| text.split(',')) {
        match proceed(one.trim(), owner.generation, dependencies) {
            Ok(gate) => orders.proceed.extend(gate),
            Err(problem) => wrong(keys::PROCEED, problem),
        }
    }
    orders
}

/// `<step|all>@<value>`.
fn rerun(text: &str, actions: &[NamedStep]) -> Result<RerunOverride, String> {
    let step = text.rsplit_once('@').map_or(text, |(step, _)| step);
    let steps = if step == "all" {
        None
    } else {
        let words = std::iter::once("all").chain(words(actions));
        Some(vec![find(step, actions).ok_or_else(|| unknown("action", step, words))?])
    };
    Ok(RerunOverride { value: text.to_owned(), steps })
}

/// `<dependency>@<generation>`: an order for another generation is over.
fn proceed(text: &str, generation: i64, dependencies: &[NamedStep]) -> Result<Option<StepId>, String> {
    let numbered = text.rsplit_once('@').and_then(|(step, number)| Some((step, number.parse::<i64>().ok()?)));
    let Some((step, for_generation)) = numbered else {
        return Err(format!("{} names no generation; write DEPENDENCY@{generation}", text::quote(text)));
    };
    if for_generation != generation {
        return Ok(None);
    }
    find(step, dependencies).map(Some).ok_or_else(|| unknown("dependency", step, words(dependencies)))
}

/// All that steps are called.
fn words(steps: &[NamedStep]) -> impl Iterator<Item = &str> {
    steps
        .iter()
        .flat_map(|step| std::iter::once(step.id.as_str()).chain(step.words.iter().map(String::as_str)))
}

fn unknown<'w>(what: &str, word: &str, known: impl Iterator<Item = &'w str>) -> String {
    format!("there is no {what} {}{}", text::quote(word), similar::did_you_mean(word, known))
}

/// The only step that is called so.
fn find(word: &str, steps: &[NamedStep]) -> Option<StepId> {
    if let Some(exact) = steps.iter().find(|step| step.id.as_str() == word) {
        return Some(exact.id.clone());
    }
    let mut called = steps.iter().filter(|step| step.words.iter().any(|known| known == word));
    match (called.next(), called.next()) {
        (Some(step), None) => Some(step.id.clone()),
        _ => None,
    }
}
