//! What the controller counts, with bounded labels: kinds of things and of outcomes, never names of objects.

use std::{fmt, sync::Arc, time::Duration};

use linchpin_cluster::{hub::Hub, own::OwnWriteError};
use linchpin_engine::{
    contract::{Effect, Failure, Outcome},
    step::Phase,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::{ConstGauge, Gauge},
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabel {
    verb: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: String,
}

/// What is counted. Clones count together.
#[derive(Clone)]
pub(super) struct Telemetry(Arc<Counts>);

struct Counts {
    objects: Gauge,
    phases: Family<PhaseLabel, Gauge>,
    failed: Family<KindLabel, Gauge>,
    turns: Histogram,
    effects: Family<VerbLabel, Counter>,
    outcomes: Family<OutcomeLabel, Counter>,
    status_writes: Family<OutcomeLabel, Counter>,
    left_behind: Counter,
}

impl Telemetry {
    /// Registers everything, the hub's own figures too.
    pub(super) fn register(registry: &mut Registry, hub: Hub) -> Self {
        let counts = Counts {
            objects: Gauge::default(),
            phases: Family::default(),
            failed: Family::default(),
            turns: Histogram::new(exponential_buckets(0.000_01, 4.0, 9)),
            effects: Family::default(),
            outcomes: Family::default(),
            status_writes: Family::default(),
            left_behind: Counter::default(),
        };
        registry.register(
            "linchpin_objects",
            "Objects of ours that are looked after",
            counts.objects.clone(),
        );
        registry.register("linchpin_objects_by_phase", "The same, by phase", counts.phases.clone());
        registry.register(
            "linchpin_objects_failed",
            "Those that cannot go on without somebody, by kind",
            counts.failed.clone(),
        );
        registry.register("linchpin_turn_seconds", "Time one decision takes", counts.turns.clone());
        registry.register("linchpin_effects", "Changes that were ordered", counts.effects.clone());
        registry.register("linchpin_outcomes", "How they came back", counts.outcomes.clone());
        registry.register(
            "linchpin_status_writes",
            "Writes of our objects' status",
            counts.status_writes.clone(),
        );
        registry.register(
            "linchpin_left_behind",
            "Objects that could not be deleted with the object that made them",
            counts.left_behind.clone(),
        );
        registry.register_collector(Box::new(HubFigures(hub)));
        Self(Arc::new(counts))
    }

    pub(super) fn objects(&self, count: usize) {
        self.0.objects.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// An object of a kind has another phase.
    pub(super) fn phase(&self, kind: &str, before: Option<Phase>, after: Phase) {
        self.forget(kind, before);
        self.0.phases.get_or_create(&PhaseLabel { phase: after.as_str() }).inc();
        if after == Phase::Failed {
            self.0.failed.get_or_create(&KindLabel { kind: kind.to_owned() }).inc();
        }
    }

    /// An object is no longer looked after, or no longer in its last phase.
    pub(super) fn forget(&self, kind: &str, last: Option<Phase>) {
        let Some(last) = last else { return };
        self.0.phases.get_or_create(&PhaseLabel { phase: last.as_str() }).dec();
        if last == Phase::Failed {
            self.0.failed.get_or_create(&KindLabel { kind: kind.to_owned() }).dec();
        }
    }

    /// A term begins: nothing is looked after yet.
    pub(super) fn begin(&self) {
        self.0.objects.set(0);
        self.0.phases.clear();
        self.0.failed.clear();
    }

    pub(super) fn turn(&self, took: Duration) {
        self.0.turns.observe(took.as_secs_f64());
    }

    pub(super) fn effects(&self, effects: &[Effect]) {
        for effect in effects {
            self.0.effects.get_or_create(&VerbLabel { verb: effect.verb.word() }).inc();
        }
    }

    pub(super) fn outcome(&self, outcome: &Outcome) {
        let outcome = outcome.result.as_ref().map_or_else(Failure::word, |_| "done");
        self.0.outcomes.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(super) fn saved(&self, result: &Result<String, OwnWriteError>) {
        let outcome = match result {
            Ok(_) => "done",
            Err(OwnWriteError::Conflict) => "conflict",
            Err(OwnWriteError::Gone) => "gone",
            Err(OwnWriteError::Refused(_)) => "refused",
            Err(OwnWriteError::Passing(_)) => "transient",
        };
        self.0.status_writes.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(super) fn left_behind(&self) {
        self.0.left_behind.inc();
    }
}

/// The hub's figures, read when they are asked for.
struct HubFigures(Hub);

impl fmt::Debug for HubFigures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HubFigures").finish_non_exhaustive()
    }
}

impl Collector for HubFigures {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let figures = self.0.metrics();
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let many = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        for (name, help, value) in [
            (
                "linchpin_hub_questions",
                "Different questions that objects of ours ask",
                count(figures.questions),
            ),
            ("linchpin_hub_watches", "Open watches", count(figures.watches)),
            ("linchpin_hub_wide_watches", "Those that watch a whole namespace", count(figures.wide_watches)),
            ("linchpin_hub_objects", "Observed objects that are kept", count(figures.objects)),
            ("linchpin_hub_received_bytes", "Bytes received by watches", many(figures.bytes)),
            ("linchpin_hub_received_events", "Changes received by watches", many(figures.events)),
            ("linchpin_hub_lists", "First states read", many(figures.lists)),
            ("linchpin_hub_watch_requests", "Watch requests made", many(figures.watch_requests)),
            (
                "linchpin_hub_rewinds",
                "Times a store was found to have gone back in time",
                many(figures.rewinds),
            ),
        ] {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}
