//! A small fake of Porch: its kinds as definitions in the shape of the real ones, and its controllers as a thread.
//!
//! Porch itself cannot run in tests. [`install`] makes its kinds known, in either [`RevisionShape`] of
//! `upstream.revision`; [`Porch`] then plays, in one namespace, the controller of PackageVariants (draft, proposal and
//! publication of a downstream revision, its finalizer, its conditions), an approver, and a creator of the objects of
//! published packages (`deployer`), Deployments with a status that says they are available. Drafts are approved at once
//! unless [`Porch::hold`] is asked for.

mod controller;
mod definitions;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::{Value, json};

pub use self::definitions::{RevisionShape, install, remove};
use crate::Api;

/// How long the fake sleeps between two looks at everything.
const PAUSE: Duration = Duration::from_millis(50);

/// Porch in one namespace. It ends when it is dropped.
pub struct Porch {
    api: Api,
    namespace: String,
    signals: Arc<Signals>,
    thread: Option<JoinHandle<()>>,
}

/// The signals to the thread.
#[derive(Default)]
struct Signals {
    ended: AtomicBool,
    held: AtomicBool,
}

impl Porch {
    /// Begins to play Porch in a namespace.
    pub fn begin(api: &Api, namespace: &str) -> Self {
        let signals = Arc::new(Signals::default());
        let porch = controller::PorchController { api: api.clone(), namespace: namespace.to_owned() };
        let watched = Arc::clone(&signals);
        let thread = thread::spawn(move || {
            while !watched.ended.load(Ordering::Relaxed) {
                porch.look(!watched.held.load(Ordering::Relaxed));
                thread::sleep(PAUSE);
            }
        });
        Self { api: api.clone(), namespace: namespace.to_owned(), signals, thread: Some(thread) }
    }

    /// Lets drafts wait for approval, or no longer.
    pub fn hold(&self, held: bool) {
        self.signals.held.store(held, Ordering::Relaxed);
    }

    /// Registers a Repository that is ready.
    pub fn repository(&self, name: &str) {
        let object = json!({"apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "Repository",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"type": "git", "git": {"repo": format!("https://git.example.com/{name}.git")}}});
        self.api.apply(&object).unwrap();
        let status = json!({"status": {"conditions": [controller::condition("Ready", "True", "Ready", "")]}});
        self.api.merge("Repository", &self.namespace, name, "/status", &status).unwrap();
    }

    /// Publishes a revision of a package: `v1` in a workspace of that name, with these files.
    pub fn publish(&self, repository: &str, package: &str, number: u64, files: &Value) {
        controller::PorchController { api: self.api.clone(), namespace: self.namespace.clone() }
            .publish(repository, package, number, files);
    }

    /// The PackageVariants there are.
    pub fn variants(&self) -> Vec<Value> {
        self.api.list("PackageVariant", &self.namespace)
    }

    /// The names of the revisions of a package, with what has become of each.
    pub fn revisions(&self, repository: &str, package: &str) -> Vec<(String, String)> {
        let of =
            |one: &&Value| one["spec"]["repository"] == repository && one["spec"]["packageName"] == package;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let all = self.api.list("PackageRevision", &self.namespace);
        all.iter()
            .filter(of)
            .map(|one| (text(&one["metadata"]["name"]), text(&one["spec"]["lifecycle"])))
            .collect()
    }
}

impl Drop for Porch {
    fn drop(&mut self) {
        self.signals.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that failed has said so already.
            let _ = thread.join();
        }
    }
}
