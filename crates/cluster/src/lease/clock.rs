//! A clock that goes on while the machine sleeps.
//!
//! `std::time::Instant` stops during suspend, so a process woken from it would believe that its lease had just been
//! renewed. Boot time counts on.

use nix::time::{ClockId, clock_gettime};
use std::{ops::Add, time::Duration};

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
/// Darwin's counts on during sleep too.
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// A point in time since the machine booted. Means nothing on another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(Duration);

impl BootInstant {
    /// Later than any other: the deadline of a leader that needs no lease.
    pub const NEVER: Self = Self(Duration::MAX);

    /// Now. If the kernel had no such clock the end of time would be returned, which closes every fence.
    pub fn now() -> Self {
        clock_gettime(CLOCK).map_or(Self::NEVER, |time| Self(time.into()))
    }

    /// A point at a given distance from boot; for tests and simulations.
    pub const fn from_boot(distance: Duration) -> Self {
        Self(distance)
    }

    /// How long ago `earlier` was; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for BootInstant {
    type Output = Self;

    fn add(self, distance: Duration) -> Self {
        Self(self.0.saturating_add(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes() {
        let before = BootInstant::now();
        std::thread::sleep(Duration::from_millis(5));
        assert!(BootInstant::now().since(before) >= Duration::from_millis(5));
        assert!(BootInstant::now() < BootInstant::NEVER);
    }
}
