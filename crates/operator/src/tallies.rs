//! What the leader knows of BootDependencies and held pods, for those beside the controller: metrics, and the webhooks.
//!
//! The controller writes here what its decisions say; the document's gauges are read off it when they are asked for,
//! and a webhook on the same replica lets a pod pass without a gate where all that the gate would wait for is there
//! now. It is empty while this process does not lead.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use linchpin_doors::Tally;
use linchpin_words::limits;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::ConstGauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

/// Namespace and name of a BootDependency.
type BootDependencyName = (String, String);

/// What is known. Clones share it.
#[derive(Clone, Default)]
pub struct Tallies(Arc<Mutex<KnownTallies>>);

#[derive(Default)]
struct KnownTallies {
    objects: BTreeMap<BootDependencyName, Tally>,
    /// Held pods by namespace.
    held: BTreeMap<String, usize>,
    /// Whether this process leads, so that what is not known yet will be.
    leads: bool,
}

impl Tallies {
    fn known(&self) -> MutexGuard<'_, KnownTallies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far an object of this generation is; none where that is not known here and now.
    pub(crate) fn of(&self, namespace: &str, name: &str, generation: i64) -> Option<Tally> {
        let known = self.known();
        let tally = known.objects.get(&(namespace.to_owned(), name.to_owned()))?;
        (tally.generation == generation).then(|| tally.clone())
    }

    /// Whether this process leads.
    pub(crate) fn leads(&self) -> bool {
        self.known().leads
    }

    pub(crate) fn set(&self, namespace: &str, name: &str, tally: Tally) {
        self.known().objects.insert((namespace.to_owned(), name.to_owned()), tally);
    }

    pub(crate) fn forget(&self, namespace: &str, name: &str) {
        self.known().objects.remove(&(namespace.to_owned(), name.to_owned()));
    }

    pub(crate) fn hold(&self, namespace: &str, pods: usize) {
        let mut known = self.known();
        match pods {
            0 => drop(known.held.remove(namespace)),
            _ => drop(known.held.insert(namespace.to_owned(), pods)),
        }
    }

    fn clear(&self) {
        *self.known() = KnownTallies::default();
    }
}

/// What is known during one term: forgotten when it is dropped.
pub(crate) struct TermTallies(pub(crate) Tallies);

impl TermTallies {
    pub(crate) fn begin(tallies: Tallies) -> Self {
        tallies.known().leads = true;
        Self(tallies)
    }
}

impl Drop for TermTallies {
    fn drop(&mut self) {
        self.0.clear();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

/// What is counted of the turns of BootDependencies, by the names of their document. Clones count together.
#[derive(Clone)]
pub(crate) struct BootCounts {
    turns: Family<ResultLabel, Counter>,
    durations: Family<ResultLabel, Histogram, fn() -> Histogram>,
    releases: Histogram,
}

/// Prometheus' own default buckets, which the document's histogram has.
fn buckets() -> Histogram {
    Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
}

impl BootCounts {
    /// Registers everything.
    pub(crate) fn register(registry: &mut Registry, tallies: Tallies) -> Self {
        let counts = Self {
            turns: Family::default(),
            durations: Family::new_with_constructor(buckets as fn() -> Histogram),
            releases: Histogram::new(exponential_buckets(0.001, 2.0, 14)),
        };
        registry.register(
            "bootchain_reconcile",
            "Turns of BootDependencies; error: the status could not be written",
            counts.turns.clone(),
        );
        registry.register(
            "bootchain_reconcile_duration_seconds",
            "Time such a turn takes",
            counts.durations.clone(),
        );
        registry.register(
            "linchpin_boot_release_seconds",
            "Time from when everything that a held pod waits for is there until it is released",
            counts.releases.clone(),
        );
        registry.register_collector(Box::new(Figures(tallies)));
        counts
    }

    pub(crate) fn turn(&self, good: bool, took: Duration) {
        let label = ResultLabel { result: if good { "success" } else { "error" } };
        self.turns.get_or_create(&label).inc();
        self.durations.get_or_create(&label).observe(took.as_secs_f64());
    }

    pub(crate) fn released(&self, after: Duration) {
        self.releases.observe(after.as_secs_f64());
    }
}

/// A gauge of each object: its name, what it means, its value.
type Series = (&'static str, &'static str, fn(&Tally) -> usize);

/// What is read off when it is asked for.
struct Figures(Tallies);

impl fmt::Debug for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Figures").finish_non_exhaustive()
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let known = self.0.known();
        let count = |number: usize| ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
        let series: [Series; 2] = [
            ("bootchain_dependencies_total", "Entries of a BootDependency", |tally| tally.all),
            ("bootchain_dependencies_ready", "Those that hold", |tally| {
                tally.all.saturating_sub(tally.unmet.len())
            }),
        ];
        for (name, help, number) in series {
            let metric_type = count(0).metric_type();
            let mut family = encoder.encode_descriptor(name, help, None, metric_type)?;
            for ((namespace, name), tally) in known.objects.iter().take(limits::BOOT_SERIES) {
                let labels = [("namespace", namespace.as_str()), ("name", name.as_str())];
                count(number(tally)).encode(family.encode_family(&labels)?)?;
            }
        }
        let dropped = count(known.objects.len().saturating_sub(limits::BOOT_SERIES));
        let help = "BootDependencies that have no series of their own, since there are too many";
        dropped.encode(encoder.encode_descriptor(
            "linchpin_boot_series_dropped",
            help,
            None,
            dropped.metric_type(),
        )?)?;
        let pods = count(known.held.values().sum());
        let help = "Pods that are held by our scheduling gate";
        pods.encode(encoder.encode_descriptor("linchpin_boot_held_pods", help, None, pods.metric_type())?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prometheus_client::encoding::text::encode;

    use super::*;

    fn tally(all: usize, unmet: &[&str]) -> Tally {
        Tally { generation: 2, all, unmet: unmet.iter().map(|name| (*name).into()).collect::<BTreeSet<_>>() }
    }

    #[test]
    fn b25_series_go_with_their_object_and_with_the_term() {
        let mut registry = Registry::default();
        let tallies = Tallies::default();
        let _counts = BootCounts::register(&mut registry, tallies.clone());
        let shown = |registry: &Registry| {
            let mut text = String::new();
            encode(&mut text, registry).unwrap();
            text
        };
        tallies.set("shop", "web", tally(3, &["db:5432"]));
        tallies.set("shop", "api", tally(1, &[]));
        tallies.hold("shop", 2);
        let text = shown(&registry);
        for line in [
            "bootchain_dependencies_total{namespace=\"shop\",name=\"web\"} 3",
            "bootchain_dependencies_ready{namespace=\"shop\",name=\"web\"} 2",
            "linchpin_boot_held_pods 2",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        tallies.forget("shop", "web");
        assert!(!shown(&registry).contains("web"));
        assert_eq!(tallies.of("shop", "api", 1), None, "another generation is another question");
        let term = TermTallies::begin(tallies.clone());
        assert!(tallies.leads());
        drop(term);
        assert!(!tallies.leads());
        assert_eq!(tallies.of("shop", "api", 2), None);
    }
}
