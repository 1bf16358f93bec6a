//! A BootDependency as the controller serves it: its plan of requirements, and beside it the workload that it holds.
//!
//! The plan is [`Planned`]'s. Here is what a plan cannot say: the rows of workloads in the status, repairs of templates
//! (ordered by [`sweep`]), the finalizer while something is held or carried, and the circles that run through Services.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use linchpin_api::boot_dependency::{Rollout, WorkloadStatus};
use linchpin_engine::{
    contract::{Notice, Outcome, Via},
    sweep::{ItemKey, SweepMemory, SweepNeed, sweep},
};
use linchpin_words::{Timestamp, text};
use serde_json::json;

use super::{
    BootDependencyDoor,
    scope::BootSettings,
    survey::{self, Survey, SurveyInput},
    ties,
};
use crate::{
    door::{Tally, VisibleCauses},
    registry::{self, DoorKind, KindNames, ObjectView},
    subject::{
        Arrival, Asks, Decision, Drawn, FinalizerChange, Own, Planned, Stored, Subject, SubjectInput,
        SubjectKey,
    },
};

/// How long a template is left alone whose repair somebody has undone, for the first time.
const UNDONE: Duration = Duration::from_secs(10);

/// How soon is looked whether the finalizer is there.
const SOON: Duration = Duration::from_millis(200);

/// How long a deletion is held up by what must be put right before it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The kind, with the settings of the process for holding pods.
pub struct BootDependencies(pub Arc<BootSettings>);

impl DoorKind for BootDependencies {
    fn names(&self) -> KindNames {
        registry::door::<BootDependencyDoor>().names()
    }

    fn subject(
        &self,
        text: &str,
        default_service_account: &Arc<str>,
    ) -> Result<Box<dyn Subject>, serde_json::Error> {
        let planned = Planned::new(text, Arc::clone(default_service_account))?;
        Ok(Box::new(BootSubject {
            inner: match &self.0.cluster_domain {
                Some(domain) => planned.in_domain(Arc::clone(domain)),
                None => planned,
            },
            settings: Arc::clone(&self.0),
            default_service_account: Arc::clone(default_service_account),
            memory: SweepMemory::default(),
            repaired: None,
            failed: BTreeMap::new(),
            rows: None,
            veiled: None,
            tally: Tally::default(),
            going_since: None,
        }))
    }

    fn finalizer(&self) -> Option<&'static str> {
        registry::door::<BootDependencyDoor>().finalizer()
    }

    fn definitions(&self) -> Vec<CustomResourceDefinition> {
        registry::door::<BootDependencyDoor>().definitions()
    }

    fn counted(&self) -> bool {
        registry::door::<BootDependencyDoor>().counted()
    }

    fn waits(&self) -> bool {
        registry::door::<BootDependencyDoor>().waits()
    }

    fn view(&self, text: &str) -> Option<Result<Box<dyn ObjectView>, serde_json::Error>> {
        registry::door::<BootDependencyDoor>().view(text)
    }
}

struct BootSubject {
    inner: Planned<BootDependencyDoor>,
    settings: Arc<BootSettings>,
    default_service_account: Arc<str>,
    memory: SweepMemory,
    /// When a template was repaired last, and how often since it was as it should be: somebody may undo it again and again.
    repaired: Option<(Timestamp, u32)>,
    /// Repairs that were refused, and why.
    failed: BTreeMap<ItemKey, String>,
    /// The rows as they are now; none before anything was looked at.
    rows: Option<Vec<WorkloadStatus>>,
    /// What is shown instead while the finalizer that must come first is not there yet.
    veiled: Option<Vec<WorkloadStatus>>,
    /// What holds, as last decided.
    tally: Tally,
    /// Since when it is being deleted.
    going_since: Option<Timestamp>,
}

impl Subject for BootSubject {
    fn rest(&mut self, causes: &VisibleCauses) {
        self.inner.rest(causes);
    }

    fn key(&self) -> &SubjectKey {
        self.inner.key()
    }

    fn priority(&self) -> i32 {
        self.inner.priority()
    }

    fn via(&self) -> Option<Via> {
        self.inner.via()
    }

    fn is_deleting(&self) -> bool {
        self.inner.is_deleting()
    }

    fn arrived(&mut self, text: &str, echo: bool) -> Result<Arrival, serde_json::Error> {
        self.inner.arrived(text, echo)
    }

    fn decide(&mut self, look: &SubjectInput<'_>) -> Result<Decision, Asks> {
        let (ours, rest): (Vec<Outcome>, Vec<Outcome>) =
            look.outcomes.iter().cloned().partition(|outcome| survey::is_ours(&outcome.ticket.step));
        let mut decision = self.inner.decide(&SubjectInput { outcomes: &rest, ..*look })?;
        if let Some(tally) = &decision.report.tally {
            self.tally = tally.clone();
        }
        let Some(object) = self.inner.object() else { return Ok(decision) };
        if self.inner.is_deleting() && !self.inner.has_finalizer() {
            return Ok(decision);
        }
        let via = self.inner.via().unwrap_or_else(|| Via::service_account("", ""));
        let before = match &self.rows {
            Some(rows) => rows.clone(),
            None => object.status.as_ref().map(|status| status.workloads.clone()).unwrap_or_default(),
        };
        let survey = survey::survey(&SurveyInput {
            object,
            default_service_account: &self.default_service_account,
            settings: &self.settings,
            world: look.world,
            before: &before,
            tally: &self.tally,
            now: look.now,
            going: self.inner.is_deleting(),
            failed: &self.failed,
        });
        if survey.opted_in == Some(true)
            && let Some(edges) = &mut decision.edges
        {
            edges.extend(ties::produced(object, !self.tally.unmet.is_empty()));
            let found = ties::behind_services(object, &via, &self.tally, look.world, &self.settings);
            edges.extend(found.edges);
            decision.wants.extend(found.wants);
        }
        let needed = self.finalizer_needed(&survey);
        self.repair(&survey, &ours, &before, look, &mut decision);
        self.keep_finalizer(needed, look.now, &mut decision);
        // It is on before a row says that something is held or carried.
        self.veiled =
            (needed == Some(true) && !self.inner.is_deleting()).then(|| veiled(before, &survey.rows));
        let soon = self.is_veiled().then(|| look.now.plus_duration(SOON));
        decision.wake_at = [decision.wake_at, survey.wake_at, soon].into_iter().flatten().min();
        decision.wants.extend(survey.wants);
        Ok(decision)
    }

    fn saved(&mut self, critical: u64) {
        self.inner.saved(critical);
    }

    fn status(&mut self, causes: &VisibleCauses) -> Option<Drawn> {
        let mut drawn = self.inner.status(causes)?;
        let rows = if self.is_veiled() { self.veiled.as_ref() } else { self.rows.as_ref() };
        if let (Some(rows), Some(fields)) = (rows, drawn.status.as_object_mut()) {
            if rows.is_empty() {
                fields.shift_remove("workloads");
            } else {
                fields.insert("workloads".to_owned(), json!(rows));
            }
        }
        Some(drawn)
    }

    fn first_journal(&self) -> Option<(String, u64)> {
        self.inner.first_journal()
    }

    fn stored(&self) -> Stored {
        self.inner.stored()
    }

    fn finalizer_written(&mut self, present: bool) {
        self.inner.finalizer_written(present);
    }
}

impl BootSubject {
    /// Orders what is to be repaired, and reports what has changed.
    fn repair(
        &mut self,
        survey: &Survey,
        outcomes: &[Outcome],
        before: &[WorkloadStatus],
        look: &SubjectInput<'_>,
        decision: &mut Decision,
    ) {
        let paused = self.inner.object().is_some_and(|object| object.spec.common.suspend);
        let due = survey.items.iter().flatten().any(|(_, item)| matches!(item.need, SweepNeed::Due(_)));
        if survey.items.is_some() && !due {
            self.repaired = None;
        }
        let rests_until =
            self.repaired.filter(|_| due).map(|(at, times)| at.plus_duration(UNDONE.saturating_mul(times)));
        let rests = rests_until.is_some_and(|until| until > look.now);
        decision.wake_at = [decision.wake_at, rests_until.filter(|_| rests)].into_iter().flatten().min();
        // What a template carries must be taken out before the object goes: the finalizer comes first.
        let unguarded =
            self.is_immediate() && !self.inner.has_finalizer() && !self.inner.is_deleting() && due;
        let items = survey.items.as_ref().filter(|_| !paused && !rests && !unguarded);
        let swept = sweep(&self.memory, items, outcomes, 1, look.now);
        self.memory = swept.memory;
        self.failed =
            swept.failed.iter().map(|(key, why)| (key.clone(), text::line(&why.to_string()))).collect();
        decision.effects.extend(swept.effects);
        decision.wake_at = [decision.wake_at, swept.wake_at].into_iter().flatten().min();
        for done in outcomes.iter().filter_map(|outcome| outcome.result.as_ref().ok()) {
            let times = self.repaired.map_or(0, |(_, times)| times);
            self.repaired = Some((look.now, times.saturating_add(1)));
            if let Some(target) = &done.target {
                let message = format!("the template of {target} waits for what this object says");
                decision.report.notices.push(notice("BootWaitChanged", &message, false));
            }
        }
        let state = |rows: &[WorkloadStatus], row: &WorkloadStatus| {
            rows.iter().find(|old| old.kind == row.kind && old.name == row.name).map(|old| old.state.clone())
        };
        for row in survey.rows.iter().filter(|row| row.state == "Missed") {
            if state(before, row).as_deref() != Some("Missed") {
                let message = format!("{} {}: {}", row.kind, row.name, row.message);
                decision.report.notices.push(notice("BootWaitMissed", &message, true));
            }
        }
        if survey.opted_in.is_some() {
            self.rows = Some(survey.rows.clone());
        }
    }

    fn is_immediate(&self) -> bool {
        self.inner.object().is_some_and(|object| object.spec.rollout == Some(Rollout::Immediate))
    }

    /// Whether something is held or carried that must be put right before the object goes; none while that is not known.
    fn finalizer_needed(&self, survey: &Survey) -> Option<bool> {
        let immediate = self.is_immediate();
        let will_carry = survey.items.iter().flatten().any(|(key, item)| {
            matches!(item.need, SweepNeed::Due(_))
                && !self.failed.contains_key(key)
                && !self.inner.is_deleting()
        });
        match (survey.held, survey.carried) {
            (Some(held), Some(carried)) => Some(held > 0 || immediate && (carried || will_carry)),
            (Some(held), None) => (held > 0 || !immediate).then_some(held > 0),
            (None, _) => None,
        }
    }

    /// Whether the finalizer that must come first is not there yet.
    fn is_veiled(&self) -> bool {
        self.veiled.is_some() && !self.inner.has_finalizer()
    }

    /// The finalizer is on while a pod is held for the object, or a template carries what must be taken out before it goes;
    /// nothing that a user controls holds a deletion up for long.
    fn keep_finalizer(&mut self, needed: Option<bool>, now: Timestamp, decision: &mut Decision) {
        let Some(own) = &mut decision.own else { return };
        if self.inner.is_deleting() {
            let since = *self.going_since.get_or_insert(now);
            let until = since.plus_duration(PATIENCE);
            let waits = needed != Some(false) && now < until;
            if waits && own.finalizer == FinalizerChange::Release {
                own.finalizer = FinalizerChange::None;
                decision.wake_at = Some(decision.wake_at.map_or(until, |at| at.min(until)));
            }
            return;
        }
        set(own, needed, self.inner.has_finalizer());
    }
}

/// Rows that count nothing and promise nothing: those before, or the new ones without that.
fn veiled(before: Vec<WorkloadStatus>, rows: &[WorkloadStatus]) -> Vec<WorkloadStatus> {
    if !before.is_empty() {
        return before;
    }
    let state = |row: &WorkloadStatus| match row.state.as_str() {
        "Current" => "Outdated".to_owned(),
        other => other.to_owned(),
    };
    rows.iter().map(|row| WorkloadStatus { state: state(row), held: 0, ..row.clone() }).collect()
}

fn set(own: &mut Own, needed: Option<bool>, has: bool) {
    own.finalizer = match (needed, has) {
        (Some(true), false) => FinalizerChange::Add,
        (Some(false), true) => FinalizerChange::Remove,
        _ => FinalizerChange::None,
    };
}

fn notice(reason: &str, message: &str, warning: bool) -> Notice {
    Notice { reason: reason.to_owned(), message: text::line(message), warning }
}
