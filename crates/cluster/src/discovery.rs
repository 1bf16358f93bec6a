//! Which kinds a cluster serves, kept true without polling.
//!
//! Everything is asked once (two requests). After that the metadata of `CustomResourceDefinitions` and `APIServices` is
//! watched, and a change of one asks for its group alone. A definition is there before its kind is served, and gone
//! before its kind is: such a group is asked again for a few seconds until both agree. After a lost connection
//! everything is asked again.
//!
//! Groups are independent of each other: one whose server does not answer keeps what was last known of it, is asked
//! again with pauses of its own, and delays no other.
//!
//! [`Discovery::subscribe`] gives the newest [`KindIndex`] and wakes those who wait for a kind to appear. Where the
//! definitions may not be watched (a remote credential of few rights) the groups somebody misses are asked again
//! every 30 s instead.

mod fetch;
pub(crate) mod index;
mod listener;
mod schema;

use crate::{
    call::{self, ApiUrl, Form, Resource},
    discovery::index::{GroupVersions, KindIndex},
    watch::{Counters, Features, WatchSelect, WatchTarget, clock::VersionClock, follow::Follower},
};
use futures::{StreamExt, stream::FuturesUnordered};
use kube::Client;
use linchpin_words::{Gvk, kind::group_problem, limits};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
};

use self::listener::{KindListener, KindSource};

/// Pauses between attempts to see a definition and its group agree: about ten seconds together.
const SETTLE: [u64; 11] = [10, 20, 40, 80, 160, 320, 640, 1_000, 2_000, 2_000, 4_000];
/// How often what is missed is asked for where nothing can be watched, and how often errors are retried at most.
const RETRY: Duration = Duration::from_secs(30);

/// How many groups are asked at a time.
const AT_A_TIME: usize = 8;

/// What one cluster serves. Dropping it ends its watches.
pub(crate) struct Discovery {
    shared: Arc<Shared>,
    tasks: Vec<AbortHandle>,
}

/// The newest index; none before the first answer.
pub(crate) type Newest = Option<Arc<KindIndex>>;

struct Shared {
    client: Client,
    newest: watch::Sender<Newest>,
    state: Mutex<DiscoveryState>,
    wake: Notify,
}

#[derive(Default)]
struct DiscoveryState {
    /// Groups to ask for.
    dirty: BTreeMap<String, Ask>,
    /// Since when everything is to be asked, or from when on after a failure.
    all: Option<Instant>,
    /// Why everything could not be asked the last time.
    trouble: Option<String>,
    /// Names and versions of definitions.
    definitions: BTreeMap<String, u64>,
    /// Names of definitions that were deleted and whose kinds must therefore go.
    deleted: BTreeSet<String>,
    /// Whether definitions are known at all.
    watching: bool,
    /// What the schema of a definition at that version promises, by version of the kind.
    promises: BTreeMap<String, (u64, BTreeMap<String, bool>)>,
}

/// A group to ask for.
#[derive(Clone, Copy, Debug)]
struct Ask {
    /// How often it answered without agreeing with its definitions.
    tries: usize,
    /// How often it did not answer.
    failures: u32,
    /// Not before.
    due: Instant,
}

impl Ask {
    fn now() -> Self {
        Self { tries: 0, failures: 0, due: Instant::now() }
    }

    /// It did not answer: later.
    fn failed(self) -> Self {
        let failures = self.failures.saturating_add(1);
        Self { failures, due: Instant::now() + patience(failures), ..self }
    }
}

/// The pause after so many failures in a row.
fn patience(failures: u32) -> Duration {
    Duration::from_millis(50 << failures.min(10)).min(RETRY)
}

/// What a server serves, asked once: for tools, which follow nothing.
pub async fn served(client: &Client) -> Result<KindIndex, String> {
    let found = fetch::everything(client).await.map_err(|error| error.to_string())?;
    Ok(found.index)
}

impl Drop for Discovery {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Discovery {
    /// Begins to ask and to watch, as the identity of the clients.
    pub(crate) fn start(
        watches: &Client,
        reads: &Client,
        clock: &Arc<VersionClock>,
        features: &Arc<Features>,
        counters: &Arc<Counters>,
    ) -> Self {
        let state = DiscoveryState { all: Some(Instant::now()), ..DiscoveryState::default() };
        let shared = Arc::new(Shared {
            client: reads.clone(),
            newest: watch::Sender::new(None),
            state: Mutex::new(state),
            wake: Notify::new(),
        });
        let mut tasks = vec![tokio::spawn(Arc::clone(&shared).refresh()).abort_handle()];
        for (source, kind) in [
            (KindSource::Definitions, Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition")),
            (KindSource::Services, Gvk::new("apiregistration.k8s.io", "v1", "APIService")),
        ] {
            let plural = format!("{}s", kind.kind.to_lowercase());
            let follower = Follower {
                client: watches.clone(),
                clock: Arc::clone(clock),
                features: Arc::clone(features),
                counters: Arc::clone(counters),
                watched: WatchTarget {
                    resource: Resource::new(kind, plural, false),
                    namespace: None,
                    select: WatchSelect::All,
                },
                asker: String::new(),
                seed: 0,
            };
            let listener = KindListener { shared: Arc::clone(&shared), source, known: Mutex::default() };
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

    /// Why it is not known what is served, if asking failed.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.shared.state().trouble.clone()
    }

    /// Asks for a group again: somebody got a 404 where the index promised a kind, or misses one.
    pub(crate) fn invalidate(&self, group: &str) {
        if group_problem(group).is_some() {
            return;
        }
        let mut state = self.shared.state();
        if state.dirty.len() < limits::MISSED_GROUPS {
            state.dirty.entry(group.to_owned()).or_insert_with(Ask::now);
        }
        drop(state);
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
        let url = ApiUrl::new("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").segment(&name);
        let answer = call::call(&self.shared.client, call::get(&url, Form::Full).ok()?).await.ok()?;
        let promises = schema::promises(&answer.read::<Value>().ok()?);
        let promise = promises.get(&resource.kind.version).copied();
        self.shared.state().promises.insert(name, (version, promises));
        promise
    }
}

/// Follows one source for ever; a server that does not know it at all is asked again now and then.
async fn follow(follower: Follower, listener: KindListener) {
    let (_keep, mut never) = watch::channel(0);
    loop {
        follower.run(&listener, &mut never).await;
        tokio::time::sleep(RETRY).await;
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, DiscoveryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for what is to be asked, for ever. Groups are asked beside each other, a few at a time.
    async fn refresh(self: Arc<Self>) {
        let mut failures = 0u32;
        let mut asked_all = Instant::now();
        let mut asking: BTreeSet<String> = BTreeSet::new();
        let mut answers = FuturesUnordered::new();
        loop {
            let due = self.state().all.is_some_and(|due| due <= Instant::now());
            if due {
                asked_all = Instant::now();
                self.state().all = None;
                match self.ask_everything().await {
                    Ok(()) => {
                        failures = 0;
                        self.state().trouble = None;
                    }
                    Err(error) => {
                        tracing::debug!(%error, "discovery failed");
                        failures = failures.saturating_add(1);
                        let mut state = self.state();
                        state.all = Some(Instant::now() + patience(failures));
                        state.trouble = Some(error.to_string());
                    }
                }
            }
            // Before the first answer a single group would pass for all that is served.
            if self.newest.borrow().is_some() {
                for (name, ask) in self.due_groups(&asking, AT_A_TIME.saturating_sub(asking.len())) {
                    asking.insert(name.clone());
                    let client = self.client.clone();
                    answers.push(async move { (fetch::one(&client, &name).await, name, ask) });
                }
            }
            let wake = self.next_ask(&asking, asked_all);
            tokio::select! {
                Some((answer, name, ask)) = answers.next(), if !answers.is_empty() => {
                    asking.remove(&name);
                    self.answered(&name, ask, answer);
                }
                () = self.wake.notified() => {}
                () = tokio::time::sleep_until(wake.into()) => {
                    let mut state = self.state();
                    if !state.watching && asked_all.elapsed() >= RETRY {
                        state.all.get_or_insert_with(Instant::now);
                    }
                }
            }
        }
    }

    /// Takes groups whose time has come, and that are not being asked.
    fn due_groups(&self, asking: &BTreeSet<String>, most: usize) -> Vec<(String, Ask)> {
        let now = Instant::now();
        let mut state = self.state();
        let due = |(name, ask): &(&String, &Ask)| ask.due <= now && !asking.contains(*name);
        let names: Vec<String> =
            state.dirty.iter().filter(due).take(most).map(|(name, _)| name.clone()).collect();
        names.into_iter().filter_map(|name| state.dirty.remove(&name).map(|ask| (name, ask))).collect()
    }

    /// When to look again at what is to be asked.
    fn next_ask(&self, asking: &BTreeSet<String>, asked_all: Instant) -> Instant {
        let state = self.state();
        let waiting = state.dirty.iter().filter(|(name, _)| !asking.contains(*name));
        // With all places taken the next answer is what to wait for.
        let groups = waiting.map(|(_, ask)| ask.due).filter(|_| asking.len() < AT_A_TIME).min();
        let idle = if state.watching { Instant::now() } else { asked_all } + RETRY;
        [groups, state.all].into_iter().flatten().fold(idle, Instant::min)
    }

    async fn ask_everything(&self) -> Result<(), call::CallError> {
        let fetch::ServedGroups { index: mut fresh, silent } = fetch::everything(&self.client).await?;
        let old = self.newest.borrow().clone().unwrap_or_default();
        // A server that has just started does not serve everything yet, and one that does not answer says nothing: what
        // vanished or is silent is kept as it was and asked for by name.
        let vanished = old.names().filter(|name| fresh.group(name).is_none());
        let kept: BTreeSet<String> = vanished.map(str::to_owned).chain(silent).collect();
        for name in kept {
            if let Some(group) = old.group(&name) {
                fresh = fresh.with(&name, Some(group.clone()));
            }
            self.state().dirty.entry(name).or_insert_with(Ask::now);
        }
        self.look_again_at_what_is_behind(&fresh);
        self.publish(fresh);
        Ok(())
    }

    /// What is defined but not served yet is asked for by name: a definition may be seen before the first answer, and
    /// be served only after it.
    fn look_again_at_what_is_behind(&self, index: &KindIndex) {
        let mut state = self.state();
        let names = state.definitions.keys().filter_map(|name| name.split_once('.'));
        let behind: BTreeSet<String> = names
            .filter(|(plural, group)| !index.serves_plural(group, plural))
            .map(|(_, group)| group.to_owned())
            .collect();
        for group in behind {
            state.dirty.entry(group).or_insert_with(Ask::now);
        }
    }

    /// Takes in the answer of one group. One that does not agree with its definitions yet is worth another look.
    fn answered(&self, name: &str, ask: Ask, answer: Result<Option<GroupVersions>, call::CallError>) {
        let group = match answer {
            Ok(group) => group,
            Err(error) => {
                tracing::debug!(group = name, %error, "a group does not say what it serves");
                self.state().dirty.entry(name.to_owned()).or_insert_with(|| ask.failed());
                return;
            }
        };
        let old = self.newest.borrow().clone().unwrap_or_default();
        let fresh = old.with(name, group);
        let agrees = self.agrees(name, &fresh);
        let pause = SETTLE.get(ask.tries).copied().map(Duration::from_millis);
        // What is defined and was served is not taken away because of a server that has just started.
        if agrees || pause.is_none() || fresh.group(name).is_some() {
            self.publish(fresh);
        }
        let mut state = self.state();
        if let Some(pause) = pause.filter(|_| !agrees) {
            let again = Ask { tries: ask.tries + 1, failures: 0, due: Instant::now() + pause };
            state.dirty.entry(name.to_owned()).or_insert(again);
        } else {
            let is_of = |definition: &String| definition.split_once('.').is_some_and(|(_, of)| of == name);
            state.deleted.retain(|definition| !is_of(definition));
        }
    }

    /// Whether all kinds of a group that are defined are served, and none whose definition was deleted.
    fn agrees(&self, group: &str, index: &KindIndex) -> bool {
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

    fn publish(&self, fresh: KindIndex) {
        self.newest.send_if_modified(|newest| {
            let changed = newest.as_deref() != Some(&fresh);
            if changed {
                *newest = Some(Arc::new(fresh));
            }
            changed
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn so_many_groups_that_somebody_misses_are_asked_for_at_a_time_and_no_more() {
        let limit = limits::MISSED_GROUPS;
        for (missed, asked) in [(limit, limit), (limit + 1, limit), (limit * 100, limit)] {
            let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
                std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>()
                    .await
            });
            let client = Client::new(service, "default");
            // Its tasks do not run while nothing is waited for.
            let discovery =
                Discovery::start(&client, &client, &Arc::default(), &Arc::default(), &Arc::default());
            for number in 0..missed {
                discovery.invalidate(&format!("g{number}.example.com"));
            }
            assert_eq!(discovery.shared.state().dirty.len(), asked, "{missed} are missed");
        }
    }
}
