//! From many narrow watches to one wide watch, and back.
//!
//! A watch by name costs the API server a goroutine and us a few kilobytes, and nothing for unrelated objects; a wide
//! watch costs one request and every event of the namespace. Measured, the wide one wins from
//! k names ≥ max(16, N / 100, 50 × events per second) on, N being the objects there. So a family (one kind, namespace
//! and session) starts narrow, is looked into when it has grown, becomes wide if that is worth it *and* the identity
//! may list and watch the whole namespace, and becomes narrow again at half.
//!
//! Nobody notices: while a family changes, each question is answered by whichever watch has already seen it, and the
//! old watches end only when the new ones cover all. A wide watch keeps only the objects that are asked for. A name
//! that joins later is looked at through a narrow watch once, and then handed over.

use super::{
    Inner,
    objects::{Note, Scope, WatchKey, Watching},
    session::Gate,
    state::{Reader, Source, State, Supply, WatchId},
    tasks,
};
use crate::{
    access,
    watch::{Select, Watched, follow},
};
use linchpin_engine::contract::{Question, ReadSet, Right, Via, Want};
use linchpin_words::{Gvk, Reason};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Fewest names that can be worth a wide watch.
const FEWEST: usize = 16;
/// How long looking into a family may take before it stays as it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a family that may not or should not be wide is left alone.
const RESPITE: Duration = Duration::from_mins(5);

/// One kind in one namespace through one session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Family {
    pub(super) via: Via,
    pub(super) kind: Gvk,
    pub(super) namespace: Option<String>,
}

/// All families with single names asked for.
pub(super) type Families = BTreeMap<Family, Members>;

/// One family's names and how they are watched.
#[derive(Debug, Default)]
pub(super) struct Members {
    names: BTreeMap<String, BTreeSet<Want>>,
    mode: Mode,
    /// So many names must be asked for before looking into it (again).
    look_at: usize,
    /// Nor before this moment.
    not_before: Option<Instant>,
    /// Objects there, when last counted.
    objects: u64,
    /// Events per second, while it was wide.
    rate: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// One watch per name.
    #[default]
    Narrow,
    /// Being looked into; new names wait for the verdict.
    Asking,
    /// One watch for all.
    Wide(WatchId),
    /// Back to one watch per name; the wide one ends when all are there.
    Narrowing(WatchId),
}

/// From how many names on a wide watch is worth it.
fn threshold(objects: u64, rate: f64) -> usize {
    let by_objects = usize::try_from(objects / 100).unwrap_or(usize::MAX);
    // Rates are small and positive; the cast saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let by_rate = (rate * 50.0).ceil() as usize;
    FEWEST.max(by_objects).max(by_rate)
}

/// What looking into a family told.
enum Verdict {
    /// The identity may watch all; there are so many objects.
    May(u64),
    /// It may not, or it could not be found out.
    MayNot,
}

impl Inner {
    /// Takes note of what a watch's task says, and tells whom it concerns.
    pub(super) fn noted(self: &Arc<Self>, id: WatchId, note: Note) {
        let readers = {
            let mut state = self.state();
            let Some(watching) = state.watches.get_mut(&id) else { return };
            let complete = matches!(note, Note::Snapshot { .. });
            let refused = matches!(&note, Note::Blind(why) if why.reason == Reason::Forbidden);
            let changed = watching.apply(note);
            let WatchKey { family, select } = watching.key.clone();
            if refused && select == Select::All {
                state.narrow_again(self, &family, true);
            } else if complete {
                let only = if let Select::Name(name) = &select { Some(name.as_str()) } else { None };
                state.settle(&family, only);
            }
            state.readers(&changed)
        };
        self.wake(readers);
    }

    fn decide(self: &Arc<Self>, family: &Family, verdict: &Verdict) {
        let mut state = self.state();
        let Some(members) = state.families.get_mut(family) else { return };
        if members.mode != Mode::Asking {
            return;
        }
        let names = members.names.len();
        let needed = match verdict {
            Verdict::May(objects) => {
                members.objects = *objects;
                threshold(*objects, members.rate)
            }
            Verdict::MayNot => usize::MAX,
        };
        if names >= needed {
            return state.widen(self, family);
        }
        members.mode = Mode::Narrow;
        if needed == usize::MAX {
            members.not_before = Some(Instant::now() + RESPITE);
        }
        // Asking costs three requests: not again before the family has grown by half.
        members.look_at = if needed == usize::MAX { 0 } else { needed.min(names + names / 2).max(names + 1) };
        let waiting: Vec<Want> = members.names.values().flatten().cloned().collect();
        for want in waiting {
            state.watch_narrowly(self, &want);
        }
    }

    /// Takes the rate of every wide watch over the last period, and narrows those that are not worth it.
    pub(super) fn weigh(self: &Arc<Self>, period: Duration) {
        let mut state = self.state();
        let wide: Vec<(Family, WatchId)> = state
            .families
            .iter()
            .filter_map(|(family, members)| match members.mode {
                Mode::Wide(id) => Some((family.clone(), id)),
                _ => None,
            })
            .collect();
        for (family, id) in wide {
            let Some(watching) = state.watches.get_mut(&id) else { continue };
            let changes = std::mem::take(&mut watching.changes);
            if let Some(members) = state.families.get_mut(&family) {
                // Counts of events stay far below 2^52.
                #[allow(clippy::cast_precision_loss)]
                let rate = changes as f64 / period.as_secs_f64().max(1.0);
                members.rate = rate;
            }
            state.weigh(self, &family);
        }
    }
}

impl State {
    fn readers(&self, wants: &BTreeSet<Want>) -> BTreeSet<Reader> {
        wants
            .iter()
            .filter_map(|want| self.topics.get(want))
            .flat_map(|topic| topic.readers.iter().copied())
            .collect()
    }

    /// Finds a watch for a new question about objects, or starts one.
    pub(super) fn supply(&mut self, inner: &Arc<Inner>, want: &Want) {
        let Some((key, family)) = Self::key_of(want) else { return };
        let (Some(family), Select::Name(name)) = (family, &key.select) else {
            return self.watch_narrowly(inner, want);
        };
        let members = self.families.entry(family.clone()).or_default();
        members.names.entry(name.clone()).or_default().insert(want.clone());
        match members.mode {
            Mode::Narrow if members.is_worth_a_look(inner) => {
                members.mode = Mode::Asking;
                let gate = self.session(inner, &family.via).gate();
                inner.runtime.spawn(look_into(Arc::downgrade(inner), family, gate));
            }
            Mode::Narrow | Mode::Narrowing(_) => self.watch_narrowly(inner, want),
            Mode::Asking => {}
            Mode::Wide(id) => {
                self.read_widely(want, id, name);
                if !self.is_shown_widely(want) {
                    self.watch_narrowly(inner, want);
                }
            }
        }
    }

    /// A question about objects is no longer asked.
    pub(super) fn withdraw(&mut self, inner: &Arc<Inner>, want: &Want, supply: &Supply) {
        let name = supply.name.clone().unwrap_or_default();
        for (id, _) in [supply.own, supply.wide].into_iter().flatten() {
            self.unread(id, &name, want);
        }
        let Some((_, Some(family))) = Self::key_of(want) else { return };
        let Some(members) = self.families.get_mut(&family) else { return };
        if let Some(wants) = members.names.get_mut(&name) {
            wants.remove(want);
            if wants.is_empty() {
                members.names.remove(&name);
            }
        }
        if members.names.is_empty() {
            self.families.remove(&family);
        } else {
            self.weigh(inner, &family);
        }
    }

    fn unread(&mut self, id: WatchId, name: &str, want: &Want) {
        let Some(watching) = self.watches.get_mut(&id) else { return };
        if watching.remove(name, want) {
            self.end(id);
        }
    }

    fn end(&mut self, id: WatchId) {
        if let Some(watching) = self.watches.remove(&id) {
            self.keys.remove(&watching.key);
            self.release(&watching.key.family.via);
        }
    }

    /// The watch of a key, started if it is not there.
    fn watch(&mut self, inner: &Arc<Inner>, key: &WatchKey) -> WatchId {
        if let Some(id) = self.keys.get(key) {
            return *id;
        }
        let id = inner.number();
        let session = self.session(inner, &key.family.via);
        session.enter();
        let gate = session.gate();
        let scope = Arc::new(Scope::new(&key.select));
        let (control, restart) = watch::channel(0);
        let watcher = tasks::Watcher {
            inner: Arc::downgrade(inner),
            id,
            key: key.clone(),
            scope: Arc::clone(&scope),
            gate,
            restart,
        };
        let task = inner.runtime.spawn(watcher.run());
        self.keys.insert(key.clone(), id);
        self.watches.insert(id, Watching::new(key.clone(), scope, control, task.abort_handle()));
        id
    }

    fn supply_of(&mut self, want: &Want) -> Option<&mut Supply> {
        match &mut self.topics.get_mut(want)?.source {
            Source::Objects(supply) => Some(supply),
            _ => None,
        }
    }

    fn watch_narrowly(&mut self, inner: &Arc<Inner>, want: &Want) {
        let Some((key, _)) = Self::key_of(want) else { return };
        if self.supply_of(want).is_none_or(|supply| supply.own.is_some()) {
            return;
        }
        let id = self.watch(inner, &key);
        let name = if let Select::Name(name) = &key.select { name.as_str() } else { "" };
        let Some(watching) = self.watches.get_mut(&id) else { return };
        let revision = watching.add(name, want, &reads(want));
        if let Some(supply) = self.supply_of(want) {
            supply.own = Some((id, revision));
        }
    }

    fn read_widely(&mut self, want: &Want, id: WatchId, name: &str) {
        let Some(watching) = self.watches.get_mut(&id) else { return };
        let revision = watching.add(name, want, &reads(want));
        if let Some(supply) = self.supply_of(want) {
            supply.wide = Some((id, revision));
        }
    }

    fn is_shown(&self, want: &Want, which: impl Fn(&Supply) -> Option<(WatchId, u64)>) -> bool {
        let Some(Source::Objects(supply)) = self.topics.get(want).map(|topic| &topic.source) else {
            return false;
        };
        let Some((id, revision)) = which(supply) else { return false };
        self.watches.get(&id).is_some_and(|watching| watching.covers(revision, supply.name.as_deref()))
    }

    fn is_shown_widely(&self, want: &Want) -> bool {
        self.is_shown(want, |supply| supply.wide)
    }

    fn widen(&mut self, inner: &Arc<Inner>, family: &Family) {
        let id = self.watch(inner, &WatchKey { family: family.clone(), select: Select::All });
        let Some(members) = self.families.get_mut(family) else { return };
        members.mode = Mode::Wide(id);
        let wants: Vec<(String, Want)> = members.pairs().collect();
        for (name, want) in wants {
            self.read_widely(&want, id, &name);
        }
        tracing::debug!(?family, "watching the whole namespace");
    }

    /// Narrows a family that has shrunk below half of what is worth a wide watch.
    fn weigh(&mut self, inner: &Arc<Inner>, family: &Family) {
        let Some(members) = self.families.get(family) else { return };
        let needed = threshold(members.objects, members.rate);
        if matches!(members.mode, Mode::Wide(_)) && members.names.len() < needed.div_ceil(2) {
            self.narrow_again(inner, family, false);
        }
    }

    fn narrow_again(&mut self, inner: &Arc<Inner>, family: &Family, refused: bool) {
        let Some(members) = self.families.get_mut(family) else { return };
        let Mode::Wide(id) = members.mode else { return };
        members.mode = Mode::Narrowing(id);
        members.not_before = Some(Instant::now() + RESPITE);
        let wants: Vec<Want> = members.pairs().map(|(_, want)| want).collect();
        for want in &wants {
            self.watch_narrowly(inner, want);
        }
        if refused {
            self.end_wide(family);
        } else {
            self.settle(family, None);
        }
        tracing::debug!(?family, refused, "watching by name again");
    }

    /// After a first state arrived (of one name, or of all): hands over and ends what is not needed any more.
    fn settle(&mut self, family: &Family, only: Option<&str>) {
        let Some(members) = self.families.get(family) else { return };
        match members.mode {
            Mode::Narrow | Mode::Asking => {}
            Mode::Narrowing(_) => {
                let mut wants = members.names.values().flatten();
                if wants.all(|want| self.is_shown(want, |supply| supply.own)) {
                    self.end_wide(family);
                }
            }
            Mode::Wide(wide) => {
                let pairs: Vec<(String, Want)> = match only {
                    None => members.pairs().collect(),
                    Some(name) => {
                        let wants = members.names.get(name).into_iter().flatten();
                        wants.map(|want| (name.to_owned(), want.clone())).collect()
                    }
                };
                for (name, want) in &pairs {
                    self.hand_over(wide, name, want);
                }
            }
        }
    }

    /// Lets the wide watch answer a question if it can, with what the narrow one has seen if need be.
    fn hand_over(&mut self, wide: WatchId, name: &str, want: &Want) {
        let Some(Supply { own: Some((own, revision)), wide: Some((_, wide_revision)), .. }) =
            self.supply_of(want).map(|supply| supply.clone())
        else {
            return;
        };
        if !self.is_shown_widely(want) {
            let Some(narrow) = self.watches.get(&own).filter(|narrow| narrow.covers(revision, Some(name)))
            else {
                return;
            };
            let item = narrow.item(name).cloned();
            let Some(watching) = self.watches.get_mut(&wide) else { return };
            if !watching.can_adopt(wide_revision) {
                return;
            }
            watching.adopt(name, item);
        }
        if let Some(supply) = self.supply_of(want) {
            supply.own = None;
        }
        self.unread(own, name, want);
    }

    fn end_wide(&mut self, family: &Family) {
        let Some(members) = self.families.get_mut(family) else { return };
        let Mode::Narrowing(id) = members.mode else { return };
        members.mode = Mode::Narrow;
        let wants: Vec<Want> = members.pairs().map(|(_, want)| want).collect();
        for want in &wants {
            if let Some(supply) = self.supply_of(want) {
                supply.wide = None;
            }
        }
        self.end(id);
    }
}

impl Members {
    fn is_worth_a_look(&self, inner: &Inner) -> bool {
        !inner.settings.never_widen
            && self.names.len() >= self.look_at.max(FEWEST)
            && self.not_before.is_none_or(|moment| Instant::now() >= moment)
    }

    fn pairs(&self) -> impl Iterator<Item = (String, Want)> {
        self.names.iter().flat_map(|(name, wants)| wants.iter().map(move |want| (name.clone(), want.clone())))
    }
}

fn reads(want: &Want) -> ReadSet {
    match want.question() {
        Question::Objects { reads, .. } => reads.clone(),
        _ => ReadSet::nothing(),
    }
}

/// Finds out whether a family may be wide and what that would mean.
async fn look_into(inner: Weak<Inner>, family: Family, gate: watch::Receiver<Gate>) {
    let verdict = tokio::time::timeout(PATIENCE, ask(&family, gate)).await.ok().flatten();
    if let Some(inner) = inner.upgrade() {
        inner.decide(&family, &verdict.unwrap_or(Verdict::MayNot));
    }
}

async fn ask(family: &Family, mut gate: watch::Receiver<Gate>) -> Option<Verdict> {
    let open = gate.wait_for(|gate| matches!(gate, Gate::Open(_))).await.ok()?.clone();
    let Gate::Open(reach) = open else { return None };
    let mut newest = reach.place.discovery.subscribe();
    let index = newest.wait_for(Option::is_some).await.ok()?.clone()?;
    let resource = index.resource(&family.kind)?;
    let namespace = family.namespace.clone().filter(|_| resource.namespaced);
    let right = |verb: &str| Right {
        verb: verb.to_owned(),
        group: resource.kind.group.clone(),
        resource: resource.plural.clone(),
        subresource: None,
        namespace: namespace.clone(),
        name: None,
    };
    let (list, watch) = (right("list"), right("watch"));
    let (may_list, may_watch) =
        tokio::try_join!(access::may(&reach.writes, &list), access::may(&reach.writes, &watch)).ok()?;
    if !may_list || !may_watch {
        return Some(Verdict::MayNot);
    }
    let watched = Watched { resource, namespace, select: Select::All };
    follow::count(&reach.watches, &watched).await.ok().map(Verdict::May)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_watch_must_be_worth_it() {
        assert_eq!(threshold(0, 0.0), 16);
        assert_eq!(threshold(1_600, 0.0), 16);
        assert_eq!(threshold(50_000, 0.0), 500);
        assert_eq!(threshold(100, 1.0), 50);
        assert_eq!(threshold(100, 0.33), 17);
    }
}
