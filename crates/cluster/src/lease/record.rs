//! The Lease object and what the elector calls a record: the translation, with the times that people read.

use super::{
    Epoch, Timing,
    elector::{LeaseRecord, Move},
};
use crate::oneself;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference},
};
use std::time::Duration;

/// What the elector needs to know of a Lease.
pub(super) fn read(lease: &Lease) -> LeaseRecord {
    let spec = lease.spec.as_ref();
    let holder = spec.and_then(|spec| spec.holder_identity.clone());
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let transitions = spec.and_then(|spec| spec.lease_transitions);
    LeaseRecord {
        holder: holder.filter(|holder| !holder.is_empty()),
        duration: seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs),
        transitions: transitions.and_then(|count| u64::try_from(count).ok()).unwrap_or(0),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}

/// The Lease that a move writes, based on the one it replaces so that foreign labels and annotations survive.
pub(super) fn draft(
    known: Option<&Lease>,
    name: &str,
    identity: &str,
    timing: &Timing,
    decision: &Move,
    now: Timestamp,
) -> Option<Lease> {
    let (version, epoch, new_term) = match decision {
        Move::Wait => return None,
        Move::Create { epoch } => (None, *epoch, true),
        Move::Take { version, epoch } => (Some(version.clone()), *epoch, true),
        Move::Renew { version, epoch } => (Some(version.clone()), *epoch, false),
    };
    let mut lease = match (&version, known) {
        (Some(_), Some(known)) => known.clone(),
        _ => Lease {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            spec: None,
        },
    };
    lease.metadata.resource_version = version;
    lease.metadata.managed_fields = None;
    let before = lease.spec.unwrap_or_default();
    let renewed = later_than(before.renew_time.as_ref(), now);
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(whole_seconds(timing.lease_duration())),
        acquire_time: if new_term { Some(MicroTime(renewed)) } else { before.acquire_time },
        renew_time: Some(MicroTime(renewed)),
        lease_transitions: Some(transitions(epoch)),
        ..before
    });
    Some(lease)
}

/// The same, with this owner among its own.
pub(super) fn owned_by(mut lease: Lease, owner: Option<&OwnerReference>) -> Lease {
    lease.metadata.owner_references = oneself::owned(lease.metadata.owner_references, owner);
    lease
}

/// The Lease without a holder: the next candidate may take it at once. Shaped as client-go leaves it.
pub(super) fn released(known: &Lease, now: Timestamp) -> Lease {
    let mut lease = known.clone();
    lease.metadata.managed_fields = None;
    let before = lease.spec.unwrap_or_default();
    let renewed = later_than(before.renew_time.as_ref(), now);
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: Some(MicroTime(renewed)),
        renew_time: Some(MicroTime(renewed)),
        ..before
    });
    lease
}

/// A renewal must change the record even if the wall clock stopped or was set back: the server stores an
/// identical object without a new version, and others would take the holder for dead.
fn later_than(before: Option<&MicroTime>, now: Timestamp) -> Timestamp {
    let now = micros(now);
    match before {
        Some(MicroTime(before)) if *before == now => {
            now.checked_add(SignedDuration::from_micros(1)).unwrap_or(now)
        }
        _ => now,
    }
}

/// The API keeps microseconds.
fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

fn transitions(epoch: Epoch) -> i32 {
    i32::try_from(epoch.0).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00.123456789Z".parse().unwrap()
    }

    fn written(known: Option<&Lease>, decision: &Move) -> Lease {
        draft(known, "linchpin", "me", &Timing::default(), decision, now()).unwrap()
    }

    #[test]
    fn a_written_lease_reads_back_as_what_was_decided() {
        let lease = written(None, &Move::Create { epoch: Epoch(4) });
        let record = read(&lease);
        assert_eq!(record.holder.as_deref(), Some("me"));
        assert_eq!(record.transitions, 4);
        assert_eq!(record.duration, Some(Duration::from_secs(15)));
        assert_eq!(draft(None, "linchpin", "me", &Timing::default(), &Move::Wait, now()), None);
    }

    #[test]
    fn a_renewal_differs_from_the_record_before_even_if_the_clock_stands_still() {
        let first = written(None, &Move::Create { epoch: Epoch(0) });
        let renewed = written(Some(&first), &Move::Renew { version: "1".into(), epoch: Epoch(0) });
        let times = |lease: &Lease| {
            lease.spec.as_ref().map(|spec| (spec.acquire_time.clone(), spec.renew_time.clone()))
        };
        assert_ne!(times(&first).unwrap().1, times(&renewed).unwrap().1);
        assert_eq!(times(&first).unwrap().0, times(&renewed).unwrap().0, "the term did not begin anew");
    }

    #[test]
    fn labels_that_others_put_on_the_lease_survive() {
        let mut known = written(None, &Move::Create { epoch: Epoch(0) });
        known.metadata.labels = Some([("team".to_owned(), "shop".to_owned())].into());
        let taken = written(Some(&known), &Move::Take { version: "9".into(), epoch: Epoch(1) });
        assert_eq!(taken.metadata.labels, known.metadata.labels);
        assert_eq!(taken.metadata.resource_version.as_deref(), Some("9"));
    }

    #[test]
    fn a_released_lease_has_no_holder_and_keeps_its_count() {
        let known = written(None, &Move::Create { epoch: Epoch(7) });
        let record = read(&released(&known, now()));
        assert_eq!((record.holder, record.transitions), (None, 7));
    }

    #[test]
    fn an_empty_or_absurd_lease_is_read_without_fuss() {
        let mut lease = Lease::default();
        assert_eq!(read(&lease).holder, None);
        lease.spec = Some(LeaseSpec {
            lease_duration_seconds: Some(-3),
            lease_transitions: Some(-1),
            ..LeaseSpec::default()
        });
        let record = read(&lease);
        assert_eq!((record.duration, record.transitions), (None, 0));
    }
}
