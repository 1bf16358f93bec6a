//! What holds for every rule, tried on every case.

use linchpin_engine::readiness::{RelatedQuery, State, Verdict};
use serde_json::{Map, Value, json};

use super::fixtures::{Case, Known, load};

fn cases() -> impl Iterator<Item = Case> {
    load().into_values().flatten()
}

#[test]
fn what_is_being_deleted_is_never_ready() {
    for case in cases() {
        let mut object = case.object.clone();
        object["metadata"]["deletionTimestamp"] = json!("2026-03-02T10:00:00Z");
        let verdict = case.verdict_on(&object, &case.known);
        assert_eq!((verdict.state, &*verdict.reason), (State::InProgress, "Terminating"), "{}", case.name);
    }
}

#[test]
fn a_rule_reads_only_what_it_declares() {
    for case in cases() {
        assert_eq!(case.verdict(), verdict_on_projection(&case, &case.object), "{}", case.name);
    }
}

#[test]
fn damaged_objects_are_judged_calmly_and_from_declared_fields_alone() {
    let mut tried = 0;
    for case in cases() {
        let mut places = Vec::new();
        collect(&case.object, String::new(), &mut places);
        let declared = project(&case.object, case.rule().reads);
        // Damage to what no rule reads is left out by the projection, so it cannot show anything.
        for place in places.iter().filter(|place| declared.pointer(place).is_some()) {
            for value in [Value::Null, json!("x"), json!(-1), json!([null]), json!({})] {
                let mut object = case.object.clone();
                if let Some(target) = object.pointer_mut(place) {
                    *target = value;
                }
                let verdict = case.verdict_on(&object, &case.known);
                assert_eq!(
                    verdict,
                    verdict_on_projection(&case, &object),
                    "{} with another {place}",
                    case.name
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 5_000, "only {tried} damaged objects were tried");
}

#[test]
fn time_stamps_messages_and_restarts_are_no_progress() {
    for case in cases() {
        let mut object = case.object.clone();
        age(&mut object);
        let later = case.verdict_on(&object, &case.known);
        assert_eq!(case.verdict().progress, later.progress, "{}", case.name);
    }
}

#[test]
fn an_unanswered_need_never_makes_an_object_ready() {
    let mut asked = 0;
    for case in cases().filter(|case| !case.rule().needs(&case.object).is_empty()) {
        let verdict = case.verdict_on(&case.object, &Known::default());
        assert!(!verdict.state.is_ready(), "{}", case.name);
        asked += 1;
    }
    assert!(asked > 20, "only {asked} cases need to know more");
}

#[test]
fn another_replica_is_progress() {
    let case = cases().find(|case| case.row == "Deployment").expect("a Deployment");
    let markers = [1, 2].map(|available| {
        let mut object = case.object.clone();
        object["status"]["availableReplicas"] = json!(available);
        case.verdict_on(&object, &case.known).progress
    });
    assert_ne!(markers[0], markers[1]);
}

fn verdict_on_projection(case: &Case, object: &Value) -> Verdict {
    let known = Known {
        objects: case
            .known
            .objects
            .as_ref()
            .map(|objects| objects.iter().map(|one| project_related(case, one)).collect()),
        served: case.known.served.clone(),
    };
    case.verdict_on(&project(object, case.rule().reads), &known)
}

/// What a need reads, and what the fixtures find related objects by.
fn project_related(case: &Case, object: &Value) -> Value {
    let paths = case.rule().needs(&case.object).first().map_or(&[][..], RelatedQuery::reads);
    let found_by = ["apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.labels"];
    project(object, &[paths, &found_by].concat())
}

/// The part of an object that lies on the paths, lists walked through element by element.
fn project(object: &Value, paths: &[&str]) -> Value {
    let mut kept = json!({});
    for path in paths {
        copy(object, &mut kept, &path.split('.').collect::<Vec<_>>());
    }
    kept
}

fn copy(from: &Value, to: &mut Value, path: &[&str]) {
    let Some((name, rest)) = path.split_first() else {
        *to = from.clone();
        return;
    };
    match from {
        Value::Object(fields) => {
            let Some(value) = fields.get(*name) else { return };
            if !to.is_object() {
                *to = Value::Object(Map::new());
            }
            let target = &mut to[*name];
            // A place that leads nowhere still shows what is there instead.
            if !rest.is_empty() && !value.is_object() && !value.is_array() {
                *target = value.clone();
            } else {
                copy(value, target, rest);
            }
        }
        Value::Array(elements) => {
            if !to.is_array() {
                *to = json!(vec![json!({}); elements.len()]);
            }
            for (index, element) in elements.iter().enumerate() {
                copy(element, &mut to[index], path);
            }
        }
        _ => {}
    }
}

/// JSON pointers to everything in a value.
fn collect(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect(value, format!("{place}/{key}"), places);
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                collect(element, format!("{place}/{index}"), places);
            }
        }
        _ => {}
    }
    if !place.is_empty() {
        places.push(place);
    }
}

/// Lets time pass without anything happening.
fn age(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match key.as_str() {
                    "message" => *value = json!("something else"),
                    "restartCount" if *value != 0 => *value = json!(99),
                    time if time.ends_with("Time") || time.ends_with("At") => {
                        *value = json!("2027-01-01T00:00:00Z");
                    }
                    _ => age(value),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(age),
        _ => {}
    }
}
