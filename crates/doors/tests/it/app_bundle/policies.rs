//! What becomes of objects: whose they are, drift, prune, deletion.

use linchpin_api::{AppBundle, Ours, common::DeletionPolicy};
use linchpin_engine::{
    contract::Existing,
    plan::{ActionBody, Immutable, Prune},
};

use super::{action, map, stage};

fn existing(spec: &str) -> Existing {
    let mut stage = stage(spec);
    stage.settle();
    match &action(stage.plan(), "a/x").body {
        ActionBody::Apply { existing, .. } => *existing,
        other => panic!("{other:?}"),
    }
}

#[test]
fn p03_what_somebody_else_made_is_not_taken_unless_that_is_asked_for() {
    let with = |more: &str| format!("{{groups: [{{name: a, components: [{}]}}]}}", map("x", more));
    assert_eq!(existing(&with("")), Existing::Fail);
    assert_eq!(existing(&with(", adopt: Never")), Existing::Fail);
    assert_eq!(existing(&with(", adopt: Adopt")), Existing::Adopt);
    let space = "{groups: [{name: a, components: [{name: x, template: {apiVersion: v1, kind: Namespace,
        metadata: {name: space}}}]}]}";
    assert_eq!(existing(space), Existing::Skip, "p06: a Namespace that is there is used as it is");
}

#[test]
fn p08_owner_references_are_for_what_is_deleted_with_the_bundle() {
    let owned = |spec: &str| {
        let mut stage = stage(spec);
        stage.settle();
        action(stage.plan(), "a/x").owner.is_some()
    };
    let with = |policy: &str, more: &str| {
        format!("{{{policy}groups: [{{name: a, components: [{}]}}]}}", map("x", more))
    };
    assert!(owned(&with("", "")));
    assert!(owned(&with("deletionPolicy: Delete, ", "")));
    assert!(!owned(&with("deletionPolicy: Orphan, ", "")));
    assert!(!owned(&with("", ", deletionPolicy: Orphan")));
    assert!(!owned(&with("", ", cluster: {controlPlaneRef: {name: its1}}")));
}

#[test]
fn p05_prune_is_the_default_but_for_what_holds_other_things() {
    let prune = |more: &str| {
        let mut stage = stage(&format!("{{groups: [{{name: a, components: [{}]}}]}}", map("x", more)));
        stage.settle();
        let action = action(stage.plan(), "a/x");
        (action.tracked, action.prune)
    };
    assert_eq!(prune(""), (true, Prune::Usual));
    assert_eq!(prune(", prune: true"), (true, Prune::All));
    assert_eq!(prune(", prune: false"), (true, Prune::Never));
    assert_eq!(prune(", deletionPolicy: Orphan"), (false, Prune::Never));
}

#[test]
fn p04_fields_that_cannot_be_changed_follow_the_policy() {
    for (word, expected) in [
        ("", Immutable::Fail),
        (", immutable: Fail", Immutable::Fail),
        (", immutable: Recreate", Immutable::Recreate),
        (", immutable: Ignore", Immutable::Ignore),
    ] {
        let mut stage = stage(&format!("{{groups: [{{name: a, components: [{}]}}]}}", map("x", word)));
        stage.settle();
        assert_eq!(action(stage.plan(), "a/x").immutable, expected, "{word}");
    }
}

#[test]
fn p13_jobs_and_pods_run_once_unless_told_otherwise() {
    let once = |kind: &str, version: &str, more: &str| {
        let mut stage = stage(&format!(
            "{{groups: [{{name: a, components: [{{name: x, template: {{apiVersion: {version}, kind: {kind},
               metadata: {{name: x}}}}{more}}}]}}]}}"
        ));
        stage.settle();
        action(stage.plan(), "a/x").drift().expect("kept").run_once
    };
    assert!(once("Job", "batch/v1", ""));
    assert!(once("Pod", "v1", ""));
    assert!(!once("ConfigMap", "v1", ""));
    assert!(!once("Job", "batch/v1", ", runOnce: false"));
    assert!(once("ConfigMap", "v1", ", runOnce: true"));
}

#[test]
fn p15_every_object_is_looked_at_after_it_was_written() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [{}, {}]}}]}}",
        map("x", ", ignoreFields: [/data/a]"),
        map("why", "")
    ));
    stage.settle();
    let drift = action(stage.plan(), "a/x").drift().expect("kept");
    assert_eq!(drift.objects.len(), 1);
    assert_eq!(drift.ignore, ["/data/a"]);
}

#[test]
fn deleting_a_bundle_deletes_what_it_made_unless_that_is_kept() {
    let policy = |policy: &str| {
        let stage = stage(&format!("{{{policy}groups: [{{name: a, components: [{}]}}]}}", map("x", "")));
        stage.object.deletion_policy()
    };
    assert_eq!(policy(""), DeletionPolicy::Delete);
    assert_eq!(policy("deletionPolicy: Delete, "), DeletionPolicy::Delete);
    assert_eq!(policy("deletionPolicy: Orphan, "), DeletionPolicy::Orphan);
    assert_eq!(policy("deletionPolicy: Retain, "), DeletionPolicy::Retain);
    assert_eq!(AppBundle::FINALIZER, "app.example.com/finalizer");
}

#[test]
fn p16_everything_is_done_as_the_bundles_own_service_account() {
    let mut stage = stage(&format!(
        "{{serviceAccountName: builder, groups: [{{name: a, components: [{}]}}]}}",
        map("x", "")
    ));
    stage.settle();
    for step in stage.plan().steps() {
        assert!(format!("{:?}", step.via()).contains("builder"), "{:?}", step.via());
    }
    let rights: Vec<String> = action(stage.plan(), "a/x").rights.iter().map(ToString::to_string).collect();
    assert!(rights.iter().any(|right| right.contains("patch")), "{rights:?}");
}
