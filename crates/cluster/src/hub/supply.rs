//! Which watches answer which questions: starting, sharing, handing over and ending them.
//!
//! All of it happens under the hub's lock and does no I/O: watches are started as tasks. [`promotion`](super::promotion)
//! decides when a family of names becomes one wide watch; here it is done.

use super::{
    Inner,
    objects::{Scope, WatchKey, Watching},
    promotion::{Family, Mode, RESPITE, look_into, threshold},
    state::{Reader, Source, State, Supply, WatchId},
    tasks,
};
use crate::watch::Select;
use linchpin_engine::contract::{Actor, Question, ReadSet, Want};
use std::{collections::BTreeSet, sync::Arc, time::Instant};
use tokio::sync::watch;

impl State {
    pub(super) fn readers(&self, wants: &BTreeSet<Want>) -> BTreeSet<Reader> {
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
                self.catch_up(inner, &family, id, std::slice::from_ref(want));
            }
        }
    }

    /// A question about objects is no longer asked.
    pub(super) fn withdraw(&mut self, inner: &Arc<Inner>, want: &Want, supply: &Supply) {
        let name = supply.name.clone().unwrap_or_default();
        self.starved.remove(want);
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
            if let Some(used) = namespace_of(&watching.key).and_then(|namespace| self.used.get_mut(namespace))
            {
                *used = used.saturating_sub(1);
            }
            self.release(&watching.key.family.via);
        }
    }

    /// The watch of a key, started if it is not there.
    fn watch(&mut self, inner: &Arc<Inner>, key: &WatchKey) -> WatchId {
        if let Some(id) = self.keys.get(key) {
            return *id;
        }
        if let Some(namespace) = namespace_of(key) {
            *self.used.entry(namespace.to_owned()).or_default() += 1;
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

    pub(super) fn watch_narrowly(&mut self, inner: &Arc<Inner>, want: &Want) {
        let Some((key, _)) = Self::key_of(want) else { return };
        if self.supply_of(want).is_none_or(|supply| supply.own.is_some()) {
            return;
        }
        let over_budget = !self.keys.contains_key(&key)
            && namespace_of(&key)
                .and_then(|namespace| self.used.get(namespace))
                .is_some_and(|used| *used >= inner.settings.watches_per_namespace);
        if over_budget {
            self.starved.insert(want.clone());
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

    /// Starts watches that had to wait for the budget of their namespace, as far as it goes now; whom that concerns.
    pub(super) fn feed(&mut self, inner: &Arc<Inner>) -> BTreeSet<Reader> {
        let starved = std::mem::take(&mut self.starved);
        for want in &starved {
            self.watch_narrowly(inner, want);
        }
        let fed: BTreeSet<Want> = starved.difference(&self.starved).cloned().collect();
        self.readers(&fed)
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

    /// Finds answers to questions that came too late for a wide watch: through narrow watches where they are few, else by
    /// one fresh look of the wide one. While that looks anyway, its answer is waited for.
    fn catch_up(&mut self, inner: &Arc<Inner>, family: &Family, wide: WatchId, wants: &[Want]) {
        let Some(watching) = self.watches.get_mut(&wide) else { return };
        if watching.is_looking() {
            return;
        }
        let objects = self.families.get(family).map_or(0, |members| members.objects);
        if watching.latecomers() >= threshold(objects, 0.0) {
            return watching.look_again();
        }
        for want in wants {
            if !self.is_shown_widely(want) {
                self.watch_narrowly(inner, want);
            }
        }
    }

    fn is_shown_widely(&self, want: &Want) -> bool {
        self.is_shown(want, |supply| supply.wide)
    }

    pub(super) fn widen(&mut self, inner: &Arc<Inner>, family: &Family) {
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
    pub(super) fn weigh(&mut self, inner: &Arc<Inner>, family: &Family) {
        let Some(members) = self.families.get(family) else { return };
        let needed = threshold(members.objects, members.rate);
        if matches!(members.mode, Mode::Wide(_)) && members.names.len() < needed.div_ceil(2) {
            self.narrow_again(inner, family, false);
        }
    }

    pub(super) fn narrow_again(&mut self, inner: &Arc<Inner>, family: &Family, refused: bool) {
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
            self.settle(inner, family, None);
        }
        tracing::debug!(?family, refused, "watching by name again");
    }

    /// After a first state arrived (of one name, or of all): hands over and ends what is not needed any more.
    pub(super) fn settle(&mut self, inner: &Arc<Inner>, family: &Family, only: Option<&str>) {
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
                if only.is_none() {
                    let wants: Vec<Want> = pairs.into_iter().map(|(_, want)| want).collect();
                    self.catch_up(inner, family, wide, &wants);
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

/// Whose budget a watch uses: that of the namespace whose account asks.
fn namespace_of(key: &WatchKey) -> Option<&str> {
    match &key.family.via.actor {
        Actor::ServiceAccount { namespace, .. } => Some(namespace),
        Actor::Operator => None,
    }
}

fn reads(want: &Want) -> ReadSet {
    match want.question() {
        Question::Objects { reads, .. } => reads.clone(),
        _ => ReadSet::nothing(),
    }
}
