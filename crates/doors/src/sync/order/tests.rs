use serde_json::json;

use super::*;
use crate::sync::depends_on;

struct Made {
    gvk: Gvk,
    body: Value,
    namespace: Option<String>,
    name: String,
    wave: Option<i64>,
    after: &'static str,
}

fn made(api_version: &str, kind: &str, place: &str, body: Value) -> Made {
    let (namespace, name) = match place.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name.to_owned()),
        None => (None, place.to_owned()),
    };
    Made { gvk: Gvk::from_api_version(api_version, kind), body, namespace, name, wave: None, after: "" }
}

fn map(place: &str) -> Made {
    made("v1", "ConfigMap", place, json!({}))
}

fn deployment(place: &str, pod: Value) -> Made {
    let name = place.split('/').next_back().unwrap_or_default().to_owned();
    let mut spec = pod;
    spec["containers"] = json!([{"name": "c"}]);
    made(
        "apps/v1",
        "Deployment",
        place,
        json!({"spec": {"template": {"metadata": {"labels": {"app": name}}, "spec": spec}}}),
    )
}

fn sorted(all: &[Made]) -> Result<ObjectOrder, String> {
    let items: Vec<OrderedObject<'_>> = all
        .iter()
        .map(|one| OrderedObject {
            gvk: &one.gvk,
            plural: format!("{}s", one.gvk.kind.to_lowercase()),
            namespace: one.namespace.as_deref(),
            name: &one.name,
            body: &one.body,
            depends_on: depends_on::parse(one.after).expect("an annotation"),
            wave: one.wave,
            label: format!("{} {}", one.gvk.kind, one.name),
        })
        .collect();
    order(&items, &[]).map_err(|ObjectCircle(round)| {
        let names: Vec<&str> = round.iter().map(|position| items[*position].label.as_str()).collect();
        names.join(" → ")
    })
}

fn before(order: &ObjectOrder, position: usize) -> Vec<usize> {
    order.before[position].iter().map(|(earlier, _)| *earlier).collect()
}

#[test]
fn namespaces_definitions_and_services_of_apis_come_before_what_needs_them() {
    let crd = json!({"spec": {"group": "example.com", "names": {"kind": "Widget"}}});
    let api = json!({"spec": {"group": "metrics.example.com", "version": "v1"}});
    let order = sorted(&[
        made("metrics.example.com/v1", "Load", "shop/l", json!({})),
        made("example.com/v1", "Widget", "shop/w", json!({})),
        made("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com", crd),
        made("apiregistration.k8s.io/v1", "APIService", "v1.metrics.example.com", api),
        made("v1", "Namespace", "shop", json!({})),
        map("other/free"),
    ])
    .unwrap();
    assert_eq!(before(&order, 0), [3, 4]);
    assert_eq!(before(&order, 1), [2, 4]);
    assert_eq!(before(&order, 5), [] as [usize; 0], "what nothing joins is independent");
    assert!(order.strict.contains(&3));
    assert_eq!(order.layers, [1, 1, 0, 0, 0, 0]);
}

#[test]
fn what_pods_name_is_written_first_and_holds_nothing_by_failing() {
    let order = sorted(&[
        deployment("shop/web", json!({"volumes": [{"configMap": {"name": "settings"}}]})),
        map("shop/settings"),
        map("other/settings"),
        made("rbac.authorization.k8s.io/v1", "Role", "shop/r", json!({})),
    ])
    .unwrap();
    assert_eq!(order.before[0], [(1, AwaitedState::Written), (3, AwaitedState::Written)]);
}

#[test]
fn a_webhook_comes_after_what_answers_it_and_before_what_it_is_asked_about_but_what_it_needs() {
    let hook = json!({"webhooks": [{
        "clientConfig": {"service": {"namespace": "mesh", "name": "hook"}},
        "rules": [{"apiGroups": [""], "resources": ["pods"]}]}]});
    let service = json!({"spec": {"selector": {"app": "hook"}}});
    let order = sorted(&[
        deployment("shop/web", json!({})),
        made("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mesh", hook),
        made("v1", "Service", "mesh/hook", service),
        deployment("mesh/hook", json!({})),
    ])
    .unwrap();
    assert_eq!(before(&order, 1), [2, 3]);
    assert_eq!(before(&order, 0), [1], "its pods get their sidecars");
    assert_eq!(before(&order, 3), [] as [usize; 0], "or the mesh would wait for itself");
    assert_eq!(order.strict, BTreeSet::from([1, 2]));
}

#[test]
fn depends_on_orders_objects_names_others_outside_and_spells_out_a_circle() {
    let mut web = map("shop/web");
    web.after = "/namespaces/shop/ConfigMap/db, /namespaces/data/Secret/key";
    let order = sorted(&[web, map("shop/db")]).unwrap();
    assert_eq!(order.before[0], [(1, AwaitedState::Ready)]);
    assert_eq!(order.outside[0].len(), 1);
    let (mut a, mut b) = (map("shop/a"), map("shop/b"));
    a.after = "/namespaces/shop/ConfigMap/b";
    b.after = "/namespaces/shop/ConfigMap/a";
    assert_eq!(sorted(&[a, b]).unwrap_err(), "ConfigMap a → ConfigMap b");
    let mut own = map("shop/own");
    own.after = "/namespaces/shop/ConfigMap/own";
    assert_eq!(sorted(&[own]).unwrap_err(), "ConfigMap own");
}

#[test]
fn waves_order_what_has_them_and_give_way_to_what_is_demanded() {
    let wave = |mut one: Made, number: i64| {
        one.wave = Some(number);
        one
    };
    let order = sorted(&[wave(map("a/x"), -1), map("a/y"), wave(map("a/z"), 5)]).unwrap();
    let shown: Vec<_> =
        order.waves.iter().map(|wave| (wave.number, wave.earlier.clone(), wave.later.clone())).collect();
    assert_eq!(shown, [(-1, vec![0], vec![1]), (0, vec![1], vec![2])]);
    assert_eq!(order.layers, [0, 1, 2]);
    // The Namespace of a higher wave is needed by what is in it: it is not waited for the other way round.
    let order =
        sorted(&[wave(map("late/x"), 0), wave(made("v1", "Namespace", "late", json!({})), 1)]).unwrap();
    assert_eq!(before(&order, 0), [1]);
    assert_eq!(order.waves[0].earlier, [] as [usize; 0]);
}

proptest::proptest! {
    #[test]
    fn what_comes_before_what_is_known_at_once_and_no_circle_is_closed(
        wanted in proptest::collection::vec((0..9_usize, 0..9_usize), 0..40),
    ) {
        let mut edges = Edges::new(9);
        for (earlier, later) in wanted {
            edges.add_if_open(earlier, later, AwaitedState::Written);
        }
        proptest::prop_assert_eq!(circle(&edges.before), None);
        let more = edges.with_more(3);
        for later in 0..9 {
            let (mut seen, mut open) = (BTreeSet::new(), vec![later]);
            while let Some(next) = open.pop() {
                open.extend(edges.before[next].keys().filter(|earlier| seen.insert(**earlier)));
            }
            for earlier in 0..9 {
                proptest::prop_assert_eq!(edges.comes_before(earlier, later), seen.contains(&earlier));
                proptest::prop_assert_eq!(more.comes_before(earlier, later), seen.contains(&earlier));
            }
        }
    }
}
