//! What the consist process sees: employers, employees, bindings, rules, and what else decides.
//!
//! Followed on every replica, so that webhooks can answer on each of them and a new leader begins with warm caches. What
//! changed is handed to the desk of the term that runs, if one does. Nothing is concluded from what is missing before a
//! kind has been seen completely ([`ClusterView::is_synced`]).

mod index;
mod read;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use linchpin_cluster::own::{self, OperatorRequests, OwnEvent, OwnKind, OwnTrouble};
use linchpin_consist::{PodView, settle::EmployerView};
use linchpin_words::Gvk;
use serde_json::Value;
use tokio::sync::mpsc;

use self::index::{EmployeeKey, WordIndex};
pub(super) use self::read::{Binding, Budget, RuleObject};
use super::crew::AdapterWorkers;
use crate::settings::Namespaces;

/// An employer: the number of its kind, its namespace, its name.
pub(super) type EmployerKey = (usize, String, String);
/// Namespace and name.
pub(super) type Name = (String, String);

/// What is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Watch {
    /// A kind of employers, by its number.
    Employers(usize),
    /// A kind of employees, by its number; 0 is Pod.
    Employees(usize),
    Bindings,
    Rules,
    Namespaces,
    /// Who else runs PodOpsLifecycle.
    Engines,
    Budgets,
    Slices,
}

/// The number of Pod among the kinds of employees.
pub(super) const PODS: usize = 0;

/// A kind that is followed.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    pub(super) gvk: Gvk,
    pub(super) own: OwnKind,
}

impl Followed {
    pub(super) fn new(group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        let gvk = Gvk::new(group, version, kind);
        Self { own: OwnKind::new(&gvk, plural, namespaced), gvk }
    }
}

/// The kinds that are followed.
#[derive(Clone, Debug)]
pub(super) struct FollowedKinds {
    pub(super) employers: Vec<Followed>,
    pub(super) employees: Vec<Followed>,
    pub(super) bindings: Followed,
    pub(super) rules: Followed,
}

/// What is followed, the kind of it, and whether that is done in each served namespace.
pub(super) type WatchedKind = (Watch, Followed, bool);

/// What is going to be followed, and in which namespaces; none: in all.
pub(super) type ToFollow = (Watch, Followed, Vec<Option<String>>);

impl FollowedKinds {
    /// The kinds beyond these numbers: of employers, and of employees.
    pub(super) fn since(&self, known: (usize, usize)) -> Vec<WatchedKind> {
        let numbered = |list: &[Followed], from: usize, watch: fn(usize) -> Watch| {
            let numbered = list.iter().enumerate().skip(from);
            numbered.map(|(number, kind)| (watch(number), kind.clone(), true)).collect::<Vec<_>>()
        };
        let mut new = numbered(&self.employers, known.0, Watch::Employers);
        new.extend(numbered(&self.employees, known.1, Watch::Employees));
        new
    }

    /// Everything.
    pub(super) fn all(&self) -> Vec<WatchedKind> {
        let mut all = self.since((0, 0));
        all.push((Watch::Bindings, self.bindings.clone(), true));
        all.push((Watch::Rules, self.rules.clone(), true));
        all.push((Watch::Namespaces, Followed::new("", "v1", "Namespace", "namespaces", false), false));
        all.push((
            Watch::Engines,
            Followed::new(
                "admissionregistration.k8s.io",
                "v1",
                "MutatingWebhookConfiguration",
                "mutatingwebhookconfigurations",
                false,
            ),
            false,
        ));
        all.push((
            Watch::Budgets,
            Followed::new("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
            true,
        ));
        all.push((
            Watch::Slices,
            Followed::new("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true),
            true,
        ));
        all
    }
}

/// What changed.
#[derive(Clone, Debug)]
pub(super) enum ViewChange {
    /// An employer.
    Employer(EmployerKey),
    /// An employee of a kind, as it was and as it is.
    Employee { kind: usize, namespace: String, old: Option<Arc<PodView>>, new: Option<Arc<PodView>> },
    /// A binding, as it was or is.
    Binding { namespace: String, binding: Arc<Binding> },
    /// A rule of a namespace.
    Rules(String),
    /// A namespace is being deleted, or not any more.
    Namespace(String),
    /// Which pods are endpoints in a namespace.
    Slices(String),
    /// Everything is to be looked at again.
    All,
}

/// Everything that was seen. Clones share it.
#[derive(Clone, Default)]
pub(super) struct SharedClusterView(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cluster_view: Mutex<ClusterView>,
    desk: Mutex<Option<mpsc::UnboundedSender<ViewChange>>>,
}

impl SharedClusterView {
    /// What was seen, as long as the guard lives.
    pub(super) fn look(&self) -> MutexGuard<'_, ClusterView> {
        self.0.cluster_view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is notified of changes from now on.
    pub(super) fn notify(&self, desk: Option<mpsc::UnboundedSender<ViewChange>>) {
        *self.0.desk.lock().unwrap_or_else(PoisonError::into_inner) = desk;
    }

    pub(super) fn note(&self, watch: Watch, gvk: &Gvk, namespace: Option<&str>, event: &OwnEvent) {
        let changes_seen = self.look().note(watch, gvk, namespace, event);
        let desk = self.0.desk.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(desk) = &*desk {
            for change in changes_seen {
                let _ = desk.send(change);
            }
        }
    }

    /// Who is at work from now on.
    pub(super) fn employ(&self, crew: Arc<AdapterWorkers>) {
        self.look().employ(crew);
    }

    /// Everything is to be looked at again.
    pub(super) fn notify_all(&self) {
        if let Some(desk) = &*self.0.desk.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = desk.send(ViewChange::All);
        }
    }

    /// What is going to be followed, and where: from now on something is missing until it has been seen.
    pub(super) fn expect(&self, kinds: Vec<WatchedKind>, namespaces: &Namespaces) -> Vec<ToFollow> {
        let mut cluster_view = self.look();
        let placed = |(watch, kind, namespaced): WatchedKind| {
            let places: Vec<Option<String>> = match namespaces {
                Namespaces::Only(names) if namespaced => names.iter().cloned().map(Some).collect(),
                _ => vec![None],
            };
            cluster_view.expected.insert(watch, places.len());
            (watch, kind, places)
        };
        kinds.into_iter().map(placed).collect()
    }

    /// Follows them until dropped.
    pub(super) async fn follow(&self, own_requests: &OperatorRequests, expected: Vec<ToFollow>) {
        let mut followers = tokio::task::JoinSet::new();
        for (watch, kind, places) in expected {
            for namespace in places {
                let (shared, own_requests, kind) = (self.clone(), own_requests.clone(), kind.clone());
                followers.spawn(async move {
                    let place = namespace.clone();
                    let report = move |event: OwnEvent| {
                        if let OwnEvent::Trouble(trouble) = &event {
                            tracing::warn!(kind = kind.gvk.kind, "cannot watch: {trouble}");
                        }
                        shared.note(watch, &kind.gvk, place.as_deref(), &event);
                    };
                    own::follow(own_requests.client().watches(), &kind.own, namespace.as_deref(), report)
                        .await;
                });
            }
        }
        while followers.join_next().await.is_some() {}
    }
}

/// What was seen.
#[derive(Default)]
pub(super) struct ClusterView {
    pub(super) employers: BTreeMap<EmployerKey, Arc<EmployerView>>,
    /// By the number of their kind, namespace and name.
    pub(super) employees: BTreeMap<(usize, String), BTreeMap<String, Arc<PodView>>>,
    pub(super) bindings: BTreeMap<Name, Arc<Binding>>,
    pub(super) rules: BTreeMap<Name, Arc<RuleObject>>,
    /// Namespaces that are being deleted.
    pub(super) going: BTreeSet<String>,
    /// Configurations that call another engine of PodOpsLifecycle.
    engines: BTreeSet<String>,
    pub(super) budgets: BTreeMap<Name, Budget>,
    /// The uids of the pods that an EndpointSlice lists.
    slices: BTreeMap<Name, BTreeSet<String>>,
    /// How many EndpointSlices list a pod, by its uid.
    endpoints: BTreeMap<String, usize>,
    /// The adapters at work, and by what employers and employees are found for each other.
    crew: Arc<AdapterWorkers>,
    employers_by: WordIndex<EmployerKey>,
    employees_by: WordIndex<EmployeeKey>,
    /// How often a watch has been seen completely, of how many.
    synced: BTreeMap<Watch, BTreeSet<Option<String>>>,
    expected: BTreeMap<Watch, usize>,
    /// Why something cannot be seen.
    troubles: BTreeMap<Watch, String>,
}

impl ClusterView {
    /// Whether everything of a watch has been seen.
    pub(super) fn is_synced(&self, watch: Watch) -> bool {
        let seen = self.synced.get(&watch).map_or(0, BTreeSet::len);
        self.expected.get(&watch).is_some_and(|expected| seen >= *expected)
    }

    /// Why a kind that is needed is not seen; none where all are.
    pub(super) fn lacks(&self) -> Option<String> {
        let needed = |watch: &Watch| {
            matches!(watch, Watch::Employers(_) | Watch::Employees(_) | Watch::Bindings | Watch::Rules)
        };
        let missing =
            self.expected.keys().filter(|watch| needed(watch)).find(|watch| !self.is_synced(**watch));
        match missing {
            Some(watch) => {
                Some(self.troubles.get(watch).cloned().unwrap_or_else(|| "reading what is there".to_owned()))
            }
            None if self.expected.is_empty() => Some("starting".to_owned()),
            None => None,
        }
    }

    /// Whether it is known who runs PodOpsLifecycle, or known that it cannot be known.
    pub(super) fn has_asked_for_engines(&self) -> bool {
        self.is_synced(Watch::Engines) || self.troubles.contains_key(&Watch::Engines)
    }

    /// Whether somebody else runs PodOpsLifecycle; none while that is not known.
    pub(super) fn has_other_engine(&self) -> Option<bool> {
        self.is_synced(Watch::Engines).then_some(!self.engines.is_empty())
    }

    /// The employees of a kind in a namespace.
    pub(super) fn of_namespace(&self, kind: usize, namespace: &str) -> impl Iterator<Item = &Arc<PodView>> {
        self.employees.get(&(kind, namespace.to_owned())).into_iter().flat_map(BTreeMap::values)
    }

    /// One pod.
    pub(super) fn pod(&self, namespace: &str, name: &str) -> Option<&Arc<PodView>> {
        self.employees.get(&(PODS, namespace.to_owned()))?.get(name)
    }

    /// Whether an EndpointSlice lists a pod: somebody sends it traffic who does not report when it stops.
    pub(super) fn is_endpoint(&self, uid: &str) -> bool {
        self.endpoints.contains_key(uid)
    }

    /// Takes down which pods an EndpointSlice lists; those that it listed before.
    fn list(&mut self, slice: Name, pods: BTreeSet<String>) -> BTreeSet<String> {
        for uid in &pods {
            *self.endpoints.entry(uid.clone()).or_default() += 1;
        }
        let before =
            if pods.is_empty() { self.slices.remove(&slice) } else { self.slices.insert(slice, pods) };
        let before = before.unwrap_or_default();
        for uid in &before {
            if let Some(count) = self.endpoints.get_mut(uid) {
                *count -= 1;
                if *count == 0 {
                    self.endpoints.remove(uid);
                }
            }
        }
        before
    }

    /// The budgets of a namespace.
    pub(super) fn budgets_of(&self, namespace: &str) -> impl Iterator<Item = &Budget> {
        let from = (namespace.to_owned(), String::new());
        let here = self.budgets.range(from..).take_while(move |((place, _), _)| place == namespace);
        here.map(|(_, budget)| budget)
    }

    /// Takes down what a watch says.
    fn note(&mut self, watch: Watch, gvk: &Gvk, follower: Option<&str>, event: &OwnEvent) -> Vec<ViewChange> {
        match event {
            OwnEvent::There(object) => {
                let Ok(value) = object.read::<Value>() else { return Vec::new() };
                let (namespace, name) = object.place();
                self.put(watch, gvk, (namespace.unwrap_or_default(), name), value)
            }
            OwnEvent::Gone((namespace, name)) => {
                self.take(watch, (namespace.clone().unwrap_or_default(), name.clone()))
            }
            OwnEvent::Synced => {
                let was = self.is_synced(watch);
                self.synced.entry(watch).or_default().insert(follower.map(str::to_owned));
                self.troubles.remove(&watch);
                if was { Vec::new() } else { vec![ViewChange::All] }
            }
            OwnEvent::Trouble(trouble) => {
                let first = self.troubles.insert(watch, trouble.to_string()).is_none();
                if watch == Watch::Engines && first {
                    return vec![ViewChange::All];
                }
                if matches!(trouble, OwnTrouble::NotServed(_)) && watch == Watch::Rules {
                    // Without their definition there are no rules.
                    self.synced.entry(watch).or_default().insert(follower.map(str::to_owned));
                    return vec![ViewChange::All];
                }
                Vec::new()
            }
        }
    }

    fn put(&mut self, watch: Watch, gvk: &Gvk, (namespace, name): Name, mut value: Value) -> Vec<ViewChange> {
        read::tidy(&mut value, gvk);
        match watch {
            Watch::Employers(kind) => {
                let view = Arc::new(EmployerView::of(gvk, &Arc::new(value)));
                let key = (kind, namespace, name);
                self.index_employer(key.clone(), &view);
                self.employers.insert(key.clone(), view);
                vec![ViewChange::Employer(key)]
            }
            Watch::Employees(kind) => {
                if kind == PODS {
                    read::slim(&mut value);
                }
                let new = Arc::new(PodView::of(&Arc::new(value)));
                self.index_employee((kind, namespace.clone(), name.clone()), &new);
                let here = self.employees.entry((kind, namespace.clone())).or_default();
                let old = here.insert(name, Arc::clone(&new));
                vec![ViewChange::Employee { kind, namespace, old, new: Some(new) }]
            }
            Watch::Bindings => {
                let Some(binding) = Binding::read(&value) else { return Vec::new() };
                let binding = Arc::new(binding);
                self.bindings.insert((namespace.clone(), name), Arc::clone(&binding));
                vec![ViewChange::Binding { namespace, binding }]
            }
            Watch::Rules => {
                let Some(rule) = RuleObject::read(&value) else { return Vec::new() };
                self.rules.insert((namespace.clone(), name), Arc::new(rule));
                vec![ViewChange::Rules(namespace)]
            }
            Watch::Namespaces => {
                let going = value.pointer("/metadata/deletionTimestamp").is_some();
                let changed = if going { self.going.insert(name.clone()) } else { self.going.remove(&name) };
                if changed { vec![ViewChange::Namespace(name)] } else { Vec::new() }
            }
            Watch::Engines => {
                let before = self.engines.is_empty();
                if read::is_engine(&name, &value) {
                    self.engines.insert(name);
                } else {
                    self.engines.remove(&name);
                }
                if before == self.engines.is_empty() { Vec::new() } else { vec![ViewChange::All] }
            }
            Watch::Budgets => {
                if let Some(budget) = Budget::read(&value) {
                    self.budgets.insert((namespace, name), budget);
                }
                Vec::new()
            }
            Watch::Slices => {
                let pods = read::listed(&value);
                let same = self.list((namespace.clone(), name), pods.clone()) == pods;
                if same { Vec::new() } else { vec![ViewChange::Slices(namespace)] }
            }
        }
    }

    fn take(&mut self, watch: Watch, (namespace, name): Name) -> Vec<ViewChange> {
        let place = (namespace.clone(), name.clone());
        match watch {
            Watch::Employers(kind) => {
                let key = (kind, namespace, name);
                self.employers_by.take(&key);
                self.employers.remove(&key);
                vec![ViewChange::Employer(key)]
            }
            Watch::Employees(kind) => {
                self.employees_by.take(&(kind, namespace.clone(), name.clone()));
                let here = self.employees.get_mut(&(kind, namespace.clone()));
                let old = here.and_then(|here| here.remove(&name));
                vec![ViewChange::Employee { kind, namespace, old, new: None }]
            }
            Watch::Bindings => match self.bindings.remove(&place) {
                Some(binding) => vec![ViewChange::Binding { namespace, binding }],
                None => Vec::new(),
            },
            Watch::Rules => {
                self.rules.remove(&place);
                vec![ViewChange::Rules(namespace)]
            }
            Watch::Namespaces => {
                self.going.remove(&name);
                vec![ViewChange::Namespace(name)]
            }
            Watch::Engines => {
                let was = self.engines.remove(&name);
                if was { vec![ViewChange::All] } else { Vec::new() }
            }
            Watch::Budgets => {
                self.budgets.remove(&place);
                Vec::new()
            }
            Watch::Slices => {
                self.list(place, BTreeSet::new());
                vec![ViewChange::Slices(namespace)]
            }
        }
    }
}
