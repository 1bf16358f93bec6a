//! Who goes first: of the effects of one namespace on this cluster that start at the same moment, those of lower priority
//! are answered before the others are sent. Sent side by side they would arrive in any order.
//!
//! A moment's courtesy and no more: what takes longer than [`EARLIER_EFFECTS_FIRST`] keeps nobody waiting. Used by the
//! driver.

use std::collections::BTreeMap;

use tokio::sync::watch;

use super::pace::EARLIER_EFFECTS_FIRST;

/// The place of an effect among those of its namespace; lower comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Precedence {
    /// The priority of its object.
    pub(super) object: i32,
    /// Its rank among the effects of its object.
    pub(super) effect: i32,
}

/// The effects that are under way, by namespace.
#[derive(Default)]
pub(super) struct Precedences {
    under_way: BTreeMap<String, Vec<(Precedence, watch::Receiver<()>)>>,
}

/// Those that an effect lets go first.
pub(super) struct EarlierEffects(Vec<watch::Receiver<()>>);

/// Held by an effect until it was answered.
pub(super) struct Unanswered(
    #[expect(dead_code, reason = "the drop itself is the signal")] watch::Sender<()>,
);

impl Precedences {
    /// An effect is about to start.
    pub(super) fn start(&mut self, namespace: &str, precedence: Precedence) -> (EarlierEffects, Unanswered) {
        let (unanswered, answered) = watch::channel(());
        let under_way = self.under_way.entry(namespace.to_owned()).or_default();
        let ahead = under_way.iter().filter(|(other, _)| *other < precedence);
        let ahead = EarlierEffects(ahead.map(|(_, answered)| answered.clone()).collect());
        under_way.push((precedence, answered));
        (ahead, Unanswered(unanswered))
    }

    /// An effect of a namespace came back.
    pub(super) fn end(&mut self, namespace: &str) {
        if let Some(under_way) = self.under_way.get_mut(namespace) {
            under_way.retain(|(_, answered)| answered.has_changed().is_ok());
            if under_way.is_empty() {
                self.under_way.remove(namespace);
            }
        }
    }
}

impl EarlierEffects {
    /// Waits until they were answered, for a moment.
    pub(super) async fn pass(self) {
        if self.0.is_empty() {
            return;
        }
        let all = async {
            for mut answered in self.0 {
                while answered.changed().await.is_ok() {}
            }
        };
        // After that moment nobody is waited for any longer.
        let _ = tokio::time::timeout(EARLIER_EFFECTS_FIRST, all).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn place(object: i32, effect: i32) -> Precedence {
        Precedence { object, effect }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_to_come_later_waits_for_what_comes_first_in_its_own_namespace_only() {
        let mut all = Precedences::default();
        let (first, unanswered) = all.start("a", place(1, 9));
        assert!(first.pass().now_or_never().is_some());
        let (same, _same) = all.start("a", place(1, 9));
        let (earlier, _earlier) = all.start("a", place(0, 0));
        let (other, _other) = all.start("b", place(5, 0));
        for none in [same, earlier, other] {
            assert!(none.pass().now_or_never().is_some());
        }
        let (later, _later) = all.start("c", place(2, 0));
        drop(later);
        let (_first, hung) = all.start("d", place(1, 0));
        let (later, _later) = all.start("d", place(1, 1));
        let mut waits = Box::pin(later.pass());
        assert!(futures::poll!(&mut waits).is_pending());
        drop(hung);
        assert!(futures::poll!(&mut waits).is_ready());
        drop(unanswered);
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_keeps_nobody_waiting() {
        let mut all = Precedences::default();
        let (_, _hangs) = all.start("a", place(1, 0));
        let began = tokio::time::Instant::now();
        all.start("a", place(2, 0)).0.pass().await;
        assert_eq!(began.elapsed(), EARLIER_EFFECTS_FIRST);
    }

    #[test]
    fn what_came_back_is_forgotten() {
        let mut all = Precedences::default();
        let (_, unanswered) = all.start("a", place(1, 0));
        all.end("a");
        assert_eq!(all.start("a", place(2, 0)).0.0.len(), 1, "it is under way");
        drop(unanswered);
        all.end("a");
        assert!(all.under_way.is_empty());
    }
}
