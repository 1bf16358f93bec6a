//! What entries mean, and what the status and the events say of them.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_api::{BootDependency, BootDependencyStatus};
use linchpin_doors::{
    CompileInput, StatusInput, VisibleCauses,
    boot_dependency::{compile, notices, status},
};
use linchpin_engine::{
    contract::{Observed, Projection, Question, Scope, Seen, Verb, Want, Why, World},
    journal::Memory,
    step::{Goal, StepDecision, step},
};
use linchpin_words::{Gvk, Reason, Timestamp, probe::Miss};
use serde_json::{Value, json};

use super::boot;

const NOW: i64 = 1_800_000_000;

/// A small world: objects by kind and name, and what probes get.
#[derive(Default)]
struct Stage {
    objects: Vec<(Gvk, String, Value)>,
    forbidden: bool,
    answers: bool,
}

impl Stage {
    fn put(mut self, group: &str, kind: &str, name: &str, content: Value) -> Self {
        self.objects.push((Gvk::new(group, "v1", kind), name.to_owned(), content));
        self
    }

    /// A Service of one port, and a slice with an endpoint that is ready or not.
    fn service(self, name: &str, port: i32, ready: bool) -> Self {
        let spec = json!({"spec": {"selector": {"app": name}, "ports": [{"port": port}]}});
        let slice = json!({
            "ports": [{"name": "", "port": port}],
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}],
        });
        self.put("", "Service", name, spec).put("discovery.k8s.io", "EndpointSlice", name, slice)
    }

    fn answer(&self, want: &Want) -> Seen {
        match want.question() {
            Question::Objects { kind, .. } if self.forbidden && kind.kind == "EndpointSlice" => {
                Seen::Unknown(Why::new(Reason::Forbidden, "not allowed to list endpointslices"))
            }
            Question::Objects { kind, scope, .. } => {
                let wanted = |name: &str| match scope {
                    Scope::Name { name: wanted, .. } => wanted == name,
                    Scope::Labels { selector, .. } => selector.as_str().ends_with(&format!("={name}")),
                };
                let found = self.objects.iter().filter(|(of, name, _)| of == kind && wanted(name));
                let items = found.map(|(kind, name, content)| {
                    Arc::new(Projection {
                        kind: kind.clone(),
                        namespace: Some("shop".into()),
                        name: name.clone(),
                        uid: format!("uid-{name}"),
                        generation: 1,
                        version: 5,
                        deleting: false,
                        content: content.clone(),
                    })
                });
                let observed = Observed {
                    items: items.collect(),
                    as_of: 9,
                    live: true,
                    looked: Some(Timestamp::from_second(NOW)),
                };
                Seen::Objects(Arc::new(observed))
            }
            Question::Probe { .. } => Seen::Probe(if self.answers { Ok(()) } else { Err(Miss::Refused) }),
            Question::Right { .. } => Seen::Right(true),
            _ => Seen::Unknown(Why::new(Reason::Unsynced, "not looked at yet")),
        }
    }

    /// Looks until nothing more is asked; what the engine says then, and what is asked for.
    fn look(&self, object: &BootDependency) -> (BootDependencyStatus, Vec<(String, String)>, World) {
        let mut world = World::new();
        let now = Timestamp::from_second(NOW);
        let kinds = BTreeMap::new();
        for _ in 0..6 {
            let registry = linchpin_doors::registry();
            let input = CompileInput {
                registry: &registry,
                facts: &world,
                kinds: &kinds,
                default_service_account: "default",
                cluster_domain: "cluster.test",
                exempt: &[],
                makers: &[],
            };
            let compiled = compile(object, &input).expect("a plan");
            let memory = Memory::fresh("uid", 1, now);
            let StepDecision { memory, report, wants, .. } =
                step(memory, Goal::Converge(&compiled.plan), &world, &[], None, now);
            let asked = compiled.wants.iter().chain(wants.iter()).filter(|want| world.get(want).is_none());
            let asked: Vec<Want> = asked.cloned().collect();
            if asked.is_empty() {
                let causes = VisibleCauses::new();
                let input = StatusInput {
                    plan: Some(&compiled.plan),
                    journal: &memory.journal,
                    report: &report,
                    causes: &causes,
                    now,
                };
                let events = notices(object, &input).into_iter().filter_map(|write| match write.verb {
                    Verb::Notice(notice) => Some((notice.reason, notice.message)),
                    _ => None,
                });
                return (status(object, &input), events.collect(), world);
            }
            for want in asked {
                let seen = self.answer(&want);
                world.insert(want, seen);
            }
        }
        panic!("it goes on asking");
    }
}

fn of(entries: &str) -> BootDependency {
    let mut object = boot("web", &format!("{{dependsOn: [{entries}]}}"));
    object.metadata.uid = Some("uid".into());
    object.metadata.generation = Some(1);
    object
}

fn condition<'a>(status: &'a BootDependencyStatus, kind: &str) -> (&'a str, &'a str, String) {
    let found =
        status.common.conditions.iter().find(|condition| condition.kind == kind).expect("a condition");
    (found.reason.as_str(), found.message.as_str(), format!("{:?}", found.status))
}

#[test]
fn the_status_says_what_the_documents_says() {
    let object = of("{service: db, port: 5432}, {service: cache, port: 6379}");
    let (status, ..) = Stage::default().service("db", 5432, true).service("cache", 6379, false).look(&object);
    assert_eq!(status.resolved_dependencies.as_deref(), Some("1/2"));
    assert_eq!(status.common.phase.as_deref(), Some("Waiting"));
    let (reason, message, holds) = condition(&status, "Ready");
    assert_eq!(
        (reason, message, holds.as_str()),
        ("DependenciesNotReady", "1/2 dependencies are reachable", "False")
    );
    let rows: Vec<(&str, bool, &str)> =
        status.entries.iter().map(|row| (row.name.as_str(), row.met, row.reason.as_str())).collect();
    assert_eq!(rows[1], ("cache:6379", false, "NoEndpoints"));
    assert!(rows[0].1, "{rows:?}");
    assert_eq!(status.entries[1].message, "0 of 1 endpoints are ready");
    assert_eq!(status.common.message.as_deref(), Some("waits for cache:6379: no ready endpoints"));
    let blocker = &status.common.blocked_by[0];
    assert_eq!((blocker.step.as_deref(), blocker.reason.as_str()), (Some("cache:6379"), "NoEndpoints"));
    let object_name = blocker.object.as_ref().expect("an object");
    assert_eq!((object_name.kind.as_str(), object_name.name.as_deref()), ("Service", Some("cache")));
    let (status, ..) = Stage::default().service("db", 5432, true).service("cache", 6379, true).look(&object);
    let (reason, message, holds) = condition(&status, "Ready");
    assert_eq!(
        (reason, message, holds.as_str()),
        ("AllDependenciesReady", "All 2 dependencies are reachable", "True")
    );
    assert_eq!(status.common.phase.as_deref(), Some("Ready"));
}

#[test]
fn b17_b18_what_the_api_server_can_tell_is_not_dialled() {
    let object = of("{service: db, port: 5432}");
    let (status, _, world) = Stage::default().service("db", 5432, true).look(&object);
    assert!(!world.iter().any(|(want, _)| matches!(want.question(), Question::Probe { .. })));
    assert_eq!(status.entries[0].observed_from, "API");
    let (status, ..) = Stage::default().look(&object);
    assert_eq!(status.entries[0].state, "NotFound");
    let (status, ..) = Stage::default().service("db", 1, true).look(&object);
    assert_eq!(status.entries[0].reason, "PortNotFound");
}

#[test]
fn hosts_requests_and_what_may_not_be_read_are_probed() {
    for entry in ["{host: vault.example.com, port: 8200}", "{service: db, port: 5432, httpPath: /healthz}"] {
        for answers in [true, false] {
            let stage = Stage { answers, ..Stage::default() }.service("db", 5432, true);
            let (status, ..) = stage.look(&of(entry));
            assert_eq!(
                (status.entries[0].met, status.entries[0].observed_from.as_str()),
                (answers, "Operator"),
                "{entry}"
            );
        }
    }
    let stage = Stage { forbidden: true, answers: true, ..Stage::default() }.service("db", 5432, false);
    let (status, _, world) = stage.look(&of("{service: db, port: 5432}"));
    assert_eq!((status.entries[0].met, status.entries[0].observed_from.as_str()), (true, "Operator"));
    // Where it does not answer, it is the Service that is waited for.
    let stage = Stage { forbidden: true, ..Stage::default() }.service("db", 5432, false);
    let (status, ..) = stage.look(&of("{service: db, port: 5432}"));
    let blocker = &status.common.blocked_by[0];
    let object = blocker.object.as_ref().unwrap();
    assert_eq!((object.kind.as_str(), object.name.as_deref()), ("Service", Some("db")));
    assert_eq!(blocker.reason, "Forbidden");
    // By its name in the cluster's own domain, whatever that is.
    let asked = format!("{:?}", world.iter().map(|(want, _)| want).collect::<Vec<_>>());
    assert!(asked.contains("db.shop.svc.cluster.test"), "{asked}");
    // A target is named once in the line of the status.
    let (status, ..) = Stage::default().look(&of("{host: vault.example.com, port: 8200}"));
    let line = status.common.message.unwrap();
    assert_eq!(line, "waits for vault.example.com:8200: connection refused");
}

#[test]
fn b22_a_secret_that_is_not_there_is_what_is_waited_for() {
    let entry = "{host: h, port: 1, httpPath: /, httpHeaders: [{name: A, valueFrom: {secretKeyRef: {name: token, key: k}}}]}";
    let stage = Stage { answers: true, ..Stage::default() };
    let row = |stage: &Stage| stage.look(&of(entry)).0.entries[0].clone();
    let absent = row(&stage);
    // What cannot be asked is not known, and the row names what is missing for it.
    assert_eq!((absent.met, absent.state.as_str(), absent.reason.as_str()), (false, "Unknown", "NotFound"));
    assert_eq!(absent.message, "Secret token does not exist");
    for (data, reason, message) in [
        (json!({"other": "eA=="}), "ValueMissing", "Secret token has no key k with a text"),
        (
            json!({"k": STANDARD.encode("s3cr3t\nline")}),
            "ValueMissing",
            "key k of Secret token holds control characters: no header can have it",
        ),
        (
            json!({"k": STANDARD.encode("s".repeat(4097))}),
            "TooLarge",
            "key k of Secret token has more than 4096 bytes",
        ),
    ] {
        let stage =
            Stage { answers: true, ..Stage::default() }.put("", "Secret", "token", json!({"data": data}));
        let row = row(&stage);
        let found = (row.met, row.state.as_str(), row.reason.as_str(), row.message.as_str());
        assert_eq!(found, (false, "Unknown", reason, message));
    }
    let good = Stage { answers: true, ..Stage::default() }.put(
        "",
        "Secret",
        "token",
        // With the end of a line behind it, as editors and shells leave it.
        json!({"data": {"k": STANDARD.encode("s3cr3t\r\n")}}),
    );
    let (status, events, world) = good.look(&of(entry));
    assert!(status.entries[0].met);
    let shown = format!("{status:?} {events:?} {:?}", world.iter().map(|(want, _)| want).collect::<Vec<_>>());
    assert!(!shown.contains("s3cr3t"), "a value is shown nowhere: {shown}");
}

#[test]
fn b24_events_come_on_changes_only_and_with_the_cause() {
    let mut object = of("{service: db, port: 5432}, {resource: configmap/flags}");
    let stage = Stage::default().service("db", 5432, false);
    let (status, events, _) = stage.look(&object);
    assert_eq!(events.len(), 2, "the first look counts: {events:?}");
    let (reason, message) = &events[0];
    assert_eq!(reason, "DependencyNotReady");
    assert_eq!(message, "Dependency db:5432 is not reachable: 0 of 1 endpoints are ready");
    assert!(events[1].1.starts_with("Dependency configmap/flags is not ready: "), "{events:?}");
    object.status = Some(status);
    assert_eq!(stage.look(&object).1, [], "nothing has changed");
    let there = Stage::default().service("db", 5432, true).put("", "ConfigMap", "flags", json!({}));
    let (status, events, _) = there.look(&object);
    let reasons: Vec<&str> = events.iter().map(|(reason, _)| reason.as_str()).collect();
    assert_eq!(reasons, ["DependencyReady", "DependencyReady", "AllDependenciesReady"]);
    assert_eq!(events[2].1, "All 2 dependencies are reachable");
    object.status = Some(status);
    assert_eq!(there.look(&object).1, []);
}

#[test]
fn what_is_passed_by_hand_counts_and_is_not_called_ready() {
    let mut object = of("{resource: configmap/flags, name: flags}, {service: db, port: 5432}");
    let (status, ..) = Stage::default().look(&object);
    object.status = Some(status);
    let order = [("linchpin.dev/proceed".to_owned(), "flags@1".to_owned())];
    object.metadata.annotations = Some(order.into());
    let (status, events, _) = Stage::default().look(&object);
    let row = &status.entries[0];
    assert_eq!((row.state.as_str(), row.met, row.reason.as_str()), ("NotFound", true, "Proceeded"));
    assert_eq!(events, [], "nobody has seen it");
    object.status = Some(status);
    let there = Stage::default().put("", "ConfigMap", "flags", json!({}));
    let (status, events, _) = there.look(&object);
    assert_eq!((status.entries[0].reason.as_str(), events), ("Met", Vec::new()));
}

#[test]
fn nothing_is_said_of_what_nobody_looks_at_while_the_object_is_suspended() {
    let mut object = of("{service: db, port: 5432}");
    object.spec.common.suspend = true;
    let there = Stage::default().service("db", 5432, true);
    let (status, events, _) = there.look(&object);
    assert_eq!(events, [], "{status:?}");
    object.status = Some(status);
    object.spec.common.suspend = false;
    let reasons: Vec<String> = there.look(&object).1.into_iter().map(|(reason, _)| reason).collect();
    assert_eq!(reasons, ["AllDependenciesReady"]);
}
