//! What people read of an employment: the phase, the one line, a row for every employee.

use std::{collections::BTreeMap, sync::Arc};

use linchpin_words::Timestamp;

use super::{BindingClaim, ENTRIES_FAILED, Matter, SettleDecision, Turn, protection, provider};
use crate::{answer::ItemPair, pod::PodView, port::Call};

/// The state of an employment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmployerPhase {
    /// The provider has what it should have, and every mark is where it belongs.
    Synced,
    /// It is being made so.
    Syncing,
    /// The provider does not answer, or refuses.
    Degraded,
    /// The employment ends.
    Deleting,
}

impl EmployerPhase {
    /// The word in the status.
    pub fn word(self) -> &'static str {
        match self {
            Self::Synced => "Synced",
            Self::Syncing => "Syncing",
            Self::Degraded => "Degraded",
            Self::Deleting => "Deleting",
        }
    }
}

/// Why an employment is in its state: the reason of its condition Ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyReason {
    /// The provider has what it should have, and every mark is where it belongs.
    Synced,
    /// The provider is being looked at or changed.
    Syncing,
    /// The provider does not answer, or not with something that can be used.
    ProviderUnreachable,
    /// Another adapter serves this employer.
    AlreadyServed,
    /// It selects more employees than are served.
    TooLarge,
    /// What was made for it is taken away.
    Deleting,
}

/// What is known of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowState {
    /// The provider refuses it.
    Failed,
    /// Nothing is known.
    Unknown,
    /// It should be in traffic and is not yet.
    Attaching,
    /// It should not be in traffic and still is.
    Draining,
    /// It is in traffic.
    Attached,
    /// It is not in traffic, and should not be.
    Detached,
}

impl RowState {
    /// The word in the status.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
            Self::Attaching => "Attaching",
            Self::Draining => "Draining",
            Self::Attached => "Attached",
            Self::Detached => "Detached",
        }
    }
}

/// One item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRow {
    /// Its name; the id for the employer's items.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Its state.
    pub state: RowState,
    /// Why it is not where it should be.
    pub reason: String,
    /// Whether the pod carries the protection finalizer.
    pub protected: bool,
}

/// What people read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmployerReport {
    /// Its state.
    pub phase: EmployerPhase,
    /// The reason of the condition Ready.
    pub reason: ReadyReason,
    /// The one line.
    pub message: String,
    /// Whether nothing is known because the provider is just being looked at.
    pub looking: bool,
    /// Whether the provider answered last time; none before the first look.
    pub reachable: Option<bool>,
    /// When the last answer that counts began.
    pub last_answer: Option<Timestamp>,
    /// How many employees are selected.
    pub selected: usize,
    /// The employer's items.
    pub employer: Vec<ReportRow>,
    /// The employees: what is unsettled first.
    pub employees: Vec<ReportRow>,
}

impl EmployerReport {
    /// How many employees are in a state.
    pub fn count(&self, state: RowState) -> usize {
        self.employees.iter().filter(|row| row.state == state).count()
    }
}

impl Turn<'_> {
    /// The decision of this turn.
    pub(super) fn finish(self, look_at: Option<Timestamp>, over: bool) -> SettleDecision {
        let report = self.report();
        let (traffic, attaching) = (self.traffic(), self.attaching());
        let too_old = self.too_old_at().filter(|_| report.phase == EmployerPhase::Synced);
        let later = [look_at, too_old].into_iter().flatten().filter(|at| *at > self.now);
        let wake_at = later.chain(self.wake_at).min();
        SettleDecision {
            memory: self.memory,
            orders: self.orders,
            notices: self.notices,
            about: self.about,
            leaving: self.leaving,
            look_at,
            wake_at,
            traffic,
            attaching,
            left: self.left,
            report,
            over,
        }
    }

    fn report(&self) -> EmployerReport {
        let pods = self.observed.employees.unwrap_or_default();
        let selected: Vec<&Arc<PodView>> = pods.iter().filter(|pod| self.observed.selects(pod)).collect();
        let answer = self.answer();
        let by_name: BTreeMap<&str, &PodView> = pods.iter().map(|pod| (pod.name.as_str(), &**pod)).collect();
        let row = |pair: &ItemPair, of_employees: bool| {
            self.row(pair, of_employees, by_name.get(pair.name.as_str()).copied())
        };
        let mut employees: Vec<ReportRow> = match answer {
            Some(answer) => answer.employees.iter().map(|pair| row(pair, true)).collect(),
            None => selected.iter().map(|pod| self.unknown(pod)).collect(),
        };
        employees.sort_by(|one, other| (one.state, &one.name).cmp(&(other.state, &other.name)));
        let employer: Vec<ReportRow> = answer
            .map(|answer| answer.employer.iter().map(|pair| row(pair, false)).collect())
            .unwrap_or_default();
        let look = self.observed.look;
        let (phase, reason, message) = self.headline(&employer, &employees);
        EmployerReport {
            phase,
            reason,
            message,
            looking: answer.is_none() && look.is_none_or(|look| look.result.is_ok()),
            reachable: look.map(|look| look.result.is_ok()),
            last_answer: look
                .filter(|look| look.result.is_ok())
                .map(|look| look.began)
                .or(self.memory.known_at),
            selected: selected.len(),
            employer,
            employees,
        }
    }

    fn unknown(&self, pod: &PodView) -> ReportRow {
        ReportRow {
            name: pod.name.clone(),
            id: String::new(),
            state: RowState::Unknown,
            reason: String::new(),
            protected: self.is_protected(pod),
        }
    }

    fn is_protected(&self, pod: &PodView) -> bool {
        pod.finalizers.iter().any(|finalizer| self.finalizers.has(finalizer))
    }

    fn row(&self, pair: &ItemPair, of_employees: bool, pod: Option<&PodView>) -> ReportRow {
        let held = Call::ALL.into_iter().find_map(|call| {
            self.memory.held.get(&(call, pair.id.clone())).filter(|_| call.is_of_employees() == of_employees)
        });
        // Statuses of a pod leave out what is false.
        let silent = pair.expected.is_some() && !(of_employees && self.observed.follows);
        let ready = pair.ready.unwrap_or(silent);
        let settled = pair.same && (ready || pair.in_traffic != Some(true));
        let state = match (ready, settled, pair.current.is_some()) {
            _ if held.is_some_and(|held| held.refused) => RowState::Failed,
            (true, true, _) => RowState::Attached,
            (true, false, _) => RowState::Attaching,
            (false, true, _) | (false, _, false) => RowState::Detached,
            (false, false, true) => RowState::Draining,
        };
        ReportRow {
            name: if of_employees { pair.name.clone() } else { pair.id.clone() },
            id: pair.id.clone(),
            state,
            reason: held.map(|held| held.why.clone()).unwrap_or_default(),
            protected: pod.is_some_and(|pod| self.is_protected(pod)),
        }
    }

    /// When the last answer proves nothing any more: after two times `resync` without another.
    fn too_old_at(&self) -> Option<Timestamp> {
        let look = self.observed.look.filter(|look| look.result.is_ok())?;
        Some(look.began.plus_duration(self.observed.options.resync.saturating_mul(2)))
    }

    /// Phase, reason and the one line.
    fn headline(&self, employer: &[ReportRow], rows: &[ReportRow]) -> (EmployerPhase, ReadyReason, String) {
        let phase = |phase: EmployerPhase| if self.leaving { EmployerPhase::Deleting } else { phase };
        if let BindingClaim::Held { adapter, .. } = self.observed.claim
            && adapter != self.observed.adapter
        {
            return (
                EmployerPhase::Degraded,
                ReadyReason::AlreadyServed,
                format!("adapter {adapter} serves this employer"),
            );
        }
        if !self.leaving && self.observed.is_too_large() {
            return (EmployerPhase::Degraded, ReadyReason::TooLarge, self.observed.too_large());
        }
        if let Some(Err(failed)) = self.observed.look.map(|look| &look.result) {
            return (
                phase(EmployerPhase::Degraded),
                ReadyReason::ProviderUnreachable,
                failed.trouble.to_string(),
            );
        }
        let Some(answer) = self.answer() else {
            return (
                phase(EmployerPhase::Syncing),
                ReadyReason::Syncing,
                "the provider is being looked at".to_owned(),
            );
        };
        if !self.leaving && self.too_old_at().is_some_and(|at| at <= self.now) {
            return (
                EmployerPhase::Syncing,
                ReadyReason::Syncing,
                "the provider's last answer is too old, another is waited for".to_owned(),
            );
        }
        let mut unsettled = employer
            .iter()
            .chain(rows)
            .filter(|row| !matches!(row.state, RowState::Attached | RowState::Detached));
        let waiting = unsettled.next();
        let refused = waiting.into_iter().chain(unsettled).find(|row| row.state == RowState::Failed);
        if let Some(row) = refused {
            return (
                phase(EmployerPhase::Degraded),
                ReadyReason::Syncing,
                format!("{} is Failed: {}", row.name, row.reason),
            );
        }
        if provider::differences(answer).next().is_some() || waiting.is_some() {
            let message = match waiting {
                Some(row) if row.reason.is_empty() => format!("{} is {}", row.name, row.state.word()),
                Some(row) => format!("{} is {}: {}", row.name, row.state.word(), row.reason),
                None => "the provider is being changed".to_owned(),
            };
            return (phase(EmployerPhase::Syncing), ReadyReason::Syncing, message);
        }
        if self.leaving {
            return (
                EmployerPhase::Deleting,
                ReadyReason::Deleting,
                "what was made for it is taken away".to_owned(),
            );
        }
        let unmarked = self.observed.follows && {
            let by_name = protection::by_name(answer);
            let pods = self.observed.employees.into_iter().flatten();
            let mut selected = pods.filter(|pod| self.observed.selects(pod) && !pod.is_terminating());
            selected.any(|pod| {
                let on = by_name
                    .get(pod.name.as_str())
                    .is_some_and(|pairs| pairs.iter().all(|pair| pair.ready == Some(true)));
                let protection = on != self.is_protected(pod) && by_name.contains_key(pod.name.as_str());
                protection || !pod.entries().has(&self.key, &self.finalizers.written)
            })
        };
        if unmarked {
            let refused = self.memory.reported.get(&(ENTRIES_FAILED, Matter::Entries));
            let message = refused.map_or("pods are being marked", String::as_str);
            return (EmployerPhase::Syncing, ReadyReason::Syncing, message.to_owned());
        }
        let attached = rows.iter().filter(|row| row.state == RowState::Attached).count();
        (
            EmployerPhase::Synced,
            ReadyReason::Synced,
            format!("{attached} of {} employees are attached", self.observed.selected()),
        )
    }
}
