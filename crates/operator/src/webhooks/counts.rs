//! What the webhooks count.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    webhook: &'static str,
    outcome: &'static str,
}

/// From what an answer takes out of memory to what the API server waits for one.
const BUCKETS: [f64; 12] = [0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.2, 0.5, 2.0];

/// Requests by webhook and outcome, and how long they took. Clones count together.
#[derive(Clone)]
pub(super) struct WebhookCounts {
    requests: Family<RequestLabels, Counter>,
    seconds: Histogram,
}

impl Default for WebhookCounts {
    fn default() -> Self {
        Self { requests: Family::default(), seconds: Histogram::new(BUCKETS) }
    }
}

impl WebhookCounts {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("linchpin_webhook_requests", "Admission requests", self.requests.clone());
        registry.register("linchpin_webhook_seconds", "Time one takes to answer", self.seconds.clone());
    }

    pub(super) fn answered(&self, webhook: &'static str, outcome: &'static str, took: Duration) {
        self.requests.get_or_create(&RequestLabels { webhook, outcome }).inc();
        self.seconds.observe(took.as_secs_f64());
    }
}
