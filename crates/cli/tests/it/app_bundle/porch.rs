//! Porch packages on a real API server, with a small fake of Porch's own controllers: the variant, the published
//! revision, the objects that come of it, and all of it back again.

use super::{component, map};
use crate::{
    seconds,
    world::{World, scenario},
};
use linchpin_local::{ClusterOptions, Component};
use linchpin_testkit::{
    Api, Scenario,
    porch::{Porch, RevisionShape, install, remove},
};
use serde_json::{Value, json};
use std::{sync::OnceLock, thread};

/// What a bundle with packages may do in its namespace.
pub(super) const RULES: &str = "[{apiGroups: [config.porch.kpt.dev], resources: [packagevariants], verbs: [get, list, watch, create, patch, delete]}, \
     {apiGroups: [config.porch.kpt.dev], resources: [repositories], verbs: [list, watch]}, \
     {apiGroups: [porch.kpt.dev], resources: [packagerevisions, packagerevisionresources], verbs: [list, watch]}]";

/// Porch in a namespace of the shared cluster, where it is of the newer shape.
pub(super) fn play(api: &Api, namespace: &str) -> Porch {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| install(api, RevisionShape::Number));
    Porch::begin(api, namespace)
}

/// The Repositories that packages come from and go to.
pub(super) fn repositories(porch: &Porch) {
    for repository in ["catalog", "mgmt"] {
        porch.repository(repository);
    }
}

/// A namespace of the shared cluster, with Porch in it.
fn with_porch(name: &str) -> (Scenario, Porch) {
    let scenario = scenario(name);
    scenario.allow("porch", RULES);
    let porch = play(&scenario.api, name);
    repositories(&porch);
    (scenario, porch)
}

/// A component that is a package.
pub(super) fn package(name: &str, namespace: &str, more: &str) -> String {
    format!(
        "{{name: {name}, porchPackageRef: {{packageName: {name}, repository: catalog, namespace: {namespace}{more}}}}}"
    )
}

pub(super) fn spec(components: &[String]) -> String {
    let list = components.join(", ");
    format!("{{porchIntegration: {{enabled: true}}, groups: [{{name: g, components: [{list}]}}]}}")
}

/// The files of a package that is one ConfigMap.
pub(super) fn one_map(namespace: &str, name: &str, value: &str) -> Value {
    json!({
        "Kptfile": format!("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {{name: {name}}}"),
        "map.yaml": format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}}}, \
                             data: {{value: {value}}}}}"),
    })
}

/// Waits until a component says this.
#[track_caller]
fn says(scenario: &Scenario, name: &str, reason: &str, words: &str) -> Value {
    scenario.until(&format!("says {reason}: {words}"), "AppBundle", "shop", |object| {
        let entry = component(object, "g", name);
        entry["reason"] == reason && entry["message"].as_str().is_some_and(|message| message.contains(words))
    })
}

/// What the operator wrote to variants.
fn variant_writes(scenario: &Scenario) -> usize {
    let writes = scenario.audit.user_writes(&scenario.namespace);
    writes.iter().filter(|event| event.resource == "packagevariants").count()
}

#[test]
fn p22_a_package_is_followed_to_its_objects_and_what_comes_after_waits_for_them() {
    let (scenario, porch) = with_porch("porch-follow");
    porch.hold(true);
    porch.publish("catalog", "web", 1, &one_map("porch-follow", "from-package", "first"));
    let bundle = |revision: &str| {
        spec(&[package("web", "porch-follow", &format!(", revision: {revision}")), map("after", "")])
    };
    scenario.app_bundle("shop", &bundle("v1"));
    says(&scenario, "web", "NotReady", "is Draft and must be Published");
    assert!(!scenario.has("from-package") && !scenario.has("after"));
    porch.hold(false);
    let done = scenario.deployed("shop");
    let web = component(&done, "g", "web");
    let message = "PackageVariant deployed successfully via Porch (1 resources monitored)";
    assert_eq!(web["message"], message);
    assert_eq!(web["resourceRef"]["kind"], "PackageVariant");
    assert_eq!(web["resources"][1]["resourceRef"]["name"], "from-package", "{web:#}");
    assert_eq!(web["package"]["revision"], "1");
    assert!(
        web["package"]["packageRevision"].as_str().unwrap().starts_with("mgmt.appbundle-web-"),
        "{web:#}"
    );
    let made = scenario.audit.first_write("configmaps", "porch-follow", "from-package");
    let after = scenario.audit.first_write("configmaps", "porch-follow", "after");
    linchpin_testkit::audit::assert_before(&made, &after);
    // A bundle that has come to rest writes nothing.
    let quiet = variant_writes(&scenario);
    assert_eq!(quiet, 1);
    scenario.annotate("AppBundle", "shop", "linchpin.dev/requested-at", "now");
    thread::sleep(seconds(1));
    assert_eq!(variant_writes(&scenario), quiet);
    // What somebody changes of the variant is put right.
    let variant = web["resourceRef"]["name"].as_str().unwrap().to_owned();
    scenario.merge("PackageVariant", &variant, &json!({"spec": {"upstream": {"package": "other"}}}));
    scenario.until("is put right", "PackageVariant", &variant, |object| {
        object["spec"]["upstream"]["package"] == "web"
    });
    // Another revision updates the very same variant.
    porch.publish("catalog", "web", 2, &one_map("porch-follow", "from-package", "second"));
    scenario.app_bundle("shop", &bundle("v2"));
    scenario.until("is of the second revision", "ConfigMap", "from-package", |object| {
        object["data"]["value"] == "second"
    });
    let done = scenario.deployed("shop");
    assert_eq!(component(&done, "g", "web")["resourceRef"]["name"], *variant);
    assert_eq!(porch.variants().len(), 1);
    // A package that leaves the bundle takes its variant with it.
    scenario.app_bundle("shop", &spec(&[map("after", "")]));
    scenario.deployed("shop");
    scenario.gone("PackageVariant", &variant);
    assert!(scenario.has("after"));
}

#[test]
fn p21_two_bundles_with_one_package_have_a_variant_each_and_delete_only_their_own() {
    let (scenario, porch) = with_porch("porch-names");
    porch.publish("catalog", "web", 1, &one_map("porch-names", "shared", "first"));
    let bundle = spec(&[
        package("web", "porch-names", ", revision: v1"),
        package("web", "porch-names", ", revision: v1").replacen("name: web", "name: again", 1),
    ]);
    scenario.app_bundle("shop", &bundle);
    scenario.app_bundle("mall", &bundle);
    scenario.deployed("shop");
    let mall = scenario.deployed("mall");
    assert_eq!(porch.variants().len(), 4);
    let audit = scenario.audit.clone();
    scenario.delete("AppBundle", "shop");
    scenario.gone("AppBundle", "shop");
    let left: Vec<Value> = porch.variants().iter().map(|one| one["metadata"]["name"].clone()).collect();
    let own = ["again", "web"].map(|name| component(&mall, "g", name)["resourceRef"]["name"].clone());
    assert!(left.len() == 2 && own.iter().all(|name| left.contains(name)), "{left:?} {own:?}");
    let deleted: Vec<String> = audit
        .user_writes("porch-names")
        .into_iter()
        .filter(|event| event.verb == "delete" && event.resource == "packagevariants")
        .map(|event| event.name)
        .collect();
    assert_eq!(deleted.len(), 2, "in reverse, each once: {deleted:?}");
}

#[test]
fn a_revision_that_is_published_is_told_and_followed_where_that_is_asked_for() {
    let (scenario, porch) = with_porch("porch-latest");
    let pinned = package("web", "porch-latest", ", revision: v1").replacen("name: web", "name: pinned", 1);
    let follows =
        package("web", "porch-latest", ", revision: latest").replacen("name: web", "name: follows", 1);
    scenario.app_bundle("shop", &spec(&[follows, pinned]));
    says(
        &scenario,
        "follows",
        "NotFound",
        "no revision of package web in Repository porch-latest/catalog is published",
    );
    porch.publish("catalog", "web", 1, &one_map("porch-latest", "web", "first"));
    scenario.deployed("shop");
    porch.publish("catalog", "web", 2, &one_map("porch-latest", "web", "second"));
    let told = scenario.until("follows", "AppBundle", "shop", |object| {
        component(object, "g", "follows")["package"]["revision"] == "2"
            && component(object, "g", "follows")["phase"] == "Deployed"
            && component(object, "g", "follows")["ready"] == true
    });
    let pinned = &component(&told, "g", "pinned")["package"];
    assert_eq!((&pinned["revision"], &pinned["latestRevision"]), (&json!("1"), &json!("2")));
    let catalog = &told["status"]["porchRepositories"][0];
    assert_eq!((&catalog["name"], &catalog["ready"]), (&json!("catalog"), &json!(true)));
    assert_eq!(catalog["packages"], json!([{"name": "web", "revisions": ["2", "1"]}]));
    crate::eventually("an event tells of it", seconds(20), || {
        let events = scenario.events("shop");
        let about = |words: &str| {
            events.iter().any(|(reason, note)| reason == "RevisionPublished" && note.contains(words))
        };
        about("component g/follows uses the package and follows it")
            && about("component g/pinned uses the package and stays with 1")
    });
    assert_eq!(scenario.audit.overreach(), []);
}

#[test]
fn p24_nothing_but_the_variant_is_written_and_each_object_of_a_package_is_waited_for() {
    let (scenario, porch) = with_porch("porch-objects");
    let files = json!({"all.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: porch-objects},
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: none}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: porch-objects}, spec: {ports: [{port: 80}], selector: {app: nobody}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: local, annotations: {config.kubernetes.io/local-config: 'true'}}}"});
    porch.publish("catalog", "web", 1, &files);
    scenario
        .app_bundle("shop", &spec(&[package("web", "porch-objects", ", revision: v1"), map("after", "")]));
    scenario.appears("after");
    let seen = says(&scenario, "web", "NoReadyEndpoints", "Service porch-objects/web: no ready endpoint");
    let web = component(&seen, "g", "web");
    let entries: Vec<String> = web["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {}", one["resourceRef"]["kind"].as_str().unwrap(), one["ready"]))
        .collect();
    assert_eq!(entries, ["PackageVariant true", "Deployment true", "Service false"], "{web:#}");
    assert!(!scenario.has("local"), "what is local to a package is not created");
    let written: Vec<String> =
        scenario.audit.user_writes("porch-objects").into_iter().map(|event| event.resource).collect();
    assert_eq!(written, ["packagevariants", "configmaps"], "no Jobs, no accounts, no roles");
    scenario.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: somebody, labels: {app: nobody}}, spec: {containers: [{name: c, image: none}]}}",
    );
    scenario.deployed("shop");
}

#[test]
fn p23_porch_may_be_missing_come_later_and_change_its_shape() {
    let options =
        ClusterOptions::default().without(Component::ControllerManager).without(Component::Scheduler);
    let world = World::start(&options, &["--leader-elect=false"]);
    let scenario = world.scenario("porch-shapes");
    scenario.allow("porch", RULES);
    scenario
        .app_bundle("shop", &spec(&[map("before", ""), package("web", "porch-shapes", ", revision: v1")]));
    let waiting = says(&scenario, "web", "KindNotServed", "Porch is not installed");
    assert_eq!(waiting["status"]["phase"], "Deploying", "waiting is not failing");
    assert_eq!(waiting["status"]["blockedBy"][0]["reason"], "KindNotServed");
    install(&world.api, RevisionShape::Text);
    let porch = Porch::begin(&world.api, "porch-shapes");
    repositories(&porch);
    porch.publish("catalog", "web", 1, &one_map("porch-shapes", "from-package", "first"));
    scenario.deployed("shop");
    assert_eq!(
        porch.variants()[0]["spec"]["upstream"],
        json!({"repo": "catalog", "package": "web", "revision": "v1"})
    );
    // Porch goes, and comes back in its newer shape: what was a text is a number from now on.
    remove(&world.api);
    says(&scenario, "web", "KindNotServed", "Porch is not installed");
    install(&world.api, RevisionShape::Number);
    repositories(&porch);
    porch.publish("catalog", "web", 1, &one_map("porch-shapes", "from-package", "first"));
    scenario.deployed("shop");
    let upstream = json!({"repo": "catalog", "package": "web", "revision": 1, "workspaceName": "v1"});
    assert_eq!(porch.variants()[0]["spec"]["upstream"], upstream);
    assert_eq!(porch.variants().len(), 1);
}
