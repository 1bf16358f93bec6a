//! What the consist process counts, and what it has said already.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use linchpin_consist::{
    PodView,
    lifecycle::operations,
    settle::{EmployerPhase, EmployerReport, RowState},
};
use linchpin_words::Timestamp;
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

use super::cluster_view::{EmployerKey, Name};
use crate::controller::now;

/// An operation that takes longer is stuck.
const STUCK: Duration = Duration::from_mins(5);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    adapter: String,
    call: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AdapterLabel {
    adapter: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabel {
    stage: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabel {
    answer: &'static str,
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 3.0, 12))
}

/// Everything that is counted. Clones count together.
#[derive(Clone)]
pub(super) struct ConsistCounts {
    calls: Family<CallLabels, Counter>,
    call_seconds: Family<AdapterLabel, Histogram, fn() -> Histogram>,
    drain_seconds: Family<AdapterLabel, Histogram, fn() -> Histogram>,
    stage_seconds: Family<StageLabel, Histogram, fn() -> Histogram>,
    grace_delete: Family<AnswerLabel, Counter>,
    left_behind: Counter,
    current: Arc<Mutex<CurrentCounts>>,
}

#[derive(Debug, Default)]
struct CurrentCounts {
    /// Adapter, whether it is ready, and how many employees are in which state.
    employers: BTreeMap<EmployerKey, (String, bool, BTreeMap<&'static str, usize>)>,
    /// When an employee began to drain.
    draining: BTreeMap<(EmployerKey, String), Instant>,
    /// The operations on pods: their stage, and since when.
    operations: BTreeMap<(Name, String), (&'static str, Timestamp)>,
    oddities: BTreeMap<EmployerKey, String>,
}

const STATES: [RowState; 6] = [
    RowState::Attached,
    RowState::Attaching,
    RowState::Draining,
    RowState::Detached,
    RowState::Failed,
    RowState::Unknown,
];

impl Default for ConsistCounts {
    fn default() -> Self {
        Self {
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(seconds),
            drain_seconds: Family::new_with_constructor(seconds),
            stage_seconds: Family::new_with_constructor(seconds),
            grace_delete: Family::default(),
            left_behind: Counter::default(),
            current: Arc::default(),
        }
    }
}

impl ConsistCounts {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("linchpin_consist_calls", "Looks at and calls to providers", self.calls.clone());
        let help = "Time that a look or call takes";
        registry.register("linchpin_consist_call_seconds", help, self.call_seconds.clone());
        let help = "Time from draining to out of traffic";
        registry.register("linchpin_consist_drain_seconds", help, self.drain_seconds.clone());
        let help = "Time that an operation on a pod spends in a stage";
        registry.register("linchpin_lifecycle_stage_seconds", help, self.stage_seconds.clone());
        let help = "Deletions and evictions of pods that were asked for";
        registry.register("linchpin_grace_delete", help, self.grace_delete.clone());
        let help = "Employers that were released although their provider may still have something of them";
        registry.register("linchpin_left_behind", help, self.left_behind.clone());
        registry.register_collector(Box::new(CurrentCollector(Arc::clone(&self.current))));
    }

    fn current(&self) -> MutexGuard<'_, CurrentCounts> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A look or a call ended.
    pub(super) fn called(&self, adapter: &str, call: &'static str, succeeded: bool, took: Duration) {
        let result = if succeeded { "done" } else { "failed" };
        self.calls.get_or_create(&CallLabels { adapter: adapter.to_owned(), call, result }).inc();
        let adapter = AdapterLabel { adapter: adapter.to_owned() };
        self.call_seconds.get_or_create(&adapter).observe(took.as_secs_f64());
    }

    /// A deletion or an eviction was answered.
    pub(super) fn answered(&self, answer: &'static str) {
        self.grace_delete.get_or_create(&AnswerLabel { answer }).inc();
    }

    /// An employer was released, and what the provider has of it was not removed.
    pub(super) fn left_behind(&self) {
        self.left_behind.inc();
    }

    /// A drain was given up.
    pub(super) fn given_up(&self) {
        self.answered("given_up");
    }

    /// How far an employment is.
    pub(super) fn employment(&self, key: &EmployerKey, adapter: &str, report: &EmployerReport) {
        let mut current = self.current();
        let counts = STATES.iter().map(|state| (state.word(), report.count(*state))).collect();
        let ready = report.phase == EmployerPhase::Synced;
        current.employers.insert(key.clone(), (adapter.to_owned(), ready, counts));
        current.oddities.remove(key);
        for row in &report.employees {
            let place = (key.clone(), row.name.clone());
            // Neither ends a drain: the clock of one goes on.
            if matches!(row.state, RowState::Failed | RowState::Unknown) {
                continue;
            }
            if row.state == RowState::Draining {
                current.draining.entry(place).or_insert_with(Instant::now);
            } else if let Some(began) = current.draining.remove(&place)
                && row.state == RowState::Detached
            {
                let adapter = AdapterLabel { adapter: adapter.to_owned() };
                self.drain_seconds.get_or_create(&adapter).observe(began.elapsed().as_secs_f64());
            }
        }
        let there = |(employer, name): &(EmployerKey, String)| {
            employer != key || report.employees.iter().any(|row| row.name == *name)
        };
        current.draining.retain(|place, _| there(place));
    }

    /// Another term begins: what was counted in the last one is forgotten.
    pub(super) fn begin_anew(&self) {
        *self.current() = CurrentCounts::default();
    }

    /// An employment is over.
    pub(super) fn forget(&self, key: &EmployerKey) {
        let mut current = self.current();
        current.employers.remove(key);
        current.oddities.remove(key);
        current.draining.retain(|(employer, _), _| employer != key);
    }

    /// Whether something odd about an employer has not been said yet.
    pub(super) fn is_new_oddity(&self, key: &EmployerKey, message: &str) -> bool {
        let mut current = self.current();
        let known = current.oddities.insert(key.clone(), message.to_owned());
        known.as_deref() != Some(message)
    }

    /// The operations on a pod, as its labels say; none where it is gone, or they are not ours.
    pub(super) fn operations(&self, name: &Name, pod: Option<&PodView>) {
        let found = pod.map(|pod| operations(&pod.labels)).unwrap_or_default();
        let mut current = self.current();
        let from = (name.clone(), String::new());
        let known: Vec<(Name, String)> = current
            .operations
            .range(from..)
            .take_while(|((pod, _), _)| pod == name)
            .map(|(key, _)| key.clone())
            .collect();
        let ended = |id: &String, stage: &str| !found.iter().any(|one| one.id == *id && one.stage == stage);
        for key in known {
            if let Some((stage, since)) = current.operations.get(&key).copied()
                && ended(&key.1, stage)
            {
                let took = Duration::from(now().since(since));
                self.stage_seconds.get_or_create(&StageLabel { stage }).observe(took.as_secs_f64());
                current.operations.remove(&key);
            }
        }
        for one in found {
            let since = one.since.unwrap_or_else(now);
            current.operations.insert((name.clone(), one.id), (one.stage, since));
        }
    }
}

/// What is read when it is asked for.
#[derive(Debug)]
struct CurrentCollector(Arc<Mutex<CurrentCounts>>);

impl Collector for CurrentCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> std::fmt::Result {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut by_ready: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        let mut by_state: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for (adapter, ready, states) in current.employers.values() {
            *by_ready.entry((adapter, if *ready { "true" } else { "false" })).or_default() += 1;
            for (state, count) in states {
                *by_state.entry((adapter, state)).or_default() += i64::try_from(*count).unwrap_or(i64::MAX);
            }
        }
        let mut stages: BTreeMap<&str, i64> = BTreeMap::new();
        let mut stuck = 0;
        let time = now();
        for (stage, since) in current.operations.values() {
            *stages.entry(stage).or_default() += 1;
            stuck += i64::from(Duration::from(time.since(*since)) > STUCK);
        }
        let gauge = ConstGauge::new(0_i64);
        let mut family = encoder.encode_descriptor(
            "linchpin_consist_employers",
            "Employers that are served",
            None,
            gauge.metric_type(),
        )?;
        for ((adapter, ready), count) in by_ready {
            let labels = [("adapter", adapter), ("ready", ready)];
            ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
        }
        let mut family = encoder.encode_descriptor(
            "linchpin_consist_employees",
            "Employees by their state",
            None,
            gauge.metric_type(),
        )?;
        for ((adapter, state), count) in by_state {
            let labels = [("adapter", adapter), ("state", state)];
            ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
        }
        let mut family = encoder.encode_descriptor(
            "linchpin_lifecycle_operations",
            "Operations on pods by their stage",
            None,
            gauge.metric_type(),
        )?;
        for (stage, count) in stages {
            ConstGauge::new(count).encode(family.encode_family(&[("stage", stage)])?)?;
        }
        let family = encoder.encode_descriptor(
            "linchpin_lifecycle_stuck",
            "Operations on pods that take longer than five minutes",
            None,
            gauge.metric_type(),
        )?;
        ConstGauge::new(stuck).encode(family)
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::PathBuf};

    use prometheus_client::encoding::text::encode;
    use serde_json::json;

    use super::*;

    /// Where what consist counts is told of on the page of metrics: its last part.
    const HEADING: &str = "\n## Of linchpin consist\n";

    /// Everything that is counted, after everything has happened once: name as it is queried, type and meaning.
    fn documented() -> String {
        let counts = ConsistCounts::default();
        let adapter = || AdapterLabel { adapter: "demo".to_owned() };
        counts.called("demo", "Look", true, Duration::ZERO);
        counts.answered("held");
        counts.left_behind();
        counts.drain_seconds.get_or_create(&adapter()).observe(1.0);
        counts.stage_seconds.get_or_create(&StageLabel { stage: "Operate" }).observe(1.0);
        let (mut registry, mut text) = (Registry::default(), String::new());
        counts.register(&mut registry);
        encode(&mut text, &registry).unwrap();
        let mut types = BTreeMap::new();
        let mut rows = BTreeMap::new();
        for line in text.lines() {
            match line.splitn(4, ' ').collect::<Vec<_>>().as_slice() {
                ["#", "TYPE", name, kind] => drop(types.insert((*name).to_owned(), (*kind).to_owned())),
                ["#", "HELP", name, help] => drop(rows.insert((*name).to_owned(), (*help).to_owned())),
                _ => {}
            }
        }
        let row = |(name, help): (&String, &String)| {
            let ending = if types[name] == "counter" { "_total" } else { "" };
            format!(
                "| `{name}{ending}` | {} | {} |\n",
                types[name],
                help.trim_end_matches('.').to_owned() + "."
            )
        };
        let rows: String = rows.iter().map(row).collect();
        format!(
            "\nThat process serves these beside those about leadership, connections and itself.\n\n\
             | metric | type | meaning |\n|---|---|---|\n{rows}"
        )
    }

    #[test]
    fn what_consist_counts_is_documented() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        let page = fs::read_to_string(&path).unwrap();
        let (before, stored) = page.split_once(HEADING).unwrap();
        let documented = documented();
        assert_eq!(documented.matches("| `linchpin_").count(), 10, "{documented}");
        if env::var_os("LINCHPIN_UPDATE").is_some() {
            fs::write(&path, format!("{before}{HEADING}{documented}")).unwrap();
            return;
        }
        assert!(stored == documented, "docs/metrics.md is out of date: make docs writes it\n{documented}");
    }

    #[test]
    fn the_operations_of_a_pod_that_is_gone_are_not_counted_for_ever() {
        let (counts, name) = (ConsistCounts::default(), ("shop".to_owned(), "web-1".to_owned()));
        let pod = PodView::of(&Arc::new(json!({"metadata": {"labels": {
            "operating.podopslifecycle.kusionstack.io/pod-delete": "1",
            "operate.podopslifecycle.kusionstack.io/pod-delete": "1"}}})));
        let stages = || counts.current().operations.values().map(|(stage, _)| *stage).collect::<Vec<_>>();
        counts.operations(&name, Some(&pod));
        assert_eq!(stages(), ["Operate"]);
        counts.operations(&name, None);
        assert!(stages().is_empty());
        counts.operations(&name, Some(&pod));
        counts.begin_anew();
        assert!(stages().is_empty(), "nor those of a term that ended");
    }
}
