//! First looks: how many are under way at one server, and whose is next.
//!
//! A first look may take minutes: an aggregated API that does not answer, a list without an end. The places are few, so
//! they are shared ([`Shares`]): no namespace and no API group holds more of them than it leaves free.

use linchpin_words::shares::{Lane, Route, Shares, Slot, WaitingTicket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The only sort of places there is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FirstLook;

impl Lane for FirstLook {
    fn places(self, limit: usize) -> usize {
        limit
    }
}

/// Those who wait for their turn, and those under way.
#[derive(Clone, Debug)]
pub(crate) struct FirstLooks(Arc<Mutex<Shares<FirstLook, oneshot::Sender<FirstLookTurn>>>>);

/// The turn of one first look; dropped when it is over.
#[derive(Debug)]
pub(crate) struct FirstLookTurn {
    all: FirstLooks,
    slot: Slot<FirstLook>,
}

impl Drop for FirstLookTurn {
    fn drop(&mut self) {
        self.all.shares().end(&self.slot);
        self.all.start();
    }
}

/// Somebody who waits; dropped when it does so no more.
struct Waiting<'a> {
    all: &'a FirstLooks,
    ticket: WaitingTicket<FirstLook>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let withdrawn = self.all.shares().withdraw(&self.ticket);
        drop(withdrawn);
    }
}

impl FirstLooks {
    /// So many at a time.
    pub(crate) fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(Shares::new(places))))
    }

    fn shares(&self) -> MutexGuard<'_, Shares<FirstLook, oneshot::Sender<FirstLookTurn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of `namespace` to look at objects of an API group.
    pub(crate) async fn turn(&self, namespace: &str, group: &str) -> Option<FirstLookTurn> {
        let (give, turn) = oneshot::channel();
        let route = Route { lane: FirstLook, backend: Some(group.to_owned()) };
        let ticket = self.shares().push(namespace, route, 0, give);
        let _waiting = Waiting { all: self, ticket };
        self.start();
        // Never closed without an answer: who waits is in the line until it is taken out.
        turn.await.ok()
    }

    /// Gives a turn to everybody who may have one.
    fn start(&self) {
        loop {
            let next = self.shares().pop();
            let Some((slot, give)) = next else { return };
            // Who has just left does not take it; dropped without the lock, it goes to the next.
            drop(give.send(FirstLookTurn { all: self.clone(), slot }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    /// How many of `asked` get a turn at once; those that do are kept.
    fn taken(looks: &FirstLooks, namespace: &str, group: &str, asked: usize) -> Vec<FirstLookTurn> {
        (0..asked).filter_map(|_| looks.turn(namespace, group).now_or_never().flatten()).collect()
    }

    #[test]
    fn one_namespace_leaves_half_of_the_first_looks_to_others() {
        for (asked, got) in [(23, 23), (24, 24), (25, 24), (2400, 24)] {
            let looks = FirstLooks::new(48);
            let held = taken(&looks, "a", "slow.example.com", asked);
            assert_eq!(held.len(), got, "{asked} asked for");
            assert_eq!(taken(&looks, "b", "apps", 1).len(), 1);
        }
    }

    #[test]
    fn one_group_leaves_half_of_the_first_looks_to_others_whoever_asks_for_it() {
        let looks = FirstLooks::new(48);
        let held: Vec<FirstLookTurn> =
            (0..100).flat_map(|number| taken(&looks, &format!("n{number}"), "slow.example.com", 3)).collect();
        assert_eq!(held.len(), 24);
        assert_eq!(taken(&looks, "n0", "apps", 1).len(), 1, "nor does it stop those who asked for it");
    }

    #[tokio::test]
    async fn a_turn_that_is_over_goes_to_who_waits_and_not_to_who_has_left() {
        let looks = FirstLooks::new(2);
        let first = looks.turn("a", "").await;
        let left = Box::pin(looks.turn("a", ""));
        assert!(futures::poll!(left).is_pending());
        let mut waits = Box::pin(looks.turn("a", ""));
        assert!(futures::poll!(&mut waits).is_pending());
        drop(first);
        let second = waits.await;
        assert!(second.is_some());
        // One that was given while it was being left is given back.
        let mut leaves = Box::pin(looks.turn("a", ""));
        assert!(futures::poll!(&mut leaves).is_pending());
        drop(second);
        drop(leaves);
        assert_eq!(taken(&looks, "a", "", 1).len(), 1);
        assert!(!looks.shares().has_waiting());
    }
}
