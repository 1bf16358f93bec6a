//! How long to pause before the next attempt. Pure: no clock, the same pauses for the same seed.

use std::time::Duration;

/// What went wrong, as far as pauses care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchTrouble {
    /// No connection, or it broke, or the server failed.
    Connection,
    /// The version to resume from has expired.
    Expired,
    /// The identity lacks the right.
    Forbidden,
    /// The server asks for patience.
    Throttled(Option<Duration>),
}

/// The pauses of one follower.
#[derive(Debug)]
pub(crate) struct WatchPauses {
    seed: u64,
    failures: u32,
    last: Option<WatchTrouble>,
}

impl WatchPauses {
    /// A follower that has had no trouble. Different seeds spread followers that fail together.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, failures: 0, last: None }
    }

    /// Everything works again.
    pub(crate) fn fine(&mut self) {
        self.failures = 0;
        self.last = None;
    }

    /// How many attempts in a row have failed.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// The pause after a failure: a lost connection and an expired version are retried at once, then with pauses up
    /// to 2 s; a missing right from 1 s up to 30 s; patience as long as the server asks, 30 s at most.
    pub(crate) fn after(&mut self, trouble: WatchTrouble) -> Duration {
        let same = matches!(
            (self.last, trouble),
            (
                Some(WatchTrouble::Connection | WatchTrouble::Expired),
                WatchTrouble::Connection | WatchTrouble::Expired
            ) | (Some(WatchTrouble::Forbidden), WatchTrouble::Forbidden)
                | (Some(WatchTrouble::Throttled(_)), WatchTrouble::Throttled(_))
        );
        self.failures = if same { self.failures.saturating_add(1) } else { 1 };
        self.last = Some(trouble);
        let doubled = |first: u64, cap: u64, times: u32| first.saturating_mul(1 << times.min(16)).min(cap);
        let milliseconds = match trouble {
            WatchTrouble::Connection | WatchTrouble::Expired if self.failures == 1 => return Duration::ZERO,
            WatchTrouble::Connection | WatchTrouble::Expired => doubled(50, 1_700, self.failures - 2),
            // With what is added below no more than `FORBIDDEN_AGAIN`.
            WatchTrouble::Forbidden => doubled(1_000, 25_000, self.failures - 1),
            WatchTrouble::Throttled(asked) => {
                let asked = asked.map_or(0, |asked| u64::try_from(asked.as_millis()).unwrap_or(u64::MAX));
                asked.max(doubled(200, 5_000, self.failures - 1)).min(25_000)
            }
        };
        Duration::from_millis(milliseconds + self.jitter(milliseconds / 6))
    }

    /// A number below `bound` that differs between followers and attempts.
    pub(super) fn jitter(&mut self, bound: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if bound == 0 { 0 } else { (self.seed >> 33) % bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(trouble: WatchTrouble, count: usize) -> Vec<Duration> {
        let mut pace = WatchPauses::new(7);
        (0..count).map(|_| pace.after(trouble)).collect()
    }

    #[test]
    fn a_lost_connection_is_retried_at_once_and_then_within_two_seconds() {
        let pauses = pauses(WatchTrouble::Connection, 20);
        assert_eq!(pauses[0], Duration::ZERO);
        assert!(pauses[1] >= Duration::from_millis(50) && pauses[1] < Duration::from_millis(60));
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(2)), "{pauses:?}");
        assert!(pauses[19] >= Duration::from_millis(1_700));
    }

    #[test]
    fn a_missing_right_is_asked_for_again_within_thirty_seconds() {
        let pauses = pauses(WatchTrouble::Forbidden, 20);
        assert!(pauses[0] >= Duration::from_secs(1) && pauses[0] < Duration::from_millis(1_200));
        assert!(pauses[19] >= Duration::from_secs(25) && pauses[19] <= Duration::from_secs(30));
    }

    #[test]
    fn the_server_decides_how_patient_we_are_within_reason() {
        let asked = |seconds| pauses(WatchTrouble::Throttled(Some(Duration::from_secs(seconds))), 1)[0];
        assert!(asked(3) >= Duration::from_secs(3) && asked(3) < Duration::from_secs(4));
        assert!(asked(100_000) <= Duration::from_secs(30));
        assert!(pauses(WatchTrouble::Throttled(None), 1)[0] >= Duration::from_millis(200));
    }

    #[test]
    fn another_trouble_starts_its_own_count() {
        let mut pace = WatchPauses::new(1);
        for _ in 0..10 {
            pace.after(WatchTrouble::Connection);
        }
        assert!(pace.after(WatchTrouble::Forbidden) < Duration::from_millis(1_200));
        pace.fine();
        assert_eq!(pace.after(WatchTrouble::Connection), Duration::ZERO);
    }
}
