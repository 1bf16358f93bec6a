//! One employer's turn: who serves it, what is to be done for it, and what its binding says.

mod bindings;
mod order_calls;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use linchpin_consist::{
    EmployeeSelection, ObservedEmployer, PodView,
    settle::{
        AdapterChoice, BindingClaim, EmployerReport, EmployerView, ObservedEmployment, ProviderLook,
        ReadyReason, SettleDecision, SettleMemory, SettleOutcome, Traffic, settle as decide,
    },
};
use linchpin_engine::contract::Notice;
use linchpin_words::{Gvk, Reason, Timestamp, text};

use super::{Desk, Wake};
use crate::consist::{
    ConsistMode,
    acts::{OrderTarget, Provider},
    binding::{self, RowTimes},
    cluster_view::{Binding, ClusterView, EmployerKey, PODS, Watch},
    crew::{Worker, binding_name},
};

/// The most bytes of a message.
const MESSAGE: usize = 1024;

/// What is known of one employer beside what is seen of it. It may be lost.
#[derive(Default)]
pub(super) struct Case {
    number: u64,
    /// The adapter that it is served by.
    adapter: String,
    uid: String,
    memory: SettleMemory,
    outcomes: Vec<SettleOutcome>,
    look: Option<ProviderLook>,
    looking: bool,
    /// What is known of each pod's traffic, and the pod's version that this is about.
    pub(super) traffic: BTreeMap<String, (u64, Traffic)>,
    pub(super) attaching: BTreeSet<String>,
    pub(super) report: Option<EmployerReport>,
    /// The uid of the binding that was seen to be ours.
    claimed: Option<String>,
    since: Option<RowTimes>,
    /// Whether a write to the binding is under way, and not before when the next one may be.
    writing: bool,
    write_from: Option<Timestamp>,
    /// The version that a write to the binding relied on: the next one needs a newer one.
    relied_on: Option<String>,
    /// Since when the provider is being looked at and nothing is known.
    looking_since: Option<Timestamp>,
    said: Option<String>,
}

/// Who serves an employer now, and whether it is to be served or left.
enum ServedBy<'a> {
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
    ) -> ServedBy<'a> {
        let crew = &self.parts.crew;
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
        let leaves = employer.gone || self.parts.mode != ConsistMode::Serve;
        let choice = if leaves { AdapterChoice::Nobody } else { crew.choice(employer) };
        match (choice, holder) {
            // Who has it keeps it while others are being opened, and nobody new is served that they might ask for.
            (AdapterChoice::One(_), Some(holder)) if crew.is_undecided(employer) => {
                ServedBy::By(holder, true)
            }
            (AdapterChoice::One(_), None) if crew.is_undecided(employer) => ServedBy::Nobody,
            (AdapterChoice::One(name), Some(holder)) if holder.name != name => ServedBy::By(holder, false),
            (AdapterChoice::One(name), _) => {
                crew.named(name).map_or(ServedBy::Nobody, |worker| ServedBy::By(worker, true))
            }
            (_, Some(holder)) => ServedBy::By(holder, false),
            (AdapterChoice::Several(names), None) if employer.clean_finalizers().is_empty() => {
                ServedBy::Several(names.join(", "))
            }
            (_, None) if binding.is_none() && !employer.clean_finalizers().is_empty() => {
                crew.workers().find(of_kind).map_or(ServedBy::Nobody, |worker| ServedBy::By(worker, false))
            }
            (_, None) => ServedBy::Nobody,
        }
    }

    pub(super) fn employer_turn(&mut self, key: &EmployerKey, time: Timestamp) {
        let shared = self.parts.shared.clone();
        let cluster_view = shared.look();
        let (kind, namespace, name) = key;
        let followed = self.parts.kinds.employers[*kind].clone();
        if !cluster_view.is_synced(Watch::Employers(*kind)) || !cluster_view.is_synced(Watch::Bindings) {
            return;
        }
        let binding_name = binding_name(&followed.gvk, name);
        let binding = cluster_view.bindings.get(&(namespace.clone(), binding_name.clone())).cloned();
        let employer = cluster_view.employers.get(key).cloned().or_else(|| {
            let binding = binding.as_ref()?;
            Some(Arc::new(binding::gone_employer(&followed.gvk, namespace, binding)))
        });
        let Some(employer) = employer.map(|employer| self.as_left(employer)) else {
            return self.drop_case(key, &cluster_view);
        };
        let (name_of_worker, serve) = match self.served(key, &employer, binding.as_deref()) {
            ServedBy::By(worker, serve) => (worker.name.clone(), serve),
            ServedBy::Nobody => return self.drop_case(key, &cluster_view),
            ServedBy::Several(names) => {
                let message =
                    format!("adapters {names} fit it: choose one with the label linchpin.dev/adapter");
                return self.odd(key, &employer, &message);
            }
        };
        let crew = Arc::clone(&self.parts.crew);
        let Some(worker) = crew.named(&name_of_worker) else { return };
        let mut case = self.case(key, worker, &employer);
        let read = worker.read(&employer);
        let selection = &read.selection;
        let known = cluster_view.is_synced(Watch::Employees(worker.employee));
        let pods = known.then(|| cluster_view.employees_of(worker, &employer, &read));
        let wanted = binding::spec(worker, &employer, selection);
        let claim = claim(&mut case, worker, &employer, binding.as_deref());
        let namespace_going = cluster_view.going.contains(namespace);
        // Webhooks answer from the same view of the cluster, and do not wait for a decision.
        drop(cluster_view);
        let observed = ObservedEmployment {
            employer: &employer,
            adapter: &worker.name,
            options: &worker.options,
            selection,
            follows: worker.follows,
            serve,
            employees: pods.as_deref(),
            claim: &claim,
            look: case.look.as_ref(),
            namespace_going,
            drain_timeout: self.parts.lifecycle.drain_timeout,
        };
        let outcomes = std::mem::take(&mut case.outcomes);
        let decision = decide(&case.memory, observed, &outcomes, time);
        let pods = pods.unwrap_or_default();
        self.notify_pods(namespace, &mut case, &decision, &pods);
        for notice in &decision.notices {
            self.say_of(&employer, notice.reason, &notice.message, notice.warning);
        }
        if let Some(left) = &decision.left {
            self.left_behind(left);
        }
        let aim = OrderTarget {
            employer: Arc::clone(&employer),
            employer_kind: followed,
            pods: self.parts.kinds.employees[PODS].clone(),
            bindings: self.parts.kinds.bindings.clone(),
            binding: binding::object(&binding_name, namespace, &wanted),
            binding_name,
        };
        let about = about(worker, &employer, selection, &pods, decision.leaving, time);
        let provider = Provider {
            port: Arc::clone(&worker.port),
            seats: Arc::clone(&worker.seats),
            timeout: worker.options.timeout,
        };
        self.start_orders(key, &case, &decision, &aim, &about, &provider, worker, time);
        if decision.look_at.is_some_and(|at| at <= time) && !case.looking {
            case.looking = true;
            self.start_look(key, &case, about, &decision, provider, worker, time);
        }
        let ours = binding
            .filter(|_| matches!(&claim, BindingClaim::Held { adapter, .. } if *adapter == worker.name));
        let write_at = ours
            .and_then(|binding| self.keep_binding(key, &mut case, &binding, &wanted, &decision, &pods, time));
        let look_at = decision.look_at.filter(|at| *at > time && !case.looking);
        let wake = [decision.wake_at, look_at, write_at].into_iter().flatten().filter(|at| *at > time).min();
        self.timers.set(Wake::Employer(key.clone()), wake);
        case.memory = decision.memory;
        case.attaching = decision.attaching;
        self.count(key, &employer, &worker.name, &decision.report);
        case.report = Some(decision.report);
        if decision.over && !case.memory.is_busy() {
            self.not_gone(key);
            self.parts.counts.forget(key);
            self.timers.set(Wake::Employer(key.clone()), None);
        } else {
            self.cases.insert(key.clone(), case);
        }
    }

    /// Counts an employer, or reports that another adapter serves it.
    fn count(&mut self, key: &EmployerKey, employer: &EmployerView, adapter: &str, report: &EmployerReport) {
        if report.reason == ReadyReason::AlreadyServed {
            self.odd(key, employer, &format!("AlreadyServed: {}", report.message));
        } else {
            self.parts.counts.employment(key, adapter, report);
        }
    }

    /// The case of an employer; a new one where another adapter or another incarnation is meant.
    fn case(&mut self, key: &EmployerKey, worker: &Worker, employer: &EmployerView) -> Case {
        let known = self.cases.remove(key);
        let same = |case: &Case| case.adapter == worker.name && case.uid == employer.uid;
        let case = known.filter(same).unwrap_or_else(|| {
            self.last_case += 1;
            Case {
                number: self.last_case,
                adapter: worker.name.clone(),
                uid: employer.uid.clone(),
                ..Case::default()
            }
        });
        if employer.gone {
            self.gone.entry(key.1.clone()).or_default().insert(key.clone());
        } else {
            self.not_gone(key);
        }
        case
    }

    fn drop_case(&mut self, key: &EmployerKey, cluster_view: &ClusterView) {
        self.not_gone(key);
        if let Some(case) = self.cases.remove(key) {
            self.parts.counts.forget(key);
            let pods =
                cluster_view.of_namespace(PODS, &key.1).filter(|pod| case.traffic.contains_key(&pod.uid));
            self.dirty_pods.extend(pods.map(|pod| (key.1.clone(), pod.name.clone())));
        }
        self.timers.set(Wake::Employer(key.clone()), None);
    }

    /// Something about an employer that nobody serves is said once.
    fn odd(&mut self, key: &EmployerKey, employer: &EmployerView, message: &str) {
        if self.parts.counts.is_new_oddity(key, message) {
            tracing::warn!(namespace = key.1, employer = key.2, "not served: {message}");
            self.say_of(employer, "EnsureEmployerCleanFinalizerFailed", message, true);
        }
    }

    /// Says what is left at a provider where it is still read when the employer is gone: log, number, and our own namespace.
    fn left_behind(&self, message: &str) {
        let message = text::line_of(message, MESSAGE);
        tracing::warn!("{message}");
        self.parts.counts.left_behind();
        let context = &self.parts.context;
        let (namespace, name) =
            super::leaving::lease(context.settings.leader_election.as_ref(), &context.namespace);
        let reason = Reason::LeftBehind.as_str().to_owned();
        let notice = Notice { reason, message, warning: true };
        self.say(Gvk::new("coordination.k8s.io", "v1", "Lease"), namespace, name, "", notice);
    }

    /// Pods whose traffic is seen otherwise than before are to be looked at.
    fn notify_pods(
        &mut self,
        namespace: &str,
        case: &mut Case,
        decision: &SettleDecision,
        pods: &[Arc<PodView>],
    ) {
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
}

/// What the provider is asked and sent.
fn about(
    worker: &Worker,
    employer: &EmployerView,
    selection: &EmployeeSelection,
    pods: &[Arc<PodView>],
    leaving: bool,
    now: Timestamp,
) -> ObservedEmployer {
    let meant = |pod: &&Arc<PodView>| {
        worker.options.employee_predicate.admits(&pod.labels) && selection.selects(&pod.name, &pod.labels)
    };
    ObservedEmployer {
        employer: Arc::clone(&employer.object),
        key: (employer.kind.kind.clone(), employer.namespace.clone(), employer.name.clone()),
        employees: pods.iter().filter(meant).map(|pod| Arc::clone(&pod.object)).collect(),
        leaving,
        now,
    }
}

/// What is seen of the binding. One that was ours and that somebody changed is ours all the same: it is put back.
fn claim(
    case: &mut Case,
    worker: &Worker,
    employer: &EmployerView,
    binding: Option<&Binding>,
) -> BindingClaim {
    let Some(binding) = binding else {
        case.claimed = None;
        return BindingClaim::Absent;
    };
    let ours = binding.spec.adapter == worker.name && binding.spec.employer.uid == employer.uid;
    if ours {
        case.claimed = Some(binding.uid.clone());
    }
    if case.claimed.as_ref() == Some(&binding.uid) {
        return BindingClaim::Held {
            adapter: worker.name.clone(),
            employer: employer.uid.clone(),
            uid: binding.uid.clone(),
        };
    }
    BindingClaim::Held {
        adapter: binding.spec.adapter.clone(),
        employer: binding.spec.employer.uid.clone(),
        uid: binding.uid.clone(),
    }
}
