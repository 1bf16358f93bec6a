//! Which of several operators may write: leader election on a `coordination.k8s.io` Lease.
//!
//! The protocol is client-go's, so that the Lease reads the same to every tool. The holder renews it every
//! [`Timing::retry_period`]; a candidate takes it over only after watching the *same record* for the duration the
//! record promises, on its own clock. No two machines' clocks are ever compared, and every write names the
//! resourceVersion it replaces, so of two candidates one wins.
//!
//! # What is promised
//!
//! At most one process holds a [`Fence`] that lets it write, as long as clocks run at the same speed. A holder may
//! write until [`Timing::renew_deadline`] after it *sent* its last successful renewal; a candidate waits at least
//! [`Timing::lease_duration`] after that renewal was *stored*; the first is shorter. Time is boot time, which goes on
//! while the process is stopped or the machine sleeps: a process that wakes up late finds its fence closed.
//!
//! `leaseTransitions` is the term's number ([`Epoch`]): it grows with every change of holder. Deleting the Lease by
//! hand starts the count anew and lets a newcomer in at once; the holder notices at its next renewal.
//!
//! # Parts
//!
//! [`elector`] decides and does nothing else; [`campaign`] asks it and talks to the server; [`leadership`] is what
//! the rest of the program sees.

pub mod campaign;
pub mod clock;
pub mod elector;
pub mod leadership;
mod record;
mod rights;

#[cfg(test)]
mod exploration;

pub use self::{
    campaign::{Campaign, CampaignError},
    clock::BootInstant,
    leadership::{Epoch, Fence, Fenced, Leadership},
};
use std::time::Duration;

/// The three times of the protocol, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timing {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// Times that would let two processes lead, or none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The record stores whole seconds.
    #[error("lease duration {0:?} must be a whole number of seconds, at least 1")]
    WholeSeconds(Duration),
    /// The holder must give up before others may take over.
    #[error("renew deadline {renew_deadline:?} must be shorter than lease duration {lease_duration:?}")]
    RenewDeadline {
        /// When the holder gives up.
        renew_deadline: Duration,
        /// When others take over.
        lease_duration: Duration,
    },
    /// The holder must get a second chance before it has to give up.
    #[error(
        "retry period {retry_period:?} must be positive and shorter than half the renew deadline {renew_deadline:?}"
    )]
    RetryPeriod {
        /// Pause between attempts.
        retry_period: Duration,
        /// When the holder gives up.
        renew_deadline: Duration,
    },
}

impl Timing {
    /// Checks the three times against each other.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, TimingError> {
        if lease_duration.is_zero() || lease_duration.subsec_nanos() != 0 {
            return Err(TimingError::WholeSeconds(lease_duration));
        }
        if renew_deadline >= lease_duration {
            return Err(TimingError::RenewDeadline { renew_deadline, lease_duration });
        }
        if retry_period.is_zero() || retry_period * 2 >= renew_deadline {
            return Err(TimingError::RetryPeriod { retry_period, renew_deadline });
        }
        Ok(Self { lease_duration, renew_deadline, retry_period })
    }

    /// How long others leave an unchanged record alone.
    pub fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How long the holder may act on one renewal.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// The pause between two looks at the Lease.
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }

    #[cfg(test)]
    fn unchecked(lease_duration: Duration, renew_deadline: Duration, retry_period: Duration) -> Self {
        Self { lease_duration, renew_deadline, retry_period }
    }
}

impl Default for Timing {
    /// Kubernetes' own: 15 s, 10 s, 2 s.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_defaults_pass_their_own_check() {
        let timing = Timing::default();
        let checked = Timing::new(timing.lease_duration, timing.renew_deadline, timing.retry_period);
        assert_eq!(checked, Ok(timing));
    }

    #[test]
    fn times_that_allow_two_leaders_are_refused() {
        assert!(matches!(
            Timing::new(seconds(10), seconds(10), seconds(2)),
            Err(TimingError::RenewDeadline { .. })
        ));
        assert!(matches!(
            Timing::new(Duration::from_millis(1500), seconds(1), Duration::from_millis(100)),
            Err(TimingError::WholeSeconds(_))
        ));
        assert!(matches!(
            Timing::new(seconds(15), seconds(10), seconds(5)),
            Err(TimingError::RetryPeriod { .. })
        ));
        assert!(matches!(
            Timing::new(seconds(15), seconds(10), seconds(0)),
            Err(TimingError::RetryPeriod { .. })
        ));
    }
}
