//! What the document's three optional interfaces say, as one value with the document's defaults.

use std::{collections::BTreeMap, time::Duration};

use linchpin_words::keys::consist as keys;

/// How one adapter's employers are served. [`Options::default`] is what the document says of an adapter that implements
/// none of the optional interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
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
    /// How long one look or one call may take.
    pub timeout: Duration,
    /// The most items of one call.
    pub batch: usize,
}

/// The longest pause between two looks while something is pending.
pub const POLL_CAP: Duration = Duration::from_secs(5);

impl Default for Options {
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
    /// The pause after so many failures in a row, from 1, at most `cap`.
    pub fn pause(&self, failures: u32, cap: Duration) -> Duration {
        let doublings = failures.saturating_sub(1).min(30);
        self.base.saturating_mul(1 << doublings).min(self.max).min(cap)
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
        let options = Options::default();
        assert_eq!(options.max_concurrent_reconciles, 5);
        let RateLimit { base, max, qps, burst } = options.rate_limit;
        assert_eq!((base, max, burst), (Duration::from_millis(5), Duration::from_secs(1000), 100));
        assert!((qps - 10.0).abs() < f64::EPSILON);
    }

    #[test]
    fn reconcile_watch_options_default_to_employers_with_the_control_label_and_all_employees() {
        let Options { predicate, employee_predicate, .. } = Options::default();
        let labels = |value: &str| BTreeMap::from([("kusionstack.io/control".to_owned(), value.to_owned())]);
        assert!(predicate.admits(&labels("true")));
        assert!(!predicate.admits(&labels("false")) && !predicate.admits(&BTreeMap::new()));
        assert!(employee_predicate.admits(&BTreeMap::new()));
    }

    #[test]
    fn reconcile_lifecycle_options_default_to_following_and_not_recording() {
        let Options { follow_pod_ops_lifecycle, need_record_employees, .. } = Options::default();
        assert!(follow_pod_ops_lifecycle && !need_record_employees);
    }

    #[test]
    fn pauses_double_from_the_base_to_the_smaller_cap() {
        let limit = RateLimit::default();
        let cap = Duration::from_mins(1);
        assert_eq!(limit.pause(1, cap), Duration::from_millis(5));
        assert_eq!(limit.pause(2, cap), Duration::from_millis(10));
        assert_eq!(limit.pause(100, cap), cap);
        assert_eq!(limit.pause(u32::MAX, Duration::MAX), limit.max);
    }
}
