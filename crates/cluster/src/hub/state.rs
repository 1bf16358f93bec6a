//! Who asks what, and which watch or task answers it. Changes hands only under the hub's lock; does no I/O.

use super::{
    HubMetrics, Inner, SubscriberId,
    budget::{ByArrival, NamespaceBudget, RefusedQuestion, Weight},
    objects::{WatchKey, Watching},
    promotion::{Families, Family},
    rights::RightNote,
    session::{Session, SessionGate},
};
use crate::watch::WatchSelect;
use linchpin_engine::contract::{Question, Scope, Seen, Via, Want, Why};
use linchpin_words::{Few, Reason};
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
    time::Instant,
};
use tokio::{sync::watch, task::AbortHandle};

/// Who reads an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reader {
    /// Somebody outside.
    Subscriber(SubscriberId),
    /// A session of our own.
    Session(u64),
}

/// The number of a watch.
pub(super) type WatchId = u64;

/// One question with those who asked it.
pub(super) struct Topic {
    pub(super) readers: Few<Reader>,
    /// When it was first asked, in the order of all questions.
    pub(super) arrival: u64,
    pub(super) source: AnswerSource,
}

/// Where an answer comes from.
pub(super) enum AnswerSource {
    /// Watched objects.
    Objects(Supply),
    /// A task that asks now and then.
    Asked { answer: Seen, again: watch::Sender<u64>, task: AbortHandle },
    /// A right, asked for by the task of its session.
    Right(Seen),
    /// Nobody yet: there are too many questions of its namespace.
    Held,
    /// Nothing: the question itself cannot be asked.
    Nowhere(Why),
}

/// The watches that can answer a question about objects. The one that is further is preferred.
#[derive(Clone, Debug, Default)]
pub(super) struct Supply {
    /// The watch of exactly this scope, and the revision of the interest there that covers the question.
    pub(super) own: Option<(WatchId, u64)>,
    /// The wide watch of the namespace, and the revision of the interest there that covers the question.
    pub(super) wide: Option<(WatchId, u64)>,
    /// The name that is asked for; none for a selector.
    pub(super) name: Option<String>,
}

/// All of it.
#[derive(Default)]
pub(super) struct HubState {
    pub(super) wants: BTreeMap<Reader, Few<Want>>,
    pub(super) topics: BTreeMap<Want, Topic>,
    pub(super) watches: BTreeMap<WatchId, Watching>,
    pub(super) keys: BTreeMap<WatchKey, WatchId>,
    pub(super) families: Families,
    /// What is in use, by the namespace that asks.
    pub(super) used: BTreeMap<String, NamespaceBudget>,
    /// Questions that wait for the budget of their namespace.
    pub(super) starved: BTreeMap<Want, RefusedQuestion>,
    /// The questions of each namespace, in the order in which they came, and those of them that wait.
    pub(super) asked: ByArrival,
    pub(super) waiting: ByArrival,
    /// Namespaces that use less than when their questions were last tried again.
    pub(super) relieved: BTreeSet<String>,
    sessions: BTreeMap<Via, Session>,
    numbers: BTreeMap<u64, Via>,
}

impl Inner {
    /// Replaces all that a reader asks for.
    pub(super) fn subscribe(self: &Arc<Self>, reader: Reader, wants: BTreeSet<Want>) {
        let mut state = self.state();
        let old = state.wants.remove(&reader).unwrap_or_default();
        // New questions first: what both old and new need then never stops. And together: each family of names decides
        // once how all of them are watched.
        let mut joined: BTreeMap<Family, Vec<Want>> = BTreeMap::new();
        for want in wants.iter().filter(|want| !old.contains(want)) {
            if let Some(family) = state.join(self, reader, want) {
                joined.entry(family).or_default().push(want.clone());
            }
        }
        for (family, wants) in &joined {
            state.supply(self, family, wants);
        }
        for want in old.iter().filter(|want| !wants.contains(*want)) {
            state.leave(self, reader, want);
        }
        if !wants.is_empty() {
            state.wants.insert(reader, wants.into_iter().collect());
        }
        state.feed(self);
    }

    /// The gate of a session, which is opened if it is not there and may be.
    pub(super) fn gate(self: &Arc<Self>, via: &Via) -> watch::Receiver<SessionGate> {
        let mut state = self.state();
        match state.lacks_session(self, via) {
            None => state.session(self, via).gate(),
            Some(why) => watch::channel(SessionGate::Closed { why, right: None }).1,
        }
    }
}

impl HubState {
    /// Enters a question; the family that has to supply it, where it is a new one about one object.
    fn join(&mut self, inner: &Arc<Inner>, reader: Reader, want: &Want) -> Option<Family> {
        if let Some(topic) = self.topics.get_mut(want) {
            topic.readers.insert(reader);
            return None;
        }
        let arrival = inner.number();
        let source = match want.question() {
            Question::Objects { scope: Scope::Name { name, .. }, .. } if !name.is_empty() => {
                AnswerSource::Objects(Supply { name: Some(name.clone()), ..Supply::default() })
            }
            Question::Objects { scope: Scope::Labels { .. }, .. } => AnswerSource::Objects(Supply::default()),
            Question::Objects { kind, .. } => {
                let message = format!("a {} without a name is asked for", kind.kind);
                AnswerSource::Nowhere(Why::new(Reason::SpecInvalid, message))
            }
            Question::Probe { .. } | Question::Artifact { .. } => {
                let message = "what is on the network is not asked of an API server";
                AnswerSource::Nowhere(Why::new(Reason::ProbeDenied, message))
            }
            Question::Kind { .. } | Question::Version { .. } | Question::Right { .. } => {
                match self.lacks_questions(inner, want.via()) {
                    None => self.begin_to_ask(inner, want),
                    Some(why) => {
                        self.starve(inner, want, arrival, why, Weight::default());
                        AnswerSource::Held
                    }
                }
            }
        };
        let objects = matches!(source, AnswerSource::Objects(_));
        self.asked.insert(want, arrival);
        self.topics.insert(want.clone(), Topic { readers: [reader].into_iter().collect(), arrival, source });
        if objects { self.enlist(inner, want) } else { None }
    }

    fn leave(&mut self, inner: &Arc<Inner>, reader: Reader, want: &Want) {
        let Some(topic) = self.topics.get_mut(want) else { return };
        topic.readers.remove(&reader);
        if !topic.readers.is_empty() {
            return;
        }
        let Some(topic) = self.topics.remove(want) else { return };
        self.no_longer_starved(want);
        self.asked.remove(want, topic.arrival);
        match topic.source {
            AnswerSource::Asked { task, .. } => {
                task.abort();
                self.asks_no_more(want);
            }
            AnswerSource::Right(_) => {
                self.note_right(RightNote::Forget(want.clone()));
                self.asks_no_more(want);
            }
            AnswerSource::Objects(supply) => self.withdraw(inner, want, &supply),
            AnswerSource::Held | AnswerSource::Nowhere(_) => {}
        }
    }

    /// A question that is no watch is no longer asked.
    fn asks_no_more(&mut self, want: &Want) {
        self.release(want.via());
        self.charge(want.via(), |used| used.questions = used.questions.saturating_sub(1));
    }

    /// Passes a word about a right on to the session that asks for it.
    fn note_right(&self, note: RightNote) {
        let (RightNote::Ask(want) | RightNote::Forget(want) | RightNote::Again(want)) = &note;
        if let Some(session) = self.sessions.get(want.via()) {
            session.pass_on(note);
        }
    }

    /// The key of the narrow watch for a question, and its family where it may be widened.
    pub(super) fn key_of(want: &Want) -> Option<(WatchKey, Option<Family>)> {
        let Question::Objects { via, kind, scope, .. } = want.question() else { return None };
        let (namespace, select) = match scope {
            Scope::Name { namespace, name } => (namespace, WatchSelect::Name(name.clone())),
            Scope::Labels { namespace, selector } => (namespace, WatchSelect::Labels(selector.clone())),
        };
        let family = Family { via: via.clone(), kind: kind.clone(), namespace: namespace.clone() };
        let by_name = matches!(select, WatchSelect::Name(_));
        let key = WatchKey { family: family.clone(), select };
        Some((key, by_name.then_some(family)))
    }

    pub(super) fn has_session(&self, via: &Via) -> bool {
        self.sessions.contains_key(via)
    }

    /// The session of a cluster and an actor, which is opened if it is not there. Its namespace pays for it: it watches its
    /// account.
    pub(super) fn session(&mut self, inner: &Arc<Inner>, via: &Via) -> &mut Session {
        if !self.has_session(via) {
            self.charge(via, |used| used.watches += 1);
        }
        match self.sessions.entry(via.clone()) {
            Entry::Occupied(session) => session.into_mut(),
            Entry::Vacant(place) => {
                let session = Session::start(inner, via);
                self.numbers.insert(session.number, via.clone());
                place.insert(session)
            }
        }
    }

    /// One user less of a session.
    pub(super) fn release(&mut self, via: &Via) {
        if let Some(session) = self.sessions.get_mut(via) {
            session.leave();
        }
    }

    /// Notifies sessions that an answer of theirs has changed.
    pub(super) fn poke(&self, numbers: &[u64]) {
        for number in numbers {
            if let Some(session) = self.numbers.get(number).and_then(|via| self.sessions.get(via)) {
                session.poke();
            }
        }
    }

    /// Takes out the sessions that nobody has used for a while; their own questions are returned to be withdrawn.
    pub(super) fn retire(&mut self, now: Instant) -> Vec<Reader> {
        let idle: Vec<Via> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.is_idle(now))
            .map(|(via, _)| via.clone())
            .collect();
        let mut readers = Vec::new();
        for via in idle {
            if let Some(session) = self.sessions.remove(&via) {
                self.numbers.remove(&session.number);
                self.charge(&via, |used| used.watches = used.watches.saturating_sub(1));
                readers.push(Reader::Session(session.number));
            }
        }
        readers
    }

    /// Records the answer of a task, and whom it concerns if it is another one than before.
    pub(super) fn asked(&mut self, want: &Want, fresh: Seen) -> BTreeSet<Reader> {
        match self.topics.get_mut(want) {
            Some(Topic {
                readers,
                source: AnswerSource::Asked { answer, .. } | AnswerSource::Right(answer),
                ..
            }) if *answer != fresh => {
                *answer = fresh;
                readers.iter().copied().collect()
            }
            _ => BTreeSet::new(),
        }
    }

    pub(super) fn refresh(&self, want: &Want) {
        match self.topics.get(want).map(|topic| &topic.source) {
            Some(AnswerSource::Asked { again, .. }) => again.send_modify(|count| *count += 1),
            Some(AnswerSource::Right(_)) => self.note_right(RightNote::Again(want.clone())),
            Some(AnswerSource::Objects(supply)) => {
                let numbers = [supply.own, supply.wide];
                for watching in numbers.iter().flatten().filter_map(|(id, _)| self.watches.get(id)) {
                    watching.restart();
                }
            }
            Some(AnswerSource::Held | AnswerSource::Nowhere(_)) | None => {}
        }
    }

    pub(super) fn count(&self) -> HubMetrics {
        HubMetrics {
            subscribers: self.wants.keys().filter(|reader| matches!(reader, Reader::Subscriber(_))).count(),
            questions: self.topics.len(),
            watches: self.watches.len(),
            wide_watches: self.keys.keys().filter(|key| key.select == WatchSelect::All).count(),
            objects: self.watches.values().map(Watching::len).sum(),
            sessions: self.sessions.len(),
            ..HubMetrics::default()
        }
    }
}
