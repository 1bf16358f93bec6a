//! One employer's turn: who serves it, what is to be done for it, and what its binding says.

use std::{collections::BTreeMap, sync::Arc};

use linchpin_api::ConsistBindingSpec;
use linchpin_cluster::own::{self, Change, OwnWriteError, Place};
use linchpin_consist::{
    About, PodView, Selection,
    marks::key as entry_key,
    settle::{
        Act, Choice, Claim, Decision, EmployerView, Look, Memory, Order, Outcome, Report, Standing, Traffic,
        Why, settle as decide,
    },
};
use linchpin_engine::contract::Notice;
use linchpin_words::{Timestamp, text};
use serde_json::{Value, json};

use super::{Desk, Message, Wake};
use crate::{
    consist::{
        Mode,
        acts::{Aim, DEADLINE, Provider},
        binding::{self, Since},
        crew::{Worker, binding_name},
        sight::{Binding, EmployerKey, PODS, Sight, Watch},
    },
    controller::now,
};

/// How often a status is written while only its progress changes.
const PROGRESS: std::time::Duration = std::time::Duration::from_secs(1);
/// How long a look may take before the status says that nothing is known.
const LOOKING: std::time::Duration = std::time::Duration::from_secs(3);
/// The most bytes of a message.
const MESSAGE: usize = 1024;

/// What is known of one employer beside what is seen of it. It may be lost.
pub(super) struct Case {
    number: u64,
    /// The adapter that it is served by.
    adapter: String,
    uid: String,
    gone: bool,
    memory: Memory,
    outcomes: Vec<Outcome>,
    look: Option<Look>,
    looking: bool,
    /// What is known of each pod's traffic, and the pod's version that this is about.
    pub(super) traffic: BTreeMap<String, (u64, Traffic)>,
    pub(super) attaching: std::collections::BTreeSet<String>,
    pub(super) report: Option<Report>,
    /// The uid of the binding that was seen to be ours.
    claimed: Option<String>,
    since: Option<Since>,
    /// Whether a write to the binding is under way, and not before when the next one may be.
    writing: bool,
    write_from: Option<Timestamp>,
    /// The version that a write to the binding relied on: the next one needs a newer one.
    relied_on: Option<String>,
    /// Since when the provider is being looked at and nothing is known.
    looking_since: Option<Timestamp>,
    said: Option<String>,
}

impl Case {
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }
}

/// Who serves an employer now, and whether it is to be served or left.
enum Served<'a> {
    By(&'a Worker, bool),
    Nobody,
    Several(String),
}

impl Desk {
    /// The employer, and who serves it.
    fn served<'a>(
        &'a self,
        key: &EmployerKey,
        employer: &EmployerView,
        binding: Option<&Binding>,
    ) -> Served<'a> {
        let crew = &self.office.crew;
        let of_kind = |worker: &&Worker| {
            worker.employer_kind.group == employer.kind.group
                && worker.employer_kind.kind == employer.kind.kind
        };
        let holder = binding.and_then(|binding| {
            // A claim that was seen to be ours is ours, whatever somebody writes into it.
            let ours = self.cases.get(key).filter(|case| case.claimed.as_ref() == Some(&binding.uid));
            crew.named(ours.map_or(binding.spec.adapter.as_str(), |case| case.adapter.as_str()))
        });
        let holder = holder.filter(of_kind);
        let leaves = employer.gone || self.office.mode != Mode::Serve;
        let choice = if leaves { Choice::Nobody } else { crew.choice(employer) };
        match (choice, holder) {
            (Choice::One(name), Some(holder)) if holder.name != name => Served::By(holder, false),
            (Choice::One(name), _) => {
                crew.named(name).map_or(Served::Nobody, |worker| Served::By(worker, true))
            }
            (_, Some(holder)) => Served::By(holder, false),
            (Choice::Several(names), None) if employer.clean_finalizers().is_empty() => {
                Served::Several(names.join(", "))
            }
            (_, None) if binding.is_none() && !employer.clean_finalizers().is_empty() => {
                crew.0.iter().find(of_kind).map_or(Served::Nobody, |worker| Served::By(worker, false))
            }
            (_, None) => Served::Nobody,
        }
    }

    pub(super) fn employer_turn(&mut self, key: &EmployerKey, time: Timestamp) {
        let shared = self.office.shared.clone();
        let sight = shared.look();
        let (kind, namespace, name) = key;
        let followed = self.office.kinds.employers[*kind].clone();
        if !sight.is_synced(Watch::Employers(*kind)) || !sight.is_synced(Watch::Bindings) {
            return;
        }
        let binding_name = binding_name(&followed.gvk, name);
        let binding = sight.bindings.get(&(namespace.clone(), binding_name.clone())).cloned();
        let employer = sight.employers.get(key).cloned().or_else(|| {
            let binding = binding.as_ref()?;
            Some(Arc::new(binding::gone_employer(&followed.gvk, namespace, binding)))
        });
        let Some(employer) = employer.map(|employer| self.as_left(employer)) else {
            return self.drop_case(key, &sight);
        };
        let (name_of_worker, serve) = match self.served(key, &employer, binding.as_deref()) {
            Served::By(worker, serve) => (worker.name.clone(), serve),
            Served::Nobody => return self.drop_case(key, &sight),
            Served::Several(names) => {
                let message =
                    format!("adapters {names} fit it: choose one with the label linchpin.dev/adapter");
                return self.odd(key, &employer, &message);
            }
        };
        let crew = Arc::clone(&self.office.crew);
        let Some(worker) = crew.named(&name_of_worker) else { return };
        let mut case = self.case(key, worker, &employer);
        let selection = worker.selection(&employer);
        let pods = relevant(&sight, worker, &employer, &selection, namespace);
        let wanted = binding::spec(worker, &employer, &selection);
        let claim = claim(&mut case, worker, &employer, binding.as_deref());
        let standing = Standing {
            employer: &employer,
            adapter: &worker.name,
            options: &worker.options,
            selection: &selection,
            follows: worker.follows,
            serve,
            employees: pods.as_deref(),
            claim: &claim,
            look: case.look.as_ref(),
            namespace_going: sight.going.contains(namespace),
            drain_timeout: self.office.lifecycle.drain_timeout,
        };
        let outcomes = std::mem::take(&mut case.outcomes);
        let decision = decide(&case.memory, standing, &outcomes, time);
        let pods = pods.unwrap_or_default();
        self.tell_pods(namespace, &mut case, &decision, &pods);
        drop(sight);
        for notice in &decision.notices {
            self.say_of(&employer, notice.reason, &notice.message, notice.warning);
        }
        let aim = Aim {
            employer: Arc::clone(&employer),
            employer_kind: followed,
            pods: self.office.kinds.employees[PODS].clone(),
            bindings: self.office.kinds.bindings.clone(),
            binding: binding::object(&binding_name, namespace, &wanted),
            binding_name,
        };
        let about = about(worker, &employer, &selection, &pods, decision.leaving, time);
        let provider = Provider {
            port: Arc::clone(&worker.port),
            seats: Arc::clone(&worker.seats),
            timeout: worker.options.timeout,
        };
        self.start_orders(key, &case, decision.orders.clone(), &aim, &about, &provider, worker);
        if decision.look_at.is_some_and(|at| at <= time) && !case.looking {
            case.looking = true;
            self.start_look(key, &case, about, decision.about, provider, worker);
        }
        let ours =
            binding.filter(|_| matches!(&claim, Claim::Held { adapter, .. } if *adapter == worker.name));
        let write_at = ours
            .and_then(|binding| self.keep_binding(key, &mut case, &binding, &wanted, &decision, &pods, time));
        let look_at = decision.look_at.filter(|at| *at > time && !case.looking);
        let wake = [decision.wake_at, look_at, write_at].into_iter().flatten().filter(|at| *at > time).min();
        self.timers.set(Wake::Employer(key.clone()), wake);
        case.memory = decision.memory;
        case.attaching = decision.attaching;
        if decision.report.reason == Why::AlreadyServed {
            let message = format!("AlreadyServed: {}", decision.report.message);
            self.odd(key, &employer, &message);
        } else {
            self.office.counts.employment(key, &worker.name, &decision.report);
        }
        case.report = Some(decision.report);
        if decision.over && !case.memory.is_busy() {
            self.office.counts.forget(key);
            self.timers.set(Wake::Employer(key.clone()), None);
        } else {
            self.cases.insert(key.clone(), case);
        }
    }

    /// The case of an employer; a new one where another adapter or another incarnation is meant.
    fn case(&mut self, key: &EmployerKey, worker: &Worker, employer: &EmployerView) -> Case {
        let known = self.cases.remove(key);
        let same = |case: &Case| case.adapter == worker.name && case.uid == employer.uid;
        let mut case = known.filter(same).unwrap_or_else(|| {
            self.last_case += 1;
            Case {
                number: self.last_case,
                adapter: worker.name.clone(),
                uid: employer.uid.clone(),
                gone: false,
                memory: Memory::default(),
                outcomes: Vec::new(),
                look: None,
                looking: false,
                traffic: BTreeMap::new(),
                attaching: std::collections::BTreeSet::new(),
                report: None,
                claimed: None,
                since: None,
                writing: false,
                write_from: None,
                relied_on: None,
                looking_since: None,
                said: None,
            }
        });
        case.gone = employer.gone;
        case
    }

    fn drop_case(&mut self, key: &EmployerKey, sight: &Sight) {
        if let Some(case) = self.cases.remove(key) {
            self.office.counts.forget(key);
            let pods = sight.of_namespace(PODS, &key.1).filter(|pod| case.traffic.contains_key(&pod.uid));
            self.dirty_pods.extend(pods.map(|pod| (key.1.clone(), pod.name.clone())));
        }
        self.timers.set(Wake::Employer(key.clone()), None);
    }

    /// Something about an employer that nobody serves is said once.
    fn odd(&mut self, key: &EmployerKey, employer: &EmployerView, message: &str) {
        if self.office.counts.is_new_oddity(key, message) {
            tracing::warn!(namespace = key.1, employer = key.2, "not served: {message}");
            self.say_of(employer, "EnsureEmployerCleanFinalizerFailed", message, true);
        }
    }

    /// Pods whose traffic is seen otherwise than before are to be looked at.
    fn tell_pods(&mut self, namespace: &str, case: &mut Case, decision: &Decision, pods: &[Arc<PodView>]) {
        let mut traffic = BTreeMap::new();
        for pod in pods {
            let seen = decision.traffic.get(&pod.uid).map(|traffic| (pod.version, *traffic));
            let waits = case.attaching != decision.attaching && pod.is_controlled();
            if seen.as_ref() != case.traffic.get(&pod.uid) || waits {
                self.dirty_pods.insert((namespace.to_owned(), pod.name.clone()));
            }
            if let Some(seen) = seen {
                traffic.insert(pod.uid.clone(), seen);
            }
        }
        case.traffic = traffic;
    }

    fn say_of(&self, employer: &EmployerView, reason: &str, message: &str, warning: bool) {
        let notice = Notice { reason: reason.to_owned(), message: text::line_of(message, MESSAGE), warning };
        self.say(employer.kind.clone(), &employer.namespace, &employer.name, &employer.uid, notice);
    }

    #[allow(clippy::too_many_arguments, reason = "what one turn has at hand")]
    fn start_orders(
        &self,
        key: &EmployerKey,
        case: &Case,
        orders: Vec<Order>,
        aim: &Aim,
        about: &About,
        provider: &Provider,
        worker: &Worker,
    ) {
        for order in orders {
            let (key, number, back) = (key.clone(), case.number, self.back.clone());
            let (hands, aim, requests) = (self.hands.clone(), aim.clone(), Arc::clone(&self.requests));
            let (about, provider, counts) = (about.clone(), provider.clone(), self.office.counts.clone());
            let adapter = worker.name.clone();
            tokio::spawn(async move {
                let (result, done) = if let Act::Call { call, items } = &order.act {
                    let items = items.iter().map(|(_, state)| Value::clone(state)).collect();
                    let begun = std::time::Instant::now();
                    let result = if hands.fence.check().is_ok() {
                        provider.call(about, *call, items).await
                    } else {
                        Err("this process does not lead any more".to_owned())
                    };
                    counts.called(&adapter, call.name(), result.is_ok(), begun.elapsed());
                    (result, None)
                } else {
                    let _turn = requests.acquire().await.ok();
                    let result = hands.carry_out(&order.act, &aim).await;
                    let done = match &order.act {
                        Act::AddClean { .. } => Some("EnsureEmployerCleanFinalizerSucceed"),
                        Act::RemoveClean { .. } => Some("CleanEmployerCleanFinalizerSucceed"),
                        _ => None,
                    };
                    (result, done)
                };
                let result = result.map_err(|error| text::line_of(&error, MESSAGE));
                let outcome = Outcome { slot: order.slot, number: order.number, at: now(), result };
                let _ = back.send(Message::Outcome { key, case: number, outcome, done });
            });
        }
    }

    fn start_look(
        &self,
        key: &EmployerKey,
        case: &Case,
        about: About,
        question: u64,
        provider: Provider,
        worker: &Worker,
    ) {
        let (key, number, back) = (key.clone(), case.number, self.back.clone());
        let (counts, adapter) = (self.office.counts.clone(), worker.name.clone());
        tokio::spawn(async move {
            let from = std::time::Instant::now();
            let (began, mut result) = provider.look(about, now).await;
            counts.called(&adapter, "Look", result.is_ok(), from.elapsed());
            if let Err(failed) = &mut result {
                failed.trouble.0 = text::line_of(&failed.trouble.0, MESSAGE);
            }
            let look = Look { began, about: question, result };
            let _ = back.send(Message::Looked { key, case: number, look });
        });
    }

    pub(super) fn carried_out(
        &mut self,
        key: EmployerKey,
        number: u64,
        outcome: Outcome,
        done: Option<&'static str>,
    ) {
        let succeeded = outcome.result.is_ok();
        if let Some(reason) = done.filter(|_| succeeded) {
            let shared = self.office.shared.clone();
            let employer = shared.look().employers.get(&key).cloned();
            let followed = self.office.kinds.employers[key.0].gvk.clone();
            let uid = employer.map(|employer| employer.uid.clone());
            let uid = uid.or_else(|| self.cases.get(&key).map(|case| case.uid.clone())).unwrap_or_default();
            let message = match reason {
                "EnsureEmployerCleanFinalizerSucceed" => "the clean finalizer was added",
                _ => "everything was cleaned, and the clean finalizer was removed",
            };
            let notice = Notice { reason: reason.to_owned(), message: message.to_owned(), warning: false };
            self.say(followed, &key.1, &key.2, &uid, notice);
        }
        if let Some(case) = self.cases.get_mut(&key).filter(|case| case.number == number) {
            case.outcomes.push(outcome);
            self.dirty.insert(key);
        }
    }

    pub(super) fn looked(&mut self, key: EmployerKey, number: u64, look: Look) {
        if let Some(case) = self.cases.get_mut(&key).filter(|case| case.number == number) {
            case.looking = false;
            case.look = Some(look);
            self.dirty.insert(key);
        }
    }

    pub(super) fn bound_written(&mut self, key: EmployerKey, number: u64, result: Result<(), OwnWriteError>) {
        let Some(case) = self.cases.get_mut(&key).filter(|case| case.number == number) else { return };
        case.writing = false;
        if let Err(error) = result {
            case.relied_on = None;
            if !error.is_conflict() {
                case.write_from = Some(now().plus_duration(PROGRESS * 5));
                if case.said.as_ref() != Some(&error.to_string()) {
                    tracing::warn!(namespace = key.1, employer = key.2, "cannot write the binding: {error}");
                    case.said = Some(error.to_string());
                }
            }
        }
        self.dirty.insert(key);
    }

    /// Keeps spec and status of the binding as they should be; when to look at it again.
    #[allow(clippy::too_many_arguments, reason = "what one turn has at hand")]
    fn keep_binding(
        &self,
        key: &EmployerKey,
        case: &mut Case,
        stored: &Binding,
        wanted: &ConsistBindingSpec,
        decision: &Decision,
        pods: &[Arc<PodView>],
        time: Timestamp,
    ) -> Option<Timestamp> {
        if case.writing || stored.deleting || case.relied_on.as_ref() == Some(&stored.version) {
            return None;
        }
        let spec_differs = stored.spec != *wanted && !decision.leaving;
        // A moment in which the provider is looked at is no news: what was known a moment ago still stands.
        if decision.report.looking && stored.status.phase.is_some() && !spec_differs {
            let until = case.looking_since.get_or_insert(time).plus_duration(LOOKING);
            if time < until {
                return Some(until);
            }
        } else {
            case.looking_since = None;
        }
        let since = case.since.get_or_insert_with(|| Since::of(&stored.status));
        let status = binding::status(&decision.report, pods, stored, since, time);
        let differs = binding::differs(&status, &stored.status);
        if !spec_differs && !differs {
            return None;
        }
        let urgent = spec_differs || status.phase != stored.status.phase;
        if let Some(from) = case.write_from.filter(|from| *from > time && !urgent) {
            return Some(from);
        }
        case.writing = true;
        case.write_from = Some(time.plus_duration(PROGRESS));
        case.relied_on = Some(stored.version.clone());
        let (hands, back, requests) = (self.hands.clone(), self.back.clone(), Arc::clone(&self.requests));
        let (key, number, kind) = (key.clone(), case.number, self.office.kinds.bindings.clone());
        let (name, version, wanted) = (stored.name.clone(), stored.version.clone(), wanted.clone());
        tokio::spawn(async move {
            let _turn = requests.acquire().await.ok();
            let result = if hands.fence.check().is_err() {
                Err(OwnWriteError::Passing("this process does not lead any more".to_owned()))
            } else if spec_differs {
                let place = Place { kind: &kind.own, namespace: Some(&key.1), name: &name };
                let body = json!({"metadata": {"resourceVersion": version}, "spec": wanted});
                hands.errands.change(place, None, Change::Merge, &body, DEADLINE).await.map(drop)
            } else {
                let place = (Some(key.1.clone()), name);
                let client = hands.errands.client();
                own::write_status(client, &kind.own, &place, &version, json!(status)).await.map(drop)
            };
            let _ = back.send(Message::Bound { key, case: number, result });
        });
        None
    }
}

/// The employees that matter for an employer; none while they are not known.
fn relevant(
    sight: &Sight,
    worker: &Worker,
    employer: &EmployerView,
    selection: &Selection,
    namespace: &str,
) -> Option<Vec<Arc<PodView>>> {
    if !sight.is_synced(Watch::Employees(worker.employee)) {
        return None;
    }
    let own = worker.finalizers(employer);
    let key = entry_key(&employer.kind.kind, namespace, &employer.name);
    let matters = |pod: &&Arc<PodView>| {
        selection.selects(&pod.name, &pod.labels)
            || pod.finalizers.iter().any(|finalizer| own.has(finalizer))
            || pod.mentions(&key)
    };
    Some(sight.of_namespace(worker.employee, namespace).filter(matters).cloned().collect())
}

/// What the provider is asked and told about.
fn about(
    worker: &Worker,
    employer: &EmployerView,
    selection: &Selection,
    pods: &[Arc<PodView>],
    leaving: bool,
    now: Timestamp,
) -> About {
    let meant = |pod: &&Arc<PodView>| {
        worker.options.employee_predicate.admits(&pod.labels) && selection.selects(&pod.name, &pod.labels)
    };
    About {
        employer: Arc::clone(&employer.object),
        key: (employer.kind.kind.clone(), employer.namespace.clone(), employer.name.clone()),
        employees: pods.iter().filter(meant).map(|pod| Arc::clone(&pod.object)).collect(),
        leaving,
        now,
    }
}

/// What is seen of the binding. One that was ours and that somebody changed is ours all the same: it is put back.
fn claim(case: &mut Case, worker: &Worker, employer: &EmployerView, binding: Option<&Binding>) -> Claim {
    let Some(binding) = binding else {
        case.claimed = None;
        return Claim::Absent;
    };
    let ours = binding.spec.adapter == worker.name && binding.spec.employer.uid == employer.uid;
    if ours {
        case.claimed = Some(binding.uid.clone());
    }
    if case.claimed.as_ref() == Some(&binding.uid) {
        return Claim::Held {
            adapter: worker.name.clone(),
            employer: employer.uid.clone(),
            uid: binding.uid.clone(),
        };
    }
    Claim::Held {
        adapter: binding.spec.adapter.clone(),
        employer: binding.spec.employer.uid.clone(),
        uid: binding.uid.clone(),
    }
}
