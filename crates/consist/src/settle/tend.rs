//! One turn: what is done for an employer that is served, and for one that is left.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use linchpin_words::{Timestamp, keys::consist as keys};

use super::{
    Act, BindingClaim, ENTRIES_FAILED, EmployerNotice, Matter, ObservedEmployment, PodRef, SettleDecision,
    SettleOrder, SettleOutcome, Turn, WorkSlot,
    protection::{self, Protection, Traffic},
    provider,
};
use crate::{
    answer::{EMPLOYEES, ItemPair, ProviderAnswer},
    marks::{RECORD_BYTES, clean_finalizer, record},
    pod::PodView,
};

impl ObservedEmployment<'_> {
    /// Whether the employer selects an employee.
    pub(super) fn selects(&self, pod: &PodView) -> bool {
        self.options.employee_predicate.admits(&pod.labels) && self.selection.selects(&pod.name, &pod.labels)
    }

    /// How many employees the employer selects.
    pub(super) fn selected(&self) -> usize {
        self.employees.into_iter().flatten().filter(|pod| self.selects(pod)).count()
    }

    /// Whether those are more than are served: then nothing is touched.
    pub(super) fn is_too_large(&self) -> bool {
        self.employees.is_some_and(|employees| employees.len() > EMPLOYEES) && self.selected() > EMPLOYEES
    }

    /// What is said of that.
    pub(super) fn too_large(&self) -> String {
        format!("it selects {} employees, at most {EMPLOYEES} are served", self.selected())
    }
}

impl Turn<'_> {
    /// Files an outcome, unless it belongs to an order that is no longer under way.
    pub(super) fn take_in(&mut self, outcome: &SettleOutcome) {
        if self.memory.flight.get(&outcome.slot) != Some(&outcome.number) {
            return;
        }
        self.memory.flight.remove(&outcome.slot);
        if matches!(outcome.slot, WorkSlot::Employer | WorkSlot::Binding) {
            self.memory.releasing = false;
        }
        if outcome.slot == WorkSlot::Provider {
            let result = outcome.result.clone().map(|done| done.batch.unwrap_or_default());
            self.call_ended(outcome.at, &result);
            return;
        }
        match &outcome.result {
            Ok(done) => {
                self.memory.failed.remove(&outcome.slot);
                let uid = match &outcome.slot {
                    WorkSlot::Pod(uid) => uid.clone(),
                    WorkSlot::Employer => self.observed.employer.uid.clone(),
                    WorkSlot::Binding | WorkSlot::Provider => return,
                };
                if let Some(version) = done.version {
                    self.memory.written.insert(uid, version);
                }
            }
            Err(trouble) => {
                let times =
                    self.memory.failed.get(&outcome.slot).map_or(1, |(times, _)| times.saturating_add(1));
                let what = match &outcome.slot {
                    WorkSlot::Pod(uid) => uid,
                    WorkSlot::Employer => "employer",
                    WorkSlot::Binding | WorkSlot::Provider => "binding",
                };
                let until = outcome.at.plus_duration(self.pause(times, what));
                self.memory.failed.insert(outcome.slot.clone(), (times, until));
                let reason = match &outcome.slot {
                    WorkSlot::Employer if self.leaving => "CleanEmployerCleanFinalizerFailed",
                    WorkSlot::Employer => "EnsureEmployerCleanFinalizerFailed",
                    WorkSlot::Binding => "RecordStatusesFailed",
                    WorkSlot::Pod(_) | WorkSlot::Provider => ENTRIES_FAILED,
                };
                // A lost race is no trouble: the newer object is on its way.
                if times > 3 {
                    self.report_trouble(Matter::Doing, reason, Some(trouble.clone()));
                }
            }
        }
    }

    /// Orders something, unless its place is taken or it has just failed.
    pub(super) fn order(&mut self, slot: WorkSlot, act: Act) {
        if self.memory.flight.contains_key(&slot) {
            return;
        }
        if let Some((_, until)) = self.memory.failed.get(&slot).filter(|(_, until)| *until > self.now) {
            let until = *until;
            self.wake(until);
            return;
        }
        if matches!(act, Act::Unclaim { .. } | Act::RemoveClean { .. }) {
            self.memory.releasing = true;
        }
        self.memory.last_order += 1;
        let number = self.memory.last_order;
        self.memory.flight.insert(slot.clone(), number);
        self.orders.push(SettleOrder { slot, number, act });
    }

    /// Asks for another turn at a time.
    pub(super) fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn order_pod(&mut self, pod: &PodView, act: impl FnOnce(PodRef) -> Act) {
        let reference = PodRef { name: pod.name.clone(), uid: pod.uid.clone(), version: pod.version };
        self.order(WorkSlot::Pod(pod.uid.clone()), act(reference));
    }

    /// Whether a pod is as our last write left it, or newer.
    fn is_fresh(&self, uid: &str, version: u64) -> bool {
        self.memory.written.get(uid).is_none_or(|written| version >= *written)
    }

    /// The whole turn.
    pub(super) fn decide(mut self) -> SettleDecision {
        let employer = self.observed.employer;
        // Of one that is gone there is nothing newer to come.
        let fresh = employer.gone || self.is_fresh(&employer.uid, employer.version);
        let marked = !employer.clean_finalizers().is_empty();
        if let Some(pods) = self.observed.employees {
            let there: BTreeSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
            let employer = employer.uid.as_str();
            self.memory.written.retain(|uid, _| there.contains(uid.as_str()) || uid == employer);
        }
        let ours = match self.observed.claim {
            BindingClaim::Held { adapter, employer: uid, .. } => {
                adapter == self.observed.adapter && *uid == employer.uid
            }
            BindingClaim::Unknown | BindingClaim::Absent => false,
        };
        let idle = self.leaving && !marked && !matches!(self.observed.claim, BindingClaim::Held { .. });
        let mut looks = false;
        let mut over = false;
        match self.observed.claim {
            BindingClaim::Unknown => {}
            _ if idle => over = *self.observed.claim == BindingClaim::Absent,
            BindingClaim::Held { adapter, .. } if adapter != self.observed.adapter => {}
            BindingClaim::Held { uid, .. } if !ours => {
                self.order(WorkSlot::Binding, Act::Unclaim { uid: uid.clone() });
            }
            // What takes the clean finalizer off is on its way: a claim made now would lose it.
            BindingClaim::Absent if !self.leaving && self.memory.releasing => {}
            BindingClaim::Absent if !self.leaving => self.order(WorkSlot::Binding, Act::Claim),
            _ if self.leaving => {
                looks = !employer.is_abandoned() && (marked || employer.gone);
                self.leave(marked, fresh);
            }
            _ if self.observed.is_too_large() => {
                let message = Some(self.observed.too_large());
                self.report_trouble(Matter::Size, "GetExpectedEmployeesFailed", message);
            }
            _ if !marked => {
                if fresh {
                    let finalizer = clean_finalizer(&employer.name);
                    self.order(WorkSlot::Employer, Act::AddClean { finalizer });
                }
            }
            _ => {
                looks = true;
                self.serve(fresh);
            }
        }
        let look_at = if looks && self.observed.employees.is_some() { self.look_at() } else { None };
        self.finish(look_at, over)
    }

    /// An employer that is served, with its clean finalizer on.
    fn serve(&mut self, fresh: bool) {
        let Some(pods) = self.observed.employees else { return };
        // It was being left a moment ago: what is under way must end before anything is made again.
        if self.memory.releasing || !fresh {
            return;
        }
        self.memory.left_reported = false;
        self.report_trouble(Matter::Size, "GetExpectedEmployeesFailed", None);
        self.add_entries(pods);
        let answer = self.answer().cloned();
        self.protect(pods, answer.as_ref());
        if let Some(answer) = &answer {
            let follows = self.observed.follows;
            let (key, finalizer) = (self.key.clone(), self.finalizers.written.clone());
            let by_name: BTreeMap<&str, &PodView> =
                pods.iter().map(|pod| (pod.name.as_str(), &**pod)).collect();
            let (flight, written) = (self.memory.flight.clone(), self.memory.written.clone());
            // A pod that is put into traffic has its entry, and nothing is under way that would take its finalizer off.
            let may_attach = |pair: &ItemPair| {
                let Some(ready) = pair.ready.filter(|_| follows) else { return true };
                let Some(pod) = by_name.get(pair.name.as_str()) else { return !ready };
                let still = !flight.contains_key(&WorkSlot::Pod(pod.uid.clone()))
                    && written.get(&pod.uid).is_none_or(|written| pod.version >= *written);
                pod.entries().has(&key, &finalizer) && (still || !ready)
            };
            self.call(answer, may_attach);
        }
        self.record(pods);
    }

    /// The entries on the pods that are selected: at once, the provider is not asked.
    fn add_entries(&mut self, pods: &[Arc<PodView>]) {
        let (mut refused, mut shared) = (None, None);
        for pod in pods {
            if !self.observed.follows || pod.is_terminating() || !self.observed.selects(pod) {
                continue;
            }
            let entries = pod.entries();
            let written = self.finalizers.written.clone();
            if let Some(other) = entries.sharing(&self.key, &written) {
                shared.get_or_insert_with(|| {
                    format!(
                        "{} and {other} share the finalizer {written} on pod {}: enable the adapter of one with --finalizer-rule=key",
                        self.key, pod.name
                    )
                });
            }
            if entries.has(&self.key, &written) {
                continue;
            }
            match entries.with(&self.key, &written) {
                Ok(text) if self.is_fresh(&pod.uid, pod.version) => {
                    self.order_pod(pod, |pod| Act::WriteEntries { pod, text });
                }
                Ok(_) => {}
                Err(why) => {
                    let annotation = keys::AVAILABLE_CONDITIONS;
                    refused.get_or_insert_with(|| {
                        format!("cannot add an entry to {annotation} of pod {}: {why}", pod.name)
                    });
                }
            }
        }
        self.report_trouble(Matter::Entries, ENTRIES_FAILED, refused);
        self.report_trouble(Matter::Finalizers, ENTRIES_FAILED, shared);
    }

    /// Protection finalizers on and off, and the entries of pods that are employed no longer.
    fn protect(&mut self, pods: &[Arc<PodView>], answer: Option<&ProviderAnswer>) {
        let by_name = answer.map(protection::by_name);
        for pod in pods {
            let ours: Vec<String> =
                pod.finalizers.iter().filter(|finalizer| self.finalizers.has(finalizer)).cloned().collect();
            let employed = self.observed.follows && self.observed.selects(pod) && !self.leaving;
            let let_go = !ours.is_empty() && self.must_let_go(pod);
            let verdict = match &by_name {
                _ if let_go => Protection::Off,
                // Nobody follows the lifecycle any more, or somebody ordered the employer to be released.
                _ if !self.observed.follows || (self.leaving && self.observed.employer.is_abandoned()) => {
                    Protection::Off
                }
                None => Protection::Keep,
                Some(by_name) => protection::of_pod(pod, by_name.get(pod.name.as_str())),
            };
            if !self.is_fresh(&pod.uid, pod.version) {
                continue;
            }
            let entries = pod.entries();
            match verdict {
                Protection::On if employed && !pod.is_terminating() => {
                    let written = self.finalizers.written.clone();
                    if !ours.contains(&written) && entries.has(&self.key, &written) {
                        self.order_pod(pod, |pod| Act::Protect { pod, finalizer: written });
                    }
                }
                Protection::Off => {
                    let shared = |finalizer: &String| entries.shares(&self.key, finalizer);
                    let finalizers: Vec<String> = ours.into_iter().filter(|own| !shared(own)).collect();
                    if !finalizers.is_empty() {
                        self.order_pod(pod, |pod| Act::Release { pod, finalizers });
                    } else if !employed
                        && !pod.is_terminating()
                        && let Some(text) = entries.without(&self.key)
                    {
                        self.order_pod(pod, |pod| Act::WriteEntries { pod, text });
                    }
                }
                Protection::On | Protection::Keep => {}
            }
        }
    }

    /// The names of marked pods on the employer, for other tools.
    fn record(&mut self, pods: &[Arc<PodView>]) {
        let wanted = self.observed.options.need_record_employees && self.observed.follows && !self.leaving;
        let names = |marked: &dyn Fn(&PodView) -> bool| {
            let marked = pods.iter().filter(|pod| wanted && marked(pod));
            record(marked.map(|pod| pod.name.as_str()))
        };
        let entries = names(&|pod| pod.entries().has_key(&self.key));
        let finalizers = names(&|pod| pod.finalizers.iter().any(|finalizer| self.finalizers.has(finalizer)));
        let bytes: usize = [&entries, &finalizers].into_iter().flatten().map(String::len).sum();
        let full = bytes > RECORD_BYTES;
        let message = format!(
            "the names of marked pods have {bytes} bytes, at most {RECORD_BYTES} are recorded on the employer"
        );
        self.report_trouble(Matter::Record, "RecordStatusesFailed", full.then_some(message));
        if full {
            return;
        }
        let has = &self.observed.employer.annotations;
        let mut annotations = BTreeMap::new();
        for (key, value) in [(keys::RECORDED_ENTRIES, entries), (keys::RECORDED_FINALIZERS, finalizers)] {
            if has.get(key) != value.as_ref() {
                annotations.insert(key, value);
            }
        }
        if !annotations.is_empty() {
            self.order(WorkSlot::Employer, Act::Record { annotations });
        }
    }

    /// An employer whose employment ends: provider, pods, recorded names, binding, clean finalizer.
    fn leave(&mut self, marked: bool, fresh: bool) {
        let Some(pods) = self.observed.employees else { return };
        self.report_gone(pods);
        let abandoned = self.observed.employer.is_abandoned();
        let answer = self.answer().cloned();
        self.protect(pods, answer.as_ref());
        if let Some(answer) = answer.as_ref().filter(|_| !abandoned) {
            self.call(answer, |_| false);
        }
        let empty = answer.as_ref().is_some_and(|answer| {
            answer.employer.iter().chain(&answer.employees).all(|pair| pair.current.is_none())
        });
        let bare = |pod: &Arc<PodView>| {
            let protected = pod.finalizers.iter().any(|finalizer| {
                self.finalizers.has(finalizer) && !pod.entries().shares(&self.key, finalizer)
            });
            // Of a terminating pod the entry goes with it.
            !protected && (pod.is_terminating() || !pod.entries().has_key(&self.key))
        };
        // Nothing was made for an employer that is there without its clean finalizer, or somebody else took that away.
        let nothing_made = !marked && !self.observed.employer.gone;
        if !(pods.iter().all(bare) && (empty || abandoned || nothing_made) && fresh) {
            return;
        }
        let before = self.orders.len();
        if !self.observed.employer.gone {
            self.record(pods);
        }
        if self.orders.len() > before || self.memory.is_busy() {
            return;
        }
        if let BindingClaim::Held { uid, .. } = self.observed.claim {
            self.order(WorkSlot::Binding, Act::Unclaim { uid: uid.clone() });
        } else if marked {
            let finalizers = self.observed.employer.clean_finalizers();
            self.order(WorkSlot::Employer, Act::RemoveClean { finalizers });
            if abandoned && !self.memory.left_reported {
                self.memory.left_reported = true;
                let message = "released by hand: what the provider has of it was not removed".to_owned();
                self.notices.push(EmployerNotice {
                    reason: "CleanEmployerCleanFinalizerSucceed",
                    message,
                    warning: true,
                });
                self.left = Some(self.what_is_left("was released by hand", pods));
            }
        }
    }

    /// Says of an employer that is gone although it had what should have kept it: what is left is taken away, if the
    /// provider lets us.
    fn report_gone(&mut self, pods: &[Arc<PodView>]) {
        let something = !self.memory.known.is_empty() || !pods.is_empty();
        if self.observed.employer.gone && something && !self.memory.left_reported {
            self.memory.left_reported = true;
            self.left = Some(self.what_is_left("is gone without its clean finalizer", pods));
        }
    }

    /// What the provider may still have: what was last seen there, else what should have been there.
    fn what_is_left(&self, how: &str, pods: &[Arc<PodView>]) -> String {
        const NAMED: usize = 20;
        let employer = self.observed.employer;
        let mut ids: BTreeSet<&str> = self.memory.known.iter().map(|(_, id)| id.as_str()).collect();
        if ids.is_empty() {
            ids.insert(employer.name.as_str());
            let selected = pods.iter().filter(|pod| self.observed.selects(pod));
            ids.extend(selected.map(|pod| pod.name.as_str()));
        }
        let (key, adapter, more) = (&self.key, self.observed.adapter, ids.len().saturating_sub(NAMED));
        let named = ids.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("{key} {how}: provider {adapter} may still have {named}{more}")
    }

    /// What is known of each pod's traffic through this employer.
    pub(super) fn traffic(&self) -> BTreeMap<String, Traffic> {
        let answer = self.answer();
        let by_name = answer.map(protection::by_name);
        let pods = self.observed.employees.into_iter().flatten();
        let marked = pods.filter(|pod| self.observed.selects(pod) || pod.entries().has_key(&self.key));
        let of = |pod: &Arc<PodView>| match &by_name {
            None => Traffic::Unknown,
            Some(by_name) => match protection::of_pod(pod, by_name.get(pod.name.as_str())) {
                Protection::Off => Traffic::Out,
                Protection::On | Protection::Keep => Traffic::In,
            },
        };
        marked.map(|pod| (pod.uid.clone(), of(pod))).collect()
    }

    /// Employees that may have traffic and wait to be attached.
    pub(super) fn attaching(&self) -> BTreeSet<String> {
        let Some(answer) = self.answer() else {
            let pods = self.observed.employees.into_iter().flatten();
            let waits = |pod: &&Arc<PodView>| {
                let protected = pod.finalizers.iter().any(|own| self.finalizers.has(own));
                self.observed.selects(pod) && pod.is_lifecycle_ready() && !protected
            };
            return pods.filter(waits).map(|pod| pod.name.clone()).collect();
        };
        let waiting = provider::differences(answer).filter(|(_, pair)| pair.ready == Some(true));
        waiting.map(|(_, pair)| pair.name.clone()).collect()
    }
}
