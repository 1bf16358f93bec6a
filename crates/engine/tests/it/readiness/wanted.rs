//! The words somebody waits with.

use linchpin_engine::readiness::{
    Judgement, Nothing, ReadinessOptions, RuleAnswer, State, TaughtRule, Wanted, judge, reads_for, row,
    verdict,
};
use linchpin_words::GroupKind;
use serde_json::{Value, json};

fn kind(group: &str, kind: &str) -> GroupKind {
    GroupKind::new(group, kind)
}

fn ask(word: &str, kind: &GroupKind, object: Option<&Value>) -> Judgement {
    judge(&Wanted::parse(word), kind, object, &ReadinessOptions::default(), &Nothing)
}

fn answer(judgement: &Judgement) -> (bool, bool, bool) {
    (judgement.met, judgement.settled, judgement.failed)
}

const MET: (bool, bool, bool) = (true, true, false);
const UNDECIDED: (bool, bool, bool) = (false, false, false);
const DECIDED_AGAINST: (bool, bool, bool) = (false, true, false);
const FAILED: (bool, bool, bool) = (false, true, true);

#[test]
fn every_alias_means_what_it_says_in_any_spelling() {
    for (words, wanted) in [
        (&["Exists", "Defined", "Created", "Present", "exists"][..], Wanted::Exists),
        (&["Absent", "NotFound", "Deleted", "notfound"], Wanted::Absent),
        (&["Ready", "Available", "Current", "READY"], Wanted::Ready),
        (&["Completed", "Complete", "Succeeded", "completed"], Wanted::Completed),
        (&["Failed", "failed"], Wanted::Failed),
    ] {
        for word in words {
            assert_eq!(Wanted::parse(word), wanted, "{word}");
        }
        assert_eq!(Wanted::parse(&wanted.to_string()), wanted);
    }
    assert_eq!(Wanted::parse("inUse"), Wanted::Word("inUse".into()));
}

#[test]
fn an_omitted_state_means_ready_for_kinds_of_the_table_and_exists_for_others() {
    for (kind, wanted) in [
        (kind("apps", "Deployment"), Wanted::Ready),
        (kind("", "ConfigMap"), Wanted::Ready),
        (kind("helm.toolkit.fluxcd.io", "HelmRelease"), Wanted::Ready),
        (kind("example.org", "Widget"), Wanted::Exists),
        (kind("example.org", "Deployment"), Wanted::Exists),
        (kind("", "Deployment"), Wanted::Exists),
    ] {
        assert_eq!(Wanted::omitted(row(&kind, false)), wanted, "{kind}");
        assert_eq!(Wanted::omitted(row(&kind, true)), Wanted::Ready, "{kind} of ours");
    }
}

#[test]
fn absence_decides_everything() {
    let deployment = kind("apps", "Deployment");
    for (word, expected) in [
        ("Absent", MET),
        ("Exists", DECIDED_AGAINST),
        ("Ready", DECIDED_AGAINST),
        ("Completed", DECIDED_AGAINST),
        ("Failed", DECIDED_AGAINST),
        ("Running", DECIDED_AGAINST),
    ] {
        let judgement = ask(word, &deployment, None);
        assert_eq!(answer(&judgement), expected, "{word}");
        assert_eq!(judgement.verdict.state.word(), "NotFound");
    }
}

#[test]
fn what_is_being_deleted_is_neither_there_nor_gone() {
    let pod = json!({"metadata": {"name": "a", "deletionTimestamp": "2026-03-02T10:00:00Z"}, "status": {"phase": "Running"}});
    for word in ["Exists", "Absent", "Ready", "Completed", "Failed", "Running"] {
        assert_eq!(answer(&ask(word, &kind("", "Pod"), Some(&pod))), UNDECIDED, "{word}");
    }
}

#[test]
fn presence_alone_decides_exists_and_absent() {
    let deployment = json!({"metadata": {"name": "web", "generation": 1}});
    let asked = |word| ask(word, &kind("apps", "Deployment"), Some(&deployment));
    assert_eq!(answer(&asked("Exists")), MET);
    assert_eq!(answer(&asked("Absent")), DECIDED_AGAINST);
    assert_eq!(answer(&asked("Ready")), UNDECIDED);
}

#[test]
fn a_job_is_judged_by_its_end() {
    let job = kind("batch", "Job");
    let ended = |condition: &str| json!({"metadata": {"name": "a"}, "status": {"conditions": [{"type": condition, "status": "True", "reason": "X"}]}});
    let running = json!({"metadata": {"name": "a"}, "status": {"active": 1}});
    let (complete, failed) = (ended("Complete"), ended("Failed"));
    for (word, object, expected) in [
        ("Ready", &complete, MET),
        ("Completed", &complete, MET),
        ("Failed", &complete, DECIDED_AGAINST),
        ("Ready", &failed, FAILED),
        ("Completed", &failed, FAILED),
        ("Failed", &failed, MET),
        ("Ready", &running, UNDECIDED),
        ("Completed", &running, UNDECIDED),
        ("Failed", &running, UNDECIDED),
    ] {
        assert_eq!(answer(&ask(word, &job, Some(object))), expected, "{word} {object}");
    }
}

#[test]
fn any_other_word_is_a_condition_or_a_phase() {
    let widget = kind("example.org", "Widget");
    let object = json!({
        "metadata": {"generation": 2},
        "status": {"phase": "Running", "conditions": [
            {"type": "Bound", "status": "True", "observedGeneration": 2},
            {"type": "Linked", "status": "True", "observedGeneration": 1},
            {"type": "Synced", "status": "False", "reason": "Slow"},
        ]},
    });
    for (word, expected) in [
        ("Running", MET),
        ("Bound", MET),
        ("Linked", DECIDED_AGAINST),
        ("Synced", DECIDED_AGAINST),
        ("running", DECIDED_AGAINST),
        ("Paused", DECIDED_AGAINST),
    ] {
        assert_eq!(answer(&ask(word, &widget, Some(&object))), expected, "{word}");
    }
    let found = ask("Synced", &widget, Some(&object)).verdict;
    assert_eq!((&*found.reason, &*found.message), ("NotSynced", "Synced is False: Slow"));
    assert_eq!(ask("Paused", &widget, Some(&object)).verdict.message, "phase is Running, not Paused");
}

#[test]
fn a_word_of_an_older_generation_does_not_count() {
    let object =
        json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "phase": "Running"}});
    let judgement = ask("Running", &kind("example.org", "Widget"), Some(&object));
    assert_eq!(answer(&judgement), UNDECIDED);
    assert_eq!(judgement.verdict.reason, "StaleGeneration");
}

#[test]
fn a_word_on_something_failed_has_failed() {
    let claim = json!({"metadata": {"name": "data"}, "status": {"phase": "Lost"}});
    assert_eq!(answer(&ask("Bound", &kind("", "PersistentVolumeClaim"), Some(&claim))), FAILED);
    assert_eq!(answer(&ask("Lost", &kind("", "PersistentVolumeClaim"), Some(&claim))), MET);
}

#[test]
fn kinds_we_know_nothing_about_may_complete_and_fail_in_the_common_words() {
    let workflow = kind("example.org", "Workflow");
    let object = |phase: &str| json!({"metadata": {}, "status": {"phase": phase}});
    assert_eq!(answer(&ask("Completed", &workflow, Some(&object("Succeeded")))), MET);
    assert_eq!(answer(&ask("Completed", &workflow, Some(&object("Running")))), DECIDED_AGAINST);
    assert_eq!(answer(&ask("Failed", &workflow, Some(&object("Failed")))), MET);
    assert_eq!(ask("Completed", &workflow, Some(&object("Succeeded"))).verdict.state, State::Completed);
}

#[test]
fn a_word_adds_to_what_is_read() {
    let deployment = kind("apps", "Deployment");
    assert_eq!(reads_for(&Wanted::Exists, row(&deployment, false)), ["metadata.deletionTimestamp"]);
    assert!(!reads_for(&Wanted::Ready, row(&deployment, false)).contains(&"status.phase"));
    assert!(reads_for(&Wanted::Word("Running".into()), row(&deployment, false)).contains(&"status.phase"));
    assert!(reads_for(&Wanted::Word("Running".into()), row(&deployment, false)).contains(&"spec.replicas"));
}

struct Taught {
    ready: RuleAnswer,
    failed: RuleAnswer,
}

impl TaughtRule for Taught {
    fn ready(&self, _: &Value) -> RuleAnswer {
        self.ready
    }

    fn failed(&self, _: &Value) -> RuleAnswer {
        self.failed
    }
}

#[test]
fn a_profile_replaces_the_rule_but_not_the_checks_for_deletion_and_generation() {
    let fresh = json!({"metadata": {"generation": 1}});
    let stale = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}});
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-02T10:00:00Z"}});
    for (ready, failed, object, state) in [
        (RuleAnswer::True, RuleAnswer::Unknown, &fresh, State::Ready),
        (RuleAnswer::False, RuleAnswer::False, &fresh, State::InProgress),
        (RuleAnswer::Unknown, RuleAnswer::Unknown, &fresh, State::InProgress),
        (RuleAnswer::True, RuleAnswer::True, &fresh, State::Failed),
        (RuleAnswer::True, RuleAnswer::False, &stale, State::InProgress),
        (RuleAnswer::True, RuleAnswer::False, &deleted, State::InProgress),
    ] {
        let profile = Taught { ready, failed };
        let options = ReadinessOptions { profile: Some(&profile), ..ReadinessOptions::default() };
        assert_eq!(verdict(&kind("apps", "Deployment"), object, &options, &Nothing).state, state, "{object}");
    }
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let object = json!({"metadata": {}, "status": {"conditions": [{"type": "Ready", "status": "False", "message": "ü".repeat(2000)}]}});
    let message =
        verdict(&kind("example.org", "Widget"), &object, &ReadinessOptions::default(), &Nothing).message;
    assert!(message.len() < 520 && message.ends_with('…'), "{} bytes", message.len());
}

#[test]
fn an_object_of_ours_is_completed_when_its_phase_says_so() {
    let kind = kind("tools.kubestellar.io", "ResourceDependency");
    let object = |phase: &str, ready: &str| {
        json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "phase": phase, "conditions": [
            {"type": "Ready", "status": ready, "reason": phase, "observedGeneration": 1}]}})
    };
    assert_eq!(answer(&ask("Completed", &kind, Some(&object("Completed", "True")))), MET);
    assert_eq!(answer(&ask("Completed", &kind, Some(&object("Waiting", "False")))), UNDECIDED);
    let stale = json!({"metadata": {"generation": 2}, "status": object("Completed", "True")["status"]});
    assert_eq!(answer(&ask("Completed", &kind, Some(&stale))), UNDECIDED);
    assert!(reads_for(&Wanted::Completed, row(&kind, false)).contains(&"status.phase"));
}
