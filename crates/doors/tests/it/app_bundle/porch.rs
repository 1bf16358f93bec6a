//! Components that are Porch packages: the variant, the way to what comes of it, and what is said on that way.

use linchpin_api::{AppBundleStatus, app_bundle::status::ComponentStatus};
use linchpin_doors::AppBundleDoor;
use linchpin_words::Gvk;
use serde_json::{Value, json};

use super::{map, stage};
use crate::{
    stage::{Custom, Stage},
    things::{config_map, deployment},
};

/// A bundle with one package, and a ConfigMap after it.
pub(crate) fn with(package: &str) -> Stage<AppBundleDoor> {
    stage(&format!(
        "{{porchIntegration: {{enabled: true}}, groups: [{{name: g, components: [{{name: web, porchPackageRef: \
         {{packageName: web, repository: catalog{package}}}}}, {}]}}]}}",
        map("after", "")
    ))
}

/// Installs Porch, with a revision that is of this type.
pub(crate) fn install(stage: &mut Stage<AppBundleDoor>, revision: &str) {
    for (group, kind, plural) in [
        ("config.porch.kpt.dev", "PackageVariant", "packagevariants"),
        ("config.porch.kpt.dev", "Repository", "repositories"),
        ("porch.kpt.dev", "PackageRevision", "packagerevisions"),
        ("porch.kpt.dev", "PackageRevisionResources", "packagerevisionresources"),
    ] {
        let kind = Gvk::new(group, "v1alpha1", kind);
        stage.customs.push(Custom { kind, plural, namespaced: true });
    }
    let mut upstream = json!({"revision": {"type": revision}});
    if revision == "integer" {
        upstream["workspaceName"] = json!({"type": "string"});
    }
    let schema = json!({"properties": {"spec": {"properties": {"upstream": {"properties": upstream}}}}});
    stage.put(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "packagevariants.config.porch.kpt.dev"},
        "spec": {"versions": [{"name": "v1alpha1", "schema": {"openAPIV3Schema": schema}}]},
    }));
}

/// A revision of a package.
pub(crate) fn revision(
    repository: &str,
    package: &str,
    number: i64,
    lifecycle: &str,
    made_of: &str,
) -> Value {
    let mut object = json!({
        "apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision",
        "metadata": {"name": format!("{repository}.{package}.w{number}"), "namespace": "default"},
        "spec": {"repository": repository, "packageName": package, "workspaceName": format!("w{number}"),
            "revision": number, "lifecycle": lifecycle},
    });
    if !made_of.is_empty() {
        object["status"] = json!({"upstreamLock": {"git": {"ref": made_of}}});
    }
    object
}

/// What is in a revision.
pub(crate) fn resources(repository: &str, package: &str, number: i64, text: &str) -> Value {
    json!({
        "apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevisionResources",
        "metadata": {"name": format!("{repository}.{package}.w{number}"), "namespace": "default"},
        "spec": {"resources": {"Kptfile": "kind: Kptfile", "all.yaml": text}},
    })
}

pub(crate) const CONTENTS: &str =
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}}";

/// The variant that was applied last.
pub(crate) fn variant(stage: &Stage<AppBundleDoor>) -> Value {
    let mut variants = stage.bodies.iter().filter(|body| body["kind"] == "PackageVariant");
    variants.next_back().expect("a variant").clone()
}

/// Porch looks at the variant.
pub(crate) fn ready(stage: &mut Stage<AppBundleDoor>) {
    let mut live = variant(stage);
    live["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    stage.put(live).settle();
}

fn web(status: &AppBundleStatus) -> &ComponentStatus {
    &status.group_statuses[0].component_statuses[0]
}

/// What is said of the package now: phase, reason, message.
#[track_caller]
fn told(stage: &mut Stage<AppBundleDoor>, phase: &str, reason: &str, message: &str) -> AppBundleStatus {
    let status = stage.status();
    let web = web(&status);
    assert_eq!((web.phase.as_str(), web.reason.as_str()), (phase, reason), "{}", web.message);
    assert!(web.message.contains(message), "{}", web.message);
    status
}

#[test]
fn a_package_is_followed_from_its_variant_to_the_objects_that_come_of_it() {
    let mut stage = with(", revision: v1");
    install(&mut stage, "integer");
    stage.put(revision("catalog", "web", 1, "Published", "")).settle();
    let body = variant(&stage);
    let name = body["metadata"]["name"].as_str().expect("a name").to_owned();
    assert_eq!(stage.done(), [format!("apply PackageVariant default/{name}")]);
    told(
        &mut stage,
        "Deploying",
        "NotFound",
        "Porch has made no revision of it in Repository default/mgmt yet",
    );
    ready(&mut stage);
    stage.put(revision("mgmt", &name, 0, "Draft", "web/v1")).settle();
    told(
        &mut stage,
        "Deploying",
        "NotReady",
        &format!("default/mgmt.{name}.w0 is Draft and must be Published"),
    );
    stage.put(revision("mgmt", &name, 0, "Proposed", "web/v1")).settle();
    told(&mut stage, "Deploying", "NotReady", "is Proposed and must be Published");
    stage.take(&revision("mgmt", &name, 0, "Draft", ""));
    stage.put(revision("mgmt", &name, 1, "Published", "web/v1")).settle();
    told(&mut stage, "Deploying", "NotFound", "PackageRevisionResources default/mgmt.");
    stage.put(resources("mgmt", &name, 1, CONTENTS)).settle();
    let status = told(&mut stage, "Deploying", "NotFound", "Resource not ready: ");
    let parts: Vec<String> =
        web(&status).resources.iter().map(|one| format!("{} {}", one.resource_ref.kind, one.ready)).collect();
    assert_eq!(parts, ["PackageVariant true", "ConfigMap false", "Deployment false"]);
    assert!(stage.done().is_empty(), "what comes after waits");
    stage.put(config_map("shop", "web", &json!({}))).put(deployment("shop", "web", 1)).settle();
    let status = told(
        &mut stage,
        "Deployed",
        "Completed",
        "PackageVariant deployed successfully via Porch (2 resources monitored)",
    );
    assert_eq!(status.common.phase.as_deref(), Some("Deployed"));
    assert_eq!(stage.done(), ["apply ConfigMap own/after"]);
    let package = web(&status).package.as_ref().expect("a package");
    assert_eq!((package.revision.as_str(), package.latest_revision.as_str()), ("1", "1"));
    assert_eq!(package.package_revision, format!("mgmt.{name}.w1"));
    stage.put(deployment("shop", "web", 0)).settle();
    assert!(!web(&stage.status()).ready, "readiness follows the objects");
}

#[test]
fn p21_no_two_components_of_any_bundles_share_a_variant() {
    let mut names = std::collections::BTreeSet::new();
    for (bundle, group, component, package) in [
        ("shop", "g", "web", "web"),
        ("shop", "g", "other", "web"),
        ("shop", "h", "web", "web"),
        ("mall", "g", "web", "web"),
        ("shop", "g", "web", "a/very/long/Package_Name/that-does-not-fit-into-a-label-at-all"),
    ] {
        let mut stage: Stage<AppBundleDoor> = Stage::new(&format!(
            "{{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {{name: {bundle}}}, spec: \
             {{porchIntegration: {{enabled: true, repository: edge}}, groups: [{{name: {group}, components: \
             [{{name: {component}, porchPackageRef: {{packageName: {package}, repository: catalog}}}}]}}]}}}}"
        ));
        install(&mut stage, "integer");
        stage.settle();
        let body = variant(&stage);
        let name = body["metadata"]["name"].as_str().expect("a name").to_owned();
        assert!(name.starts_with("appbundle-") && name.len() <= 63, "{name}");
        assert_eq!(body["spec"]["downstream"], json!({"repo": "edge", "package": name}));
        assert!(names.insert(name), "each has its own");
    }
}

#[test]
fn p22_nothing_is_taken_from_porch_unless_it_is_enabled() {
    for integration in ["", "porchIntegration: {enabled: false}, "] {
        let mut stage = stage(&format!(
            "{{{integration}groups: [{{name: g, components: [{{name: web, porchPackageRef: {{packageName: web, \
             repository: catalog}}}}]}}]}}"
        ));
        install(&mut stage, "integer");
        stage.settle();
        let wrong = stage.wrong.as_ref().expect("a mistake").to_string();
        assert!(wrong.contains("porchPackageRef") && wrong.contains("enabled is not true"), "{wrong}");
        assert!(stage.done().is_empty());
    }
}

#[test]
fn p22_an_existing_variant_is_updated_and_what_was_made_of_the_old_revision_does_not_count() {
    let mut stage = with(", revision: v1");
    install(&mut stage, "integer");
    stage.put(revision("catalog", "web", 1, "Published", "")).put(revision(
        "catalog",
        "web",
        2,
        "Published",
        "",
    ));
    stage.settle();
    let name = variant(&stage)["metadata"]["name"].as_str().expect("a name").to_owned();
    stage
        .put(revision("mgmt", &name, 1, "Published", "web/v1"))
        .put(resources("mgmt", &name, 1, ""))
        .settle();
    ready(&mut stage);
    assert_eq!(stage.status().common.phase.as_deref(), Some("Deployed"));
    stage.done();
    stage
        .edit(|object| {
            object["spec"]["groups"][0]["components"][0]["porchPackageRef"]["revision"] = json!("v2");
        })
        .settle();
    assert_eq!(stage.done(), [format!("apply PackageVariant default/{name}")], "the same one");
    assert_eq!(variant(&stage)["spec"]["upstream"]["revision"], 2);
    ready(&mut stage);
    told(
        &mut stage,
        "Deploying",
        "NotReady",
        "is made of web/v1; one of what is asked for now must be published",
    );
    stage
        .put(revision("mgmt", &name, 2, "Published", "web/v2"))
        .put(resources("mgmt", &name, 2, ""))
        .settle();
    assert_eq!(stage.status().common.phase.as_deref(), Some("Deployed"));
}

#[test]
fn p23_the_definition_says_what_a_revision_looks_like() {
    for (shape, written, upstream) in [
        ("string", ", revision: v1", json!({"revision": "v1"})),
        ("string", "", json!({"revision": "main"})),
        ("integer", ", revision: v1", json!({"revision": 1})),
        ("integer", "", json!({"workspaceName": "main"})),
    ] {
        let mut stage = with(written);
        install(&mut stage, shape);
        stage.settle();
        let mut expected = upstream;
        expected["repo"] = json!("catalog");
        expected["package"] = json!("web");
        assert_eq!(variant(&stage)["spec"]["upstream"], expected, "{shape} {written}");
    }
}

#[test]
fn p24_a_package_is_one_write_whatever_its_group_and_namespace() {
    for order in [0, 7] {
        let mut stage = stage(&format!(
            "{{porchIntegration: {{enabled: true}}, groups: [{{name: g, order: {order}, components: [{{name: web, \
             porchPackageRef: {{packageName: web, repository: catalog, namespace: elsewhere}}}}]}}]}}"
        ));
        install(&mut stage, "integer");
        stage.settle();
        let name = variant(&stage)["metadata"]["name"].as_str().expect("a name").to_owned();
        let done = stage.done();
        assert_eq!(
            done,
            [format!("apply PackageVariant elsewhere/{name}")],
            "no account, no role, no binding"
        );
    }
}

#[test]
fn p25_nothing_waits_in_a_job_so_a_variant_brings_no_functions() {
    let mut stage = with("");
    install(&mut stage, "integer");
    stage.settle();
    let spec = &variant(&stage)["spec"];
    let fields: std::collections::BTreeSet<&str> =
        spec.as_object().expect("a spec").keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        ["adoptionPolicy", "annotations", "deletionPolicy", "downstream", "labels", "upstream"].into(),
        "no pipeline: no image is run, and nothing is put into the package"
    );
    assert_eq!(
        spec["annotations"],
        json!({"approval.nephio.org/policy": "initial", "argocd.argoproj.io/sync-wave": "0"})
    );
    assert_eq!(
        (&spec["adoptionPolicy"], &spec["deletionPolicy"]),
        (&json!("adoptExisting"), &json!("delete"))
    );
}

#[test]
fn p26_labels_are_on_metadata_and_on_no_selector() {
    let mut stage = stage(
        "{porchIntegration: {enabled: true}, groups: [{name: g, components: [
           {name: web, porchPackageRef: {packageName: web, repository: catalog}, gate: false},
           {name: db, order: 0, template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: db}, spec: {selector:
             {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}}}}}]}]}",
    );
    install(&mut stage, "integer");
    stage.settle();
    let labels = |component: &str| {
        json!({"app.example.com/appbundle": "shop", "app.example.com/group": "g",
            "app.example.com/component": component})
    };
    let web = variant(&stage);
    assert_eq!((&web["metadata"]["labels"], &web["spec"]["labels"]), (&labels("web"), &labels("web")));
    let db = stage.bodies.iter().find(|body| body["kind"] == "Deployment").expect("a Deployment");
    assert_eq!(db["metadata"]["labels"], labels("db"));
    assert_eq!(db["spec"]["selector"]["matchLabels"], json!({"app": "db"}));
    assert_eq!(db["spec"]["template"]["metadata"]["labels"], json!({"app": "db"}));
}

#[test]
fn without_porch_a_bundle_waits_and_says_so_and_is_woken_when_it_comes() {
    let mut stage = with("");
    stage.settle();
    let status = told(&mut stage, "Pending", "KindNotServed", "Porch is not installed: PackageVariant");
    assert_eq!(status.common.phase.as_deref(), Some("Pending"), "waiting is not failing");
    assert!(stage.done().is_empty());
    install(&mut stage, "integer");
    stage.settle();
    assert_eq!(stage.done().len(), 1);
}

#[test]
fn latest_waits_for_a_published_revision_and_follows_the_next_one() {
    let mut stage = with(", revision: latest");
    install(&mut stage, "integer");
    stage.put(revision("catalog", "web", 1, "Draft", "")).settle();
    let message = "no revision of package web in Repository default/catalog is published yet";
    told(&mut stage, "Pending", "NotFound", message);
    assert!(stage.done().is_empty());
    stage.put(revision("catalog", "web", 1, "Published", "")).settle();
    assert_eq!(variant(&stage)["spec"]["upstream"]["revision"], 1);
    stage.put(revision("catalog", "web", 2, "Published", "")).settle();
    assert_eq!(variant(&stage)["spec"]["upstream"]["revision"], 2);
    let gone = [revision("catalog", "web", 1, "", ""), revision("catalog", "web", 2, "", "")];
    stage.take(&gone[0]).take(&gone[1]);
    stage.done();
    stage.settle();
    assert!(stage.done().is_empty(), "what it follows is kept while the Repository shows nothing");
}

#[test]
fn the_status_lists_what_is_in_the_repository() {
    let mut stage = with(", revision: v1");
    install(&mut stage, "integer");
    for number in 1..=10 {
        stage.put(revision("catalog", "web", number, "Published", ""));
    }
    stage.put(revision("catalog", "db", 1, "Draft", "")).put(revision("other", "web", 1, "Published", ""));
    stage.settle();
    let status = stage.status();
    let repository = &status.porch_repositories[0];
    assert_eq!((status.porch_repositories.len(), repository.package_count), (1, 2));
    assert_eq!((repository.ready, repository.message.as_str()), (false, "it does not exist"));
    assert_eq!(repository.packages[0].name, "db");
    assert!(repository.packages[0].revisions.is_empty(), "a draft is not published");
    assert_eq!(repository.packages[1].revisions, ["10", "9", "8", "7", "6", "5", "4", "3"]);
    assert_eq!(web(&status).package.as_ref().expect("a package").latest_revision, "10");
}

#[test]
fn looking_at_packages_needs_rights_that_are_told() {
    let mut stage = with("");
    install(&mut stage, "integer");
    stage.settle();
    let rights: Vec<String> = stage.plan().rights().iter().map(|(_, right, _)| right.to_string()).collect();
    for right in [
        "create packagevariants.config.porch.kpt.dev in default",
        "list repositories.config.porch.kpt.dev catalog in default",
        "watch packagerevisions.porch.kpt.dev in default",
        "list packagerevisionresources.porch.kpt.dev in default",
    ] {
        assert!(rights.iter().any(|one| one == right), "{right} is not in {rights:#?}");
    }
    let open = stage.plan().open_rights();
    assert!(open.iter().any(|words| words.contains("the objects in package web")), "{open:?}");
}

#[test]
fn a_package_that_cannot_be_read_names_the_file() {
    let mut stage = with(", revision: v1");
    install(&mut stage, "integer");
    stage.settle();
    let name = variant(&stage)["metadata"]["name"].as_str().expect("a name").to_owned();
    stage.put(revision("mgmt", &name, 1, "Published", "")).put(resources("mgmt", &name, 1, "a: [")).settle();
    told(&mut stage, "Deploying", "Invalid", "the package cannot be read: all.yaml:");
}

#[test]
fn a_variant_is_deleted_with_its_component_and_kept_where_that_is_asked_for() {
    let mut stage = with(", revision: v1");
    install(&mut stage, "integer");
    stage.settle();
    let name = variant(&stage)["metadata"]["name"].as_str().expect("a name").to_owned();
    let action = super::action(stage.plan(), "g/web");
    assert!(action.tracked && action.owner.is_some());
    stage
        .edit(|object| object["spec"]["groups"][0]["components"][0]["deletionPolicy"] = json!("Orphan"))
        .settle();
    assert_eq!(variant(&stage)["spec"]["deletionPolicy"], "orphan", "{name}: and so what it made");
    assert!(!super::action(stage.plan(), "g/web").tracked);
}
