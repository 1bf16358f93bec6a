//! From many narrow watches to one wide watch, and back.
//!
//! A watch by name costs the API server a goroutine and us a few kilobytes, and nothing for unrelated objects; a wide
//! watch costs one request and every event of the namespace. Measured, the wide one wins from
//! k names ≥ max(16, N / 100, 50 × events per second) on, N being the objects there, and the events those of objects that
//! are not asked for (the others come through narrow watches as well). So a family (one kind, namespace
//! and session) starts narrow, is looked into when it has grown, becomes wide if that is worth it *and* the identity
//! may list and watch the whole namespace, and becomes narrow again at half.
//!
//! Nobody notices: while a family changes, each question is answered by whichever watch is further, and the old watches
//! end only when the new ones cover all and are not behind. A wide watch keeps only the objects that are asked for, and
//! the names of all others: a name that joins later and is not there is answered at once, without a request. One that
//! is there, or of which more is asked for than is kept, is looked at through a narrow watch once, and then handed over;
//! many of them together are seen by one fresh look of the wide watch instead.

use super::{Inner, budget::namespace_of, objects::WatchNote, session::SessionGate, state::WatchId};
use crate::{
    access,
    watch::{SinkReply, WatchReport, WatchSelect, WatchTarget, follow},
};
use linchpin_engine::contract::{Right, Via, Want};
use linchpin_words::{Few, Gvk, Reason};
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Fewest names that can be worth a wide watch.
const FEWEST: usize = 16;
/// How long looking into a family may take before it stays as it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a family that may not or should not be wide is left alone.
pub(super) const RESPITE: Duration = Duration::from_mins(5);

/// One kind in one namespace through one session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Family {
    pub(super) via: Via,
    pub(super) kind: Gvk,
    pub(super) namespace: Option<String>,
}

impl Family {
    /// The namespace for which it is looked at: that of the account; of what the operator looks at for it, where that is.
    pub(super) fn asker(&self) -> &str {
        namespace_of(&self.via).or(self.namespace.as_deref()).unwrap_or_default()
    }
}

/// All families with single names asked for.
pub(super) type Families = BTreeMap<Family, Members>;

/// One family's names and how they are watched.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) names: BTreeMap<String, Few<Want>>,
    pub(super) mode: WatchMode,
    /// So many names must be asked for before looking into it (again).
    look_at: usize,
    /// Nor before this moment.
    pub(super) not_before: Option<Instant>,
    /// Objects there, when last counted.
    pub(super) objects: u64,
    /// Events per second of objects that nobody asks for, while it was wide.
    pub(super) rate: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WatchMode {
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
pub(super) fn threshold(objects: u64, rate: f64) -> usize {
    let by_objects = usize::try_from(objects / 100).unwrap_or(usize::MAX);
    // Rates are small and positive; the cast saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let by_rate = (rate * 50.0).ceil() as usize;
    FEWEST.max(by_objects).max(by_rate)
}

/// What looking into a family showed.
enum PromotionVerdict {
    /// The identity may watch all; there are so many objects.
    May(u64),
    /// It may not, or it could not be found out.
    MayNot,
}

impl Inner {
    /// Takes note of what a watch's task reports, and notifies whom it concerns; unless the task has to read it again.
    pub(super) fn noted(self: &Arc<Self>, id: WatchId, note: impl Into<WatchNote>) -> SinkReply {
        let note = note.into();
        let readers = {
            let mut state = self.state();
            let Some(watching) = state.watches.get_mut(&id) else { return SinkReply::Noted };
            if matches!(&note, WatchNote::Seen(report) if watching.must_be_read_again(report)) {
                return SinkReply::Again;
            }
            let via = watching.key.family.via.clone();
            let complete = matches!(note, WatchNote::Seen(WatchReport::Snapshot { .. }));
            let refused = matches!(&note, WatchNote::Blind(why) if why.reason == Reason::Forbidden);
            let changed = watching.apply(note);
            state.account(id);
            let mut readers = state.shed(self, &via);
            state.follow_up(self, id, complete, refused, &changed);
            readers.extend(state.readers(&changed));
            state.forgive(&changed);
            state.feed(self);
            readers
        };
        self.wake(readers);
        SinkReply::Noted
    }

    fn decide(self: &Arc<Self>, family: &Family, verdict: &PromotionVerdict) {
        let mut state = self.state();
        let Some(members) = state.families.get_mut(family) else { return };
        if members.mode != WatchMode::Asking {
            return;
        }
        let names = members.names.len();
        let needed = match verdict {
            PromotionVerdict::May(objects) => {
                members.objects = *objects;
                threshold(*objects, members.rate)
            }
            PromotionVerdict::MayNot => usize::MAX,
        };
        if names >= needed {
            return state.widen(self, family);
        }
        members.mode = WatchMode::Narrow;
        if needed == usize::MAX {
            members.not_before = Some(Instant::now() + RESPITE);
        }
        // Asking costs three requests: not again before the family has grown by half.
        members.look_at = if needed == usize::MAX { 0 } else { needed.min(names + names / 2).max(names + 1) };
        let waiting: Vec<Want> = members.wants().cloned().collect();
        for want in waiting {
            state.watch_narrowly(self, &want);
        }
    }

    /// Takes the rate of every wide watch over the last period, narrows those that are not worth it, and hands over what
    /// had to wait.
    pub(super) fn weigh(self: &Arc<Self>, period: Duration) {
        let mut state = self.state();
        let wide: Vec<(Family, WatchId)> = state
            .families
            .iter()
            .filter_map(|(family, members)| match members.mode {
                WatchMode::Wide(id) | WatchMode::Narrowing(id) => Some((family.clone(), id)),
                WatchMode::Narrow | WatchMode::Asking => None,
            })
            .collect();
        for (family, id) in wide {
            let Some(watching) = state.watches.get_mut(&id) else { continue };
            let strays = std::mem::take(&mut watching.strays);
            if let Some(members) = state.families.get_mut(&family) {
                // Counts of events stay far below 2^52.
                #[allow(clippy::cast_precision_loss)]
                let rate = strays as f64 / period.as_secs_f64().max(1.0);
                members.rate = rate;
            }
            state.weigh(self, &family);
            state.settle(self, &family, None);
        }
    }
}

impl Members {
    pub(super) fn is_worth_a_look(&self, inner: &Inner) -> bool {
        !inner.settings.never_widen
            && self.names.len() >= self.look_at.max(FEWEST)
            && self.not_before.is_none_or(|moment| Instant::now() >= moment)
    }

    pub(super) fn wants(&self) -> impl Iterator<Item = &Want> {
        self.names.values().flatten()
    }
}

/// Finds out whether a family may be wide and what that would mean.
pub(super) async fn look_into(inner: Weak<Inner>, family: Family, gate: watch::Receiver<SessionGate>) {
    let verdict = tokio::time::timeout(PATIENCE, ask(&family, gate)).await.ok().flatten();
    if let Some(inner) = inner.upgrade() {
        inner.decide(&family, &verdict.unwrap_or(PromotionVerdict::MayNot));
    }
}

async fn ask(family: &Family, mut gate: watch::Receiver<SessionGate>) -> Option<PromotionVerdict> {
    let open = gate.wait_for(|gate| matches!(gate, SessionGate::Open(_))).await.ok()?.clone();
    let SessionGate::Open(reach) = open else { return None };
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
        return Some(PromotionVerdict::MayNot);
    }
    let watched = WatchTarget { resource, namespace, select: WatchSelect::All };
    follow::count(&reach.watches, &watched).await.ok().map(PromotionVerdict::May)
}

#[cfg(test)]
mod tests;
