//! What Prometheus scrapes.
//!
//! Gauges about the process itself are read when they are asked for and cannot be stale: in particular
//! `linchpin_leader` is 1 only while a write would be let through at that very moment. Other parts register their own
//! metrics through [`Metrics::register`]; labels must be bounded (kinds and outcomes, never names of objects).

use crate::process::ProcessUsage;
use linchpin_cluster::{
    lease::{BootInstant, Leadership},
    transport::{Reachability, Transport},
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text::encode},
    metrics::{counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::Registry,
};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

/// The content type of the text format.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of the process. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
}

impl Metrics {
    /// Build information and everything that can be read off the process, its leadership and its transport.
    pub fn new(commit: Option<&str>, leadership: watch::Receiver<Leadership>, transport: Transport) -> Self {
        let mut registry = Registry::default();
        let build = Info::new(vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("commit", commit.unwrap_or("unknown").to_owned()),
        ]);
        registry.register("linchpin_build", "The program that runs", build);
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |age| age.as_secs_f64());
        registry.register_collector(Box::new(Observed { leadership, transport, started }));
        Self { registry: Arc::new(Mutex::new(registry)) }
    }

    /// Lets another part add its own metrics.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The text that is scraped.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry.lock().unwrap_or_else(PoisonError::into_inner))?;
        Ok(text)
    }
}

struct Observed {
    leadership: watch::Receiver<Leadership>,
    transport: Transport,
    started: f64,
}

impl fmt::Debug for Observed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Observed").finish_non_exhaustive()
    }
}

impl Collector for Observed {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let term = self.leadership.borrow().term(BootInstant::now());
        let reachable = matches!(self.transport.reach().now(), Reachability::Answering);
        let streams = self.transport.statistics();
        let usage = ProcessUsage::now();
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let epoch = term.map_or(-1, |epoch| i64::try_from(epoch.0).unwrap_or(i64::MAX));
        for (name, help, value) in [
            ("linchpin_leader", "1 while this process leads and may write", i64::from(term.is_some())),
            ("linchpin_lease_epoch", "The number of the term led, -1 while on standby", epoch),
            (
                "linchpin_api_reachable",
                "1 if the last request to the API server was answered",
                i64::from(reachable),
            ),
            ("linchpin_watch_connections", "Open HTTP/2 connections for watches", count(streams.connections)),
            ("linchpin_watch_streams", "Requests living on them", count(streams.streams)),
            ("process_resident_memory_bytes", "Memory in use", usage.resident_bytes),
            ("process_open_fds", "Open files", usage.open_files),
            ("process_threads", "Threads", usage.threads),
        ] {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let started = ConstGauge::new(self.started);
        let help = "When the process started, in seconds since 1970";
        started.encode(encoder.encode_descriptor(
            "process_start_time_seconds",
            help,
            None,
            started.metric_type(),
        )?)?;
        let forbidden = ConstCounter::new(self.transport.reach().forbidden());
        forbidden.encode(encoder.encode_descriptor(
            "linchpin_api_forbidden",
            "Requests of our own, in nobody else's name, that the API server forbade",
            None,
            forbidden.metric_type(),
        )?)?;
        let cpu = ConstCounter::new(usage.cpu_seconds);
        cpu.encode(encoder.encode_descriptor(
            "process_cpu_seconds",
            "CPU time used",
            None,
            cpu.metric_type(),
        )?)
    }
}
