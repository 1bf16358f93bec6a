//! Which kinds a cluster serves, kept true without polling.
//!
//! Everything is asked once (two requests). After that the metadata of `CustomResourceDefinitions` and `APIServices` is
//! watched, and a change of one asks for its group alone. A definition is there before its kind is served, and gone
//! before its kind is: such a group is asked again for a few seconds until both agree. After a lost connection
//! everything is asked again.
//!
//! [`Discovery::subscribe`] gives the newest [`Index`] and wakes whoever waits for a kind to appear. Where the
//! definitions may not be watched (a remote credential of few rights) the groups somebody misses are asked again
//! every 30 s instead.

mod fetch;
pub(crate) mod index;
mod schema;

use crate::{
    call::{self, Form, Resource, Url},
    discovery::index::Index,
    watch::{
        Counters, Features, Heed, Report, Select, Sink, Watched, clock::Clock, follow::Follower,
        interest::Interest,
    },
};
use kube::Client;
use linchpin_words::Gvk;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
};

/// Pauses between attempts to see a definition and its group agree: about ten seconds together.
const SETTLE: [u64; 11] = [10, 20, 40, 80, 160, 320, 640, 1_000, 2_000, 2_000, 4_000];
/// How often what is missed is asked for where nothing can be watched, and how often errors are retried at most.
const RETRY: Duration = Duration::from_secs(30);

/// What one cluster serves. Dropping it ends its watches.
pub(crate) struct Discovery {
    shared: Arc<Shared>,
    tasks: Vec<AbortHandle>,
}

/// The newest index; none before the first answer.
pub(crate) type Newest = Option<Arc<Index>>;

struct Shared {
    client: Client,
    newest: watch::Sender<Newest>,
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    /// Groups to ask for, and how often that was tried without agreement.
    dirty: BTreeMap<String, usize>,
    /// Whether everything is to be asked.
    all: bool,
    /// Names and versions of definitions.
    definitions: BTreeMap<String, u64>,
    /// Names of definitions that were deleted and whose kinds must therefore go.
    deleted: BTreeSet<String>,
    /// Whether definitions are known at all.
    watching: bool,
    /// What the schema of a definition at that version promises, by version of the kind.
    promises: BTreeMap<String, (u64, BTreeMap<String, bool>)>,
}

impl Drop for Discovery {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Discovery {
    /// Begins to ask and to watch, as whoever the clients act as.
    pub(crate) fn start(
        watches: &Client,
        reads: &Client,
        clock: &Arc<Clock>,
        counters: &Arc<Counters>,
    ) -> Self {
        let state = State { all: true, ..State::default() };
        let shared = Arc::new(Shared {
            client: reads.clone(),
            newest: watch::Sender::new(None),
            state: Mutex::new(state),
            wake: Notify::new(),
        });
        let mut tasks = vec![tokio::spawn(Arc::clone(&shared).refresh()).abort_handle()];
        for (source, kind) in [
            (Source::Definitions, Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition")),
            (Source::Services, Gvk::new("apiregistration.k8s.io", "v1", "APIService")),
        ] {
            let plural = format!("{}s", kind.kind.to_lowercase());
            let follower = Follower {
                client: watches.clone(),
                clock: Arc::clone(clock),
                features: Arc::new(Features::default()),
                counters: Arc::clone(counters),
                watched: Watched {
                    resource: Resource::new(kind, plural, false),
                    namespace: None,
                    select: Select::All,
                },
                seed: 0,
            };
            let listener = Listener { shared: Arc::clone(&shared), source, known: Mutex::default() };
            tasks.push(tokio::spawn(follow(follower, listener)).abort_handle());
        }
        Self { shared, tasks }
    }

    /// The newest index, and every later one.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Newest> {
        self.shared.newest.subscribe()
    }

    /// The newest index.
    pub(crate) fn newest(&self) -> Newest {
        self.shared.newest.borrow().clone()
    }

    /// Asks for a group again: somebody got a 404 where the index promised a kind, or misses one.
    pub(crate) fn invalidate(&self, group: &str) {
        self.shared.state().dirty.entry(group.to_owned()).or_insert(0);
        self.shared.wake.notify_one();
    }

    /// Whether the kind's schema promises conditions or an observed generation; none where there is no schema to see.
    pub(crate) async fn reports_status(&self, resource: &Resource) -> Option<bool> {
        let name = format!("{}.{}", resource.plural, resource.kind.group);
        let version = {
            let state = self.shared.state();
            let version = *state.definitions.get(&name)?;
            if let Some((known, promises)) = state.promises.get(&name)
                && *known == version
            {
                return promises.get(&resource.kind.version).copied();
            }
            version
        };
        let url = Url::new("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").segment(&name);
        let answer = call::call(&self.shared.client, call::get(&url, Form::Full).ok()?).await.ok()?;
        let promises = schema::promises(&answer.read::<Value>().ok()?);
        let promise = promises.get(&resource.kind.version).copied();
        self.shared.state().promises.insert(name, (version, promises));
        promise
    }
}

/// Follows one source for ever; a server that does not know it at all is asked again now and then.
async fn follow(follower: Follower, listener: Listener) {
    let (_keep, mut never) = watch::channel(0);
    loop {
        follower.run(&listener, &mut never).await;
        tokio::time::sleep(RETRY).await;
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for what is dirty, for ever.
    async fn refresh(self: Arc<Self>) {
        let mut failures = 0u32;
        loop {
            let (all, dirty, watching) = {
                let mut state = self.state();
                (std::mem::take(&mut state.all), std::mem::take(&mut state.dirty), state.watching)
            };
            if !all && dirty.is_empty() {
                let waited = tokio::time::timeout(RETRY, self.wake.notified()).await;
                if waited.is_err() && !watching {
                    self.state().all = true;
                }
                continue;
            }
            let outcome = if all { self.ask_everything().await } else { Ok(()) };
            let outcome = match outcome {
                Ok(()) => self.ask_groups(&dirty).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(pause) => {
                    failures = 0;
                    if let Some(pause) = pause {
                        let _ = tokio::time::timeout(pause, self.wake.notified()).await;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "discovery failed");
                    self.put_back(all, dirty);
                    failures = failures.saturating_add(1);
                    let pause = Duration::from_millis(50 << failures.min(10)).min(RETRY);
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// What could not be asked stays to be asked.
    fn put_back(&self, all: bool, dirty: BTreeMap<String, usize>) {
        let mut state = self.state();
        state.all |= all;
        for (group, tries) in dirty {
            state.dirty.entry(group).or_insert(tries);
        }
    }

    async fn ask_everything(&self) -> Result<(), call::CallError> {
        let mut fresh = fetch::everything(&self.client).await?;
        let old = self.newest.borrow().clone();
        if let Some(old) = old {
            // A server that has just started does not serve everything yet: what vanished is asked for by name.
            let vanished: Vec<&str> = old.names().filter(|name| fresh.group(name).is_none()).collect();
            for name in vanished {
                fresh = fresh.with(name, old.group(name).cloned());
                self.state().dirty.entry(name.to_owned()).or_insert(0);
            }
        }
        self.look_again_at_what_is_behind(&fresh);
        self.publish(fresh);
        Ok(())
    }

    /// What is defined but not served yet is asked for by name: a definition may be seen before the first answer, and
    /// be served only after it.
    fn look_again_at_what_is_behind(&self, index: &Index) {
        let mut state = self.state();
        let names = state.definitions.keys().filter_map(|name| name.split_once('.'));
        let behind: BTreeSet<String> = names
            .filter(|(plural, group)| !index.serves_plural(group, plural))
            .map(|(_, group)| group.to_owned())
            .collect();
        for group in behind {
            state.dirty.entry(group).or_insert(0);
        }
    }

    /// Asks for single groups. The pause after which those that do not agree yet are worth another look.
    async fn ask_groups(&self, dirty: &BTreeMap<String, usize>) -> Result<Option<Duration>, call::CallError> {
        let mut soonest: Option<Duration> = None;
        for (name, tries) in dirty {
            let group = fetch::one(&self.client, name).await?;
            let old = self.newest.borrow().clone().unwrap_or_default();
            let fresh = old.with(name, group);
            let agrees = self.agrees(name, &fresh);
            let last = SETTLE.get(*tries).copied();
            // What is defined and was served is not taken away on the word of a server that has just started.
            if agrees || last.is_none() || fresh.group(name).is_some() {
                self.publish(fresh);
            }
            if agrees || last.is_none() {
                let is_of =
                    |definition: &String| definition.split_once('.').is_some_and(|(_, of)| of == name);
                self.state().deleted.retain(|definition| !is_of(definition));
            }
            if let (false, Some(pause)) = (agrees, last) {
                self.state().dirty.entry(name.clone()).or_insert(tries + 1);
                let pause = Duration::from_millis(pause);
                soonest = Some(soonest.map_or(pause, |other| other.min(pause)));
            }
        }
        Ok(soonest)
    }

    /// Whether all kinds of a group that are defined are served, and none whose definition was deleted.
    fn agrees(&self, group: &str, index: &Index) -> bool {
        let state = self.state();
        if !state.watching {
            return true;
        }
        let defined: BTreeSet<&str> = state
            .definitions
            .keys()
            .filter_map(|name| name.split_once('.'))
            .filter_map(|(plural, of)| (of == group).then_some(plural))
            .collect();
        let lingers = state
            .deleted
            .iter()
            .filter_map(|name| name.split_once('.'))
            .any(|(plural, of)| of == group && index.serves_plural(group, plural));
        let missing = defined.iter().any(|plural| !index.serves_plural(group, plural));
        !missing && !lingers
    }

    fn publish(&self, fresh: Index) {
        self.newest.send_if_modified(|newest| {
            let changed = newest.as_deref() != Some(&fresh);
            if changed {
                *newest = Some(Arc::new(fresh));
            }
            changed
        });
    }
}

/// Where news of kinds come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// `CustomResourceDefinitions`, named `plural.group`.
    Definitions,
    /// `APIServices`, named `version.group`.
    Services,
}

struct Listener {
    shared: Arc<Shared>,
    source: Source,
    known: Mutex<Option<BTreeMap<String, u64>>>,
}

impl Listener {
    fn touch(&self, name: &str) {
        let Some((_, group)) = name.split_once('.') else { return };
        self.shared.state().dirty.insert(group.to_owned(), 0);
        self.shared.wake.notify_one();
    }

    fn note(&self, change: impl FnOnce(&mut BTreeMap<String, u64>)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        change(known);
        if self.source == Source::Definitions {
            let mut state = self.shared.state();
            state.definitions.clone_from(known);
            state.watching = true;
        }
    }

    /// Compares a snapshot with what was known; before the first one, with what is served.
    fn snapshot(&self, fresh: &BTreeMap<String, u64>) {
        let old = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.note(|known| known.clone_from(fresh));
        match old {
            Some(old) => {
                let names: BTreeSet<&String> = old.keys().chain(fresh.keys()).collect();
                for name in names.into_iter().filter(|name| old.get(*name) != fresh.get(*name)) {
                    self.touch(name);
                }
                // The connection was down in between: the server may be another one.
                self.shared.state().all = true;
                self.shared.wake.notify_one();
            }
            None if self.source == Source::Definitions => {
                let Some(index) = self.shared.newest.borrow().clone() else { return };
                for name in fresh.keys() {
                    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
                    if !index.serves_plural(group, plural) {
                        self.touch(name);
                    }
                }
            }
            None => {}
        }
    }
}

impl Sink for Listener {
    fn is_metadata(&self) -> bool {
        true
    }

    fn interest(&self, _name: &str) -> Option<Arc<Interest>> {
        Some(Arc::default())
    }

    fn report(&self, report: Report) -> Heed {
        match report {
            Report::Snapshot { items, .. } => {
                self.snapshot(&items.into_iter().map(|item| (item.name, item.version)).collect());
            }
            Report::Changed(item) => {
                self.note(|known| {
                    known.insert(item.name.clone(), item.version);
                });
                self.shared.state().deleted.remove(&item.name);
                self.touch(&item.name);
            }
            Report::Gone { name, .. } => {
                self.note(|known| {
                    known.remove(&name);
                });
                if self.source == Source::Definitions {
                    self.shared.state().deleted.insert(name.clone());
                }
                self.touch(&name);
            }
            Report::Live => {
                self.shared.state().all = true;
                self.shared.wake.notify_one();
            }
            Report::Forbidden(error) => {
                tracing::debug!(?self.source, %error, "definitions cannot be watched: kinds are asked for now and then");
                self.shared.state().watching = false;
            }
            Report::Looking | Report::Passed { .. } | Report::Reached(_) | Report::Lost { .. } => {}
        }
        Heed::Noted
    }
}
