//! What the document's three optional interfaces say, as one value with the document's defaults.

use std::{collections::BTreeMap, time::Duration};

use linchpin_words::{Timestamp, keys::consist as keys, retry};

/// How one adapter's employers are served. [`AdapterOptions::default`] is what the document says of an adapter that implements
/// none of the optional interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterOptions {
    /// How failures are repeated: `GetRateLimiter`.
    pub rate_limit: RateLimit,
    /// How many employers may be in the provider's hands at a time: `GetMaxConcurrentReconciles`.
    pub max_concurrent_reconciles: usize,
    /// Which employers are served: `EmployerPredicates`.
    pub predicate: Predicate,
    /// Which employees count: `EmployeePredicates`.
    pub employee_predicate: Predicate,
    /// Whether pods are marked and held: `FollowPodOpsLifeCycle`.
    pub follow_pod_ops_lifecycle: bool,
    /// Whether the names of marked pods are written on the employer: `NeedRecordEmployees`.
    pub need_record_employees: bool,
    /// What the protection finalizer is made of.
    pub finalizer: FinalizerRule,
    /// How often the provider is looked at although nothing changed.
    pub resync: Duration,
    /// The first pause before looking again while something is pending; it doubles up to [`POLL_CAP`].
    pub poll: Duration,
    /// How long one answer may take; a look or a call waits for at most four of them one after another.
    pub timeout: Duration,
    /// The most items of one call.
    pub batch: usize,
}

/// The longest pause between two looks while something is pending.
pub const POLL_CAP: Duration = Duration::from_secs(5);

impl Default for AdapterOptions {
    fn default() -> Self {
        Self {
            rate_limit: RateLimit::default(),
            max_concurrent_reconciles: 5,
            predicate: Predicate::Labels(BTreeMap::from([(keys::CONTROL.to_owned(), "true".to_owned())])),
            employee_predicate: Predicate::All,
            follow_pod_ops_lifecycle: true,
            need_record_employees: false,
            finalizer: FinalizerRule::Name,
            resync: Duration::from_mins(1),
            poll: Duration::from_millis(250),
            timeout: Duration::from_secs(5),
            batch: 100,
        }
    }
}

/// `DefaultControllerRateLimiter` as data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// The first pause after a failure; it doubles.
    pub base: Duration,
    /// The longest pause.
    pub max: Duration,
    /// Retries a second, of all employers of one adapter.
    pub qps: f64,
    /// Retries that may come at once.
    pub burst: u32,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { base: Duration::from_millis(5), max: Duration::from_secs(1000), qps: 10.0, burst: 100 }
    }
}

impl RateLimit {
    /// The pause after so many failures in a row, from 1, at most `cap`: the one formula, spread by who repeats what.
    pub fn pause(&self, failures: u32, cap: Duration, who: &str, what: &str) -> Duration {
        retry::delay(self.base, self.max.min(cap), who, what, failures)
    }
}

/// The retries of one adapter, of all its employers together: `burst` at once, then `qps` a second.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    limit: RateLimit,
    /// How many may go at once; below zero while some wait.
    left: f64,
    at: Option<Timestamp>,
}

impl Bucket {
    /// A full one.
    pub fn new(limit: RateLimit) -> Self {
        Self { limit, left: f64::from(limit.burst), at: None }
    }

    /// Takes one; how long that is to wait.
    pub fn take(&mut self, now: Timestamp) -> Duration {
        let since = self.at.map_or(Duration::ZERO, |at| Duration::from(now.since(at)));
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
        let full = f64::from(self.limit.burst);
        self.left = (self.left + since.as_secs_f64() * self.limit.qps).min(full) - 1.0;
        if self.left >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.left / self.limit.qps).unwrap_or(self.limit.max)
    }
}

/// Which objects are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// All.
    All,
    /// Those with all of these labels.
    Labels(BTreeMap<String, String>),
}

impl Predicate {
    /// Whether an object with these labels is meant.
    pub fn admits(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::All => true,
            Self::Labels(wanted) => wanted.iter().all(|(key, value)| labels.get(key) == Some(value)),
        }
    }
}

/// What the protection finalizer is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinalizerRule {
    /// The employer's name, as the document says: other controllers understand it.
    #[default]
    Name,
    /// Kind, group, namespace and name: for employers of different kinds with one name on one pod.
    Key,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconcile_options_default_to_five_workers_and_the_default_rate_limiter() {
        let options = AdapterOptions::default();
        assert_eq!(options.max_concurrent_reconciles, 5);
        let RateLimit { base, max, qps, burst } = options.rate_limit;
        assert_eq!((base, max, burst), (Duration::from_millis(5), Duration::from_secs(1000), 100));
        assert!((qps - 10.0).abs() < f64::EPSILON);
    }

    #[test]
    fn reconcile_watch_options_default_to_employers_with_the_control_label_and_all_employees() {
        let AdapterOptions { predicate, employee_predicate, .. } = AdapterOptions::default();
        let labels = |value: &str| BTreeMap::from([("kusionstack.io/control".to_owned(), value.to_owned())]);
        assert!(predicate.admits(&labels("true")));
        assert!(!predicate.admits(&labels("false")) && !predicate.admits(&BTreeMap::new()));
        assert!(employee_predicate.admits(&BTreeMap::new()));
    }

    #[test]
    fn reconcile_lifecycle_options_default_to_following_and_not_recording() {
        let AdapterOptions { follow_pod_ops_lifecycle, need_record_employees, .. } =
            AdapterOptions::default();
        assert!(follow_pod_ops_lifecycle && !need_record_employees);
    }

    #[test]
    fn pauses_double_from_the_base_to_the_smaller_cap() {
        let limit = RateLimit::default();
        let cap = Duration::from_mins(1);
        let between = |failures, full: Duration| {
            let pause = limit.pause(failures, cap, "uid", "look");
            assert!(pause >= full / 2 && pause <= full, "{failures}: {pause:?}");
        };
        between(1, Duration::from_millis(5));
        between(2, Duration::from_millis(10));
        between(100, cap);
        assert!(limit.pause(u32::MAX, Duration::MAX, "uid", "look") <= limit.max);
    }

    #[test]
    fn retries_come_in_a_burst_and_then_at_the_rate_of_the_bucket() {
        let start = Timestamp::from_second(1_000);
        let mut bucket = Bucket::new(RateLimit::default());
        let waits: Vec<Duration> = (0..120).map(|_| bucket.take(start)).collect();
        assert!(waits[..100].iter().all(Duration::is_zero), "a hundred at once");
        assert_eq!(waits[100], Duration::from_millis(100));
        assert_eq!(waits[119], Duration::from_secs(2));
        let later = start.plus_duration(Duration::from_secs(3));
        assert!(bucket.take(later).is_zero(), "it fills again");
        let rested = later.plus_duration(Duration::from_hours(1));
        assert_eq!(
            (0..101).filter(|_| bucket.take(rested).is_zero()).count(),
            100,
            "and never beyond its size"
        );
        assert!(bucket.take(start) > Duration::ZERO, "a clock that goes back gives nothing");
    }
}
