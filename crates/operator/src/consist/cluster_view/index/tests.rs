//! What the index finds is what asking everybody finds, whatever came and went before.

use linchpin_consist::{
    AdapterKinds, AdapterOptions, Batch, Call, Getter, LookFailed, ObservedEmployer, Port, ProviderAnswer,
    Trouble,
    marks::{OwnFinalizers, lifecycle_finalizer},
};
use linchpin_words::{Gvk, keys::consist as keys};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::consist::{
    cluster_view::{PODS, Watch},
    crew::{Enabled, Overrides},
};

/// An adapter that selects by labels, or by the names at `.spec.names`.
struct Selects;

impl Port for Selects {
    fn controller_name(&self) -> &'static str {
        "selects"
    }
    fn options(&self) -> AdapterOptions {
        AdapterOptions::default()
    }
    fn kinds(&self) -> AdapterKinds {
        AdapterKinds::default()
    }
    fn employs(&self, employer: &Value) -> EmployeeSelection {
        match employer.pointer("/spec/names").and_then(Value::as_array) {
            Some(names) => EmployeeSelection::Names(
                names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
            ),
            None => EmployeeSelection::labels_at(employer, "/spec/selector"),
        }
    }
    fn look<'a>(
        &'a self,
        _: &'a ObservedEmployer,
    ) -> futures::future::BoxFuture<'a, Result<ProviderAnswer, LookFailed>> {
        let failed = LookFailed::new(Getter::CurrentEmployees, Trouble::new("nobody looks"));
        Box::pin(async move { Err(failed) })
    }
    fn call<'a>(
        &'a self,
        _: &'a ObservedEmployer,
        _: Call,
        _: Vec<Value>,
    ) -> futures::future::BoxFuture<'a, Result<Batch, Trouble>> {
        Box::pin(async { Err(Trouble::new("nobody calls")) })
    }
}

fn cluster_view() -> ClusterView {
    let enabled = Enabled {
        name: "selects".to_owned(),
        port: Arc::new(Selects),
        overrides: Overrides::default(),
        until_changed: None,
    };
    let mut cluster_view = ClusterView::default();
    cluster_view.employ(Arc::new(AdapterWorkers::default().with(Worker::new(enabled, [0, PODS]), true)));
    cluster_view
}

/// One thing that happens: an employer or a pod of a namespace is written, or goes.
#[derive(Clone, Debug)]
enum Event {
    Employer { place: usize, name: usize, selector: Vec<(usize, usize)>, names: Option<Vec<usize>> },
    EmployerGone { place: usize, name: usize },
    Pod { place: usize, name: usize, labels: Vec<(usize, usize)>, marks: Vec<usize>, entries: Vec<usize> },
    PodGone { place: usize, name: usize },
}

const PLACES: [&str; 2] = ["shop", "other"];

fn events() -> impl Strategy<Value = Vec<Event>> {
    let pairs = || prop::collection::vec((0..3_usize, 0..2_usize), 0..3);
    let some = || prop::collection::vec(0..4_usize, 0..3);
    let event = prop_oneof![
        3 => (0..2_usize, 0..4_usize, pairs(), prop::option::weighted(0.2, some()))
            .prop_map(|(place, name, selector, names)| Event::Employer { place, name, selector, names }),
        1 => (0..2_usize, 0..4_usize).prop_map(|(place, name)| Event::EmployerGone { place, name }),
        4 => (0..2_usize, 0..4_usize, pairs(), some(), some())
            .prop_map(|(place, name, labels, marks, entries)| Event::Pod { place, name, labels, marks, entries }),
        1 => (0..2_usize, 0..4_usize).prop_map(|(place, name)| Event::PodGone { place, name }),
    ];
    prop::collection::vec(event, 1..40)
}

fn labels(pairs: &[(usize, usize)]) -> Value {
    Value::Object(pairs.iter().map(|(key, value)| (format!("k{key}"), json!(format!("v{value}")))).collect())
}

fn happens(cluster_view: &mut ClusterView, event: Event, version: usize) {
    let service = Gvk::new("", "v1", "Service");
    let pod = Gvk::new("", "v1", "Pod");
    let at = |place: usize, name: String| (PLACES[place].to_owned(), name);
    let metadata = |place: usize, name: &str| {
        json!({"name": name, "namespace": PLACES[place],
        "uid": format!("{place}-{name}"), "resourceVersion": version.to_string()})
    };
    match event {
        Event::Employer { place, name, selector, names } => {
            let name = format!("s{name}");
            let mut spec = json!({"selector": labels(&selector)});
            if let Some(names) = names {
                spec["names"] = names.iter().map(|name| format!("p{name}")).collect();
            }
            let value = json!({"metadata": metadata(place, &name), "spec": spec});
            cluster_view.put(Watch::Employers(0), &service, at(place, name), value);
        }
        Event::EmployerGone { place, name } => {
            cluster_view.take(Watch::Employers(0), at(place, format!("s{name}")));
        }
        Event::Pod { place, name, labels: pairs, marks, entries } => {
            let name = format!("p{name}");
            let mut metadata = metadata(place, &name);
            metadata["labels"] = labels(&pairs);
            metadata["finalizers"] =
                marks.iter().map(|name| lifecycle_finalizer(&format!("s{name}"))).collect();
            let expected: BTreeMap<String, String> = entries
                .iter()
                .map(|name| (entry_key("Service", PLACES[place], &format!("s{name}")), "f".to_owned()))
                .collect();
            metadata["annotations"] =
                json!({keys::AVAILABLE_CONDITIONS: json!({"expectedFinalizers": expected}).to_string()});
            cluster_view.put(Watch::Employees(PODS), &pod, at(place, name), json!({"metadata": metadata}));
        }
        Event::PodGone { place, name } => {
            cluster_view.take(Watch::Employees(PODS), at(place, format!("p{name}")));
        }
    }
}

/// Whether an employer and a pod concern each other, asked directly.
fn concern(employer: &EmployerView, pod: &PodView) -> bool {
    let own = OwnFinalizers::of(
        AdapterOptions::default().finalizer,
        &employer.kind.kind,
        &employer.kind.group,
        &employer.namespace,
        &employer.name,
    );
    Selects.employs(&employer.object).selects(&pod.name, &pod.labels)
        || pod.finalizers.iter().any(|finalizer| own.has(finalizer))
        || pod.entries().has_key(&entry_key("Service", &employer.namespace, &employer.name))
}

proptest! {
    #[test]
    fn what_is_found_is_what_asking_everybody_finds(events in events()) {
        let mut cluster_view = cluster_view();
        for (version, event) in events.into_iter().enumerate() {
            happens(&mut cluster_view, event, version + 1);
        }
        let worker = Arc::clone(&cluster_view.crew);
        let worker = worker.workers().next().unwrap();
        for place in PLACES {
            let pods: Vec<_> = cluster_view.of_namespace(PODS, place).cloned().collect();
            let employers = || cluster_view.employers.iter().filter(|((_, namespace, _), _)| namespace == place);
            for pod in &pods {
                let found = cluster_view.concerned(PODS, place, pod);
                let asked: Vec<_> = employers().filter(|(_, one)| concern(one, pod)).map(|(key, _)| key).collect();
                prop_assert_eq!(found, asked, "{}", pod.name);
                let selecting = cluster_view.selecting(PODS, place, &pod.name, &pod.labels);
                let asked: Vec<_> = employers()
                    .map(|(_, one)| one)
                    .filter(|one| Selects.employs(&one.object).selects(&pod.name, &pod.labels))
                    .collect();
                prop_assert_eq!(selecting, asked);
            }
            for (_, employer) in employers() {
                let found = cluster_view.employees_of(worker, employer, &worker.read(employer));
                let asked: Vec<_> = pods.iter().filter(|pod| concern(employer, pod)).cloned().collect();
                prop_assert_eq!(found, asked, "{}", employer.name);
            }
        }
    }
}

#[test]
fn an_employee_with_very_many_labels_costs_one_word_and_is_found_by_each_of_its_marks() {
    let mut cluster_view = cluster_view();
    let many: Vec<_> = (0..300).map(|key| (key, 0)).collect();
    for (name, selector) in [(0, vec![(299, 0)]), (1, vec![(9, 9)]), (2, vec![(9, 9)]), (3, vec![(9, 9)])] {
        happens(&mut cluster_view, Event::Employer { place: 0, name, selector, names: None }, 1);
    }
    let pod = Event::Pod { place: 0, name: 0, labels: many, marks: vec![1], entries: vec![2] };
    happens(&mut cluster_view, pod, 1);
    let crew = Arc::clone(&cluster_view.crew);
    let worker = crew.workers().next().unwrap();
    let found = cluster_view.employers.iter().map(|((_, _, name), employer)| {
        (name.as_str(), cluster_view.employees_of(worker, employer, &worker.read(employer)).len())
    });
    assert_eq!(found.collect::<Vec<_>>(), [("s0", 1), ("s1", 1), ("s2", 1), ("s3", 0)]);
    assert_eq!(cluster_view.employees_by.by_word.len(), 1);
    happens(&mut cluster_view, Event::PodGone { place: 0, name: 0 }, 2);
    assert!(cluster_view.employees_by.by_word.is_empty());
}

#[test]
fn what_came_and_went_leaves_nothing_in_the_index() {
    let mut cluster_view = cluster_view();
    for round in 0..3 {
        for name in 0..4 {
            let (selector, labels) = (vec![(0, name)], vec![(0, name), (1, round)]);
            happens(&mut cluster_view, Event::Employer { place: 0, name, selector, names: None }, round + 1);
            let pod = Event::Pod { place: 0, name, labels, marks: vec![name], entries: vec![name] };
            happens(&mut cluster_view, pod, round + 1);
        }
    }
    for name in 0..4 {
        happens(&mut cluster_view, Event::EmployerGone { place: 0, name }, 9);
        happens(&mut cluster_view, Event::PodGone { place: 0, name }, 9);
    }
    assert!(cluster_view.employers_by.by_word.is_empty() && cluster_view.employers_by.words.is_empty());
    assert!(cluster_view.employees_by.by_word.is_empty() && cluster_view.employees_by.words.is_empty());
}

#[test]
fn an_endpoint_is_listed_as_long_as_one_slice_lists_it() {
    let mut cluster_view = ClusterView::default();
    let slice = |uids: &[&str]| {
        let endpoints: Vec<Value> =
            uids.iter().map(|uid| json!({"targetRef": {"kind": "Pod", "uid": uid}})).collect();
        json!({"metadata": {"name": "x"}, "endpoints": endpoints})
    };
    let kind = Gvk::new("discovery.k8s.io", "v1", "EndpointSlice");
    let at = |name: &str| ("shop".to_owned(), name.to_owned());
    assert_eq!(cluster_view.put(Watch::Slices, &kind, at("a"), slice(&["1", "2"])).len(), 1);
    assert_eq!(cluster_view.put(Watch::Slices, &kind, at("b"), slice(&["1"])).len(), 1);
    assert!(cluster_view.put(Watch::Slices, &kind, at("b"), slice(&["1"])).is_empty(), "nothing changed");
    cluster_view.put(Watch::Slices, &kind, at("a"), slice(&["2"]));
    assert!(cluster_view.is_endpoint("1") && cluster_view.is_endpoint("2"));
    cluster_view.take(Watch::Slices, at("b"));
    assert!(!cluster_view.is_endpoint("1") && cluster_view.is_endpoint("2"));
    cluster_view.put(Watch::Slices, &kind, at("a"), slice(&[]));
    assert!(cluster_view.endpoints.is_empty() && cluster_view.slices.is_empty());
}
