//! What is believed of what somebody else may have written: journals, annotations, revisions, marks.

use crate::{
    eventually,
    operator::Operator,
    seconds,
    world::{self, World, scenario},
};
use linchpin_local::{ClusterOptions, Component};
use linchpin_testkit::{Api, Scenario, audit::Event};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::thread;

const ALONE: &[&str] = &["--leader-elect=false"];

const ONE: &str = "
    deletionPolicy: Delete
    actions: [{name: made, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]
";

const BUNDLE: &str = "{groups: [{name: g, components: [{name: one, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}}]}]}";

/// A row of an inventory that claims to be of a ConfigMap, as journals had them that said as whom it was made.
fn row(victim: &Value, actor: &Value) -> Value {
    let target = json!({"kind": {"word": "ConfigMap", "group": "", "version": "v1"},
        "namespace": victim["metadata"]["namespace"], "name": victim["metadata"]["name"]});
    json!({"step": "left", "via": {"actor": actor}, "target": target, "uid": victim["metadata"]["uid"],
        "state": "Created", "prune": true})
}

/// Writes a journal into a status: that which is there, of a much later run, with these rows.
fn forge(api: &Api, kind: &str, namespace: &str, name: &str, rows: &[Value]) {
    let object = api.get(kind, namespace, name).unwrap();
    let mut journal: Value =
        serde_json::from_str(object["status"]["journal"]["text"].as_str().unwrap()).unwrap();
    journal["run"]["id"] = json!(journal["run"]["id"].as_u64().unwrap() + 1000);
    let mut inventory = journal["inventory"].as_array().cloned().unwrap_or_default();
    inventory.extend_from_slice(rows);
    journal["inventory"] = json!(inventory);
    let forged = json!({"status": {"journal": {"text": journal.to_string()}}});
    api.merge(kind, namespace, name, "/status", &forged).unwrap();
}

fn journal(object: &Value) -> String {
    object["status"]["journal"]["text"].as_str().unwrap_or_default().to_owned()
}

fn account(namespace: &str) -> Value {
    json!({"serviceAccount": {"namespace": namespace, "name": "actor"}})
}

/// What the operator deleted, and what it did as accounts of this namespace.
fn deletions(scenario: &Scenario) -> Vec<Event> {
    let events = scenario.audit.events().into_iter();
    events.filter(|event| event.is_by_operator() && event.verb == "delete" && event.code < 300).collect()
}

fn left_behind(api: &Api, text: &str) -> bool {
    let list = api.read("/apis/events.k8s.io/v1/namespaces/default/events").unwrap();
    let events = list["items"].as_array().cloned().unwrap_or_default();
    let mut ours = events.iter().filter(|event| event["reason"] == "LeftBehind");
    ours.any(|event| event["note"].as_str().is_some_and(|note| note.contains(text)))
}

#[test]
fn a_forged_journal_is_put_right_while_we_lead_and_deletes_nothing_that_is_not_ours_after_a_restart() {
    let World { cluster, api, operator } =
        World::start(&ClusterOptions::default().without(Component::Scheduler), ALONE);
    let begin = |name: &str| {
        Scenario::begin(&api, linchpin_testkit::audit::Audit::from_now(&cluster.audit_log()), name)
    };
    let (victim, thief) = (begin("forge-victim"), begin("forge-thief"));
    victim.config_map("treasure", "");
    thief.config_map("by-hand", "");
    thief.resource_dependency("rd", ONE);
    thief.completed("rd");
    thief.app_bundle("shop", BUNDLE);
    thief.deployed("shop");
    let treasure = victim.get("ConfigMap", "treasure").unwrap();
    let by_hand = thief.get("ConfigMap", "by-hand").unwrap();
    let rows = [
        row(&by_hand, &account("forge-thief")),
        row(&treasure, &json!("operator")),
        row(&treasure, &account("forge-victim")),
    ];
    for (kind, name) in [("AppBundle", "shop"), ("ResourceDependency", "rd")] {
        forge(&api, kind, "forge-thief", name, &rows);
        thief.until("is put right", kind, name, |object| !journal(object).contains("treasure"));
    }
    assert_eq!(deletions(&victim), []);

    // Nobody looks while it is written, so it is what there is to go by.
    operator.signal(Signal::SIGKILL);
    for (kind, name) in [("AppBundle", "shop"), ("ResourceDependency", "rd")] {
        forge(&api, kind, "forge-thief", name, &rows);
    }
    let _operator: Operator = world::operator(&cluster, ALONE);
    thief.until("is not allowed to look there", "AppBundle", "shop", |object| {
        object["status"].to_string().contains("Forbidden")
    });
    thief.until("lets go of what is not ours", "AppBundle", "shop", |object| {
        !journal(object).contains("by-hand")
    });
    thief.delete("ResourceDependency", "rd");
    thief.until("says what holds it up", "ResourceDependency", "rd", |object| {
        object["status"].to_string().contains("Forbidden")
    });
    thief.merge("ResourceDependency", "rd", &json!({"spec": {"deletionPolicy": "Retain"}}));
    thief.gone("ResourceDependency", "rd");
    assert!(victim.has("treasure") && thief.has("by-hand"));
    let deleted: Vec<String> = deletions(&victim).into_iter().map(|event| event.name).collect();
    assert!(deleted.iter().all(|name| name == "made"), "{deleted:?}");
    let as_victim = victim
        .audit
        .events()
        .into_iter()
        .filter(|event| event.acting_as.as_deref().is_some_and(|user| user.contains(":forge-victim:")));
    assert_eq!(as_victim.collect::<Vec<_>>(), []);
}

#[test]
fn another_account_in_the_spec_removes_what_the_earlier_one_made_or_says_what_it_lacks() {
    let scenario = scenario("account-changes");
    let changes_to = |object: &str, account: &str| {
        scenario.resource_dependency(object, &ONE.replace("name: made", &format!("name: {object}")));
        scenario.completed(object);
        let account = json!({"spec": {"serviceAccountName": account}});
        scenario.merge("ResourceDependency", object, &account);
        scenario.completed(object);
    };
    let deleted = |name: &str| -> Vec<Option<String>> {
        let events = deletions(&scenario).into_iter();
        let of_it = events.filter(|event| event.namespace == "account-changes" && event.name == name);
        of_it.filter(|event| event.resource == "configmaps").map(|event| event.acting_as).collect()
    };
    let other = [Some("system:serviceaccount:account-changes:other".to_owned())];
    scenario.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: other}}");
    scenario.apply(
        "
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: other}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch, delete]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: other}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: other},
  subjects: [{kind: ServiceAccount, name: other, namespace: $NS}]}
",
    );
    changes_to("allowed", "other");
    scenario.delete("ResourceDependency", "allowed");
    scenario.gone("ResourceDependency", "allowed");
    assert!(!scenario.has("allowed"));
    assert_eq!(deleted("allowed"), other);

    scenario.api.delete("RoleBinding", "account-changes", "other");
    changes_to("lacking", "other");
    scenario.delete("ResourceDependency", "lacking");
    scenario.until("says what it lacks", "ResourceDependency", "lacking", |object| {
        object["status"]["phase"] == "Deleting" && object["status"].to_string().contains("Forbidden")
    });
    assert!(scenario.has("lacking"));
    assert_eq!(deleted("lacking"), []);
    scenario.merge("ResourceDependency", "lacking", &json!({"spec": {"deletionPolicy": "Retain"}}));
    scenario.gone("ResourceDependency", "lacking");
    assert!(scenario.has("lacking"));
}

#[test]
fn whoever_takes_the_mark_off_takes_the_object_back() {
    let scenario = scenario("taken-back");
    scenario.resource_dependency(
        "rd",
        "
        deletionPolicy: Delete
        actions:
        - {name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}}}
        - {name: b, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: ours}}}
        ",
    );
    scenario.completed("rd");
    scenario.app_bundle("shop", BUNDLE);
    scenario.deployed("shop");
    let unmark = json!({"metadata": {"annotations": {"linchpin.dev/created-by": null}}});
    scenario.merge("ConfigMap", "theirs", &unmark);
    scenario.merge("ConfigMap", "one", &unmark);
    for (kind, name) in [("ResourceDependency", "rd"), ("AppBundle", "shop")] {
        scenario.delete(kind, name);
        scenario.gone(kind, name);
    }
    assert!(scenario.has("theirs") && !scenario.has("ours"));
    let api = &scenario.api;
    eventually("it is reported", seconds(20), || left_behind(api, "taken-back/theirs"));
    let kept = scenario.get("ConfigMap", "one").unwrap();
    assert!(kept["metadata"].get("ownerReferences").is_none(), "the API server would delete it: {kept:#}");
}

#[test]
fn a_journal_that_cannot_be_read_holds_no_deletion_up() {
    let World { cluster, api, operator } =
        World::start(&ClusterOptions::default().without(Component::Scheduler), ALONE);
    let audit = linchpin_testkit::audit::Audit::from_now(&cluster.audit_log());
    let scenario = Scenario::begin(&api, audit, "unreadable");
    for name in ["broken", "newer", "waiting"] {
        scenario.resource_dependency(name, &ONE.replace("name: made", &format!("name: {name}")));
        scenario.completed(name);
    }
    operator.signal(Signal::SIGKILL);
    let write = |name: &str, text: &str| {
        let status = json!({"status": {"journal": {"text": text}}});
        api.merge("ResourceDependency", "unreadable", name, "/status", &status).unwrap();
    };
    write("broken", "{");
    for name in ["newer", "waiting"] {
        let object = scenario.get("ResourceDependency", name).unwrap();
        let mut journal: Value = serde_json::from_str(&journal(&object)).unwrap();
        journal["form"] = json!(99);
        journal["steps"] = json!("another shape");
        write(name, &journal.to_string());
    }
    scenario.delete("ResourceDependency", "broken");
    scenario.delete("ResourceDependency", "newer");
    let _operator: Operator = world::operator(&cluster, ALONE);
    scenario.gone("ResourceDependency", "broken");
    scenario.gone("ResourceDependency", "newer");
    assert!(scenario.has("broken"), "what cannot be known is not deleted");
    assert!(!scenario.has("newer"), "what can be read is");
    eventually("it is reported", seconds(20), || left_behind(&api, "unreadable/broken"));
    let waiting = scenario.until("says why it waits", "ResourceDependency", "waiting", |object| {
        object["status"]["message"].as_str().is_some_and(|message| message.contains("newer version"))
    });
    thread::sleep(seconds(1));
    assert!(journal(&waiting).contains("another shape"), "it is not overwritten");
    scenario.delete("ResourceDependency", "waiting");
    scenario.gone("ResourceDependency", "waiting");
}

#[test]
fn a_revision_that_somebody_else_made_or_changed_is_not_gone_back_to() {
    let scenario = scenario("revisions-forged");
    scenario.app_bundle("shop", BUNDLE);
    scenario.deployed("shop");
    let bundle = scenario.get("AppBundle", "shop").unwrap();
    eventually("it is written down", seconds(30), || scenario.get("BundleRevision", "shop-1").is_some());
    let mut revision = scenario.get("BundleRevision", "shop-1").unwrap();
    assert!(revision["spec"]["snapshot"].get("serviceAccountName").is_none());
    revision["metadata"] = json!({"name": "shop-7", "namespace": "revisions-forged",
        "labels": revision["metadata"]["labels"]});
    revision["spec"]["revision"] = json!(7);
    revision["spec"]["snapshot"]["serviceAccountName"] = json!("admin");
    scenario.api.apply(&revision).unwrap();
    scenario.merge("AppBundle", "shop", &json!({"spec": {"rollback": 7}}));
    let refused = scenario.phase("AppBundle", "shop", "Failed");
    assert!(refused["status"]["message"].as_str().unwrap().contains("there is no revision 7"));
    let owner = json!([{"apiVersion": "app.example.com/v1alpha1", "kind": "AppBundle", "name": "shop",
        "uid": bundle["metadata"]["uid"], "controller": true}]);
    scenario.merge("BundleRevision", "shop-7", &json!({"metadata": {"ownerReferences": owner}}));
    scenario.until("notices that it was changed", "AppBundle", "shop", |object| {
        object["status"]["message"].as_str().is_some_and(|message| message.contains("changed it since"))
    });
    scenario.merge("AppBundle", "shop", &json!({"spec": {"rollback": null}}));
    scenario.deployed("shop");
}

#[test]
fn revisions_keep_no_data_of_secrets() {
    let scenario = scenario("revisions-secret");
    let bundle = |password: &str, more: &str| {
        format!(
            "{{groups: [{{name: g, components: [{{name: s, template: {{apiVersion: v1, kind: Secret, metadata: {{name: s}}, \
             stringData: {{password: {password}}}}}}}{more}]}}]}}"
        )
    };
    let more = ", {name: m, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: m}}}";
    let written = |number: usize| {
        eventually("it is written down", seconds(30), || {
            let revision = scenario.get("BundleRevision", &format!("shop-{number}"));
            revision.is_some_and(|revision| revision["spec"]["result"] == "Deployed")
        });
    };
    scenario.app_bundle("shop", &bundle("hunter-one", ""));
    scenario.deployed("shop");
    written(1);
    scenario.app_bundle("shop", &bundle("hunter-one", more));
    scenario.deployed("shop");
    written(2);
    let all = json!(scenario.api.list("BundleRevision", "revisions-secret")).to_string();
    assert!(!all.contains("hunter") && all.contains("digest-of-data"), "{all}");
    scenario.merge("AppBundle", "shop", &json!({"spec": {"rollback": 1}}));
    scenario.deployed("shop");
    scenario.gone("ConfigMap", "m");
    scenario.merge("AppBundle", "shop", &json!({"spec": {"rollback": null}}));
    scenario.app_bundle("shop", &bundle("hunter-two", more));
    scenario.deployed("shop");
    written(3);
    scenario.merge("AppBundle", "shop", &json!({"spec": {"rollback": 1}}));
    let refused = scenario.phase("AppBundle", "shop", "Failed");
    let message = refused["status"]["message"].as_str().unwrap();
    assert!(message.contains("g/s") && message.contains("keep no data of Secrets"), "{message}");
}
