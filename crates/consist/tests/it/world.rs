//! A small world in which employments are settled: an employer, two pods, a provider, and everything that goes wrong.
//!
//! What is checked, it checks in the world itself, in the moment something is really done, never in what was decided.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use linchpin_consist::{
    Answer, Call, FinalizerRule, Getter, LookFailed, Options, Pair, PodView, Selection,
    adapter::{Batch, Trouble},
    marks::{Entries, OwnFinalizers, clean_finalizer},
    settle::{Act, Claim, Decision, Done, EmployerView, Look, Memory, Order, Outcome, Standing, settle},
};
use linchpin_words::{Gvk, Timestamp};
use serde_json::json;

pub(crate) const KEY: &str = "Service/shop/web";

/// A pod as it really is.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) there: bool,
    pub(crate) selected: bool,
    pub(crate) ready: bool,
    pub(crate) terminating: bool,
    pub(crate) running: bool,
    pub(crate) entries: Option<String>,
    pub(crate) finalizers: BTreeSet<String>,
    pub(crate) version: u64,
}

/// What the provider has of one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Server {
    pub(crate) on: bool,
    pub(crate) sessions: bool,
}

/// Mistakes that a check must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    None,
    /// A provider that does not answer is taken for an empty one.
    UnknownIsAbsent,
    /// Looks that are older than our last call count.
    OldLooksCount,
    /// A look about other pods counts.
    OtherPodsCount,
    /// Entries are believed to be there.
    EntriesAreAssumed,
    /// What a call claims is believed: nobody looks whether sessions are left.
    ClaimsAreBelieved,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) labelled: bool,
    pub(crate) deleting: bool,
    pub(crate) employer: bool,
    pub(crate) clean: BTreeSet<String>,
    pub(crate) employer_version: u64,
    pub(crate) binding: Option<u64>,
    pub(crate) pods: [Pod; 2],
    pub(crate) servers: BTreeMap<usize, Server>,
    pub(crate) vip: bool,
    pub(crate) up: bool,
    pub(crate) memory: Memory,
    pub(crate) flight: Vec<Order>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) look: Option<Look>,
    /// A look whose answer is on its way.
    pub(crate) looking: Option<Look>,
    pub(crate) time: i64,
    pub(crate) version: u64,
    pub(crate) bug: Bug,
    /// Writes and calls that were carried out.
    pub(crate) effects: usize,
    pub(crate) wrong: Vec<String>,
}

pub(crate) fn finalizers() -> OwnFinalizers {
    OwnFinalizers::of(FinalizerRule::Name, "Service", "", "shop", "web")
}

impl World {
    pub(crate) fn new(bug: Bug) -> Self {
        let pod = Pod {
            there: true,
            selected: true,
            ready: true,
            terminating: false,
            running: true,
            entries: None,
            finalizers: BTreeSet::new(),
            version: 1,
        };
        Self {
            labelled: true,
            deleting: false,
            employer: true,
            clean: BTreeSet::new(),
            employer_version: 1,
            binding: None,
            pods: [pod.clone(), Pod { ready: false, ..pod }],
            servers: BTreeMap::new(),
            vip: false,
            up: true,
            memory: Memory::default(),
            flight: Vec::new(),
            outcomes: Vec::new(),
            look: None,
            looking: None,
            time: 0,
            version: 10,
            bug,
            effects: 0,
            wrong: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.time)
    }

    fn view(&self, number: usize) -> Option<PodView> {
        let pod = &self.pods[number];
        let mut annotations = json!({});
        if let Some(entries) = &pod.entries {
            annotations["pod.kusionstack.io/available-conditions"] = json!(entries);
        }
        let mut object = json!({
            "metadata": {"name": format!("p{number}"), "uid": format!("u{number}"), "annotations": annotations,
                "resourceVersion": pod.version.to_string(), "finalizers": pod.finalizers,
                "labels": if pod.selected { json!({"app": "web"}) } else { json!({}) }},
            "spec": {"nodeName": "n"},
            "status": {"conditions": [{"type": "Ready", "status": if pod.ready { "True" } else { "False" }}]},
        });
        if pod.terminating {
            object["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        }
        if !pod.running {
            object["status"]["phase"] = json!("Failed");
        }
        pod.there.then(|| PodView::of(&Arc::new(object)))
    }

    pub(crate) fn options() -> Options {
        Options { need_record_employees: false, ..Options::default() }
    }

    /// What the provider answers now.
    fn answer(&self) -> Result<Answer, LookFailed> {
        let failed = || LookFailed { getter: Getter::CurrentEmployees, trouble: Trouble::new("no answer") };
        if !self.up && self.bug != Bug::UnknownIsAbsent {
            return Err(failed());
        }
        let leaving = self.is_leaving();
        let mut employees = Vec::new();
        for (number, pod) in self.pods.iter().enumerate() {
            let expected = pod.there && pod.selected && !pod.terminating && !leaving;
            let server = self.servers.get(&number).filter(|_| self.up);
            if !expected && server.is_none() {
                continue;
            }
            let same = expected && server.is_some_and(|server| server.on == pod.ready);
            employees.push(Pair {
                id: format!("p{number}"),
                name: format!("p{number}"),
                expected: expected.then(|| Arc::new(json!(pod.ready))),
                current: server.map(|server| Arc::new(json!(server.on))),
                same,
                ready: expected.then_some(pod.ready),
                in_traffic: server
                    .filter(|_| self.bug != Bug::ClaimsAreBelieved)
                    .map(|server| server.on || server.sessions),
            });
        }
        let vip = self.vip && self.up;
        let employer = Pair {
            id: "web".to_owned(),
            name: String::new(),
            expected: (!leaving).then(|| Arc::new(json!(1))),
            current: vip.then(|| Arc::new(json!(1))),
            same: !leaving && vip,
            ready: None,
            in_traffic: None,
        };
        let employer = if leaving && !vip { Vec::new() } else { vec![employer] };
        Ok(Answer { employer, employees, recheck: None })
    }

    pub(crate) fn is_leaving(&self) -> bool {
        !self.labelled || self.deleting
    }

    /// One turn of the controller: orders are under way after it, and a look where one is due.
    pub(crate) fn turn(&mut self) -> Option<Decision> {
        if !self.employer {
            return None;
        }
        self.time += 1;
        let mut pods: Vec<PodView> = (0..2).filter_map(|number| self.view(number)).collect();
        let options = Self::options();
        let mut object = json!({"metadata": {"namespace": "shop", "name": "web", "uid": "e", "finalizers": self.clean,
            "resourceVersion": self.employer_version.to_string()}, "spec": {"labelled": self.labelled}});
        if self.deleting {
            object["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        }
        let employer = EmployerView::of(&Gvk::new("", "v1", "Service"), &Arc::new(object));
        let claim = match self.binding {
            None => Claim::Absent,
            Some(uid) => {
                Claim::Held { adapter: "demo".to_owned(), employer: "e".to_owned(), uid: uid.to_string() }
            }
        };
        if self.bug == Bug::EntriesAreAssumed {
            let text = Entries::read(None).with(KEY, &finalizers().written).unwrap();
            for pod in &mut pods {
                pod.annotations.insert("pod.kusionstack.io/available-conditions".to_owned(), text.clone());
            }
        }
        let selection = Selection::Labels(BTreeMap::from([("app".to_owned(), "web".to_owned())]));
        let outcomes = std::mem::take(&mut self.outcomes);
        let mut look = self.look.clone();
        if self.bug == Bug::OldLooksCount
            && let Some(look) = &mut look
        {
            look.began = self.now();
        }
        let pods: Vec<Arc<PodView>> = pods.into_iter().map(Arc::new).collect();
        let standing = Standing {
            employer: &employer,
            adapter: "demo",
            options: &options,
            selection: &selection,
            follows: true,
            serve: self.labelled,
            employees: Some(&pods),
            claim: &claim,
            look: look.as_ref(),
            namespace_going: false,
            drain_timeout: Duration::from_secs(100_000_000),
        };
        let mut decision = settle(&self.memory, standing, &outcomes, self.now());
        let again = settle(&self.memory, standing, &outcomes, self.now());
        assert_eq!(decision, again, "the same inputs give the same decision");
        let now = self.now();
        if self.bug == Bug::OtherPodsCount
            && let Some(look) = &mut self.look
            && look.about != decision.about
        {
            look.about = decision.about;
            let standing = Standing { look: Some(look), ..standing };
            decision = settle(&self.memory, standing, &outcomes, now);
        }
        self.memory = decision.memory.clone();
        self.flight.extend(decision.orders.clone());
        if decision.look_at.is_some_and(|at| at <= self.now()) && self.looking.is_none() {
            self.time += 1;
            self.looking = Some(Look { began: self.now(), about: decision.about, result: self.answer() });
        }
        Some(decision)
    }

    /// The answer of a look arrives.
    pub(crate) fn deliver_look(&mut self) {
        if let Some(look) = self.looking.take() {
            self.time += 1;
            self.look = Some(look);
        }
    }

    /// Carries one order out. Its outcome arrives, or is lost and looks like a failure.
    pub(crate) fn carry_out(&mut self, place: usize, answered: bool) {
        let order = self.flight.remove(place);
        self.time += 1;
        let result = self.act(&order.act);
        let result = if answered { result } else { Err("connection lost".to_owned()) };
        self.outcomes.push(Outcome { slot: order.slot, number: order.number, at: self.now(), result });
    }

    /// An order is not carried out.
    pub(crate) fn fail(&mut self, place: usize) {
        let order = self.flight.remove(place);
        self.time += 1;
        let result = Err("refused".to_owned());
        self.outcomes.push(Outcome { slot: order.slot, number: order.number, at: self.now(), result });
    }

    /// The process is killed: memory, what is under way and what came back are lost.
    pub(crate) fn crash(&mut self) {
        self.time += 1;
        self.memory = Memory::default();
        self.flight.clear();
        self.outcomes.clear();
        self.look = None;
        self.looking = None;
    }

    fn bump(&mut self, number: usize) -> u64 {
        self.version += 1;
        self.pods[number].version = self.version;
        let pod = &mut self.pods[number];
        if pod.terminating && pod.finalizers.is_empty() && !pod.running {
            pod.there = false;
        }
        self.version
    }

    fn complain(&mut self, what: String) {
        self.wrong.push(what);
    }

    fn act(&mut self, act: &Act) -> Result<Done, String> {
        self.effects += 1;
        let number = |pod: &linchpin_consist::settle::PodRef| pod.name[1..].parse::<usize>().unwrap();
        let gone = |world: &Self, number: usize| {
            if world.pods[number].there { Ok(()) } else { Err("not found".to_owned()) }
        };
        let version = match act {
            Act::Claim => {
                if self.binding.is_some() {
                    return Err("exists".to_owned());
                }
                self.version += 1;
                self.binding = Some(self.version);
                self.version
            }
            Act::Unclaim { .. } => {
                self.binding = None;
                0
            }
            Act::AddClean { finalizer } => {
                if self.deleting {
                    return Err("terminating".to_owned());
                }
                if self.binding.is_none() {
                    self.complain("clean finalizer before the binding".to_owned());
                }
                self.clean.insert(finalizer.clone());
                self.touch_employer()
            }
            Act::RemoveClean { finalizers: off } => {
                self.clean.retain(|finalizer| !off.contains(finalizer));
                let marked = self.pods.iter().any(|pod| {
                    pod.there
                        && (!pod.finalizers.is_empty()
                            || (!pod.terminating && Entries::read(pod.entries.as_deref()).has_key(KEY)))
                });
                if marked || self.vip || !self.servers.is_empty() || self.binding.is_some() {
                    self.complain(format!("released although something is left: {:?}", self.servers));
                }
                if self.deleting {
                    self.employer = false;
                }
                self.touch_employer()
            }
            Act::Record { .. } => self.touch_employer(),
            Act::WriteEntries { pod, text } => {
                let number = number(pod);
                gone(self, number)?;
                if self.pods[number].version != pod.version {
                    return Err("conflict".to_owned());
                }
                let removes = !Entries::read(Some(text)).has_key(KEY);
                if removes && !self.pods[number].finalizers.is_empty() {
                    self.complain("an entry went before its finalizer".to_owned());
                }
                if !removes && self.clean.is_empty() {
                    self.complain("a pod was marked before the employer".to_owned());
                }
                self.pods[number].entries = Some(text.clone());
                self.bump(number)
            }
            Act::Protect { pod, finalizer } => {
                let number = number(pod);
                gone(self, number)?;
                if self.pods[number].terminating {
                    return Err("no new finalizers".to_owned());
                }
                self.pods[number].finalizers.insert(finalizer.clone());
                self.bump(number)
            }
            Act::Release { pod, finalizers: off } => {
                let number = number(pod);
                gone(self, number)?;
                let busy = self.servers.get(&number).is_some_and(|server| server.on || server.sessions);
                if busy && self.pods[number].running {
                    self.complain(format!("p{number} was released in traffic"));
                }
                self.pods[number].finalizers.retain(|finalizer| !off.contains(finalizer));
                self.bump(number)
            }
            Act::Call { call, items } => {
                let ids: Vec<String> = items.iter().map(|(id, _)| id.clone()).collect();
                return self.call(
                    *call,
                    &ids,
                    items.iter().map(|(_, state)| state.as_bool() == Some(true)).collect(),
                );
            }
        };
        Ok(Done { version: Some(version), batch: None })
    }

    fn touch_employer(&mut self) -> u64 {
        self.version += 1;
        self.employer_version = self.version;
        self.version
    }

    fn call(&mut self, call: Call, ids: &[String], on: Vec<bool>) -> Result<Done, String> {
        if !self.up {
            return Err("down".to_owned());
        }
        if self.clean.is_empty() && call != Call::DeleteEmployer && call != Call::DeleteEmployees {
            self.complain(format!("{call:?} before the clean finalizer"));
        }
        let mut batch = Batch::default();
        for (id, on) in ids.iter().zip(on) {
            match call {
                Call::CreateEmployer | Call::UpdateEmployer => self.vip = true,
                Call::DeleteEmployer => self.vip = false,
                Call::CreateEmployees | Call::UpdateEmployees => {
                    let number: usize = id[1..].parse().unwrap();
                    let pod = &self.pods[number];
                    if pod.there && on && !Entries::read(pod.entries.as_deref()).has_key(KEY) {
                        self.complain(format!("p{number} was attached without its entry"));
                    }
                    let sessions = on || self.servers.get(&number).is_some_and(|server| server.sessions);
                    self.servers.insert(number, Server { on, sessions });
                }
                Call::DeleteEmployees => {
                    let number: usize = id[1..].parse().unwrap();
                    if let Some(server) = self.servers.get_mut(&number) {
                        server.on = false;
                        if server.sessions {
                            batch.pending.push((id.clone(), "1 session left".to_owned()));
                            continue;
                        }
                    }
                    self.servers.remove(&number);
                }
            }
            batch.done.push(id.clone());
        }
        Ok(Done { version: None, batch: Some(batch) })
    }

    /// What happens in the world by itself.
    pub(crate) fn happen(&mut self, event: Event) {
        self.time += 1;
        match event {
            Event::Ready(number, ready) => {
                self.pods[number].ready = ready;
                self.bump(number);
            }
            Event::Delete(number) => {
                self.pods[number].terminating = true;
                self.bump(number);
            }
            Event::Stop(number) => {
                self.pods[number].running = false;
                self.pods[number].ready = false;
                if let Some(server) = self.servers.get_mut(&number) {
                    server.sessions = false;
                }
                self.bump(number);
            }
            Event::Unselect(number) => {
                self.pods[number].selected = false;
                self.bump(number);
            }
            Event::SessionsEnd => {
                for server in self.servers.values_mut().filter(|server| !server.on) {
                    server.sessions = false;
                }
            }
            Event::Label(labelled) => {
                self.labelled = labelled;
                self.touch_employer();
            }
            Event::DeleteEmployer => {
                self.deleting = true;
                self.touch_employer();
                if self.clean.is_empty() {
                    self.employer = false;
                }
            }
            Event::Provider(up) => self.up = up,
        }
    }

    /// Lets everything run its course, with a provider that answers and sessions that end.
    pub(crate) fn run_out(&mut self) -> Result<(), String> {
        self.happen(Event::Provider(true));
        for _ in 0..200 {
            let Some(decision) = self.turn() else { return Ok(()) };
            let mut quiet = self.looking.is_none() && self.outcomes.is_empty() && decision.orders.is_empty();
            while !self.flight.is_empty() {
                self.carry_out(0, true);
                quiet = false;
            }
            if self.servers.values().any(|server| !server.on && server.sessions) {
                self.happen(Event::SessionsEnd);
                quiet = false;
            }
            self.deliver_look();
            let next = decision.wake_at.map_or(0, |at| at.as_microsecond() - self.time);
            let resync = i64::try_from(Self::options().resync.as_micros()).unwrap();
            if quiet && next < resync / 2 && next > 0 {
                self.time += next;
                quiet = false;
            }
            if quiet {
                return self.settled();
            }
            self.time += next.clamp(0, 10_000_000);
        }
        Err(format!("it does not come to rest: {self:?}"))
    }

    /// Whether everything is where it belongs.
    fn settled(&self) -> Result<(), String> {
        let leaving = self.is_leaving();
        for (number, pod) in self.pods.iter().enumerate().filter(|(_, pod)| pod.there) {
            let employed = pod.selected && !pod.terminating && !leaving;
            let server = self.servers.get(&number);
            let right = match (employed, server) {
                (true, Some(server)) => server.on == pod.ready && pod.finalizers.is_empty() != pod.ready,
                (true, None) => false,
                (false, server) => server.is_none() && pod.finalizers.is_empty(),
            };
            let marked = Entries::read(pod.entries.as_deref()).has_key(KEY);
            if !right || (marked != employed && !pod.terminating) {
                return Err(format!("p{number} is not as it should be: {self:?}"));
            }
        }
        let clean = BTreeSet::from([clean_finalizer("web")]);
        let employer = if leaving { BTreeSet::new() } else { clean };
        if self.clean != employer || self.binding.is_none() != leaving || self.vip == leaving {
            return Err(format!("the employer is not as it should be: {self:?}"));
        }
        Ok(())
    }
}

/// What happens in the world by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Ready(usize, bool),
    Delete(usize),
    Stop(usize),
    Unselect(usize),
    SessionsEnd,
    Label(bool),
    DeleteEmployer,
    Provider(bool),
}
