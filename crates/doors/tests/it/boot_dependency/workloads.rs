//! The workload of a BootDependency, as its subject sees it: rows, repairs, the finalizer.

use std::sync::Arc;

use linchpin_doors::{
    DoorKind, VisibleCauses,
    boot_dependency::{BootDependencies, BootSettings, WaiterSettings},
    subject::{Decision, FinalizerChange, SubjectInput, Ties},
};
use linchpin_engine::contract::{
    EffectTarget, Observed, Projection, Question, Scope, Seen, Served, Verb, Want, Why, World,
};
use linchpin_words::{Gvk, Reason, Timestamp};
use serde_json::{Value, json};

pub(super) const NOW: i64 = 1_800_000_000;

pub(super) fn settings() -> BootSettings {
    BootSettings {
        namespaces: serde_json::from_value(json!({"matchLabels": {"linchpin.dev/boot": "enabled"}}))
            .expect("a selector"),
        waiter: Some(WaiterSettings {
            image: "wait:1".into(),
            cluster_domain: "cluster.local".into(),
            after: None,
        }),
        remedy: "linchpin.dev/boot=enabled".into(),
        ..BootSettings::default()
    }
}

/// What there is: kind, name, content.
pub(super) type Things = Vec<(&'static str, &'static str, Value)>;

fn projection(kind: &Gvk, name: &str, content: &Value) -> Arc<Projection> {
    Arc::new(Projection {
        kind: kind.clone(),
        namespace: (kind.kind != "Namespace").then(|| "shop".to_owned()),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        generation: 1,
        version: 5,
        deleting: false,
        content: content.clone(),
    })
}

pub(super) fn answer(things: &Things, forbidden: &str, want: &Want) -> Seen {
    let (kind, scope) = match want.question() {
        Question::Objects { kind, scope, .. } => (kind, scope),
        Question::Right { .. } => return Seen::Right(forbidden != "Right"),
        Question::Kind { word, .. } if word.word == "appbundle" => {
            return Seen::Kind(Arc::new(Served::Yes {
                kind: Gvk::new("app.example.com", "v1alpha1", "AppBundle"),
                plural: "appbundles".into(),
                namespaced: true,
                reports_status: Some(true),
            }));
        }
        _ => return Seen::Unknown(Why::new(Reason::Unsynced, "not looked at yet")),
    };
    if kind.kind == forbidden {
        return Seen::Unknown(Why::new(Reason::Forbidden, "not allowed"));
    }
    let wanted = |name: &str| match scope {
        Scope::Name { name: wanted, .. } => wanted == name,
        Scope::Labels { .. } => true,
    };
    let items = things.iter().filter(|(of, name, _)| *of == kind.kind && wanted(name));
    let items = items.map(|(_, name, content)| projection(kind, name, content)).collect();
    Seen::Objects(Arc::new(Observed {
        items,
        as_of: 9,
        live: true,
        looked: Some(Timestamp::from_second(NOW)),
    }))
}

pub(super) fn object(more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "core.bootchain-operator.ruicoelho.dev/v1alpha1", "kind": "BootDependency",
        "metadata": {"namespace": "shop", "name": "web", "uid": "u", "generation": 1, "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:05Z"},
        "spec": {"dependsOn": [{"service": "db", "port": 5432}]},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

/// Looks until nothing new is asked for: the last decision, and the rows of the status.
pub(super) fn look(object: &Value, things: &Things, forbidden: &str) -> (Decision, Value) {
    let (decision, mut status) = look_at(object, things, forbidden);
    (decision, status["workloads"].take())
}

/// The same, with the whole status.
pub(super) fn look_at(object: &Value, things: &Things, forbidden: &str) -> (Decision, Value) {
    let account: Arc<str> = Arc::from("default");
    let mut subject =
        BootDependencies(Arc::new(settings())).subject(&object.to_string(), &account).expect("a subject");
    let causes = VisibleCauses::new();
    let mut world = World::new();
    let mut notices = Vec::new();
    let mut effects = Vec::new();
    for _ in 0..12 {
        let registry = linchpin_doors::registry();
        let look = SubjectInput {
            registry: &registry,
            world: &world,
            outcomes: &[],
            ties: Ties { cycle: None, causes: &causes, broken: &[], exempt: &[], makers: &[], claims: &[] },
            kept: None,
            idle: true,
            now: Timestamp::from_second(NOW),
        };
        let (wants, decision) = match subject.decide(&look) {
            Ok(decision) => (decision.wants.clone(), Some(decision)),
            Err(asks) => (asks.0, None),
        };
        if let Some(decision) = &decision {
            notices.extend(decision.report.notices.clone());
            effects.extend(decision.effects.clone());
        }
        let new: Vec<Want> = wants.into_iter().filter(|want| world.get(want).is_none()).collect();
        if let (true, Some(mut decision)) = (new.is_empty(), decision) {
            decision.report.notices = notices;
            decision.effects = effects;
            let status = subject.status(&causes).map(|drawn| drawn.status);
            return (decision, status.unwrap_or_default());
        }
        for want in new {
            let seen = answer(things, forbidden, &want);
            world.insert(want, seen);
        }
    }
    panic!("it goes on asking");
}

pub(super) fn deployment(created: &str, ready: i64, annotations: &Value) -> Value {
    json!({
        "metadata": {"resourceVersion": "33", "creationTimestamp": created},
        "spec": {"template": {
            "metadata": {"labels": {"app": "web"}, "annotations": annotations},
            "spec": {"containers": [{"name": "app", "image": "app"}]},
        }},
        "status": {"readyReplicas": ready},
    })
}

pub(super) fn world(deployment: Value) -> Things {
    vec![
        ("Namespace", "shop", json!({"metadata": {"labels": {"linchpin.dev/boot": "enabled"}}})),
        ("BootDependency", "web", json!({"spec": object(&json!({}))["spec"], "metadata": {}})),
        ("Deployment", "web", deployment),
    ]
}

#[test]
fn b11_what_was_missed_is_repaired_unless_that_would_restart_what_is_well() {
    let later = "2026-01-01T00:00:05Z";
    let (decision, rows) = look(&object(&json!({})), &world(deployment(later, 0, &json!({}))), "");
    assert_eq!(rows[0]["state"], "Outdated", "{rows}");
    let [effect] = decision.effects.as_slice() else { panic!("{:?}", decision.effects) };
    let Verb::Patch { target: EffectTarget { name, .. }, body, manager, .. } = &effect.verb else {
        panic!("{effect:?}")
    };
    assert_eq!((name.as_str(), manager.as_str()), ("web", "linchpin:BootDependency:shop/web:inject"));
    assert_eq!(body[0], json!({"op": "replace", "path": "/metadata/uid", "value": "uid-web"}));
    assert_eq!(body[1], json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "33"}));
    assert_eq!(body[2]["value"][0]["name"], "wait-for-db", "{body}");

    let (decision, rows) = look(&object(&json!({})), &world(deployment(later, 1, &json!({}))), "");
    assert_eq!((rows[0]["state"].as_str(), decision.effects.len()), (Some("Missed"), 0), "{rows}");
    let reasons: Vec<&str> = decision.report.notices.iter().map(|notice| notice.reason.as_str()).collect();
    assert_eq!(reasons, ["BootWaitMissed"], "told once");

    // Older than the BootDependency: a change like any other.
    let earlier = deployment("2026-01-01T00:00:04Z", 0, &json!({}));
    let (decision, rows) = look(&object(&json!({})), &world(earlier.clone()), "");
    assert_eq!((rows[0]["state"].as_str(), decision.effects.len()), (Some("Outdated"), 0));
    // The finalizer comes first: what the template carries must be taken out before the object goes.
    let mut immediate = object(&json!({"rollout": "Immediate"}));
    let (decision, _) = look(&immediate, &world(earlier.clone()), "");
    assert_eq!(decision.effects.len(), 0);
    assert_eq!(decision.own.unwrap().finalizer, FinalizerChange::Add);
    immediate["metadata"]["finalizers"] = json!(["linchpin.dev/teardown"]);
    let (decision, _) = look(&immediate, &world(earlier), "");
    assert_eq!(decision.effects.len(), 1);
}

#[test]
fn a_row_says_why_nothing_is_done() {
    let there = deployment("2026-01-01T00:00:05Z", 0, &json!({}));
    let cases: [(&str, Things, &str); 4] = [
        ("NotOptedIn", vec![("Namespace", "shop", json!({"metadata": {"labels": {}}}))], ""),
        ("Absent", world(there.clone()).into_iter().filter(|(kind, ..)| *kind != "Deployment").collect(), ""),
        ("Refused", world(there.clone()), "Deployment"),
        (
            "Skipped",
            world(deployment("2026-01-01T00:00:05Z", 0, &json!({"linchpin.dev/skip-boot-wait": "true"}))),
            "",
        ),
    ];
    for (state, things, forbidden) in cases {
        let (decision, rows) = look(&object(&json!({})), &things, forbidden);
        assert_eq!(rows[0]["state"], state, "{rows}");
        assert!(decision.effects.is_empty(), "{state}");
        assert_eq!(rows[0]["apiVersion"], "apps/v1");
    }
}

#[test]
fn the_finalizer_is_there_while_a_pod_is_held() {
    let pod = json!({
        "metadata": {"labels": {"linchpin.dev/boot-gate": "held"}, "annotations": {"linchpin.dev/boot": "web"}},
        "spec": {"schedulingGates": [{"name": "linchpin.dev/boot"}]},
    });
    let mut things = world(deployment("2026-01-01T00:00:04Z", 0, &json!({})));
    things.push(("Pod", "web-1", pod));
    let (decision, rows) = look(&object(&json!({})), &things, "");
    assert_eq!(rows[0]["held"], 0, "it is counted once the finalizer is there");
    assert!(decision.wake_at.is_some());
    assert_eq!(decision.own.unwrap().finalizer, FinalizerChange::Add);
    let mut finalized = object(&json!({}));
    finalized["metadata"]["finalizers"] = json!(["linchpin.dev/teardown"]);
    let (_, rows) = look(&finalized, &things, "");
    assert_eq!(rows[0]["held"], 1);
    things.pop();
    let (decision, _) = look(&finalized, &things, "");
    assert_eq!(decision.own.unwrap().finalizer, FinalizerChange::Remove);
}

#[test]
fn the_image_of_the_namespace_is_the_one_that_repairs_put_in() {
    let mut things = world(deployment("2026-01-01T00:00:05Z", 0, &json!({})));
    things[0].2["metadata"]["annotations"] = json!({"linchpin.dev/wait-image": "mirror.example/wait:2"});
    let (decision, _) = look(&object(&json!({})), &things, "");
    let [effect] = decision.effects.as_slice() else { panic!("{:?}", decision.effects) };
    let Verb::Patch { body, .. } = &effect.verb else { panic!("{effect:?}") };
    assert_eq!(body[2]["value"][0]["image"], "mirror.example/wait:2", "{body}");
}

/// The Deployment with what a repair put into its template.
fn repaired(mut deployment: Value, patch: &Value) -> Value {
    let template = &mut deployment["spec"]["template"];
    for operation in patch.as_array().into_iter().flatten().skip(2) {
        let pointer = operation["path"].as_str().unwrap_or_default();
        match pointer.strip_prefix("/spec/template/metadata/annotations/") {
            Some(key) => {
                template["metadata"]["annotations"][key.replace("~1", "/")] = operation["value"].clone();
            }
            None => template["spec"]["initContainers"] = operation["value"].clone(),
        }
    }
    deployment
}

#[test]
fn what_needs_a_key_goes_into_a_template_only_if_it_is_there_and_comes_out_only_if_it_is_known_to_be_gone() {
    let entry = |more: Value| {
        let mut entry =
            json!({"host": "vault.example.com", "port": 8200, "httpPath": "/", "httpScheme": "https"});
        for (key, value) in more.as_object().into_iter().flatten() {
            entry[key] = value.clone();
        }
        json!({"rollout": "Immediate", "dependsOn": [entry]})
    };
    let header = entry(
        json!({"httpHeaders": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}),
    );
    let bundle = entry(json!({"caBundleConfigMapRef": {"name": "m"}}));
    let bare = deployment("2026-01-01T00:00:04Z", 0, &json!({}));
    let ordered = |spec: &Value, there: Value, template: &Value, forbidden: &str| {
        let mut boot = object(spec);
        boot["metadata"]["finalizers"] = json!(["linchpin.dev/teardown"]);
        let mut things = world(template.clone());
        things[1].2["spec"] = boot["spec"].clone();
        for (kind, name) in [("Secret", "s"), ("ConfigMap", "m")] {
            if !there[kind].is_null() {
                things.push((kind, name, json!({"data": there[kind]})));
            }
        }
        let patches: Vec<Value> = look(&boot, &things, forbidden)
            .0
            .effects
            .into_iter()
            .filter_map(|effect| match effect.verb {
                Verb::Patch { body, .. } => Some((*body).clone()),
                _ => None,
            })
            .collect();
        patches
    };
    let nothing: [Value; 0] = [];
    assert_eq!(ordered(&header, json!({}), &bare, ""), nothing, "a Secret that is not there");
    assert_eq!(ordered(&header, json!({"Secret": {"other": "eA=="}}), &bare, ""), nothing, "without the key");
    let secret = json!({"Secret": {"k": "eA=="}});
    assert_eq!(ordered(&header, secret.clone(), &bare, "Right"), nothing, "that may not be used");
    let large = json!({"ConfigMap": {"ca.crt": "x".repeat(96 * 1024 + 1)}});
    assert_eq!(ordered(&bundle, large, &bare, ""), nothing, "more than an environment variable holds");
    assert_eq!(ordered(&bundle, json!({"ConfigMap": {"ca.crt": "x".repeat(96 * 1024)}}), &bare, "").len(), 1);
    let put_in = ordered(&header, secret.clone(), &bare, "");
    let carrying = repaired(bare, &put_in[0]);
    assert_eq!(
        carrying["spec"]["template"]["spec"]["initContainers"][0]["name"],
        "wait-for-vault-example-com"
    );
    // The first looks know nothing of the right and the Secret yet: nobody's pods are restarted for that.
    assert_eq!(ordered(&header, secret, &carrying, ""), nothing);
    assert_eq!(ordered(&header, json!({}), &carrying, "").len(), 1, "what is known to be gone comes out");
}

#[test]
fn pods_that_admission_missed_are_counted_and_never_touched() {
    let pod = |created: &str, annotations: Value, phase: &str| json!({"metadata": {"creationTimestamp": created, "annotations": annotations}, "status": {"phase": phase}});
    let later = "2026-01-01T00:00:06Z";
    let store = json!({
        "metadata": {"resourceVersion": "3", "creationTimestamp": "2026-01-01T00:00:01Z"},
        "spec": {"selector": {"matchLabels": {"app": "store"}}, "template": {"metadata": {"labels": {"app": "store"}}, "spec": {"containers": [{"name": "app"}]}}},
    });
    let target = json!({"targetRef": {"kind": "StatefulSet", "name": "store"}});
    let things: Things = vec![
        ("Namespace", "shop", json!({"metadata": {"labels": {"linchpin.dev/boot": "enabled"}}})),
        ("BootDependency", "web", json!({"spec": object(&target)["spec"], "metadata": {}})),
        ("StatefulSet", "store", store),
        // Not before the BootDependency: in the same second.
        ("Pod", "missed-1", pod("2026-01-01T00:00:05Z", json!({}), "Running")),
        ("Pod", "missed-2", pod(later, json!({"linchpin.dev/boot": "other"}), "Pending")),
        ("Pod", "older", pod("2026-01-01T00:00:04Z", json!({}), "Running")),
        ("Pod", "seen", pod(later, json!({"linchpin.dev/boot": "other,web"}), "Running")),
        ("Pod", "skips", pod(later, json!({"linchpin.dev/skip-boot-wait": "true"}), "Running")),
        ("Pod", "over", pod(later, json!({}), "Succeeded")),
        ("Pod", "mirror", pod(later, json!({"kubernetes.io/config.mirror": "x"}), "Running")),
    ];
    let (decision, rows) = look(&object(&target), &things, "");
    let message =
        "2 pods were created before admission knew of this object, or while it was away, and did not wait";
    assert_eq!((rows[0]["state"].as_str(), rows[0]["message"].as_str()), (Some("Missed"), Some(message)));
    assert!(decision.effects.is_empty());
    let told: Vec<(&str, &str)> =
        decision.report.notices.iter().map(|one| (one.reason.as_str(), one.message.as_str())).collect();
    assert_eq!(
        told,
        [(
            "BootWaitMissed",
            "StatefulSet store: 2 pods were created before admission knew of this object, or while it was away, and did not wait"
        )]
    );
    // By their labels, a bare pod has a row of its own.
    let by_label = json!({"selector": {"matchLabels": {"app": "bare"}}});
    let (_, rows) = look(&object(&by_label), &things, "");
    let listed: Vec<(&str, &str)> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["kind"].as_str().unwrap(), row["name"].as_str().unwrap()))
        .collect();
    assert_eq!(listed, [("Pod", "missed-1"), ("Pod", "missed-2")]);
    assert_eq!(
        rows[0]["message"],
        "1 pod was created before admission knew of this object, or while it was away, and did not wait"
    );
}

#[test]
fn a_workload_whose_pods_carry_our_containers_by_their_labels_has_a_row() {
    let by_label = json!({"selector": {"matchLabels": {"app": "web"}}});
    let mut things = world(deployment("2026-01-01T00:00:04Z", 1, &json!({})));
    let owner = |kind: &str, name: &str| json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("uid-{name}"), "controller": true});
    let pod = |owners: Value, mark: &str| {
        let metadata = json!({"creationTimestamp": "2026-01-01T00:00:06Z", "annotations": {"linchpin.dev/boot": mark}, "ownerReferences": owners});
        json!({"metadata": metadata, "status": {"phase": "Pending"}})
    };
    things.push((
        "ReplicaSet",
        "web-1",
        json!({"metadata": {"ownerReferences": [owner("Deployment", "web")]}}),
    ));
    for name in ["web-1-a", "web-1-b"] {
        things.push(("Pod", name, pod(json!([owner("ReplicaSet", "web-1")]), "web")));
    }
    // One that belongs to nobody and waits by itself.
    things.push(("Pod", "bare", pod(json!([]), "web")));
    let (_, rows) = look(&object(&by_label), &things, "");
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
    let shown = [&rows[0]["apiVersion"], &rows[0]["kind"], &rows[0]["name"], &rows[0]["state"]];
    assert_eq!(shown, ["apps/v1", "Deployment", "web", "Current"]);
    assert_eq!(rows[0]["held"], 0);
}

#[test]
fn a_row_tells_who_waits_too_long_and_what_bypasses_nothing() {
    let mut gated = object(&json!({"strategy": "SchedulingGate"}));
    gated["metadata"]["finalizers"] = json!(["linchpin.dev/teardown"]);
    gated["metadata"]["annotations"] = json!({"linchpin.dev/skip-boot-wait": "yes"});
    let pod = |created: &str| {
        json!({
            "metadata": {"creationTimestamp": created, "labels": {"linchpin.dev/boot-gate": "held"}, "annotations": {"linchpin.dev/boot": "web", "linchpin.dev/skip-boot-wait": "1"}},
            "spec": {"schedulingGates": [{"name": "linchpin.dev/boot"}]},
        })
    };
    let mut things =
        world(deployment("2026-01-01T00:00:04Z", 0, &json!({"linchpin.dev/skip-boot-wait": "TRUE"})));
    things[1].2["spec"] = gated["spec"].clone();
    // NOW is 2027: long over. The other one has a minute from its creation on.
    things.push(("Pod", "web-1", pod("2026-01-01T00:00:06Z")));
    things.push(("Pod", "web-2", pod("2026-01-01T00:00:06Z")));
    let (decision, rows) = look(&gated, &things, "");
    let message = rows[0]["message"].as_str().unwrap();
    for part in [
        "Pod web-1 has waited 60s for db:5432 and stays held (and 1 more)",
        "linchpin.dev/skip-boot-wait: \"TRUE\" is ignored: only \"true\" bypasses the wait",
        "Pod web-1: linchpin.dev/skip-boot-wait: \"1\" is ignored",
        "linchpin.dev/skip-boot-wait: \"yes\" is ignored",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(rows[0]["held"], 2);
    assert_eq!(decision.wake_at, None, "nothing more will be late: {:?}", decision.wake_at);
    // One that is not late yet is looked at again when it is.
    let fresh = Timestamp::from_second(NOW - 20).to_string();
    things.push(("Pod", "web-3", pod(&fresh)));
    let (decision, _) = look(&gated, &things, "");
    assert_eq!(decision.wake_at, Some(Timestamp::from_second(NOW + 40)));
}

#[test]
fn a_pod_that_is_named_itself_has_a_row_that_tells_how_it_is() {
    let target = json!({"targetRef": {"kind": "Pod", "name": "one"}});
    let state = |pod: Option<Value>| {
        let mut things: Things =
            vec![("Namespace", "shop", json!({"metadata": {"labels": {"linchpin.dev/boot": "enabled"}}}))];
        things.extend(pod.map(|annotations| {
            let metadata = json!({"creationTimestamp": "2026-01-01T00:00:06Z", "annotations": annotations});
            ("Pod", "one", json!({"metadata": metadata, "status": {"phase": "Running"}}))
        }));
        let (decision, rows) = look(&object(&target), &things, "");
        assert!(decision.effects.is_empty());
        assert_eq!((rows[0]["apiVersion"].as_str(), rows[0]["kind"].as_str()), (Some("v1"), Some("Pod")));
        rows[0]["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(None), "Absent");
    assert_eq!(state(Some(json!({"linchpin.dev/boot": "web"}))), "Current");
    assert_eq!(state(Some(json!({}))), "Missed");
    assert_eq!(state(Some(json!({"linchpin.dev/skip-boot-wait": "true"}))), "Skipped");
}

#[test]
fn an_entry_that_an_init_container_of_the_users_keeps_out_is_told_whatever_the_kind_and_state() {
    let entries = json!([{"service": "db", "port": 5432}, {"service": "cache", "port": 6379}]);
    let with_own = |mut workload: Value| {
        workload["spec"]["template"]["spec"]["initContainers"] =
            json!([{"name": "wait-for-db", "image": "mine"}]);
        workload
    };
    let earlier = with_own(deployment("2026-01-01T00:00:04Z", 0, &json!({})));
    let note = "an init container of its own has the name of ours for db:5432";
    let deployed = object(&json!({"dependsOn": entries}));
    let mut things = world(earlier.clone());
    things[1].2["spec"] = deployed["spec"].clone();
    let (_, rows) = look(&deployed, &things, "");
    assert_eq!(rows[0]["state"], "Outdated", "{rows}");
    let follows = "its template follows at its next change; new pods have the present set";
    assert_eq!(rows[0]["message"], format!("{follows}; {note}"));

    let target = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"});
    let set = object(&json!({"dependsOn": entries, "targetRef": target}));
    things[1].2["spec"] = set["spec"].clone();
    things[2] = ("StatefulSet", "web", earlier);
    let (_, rows) = look(&set, &things, "");
    assert_eq!((&rows[0]["state"], &rows[0]["message"]), (&json!("Current"), &json!(note)), "{rows}");
}
