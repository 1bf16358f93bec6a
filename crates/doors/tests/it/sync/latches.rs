//! What was met once: for how long that is enough, and what makes it be looked at again.

use serde_json::{Value, json};

use super::{map, shown, stage};

const MIGRATED: &str = "{name: m, object: {resource: job/migrate}, state: Completed}";

fn depending(entry: &str) -> String {
    format!("{{source: {{objects: [{}]}}, dependencies: [{entry}]}}", map("a"))
}

fn migrate() -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "own", "name": "migrate"}, "spec": {},
        "status": {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}})
}

/// What the next update applies after the Job has completed, was removed and `between` happened.
fn applied_after(latch: Option<&str>, between: impl FnOnce(&mut super::Stage<super::SyncDoor>)) -> usize {
    let mut stage = stage(&depending(MIGRATED));
    stage.edit(|object| {
        if let Some(latch) = latch {
            object["spec"]["dependencies"][0]["latch"] = json!(latch);
        }
    });
    stage.put(migrate()).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
    stage.take(&migrate()).settle();
    between(&mut stage);
    stage.settle();
    stage.edit(|object| object["spec"]["source"]["objects"][0]["data"] = json!({"k": "v"})).settle();
    let met = shown(&mut stage)["dependencies"][0]["met"] == true;
    let done = stage.done().len();
    assert_eq!(met, done == 1);
    done
}

#[test]
fn a_job_that_has_completed_and_is_gone_counts_for_as_long_as_the_latch_says() {
    for (latch, applied) in [(None, 1), (Some("Once"), 1), (Some("PerRevision"), 0), (Some("None"), 0)] {
        assert_eq!(applied_after(latch, |_| {}), applied, "{latch:?}");
    }
}

#[test]
fn another_reference_is_another_latch_also_where_the_object_is_gone() {
    let applied = applied_after(None, |stage| {
        stage.edit(|object| object["spec"]["dependencies"][0]["readyExpr"] = json!("true"));
    });
    assert_eq!(applied, 0);
}

#[test]
fn an_order_opens_a_latch_again_also_where_the_object_is_gone() {
    let applied = applied_after(None, |stage| {
        stage.annotate("linchpin.dev/rerun", "m@1");
    });
    assert_eq!(applied, 0);
}
