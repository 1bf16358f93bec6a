//! The adapters at work: who serves which employer, and which employers a pod has.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use linchpin_consist::{
    AdapterOptions, Bucket, EmployeeSelection, FinalizerRule, Port, Predicate, Trouble,
    marks::{OwnFinalizers, key},
    settle::{AdapterChoice, EmployerView, choose},
};
use linchpin_words::{Gvk, Timestamp, hash::sha256_hex, keys::consist as keys};
use tokio::sync::Semaphore;

use super::cluster_view::{ClusterView, EmployerKey, PODS};

/// How many employers of one adapter are remembered as they were read; beyond that it begins anew.
const REMEMBERED: usize = 20_000;

/// An adapter that is to be enabled.
pub struct Enabled {
    /// The name it is served under: what `linchpin.dev/adapter` and a binding's `spec.adapter` say.
    pub name: String,
    /// The adapter.
    pub port: Arc<dyn Port>,
    /// What the administrator says instead of the adapter.
    pub overrides: Overrides,
    /// Comes to an end when the adapter has become another one, so that the process must begin anew.
    pub until_changed: Option<BoxFuture<'static, Trouble>>,
}

/// What an administrator may say instead of an adapter; none: as the adapter says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Whether pods are marked and held.
    pub follow_pod_ops_lifecycle: Option<bool>,
    /// Whether the names of marked pods are written on the employer.
    pub need_record_employees: Option<bool>,
    /// How many employers may be in the provider's hands at a time.
    pub max_concurrent_reconciles: Option<usize>,
    /// How long one look or one call may take.
    pub timeout: Option<Duration>,
    /// How often the provider is looked at although nothing changed.
    pub resync: Option<Duration>,
    /// What the protection finalizer is made of.
    pub finalizer: Option<FinalizerRule>,
}

impl Overrides {
    /// The options with these in them.
    pub fn on(&self, options: AdapterOptions) -> AdapterOptions {
        AdapterOptions {
            follow_pod_ops_lifecycle: self
                .follow_pod_ops_lifecycle
                .unwrap_or(options.follow_pod_ops_lifecycle),
            need_record_employees: self.need_record_employees.unwrap_or(options.need_record_employees),
            max_concurrent_reconciles: self
                .max_concurrent_reconciles
                .unwrap_or(options.max_concurrent_reconciles),
            timeout: self.timeout.unwrap_or(options.timeout),
            resync: self.resync.unwrap_or(options.resync),
            finalizer: self.finalizer.unwrap_or(options.finalizer),
            ..options
        }
    }
}

/// An adapter at work.
pub(super) struct Worker {
    pub(super) name: String,
    pub(super) port: Arc<dyn Port>,
    pub(super) options: AdapterOptions,
    /// The number of its employers' kind.
    pub(super) employer: usize,
    /// The number of its employees' kind.
    pub(super) employee: usize,
    pub(super) employer_kind: Gvk,
    pub(super) employee_kind: Gvk,
    /// Whether pods are marked: it follows PodOpsLifecycle, and its employees are pods.
    pub(super) follows: bool,
    /// How many employers may be in the provider's hands at a time.
    pub(super) seats: Arc<Semaphore>,
    /// What is repeated after a failure, of all its employers together.
    retries: Mutex<Bucket>,
    /// What was read of employers, by namespace and name: every event of a pod asks those that it concerns.
    read: Mutex<BTreeMap<(String, String), Arc<ReadEmployer>>>,
}

/// What an adapter makes of one version of an employer.
pub(super) struct ReadEmployer {
    of: (String, u64),
    pub(super) selection: EmployeeSelection,
    pub(super) finalizers: OwnFinalizers,
}

impl Worker {
    pub(super) fn new(enabled: Enabled, numbers: [usize; 2]) -> Self {
        let options = enabled.overrides.on(enabled.port.options());
        let kinds = enabled.port.kinds();
        let follows = options.follow_pod_ops_lifecycle && kinds.employs_pods();
        if options.follow_pod_ops_lifecycle && !follows {
            tracing::warn!(
                adapter = enabled.name,
                "its employees are no pods, so that it does not follow PodOpsLifecycle"
            );
        }
        Self {
            seats: Arc::new(Semaphore::new(options.max_concurrent_reconciles.max(1))),
            retries: Mutex::new(Bucket::new(options.rate_limit)),
            read: Mutex::default(),
            name: enabled.name,
            employer: numbers[0],
            employee: numbers[1],
            employer_kind: kinds.employer,
            employee_kind: kinds.employee,
            follows,
            options,
            port: enabled.port,
        }
    }

    /// How long something that is repeated after a failure waits for its turn; what is no repetition waits for none.
    pub(super) fn turn(&self, is_retry: bool, now: Timestamp) -> Duration {
        if !is_retry {
            return Duration::ZERO;
        }
        self.retries.lock().unwrap_or_else(PoisonError::into_inner).take(now)
    }

    /// Which employees an employer selects; none where they cannot be selected at all.
    pub(super) fn selection(&self, employer: &EmployerView) -> EmployeeSelection {
        self.port.employs(&employer.object)
    }

    /// Both, as they were read from this version of the employer before.
    pub(super) fn read(&self, employer: &EmployerView) -> Arc<ReadEmployer> {
        let of = (employer.uid.clone(), employer.version);
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (employer.namespace.clone(), employer.name.clone());
        if let Some(read) = known.get(&place).filter(|read| read.of == of) {
            return Arc::clone(read);
        }
        let (selection, finalizers) = (self.selection(employer), self.finalizers(employer));
        let read = Arc::new(ReadEmployer { of, selection, finalizers });
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(place, Arc::clone(&read));
        read
    }

    pub(super) fn finalizers(&self, employer: &EmployerView) -> OwnFinalizers {
        let EmployerView { kind, namespace, name, .. } = employer;
        OwnFinalizers::of(self.options.finalizer, &kind.kind, &kind.group, namespace, name)
    }
}

/// What an employer writes on a pod that it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodEntry {
    /// What the entry is called.
    pub(super) key: String,
    pub(super) finalizer: String,
    /// Whose it is.
    pub(super) employer: EmployerKey,
}

/// All of them.
#[derive(Clone, Default)]
pub(super) struct AdapterWorkers {
    workers: Vec<Arc<Worker>>,
    /// Whether nobody is missing: while somebody is, who serves an employer may not be known.
    pub(super) is_complete: bool,
}

impl AdapterWorkers {
    /// Each of them.
    pub(super) fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().map(|worker| &**worker)
    }

    /// These and one more.
    pub(super) fn with(&self, worker: Worker, is_complete: bool) -> Self {
        Self { workers: self.workers.iter().cloned().chain([Arc::new(worker)]).collect(), is_complete }
    }

    /// Whether an adapter that is not open yet may ask for an employer too, which chooses none.
    pub(super) fn is_undecided(&self, employer: &EmployerView) -> bool {
        !self.is_complete && !employer.labels.contains_key(keys::ADAPTER)
    }

    /// Who serves an employer.
    pub(super) fn choice(&self, employer: &EmployerView) -> AdapterChoice<'_> {
        let one = |worker| {
            let Worker { name, employer_kind, options, .. }: &Worker = worker;
            (name.as_str(), employer_kind, &options.predicate as &Predicate)
        };
        choose(employer, self.workers().map(one))
    }

    /// The adapter of a name.
    pub(super) fn named(&self, name: &str) -> Option<&Worker> {
        self.workers().find(|worker| worker.name == name)
    }

    /// The adapter that serves an employer.
    pub(super) fn of(&self, employer: &EmployerView) -> Option<&Worker> {
        if self.is_undecided(employer) {
            return None;
        }
        match self.choice(employer) {
            AdapterChoice::One(name) => self.named(name),
            AdapterChoice::Nobody | AdapterChoice::Several(_) | AdapterChoice::Other => None,
        }
    }

    /// The entries that a pod is to have: of the employers of ours that select it, and that mark pods.
    pub(super) fn entries(
        &self,
        cluster_view: &ClusterView,
        namespace: &str,
        pod: &str,
        labels: &BTreeMap<String, String>,
    ) -> Vec<PodEntry> {
        let mut entries = Vec::new();
        let selecting = cluster_view.selecting(PODS, namespace, pod, labels);
        for employer in selecting.into_iter().filter(|employer| !employer.deleting) {
            let Some(worker) = self.of(employer).filter(|worker| worker.follows) else { continue };
            let read = worker.read(employer);
            if worker.options.employee_predicate.admits(labels) && read.selection.selects(pod, labels) {
                entries.push(PodEntry {
                    key: key(&employer.kind.kind, namespace, &employer.name),
                    finalizer: read.finalizers.written.clone(),
                    employer: (worker.employer, namespace.to_owned(), employer.name.clone()),
                });
            }
        }
        entries
    }
}

/// The name of an employer's binding: kind, group and name, cut and hashed where that is too long.
pub(super) fn binding_name(kind: &Gvk, employer: &str) -> String {
    const LONGEST: usize = 253;
    let word = kind.kind.to_lowercase();
    let whole = if kind.group.is_empty() {
        format!("{word}-{employer}")
    } else {
        format!("{word}.{}-{employer}", kind.group)
    };
    if whole.len() <= LONGEST {
        return whole;
    }
    let mut hash = sha256_hex(whole.as_bytes());
    hash.truncate(16);
    let kept: String = whole.chars().take(LONGEST - 17).collect();
    format!("{}-{hash}", kept.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_is_called_as_its_employer_and_never_too_long() {
        assert_eq!(binding_name(&Gvk::new("", "v1", "Service"), "web"), "service-web");
        let gateway = Gvk::new("example.com", "v1", "Gateway");
        assert_eq!(binding_name(&gateway, "web"), "gateway.example.com-web");
        let long = binding_name(&gateway, &"n".repeat(253));
        assert_eq!(long.len(), 253);
        assert_ne!(long, binding_name(&gateway, &format!("{}m", "n".repeat(252))));
    }

    #[test]
    fn what_an_administrator_says_wins_over_the_adapter() {
        let options = Overrides::default().on(AdapterOptions::default());
        assert_eq!(options, AdapterOptions::default());
        let overrides = Overrides {
            follow_pod_ops_lifecycle: Some(false),
            max_concurrent_reconciles: Some(9),
            ..Overrides::default()
        };
        let options = overrides.on(AdapterOptions::default());
        assert!(!options.follow_pod_ops_lifecycle && options.max_concurrent_reconciles == 9);
    }
}
