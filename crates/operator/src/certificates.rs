//! The certificates of the webhook server: made, and renewed without a moment in which nobody would believe us.
//!
//! An authority of our own signs the server's certificate, and the API server believes what the webhook
//! configurations name as their `caBundle`. [`next`] says what is to be done now, as a function of what is stored, of
//! what the configurations have, and of the time. A new authority is published beside the old one first; the server's
//! certificate is signed by it only when every configuration has both; the old one is dropped a day after that. Called
//! by the keeper of the webhooks, on the leader.

mod expiry;
mod inspect;
mod issue;

use std::time::Duration;

use linchpin_words::{Period, Timestamp};

pub(crate) use self::expiry::expiry;
pub use self::inspect::{CertificateFault, inspect};
pub(crate) use self::issue::{IssueError, authority, leaf};

/// How long an authority is valid, in days.
pub(crate) const AUTHORITY_DAYS: i64 = 365;
/// How long a server's certificate is valid, in days.
pub(crate) const LEAF_DAYS: i64 = 30;
/// How long the old authority stays after the server's certificate is signed by the new one.
const OVERLAP: Duration = Duration::from_hours(24);

/// What is stored of the certificates, as far as it matters when they are renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredCertificates {
    /// How many authorities are published, the newest first.
    pub(crate) authorities: usize,
    /// When the newest of them was made.
    pub(crate) authority_made: Timestamp,
    /// When the server's certificate was made. One that is older than the newest authority is signed by the old one.
    pub(crate) leaf_made: Timestamp,
    /// Whether the server's certificate has the names by which we are reached now.
    pub(crate) names_match: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertificateStep {
    /// Nothing before then.
    Rest(Timestamp),
    /// Make an authority and a certificate: there are none.
    MakeAll,
    /// Publish a new authority beside the old one.
    AddAuthority,
    /// Sign a new certificate for the server with the newest authority.
    SignLeaf,
    /// Stop publishing the old authority.
    DropOld,
}

/// What is to be done now. `published` says whether every configuration names all authorities that are stored.
pub(crate) fn next(stored: Option<&StoredCertificates>, published: bool, now: Timestamp) -> CertificateStep {
    let Some(stored) = stored else {
        return CertificateStep::MakeAll;
    };
    let authority_due = two_thirds(stored.authority_made, AUTHORITY_DAYS);
    let leaf_due = two_thirds(stored.leaf_made, LEAF_DAYS);
    let signed_by_newest = stored.leaf_made >= stored.authority_made;
    if !signed_by_newest {
        // Nobody would believe the new one before it is published; but one that has run out is believed by nobody either.
        let end = stored.leaf_made.plus(days(LEAF_DAYS));
        return if published || now >= end { CertificateStep::SignLeaf } else { CertificateStep::Rest(end) };
    }
    if !stored.names_match || now >= leaf_due {
        return CertificateStep::SignLeaf;
    }
    if stored.authorities > 1 {
        let over = stored.leaf_made.plus_duration(OVERLAP);
        return if now >= over {
            CertificateStep::DropOld
        } else {
            CertificateStep::Rest(over.min(leaf_due))
        };
    }
    if now >= authority_due {
        return CertificateStep::AddAuthority;
    }
    CertificateStep::Rest(leaf_due.min(authority_due))
}

/// When two thirds of a certificate's life are over.
fn two_thirds(made: Timestamp, life: i64) -> Timestamp {
    made.plus_duration(days(life).length() * 2 / 3)
}

fn days(number: i64) -> Period {
    Period::from_secs(u64::try_from(number).unwrap_or_default() * 24 * 3600)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A world with one Secret and one configuration that follows it late or early.
    struct World {
        /// Authorities by number, the newest first, and when each was made.
        authorities: Vec<(u32, Timestamp)>,
        leaf: (u32, Timestamp),
        configuration: Vec<u32>,
        made: u32,
    }

    impl World {
        fn stored(&self) -> Option<StoredCertificates> {
            let (_, authority_made) = *self.authorities.first()?;
            Some(StoredCertificates {
                authorities: self.authorities.len(),
                authority_made,
                leaf_made: self.leaf.1,
                names_match: true,
            })
        }

        fn published(&self) -> bool {
            self.authorities.iter().all(|(number, _)| self.configuration.contains(number))
        }

        fn publish(&mut self) {
            self.configuration = self.authorities.iter().map(|(number, _)| *number).collect();
        }

        fn act(&mut self, step: CertificateStep, now: Timestamp) {
            match step {
                CertificateStep::Rest(_) => (),
                CertificateStep::MakeAll => {
                    self.made += 1;
                    self.authorities = vec![(self.made, now)];
                    self.leaf = (self.made, now);
                }
                CertificateStep::AddAuthority => {
                    self.made += 1;
                    self.authorities.insert(0, (self.made, now));
                    self.authorities.truncate(2);
                }
                CertificateStep::SignLeaf => self.leaf = (self.authorities[0].0, now),
                CertificateStep::DropOld => self.authorities.truncate(1),
            }
        }
    }

    /// Lives three years, hour by hour; the configuration follows the Secret `lag` hours late. Counts the hours in which
    /// the API server would not believe the server, or a certificate has run out.
    fn distrust(
        lag: i64,
        decide: impl Fn(Option<&StoredCertificates>, bool, Timestamp) -> CertificateStep,
    ) -> usize {
        let mut world = World {
            authorities: Vec::new(),
            leaf: (0, Timestamp::EPOCH),
            configuration: Vec::new(),
            made: 0,
        };
        let mut hours = 0;
        let mut behind = 0;
        for hour in 1..3 * 365 * 24 {
            let now = Timestamp::from_second(hour * 3600);
            for _ in 0..4 {
                let step = decide(world.stored().as_ref(), world.published(), now);
                world.act(step, now);
                if world.made == 1 && world.configuration.is_empty() {
                    world.publish();
                }
            }
            behind = if world.published() { 0 } else { behind + 1 };
            if behind > lag {
                world.publish();
            }
            let age = |made: Timestamp, days: i64| now.since(made) > super::days(days);
            let signer = world.authorities.iter().find(|(number, _)| *number == world.leaf.0);
            let expired =
                age(world.leaf.1, LEAF_DAYS) || signer.is_none_or(|(_, made)| age(*made, AUTHORITY_DAYS));
            if expired || !world.configuration.contains(&world.leaf.0) {
                hours += 1;
            }
        }
        assert!(world.made >= 4, "authorities are renewed: {}", world.made);
        hours
    }

    #[test]
    fn there_is_no_hour_in_which_nobody_believes_us() {
        for lag in [0, 1, 24, 9 * 24] {
            assert_eq!(distrust(lag, next), 0, "configurations that follow {lag} h late");
        }
    }

    #[test]
    fn the_test_notices_an_authority_that_is_used_before_it_is_published() {
        let hasty = |stored: Option<&StoredCertificates>, _: bool, now| next(stored, true, now);
        assert!(distrust(24, hasty) > 0);
    }

    #[test]
    fn other_names_are_signed_at_once_and_nothing_else_is() {
        let now = Timestamp::from_second(1_000_000);
        let fresh =
            StoredCertificates { authorities: 1, authority_made: now, leaf_made: now, names_match: true };
        assert_eq!(next(Some(&fresh), true, now), CertificateStep::Rest(two_thirds(now, LEAF_DAYS)));
        assert_eq!(
            next(Some(&StoredCertificates { names_match: false, ..fresh }), true, now),
            CertificateStep::SignLeaf
        );
        assert_eq!(next(None, true, now), CertificateStep::MakeAll);
    }
}
