//! The provider's side of a turn: which answer counts, which call is due, when to look again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use linchpin_words::{Timestamp, hash::Fnv};
use serde_json::Value;

use super::{Act, EmployerNotice, Held, Matter, ProviderLook, Turn, WorkSlot};
use crate::{
    adapter::Batch,
    answer::{ItemPair, ProviderAnswer},
    options::POLL_CAP,
    port::Call,
};

/// How long, and over how many looks, employees that leave a selection stay in traffic for those that come into it.
const ATTACH_FIRST: (Duration, u32) = (Duration::from_secs(3), 3);

/// The call that an item needs.
fn needed(pair: &ItemPair, of_employees: bool) -> Option<Call> {
    let calls = if of_employees {
        [Call::CreateEmployees, Call::UpdateEmployees, Call::DeleteEmployees]
    } else {
        [Call::CreateEmployer, Call::UpdateEmployer, Call::DeleteEmployer]
    };
    match (&pair.expected, &pair.current) {
        (Some(_), None) => Some(calls[0]),
        (Some(_), Some(_)) if !pair.same => Some(calls[1]),
        (None, Some(_)) => Some(calls[2]),
        _ => None,
    }
}

/// Every item that is not as it should be, with the call that it needs.
pub(super) fn differences(answer: &ProviderAnswer) -> impl Iterator<Item = (Call, &ItemPair)> {
    let employer = answer.employer.iter().map(|pair| (pair, false));
    let employees = answer.employees.iter().map(|pair| (pair, true));
    employer.chain(employees).filter_map(|(pair, of_employees)| Some((needed(pair, of_employees)?, pair)))
}

/// Items that the provider says are still in traffic although they should not be.
pub(super) fn draining(answer: &ProviderAnswer) -> impl Iterator<Item = &ItemPair> {
    answer.employees.iter().filter(|pair| !pair.ready.unwrap_or_default() && pair.in_traffic == Some(true))
}

/// The pause after so many fruitless looks, from 0.
fn poll(first: Duration, times: u32) -> Duration {
    first.saturating_mul(1 << times.min(16)).min(POLL_CAP.max(first))
}

impl Turn<'_> {
    /// A call came back: nothing that was seen before counts any more, and what is not done is held for a while.
    pub(super) fn call_ended(&mut self, at: Timestamp, result: &Result<Batch, String>) {
        let Some((call, ids)) = self.memory.calling.take() else { return };
        self.memory.floor = Some(at);
        let options = self.observed.options;
        if let Err(trouble) = result {
            let (reason, message) = call.failure(trouble);
            self.report_trouble(Matter::Doing, reason, Some(message));
        }
        for id in ids {
            let held = self.memory.held.get(&(call, id.clone()));
            let times = held.map_or(1, |held| held.times.saturating_add(1));
            let (pause, why) = match result {
                Err(trouble) => (self.pause(times, call.name()), trouble.clone()),
                Ok(batch) => {
                    let pending = batch.pending.iter().find(|(pending, _)| *pending == id);
                    let why = pending.map(|(_, why)| why.clone());
                    if why.is_none() && matches!(call, Call::DeleteEmployer | Call::DeleteEmployees) {
                        self.memory.known.remove(&(call.is_of_employees(), id.clone()));
                    }
                    (
                        poll(options.poll, times - 1),
                        why.unwrap_or_else(|| "not seen at the provider yet".to_owned()),
                    )
                }
            };
            let refused = result.is_err();
            self.memory.held.insert((call, id), Held { times, until: at.plus_duration(pause), why, refused });
        }
    }

    /// The pause after so many failures in a row; every employer is looked at each `resync` anyway.
    pub(super) fn pause(&self, failures: u32, what: &str) -> Duration {
        let options = self.observed.options;
        options.rate_limit.pause(failures, options.resync, &self.observed.employer.uid, what)
    }

    /// Takes in a look that is new: counts failures, knows what was seen, forgets what is held in vain.
    pub(super) fn take_look(&mut self) {
        let Some(look) = self.observed.look else { return };
        if self.memory.last_look == Some(look.began) {
            return;
        }
        self.memory.last_look = Some(look.began);
        let answer = match &look.result {
            Ok(answer) => answer,
            Err(failed) => {
                self.memory.look_failures = self.memory.look_failures.saturating_add(1);
                for (getter, trouble) in failed.all() {
                    self.report_trouble(Matter::Doing, getter.reason(), Some(trouble.to_string()));
                }
                return;
            }
        };
        self.memory.look_failures = 0;
        if !self.counts(look) {
            return;
        }
        self.doubt(look, answer);
        if self.memory.doubt == Some(look.began) {
            return;
        }
        let needed: Vec<(Call, String)> =
            differences(answer).map(|(call, pair)| (call, pair.id.clone())).collect();
        self.memory.held.retain(|held, _| needed.contains(held));
        let waits = !needed.is_empty() || draining(answer).next().is_some();
        self.memory.waits = if waits { self.memory.waits.saturating_add(1) } else { 0 };
        if needed.is_empty() {
            self.memory.reported.retain(|(_, about), _| *about != Matter::Doing);
        }
    }

    /// An empty answer where something was seen not long ago is asked for once more: a provider that restarts empty must
    /// not look like a drained one.
    fn doubt(&mut self, look: &ProviderLook, answer: &ProviderAnswer) {
        let there = |pairs: &[ItemPair], of_employees: bool| {
            let current = pairs.iter().filter(|pair| pair.current.is_some());
            current.map(|pair| (of_employees, pair.id.clone())).collect::<Vec<_>>()
        };
        let mut seen = there(&answer.employer, false);
        seen.extend(there(&answer.employees, true));
        let lately = self.memory.known_at.is_some_and(|at| look.began < at.plus_duration(super::DOUBT));
        let vanished = |side: bool| {
            self.memory.known.iter().any(|(of, _)| *of == side) && !seen.iter().any(|(of, _)| *of == side)
        };
        if (vanished(false) || vanished(true)) && lately && self.memory.doubt.is_none() {
            self.memory.doubt = Some(look.began);
            return;
        }
        self.memory.doubt = None;
        self.memory.known = seen.into_iter().collect();
        self.memory.known_at = Some(look.began);
    }

    /// Whether a look is about what is there now, and younger than our last call.
    fn counts(&self, look: &ProviderLook) -> bool {
        look.about == self.about
            && !self.memory.is_calling()
            && self.memory.floor.is_none_or(|floor| look.began > floor)
    }

    /// The answer, where there is one that counts.
    pub(super) fn answer(&self) -> Option<&ProviderAnswer> {
        let look = self.observed.look?;
        let answer = look.result.as_ref().ok()?;
        (self.counts(look) && self.memory.doubt.is_none()).then_some(answer)
    }

    /// Orders the first call that is due. `may_attach` says whether an employee may be put into traffic now.
    pub(super) fn call(&mut self, answer: &ProviderAnswer, may_attach: impl Fn(&ItemPair) -> bool) {
        if self.memory.is_calling() {
            return;
        }
        let Some(look) = self.observed.look else { return };
        let mut due: BTreeMap<Call, Vec<(String, Arc<Value>)>> = BTreeMap::new();
        let mut comes = false;
        for (call, pair) in differences(answer) {
            let held = self.memory.held.get(&(call, pair.id.clone()));
            if held.is_some_and(|held| held.until > look.began) {
                continue;
            }
            if matches!(call, Call::CreateEmployees | Call::UpdateEmployees) && !may_attach(pair) {
                comes |= pair.ready == Some(true);
                continue;
            }
            let Some(state) = pair.expected.as_ref().or(pair.current.as_ref()) else { continue };
            due.entry(call).or_default().push((pair.id.clone(), Arc::clone(state)));
        }
        if comes {
            self.attach_first(look, answer, &mut due);
        }
        let Some((call, mut items)) = due.into_iter().next() else { return };
        items.truncate(self.observed.options.batch.max(1));
        self.memory.calling = Some((call, items.iter().map(|(id, _)| id.clone()).collect()));
        self.order(WorkSlot::Provider, Act::Call { call, items });
    }

    /// Leaves pods in traffic for a moment that only left the selection, while others wait to be marked before they may have
    /// it: a selector that changes must not leave nobody.
    fn attach_first(
        &mut self,
        look: &ProviderLook,
        answer: &ProviderAnswer,
        due: &mut BTreeMap<Call, Vec<(String, Arc<Value>)>>,
    ) {
        let (patience, looks) = ATTACH_FIRST;
        let until = look.began.plus_duration(patience);
        if self.now >= until || self.memory.waits > looks {
            return;
        }
        let pods = self.observed.employees.into_iter().flatten();
        let serving: BTreeSet<&str> =
            pods.filter(|pod| pod.is_lifecycle_ready()).map(|pod| pod.name.as_str()).collect();
        let goes = differences(answer).filter(|(call, _)| *call == Call::DeleteEmployees);
        let stays: BTreeSet<&str> = goes
            .filter(|(_, pair)| serving.contains(pair.name.as_str()))
            .map(|(_, pair)| pair.id.as_str())
            .collect();
        let Some(items) = due.get_mut(&Call::DeleteEmployees) else { return };
        items.retain(|(id, _)| !stays.contains(id.as_str()));
        if items.is_empty() {
            due.remove(&Call::DeleteEmployees);
        }
        self.wake(until);
    }

    /// When the provider is to be looked at next; none while a call is under way: its end asks for a look.
    pub(super) fn look_at(&self) -> Option<Timestamp> {
        let options = self.observed.options;
        if self.memory.is_calling() {
            return None;
        }
        let Some(look) = self.observed.look else { return Some(self.now) };
        let answer = match &look.result {
            // Another question than the one that failed.
            Err(_) if look.about != self.about => return Some(self.now),
            Err(_) => {
                let pause = self.pause(self.memory.look_failures.max(1), "Look");
                return Some(look.began.plus_duration(pause));
            }
            Ok(_) if !self.counts(look) => return Some(self.now),
            Ok(answer) => answer,
        };
        if self.memory.doubt.is_some() {
            return Some(look.began.plus_duration(options.poll));
        }
        let mut at = self.resync_after(look.began);
        if let Some(recheck) = answer.recheck {
            at = at.min(look.began.plus_duration(recheck));
        }
        for (call, pair) in differences(answer) {
            if let Some(held) = self.memory.held.get(&(call, pair.id.clone())) {
                // What was due at this look and was not called for waits for something else: asking at once would be in vain.
                let due = held.until <= look.began;
                at = at.min(if due { look.began.plus_duration(self.fruitless()) } else { held.until });
            }
        }
        if draining(answer).next().is_some() {
            at = at.min(look.began.plus_duration(self.fruitless()));
        }
        Some(at)
    }

    /// The pause after the looks in a row after which something was still waited for.
    fn fruitless(&self) -> Duration {
        poll(self.observed.options.poll, self.memory.waits.saturating_sub(1))
    }

    /// When the provider is looked at although nothing changed: at most `resync` later, at a moment of its own within that
    /// time. Employers that were made together do not ask together for ever: somebody's pod would wait behind all of them.
    fn resync_after(&self, began: Timestamp) -> Timestamp {
        let resync = self.observed.options.resync;
        let period = i64::try_from(resync.as_micros()).unwrap_or(i64::MAX).max(1);
        let phase =
            i64::try_from(Fnv::of(self.observed.employer.uid.as_bytes()) >> 1).unwrap_or_default() % period;
        let gone = (began.as_microsecond() - phase).rem_euclid(period);
        let left = u64::try_from(period - gone).unwrap_or_default();
        began.plus_duration(Duration::from_micros(left).min(resync))
    }

    /// Reports trouble, once per change; none: it is over.
    pub(super) fn report_trouble(&mut self, about: Matter, reason: &'static str, message: Option<String>) {
        let Some(message) = message else {
            self.memory.reported.remove(&(reason, about));
            return;
        };
        if self.memory.reported.get(&(reason, about)) != Some(&message) {
            self.memory.reported.insert((reason, about), message.clone());
            self.notices.push(EmployerNotice { reason, message, warning: true });
        }
    }
}
