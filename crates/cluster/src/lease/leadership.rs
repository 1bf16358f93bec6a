//! What the rest of the program sees of leader election: who leads, and whether *this* write may still be sent.

use super::BootInstant;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

/// The number of a term: grows whenever the Lease changes hands. Writes may carry it to distinguish terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The number of the term after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Our part at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// Somebody else leads, or nobody, or we do not know.
    Standby {
        /// Who, as far as we know.
        leader: Option<String>,
    },
    /// We lead until the deadline, which moves with every renewal.
    Leading {
        /// The number of our term.
        epoch: Epoch,
        /// Nothing may be sent from then on.
        deadline: BootInstant,
    },
}

impl Leadership {
    /// Without leader election: leading for ever.
    pub const ALONE: Self = Self::Leading { epoch: Epoch(0), deadline: BootInstant::NEVER };

    /// True if a write may be sent at `now`.
    pub fn may_write(&self, now: BootInstant) -> bool {
        self.term(now).is_some()
    }

    /// The term we lead at `now`, if any.
    pub fn term(&self, now: BootInstant) -> Option<Epoch> {
        match self {
            Self::Leading { epoch, deadline } if now < *deadline => Some(*epoch),
            _ => None,
        }
    }
}

/// The right to write during one term. Cheap to clone and to ask; ask right before each write is sent.
///
/// Once the end of the term was reported it stays closed for all clones, also where the same term is renewed late:
/// what was begun before does not mix with what is begun anew.
#[derive(Debug, Clone)]
pub struct Fence {
    epoch: Epoch,
    leadership: watch::Receiver<Leadership>,
    closed: Arc<AtomicBool>,
}

/// The term is over: the write must not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the term {epoch} as leader is over: nothing is written any more")]
pub struct Fenced {
    /// The term that ended.
    pub epoch: Epoch,
}

impl Fence {
    /// The fence of the current term, if we lead.
    pub fn current(leadership: &watch::Receiver<Leadership>) -> Option<Self> {
        let epoch = leadership.borrow().term(BootInstant::now())?;
        Some(Self { epoch, leadership: leadership.clone(), closed: Arc::default() })
    }

    /// Its term.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Permits a write that is sent now, or not.
    pub fn check(&self) -> Result<(), Fenced> {
        self.check_at(BootInstant::now())
    }

    fn check_at(&self, now: BootInstant) -> Result<(), Fenced> {
        match self.leadership.borrow().term(now) {
            Some(epoch) if epoch == self.epoch && !self.closed.load(Ordering::Acquire) => Ok(()),
            _ => Err(Fenced { epoch: self.epoch }),
        }
    }

    /// How long the term lasts if it is not renewed: the most a write may take to be sure of it.
    pub fn remaining(&self) -> Duration {
        match *self.leadership.borrow() {
            Leadership::Leading { epoch, deadline } if epoch == self.epoch => {
                deadline.since(BootInstant::now())
            }
            _ => Duration::ZERO,
        }
    }

    /// Returns when the term is over, be it that somebody said so or that its time ran out.
    pub async fn ended(&self) {
        let mut leadership = self.leadership.clone();
        while self.check().is_ok() {
            if let Ok(Err(_)) = tokio::time::timeout(self.remaining(), leadership.changed()).await {
                break;
            }
        }
        self.closed.store(true, Ordering::Release);
    }
}

/// Publishes our part. Renewals in time move the deadline silently; changes of part or term wake the listeners, and so
/// does a renewal after the deadline: a caller that looked in between took the term for ended, and waits for another.
pub(super) fn publish(sender: &watch::Sender<Leadership>, current: Leadership) {
    sender.send_if_modified(|known| {
        let silent = match (&*known, &current) {
            (Leadership::Leading { epoch: old, deadline }, Leadership::Leading { epoch: new, .. }) => {
                old == new && BootInstant::now() < *deadline
            }
            (old, new) => old == new,
        };
        *known = current;
        !silent
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> BootInstant {
        BootInstant::from_boot(Duration::from_secs(seconds))
    }

    fn leading(epoch: u64, deadline: BootInstant) -> Leadership {
        Leadership::Leading { epoch: Epoch(epoch), deadline }
    }

    #[test]
    fn a_fence_opens_for_its_own_term_and_only_until_the_deadline() {
        let (sender, receiver) = watch::channel(leading(1, BootInstant::NEVER));
        let fence = Fence::current(&receiver).unwrap();
        assert_eq!(fence.check(), Ok(()));

        publish(&sender, leading(1, at(10)));
        assert_eq!(fence.check_at(at(9)), Ok(()));
        assert_eq!(fence.check_at(at(10)), Err(Fenced { epoch: Epoch(1) }));

        publish(&sender, leading(3, BootInstant::NEVER));
        assert_eq!(fence.check(), Err(Fenced { epoch: Epoch(1) }), "another term is not ours");
        assert_eq!(fence.remaining(), Duration::ZERO);
    }

    #[test]
    fn standing_by_has_no_fence() {
        let (_sender, receiver) = watch::channel(Leadership::Standby { leader: None });
        assert!(Fence::current(&receiver).is_none());
    }

    #[test]
    fn renewals_wake_nobody() {
        let soon = |seconds: u64| BootInstant::now() + Duration::from_secs(seconds);
        let (sender, mut receiver) = watch::channel(leading(1, soon(1_000)));
        let renewed = leading(1, soon(2_000));
        publish(&sender, renewed.clone());
        assert!(!receiver.has_changed().unwrap());
        assert_eq!(*receiver.borrow(), renewed);
        publish(&sender, Leadership::Standby { leader: None });
        assert!(receiver.has_changed().unwrap());
        receiver.mark_unchanged();
        publish(&sender, Leadership::Standby { leader: None });
        assert!(!receiver.has_changed().unwrap());
    }

    #[tokio::test]
    async fn the_end_of_a_term_is_noticed() {
        let (sender, receiver) = watch::channel(leading(1, BootInstant::NEVER));
        let fence = Fence::current(&receiver).unwrap();
        let waiting = tokio::spawn(async move { fence.ended().await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        publish(&sender, Leadership::Standby { leader: None });
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn a_renewal_after_the_deadline_wakes_who_took_the_term_for_ended() {
        let (sender, mut receiver) =
            watch::channel(leading(1, BootInstant::now() + Duration::from_millis(20)));
        let before = Fence::current(&receiver).unwrap();
        before.ended().await;
        assert!(Fence::current(&receiver).is_none(), "its time ran out, and nobody said so");
        publish(&sender, leading(1, BootInstant::NEVER));
        let woken = tokio::time::timeout(Duration::from_secs(5), receiver.changed()).await;
        assert!(woken.is_ok(), "a caller that waits for a term waits for ever");
        assert_eq!(Fence::current(&receiver).unwrap().check(), Ok(()));
        assert!(before.check().is_err(), "what was begun in the term that ended is over");
    }
}
