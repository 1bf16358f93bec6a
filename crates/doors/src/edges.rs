//! Order: tiers of dependencies, priorities and names of actions.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_engine::{
    contract::StepId,
    plan::{After, SpecError},
};
use linchpin_words::{limits, similar};

use crate::{
    action, dependency,
    errors::{at, bounded},
};

/// For each dependency, the tier below it; and the last tier, which represents them all.
///
/// Optional dependencies are in their tier like all others: the engine lets them pass as soon as they were observed.
pub(crate) fn tiers(drafts: &[dependency::DependencyDraft]) -> (Vec<Vec<After>>, Vec<After>) {
    let mut tiers: BTreeMap<i32, Vec<StepId>> = BTreeMap::new();
    for draft in drafts {
        tiers.entry(draft.priority).or_default().push(draft.requirement.id.clone());
    }
    let below = drafts
        .iter()
        .map(|draft| tiers.range(..draft.priority).next_back().map_or_else(Vec::new, |(_, tier)| gate(tier)))
        .collect();
    let last = tiers.values().next_back().map_or_else(Vec::new, gate);
    (below, last)
}

/// After all of these.
pub(crate) fn gate<'s>(steps: impl IntoIterator<Item = &'s StepId>) -> Vec<After> {
    steps.into_iter().cloned().map(After::success).collect()
}

/// For each action of one part, what it comes after: the dependencies in `gate`, and other actions.
///
/// By priority an action waits for the end, good or bad, of those of lower priority; `after` replaces that by the good
/// end of those it names. Where the two contradict each other `after` wins: an action is not waited for by priority if
/// it comes, by name, after one of the same or a higher priority.
pub(crate) fn actions(drafts: &[&action::ActionDraft], gate: &[After]) -> Result<Vec<Vec<After>>, SpecError> {
    let mut levels: BTreeMap<i32, Vec<&action::ActionDraft>> = BTreeMap::new();
    for draft in drafts {
        levels.entry(draft.priority).or_default().push(draft);
    }
    drafts
        .iter()
        .map(|draft| {
            let mut edges = gate.to_vec();
            match &draft.after {
                Some(names) => edges.extend(named(draft, names, drafts)?),
                None => edges.extend(lower(draft.priority, &levels, drafts)),
            }
            Ok(edges)
        })
        .collect()
}

/// The highest priority that an action comes after by name, directly or through others that have `after` too.
fn highest_named(draft: &action::ActionDraft, drafts: &[&action::ActionDraft]) -> Option<i32> {
    let mut open: Vec<&action::ActionDraft> = vec![draft];
    let mut seen = BTreeSet::new();
    let mut highest = None;
    while let Some(next) = open.pop() {
        match &next.after {
            None => highest = highest.max(Some(next.priority)),
            Some(names) if seen.insert(next.id.clone()) => {
                open.extend(names.iter().filter_map(|name| find(name, drafts)));
            }
            Some(_) => {}
        }
    }
    highest
}

/// The action of a name.
fn find<'d>(name: &str, drafts: &[&'d action::ActionDraft]) -> Option<&'d action::ActionDraft> {
    let by_name = drafts.iter().find(|other| other.name.as_deref() == Some(name));
    by_name.or_else(|| drafts.iter().find(|other| other.id.as_str() == name)).copied()
}

/// The actions of the next lower priority. Where one of them gave up its own priority edges, it does not represent
/// what is below it, so the search goes on until somebody does.
fn lower(
    priority: i32,
    levels: &BTreeMap<i32, Vec<&action::ActionDraft>>,
    drafts: &[&action::ActionDraft],
) -> Vec<After> {
    let mut edges = Vec::new();
    for (_, level) in levels.range(..priority).rev() {
        let before = level.iter().filter(|draft| {
            draft.after.is_none() || highest_named(draft, drafts).is_none_or(|highest| highest < priority)
        });
        edges.extend(before.map(|draft| After::settled(draft.id.clone())));
        if level.iter().any(|draft| draft.after.is_none()) {
            break;
        }
    }
    edges
}

/// The actions that an action names itself.
fn named(
    draft: &action::ActionDraft,
    names: &[String],
    drafts: &[&action::ActionDraft],
) -> Result<Vec<After>, SpecError> {
    let field = format!("{}.after", draft.field);
    bounded(names.len(), limits::AFTER, &field, "names")?;
    let mut seen = BTreeSet::new();
    let mut edges = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let Some(found) = find(name, drafts) else {
            let meant = similar::did_you_mean(name, drafts.iter().filter_map(|other| other.name.as_deref()));
            let known: Vec<&str> = drafts.iter().filter_map(|other| other.name.as_deref()).take(10).collect();
            let known = if known.is_empty() { "no action has a name".to_owned() } else { known.join(", ") };
            let problem = format!("there is no action named {name:?}; named are: {known}{meant}");
            return Err(at(format!("{field}[{index}]"), problem));
        };
        if found.id == draft.id {
            return Err(at(format!("{field}[{index}]"), "an action cannot come after itself"));
        }
        if seen.insert(found.id.clone()) {
            edges.push(After::success(found.id.clone()));
        }
    }
    Ok(edges)
}
