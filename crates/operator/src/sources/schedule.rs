//! When which source is fetched, and what its answers add up to. Pure: time is a number, fetches are carried out elsewhere.
//!
//! * **One fetch per question.** Equal sources of all objects in all namespaces are one, looked at as often as the most
//!   eager of them asks. A Secret is part of a source, so nobody gets what another's credentials opened.
//! * **Cadence.** At once; then after the interval, unless the source names its content; after a failure after 1, 2, 4
//!   … seconds up to the interval, later where the server asks for it.
//! * **Unknown is not absent.** A look that fails changes nothing of what was read before; it is reported beside it. That is
//!   so also where the question is another one by now, because Flux has a newer artifact or a Secret other data: whoever
//!   asked before keeps what was read, and nobody else gets it.
//! * **Shares.** Few fetches are under way at once, one of a namespace; who was served longest ago is next. What is
//!   kept has a budget for each namespace and one for all.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use linchpin_cluster::hub::SubscriberId;
use linchpin_engine::contract::{Artifact, Manifests, Question, Seen, SourceFault, Via, Want, Why};
use linchpin_source::{
    Problem,
    fetch::{EarlierFetch, Fetched},
};
use linchpin_words::{Reason, Shared, Timestamp, limits, source::Source};

use crate::subscriptions::{SubscriptionChange, Subscriptions, namespace_of};

/// After a first failure.
const SOON: Duration = Duration::from_secs(1);

/// How a fetch ended: with something new, with nothing new, with a problem; none if it could not be carried out.
pub(crate) type FetchEnd = Option<Result<Option<Fetched>, Problem>>;

/// The number of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId(u64);

/// A fetch that is to be made now.
#[derive(Clone, Debug)]
pub(crate) struct FetchJob {
    pub(crate) id: SourceId,
    pub(crate) source: Shared<Source>,
    pub(crate) timeout: Duration,
    pub(crate) known: Option<EarlierFetch>,
}

/// One source.
struct ScheduledSource {
    source: Shared<Source>,
    wants: BTreeSet<Want>,
    answer: Option<Arc<Artifact>>,
    /// What those who ask have read of it at an earlier time, until there is something newer.
    inherited: BTreeMap<Want, Arc<Manifests>>,
    /// What to send with the next fetch.
    known: Option<EarlierFetch>,
    /// Failures in a row.
    failures: u32,
    /// None while nothing is to be looked at again.
    due: Option<Duration>,
    /// The namespace in whose share it is under way.
    under_way: Option<String>,
    /// Whether it was asked for anew while it was under way.
    again: bool,
}

/// All of it.
#[derive(Default)]
pub(crate) struct SourceSchedule {
    asked: Subscriptions,
    ids: BTreeMap<Shared<Source>, SourceId>,
    entries: BTreeMap<SourceId, ScheduledSource>,
    /// What is not under way, by when it is due.
    due: BTreeSet<(Duration, SourceId)>,
    /// The namespaces with a fetch under way.
    busy: BTreeSet<String>,
    /// When each namespace was served last, in the order of all that was.
    served: BTreeMap<String, u64>,
    next: u64,
}

/// What a question about a source says; none for other questions.
fn parts(want: &Want) -> Option<(&Via, &Shared<Source>, Duration, Duration)> {
    match want.question() {
        Question::Artifact { via, source, interval, timeout } => Some((via, source, *interval, *timeout)),
        _ => None,
    }
}

impl SourceSchedule {
    /// Replaces all that a subscriber asks for.
    pub(crate) fn subscribe(&mut self, subscriber: SubscriberId, wants: BTreeSet<Want>, now: Duration) {
        let earlier: Vec<(Want, Arc<Manifests>)> = self
            .asked
            .of(subscriber)
            .filter_map(|want| Some((want.clone(), self.content_for(want)?)))
            .collect();
        let SubscriptionChange { new, gone } = self.asked.replace(subscriber, wants);
        for want in &new {
            self.join(want, now);
            self.inherit(want, &earlier);
        }
        for want in &gone {
            self.leave(want);
        }
    }

    /// Gives a new question what the same subscriber has read of the same source before.
    fn inherit(&mut self, want: &Want, earlier: &[(Want, Arc<Manifests>)]) {
        let Some((via, source, ..)) = parts(want) else { return };
        let is_earlier = |old: &Want| {
            parts(old)
                .is_some_and(|(old_via, old, ..)| old_via == via && old != source && source.follows(old))
        };
        let Some((_, content)) = earlier.iter().find(|(old, _)| is_earlier(old)) else { return };
        if let Some(entry) = self.ids.get(source).and_then(|id| self.entries.get_mut(id))
            && entry.content().is_none()
        {
            entry.inherited.insert(want.clone(), Arc::clone(content));
        }
    }

    /// What is to be applied of a source for somebody who asks.
    fn content_for(&self, want: &Want) -> Option<Arc<Manifests>> {
        let entry = self.entries.get(&self.id(want)?)?;
        entry.content().or_else(|| entry.inherited.get(want)).cloned()
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The number of what answers a question.
    fn id(&self, want: &Want) -> Option<SourceId> {
        parts(want)
            .filter(|_| self.asked.asks(want))
            .and_then(|(_, source, ..)| self.ids.get(source).copied())
    }

    fn join(&mut self, want: &Want, now: Duration) {
        let Some((_, source, interval, _)) = parts(want) else { return };
        let id = match self.ids.get(source) {
            Some(id) => *id,
            None => SourceId(self.number()),
        };
        self.ids.insert(source.clone(), id);
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.wants.insert(want.clone());
            // Somebody looks more often from now on: the pause that it is in may be too long.
            self.advance(id, now + interval, |entry| entry.due.is_some());
            return;
        }
        let entry = ScheduledSource {
            source: source.clone(),
            wants: BTreeSet::from([want.clone()]),
            answer: None,
            inherited: BTreeMap::new(),
            known: None,
            failures: 0,
            due: Some(now),
            under_way: None,
            again: false,
        };
        self.entries.insert(id, entry);
        self.due.insert((now, id));
    }

    fn leave(&mut self, want: &Want) {
        let name = namespace_of(want);
        let id = parts(want).and_then(|(_, source, ..)| self.ids.get(source).copied());
        if let Some((id, entry)) = id.and_then(|id| Some((id, self.entries.get_mut(&id)?))) {
            entry.wants.remove(want);
            entry.inherited.remove(want);
            if entry.wants.is_empty() && entry.under_way.is_none() {
                self.drop_entry(id);
            }
        }
        self.forget(name);
    }

    /// Forgets a namespace that asks for nothing any more.
    fn forget(&mut self, name: &str) {
        if !self.busy.contains(name) && !self.asked.wants().any(|want| namespace_of(want) == name) {
            self.served.remove(name);
        }
    }

    fn drop_entry(&mut self, id: SourceId) {
        if let Some(entry) = self.entries.remove(&id) {
            self.ids.remove(&entry.source);
            if let Some(due) = entry.due {
                self.due.remove(&(due, id));
            }
        }
    }

    /// The answer as it is known.
    pub(crate) fn read(&self, want: &Want) -> Seen {
        let Some(entry) = self.id(want).and_then(|id| self.entries.get(&id)) else {
            return Seen::Unknown(Why::new(Reason::Unsynced, "not fetched yet"));
        };
        match (&entry.answer, entry.inherited.get(want)) {
            (answer, Some(content)) => {
                let fault = answer.as_ref().and_then(|answer| answer.fault.clone());
                Seen::Artifact(Arc::new(Artifact { content: Some(Arc::clone(content)), fault }))
            }
            (Some(answer), None) => Seen::Artifact(Arc::clone(answer)),
            (None, None) => Seen::Unknown(Why::new(Reason::Unsynced, "not fetched yet")),
        }
    }

    /// Asks for an immediate fresh look; what names its content and was read is not read again.
    pub(crate) fn refresh(&mut self, want: &Want, now: Duration) {
        let Some(id) = self.id(want) else { return };
        if let Some(entry) = self.entries.get_mut(&id)
            && entry.under_way.is_some()
        {
            entry.again = true;
        }
        self.advance(id, now, |entry| !entry.is_settled());
    }

    /// Makes a source due by `latest` if it is not under way and `applies` to it.
    fn advance(&mut self, id: SourceId, latest: Duration, applies: impl Fn(&ScheduledSource) -> bool) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if entry.under_way.is_none() && entry.due.is_none_or(|due| due > latest) && applies(entry) {
            if let Some(due) = entry.due {
                self.due.remove(&(due, id));
            }
            entry.due = Some(latest);
            self.due.insert((latest, id));
        }
    }

    /// The fetch to make next, if one may start now.
    pub(crate) fn next(&mut self, now: Duration) -> Option<FetchJob> {
        if self.busy.len() >= limits::FETCHES {
            return None;
        }
        let due = self.due.iter().take_while(|(due, _)| *due <= now);
        let (_, _, id, name) = due
            .filter_map(|(due, id)| {
                let (served, name) = self.host(self.entries.get(id)?)?;
                Some((served, *due, *id, name))
            })
            .min_by_key(|(served, due, ..)| (*served, *due))?;
        let name = name.to_owned();
        let served = self.number();
        let entry = self.entries.get_mut(&id)?;
        if let Some(due) = entry.due.take() {
            self.due.remove(&(due, id));
        }
        entry.under_way = Some(name.clone());
        self.busy.insert(name.clone());
        self.served.insert(name, served);
        let timeouts = entry.wants.iter().filter_map(parts).map(|(.., timeout)| timeout);
        let timeout = timeouts.max().unwrap_or_default();
        Some(FetchJob { id, source: entry.source.clone(), timeout, known: entry.known.clone() })
    }

    /// The namespace in whose share a source may be fetched: of those that ask for it the one served longest ago.
    fn host<'a>(&self, entry: &'a ScheduledSource) -> Option<(u64, &'a str)> {
        let asking = entry.wants.iter().map(namespace_of).filter(|name| !self.busy.contains(*name));
        asking.map(|name| (self.served.get(name).copied().unwrap_or_default(), name)).min()
    }

    /// Takes the end of a fetch in; who has another answer now.
    pub(crate) fn ended(
        &mut self,
        id: SourceId,
        ended: FetchEnd,
        now: Duration,
        wall: Timestamp,
    ) -> BTreeSet<SubscriberId> {
        let over = match &ended {
            Some(Ok(Some(fetched))) => self.over_budget(id, fetched),
            _ => None,
        };
        let Some(entry) = self.entries.get_mut(&id) else { return BTreeSet::new() };
        let Some(host) = entry.under_way.take() else { return BTreeSet::new() };
        self.busy.remove(&host);
        if entry.wants.is_empty() {
            self.drop_entry(id);
            self.forget(&host);
            return BTreeSet::new();
        }
        let ended = match over {
            Some(problem) => Some(Err(problem)),
            None => ended,
        };
        let asked_later = match &ended {
            Some(Err(problem)) => problem.retry_after.map(Duration::from_secs),
            _ => None,
        };
        let changed = entry.take(ended, wall);
        let pause = if std::mem::take(&mut entry.again) { Some(Duration::ZERO) } else { entry.pause() };
        entry.due = pause.map(|pause| now + pause.max(asked_later.unwrap_or_default()));
        if let Some(due) = entry.due {
            self.due.insert((due, id));
        }
        if !changed {
            return BTreeSet::new();
        }
        self.asked.readers(&entry.wants)
    }

    /// Why what was fetched cannot be kept, if it cannot.
    fn over_budget(&self, id: SourceId, fetched: &Fetched) -> Option<Problem> {
        let new: usize = fetched.manifests.iter().map(|manifest| manifest.text.len()).sum();
        let entry = self.entries.get(&id)?;
        let others = || self.entries.iter().filter(|(other, _)| **other != id).map(|(_, entry)| entry);
        let over = |what: &str, limit: usize| {
            let message = format!("the manifests of {what} are more than {} MiB", limit >> 20);
            Problem::new(Reason::OverBudget, message)
        };
        if others().map(ScheduledSource::weight).sum::<usize>() + new > limits::SOURCE_BYTES {
            return Some(over("all sources", limits::SOURCE_BYTES));
        }
        let crowded = entry.wants.iter().map(namespace_of).find(|name| {
            let its = others().filter(|entry| entry.wants.iter().any(|want| namespace_of(want) == *name));
            its.map(ScheduledSource::weight).sum::<usize>() + new > limits::SOURCE_NAMESPACE_BYTES
        });
        crowded.map(|name| over(&format!("the sources of namespace {name}"), limits::SOURCE_NAMESPACE_BYTES))
    }

    /// When the next source is due, whether or not it may be fetched then.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }
}

impl ScheduledSource {
    fn content(&self) -> Option<&Arc<Manifests>> {
        self.answer.as_ref()?.content.as_ref()
    }

    /// How much memory its manifests take.
    fn weight(&self) -> usize {
        let kept = self.content().into_iter().chain(self.inherited.values());
        kept.flat_map(|content| &content.files).map(|(_, text)| text.len()).sum()
    }

    /// Whether it can only ever be what it was seen to be.
    fn is_settled(&self) -> bool {
        let well = self.answer.as_ref().is_some_and(|answer| answer.fault.is_none());
        well && self.source.locator.is_pinned()
    }

    /// Takes an outcome in; whether the answer is another one now.
    fn take(&mut self, ended: FetchEnd, wall: Timestamp) -> bool {
        let Some(outcome) = ended else {
            self.failures = self.failures.saturating_add(1);
            return false;
        };
        self.failures = if outcome.is_ok() { 0 } else { self.failures.saturating_add(1) };
        let content = self.content().cloned();
        let answer = match outcome {
            Ok(None) => Artifact { content, fault: None },
            Ok(Some(fetched)) => {
                let same = content.filter(|content| content.revision == fetched.revision());
                self.known = Some(fetched.known.clone());
                let content = same.unwrap_or_else(|| Arc::new(manifests(fetched, wall)));
                self.inherited.clear();
                Artifact { content: Some(content), fault: None }
            }
            Err(problem) => {
                let refused = !problem.is_passing();
                let fault = SourceFault { reason: problem.reason, message: problem.message, refused };
                Artifact { content, fault: Some(fault) }
            }
        };
        let changed = self.answer.as_deref() != Some(&answer);
        if changed {
            self.answer = Some(Arc::new(answer));
        }
        changed
    }

    /// How long it is left alone now; none for ever.
    fn pause(&self) -> Option<Duration> {
        if self.is_settled() {
            return None;
        }
        let intervals = self.wants.iter().filter_map(parts).map(|(_, _, interval, _)| interval);
        let interval = intervals.min().unwrap_or(SOON).max(SOON);
        let failures = self.failures;
        if failures == 0 {
            return Some(interval);
        }
        Some((SOON * 2_u32.saturating_pow((failures - 1).min(16))).min(interval))
    }
}

fn manifests(fetched: Fetched, wall: Timestamp) -> Manifests {
    Manifests {
        revision: fetched.known.revision,
        digest: fetched.digest.to_string(),
        size: u64::try_from(fetched.size).unwrap_or(u64::MAX),
        fetched: wall,
        files: fetched.manifests.into_iter().map(|manifest| (manifest.path, manifest.text)).collect(),
    }
}

#[cfg(test)]
mod tests;
