//! `haproxy`: keeps the servers of a HAProxy's backend as a Service's pods, through the runtime API.
//!
//! A Service has one backend of the configuration, a pod the server of its name in it. Attaching is `add server` and
//! `state ready`; detaching is `state drain`, no session left, `state maint`, `del server`: a pod counts as out of
//! traffic when it is in maintenance (or gone) without a session in every instance. Servers that were not added here
//! are never touched, which their numbers show ([`stat::mark`]). A reload of HAProxy forgets servers that were added:
//! they are missed at the next look and added again. With several instances attached means in all, out means out of
//! all, and one that does not answer makes the whole answer unknown.

mod next;
mod runtime;
mod stat;
mod wishes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use linchpin_consist::{
    Adapter, AdapterOptions, Batch, Employment, Expected, Item, PodStatuses, PodView, Trouble,
};
use linchpin_words::{Timestamp, text::line_of};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::runtime::Address;
use self::{
    next::{NamedServer, ServerGoal, ServerStep, next},
    stat::{Backends, ServerRow, ServerState},
    wishes::Wishes,
};

/// How many times in one call it is looked what is next: add, ready and what it became; or drain, maint, delete.
const ROUNDS: usize = 5;

/// What of HAProxy's own texts is shown.
const SAID: usize = 200;

/// How a HAProxy is used.
#[derive(Clone, Debug)]
pub struct HaproxyConfig {
    /// Its instances; all are kept alike.
    pub instances: Vec<Address>,
    /// How long one command may take.
    pub timeout: Duration,
    /// How long a server takes to its full weight: HAProxy's `slowstart`.
    pub ramp: Duration,
    /// How long sessions may last once their server drains; then they are ended.
    pub drain_timeout: Duration,
    /// How its employers are served.
    pub options: AdapterOptions,
}

/// What is known of a server beyond its pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerStatus {
    /// Its backend.
    backend: String,
    /// Its port.
    port: u16,
    /// `ready`, `down`, `drain`, `maint`; `mixed` where instances differ.
    state: String,
}

type Server = Item<PodStatuses<ServerStatus>>;
type On = Employment<Value, Value>;

/// The adapter.
#[derive(Debug)]
pub struct Haproxy {
    config: HaproxyConfig,
    notes: Mutex<ServerNotes>,
}

/// What only saves requests, and keeps two employers of this process apart.
#[derive(Debug, Default)]
struct ServerNotes {
    /// Who has a backend.
    claims: BTreeMap<String, String>,
    /// Backends in which an employer may have servers; an employer that is not here is searched for in all.
    backends: BTreeMap<String, BTreeSet<String>>,
    /// Since when a server drains.
    draining: BTreeMap<String, Timestamp>,
}

impl Haproxy {
    /// An adapter for these instances.
    pub fn new(config: HaproxyConfig) -> Self {
        Self { config, notes: Mutex::default() }
    }

    fn notes(&self) -> MutexGuard<'_, ServerNotes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wishes(&self, on: &On) -> Result<Wishes, Trouble> {
        let mut wishes = Wishes::of(&on.employer, on.namespace(), on.name())?;
        if !self.config.ramp.is_zero() {
            wishes.words = format!("{} slowstart {}ms", wishes.words, self.config.ramp.as_millis());
        }
        Ok(wishes)
    }

    async fn command(&self, instance: &Address, command: &str) -> Result<String, Trouble> {
        runtime::talk(instance, command, self.config.timeout).await
    }

    /// The servers of a backend in one instance; none where it has no such backend. `-1` is every backend.
    async fn show(&self, instance: &Address, backend: &str) -> Result<Backends, Trouble> {
        let answer = self.command(instance, &format!("show stat {backend} 6 -1")).await?;
        stat::read(&answer).map_err(|trouble| Trouble(format!("{instance}: {trouble}")))
    }

    /// One employer for each backend: the second that comes learns who has it.
    fn claim(&self, backend: &str, on: &On) -> Result<(), Trouble> {
        let mut notes = self.notes();
        let holder = notes.claims.entry(backend.to_owned()).or_insert_with(|| on.scope());
        if *holder == on.scope() {
            return Ok(());
        }
        Err(Trouble(format!("haproxy backend {backend} serves {holder}; a backend has one employer")))
    }

    /// The backends in which servers of an employer may be: its own, and those that it had before.
    async fn backends(&self, on: &On) -> Result<BTreeSet<String>, Trouble> {
        let scope = on.scope();
        let known = self.notes().backends.get(&scope).cloned();
        let mut backends = match known {
            Some(backends) => backends,
            None => self.search(&scope, on.namespace()).await?,
        };
        let own = self.wishes(on).and_then(|wishes| self.claim(&wishes.backend, on).map(|()| wishes.backend));
        match own {
            Ok(backend) => drop(backends.insert(backend)),
            // What it has elsewhere is taken away all the same.
            Err(_) if on.leaving => {}
            Err(trouble) => return Err(trouble),
        }
        self.notes().backends.insert(scope, backends.clone());
        Ok(backends)
    }

    /// Backends with servers that bear an employer's mark: what was added before this process began.
    async fn search(&self, scope: &str, namespace: &str) -> Result<BTreeSet<String>, Trouble> {
        let mut found = BTreeSet::new();
        let begins = format!("{namespace}_");
        for instance in &self.config.instances {
            for (backend, servers) in self.show(instance, "-1").await? {
                let ours = |(server, row): (&String, &ServerRow)| row.id == stat::mark(scope, server);
                if backend.starts_with(&begins) && servers.iter().any(ours) {
                    found.insert(backend);
                }
            }
        }
        Ok(found)
    }

    /// The servers that an employer has, in all backends of all instances.
    async fn current(&self, on: &On) -> Result<Vec<Server>, Trouble> {
        let scope = on.scope();
        let own = self.wishes(on).map(|wishes| wishes.backend).unwrap_or_default();
        let backends = self.backends(on).await?;
        let mut servers = Vec::new();
        let mut empty = BTreeSet::new();
        for backend in &backends {
            let mut rows: BTreeMap<String, Vec<ServerRow>> = BTreeMap::new();
            for instance in &self.config.instances {
                let there = self.show(instance, backend).await?.remove(backend).unwrap_or_default();
                for (server, row) in there {
                    if row.id == stat::mark(&scope, &server) {
                        rows.entry(server).or_default().push(row);
                    }
                }
            }
            if rows.is_empty() && (on.leaving || *backend != own) {
                empty.insert(backend.clone());
            }
            let instances = self.config.instances.len();
            servers.extend(
                rows.into_iter().map(|(server, rows)| merged(backend, &own, server, &rows, instances)),
            );
        }
        self.forget(&scope, &empty, servers.is_empty() && on.leaving);
        Ok(servers)
    }

    /// Forgets backends in which nothing is left of an employer.
    fn forget(&self, scope: &str, empty: &BTreeSet<String>, all: bool) {
        let mut notes = self.notes();
        notes.claims.retain(|backend, holder| holder != scope || !empty.contains(backend));
        if all {
            notes.backends.remove(scope);
        } else if let Some(backends) = notes.backends.get_mut(scope) {
            backends.retain(|backend| !empty.contains(backend));
        }
    }

    /// Brings servers where they are to be, in every instance, as far as that goes without waiting.
    async fn bring(&self, on: &On, items: Vec<Server>, gone: bool) -> Result<Batch, Trouble> {
        let wishes = if gone { None } else { Some(self.wishes(on)?) };
        if let Some(wishes) = &wishes {
            self.claim(&wishes.backend, on)?;
        }
        let mut pending: BTreeMap<String, String> = BTreeMap::new();
        for instance in &self.config.instances {
            let mut open: Vec<&Server> = items.iter().collect();
            for round in 0..ROUNDS {
                if open.is_empty() {
                    break;
                }
                let seen = self.seen(instance, &open).await?;
                let mut again = Vec::new();
                for item in open {
                    let result =
                        self.step(on, instance, &seen, item, wishes.as_ref(), round + 1 == ROUNDS).await?;
                    match result {
                        StepResult::Done => {}
                        StepResult::Again => again.push(item),
                        StepResult::Pending(why) => drop(pending.entry(item.id.clone()).or_insert(why)),
                    }
                }
                open = again;
            }
        }
        let done = items.into_iter().map(|item| item.id).filter(|id| !pending.contains_key(id)).collect();
        Ok(Batch { done, pending: pending.into_iter().collect() })
    }

    /// The backends of some items in one instance.
    async fn seen(&self, instance: &Address, items: &[&Server]) -> Result<Backends, Trouble> {
        let mut seen = Backends::new();
        let backends: BTreeSet<&str> =
            items.iter().map(|item| item.statuses.extra_status.backend.as_str()).collect();
        for backend in backends {
            seen.extend(self.show(instance, backend).await?);
        }
        Ok(seen)
    }

    /// One step for one server in one instance.
    async fn step(
        &self,
        on: &On,
        instance: &Address,
        seen: &Backends,
        item: &Server,
        wishes: Option<&Wishes>,
        last: bool,
    ) -> Result<StepResult, Trouble> {
        let ServerStatus { backend, port, state } = &item.statuses.extra_status;
        let Some(servers) = seen.get(backend) else {
            let missing = || StepResult::Pending(missing(instance, backend));
            return Ok(if wishes.is_some() { missing() } else { StepResult::Done });
        };
        let name = format!("{backend}/{}", item.name);
        let address = socket(&item.statuses.ip, *port);
        let want = match wishes {
            None => ServerGoal::Gone,
            Some(_) if state == ServerState::Ready.word() => ServerGoal::Ready(address),
            Some(_) => ServerGoal::Out(address),
        };
        let named = NamedServer {
            name: &name,
            mark: stat::mark(&on.scope(), &item.name),
            words: wishes.map_or("", |wishes| wishes.words.as_str()),
            checks: wishes.is_some_and(|wishes| wishes.checks),
        };
        let row = servers.get(&item.name);
        let drains =
            |sessions: u64| StepResult::Pending(format!("haproxy {name} still has {sessions} sessions"));
        let result = match next(&named, row, &want) {
            ServerStep::Done => StepResult::Done,
            ServerStep::Wait(why) => StepResult::Pending(why),
            ServerStep::Drains(sessions) => {
                self.shut_in_time(on.now, instance, &name).await?;
                return Ok(drains(sessions));
            }
            ServerStep::Run(_) if last => {
                row.map_or_else(|| StepResult::Pending("not done yet".to_owned()), |row| drains(row.sessions))
            }
            ServerStep::Run(commands) => self.run(instance, &commands).await?,
        };
        if !matches!(result, StepResult::Again) {
            self.notes().draining.remove(&format!("{instance} {name}"));
        }
        Ok(result)
    }

    async fn run(&self, instance: &Address, commands: &[String]) -> Result<StepResult, Trouble> {
        for command in commands {
            if let Err(said) = runtime::judge(&self.command(instance, command).await?) {
                return Ok(StepResult::Pending(format!("{command}: haproxy says {}", line_of(&said, SAID))));
            }
        }
        Ok(StepResult::Again)
    }

    /// Ends the sessions of a server that has drained for too long.
    async fn shut_in_time(&self, now: Timestamp, instance: &Address, name: &str) -> Result<(), Trouble> {
        let since = *self.notes().draining.entry(format!("{instance} {name}")).or_insert(now);
        if now < since.plus_duration(self.config.drain_timeout) {
            return Ok(());
        }
        self.command(instance, &format!("shutdown sessions server {name}")).await.map(drop)
    }
}

/// What came of a step.
enum StepResult {
    Done,
    /// Something was done: look again.
    Again,
    Pending(String),
}

fn missing(instance: &Address, backend: &str) -> String {
    format!(
        "BackendMissing: haproxy {instance} has no backend {backend}; its configuration must have one, with a dynamic \
         balance algorithm such as roundrobin"
    )
}

/// Address and port as HAProxy writes them.
fn socket(ip: &str, port: u16) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

/// One server as all instances have it.
fn merged(backend: &str, own: &str, server: String, rows: &[ServerRow], instances: usize) -> Server {
    let alike = rows.len() == instances
        && rows.windows(2).all(|pair| (pair[0].state, &pair[0].address) == (pair[1].state, &pair[1].address));
    let first = rows.first();
    let (ip, port) = first.and_then(|row| row.address.rsplit_once(':')).unwrap_or_default();
    let state = first.filter(|_| alike).map_or("mixed", |row| row.state.word());
    let out = rows.iter().all(|row| row.state == ServerState::Maint && row.sessions == 0);
    Item {
        id: if backend == own { server.clone() } else { format!("{backend}/{server}") },
        name: server,
        statuses: PodStatuses {
            ip: ip.trim_start_matches('[').trim_end_matches(']').to_owned(),
            ipv6: String::new(),
            lifecycle_ready: state == ServerState::Ready.word(),
            extra_status: ServerStatus {
                backend: backend.to_owned(),
                port: port.parse().unwrap_or_default(),
                state: state.to_owned(),
            },
        },
        in_traffic: Some(!out),
    }
}

/// What a pod's server is to be; none where it has no address yet, or has ended.
fn expected(pod: &PodView, wishes: &Wishes) -> Option<Server> {
    if pod.is_terminating() || pod.ip.is_empty() || matches!(pod.phase.as_str(), "Succeeded" | "Failed") {
        return None;
    }
    let ready = pod.is_lifecycle_ready();
    let state = if ready { ServerState::Ready } else { ServerState::Maint };
    let statuses = PodStatuses {
        ip: pod.ip.clone(),
        ipv6: String::new(),
        lifecycle_ready: ready,
        extra_status: ServerStatus {
            backend: wishes.backend.clone(),
            port: wishes.port_of(&pod.object)?,
            state: state.word().to_owned(),
        },
    };
    Some(Item::employee(pod.name.clone(), statuses))
}

impl Adapter<Value, Value> for Haproxy {
    type EmployerState = Item<Value>;
    type EmployeeState = Server;

    fn controller_name(&self) -> &'static str {
        "haproxy-controller"
    }

    fn options(&self) -> AdapterOptions {
        self.config.options.clone()
    }

    async fn expected_employer(&self, on: &On) -> Result<Vec<Item<Value>>, Trouble> {
        let wishes = self.wishes(on)?;
        self.claim(&wishes.backend, on)?;
        Ok(vec![Item::employer(wishes.backend, json!({}))])
    }

    /// The backend, where every instance has it. It is the configuration's, so nothing of it is there once the employer goes.
    async fn current_employer(&self, on: &On) -> Result<Vec<Item<Value>>, Trouble> {
        if on.leaving {
            return Ok(Vec::new());
        }
        let wishes = self.wishes(on)?;
        for instance in &self.config.instances {
            if self.show(instance, &wishes.backend).await?.is_empty() {
                return Ok(Vec::new());
            }
        }
        Ok(vec![Item::employer(wishes.backend, json!({}))])
    }

    async fn create_employer(&self, _on: &On, items: Vec<Item<Value>>) -> Result<Batch, Trouble> {
        let pending = |item: Item<Value>| {
            let instances: Vec<String> = self.config.instances.iter().map(Address::to_string).collect();
            let why = format!(
                "BackendMissing: not every haproxy ({}) has a backend {}; its configuration must have one, with a dynamic \
                 balance algorithm such as roundrobin",
                instances.join(", "),
                item.id
            );
            (item.id, why)
        };
        Ok(Batch { done: Vec::new(), pending: items.into_iter().map(pending).collect() })
    }

    async fn expected_employees(&self, on: &On) -> Result<Expected<Server>, Trouble> {
        let wishes = self.wishes(on)?;
        let servers = on.employees.iter().filter_map(|employee| expected(&employee.view, &wishes));
        Ok(servers.collect::<Vec<_>>().into())
    }

    async fn current_employees(&self, on: &On) -> Result<Vec<Server>, Trouble> {
        self.current(on).await
    }

    async fn create_employees(&self, on: &On, items: Vec<Server>) -> Result<Batch, Trouble> {
        self.bring(on, items, false).await
    }

    async fn update_employees(&self, on: &On, items: Vec<Server>) -> Result<Batch, Trouble> {
        self.bring(on, items, false).await
    }

    async fn delete_employees(&self, on: &On, items: Vec<Server>) -> Result<Batch, Trouble> {
        self.bring(on, items, true).await
    }
}
