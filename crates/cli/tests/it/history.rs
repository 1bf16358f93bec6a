//! The independent witness: every version of a Lease as the API server showed it, and when.

use futures::TryStreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{WatchEvent, WatchParams},
};
use linchpin_cluster::{
    config,
    transport::{Transport, TransportOptions},
};
use std::{
    path::Path,
    pin::pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) seen: Instant,
    pub(crate) holder: Option<String>,
    pub(crate) transitions: i32,
}

/// Records until dropped.
pub(crate) struct History {
    entries: Arc<Mutex<Vec<Entry>>>,
    _runtime: Runtime,
}

impl History {
    pub(crate) fn of(kubeconfig: &Path, lease: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = Runtime::new().unwrap();
        let entries = Arc::new(Mutex::new(Vec::new()));
        let (kubeconfig, lease, found) = (kubeconfig.to_owned(), lease.to_owned(), Arc::clone(&entries));
        runtime.spawn(async move {
            let config = config::load(Some(&kubeconfig), None).await.unwrap();
            let client = Transport::new(&config, &TransportOptions::default()).unwrap().watches(None);
            let api: Api<Lease> = Api::namespaced(client, "default");
            let parameters = WatchParams::default().fields(&format!("metadata.name={lease}"));
            let mut events = pin!(api.watch(&parameters, "0").await.unwrap());
            while let Some(event) = events.try_next().await.unwrap() {
                if let WatchEvent::Added(lease) | WatchEvent::Modified(lease) = event {
                    let spec = lease.spec.unwrap();
                    found.lock().unwrap().push(Entry {
                        seen: Instant::now(),
                        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
                        transitions: spec.lease_transitions.unwrap_or(0),
                    });
                }
            }
        });
        Self { entries, _runtime: runtime }
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    /// Checks what must be true of every history: the count of terms grows by one with each change of holder and
    /// never otherwise, and a Lease that was not released is taken only after it stood still for its duration.
    #[track_caller]
    pub(crate) fn check(&self, duration: Duration) {
        // Events may arrive a little late or early against each other.
        let tolerance = Duration::from_millis(500);
        for pair in self.entries().windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let taken = after.holder.is_some() && after.holder != before.holder;
            assert_eq!(after.transitions - before.transitions, i32::from(taken), "{before:?} {after:?}");
            if taken && before.holder.is_some() {
                let stood = after.seen.duration_since(before.seen);
                assert!(stood + tolerance >= duration, "taken after {stood:?}: {before:?} {after:?}");
            }
        }
    }
}
