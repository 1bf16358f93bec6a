//! The observer: one watch that notes when each object was first seen as it should be. The same for both sides.

use anyhow::{Context as _, Result};
use futures::StreamExt;
use kube::{
    Api, Resource,
    runtime::watcher::{self, Event},
};
use serde::de::DeserializeOwned;
use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::JoinHandle};

use crate::arena::Arena;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(3);

/// What was seen, and when.
pub(crate) struct Sightings {
    seen: Arc<Mutex<BTreeMap<String, Instant>>>,
    count: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Sightings {
    /// Begins to look for the ConfigMaps of a namespace; returns when what was there before has been seen.
    pub(crate) async fn of(arena: &Arena, namespace: &str) -> Result<Self> {
        Self::watching(arena.config_maps(namespace), |_| true).await
    }

    /// Begins to look for objects that are as they should be.
    pub(crate) async fn watching<K>(api: Api<K>, is_it: impl Fn(&K) -> bool + Send + 'static) -> Result<Self>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let seen: Arc<Mutex<BTreeMap<String, Instant>>> = Arc::default();
        let (counted, count) = watch::channel(0);
        let (ready, begun) = tokio::sync::oneshot::channel();
        let noted = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut events = watcher::watcher(api, watcher::Config::default()).boxed();
            let mut ready = Some(ready);
            while let Some(event) = events.next().await {
                let now = Instant::now();
                match event {
                    Ok(Event::Apply(object) | Event::InitApply(object)) if is_it(&object) => {
                        let mut seen = noted.lock().unwrap_or_else(PoisonError::into_inner);
                        seen.entry(object.meta().name.clone().unwrap_or_default()).or_insert(now);
                        counted.send_replace(seen.len());
                    }
                    Ok(Event::InitDone) => drop(ready.take().map(|ready| ready.send(()))),
                    Ok(_) => {}
                    Err(error) => crate::say(&format!("the observer's watch: {error}")),
                }
            }
        });
        begun.await.context("the observer's watch ended")?;
        Ok(Self { seen, count, task })
    }

    /// When this one was first seen; waits for it.
    pub(crate) async fn when(&self, name: &str) -> Result<Instant> {
        let mut count = self.count.clone();
        let look = async {
            loop {
                count.borrow_and_update();
                let found = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied();
                if let Some(found) = found {
                    return Ok(found);
                }
                count.changed().await?;
            }
        };
        tokio::time::timeout(PATIENCE, look).await.with_context(|| format!("{name} never appeared"))?
    }

    /// When the last of these was first seen.
    pub(crate) async fn when_all(&self, names: &[String]) -> Result<Instant> {
        let mut last = Instant::now().checked_sub(PATIENCE).unwrap_or_else(Instant::now);
        for name in names {
            last = last.max(self.when(name).await?);
        }
        Ok(last)
    }
}

impl Drop for Sightings {
    fn drop(&mut self) {
        self.task.abort();
    }
}
