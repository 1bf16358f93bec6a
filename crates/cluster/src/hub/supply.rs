//! Which watches answer which questions: starting, sharing, handing over and ending them.
//!
//! All of it happens under the hub's lock and does no I/O: watches are started as tasks. [`promotion`](super::promotion)
//! decides when a family of names becomes one wide watch; here it is done.

use super::{
    Inner,
    budget::Weight,
    objects::{Scope, WatchKey, Watching},
    promotion::{Family, RESPITE, WatchMode, look_into, threshold},
    state::{AnswerSource, HubState, Reader, Supply, WatchId},
    tasks,
};
use crate::watch::WatchSelect;
use linchpin_engine::contract::Want;
use std::{collections::BTreeSet, slice, sync::Arc, time::Instant};
use tokio::sync::watch;

impl HubState {
    pub(super) fn readers(&self, wants: &BTreeSet<Want>) -> BTreeSet<Reader> {
        wants
            .iter()
            .filter_map(|want| self.topics.get(want))
            .flat_map(|topic| topic.readers.iter().copied())
            .collect()
    }

    /// Enters a new question about objects into its family, which is notified; where it has none, it gets its own
    /// watch.
    pub(super) fn enlist(&mut self, inner: &Arc<Inner>, want: &Want) -> Option<Family> {
        let (key, family) = Self::key_of(want)?;
        let (Some(family), WatchSelect::Name(name)) = (family, key.select) else {
            self.watch_narrowly(inner, want);
            return None;
        };
        let members = self.families.entry(family.clone()).or_default();
        members.names.entry(name).or_default().insert(want.clone());
        Some(family)
    }

    /// Finds watches for new questions of one family, or starts them.
    pub(super) fn supply(&mut self, inner: &Arc<Inner>, family: &Family, wants: &[Want]) {
        let lacks_session = self.lacks_session(inner, &family.via).is_some();
        let Some(members) = self.families.get_mut(family) else { return };
        match members.mode {
            WatchMode::Narrow if members.is_worth_a_look(inner) && !lacks_session => {
                members.mode = WatchMode::Asking;
                let gate = self.session(inner, &family.via).gate();
                inner.runtime.spawn(look_into(Arc::downgrade(inner), family.clone(), gate));
            }
            WatchMode::Narrow | WatchMode::Narrowing(_) => {
                for want in wants {
                    self.watch_narrowly(inner, want);
                }
            }
            WatchMode::Asking => {}
            WatchMode::Wide(id) => {
                for want in wants {
                    self.read_widely(want, id);
                }
                let names = wants.iter().filter_map(|want| self.name_of(want)).collect();
                self.catch_up(inner, family, id, &names);
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
        } else {
            self.account(id);
        }
    }

    /// Nothing is watched for a question any more, though it is still asked.
    pub(super) fn stop_watching(&mut self, want: &Want) {
        let Some(supply) = self.supply_mut(want) else { return };
        let watched = [supply.own.take(), supply.wide.take()];
        let name = supply.name.clone().unwrap_or_default();
        for (id, _) in watched.into_iter().flatten() {
            self.unread(id, &name, want);
        }
    }

    /// Finds a watch for a question that had none for a while.
    pub(super) fn resupply(&mut self, inner: &Arc<Inner>, want: &Want) {
        match Self::key_of(want) {
            Some((_, Some(family))) => self.supply(inner, &family, slice::from_ref(want)),
            Some((_, None)) => self.watch_narrowly(inner, want),
            None => {}
        }
    }

    fn end(&mut self, id: WatchId) {
        if let Some(watching) = self.watches.remove(&id) {
            self.keys.remove(&watching.key);
            let (via, charged) = (&watching.key.family.via, watching.charged);
            self.charge(via, |used| {
                used.watches = used.watches.saturating_sub(1);
                used.objects = used.objects.saturating_sub(charged.objects);
                used.bytes = used.bytes.saturating_sub(charged.bytes);
            });
            self.release(via);
        }
    }

    /// The watch of a key, started for these questions if it is not there. They are known to it before its task begins,
    /// which would else pass over what they ask for.
    fn watch(&mut self, inner: &Arc<Inner>, key: &WatchKey, first: &[Want]) -> WatchId {
        if let Some(id) = self.keys.get(key) {
            return *id;
        }
        let scope = Arc::new(Scope::new(&key.select));
        for want in first {
            scope.add(&self.name_of(want).unwrap_or_default(), want);
        }
        self.charge(&key.family.via, |used| used.watches += 1);
        let id = inner.number();
        let session = self.session(inner, &key.family.via);
        session.enter();
        let gate = session.gate();
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

    fn supply_of(&self, want: &Want) -> Option<&Supply> {
        match &self.topics.get(want)?.source {
            AnswerSource::Objects(supply) => Some(supply),
            _ => None,
        }
    }

    fn supply_mut(&mut self, want: &Want) -> Option<&mut Supply> {
        match &mut self.topics.get_mut(want)?.source {
            AnswerSource::Objects(supply) => Some(supply),
            _ => None,
        }
    }

    fn name_of(&self, want: &Want) -> Option<String> {
        self.supply_of(want)?.name.clone()
    }

    pub(super) fn watch_narrowly(&mut self, inner: &Arc<Inner>, want: &Want) {
        let Some((key, _)) = Self::key_of(want) else { return };
        if self.is_refused(want) || self.supply_of(want).is_none_or(|supply| supply.own.is_some()) {
            return;
        }
        // What a session asks for itself is never refused: sessions are counted, and all that is asked in them needs it.
        let of_a_session = |reader: &Reader| matches!(reader, Reader::Session(_));
        if !self.keys.contains_key(&key)
            && !self.topics.get(want).is_some_and(|topic| topic.readers.iter().any(of_a_session))
            && let Some(why) = self.lacks_watches(inner, &key)
        {
            let arrival = self.topics.get(want).map_or(u64::MAX, |topic| topic.arrival);
            return self.starve(inner, want, arrival, why, Weight::default());
        }
        let id = self.watch(inner, &key, slice::from_ref(want));
        let name = if let WatchSelect::Name(name) = &key.select { name.as_str() } else { "" };
        let Some(watching) = self.watches.get_mut(&id) else { return };
        let revision = watching.add(name, want);
        if watching.is_behind() {
            watching.look_again();
        }
        if let Some(supply) = self.supply_mut(want) {
            supply.own = Some((id, revision));
        }
    }

    fn read_widely(&mut self, want: &Want, id: WatchId) {
        if self.is_refused(want) {
            return;
        }
        let (Some(name), Some(watching)) = (self.name_of(want), self.watches.get_mut(&id)) else { return };
        let revision = watching.add(&name, want);
        if let Some(supply) = self.supply_mut(want) {
            supply.wide = Some((id, revision));
        }
    }

    pub(super) fn is_shown(&self, want: &Want, which: impl Fn(&Supply) -> Option<(WatchId, u64)>) -> bool {
        let Some(supply) = self.supply_of(want) else { return false };
        let Some((id, revision)) = which(supply) else { return false };
        self.watches.get(&id).is_some_and(|watching| watching.covers(revision, supply.name.as_deref()))
    }

    /// Finds out about names that a wide watch does not know as they are asked for: through narrow watches where they are
    /// few, else by one fresh look of the wide one. While that looks anyway, its answer is waited for.
    fn catch_up(&mut self, inner: &Arc<Inner>, family: &Family, wide: WatchId, names: &BTreeSet<String>) {
        let (Some(watching), Some(members)) = (self.watches.get_mut(&wide), self.families.get(family)) else {
            return;
        };
        if watching.is_looking() || names.iter().all(|name| watching.knows(name)) {
            return;
        }
        if watching.latecomers().len() >= threshold(members.objects, 0.0) {
            return watching.look_again();
        }
        // All readers of a name move together, so that what is found serves all of them when it is handed over.
        let unknown = names.iter().filter(|name| !watching.knows(name));
        let wants: Vec<Want> =
            unknown.filter_map(|name| members.names.get(name)).flatten().cloned().collect();
        for want in &wants {
            self.watch_narrowly(inner, want);
        }
    }

    /// After a watch's task has said something: looks at what it does not show as it is asked for, hands over, and gives up
    /// what it may not see.
    pub(super) fn follow_up(
        &mut self,
        inner: &Arc<Inner>,
        id: WatchId,
        complete: bool,
        refused: bool,
        changed: &BTreeSet<Want>,
    ) {
        let Some(watching) = self.watches.get_mut(&id) else { return };
        let wide = watching.key.select == WatchSelect::All;
        if !complete && !refused && (!wide || changed.is_empty()) {
            return;
        }
        if complete && !wide && watching.is_behind() {
            watching.look_again();
        }
        let family = watching.key.family.clone();
        match &watching.key.select {
            WatchSelect::All if refused => self.narrow_again(inner, &family, true),
            WatchSelect::All if complete => self.settle(inner, &family, None),
            WatchSelect::All => {
                let waiting = |want: &&Want| self.supply_of(want).is_some_and(|supply| supply.own.is_some());
                let names: BTreeSet<String> =
                    changed.iter().filter(waiting).filter_map(|want| self.name_of(want)).collect();
                for name in &names {
                    self.settle(inner, &family, Some(name));
                }
            }
            WatchSelect::Name(name) if complete => {
                let name = name.clone();
                self.settle(inner, &family, Some(&name));
            }
            WatchSelect::Name(_) | WatchSelect::Labels(_) => {}
        }
    }

    pub(super) fn widen(&mut self, inner: &Arc<Inner>, family: &Family) {
        let Some(members) = self.families.get(family) else { return };
        let wants: Vec<Want> = members.wants().cloned().collect();
        let id = self.watch(inner, &WatchKey { family: family.clone(), select: WatchSelect::All }, &wants);
        if let Some(members) = self.families.get_mut(family) {
            members.mode = WatchMode::Wide(id);
        }
        for want in &wants {
            self.read_widely(want, id);
        }
        tracing::debug!(?family, "watching the whole namespace");
    }

    /// Narrows a family that has shrunk below half of what is worth a wide watch.
    pub(super) fn weigh(&mut self, inner: &Arc<Inner>, family: &Family) {
        let Some(members) = self.families.get(family) else { return };
        let needed = threshold(members.objects, members.rate);
        if matches!(members.mode, WatchMode::Wide(_)) && members.names.len() < needed.div_ceil(2) {
            self.narrow_again(inner, family, false);
        }
    }

    pub(super) fn narrow_again(&mut self, inner: &Arc<Inner>, family: &Family, refused: bool) {
        let Some(members) = self.families.get_mut(family) else { return };
        let WatchMode::Wide(id) = members.mode else { return };
        members.mode = WatchMode::Narrowing(id);
        members.not_before = Some(Instant::now() + RESPITE);
        let wants: Vec<Want> = members.wants().cloned().collect();
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

    /// Hands over what can be, of one name or of all, and ends what is not needed any more.
    pub(super) fn settle(&mut self, inner: &Arc<Inner>, family: &Family, only: Option<&str>) {
        let Some(members) = self.families.get(family) else { return };
        match members.mode {
            WatchMode::Narrow | WatchMode::Asking => {}
            WatchMode::Narrowing(wide) => {
                if members.wants().all(|want| self.is_refused(want) || self.can_leave(wide, want)) {
                    self.end_wide(family);
                }
            }
            WatchMode::Wide(wide) => {
                let names: BTreeSet<String> = match only {
                    None => members.names.keys().cloned().collect(),
                    Some(name) => BTreeSet::from([name.to_owned()]),
                };
                for name in &names {
                    self.hand_over(family, wide, name);
                }
                if only.is_none() {
                    self.catch_up(inner, family, wide, &names);
                }
            }
        }
    }

    /// Whether the narrow watch of a question can answer it alone from now on.
    fn can_leave(&self, wide: WatchId, want: &Want) -> bool {
        let Some(Supply { own: Some((own, _)), name: Some(name), .. }) = self.supply_of(want) else {
            return false;
        };
        let (Some(narrow), Some(wide)) = (self.watches.get(own), self.watches.get(&wide)) else {
            return false;
        };
        self.is_shown(want, |supply| supply.own) && narrow.is_not_behind(wide, name)
    }

    /// Lets the wide watch alone answer for a name if it can, with what the narrow one has seen if need be.
    fn hand_over(&mut self, family: &Family, wide: WatchId, name: &str) {
        let wants = self.families.get(family).and_then(|members| members.names.get(name));
        let wants: Vec<(Want, WatchId)> = wants
            .into_iter()
            .flatten()
            .filter_map(|want| Some((want.clone(), self.supply_of(want)?.own?.0)))
            .collect();
        let Some((_, own)) = wants.first() else { return };
        // Out and in again, because two watches cannot be borrowed at once when one of them changes.
        let Some(mut watching) = self.watches.remove(&wide) else { return };
        let can = self.watches.get(own).is_some_and(|narrow| {
            if watching.knows(name) {
                watching.is_not_behind(narrow, name)
            } else {
                watching.adopt(name, narrow)
            }
        });
        self.watches.insert(wide, watching);
        self.account(wide);
        if !can {
            return;
        }
        for (want, own) in &wants {
            if let Some(supply) = self.supply_mut(want) {
                supply.own = None;
            }
            self.unread(*own, name, want);
        }
    }

    fn end_wide(&mut self, family: &Family) {
        let Some(members) = self.families.get_mut(family) else { return };
        let WatchMode::Narrowing(id) = members.mode else { return };
        members.mode = WatchMode::Narrow;
        let wants: Vec<Want> = members.wants().cloned().collect();
        for want in &wants {
            if let Some(supply) = self.supply_mut(want) {
                supply.wide = None;
            }
        }
        self.end(id);
    }
}
