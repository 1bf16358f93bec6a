//! The operator dies at random points of creation, change, prune and deletion: the end is the same, nothing is orphaned.

use super::{component, map, maps, porch};
use crate::{
    eventually, seconds,
    world::{self, World},
};
use linchpin_doors::journal;
use linchpin_engine::journal::Journal;
use linchpin_local::{ClusterOptions, Component};
use linchpin_testkit::{
    Dice, Scenario,
    audit::{Audit, Event},
    porch::{Porch, RevisionShape, install},
};
use linchpin_words::{Timestamp, keys};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::{collections::BTreeSet, thread, time::Duration};

const ALONE: &[&str] = &["--leader-elect=false"];

fn pause(dice: &mut Dice, limit: usize) {
    thread::sleep(Duration::from_millis(u64::try_from(dice.below(limit)).unwrap()));
}

#[test]
fn killed_at_random_points_a_bundle_comes_to_the_same_end() {
    let options = ClusterOptions::default().without(Component::Scheduler);
    let World { cluster, api, operator: mut current } = World::start(&options, ALONE);
    for seed in 0..6_u64 {
        let mut dice = Dice::new(seed + 5);
        let scenario =
            Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), &format!("bundle-killed-{seed}"));
        let mut killed = |dice: &mut Dice, limit: usize| {
            pause(dice, limit);
            current.signal(Signal::SIGKILL);
            current = world::operator(&cluster, ALONE);
        };
        scenario.app_bundle("shop", &maps(&[&["a", "b"], &["c"], &["d"]]));
        killed(&mut dice, 200);
        scenario.deployed("shop");
        let changed = maps(&[&["a", "new"], &["c"]]).replacen("value: one", "value: two", 1);
        scenario.app_bundle("shop", &changed);
        killed(&mut dice, 200);
        scenario.deployed("shop");
        for name in ["b", "d"] {
            scenario.gone("ConfigMap", name);
        }
        assert_eq!(scenario.data("a", "value").as_deref(), Some("two"));
        assert!(scenario.has("new") && scenario.has("c"));
        scenario.delete("AppBundle", "shop");
        killed(&mut dice, 60);
        scenario.gone("AppBundle", "shop");
        for name in ["a", "b", "c", "d", "new"] {
            assert!(!scenario.has(name), "{name} is orphaned");
        }
        for name in ["a", "b", "c", "d", "new"] {
            assert_created_once(&scenario, "configmaps", name);
        }
    }
}

/// Judged from the audit log.
#[track_caller]
fn assert_created_once(scenario: &Scenario, resource: &str, name: &str) {
    let events = scenario.audit.events();
    let of = |event: &&Event| {
        event.resource == resource && event.namespace == scenario.namespace && event.name == name
    };
    let created = events.iter().filter(of).filter(|event| event.code == 201).count();
    // The server may log as failed what it did for somebody who died before the answer.
    let unheard = || events.iter().filter(of).any(|event| event.verb == "patch" && !event.is_write());
    assert!(created == 1 || created == 0 && unheard(), "{name} was created {created} times");
}

#[test]
fn a_crowd_killed_before_its_statuses_are_written_knows_what_it_made() {
    const BUNDLES: usize = 16;
    const ROUNDS: usize = 5;
    const PARTS: [&str; 4] = ["a", "b", "c", "d"];
    // Without a garbage collector: what is forgotten stays.
    let options =
        ClusterOptions::default().without(Component::ControllerManager).without(Component::Scheduler);
    let World { cluster, api, operator: first } = World::start(&options, ALONE);
    let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), "bundles-killed");
    first.signal(Signal::SIGKILL);
    let bundle = |number: usize| format!("bundle-{number}");
    let object = |number: usize, part: &str| format!("{part}{number}");
    let spec = |number: usize, parts: &[&str]| {
        let parts: Vec<String> = parts.iter().map(|part| map(&object(number, part), ", order: 1")).collect();
        format!("{{groups: [{{name: g, components: [{}]}}]}}", parts.join(", "))
    };
    let first_journal = |object: &Value| object["metadata"]["annotations"].get(keys::FIRST_JOURNAL).is_some();
    let relies_on_it = |number: &usize| {
        let Some(found) = scenario.get("AppBundle", &bundle(*number)) else { return false };
        first_journal(&found)
            && found["status"].get("journal").is_none()
            && scenario.has(&object(*number, "b"))
    };
    let made = || {
        let made =
            |event: &&Event| event.resource == "configmaps" && event.acting_as.is_some() && event.code == 201;
        scenario.audit.events().iter().filter(made).count()
    };
    let halves =
        |count: usize| -> (Vec<usize>, Vec<usize>) { (0..count).partition(|number| number % 2 == 0) };
    // Whoever looks too late finds all statuses written: a crowd more, then.
    let (changed, deleted) = (1..=ROUNDS)
        .map(|round| {
            for number in (round - 1) * BUNDLES..round * BUNDLES {
                scenario.app_bundle(&bundle(number), &spec(number, &PARTS));
            }
            let before = made();
            let current = world::operator(&cluster, ALONE);
            eventually("a part of the objects is made", seconds(20), || made() >= before + BUNDLES);
            current.signal(Signal::SIGKILL);
            halves(round * BUNDLES)
        })
        .find(|(changed, deleted)| [changed, deleted].iter().all(|half| half.iter().any(relies_on_it)))
        .expect("nobody had to rely on its first journal");
    for number in &changed {
        scenario.app_bundle(&bundle(*number), &spec(*number, &["a", "c", "d"]));
    }
    for number in &deleted {
        scenario.delete("AppBundle", &bundle(*number));
    }
    let _last = world::operator(&cluster, ALONE);
    for number in &changed {
        scenario.deployed(&bundle(*number));
        scenario.gone("ConfigMap", &object(*number, "b"));
        for part in ["a", "c", "d"] {
            assert!(scenario.has(&object(*number, part)), "{part} of {number} is missing");
        }
        scenario.until("has no first journal any more", "AppBundle", &bundle(*number), |object| {
            !first_journal(object)
        });
    }
    for number in &deleted {
        scenario.gone("AppBundle", &bundle(*number));
        for part in PARTS {
            assert!(!scenario.has(&object(*number, part)), "{part} of {number} is orphaned");
        }
    }
}

#[test]
fn a_first_journal_that_names_somebody_else_makes_nobody_act_as_them() {
    let options =
        ClusterOptions::default().without(Component::ControllerManager).without(Component::Scheduler);
    let World { cluster, api, operator: current } = World::start(&options, ALONE);
    let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), "bundle-forged");
    current.signal(Signal::SIGKILL);
    scenario.app_bundle("shop", &maps(&[&["a"]]));
    let uid = |object: Option<Value>| object.unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let shop = uid(scenario.get("AppBundle", "shop"));
    // It even looks as if the bundle had made it.
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: victim, namespace: kube-system,
            annotations: {{{}: {shop}}}}}}}",
        keys::CREATED_BY
    ));
    let victim = || api.get("ConfigMap", "kube-system", "victim");
    let kind = json!({"word": "configmap", "group": "", "version": "v1"});
    let item = json!({"step": "gone/victim", "state": "Created", "prune": true, "uid": uid(victim()),
        // Who may delete anything anywhere.
        "via": {"actor": {"serviceAccount": {"namespace": "kube-system", "name": "generic-garbage-collector"}}},
        "target": {"kind": kind, "namespace": "kube-system", "name": "victim"}});
    let mut journal = Journal::new(&shop, 1, Timestamp::from_microsecond(0));
    journal.inventory.push(serde_json::from_value(item).unwrap());
    let forged = journal::write_first(&journal).unwrap();
    scenario.annotate("AppBundle", "shop", keys::FIRST_JOURNAL, &forged);
    let _last = world::operator(&cluster, ALONE);
    let refused = |object: &Value| object["status"].to_string().contains("Forbidden");
    scenario.until("may not look there", "AppBundle", "shop", refused);
    assert!(scenario.has("a") && victim().is_some(), "somebody else's object was pruned");
    scenario.delete("AppBundle", "shop");
    scenario.until("says what holds it up", "AppBundle", "shop", |object| {
        object["status"]["phase"] == "Deleting" && refused(object)
    });
    scenario.merge("AppBundle", "shop", &json!({"spec": {"deletionPolicy": "Orphan"}}));
    scenario.gone("AppBundle", "shop");
    assert!(victim().is_some(), "somebody else's object was deleted");
    let account =
        |event: &&Event| event.acting_as.as_deref().is_some_and(|user| user.contains(":kube-system:"));
    assert_eq!(scenario.audit.events().iter().find(account).map(|event| &event.name), None);
}

#[test]
fn a_journal_that_cannot_be_read_is_told_and_kept() {
    let options =
        ClusterOptions::default().without(Component::ControllerManager).without(Component::Scheduler);
    let World { cluster, api, operator: current } = World::start(&options, ALONE);
    let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), "bundle-unreadable");
    scenario.app_bundle("shop", &maps(&[&["a"]]));
    scenario.deployed("shop");
    current.signal(Signal::SIGKILL);
    let broken = json!({"text": "{\"uid\": "});
    let patch = json!({"status": {"journal": broken}});
    api.merge("AppBundle", &scenario.namespace, "shop", "/status", &patch).unwrap();
    // What is to be taken away is known to the journal alone.
    scenario.app_bundle("shop", &maps(&[&["b"]]));
    let _last = world::operator(&cluster, ALONE);
    let failed = scenario.phase("AppBundle", "shop", "Failed");
    let told = failed["status"]["message"].as_str().unwrap();
    assert!(told.contains("status.journal") && told.contains("remove it to begin anew"), "{told}");
    thread::sleep(Duration::from_secs(3));
    let seen = scenario.get("AppBundle", "shop").unwrap();
    assert_eq!(seen["status"]["journal"], broken, "what was done is forgotten");
    assert!(!scenario.has("b"), "something is done though what was done is not known");
    api.merge("AppBundle", &scenario.namespace, "shop", "/status", &json!({"status": {"journal": null}}))
        .unwrap();
    scenario.deployed("shop");
    assert!(scenario.has("b"));
}

#[test]
fn killed_at_random_points_a_package_has_one_variant_and_takes_it_along() {
    let options =
        ClusterOptions::default().without(Component::ControllerManager).without(Component::Scheduler);
    let World { cluster, api, operator: mut current } = World::start(&options, ALONE);
    install(&api, RevisionShape::Number);
    for seed in 0..5_u64 {
        let mut dice = Dice::new(seed + 11);
        let name = format!("porch-killed-{seed}");
        let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), &name);
        scenario.allow("porch", porch::RULES);
        let played = Porch::begin(&api, &name);
        porch::repositories(&played);
        let mut killed = |dice: &mut Dice, limit: usize| {
            pause(dice, limit);
            current.signal(Signal::SIGKILL);
            current = world::operator(&cluster, ALONE);
        };
        for package in ["web", "side"] {
            played.publish("catalog", package, 1, &porch::one_map(&name, package, "first"));
        }
        played.publish("catalog", "web", 2, &porch::one_map(&name, "web", "second"));
        let package = |package: &str, revision: &str| {
            porch::package(package, &name, &format!(", revision: {revision}"))
        };
        scenario.app_bundle(
            "shop",
            &porch::spec(&[package("web", "v1"), package("side", "v1"), map("after", "")]),
        );
        // Twice: between the variant and what Porch makes of it, and while that is looked at.
        killed(&mut dice, 300);
        killed(&mut dice, 300);
        let done = scenario.deployed("shop");
        let variant = |package: &str| component(&done, "g", package)["resourceRef"]["name"].as_str().unwrap();
        let (web, side) = (variant("web"), variant("side"));
        assert_eq!(names(&played), BTreeSet::from([web.to_owned(), side.to_owned()]));
        scenario.app_bundle("shop", &porch::spec(&[package("web", "v2"), map("after", "")]));
        killed(&mut dice, 400);
        let changed = scenario.deployed("shop");
        assert_eq!(component(&changed, "g", "web")["resourceRef"]["name"], web);
        scenario.until("is of the second revision", "ConfigMap", "web", |object| {
            object["data"]["value"] == "second"
        });
        scenario.gone("PackageVariant", side);
        assert_eq!(names(&played), BTreeSet::from([web.to_owned()]));
        scenario.delete("AppBundle", "shop");
        killed(&mut dice, 100);
        scenario.gone("AppBundle", "shop");
        assert!(!scenario.has("after"), "an object of its is orphaned");
        assert_eq!(names(&played), BTreeSet::new(), "a variant is orphaned");
        for variant in [web, side] {
            eventually("what Porch made of it is gone", seconds(20), || {
                played.revisions("mgmt", variant).is_empty()
            });
            assert_created_once(&scenario, "packagevariants", variant);
        }
        let all: BTreeSet<String> = scenario
            .audit
            .events()
            .into_iter()
            .filter(|event| {
                event.resource == "packagevariants" && event.namespace == name && event.code == 201
            })
            .map(|event| event.name)
            .collect();
        assert!(all.iter().all(|one| one == web || one == side), "a third variant was created: {all:?}");
    }
}

/// The variants there are.
fn names(porch: &Porch) -> BTreeSet<String> {
    let name = |one: &serde_json::Value| one["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    porch.variants().iter().map(name).collect()
}
