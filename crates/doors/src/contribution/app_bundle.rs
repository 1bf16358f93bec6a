//! What an AppBundle contributes: its groups are parts, as in the operator's own graph.
//!
//! The bundle waits for what it requires and for its groups; a group for what it and its components require, for the
//! groups that come before it, and for the objects that its components have made until they are ready. What is still to
//! be made is a product. Objects are taken from the status, so packages and templates are told too; whether a component
//! was applied, and whether what comes after it may begin, is in the journal.

mod shown;

use std::collections::BTreeMap;

use linchpin_api::{
    AppBundle, AppBundleStatus, Component, Dependency,
    app_bundle::status::{BundleGroupStatus, ComponentStatus},
    status::DependencyStatus,
};
use linchpin_engine::{
    contract::StepId,
    graph::{Edge, Node, Relation, Wait, WaitState},
    journal::{Journal, StepRecord, StepState},
};
use linchpin_words::{ConditionStatus, ConditionType, ObjectRef, Reason, condition};

use self::shown::{Shown, objects, seen_as, without_name};
use super::{Contribution, Part, PartState, Progress, is_in_line, kind_in_status};
use crate::{
    AppBundleDoor, Door,
    app_bundle::{DEPLOYED, DEPLOYING, FAILED, PENDING, before_groups},
    names,
    owner::Owner,
};

/// What an AppBundle contributes: it waits for what it requires and for its groups, and they for each other, for what
/// they name and for what they made.
pub fn of_app_bundle(object: &AppBundle) -> Contribution {
    let owner = Owner::of(object);
    let node = Node::here(owner.object_ref());
    let Some(status) = &object.status else {
        return Contribution { node, edges: Vec::new(), parts: Vec::new() };
    };
    let journal = AppBundleDoor::journal(object).ok().flatten();
    let bundle = Bundle { object, status, owner: &owner, journal: journal.as_ref() };
    let required = bundle.requires(&node, &object.spec.requires, &status.requires);
    let before = bundle.before_groups();
    let mut groups: Vec<Group<'_>> =
        status.group_statuses.iter().map(|shown| bundle.group(&node, shown)).collect();
    let parts: BTreeMap<&str, PartState> =
        groups.iter().map(|group| (group.shown.name.as_str(), group.state.clone())).collect();
    let held = bundle.held();
    let mut edges = required.clone();
    for group in &mut groups {
        let earlier = before.get(group.shown.name.as_str()).map(Vec::as_slice).unwrap_or_default();
        let in_order = bundle.in_order(&group.state.node, earlier, &parts);
        if group.in_line {
            let behind_groups = in_order.iter().any(is_unmet);
            let reason = if behind_groups { Reason::WaitingForGroup } else { Reason::WaitingForTier };
            reason.as_str().clone_into(&mut group.state.reason);
            // What the bundle itself requires comes before the first groups, and through them before all others.
            if earlier.is_empty() {
                let unmet = required.iter().filter(|edge| is_unmet(edge));
                edges.extend(unmet.map(|edge| Edge { from: group.state.node.clone(), ..edge.clone() }));
            }
        }
        let (part, state) = (group.state.node.clone(), &group.state);
        edges.push(match &held {
            // Nothing is waited for while the bundle stands still: its groups are what waits.
            Some(wait) if matches!(state.progress, Progress::Running | Progress::Waiting) => {
                Edge::waits(part, node.clone(), wait.clone())
            }
            _ => Edge::waits(node.clone(), part, state.wait()),
        });
        edges.extend(in_order);
        edges.append(&mut group.edges);
    }
    Contribution { node, edges, parts: groups.into_iter().map(|group| group.state).collect() }
}

/// A bundle that somebody has looked at.
struct Bundle<'a> {
    object: &'a AppBundle,
    status: &'a AppBundleStatus,
    owner: &'a Owner,
    journal: Option<&'a Journal>,
}

/// A group, with the edges that it has whatever the others do.
struct Group<'a> {
    shown: &'a BundleGroupStatus,
    edges: Vec<Edge>,
    state: PartState,
    /// Whether it merely has its turn later.
    in_line: bool,
}

impl Bundle<'_> {
    /// Why the bundle as a whole stands still, where none of its groups is the reason.
    fn held(&self) -> Option<Wait> {
        let conditions = &self.status.conditions;
        let stalled = condition::find(conditions, ConditionType::Stalled);
        let stalled = stalled.is_some_and(|stalled| stalled.status == ConditionStatus::True);
        let standing = match self.status.phase.as_deref() {
            // Of a spec that cannot be carried out no step is known.
            _ if stalled && self.status.blocked_by.is_empty() => WaitState::Failed,
            Some("Suspended" | "Deleting") => WaitState::InProgress,
            _ => return None,
        };
        let ready = condition::find(conditions, ConditionType::Ready)?;
        let wait = Wait::new(standing, ready.reason.clone()).since(ready.last_transition_time.into());
        Some(wait.detail(self.status.message.clone().unwrap_or_default()))
    }

    /// For each group, the components that come before it: group and name of each. While another revision is deployed,
    /// the order that is written here is not the one that counts.
    fn before_groups(&self) -> BTreeMap<&str, Vec<(&str, &str)>> {
        let spec = &self.object.spec;
        if spec.rollback.is_some() {
            return BTreeMap::new();
        }
        let named = |(group, inner): (usize, usize)| {
            let group = &spec.groups[group];
            (group.name.as_str(), group.components[inner].name.as_str())
        };
        let before = before_groups(&spec.groups, spec.strict);
        let before = before.into_iter().map(|places| places.into_iter().map(named).collect());
        spec.groups.iter().map(|group| group.name.as_str()).zip(before).collect()
    }

    /// The waits of a group for those before it: over when all components that count may be passed.
    fn in_order(
        &self,
        from: &Node,
        earlier: &[(&str, &str)],
        parts: &BTreeMap<&str, PartState>,
    ) -> Vec<Edge> {
        let mut open: BTreeMap<&str, bool> = BTreeMap::new();
        for (group, component) in earlier {
            *open.entry(group).or_default() |= !self.is_passed(&names::component(group, component));
        }
        let wait = |(group, open): (&str, bool)| {
            let state = parts.get(group)?;
            let wait = if open { state.wait_in_order() } else { Wait::new(WaitState::Met, "") };
            Some(Edge::waits(from.clone(), state.node.clone(), wait))
        };
        open.into_iter().filter_map(wait).collect()
    }

    fn group<'s>(&self, node: &Node, shown: &'s BundleGroupStatus) -> Group<'s> {
        let from = node.clone().part(&shown.name);
        let entry = self.object.spec.groups.iter().find(|group| group.name == shown.name);
        let mut edges =
            entry.map_or_else(Vec::new, |entry| self.requires(&from, &entry.requires, &shown.requires));
        for status in &shown.component_statuses {
            let entry = entry.and_then(|group| group.components.iter().find(|one| one.name == status.name));
            self.component(&from, &shown.name, entry, status, &mut edges);
        }
        let looked_at =
            edges.iter().any(|edge| is_unmet(edge) && !is_in_line(reason(edge)) && !is_plain(reason(edge)));
        let turn_not_come = |one: &ComponentStatus| {
            one.phase == PENDING && (is_in_line(&one.reason) || is_plain(&one.reason))
        };
        let in_line = !looked_at
            && shown.component_statuses.iter().any(|one| !one.ready)
            && shown.component_statuses.iter().all(|one| one.ready || turn_not_come(one));
        let state = state(from, shown, &edges);
        Group { shown, edges, state, in_line }
    }

    /// What a list of requirements says.
    fn requires(&self, from: &Node, entries: &[Dependency], shown: &[DependencyStatus]) -> Vec<Edge> {
        let mut edges = Vec::new();
        self.part(from, entries).waits(shown, &mut edges);
        edges
    }

    fn part<'p>(&'p self, from: &'p Node, dependencies: &'p [Dependency]) -> Part<'p> {
        let common = &self.object.spec.common;
        Part { owner: self.owner, common, from, name: None, dependencies, actions: &[] }
    }

    fn component(
        &self,
        from: &Node,
        group: &str,
        entry: Option<&Component>,
        shown: &ComponentStatus,
        edges: &mut Vec<Edge>,
    ) {
        let required =
            entry.map_or_else(Vec::new, |entry| self.requires(from, &entry.requires, &shown.requires));
        edges.extend(required.into_iter().map(|edge| on_behalf_of(&shown.name, edge)));
        let path = names::component(group, &shown.name);
        let part = self.part(from, &[]);
        let cluster = entry.and_then(|entry| entry.cluster.as_ref());
        let source = format!("{path}:source");
        for blocker in self.status.blocked_by.iter().filter(|one| one.step.as_ref() == Some(&source)) {
            let Some(object) = &blocker.object else { continue };
            let to = ObjectRef {
                kind: kind_in_status(object),
                namespace: object.namespace.clone(),
                name: object.name.clone().unwrap_or_default(),
            };
            let wait = Wait::new(seen_as(&blocker.reason), blocker.reason.clone());
            let detail = without_name(&blocker.message, &to);
            let wait = wait.detail(detail.to_owned()).since(blocker.since.into());
            edges.push(on_behalf_of(
                &shown.name,
                Edge::waits(from.clone(), part.somewhere(to, cluster), wait),
            ));
        }
        let act = self.record(&path);
        let applied = act.is_some_and(StepRecord::is_successful);
        for (index, object) in objects(shown).into_iter().enumerate() {
            let to = part.somewhere(object.named(), cluster);
            // What is in a package is made by others; what was there already is made by nobody.
            let made = index == 0 || shown.package.is_none();
            if made && act.is_none_or(|act| act.state != StepState::Skipped) {
                edges.push(Edge::produces(from.clone(), to.clone(), applied));
            }
            if applied {
                let failed = self.has_failed(&path, &object);
                edges.push(Edge::waits(from.clone(), to, object.wait(failed, shown)));
            } else if made {
                edges.push(Edge::waits(from.clone(), to, self.until_applied(act, &path, shown)));
            }
        }
    }

    /// The wait of a group for an object that it has still to make, or to change: it holds nobody up but those after it.
    fn until_applied(&self, act: Option<&StepRecord>, path: &str, shown: &ComponentStatus) -> Wait {
        let exists = || {
            let step = StepId::new(path);
            self.journal.is_some_and(|journal| journal.made_by(&step).any(|item| item.uid.is_some()))
        };
        let standing = match act.map(|act| act.state) {
            Some(StepState::Failed | StepState::Unknown) => WaitState::Failed,
            _ if exists() => WaitState::InProgress,
            _ => WaitState::Absent,
        };
        let mut wait = Wait::new(standing, shown.reason.clone()).detail(shown.message.clone());
        wait.since = shown.since.map(Into::into);
        wait
    }

    fn record(&self, step: &str) -> Option<&StepRecord> {
        self.journal?.steps.get(&StepId::new(step)).map(|record| &**record)
    }

    /// The records of whether the objects of a component are ready.
    fn ready_records(&self, path: &str) -> impl Iterator<Item = (&StepId, &StepRecord)> {
        let prefix = format!("{path}:ready");
        let steps = self.journal.map(|journal| journal.steps.range(StepId::new(&prefix)..));
        steps
            .into_iter()
            .flatten()
            .take_while(move |(step, _)| step.as_str().starts_with(&prefix))
            .map(|(step, record)| (step, &**record))
    }

    /// Whether what comes after a component may begin.
    fn is_passed(&self, path: &str) -> bool {
        let applied = self.record(path).is_some_and(StepRecord::is_successful);
        applied && self.ready_records(path).all(|(_, record)| record.state == StepState::Met)
    }

    fn has_failed(&self, path: &str, object: &Shown<'_>) -> bool {
        let end = format!("/{}", object.place());
        let about = |step: &StepId| object.alone || step.as_str().ends_with(&end);
        self.ready_records(path).any(|(step, record)| record.state == StepState::Failed && about(step))
    }
}

/// How a group stands: as its components do, and when they are ready as what it requires does.
fn state(node: Node, shown: &BundleGroupStatus, edges: &[Edge]) -> PartState {
    let unready = || shown.component_statuses.iter().filter(|one| !one.ready);
    let worst = unready()
        .find(|one| one.phase == FAILED)
        .or_else(|| unready().find(|one| one.phase != PENDING))
        .or_else(|| unready().next());
    if let Some(worst) = worst {
        let progress = match shown.phase.as_str() {
            FAILED => Progress::Failed,
            DEPLOYING => Progress::Running,
            _ => Progress::Waiting,
        };
        // Deployed it stays, whatever becomes of its components.
        let message = if shown.phase == DEPLOYED {
            format!("{}: {}", worst.name, worst.message)
        } else {
            shown.message.clone()
        };
        let reason = if is_in_line(&worst.reason) { Reason::Waiting.as_str() } else { worst.reason.as_str() };
        return PartState { node, progress, reason: reason.to_owned(), message, since: worst.since };
    }
    let lost = edges.iter().find_map(|edge| match &edge.relation {
        Relation::WaitsFor(wait) if !wait.met() => Some((&edge.to, wait)),
        _ => None,
    });
    let since = shown.component_statuses.iter().filter_map(|one| one.since).max();
    if let Some((to, wait)) = lost {
        let message = format!("{to}: {}", wait.detail);
        return PartState {
            node,
            progress: Progress::Waiting,
            reason: wait.reason.to_string(),
            message,
            since,
        };
    }
    let reason = Reason::Met.as_str().to_owned();
    PartState { node, progress: Progress::Ready, reason, message: shown.message.clone(), since }
}

/// Says which component it is that waits.
fn on_behalf_of(component: &str, mut edge: Edge) -> Edge {
    if let Relation::WaitsFor(wait) = &mut edge.relation
        && !wait.met()
        && !is_in_line(&wait.reason)
    {
        wait.detail = format!("{} (for component {component})", wait.detail).into();
    }
    edge
}

fn is_unmet(edge: &Edge) -> bool {
    matches!(&edge.relation, Relation::WaitsFor(wait) if !wait.met())
}

fn reason(edge: &Edge) -> &str {
    match &edge.relation {
        Relation::WaitsFor(wait) => &wait.reason,
        Relation::Produces { .. } => "",
    }
}

/// Whether a reason says nothing but that there is a wait.
fn is_plain(reason: &str) -> bool {
    reason == Reason::Waiting.as_str()
}
