//! A small world in which employments are settled: an employer, two pods, a provider, and everything that goes wrong.
//!
//! What is checked, it checks in the world itself, in the moment something is really done, never in what was decided.

mod acting;
mod course;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use linchpin_consist::{
    AdapterOptions, EmployeeSelection, FinalizerRule, Getter, ItemPair, LookFailed, PodView, ProviderAnswer,
    adapter::Trouble,
    marks::{OwnFinalizers, PodEntries},
    settle::{
        BindingClaim, EmployerView, ObservedEmployment, ProviderLook, SettleDecision, SettleMemory,
        SettleOrder, SettleOutcome, settle,
    },
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

/// Which lists of an answer are empty although nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emptied {
    Both,
    Employer,
    Employees,
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
    pub(crate) memory: SettleMemory,
    pub(crate) flight: Vec<SettleOrder>,
    pub(crate) outcomes: Vec<SettleOutcome>,
    pub(crate) look: Option<ProviderLook>,
    /// A look whose answer is on its way.
    pub(crate) looking: Option<ProviderLook>,
    /// What the next answer leaves out although nothing changed: a provider that restarts.
    pub(crate) empty_once: Option<Emptied>,
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
            memory: SettleMemory::default(),
            flight: Vec::new(),
            outcomes: Vec::new(),
            look: None,
            looking: None,
            empty_once: None,
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

    pub(crate) fn options() -> AdapterOptions {
        AdapterOptions { need_record_employees: false, ..AdapterOptions::default() }
    }

    /// What the provider answers now.
    fn answer(&self) -> Result<ProviderAnswer, LookFailed> {
        let failed = || LookFailed::new(Getter::CurrentEmployees, Trouble::new("no answer"));
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
            employees.push(ItemPair {
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
        let employer = ItemPair {
            id: "web".to_owned(),
            name: String::new(),
            expected: (!leaving).then(|| Arc::new(json!(1))),
            current: vip.then(|| Arc::new(json!(1))),
            same: !leaving && vip,
            ready: None,
            in_traffic: None,
        };
        let employer = if leaving && !vip { Vec::new() } else { vec![employer] };
        Ok(ProviderAnswer { employer, employees, recheck: None })
    }

    pub(crate) fn is_leaving(&self) -> bool {
        !self.labelled || self.deleting
    }

    /// One turn of the controller: orders are under way after it, and a look where one is due.
    pub(crate) fn turn(&mut self) -> Option<SettleDecision> {
        if !self.employer && self.binding.is_none() {
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
        if !self.employer {
            // What its binding tells of it.
            object = json!({"metadata": {"namespace": "shop", "name": "web", "uid": "e"}});
        }
        let employer = EmployerView::of(&Gvk::new("", "v1", "Service"), &Arc::new(object));
        let employer = EmployerView { gone: !self.employer, ..employer };
        let claim = match self.binding {
            None => BindingClaim::Absent,
            Some(uid) => BindingClaim::Held {
                adapter: "demo".to_owned(),
                employer: "e".to_owned(),
                uid: uid.to_string(),
            },
        };
        if self.bug == Bug::EntriesAreAssumed {
            let text = PodEntries::read(None).with(KEY, &finalizers().written).unwrap();
            for pod in &mut pods {
                pod.annotations.insert("pod.kusionstack.io/available-conditions".to_owned(), text.clone());
            }
        }
        let selection = if self.employer {
            EmployeeSelection::Labels(BTreeMap::from([("app".to_owned(), "web".to_owned())]))
        } else {
            EmployeeSelection::Nothing
        };
        let outcomes = std::mem::take(&mut self.outcomes);
        let mut look = self.look.clone();
        if self.bug == Bug::OldLooksCount
            && let Some(look) = &mut look
        {
            look.began = self.now();
        }
        let pods: Vec<Arc<PodView>> = pods.into_iter().map(Arc::new).collect();
        let observed = ObservedEmployment {
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
        let mut decision = settle(&self.memory, observed, &outcomes, self.now());
        let again = settle(&self.memory, observed, &outcomes, self.now());
        assert_eq!(decision, again, "the same inputs give the same decision");
        let now = self.now();
        if self.bug == Bug::OtherPodsCount
            && let Some(look) = &mut self.look
            && look.about != decision.about
        {
            look.about = decision.about;
            let observed = ObservedEmployment { look: Some(look), ..observed };
            decision = settle(&self.memory, observed, &outcomes, now);
        }
        self.memory = decision.memory.clone();
        self.flight.extend(decision.orders.clone());
        if decision.look_at.is_some_and(|at| at <= self.now()) && self.looking.is_none() {
            self.time += 1;
            let mut result = self.answer();
            if let Ok(answer) = &mut result
                && let Some(emptied) = self.empty_once.take()
            {
                let employer = answer.employer.iter_mut().filter(|_| emptied != Emptied::Employees);
                let employees = answer.employees.iter_mut().filter(|_| emptied != Emptied::Employer);
                for pair in employer.chain(employees) {
                    (pair.current, pair.same, pair.in_traffic) = (None, false, None);
                }
                answer.employees.retain(|pair| pair.current.is_some() || pair.expected.is_some());
            }
            self.looking = Some(ProviderLook { began: self.now(), about: decision.about, result });
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
        self.outcomes.push(SettleOutcome { slot: order.slot, number: order.number, at: self.now(), result });
    }

    /// The same outcome arrives once more.
    pub(crate) fn repeat_outcome(&mut self) {
        let last = self.outcomes.last().cloned();
        self.outcomes.extend(last);
    }

    /// An order is not carried out.
    pub(crate) fn fail(&mut self, place: usize) {
        let order = self.flight.remove(place);
        self.time += 1;
        let result = Err("refused".to_owned());
        self.outcomes.push(SettleOutcome { slot: order.slot, number: order.number, at: self.now(), result });
    }

    /// The process is killed: memory, what is under way and what came back are lost.
    pub(crate) fn crash(&mut self) {
        self.time += 1;
        self.memory = SettleMemory::default();
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
    /// Somebody takes the clean finalizer off an employer that is being deleted: it is gone.
    Strip,
    Provider(bool),
}
