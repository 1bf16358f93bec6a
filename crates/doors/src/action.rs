//! One action: from the user's entry to an act.
//!
//! [`ActionDraft::new`] checks the entry, parses its templates and collects what they read; the result still has to be put
//! in order ([`ActionDraft::finish`]). Whatever can be known to be wrong before anything is rendered is an error here, with
//! the field and the position in it: a spec that cannot work is better refused at once than after it has waited for an
//! hour.

mod body;
mod patch;
mod rights;

pub(crate) use body::check_document;

use std::{collections::BTreeMap, time::Duration};

use linchpin_api::Action;
use linchpin_engine::{
    contract::{Right, StepId, Via},
    plan::{
        self, ActionBody, ActionGuard, After, GuardSubject, PlanLane, Prune, Readings, Rerun, SpecError,
        Step, StepKind, WatchEvents, definition,
    },
};
use linchpin_lang::weight;
use linchpin_words::{ObjectRef, limits};

use crate::{
    assemble::{Frame, Keys},
    cluster, dependency,
    errors::duration,
    guard,
    names::NamedStep,
    readiness_profile, values,
};

/// An action on its way to become a step.
#[derive(Debug)]
pub(crate) struct ActionDraft {
    pub id: StepId,
    pub field: String,
    pub part: Option<String>,
    /// Its name, if it has one.
    pub name: Option<String>,
    pub priority: i32,
    /// The names it comes after, where it says so itself.
    pub after: Option<Vec<String>>,
    /// What it reads.
    pub readings: Readings,
    definition: String,
    via: Via,
    body: ActionBody,
    rights: Vec<Right>,
    later_rights: Vec<Right>,
    open_rights: Vec<String>,
    sketched: Vec<ObjectRef>,
    guard: Option<ActionGuard>,
    timeout: Option<Duration>,
    delay_after: Option<Duration>,
    fail_fast: bool,
    run_on_changes: bool,
}

impl ActionDraft {
    /// Reads an entry. Guards look at `dependencies`, and add what they look at to them.
    pub(crate) fn new(
        frame: &Frame<'_>,
        entry: &Action,
        named: &NamedStep,
        field: &str,
        part: Option<&str>,
        dependencies: &mut [dependency::DependencyDraft],
        keys: &Keys,
    ) -> Result<Self, SpecError> {
        let via = cluster::via(
            &frame.via,
            &frame.owner.namespace,
            entry.cluster.as_ref(),
            frame.common.cluster.as_ref(),
            field,
        )?;
        let mut readings = Readings::new();
        let made = body::compile(frame, entry, &via, field, &mut readings, keys)?;
        let guard = match &entry.condition {
            Some(condition) => {
                let field = format!("{field}.condition");
                let guard = guard::compile(condition, &field, part, dependencies, keys, &mut readings)?;
                if let GuardSubject::Expression(cel) = &guard.subject {
                    readiness_profile::pay_for(&frame.kinds, cel.patterns(), &field)?;
                }
                Some(guard)
            }
            None => None,
        };
        let fragment = frame.fragment(entry, entry.cluster.is_some());
        let read = values::read(frame.common, &readings);
        frame.kinds.pay(weight(&read, limits::TURN_STEPS), field, "there are values to read")?;
        let mut rights = made.needs.rights;
        if readings.values && via.cluster.is_here() {
            rights.extend(values::rights(&frame.inputs));
        }
        Ok(Self {
            id: named.id.clone(),
            field: field.to_owned(),
            part: part.map(str::to_owned),
            name: entry.name.clone(),
            priority: entry.priority,
            after: entry.after.clone(),
            definition: definition(&fragment, &read),
            readings,
            via,
            body: made.body,
            rights,
            later_rights: made.needs.later,
            open_rights: made.needs.open,
            sketched: made.needs.makes,
            guard,
            timeout: duration(entry.timeout.as_ref(), &format!("{field}.timeout"))?,
            delay_after: duration(entry.delay_after.as_ref(), &format!("{field}.delayAfter"))?,
            fail_fast: entry.fail_fast,
            run_on_changes: entry.run_on_changes,
        })
    }

    /// The act, after these steps. `watched` are the dependencies whose changes may start it again, where any may.
    pub(crate) fn finish(
        self,
        frame: &Frame<'_>,
        after: Vec<After>,
        limit: Option<Duration>,
        watched: Option<&BTreeMap<StepId, WatchEvents>>,
    ) -> Step {
        let rerun = match watched.filter(|_| self.run_on_changes) {
            Some(watched) => Rerun::OnReads(triggers(&self.readings, watched)),
            None => Rerun::Never,
        };
        let manager = frame.owner.manager(self.id.as_str());
        let makes = matches!(self.body, ActionBody::Create { .. } | ActionBody::Apply { .. });
        Step {
            field: self.field,
            part: self.part,
            definition: self.definition,
            after,
            lane: PlanLane::Main,
            when: self.guard,
            kind: StepKind::Act(Box::new(plan::PlannedAction {
                rerun,
                tracked: frame.tracked && makes,
                prune: if frame.tracked && makes { Prune::All } else { Prune::Never },
                rights: self.rights,
                later_rights: self.later_rights,
                open_rights: self.open_rights,
                sketched: self.sketched,
                reads: self.readings.dependencies,
                reads_values: self.readings.values,
                reads_now: self.readings.now,
                ..plan::PlannedAction::new(self.via, self.body, &frame.owner.namespace, manager)
            })),
            id: self.id,
            optional: false,
            patience: None,
            timeout: self.timeout.or(limit),
            progress_timeout: None,
            fail_fast: self.fail_fast,
            delay_after: self.delay_after,
            rank: 0,
        }
    }
}

/// The dependencies whose changes start an action again: those it reads, all if it reads none.
fn triggers(readings: &Readings, watched: &BTreeMap<StepId, WatchEvents>) -> BTreeMap<StepId, WatchEvents> {
    match readings.dependencies.as_ref().filter(|read| !read.is_empty()) {
        Some(read) => watched
            .iter()
            .filter(|(id, _)| read.contains_key(*id))
            .map(|(id, events)| (id.clone(), *events))
            .collect(),
        None => watched.clone(),
    }
}
