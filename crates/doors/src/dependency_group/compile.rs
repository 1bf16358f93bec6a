//! From a DependencyGroup to a plan.

use std::{collections::BTreeMap, time::Duration};

use linchpin_api::{DependencyGroup, Ours};
use linchpin_engine::{
    contract::StepId,
    plan::{After, SpecError, Step},
};
use linchpin_words::limits;

use super::groups;
use crate::{
    action,
    assemble::{self, Frame, Part},
    dependency,
    door::{self, CompileInput, Compiled},
    edges,
    errors::{bounded, duration},
};

pub(super) fn compile(
    object: &DependencyGroup,
    compile_input: &CompileInput<'_>,
) -> Result<Compiled, SpecError> {
    let spec = &object.spec;
    bounded(spec.groups.len(), limits::GROUPS, "spec.groups", "groups")?;
    let direct = groups::direct(&spec.groups)?;
    let frame = Frame::new(object, &spec.common, compile_input, door::removal(object.deletion_policy()))?;
    let parts: Vec<Part<'_>> = spec
        .groups
        .iter()
        .enumerate()
        .map(|(index, group)| Part {
            name: Some(&group.name),
            field: format!("spec.groups[{index}]"),
            dependencies: &group.dependencies,
            actions: &group.actions,
        })
        .collect();
    let drafts = assemble::drafts(&frame, &parts)?;
    let (mut dependencies, mut actions) = (by_group(drafts.dependencies), by_group(drafts.actions));
    let gates: Vec<Vec<StepId>> =
        spec.groups.iter().map(|group| own_steps(&group.name, &dependencies, &actions)).collect();
    let limits: Result<Vec<Option<Duration>>, SpecError> = spec
        .groups
        .iter()
        .enumerate()
        .map(|(index, group)| duration(group.timeout.as_ref(), &format!("spec.groups[{index}].timeout")))
        .collect();
    let limits = limits?;
    // Actions of groups that are ready at the same moment start in the order of the plan, and by rank.
    let mut order: Vec<usize> = (0..spec.groups.len()).collect();
    order.sort_by_key(|index| spec.groups[*index].priority);
    let mut steps: Vec<Step> = Vec::new();
    for index in order {
        let name = &spec.groups[index].name;
        let before = gate_of(&direct[index], &direct, &gates, spec);
        let own = dependencies.remove(name.as_str()).unwrap_or_default();
        let acts = actions.remove(name.as_str()).unwrap_or_default();
        let gate: Vec<After> = if own.is_empty() {
            before.clone()
        } else {
            edges::gate(own.iter().map(Member::id).collect::<Vec<&StepId>>())
        };
        let edges = edges::actions(&acts.iter().collect::<Vec<&action::ActionDraft>>(), &gate)?;
        steps.extend(own.into_iter().map(|draft| draft.requirement.finish(before.clone(), limits[index])));
        for (draft, after) in acts.into_iter().zip(edges) {
            let step = draft.finish(&frame, after, limits[index], None);
            steps.push(Step { rank: spec.groups[index].priority, ..step });
        }
    }
    frame.plan(steps, &drafts.named_dependencies, &drafts.named_actions, true)
}

/// Something that belongs to a group.
trait Member {
    fn group(&self) -> String;
    fn id(&self) -> &StepId;
}

impl Member for dependency::DependencyDraft {
    fn group(&self) -> String {
        self.requirement.part.clone().unwrap_or_default()
    }

    fn id(&self) -> &StepId {
        &self.requirement.id
    }
}

impl Member for action::ActionDraft {
    fn group(&self) -> String {
        self.part.clone().unwrap_or_default()
    }

    fn id(&self) -> &StepId {
        &self.id
    }
}

fn by_group<M: Member>(members: Vec<M>) -> BTreeMap<String, Vec<M>> {
    let mut groups: BTreeMap<String, Vec<M>> = BTreeMap::new();
    for member in members {
        groups.entry(member.group()).or_default().push(member);
    }
    groups
}

fn own_steps(
    name: &str,
    dependencies: &BTreeMap<String, Vec<dependency::DependencyDraft>>,
    actions: &BTreeMap<String, Vec<action::ActionDraft>>,
) -> Vec<StepId> {
    let ids = dependencies.get(name).into_iter().flatten().map(Member::id);
    ids.chain(actions.get(name).into_iter().flatten().map(Member::id)).cloned().collect()
}

/// What must be met before a group begins: all steps of the groups it waits for. A group without dependencies of its
/// own does not show when something before it is lost, so what is before it counts too.
fn gate_of(
    direct: &[usize],
    all: &[Vec<usize>],
    own: &[Vec<StepId>],
    spec: &linchpin_api::DependencyGroupSpec,
) -> Vec<After> {
    let mut found: Vec<StepId> = Vec::new();
    let mut seen = vec![false; own.len()];
    let mut open: Vec<usize> = direct.to_vec();
    while let Some(index) = open.pop() {
        if std::mem::replace(&mut seen[index], true) {
            continue;
        }
        found.extend(own[index].iter().cloned());
        if spec.groups[index].dependencies.is_empty() {
            open.extend(&all[index]);
        }
    }
    found.sort();
    edges::gate(&found)
}
