//! When which probe is due, and what its answers add up to. Pure: time is a number, probes are carried out elsewhere.
//!
//! * **One probe per question.** Equal probes of all objects in all namespaces are one; those that carry what was read from
//!   a Secret are shared within one identity only.
//! * **Cadence.** What does not answer is probed at once, then after 1, 2, 4, 8 and every 10 seconds, at the latest every 2
//!   while somebody is held by it; what answers, every 30. All with a tenth of jitter, from the probe itself.
//! * **Doubt.** What answered and fails once is probed again after a second before it counts as failed.
//! * **Shares.** Few probes are under way at once, fewer of one namespace, one of a place; who has the fewest under way is
//!   next. A namespace has a number of different probes; more of them wait as `OverBudget`, in the order they came.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
    time::Duration,
};

use linchpin_cluster::hub::SubscriberId;
use linchpin_engine::contract::{Actor, ProbePace, Question, Seen, Via, Want, Why};
use linchpin_words::{
    Reason, Shared,
    hash::Fnv,
    limits,
    probe::{Miss, Probe, ProbeTarget},
};

use crate::subscriptions::{SubscriptionChange, Subscriptions, namespace_of};

/// Between two probes of what answers.
const MET: Duration = Duration::from_secs(30);
/// After a first failure of what answered, and after the first of what never did.
const SOON: Duration = Duration::from_secs(1);
/// The longest pause while nothing answers, and while somebody is held by that.
const UNMET: Duration = Duration::from_secs(10);
const HELD: Duration = Duration::from_secs(2);

/// How a probe ended; none if it could not be carried out.
pub(crate) type ProbeEnd = Option<Result<(), Miss>>;

/// The number of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProbeId(u64);

/// A probe that is to be carried out now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbeJob {
    pub(crate) id: ProbeId,
    pub(crate) probe: Shared<Probe>,
}

/// A probe, and the identity within which it may be shared, where that is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    probe: Shared<Probe>,
    within: Option<Actor>,
}

/// One question.
struct Topic {
    arrival: u64,
    /// The probe that answers it; none while its namespace has too many.
    probe: Option<ProbeId>,
}

/// One probe.
struct ScheduledProbe {
    key: Key,
    wants: BTreeSet<Want>,
    answer: Option<Result<(), Miss>>,
    /// Whether the last attempt failed although it is still counted as met.
    doubted: bool,
    /// Failures in a row.
    failures: u32,
    /// Attempts in all, for the jitter.
    attempts: u64,
    due: Duration,
    /// The namespace in whose share it is under way.
    under_way: Option<String>,
    /// Whether it was asked for anew while it was under way.
    again: bool,
}

/// What one namespace has and does.
#[derive(Default)]
struct Namespace {
    /// How many questions each of its probes answers.
    probes: BTreeMap<ProbeId, usize>,
    /// Questions that wait for room, in the order they came.
    held: BTreeMap<u64, Want>,
    under_way: usize,
    /// When it was served last, in the order of all that was.
    served: u64,
}

/// All of it.
#[derive(Default)]
pub(crate) struct ProbeSchedule {
    asked: Subscriptions,
    topics: BTreeMap<Want, Topic>,
    keys: BTreeMap<Key, ProbeId>,
    probes: BTreeMap<ProbeId, ScheduledProbe>,
    /// The probes that are not under way, by when they are due.
    due: BTreeSet<(Duration, ProbeId)>,
    namespaces: BTreeMap<String, Namespace>,
    busy: BTreeSet<ProbeTarget>,
    under_way: usize,
    next: u64,
}

fn parts(want: &Want) -> Option<(&Via, &Shared<Probe>, ProbePace)> {
    match want.question() {
        Question::Probe { via, probe, pace } => Some((via, probe, *pace)),
        _ => None,
    }
}

impl ProbeSchedule {
    /// Replaces all that a subscriber asks for. Questions that are no probes are none of ours.
    pub(crate) fn subscribe(&mut self, subscriber: SubscriberId, wants: BTreeSet<Want>, now: Duration) {
        let SubscriptionChange { new, gone } = self.asked.replace(subscriber, wants);
        for want in new {
            let arrival = self.number();
            self.topics.insert(want.clone(), Topic { arrival, probe: None });
            self.admit(&want, arrival, now);
        }
        for want in &gone {
            self.leave(want, now);
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Gives a question its probe, or lets it wait for room.
    fn admit(&mut self, want: &Want, arrival: u64, now: Duration) {
        let Some((via, probe, pace)) = parts(want) else { return };
        let within = probe.is_private().then(|| via.actor.clone());
        let key = Key { probe: probe.clone(), within };
        let known = self.keys.get(&key).copied();
        let namespace = self.namespaces.entry(namespace_of(want).to_owned()).or_default();
        let has_it = known.is_some_and(|id| namespace.probes.contains_key(&id));
        if !has_it && namespace.probes.len() >= limits::PROBES {
            namespace.held.insert(arrival, want.clone());
            return;
        }
        namespace.held.remove(&arrival);
        let id = known.unwrap_or(ProbeId(arrival));
        *namespace.probes.entry(id).or_default() += 1;
        if known.is_none() {
            self.keys.insert(key.clone(), id);
            self.due.insert((now, id));
            let entry = ScheduledProbe {
                key,
                wants: BTreeSet::new(),
                answer: None,
                doubted: false,
                failures: 0,
                attempts: 0,
                due: now,
                under_way: None,
                again: false,
            };
            self.probes.insert(id, entry);
        }
        if let Some(entry) = self.probes.get_mut(&id) {
            entry.wants.insert(want.clone());
        }
        if let Some(topic) = self.topics.get_mut(want) {
            topic.probe = Some(id);
        }
        // Somebody is held by it from now on: the pause that it is in may be too long.
        if pace == ProbePace::Held {
            self.advance(id, now + HELD, |entry| !matches!(entry.answer, Some(Ok(()))));
        }
    }

    fn leave(&mut self, want: &Want, now: Duration) {
        let Some(topic) = self.topics.remove(want) else { return };
        let name = namespace_of(want);
        let Some(namespace) = self.namespaces.get_mut(name) else { return };
        let Some(id) = topic.probe else {
            namespace.held.remove(&topic.arrival);
            return;
        };
        if let Some(count) = namespace.probes.get_mut(&id) {
            *count -= 1;
            if *count == 0 {
                namespace.probes.remove(&id);
            }
        }
        let room = limits::PROBES.saturating_sub(namespace.probes.len());
        let waiting: Vec<(u64, Want)> =
            namespace.held.iter().take(room).map(|(arrival, want)| (*arrival, want.clone())).collect();
        self.forget(id, want);
        for (arrival, want) in waiting {
            self.admit(&want, arrival, now);
        }
        if self
            .namespaces
            .get(name)
            .is_some_and(|space| space.probes.is_empty() && space.held.is_empty() && space.under_way == 0)
        {
            self.namespaces.remove(name);
        }
    }

    /// A question is no longer asked; a probe that answers none is dropped. What is under way ends by itself.
    fn forget(&mut self, id: ProbeId, want: &Want) {
        let Some(entry) = self.probes.get_mut(&id) else { return };
        entry.wants.remove(want);
        if entry.wants.is_empty() && entry.under_way.is_none() {
            self.drop_probe(id);
        }
    }

    fn drop_probe(&mut self, id: ProbeId) {
        if let Some(entry) = self.probes.remove(&id) {
            self.keys.remove(&entry.key);
            self.due.remove(&(entry.due, id));
        }
    }

    /// The answer as it is known.
    pub(crate) fn read(&self, want: &Want) -> Seen {
        let unknown = |reason, message: String| Seen::Unknown(Why::new(reason, message));
        let Some(topic) = self.topics.get(want) else {
            return unknown(Reason::Unsynced, "not probed yet".to_owned());
        };
        let Some(entry) = topic.probe.and_then(|id| self.probes.get(&id)) else {
            let message = format!(
                "namespace {} asks for more than {} different probes; those that came first are answered",
                namespace_of(want),
                limits::PROBES
            );
            return unknown(Reason::OverBudget, message);
        };
        match &entry.answer {
            None => unknown(Reason::Unsynced, "not probed yet".to_owned()),
            Some(Err(miss)) if miss.is_denied() => unknown(miss.reason(), miss.to_string()),
            Some(answer) => Seen::Probe(answer.clone()),
        }
    }

    /// Asks for an immediate fresh look.
    pub(crate) fn refresh(&mut self, want: &Want, now: Duration) {
        let Some(id) = self.topics.get(want).and_then(|topic| topic.probe) else { return };
        if let Some(entry) = self.probes.get_mut(&id)
            && entry.under_way.is_some()
        {
            entry.again = true;
        }
        self.advance(id, now, |_| true);
    }

    /// Makes a probe due by `latest` if it is not under way and `applies` to it.
    fn advance(&mut self, id: ProbeId, latest: Duration, applies: impl Fn(&ScheduledProbe) -> bool) {
        let Some(entry) = self.probes.get_mut(&id) else { return };
        if entry.under_way.is_none() && entry.due > latest && applies(entry) {
            self.due.remove(&(entry.due, id));
            entry.due = latest;
            self.due.insert((latest, id));
        }
    }

    /// The probe to carry out next, if one may start now.
    pub(crate) fn next(&mut self, now: Duration) -> Option<ProbeJob> {
        if self.under_way >= limits::PROBE_THREADS {
            return None;
        }
        let due = self.due.iter().take_while(|(due, _)| *due <= now);
        let (_, _, _, id, name) = due
            .filter_map(|(due, id)| {
                let entry = self.probes.get(id)?;
                if self.busy.contains(&entry.key.probe.place) {
                    return None;
                }
                let (under_way, served, name) = self.host(entry)?;
                Some((under_way, served, *due, *id, name))
            })
            .min_by_key(|(under_way, served, due, ..)| (*under_way, *served, *due))?;
        let name = name.to_owned();
        let served = self.number();
        let entry = self.probes.get_mut(&id)?;
        self.due.remove(&(entry.due, id));
        entry.under_way = Some(name.clone());
        self.busy.insert(entry.key.probe.place.clone());
        self.under_way += 1;
        let namespace = self.namespaces.entry(name).or_default();
        namespace.under_way += 1;
        namespace.served = served;
        Some(ProbeJob { id, probe: entry.key.probe.clone() })
    }

    /// The namespace in whose share a probe may start: of those that ask for it the one with the fewest under way.
    fn host<'a>(&self, entry: &'a ScheduledProbe) -> Option<(usize, u64, &'a str)> {
        let asking = entry.wants.iter().map(namespace_of);
        let candidates = asking.filter_map(|name| {
            let namespace = self.namespaces.get(name)?;
            Some((namespace.under_way, namespace.served, name))
        });
        candidates.filter(|(under_way, ..)| *under_way < limits::PROBE_NAMESPACE_THREADS).min()
    }

    /// Takes the end of a probe in; who has another answer now.
    pub(crate) fn ended(&mut self, id: ProbeId, ended: ProbeEnd, now: Duration) -> BTreeSet<SubscriberId> {
        let Some(entry) = self.probes.get_mut(&id) else { return BTreeSet::new() };
        let Some(host) = entry.under_way.take() else { return BTreeSet::new() };
        self.under_way -= 1;
        self.busy.remove(&entry.key.probe.place);
        if let Some(namespace) = self.namespaces.get_mut(&host) {
            namespace.under_way -= 1;
            if namespace.under_way == 0 && namespace.probes.is_empty() && namespace.held.is_empty() {
                self.namespaces.remove(&host);
            }
        }
        let changed = entry.take(ended);
        let pause = if std::mem::take(&mut entry.again) { Duration::ZERO } else { entry.pause() };
        entry.due = now + pause;
        self.due.insert((entry.due, id));
        if entry.wants.is_empty() {
            self.drop_probe(id);
            return BTreeSet::new();
        }
        if !changed {
            return BTreeSet::new();
        }
        self.asked.readers(&entry.wants)
    }

    /// When the next probe is due, whether or not it may start then.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }

    /// How many different probes there are.
    pub(crate) fn len(&self) -> usize {
        self.probes.len()
    }
}

impl ScheduledProbe {
    /// Takes an outcome in; whether the answer is another one now.
    fn take(&mut self, ended: ProbeEnd) -> bool {
        self.attempts += 1;
        let Some(outcome) = ended else { return false };
        self.failures = if outcome.is_ok() { 0 } else { self.failures.saturating_add(1) };
        // One failure of what answered is no proof yet.
        let first = outcome.is_err() && self.answer == Some(Ok(())) && !self.doubted;
        self.doubted = first;
        if first || self.answer.as_ref() == Some(&outcome) {
            return false;
        }
        self.answer = Some(outcome);
        true
    }

    fn pause(&self) -> Duration {
        let pause = match (&self.answer, self.doubted) {
            // Exactly: it is the second of two looks that decide together.
            (_, true) => return SOON,
            (Some(Ok(())), false) => MET,
            _ => {
                let doubled = SOON * 2_u32.saturating_pow(self.failures.saturating_sub(1).min(8));
                let held = self.wants.iter().filter_map(parts).any(|(.., pace)| pace == ProbePace::Held);
                doubled.min(if held { HELD } else { UNMET })
            }
        };
        jittered(pause, &self.key.probe, self.attempts)
    }
}

/// A tenth more or less, from the probe and its attempt: the same in every run.
fn jittered(pause: Duration, probe: &Probe, attempt: u64) -> Duration {
    let mut hasher = Fnv::default();
    probe.place.hash(&mut hasher);
    attempt.hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 201).unwrap_or_default();
    pause * 9 / 10 + pause * share / 1000
}

#[cfg(test)]
mod tests;
