//! Budgets: how much the accounts of one namespace may have the hub keep and ask.
//!
//! Watches, objects, bytes and questions are counted for the namespace whose account asks, whatever cluster it looks at.
//! Who is over budget loses what it asked for last, and nothing else: questions are served in the order in which they
//! came, and one that does not fit beside those before it is answered `OverBudget`, with what there is and how much may
//! be. It is tried again when there is room for what it was found to need, and one of each namespace now and then, because
//! what it asks for may have become less. Other namespaces notice nothing.

use super::{
    Inner,
    objects::WatchKey,
    rights::RightNote,
    state::{AnswerSource, HubState, Reader, WatchId},
    tasks,
};
use linchpin_engine::contract::{Actor, Question, Seen, Via, Want, Why};
use linchpin_words::{Reason, limits};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::watch;

/// What is counted for a namespace: how much there is, or how much may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceBudget {
    /// Open watches, and one for each account that is acted as, in each cluster.
    pub watches: usize,
    /// Observed objects that are kept.
    pub objects: usize,
    /// Bytes that they take, estimated.
    pub bytes: usize,
    /// Rights, kinds and versions that are asked for.
    pub questions: usize,
}

impl Default for NamespaceBudget {
    fn default() -> Self {
        Self {
            watches: limits::NAMESPACE_WATCHES,
            objects: limits::NAMESPACE_OBJECTS,
            bytes: limits::NAMESPACE_BYTES,
            questions: limits::NAMESPACE_QUESTIONS,
        }
    }
}

impl NamespaceBudget {
    pub(super) const NOTHING: Self = Self { watches: 0, objects: 0, bytes: 0, questions: 0 };
}

/// What objects weigh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) objects: usize,
    pub(super) bytes: usize,
}

impl Weight {
    fn plus(self, other: Self) -> Self {
        Self { objects: self.objects + other.objects, bytes: self.bytes + other.bytes }
    }

    fn fits(self, limit: &NamespaceBudget) -> bool {
        self.objects <= limit.objects && self.bytes <= limit.bytes
    }
}

/// Questions by the namespace that asks and by when they came.
#[derive(Default)]
pub(super) struct ByArrival(BTreeMap<String, BTreeMap<u64, Want>>);

impl ByArrival {
    /// Enters a question, unless nobody's budget is used.
    pub(super) fn insert(&mut self, want: &Want, arrival: u64) {
        if let Some(namespace) = namespace_of(want.via()) {
            self.0.entry(namespace.to_owned()).or_default().insert(arrival, want.clone());
        }
    }

    pub(super) fn remove(&mut self, want: &Want, arrival: u64) {
        let Some(namespace) = namespace_of(want.via()) else { return };
        if let Some(questions) = self.0.get_mut(namespace) {
            questions.remove(&arrival);
            if questions.is_empty() {
                self.0.remove(namespace);
            }
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    fn of(&self, namespace: &str) -> impl Iterator<Item = (u64, &Want)> {
        self.0.get(namespace).into_iter().flatten().map(|(arrival, want)| (*arrival, want))
    }
}

/// How many questions that wait are looked at when there is room: the rest have their turn now and then.
const LOOKS: usize = 64;

/// A question that did not fit.
pub(super) struct RefusedQuestion {
    /// What there was, and how much may be.
    pub(super) why: Why,
    /// What it was found to need; nothing where it was not tried.
    weight: Weight,
    /// When it was first asked.
    arrival: u64,
    /// When it was refused, in the order of all refusals.
    refused: u64,
    /// Whether it is being tried again.
    tried_again: bool,
}

/// Whose budget a question uses: that of the namespace whose account asks.
pub(super) fn namespace_of(via: &Via) -> Option<&str> {
    match &via.actor {
        Actor::ServiceAccount { namespace, .. } => Some(namespace),
        Actor::Operator => None,
    }
}

/// A number as people read it: 12,034.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn over(namespace: &str, count: usize, what: &str, limit: usize) -> Why {
    let message = format!(
        "namespace {namespace} {what}, limit {}: some of its objects must go or ask for less first",
        grouped(limit)
    );
    Why::new(Reason::OverBudget, message.replace('#', &grouped(count)))
}

impl HubState {
    /// What a namespace has.
    fn used(&self, namespace: &str) -> NamespaceBudget {
        self.used.get(namespace).copied().unwrap_or(NamespaceBudget::NOTHING)
    }

    pub(super) fn charge(&mut self, via: &Via, change: impl FnOnce(&mut NamespaceBudget)) {
        let Some(namespace) = namespace_of(via) else { return };
        let used = self.used.entry(namespace.to_owned()).or_insert(NamespaceBudget::NOTHING);
        let before = *used;
        change(used);
        let less = used.watches < before.watches
            || used.objects < before.objects
            || used.bytes < before.bytes
            || used.questions < before.questions;
        if *used == NamespaceBudget::NOTHING {
            self.used.remove(namespace);
        }
        if less {
            self.relieved.insert(namespace.to_owned());
        }
    }

    /// Counts what a watch keeps now.
    pub(super) fn account(&mut self, id: WatchId) {
        let Some(watching) = self.watches.get_mut(&id) else { return };
        let now = watching.weight();
        let was = std::mem::replace(&mut watching.charged, now);
        if was != now {
            let via = watching.key.family.via.clone();
            self.charge(&via, |used| {
                used.objects = (used.objects + now.objects).saturating_sub(was.objects);
                used.bytes = (used.bytes + now.bytes).saturating_sub(was.bytes);
            });
        }
    }

    /// Why no further account may be acted as; none if it may. Each counts as a watch: that of the account itself.
    pub(super) fn lacks_session(&self, inner: &Inner, via: &Via) -> Option<Why> {
        if self.has_session(via) { None } else { self.lacks(inner, via, 1) }
    }

    /// Why no further watch may be opened for a question; none if it may.
    pub(super) fn lacks_watches(&self, inner: &Inner, key: &WatchKey) -> Option<Why> {
        let via = &key.family.via;
        self.lacks(inner, via, 1 + usize::from(!self.has_session(via)))
    }

    fn lacks(&self, inner: &Inner, via: &Via, further: usize) -> Option<Why> {
        let namespace = namespace_of(via)?;
        let limit = inner.settings.budget.watches;
        let needed = self.used(namespace).watches + further;
        let what = "needs # watches, one of them for each ServiceAccount that it acts as";
        (needed > limit).then(|| over(namespace, needed, what, limit))
    }

    /// Why no further question may be asked; none if it may.
    pub(super) fn lacks_questions(&self, inner: &Inner, via: &Via) -> Option<Why> {
        let namespace = namespace_of(via)?;
        let (used, limit) = (self.used(namespace).questions, inner.settings.budget.questions);
        let questions = || over(namespace, used + 1, "asks # questions about rights and kinds", limit);
        (used >= limit).then(questions).or_else(|| self.lacks_session(inner, via))
    }

    /// Why a namespace has more than it may have; none if it has not.
    fn excess(&self, inner: &Inner, namespace: &str) -> Option<Why> {
        let (used, limit) = (self.used(namespace), &inner.settings.budget);
        if used.objects > limit.objects {
            return Some(over(namespace, used.objects, "watches # objects", limit.objects));
        }
        let bytes = || over(namespace, used.bytes, "watches objects of # bytes", limit.bytes);
        (used.bytes > limit.bytes).then(bytes)
    }

    /// Remembers that a question has to wait.
    pub(super) fn starve(&mut self, inner: &Inner, want: &Want, arrival: u64, why: Why, weight: Weight) {
        let starved = RefusedQuestion { why, weight, arrival, refused: inner.number(), tried_again: false };
        self.starved.insert(want.clone(), starved);
        self.waiting.insert(want, arrival);
    }

    /// A question waits no more.
    pub(super) fn no_longer_starved(&mut self, want: &Want) {
        if let Some(starved) = self.starved.remove(want) {
            self.waiting.remove(want, starved.arrival);
        }
    }

    /// Whether a question has to wait for what it needs.
    pub(super) fn is_refused(&self, want: &Want) -> bool {
        self.starved
            .get(want)
            .is_some_and(|starved| !starved.tried_again && starved.weight != Weight::default())
    }

    /// Questions that had to wait and are answered now do so no more.
    pub(super) fn forgive(&mut self, changed: &BTreeSet<Want>) {
        if self.starved.is_empty() {
            return;
        }
        for want in changed {
            if self.is_shown(want, |supply| supply.own) || self.is_shown(want, |supply| supply.wide) {
                self.no_longer_starved(want);
            }
        }
    }

    /// Takes from a namespace that is over budget what does not fit, the latest questions first; whom that concerns.
    pub(super) fn shed(&mut self, inner: &Arc<Inner>, via: &Via) -> BTreeSet<Reader> {
        let Some(namespace) = namespace_of(via) else { return BTreeSet::new() };
        let Some(why) = self.excess(inner, namespace) else { return BTreeSet::new() };
        let asked: Vec<(u64, Want)> =
            self.asked.of(namespace).map(|(arrival, want)| (arrival, want.clone())).collect();
        let mut counted = Counted::default();
        let mut kept = Weight::default();
        let mut refused = BTreeSet::new();
        for (arrival, want) in asked {
            let Some(needs) = self.needs(&want, &counted) else { continue };
            let with_it = kept.plus(needs.weight);
            if with_it.fits(&inner.settings.budget) {
                kept = with_it;
                counted.add(needs);
            } else {
                self.stop_watching(&want);
                self.starve(inner, &want, arrival, why.clone(), needs.weight);
                refused.insert(want);
            }
        }
        tracing::debug!(namespace, refused = refused.len(), "{}", why.message);
        self.readers(&refused)
    }

    /// What must be kept for a question besides what is counted; none where nothing is watched for it.
    fn needs(&self, want: &Want, counted: &Counted) -> Option<Needs> {
        let mut needs = Needs::default();
        let AnswerSource::Objects(supply) = &self.topics.get(want)?.source else { return None };
        if supply.own.is_none() && supply.wide.is_none() {
            return None;
        }
        for (id, _) in [supply.own, supply.wide].into_iter().flatten() {
            let Some(watching) = self.watches.get(&id) else { continue };
            if !counted.watches.contains(&id) {
                needs.watches.push(id);
                needs.weight = needs.weight.plus(watching.common_weight());
            }
            let name = supply.name.clone().unwrap_or_default();
            if !counted.names.contains(&(id, name.clone())) {
                needs.weight = needs.weight.plus(watching.weight_of(supply.name.as_deref()));
                needs.names.push((id, name));
            }
        }
        Some(needs)
    }

    /// Tries again what had to wait in namespaces that use less by now, as far as there is room for what it needs.
    pub(super) fn feed(&mut self, inner: &Arc<Inner>) {
        for namespace in std::mem::take(&mut self.relieved) {
            let used = self.used(&namespace);
            let mut kept = Weight { objects: used.objects, bytes: used.bytes };
            let first: Vec<Want> =
                self.waiting.of(&namespace).take(LOOKS).map(|(_, want)| want.clone()).collect();
            for want in first {
                let Some(starved) = self.starved.get(&want).filter(|starved| !starved.tried_again) else {
                    continue;
                };
                let with_it = kept.plus(starved.weight);
                if with_it.fits(&inner.settings.budget) {
                    kept = with_it;
                    self.try_again(inner, &want);
                }
            }
        }
    }

    /// Tries again the question of each namespace that was refused the longest time ago.
    pub(super) fn feed_one_each(&mut self, inner: &Arc<Inner>) {
        let mut longest: BTreeMap<String, (u64, Want)> = BTreeMap::new();
        for (want, starved) in self.starved.iter().filter(|(_, starved)| !starved.tried_again) {
            let Some(namespace) = namespace_of(want.via()) else { continue };
            let entry = longest.entry(namespace.to_owned()).or_insert((starved.refused, want.clone()));
            if starved.refused < entry.0 {
                *entry = (starved.refused, want.clone());
            }
        }
        for (_, want) in longest.into_values() {
            self.try_again(inner, &want);
        }
    }

    /// Tries a question again that had to wait.
    pub(super) fn try_again(&mut self, inner: &Arc<Inner>, want: &Want) {
        let Some(starved) = self.starved.get_mut(want) else { return };
        match self.topics.get(want).map(|topic| &topic.source) {
            Some(AnswerSource::Held) => {
                if self.lacks_questions(inner, want.via()).is_none() {
                    self.no_longer_starved(want);
                    let source = self.begin_to_ask(inner, want);
                    if let Some(topic) = self.topics.get_mut(want) {
                        topic.source = source;
                    }
                }
            }
            Some(AnswerSource::Objects(_)) => {
                starved.tried_again = true;
                self.resupply(inner, want);
            }
            _ => self.no_longer_starved(want),
        }
    }

    /// Asks a question that is no watch.
    pub(super) fn begin_to_ask(&mut self, inner: &Arc<Inner>, want: &Want) -> AnswerSource {
        self.charge(want.via(), |used| used.questions += 1);
        let session = self.session(inner, want.via());
        session.enter();
        let answer = Seen::Unknown(Why::new(Reason::Unsynced, "not asked yet"));
        if let Question::Right { .. } = want.question() {
            session.note_right(inner, RightNote::Ask(want.clone()));
            return AnswerSource::Right(answer);
        }
        let gate = session.gate();
        let (again, asked) = watch::channel(0);
        let task = inner.runtime.spawn(tasks::ask(Arc::downgrade(inner), want.clone(), gate, asked));
        AnswerSource::Asked { answer, again, task: task.abort_handle() }
    }
}

/// Watches, and names in them, that are counted already.
#[derive(Default)]
struct Counted {
    watches: BTreeSet<WatchId>,
    names: BTreeSet<(WatchId, String)>,
}

/// What a question needs that is not counted yet.
#[derive(Default)]
struct Needs {
    weight: Weight,
    watches: Vec<WatchId>,
    names: Vec<(WatchId, String)>,
}

impl Counted {
    fn add(&mut self, needs: Needs) {
        self.watches.extend(needs.watches);
        self.names.extend(needs.names);
    }
}

#[cfg(test)]
mod tests;
