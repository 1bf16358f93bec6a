//! The decisions of leader election, without a clock or a server.
//!
//! [`Elector`] gets what was read and what was written, and when; it says what to write next and until when we
//! lead. [`super::campaign`] does the talking. The explorer in `exploration.rs` plays every interleaving of several
//! electors, delays, losses and stops against it.

use super::{BootInstant, Epoch, Leadership, Timing};
use std::time::Duration;

/// What the Lease said when it was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseRecord {
    /// Who holds it; none after a release.
    pub holder: Option<String>,
    /// For how long the holder's last renewal is good, if it says so.
    pub duration: Option<Duration>,
    /// The number of changes of holder so far.
    pub transitions: u64,
    /// The resourceVersion: any other value means that somebody wrote.
    pub version: String,
}

/// What to write now. The elector's own identity and duration go into every write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Move {
    /// Leave the Lease alone until the next look.
    Wait,
    /// There is no Lease: make one.
    Create {
        /// The number of the new term.
        epoch: Epoch,
    },
    /// Make ourselves its holder, if it is still at this version.
    Take {
        /// The version that is replaced.
        version: String,
        /// The number of the new term.
        epoch: Epoch,
    },
    /// Renew our own term, if it is still at this version.
    Renew {
        /// The version that is replaced.
        version: String,
        /// The number of the term.
        epoch: Epoch,
    },
}

/// One candidate's memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Elector {
    identity: String,
    timing: Timing,
    /// The record as last read or written, and when that version was first seen.
    observed: Option<(LeaseRecord, BootInstant)>,
    held: Option<HeldLease>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct HeldLease {
    epoch: Epoch,
    deadline: BootInstant,
}

impl Elector {
    /// A newcomer. `identity` must be unique to this process: a process that finds it in the Lease takes the Lease for
    /// its own.
    pub fn new(identity: String, timing: Timing) -> Self {
        Self { identity, timing, observed: None, held: None }
    }

    /// Our name in the Lease.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The times we were given.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Whether we lead at `now`, and who does otherwise as far as we know.
    pub fn leadership(&self, now: BootInstant) -> Leadership {
        match self.held {
            Some(HeldLease { epoch, deadline }) if now < deadline => Leadership::Leading { epoch, deadline },
            _ => Leadership::Standby {
                leader: self.observed.as_ref().and_then(|(record, _)| record.holder.clone()),
            },
        }
    }

    /// The renewal that can be tried without reading first: we hold the Lease and know its version.
    pub fn renewal(&self) -> Option<Move> {
        self.held?;
        let (record, _) = self.observed.as_ref()?;
        self.is_ours(record)
            .then(|| Move::Renew { version: record.version.clone(), epoch: Epoch(record.transitions) })
    }

    /// Decides after the Lease was read at `now` (`None`: there is none).
    pub fn read(&mut self, now: BootInstant, found: Option<LeaseRecord>) -> Move {
        let Some(found) = found else {
            return self.read_nothing(now);
        };
        let first_seen = match &self.observed {
            Some((known, at)) if known.version == found.version => *at,
            _ => now,
        };
        let epoch = Epoch(found.transitions);
        let version = found.version.clone();
        let decision = if self.is_ours(&found) {
            Move::Renew { version, epoch }
        } else {
            self.held = None;
            let patience = found.duration.unwrap_or(self.timing.lease_duration);
            let free = found.holder.is_none() || now.since(first_seen) >= patience;
            if free { Move::Take { version, epoch: epoch.next() } } else { Move::Wait }
        };
        self.observed = Some((found, first_seen));
        decision
    }

    /// A Lease that somebody deleted may still have a holder who has not noticed, so its time is waited out.
    fn read_nothing(&mut self, now: BootInstant) -> Move {
        self.held = None;
        match &self.observed {
            None => Move::Create { epoch: Epoch(0) },
            Some((record, at)) => {
                let patience = record.duration.unwrap_or(self.timing.lease_duration);
                let free = record.holder.is_none() || self.is_ours(record) || now.since(*at) >= patience;
                if free { Move::Create { epoch: Epoch(record.transitions).next() } } else { Move::Wait }
            }
        }
    }

    /// Learns that a write sent at `sent` is stored as `stored`.
    ///
    /// The term counts from before the write left: how long it took to be stored and answered is not ours to spend.
    pub fn wrote(&mut self, sent: BootInstant, stored: LeaseRecord) {
        self.held =
            Some(HeldLease { epoch: Epoch(stored.transitions), deadline: sent + self.timing.renew_deadline });
        self.observed = Some((stored, sent));
    }

    /// Gives the term up; nothing may be written from now on.
    pub fn resign(&mut self) {
        self.held = None;
    }

    /// The last known record if it names us: what a release must replace.
    pub fn own_record(&self) -> Option<&LeaseRecord> {
        self.observed.as_ref().map(|(record, _)| record).filter(|record| self.is_ours(record))
    }

    fn is_ours(&self, record: &LeaseRecord) -> bool {
        record.holder.as_deref() == Some(&self.identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> BootInstant {
        BootInstant::from_boot(Duration::from_secs(seconds))
    }

    fn record(holder: &str, version: &str, transitions: u64) -> LeaseRecord {
        LeaseRecord {
            holder: (!holder.is_empty()).then(|| holder.to_owned()),
            duration: Some(Duration::from_secs(15)),
            transitions,
            version: version.to_owned(),
        }
    }

    fn me() -> Elector {
        Elector::new("me".into(), Timing::default())
    }

    #[test]
    fn without_a_lease_one_is_made() {
        assert_eq!(me().read(at(0), None), Move::Create { epoch: Epoch(0) });
    }

    #[test]
    fn a_released_lease_is_taken_at_once() {
        let mut me = me();
        let take = me.read(at(0), Some(record("", "7", 3)));
        assert_eq!(take, Move::Take { version: "7".into(), epoch: Epoch(4) });
    }

    #[test]
    fn another_holder_is_left_alone_until_its_record_stood_still_for_its_duration() {
        let mut me = me();
        assert_eq!(me.read(at(100), Some(record("other", "7", 3))), Move::Wait);
        assert_eq!(me.read(at(114), Some(record("other", "7", 3))), Move::Wait);
        assert_eq!(me.read(at(114), Some(record("other", "8", 3))), Move::Wait, "it was renewed");
        assert_eq!(me.read(at(128), Some(record("other", "8", 3))), Move::Wait);
        let take = me.read(at(129), Some(record("other", "8", 3)));
        assert_eq!(take, Move::Take { version: "8".into(), epoch: Epoch(4) });
    }

    #[test]
    fn the_holders_own_promise_counts_not_our_setting() {
        let mut me = me();
        let long = LeaseRecord { duration: Some(Duration::from_mins(1)), ..record("other", "7", 0) };
        me.read(at(0), Some(long.clone()));
        assert_eq!(me.read(at(59), Some(long.clone())), Move::Wait);
        assert!(matches!(me.read(at(60), Some(long)), Move::Take { .. }));
    }

    #[test]
    fn a_term_lasts_from_the_moment_the_write_was_sent() {
        let mut me = me();
        me.wrote(at(10), record("me", "1", 0));
        assert!(me.leadership(at(19)).may_write(at(19)));
        assert!(!me.leadership(at(20)).may_write(at(20)));
    }

    #[test]
    fn whoever_sees_another_holder_stops_at_once() {
        let mut me = me();
        me.wrote(at(10), record("me", "1", 0));
        me.read(at(11), Some(record("other", "2", 1)));
        assert_eq!(me.leadership(at(11)), Leadership::Standby { leader: Some("other".into()) });
        assert_eq!(me.renewal(), None);
    }

    #[test]
    fn a_late_holder_that_nobody_replaced_goes_on_in_the_same_term() {
        let mut me = me();
        me.wrote(at(10), record("me", "1", 5));
        let renew = me.read(at(100), Some(record("me", "1", 5)));
        assert_eq!(renew, Move::Renew { version: "1".into(), epoch: Epoch(5) });
        assert!(!me.leadership(at(100)).may_write(at(100)), "not before the write is stored");
        me.wrote(at(100), record("me", "2", 5));
        assert!(me.leadership(at(101)).may_write(at(101)));
    }

    #[test]
    fn a_deleted_lease_ends_the_term_and_is_made_again_with_a_higher_number() {
        let mut me = me();
        me.wrote(at(10), record("me", "1", 5));
        assert_eq!(me.read(at(11), None), Move::Create { epoch: Epoch(6) });
        assert!(!me.leadership(at(11)).may_write(at(11)));
    }

    #[test]
    fn a_lease_deleted_under_another_holder_is_not_made_before_its_time_is_up() {
        let mut me = me();
        me.read(at(10), Some(record("other", "1", 5)));
        assert_eq!(me.read(at(11), None), Move::Wait);
        assert_eq!(me.read(at(25), None), Move::Create { epoch: Epoch(6) });
    }

    #[test]
    fn after_resigning_nothing_may_be_written() {
        let mut me = me();
        me.wrote(at(10), record("me", "1", 0));
        me.resign();
        assert!(!me.leadership(at(11)).may_write(at(11)));
        assert_eq!(me.own_record(), Some(&record("me", "1", 0)), "the release still knows what to replace");
    }
}
