//! What cannot be seen, or is not known yet: it decides nothing, and what does not need it is decided.

use std::collections::BTreeMap;

use linchpin_lang::answer::{Answer, NotYet};
use linchpin_lang::cel::{Bindings, EvaluateError, Unknown, Unknowns};
use serde_json::{Value as Json, json};

use super::compile;

/// `dependencies` of which `db` cannot be seen.
fn judge_without_db(source: &str) -> Result<Answer, EvaluateError> {
    let dependencies = json!({"web": {"state": "Ready"}});
    judge_among(
        source,
        &dependencies,
        Unknown { why: "deployment/db: forbidden".to_owned(), ..Unknown::default() },
    )
}

fn judge_among(source: &str, dependencies: &Json, of_db: Unknown) -> Result<Answer, EvaluateError> {
    let unknown = BTreeMap::from([("db".to_owned(), of_db)]);
    let expression = compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    expression.evaluate_among(
        &Bindings::from([("dependencies", dependencies)]),
        &Unknowns::from([("dependencies", &unknown)]),
        &mut 0,
    )
}

/// `dependencies` of which `db` can be seen, but is in progress.
fn judge_in_progress(source: &str) -> Result<Answer, EvaluateError> {
    let dependencies = json!({
        "db": {"state": "NotReady", "message": "0 of 1", "spec": {"replicas": 1}},
        "web": {"state": "Ready"},
    });
    let fields = BTreeMap::from([("state", &["NotReady", "Ready", "Failed"][..]), ("message", &[][..])]);
    judge_among(source, &dependencies, Unknown { why: "in progress".to_owned(), fields })
}

#[test]
fn a_field_that_is_not_known_decides_nothing_in_any_form() {
    for source in [
        "dependencies.db.state == 'Ready'",
        "dependencies.db.state != 'Ready'",
        "'Failed' == dependencies['db'].state",
        "dependencies.db['state'] == 'NotReady'",
        "dependencies[dependencies.web.state == 'Ready' ? 'db' : 'web']['st' + 'ate'] != 'Ready'",
        "dependencies.?db.?state.orValue('') != 'Ready'",
        "dependencies.db[?'state'].orValue('') != 'Ready'",
        "dependencies.db.?state != optional.of('Ready')",
        "dependencies.db.state.startsWith('Not')",
        "dependencies.db.state in ['Ready', 'NotFound']",
        "dependencies.db.state < 'O'",
        "size(dependencies.db.state) == 8",
        "dependencies.db.message == '0 of 1'",
        "dependencies.db.message != 'never'",
        "[dependencies.db].exists(one, one.state != 'Ready')",
        "size(dependencies.db) == 3",
        "dependencies.all(name, dependencies[name].state == 'Ready')",
        "dependencies.web.state == 'Ready' && dependencies.db.state != 'Ready'",
        "dependencies.db.state == dependencies.db.state",
    ] {
        let answer = judge_in_progress(source);
        assert!(matches!(answer, Ok(Answer::NotYet(NotYet::Unknown { .. }))), "{source}: {answer:?}");
    }
    let answer = judge_in_progress("dependencies.db.state != 'Ready'");
    let told = "dependencies.db.state is not known: in progress";
    assert!(matches!(answer, Ok(Answer::NotYet(why)) if why.to_string() == told));
}

#[test]
fn what_every_word_answers_alike_and_what_is_known_beside_decide() {
    for (source, holds) in [
        ("dependencies.db.state == 'NotFound'", false),
        ("'NotFound' != dependencies.db.state", true),
        ("dependencies.db.state in ['NotFound', 'Unknown']", false),
        ("dependencies.db.state in ['Ready', 'Failed', 'NotReady']", true),
        ("dependencies.db.state == 1", false),
        ("dependencies.db.spec.replicas == 1", true),
        ("dependencies['db'].spec['replicas'] == 2", false),
        ("has(dependencies.db)", true),
        ("has(dependencies.db.state)", true),
        ("has(dependencies.db.status)", false),
        ("dependencies.?db.?spec.?replicas.orValue(0) == 1", true),
        ("dependencies.web.state == 'Ready'", true),
        ("dependencies.web.state == 'Failed' && dependencies.db.state == 'Ready'", false),
    ] {
        let answer = judge_in_progress(source);
        assert_eq!(answer.as_ref().ok(), Some(&Answer::from(holds)), "{source}: {answer:?}");
    }
}

#[test]
fn what_cannot_be_seen_decides_nothing_in_any_form() {
    for source in [
        "dependencies.db.state != 'Ready'",
        "dependencies['db'].state == 'Ready'",
        "!(dependencies.db.state == 'Ready')",
        "has(dependencies.db)",
        "!has(dependencies.db.state)",
        "dependencies.?db.?state.orValue('') == ''",
        "dependencies[?'db'].hasValue()",
        "'db' in dependencies",
        "dependencies.all(name, dependencies[name].state == 'Ready')",
        "size(dependencies) == 1",
        "dependencies == {}",
        "dependencies.web.state == 'Ready' && dependencies.db.state == 'NotFound'",
        "dependencies.web.state == 'NotFound' || dependencies.db.state != 'Ready'",
        "dependencies.db.state == 'NotFound' ? true : true",
    ] {
        let answer = judge_without_db(source);
        assert!(matches!(answer, Ok(Answer::NotYet(NotYet::Unknown { .. }))), "{source}: {answer:?}");
    }
    let answer = judge_without_db("dependencies.db.state != 'Ready'");
    let told = "dependencies.db is not known: deployment/db: forbidden";
    assert!(matches!(answer, Ok(Answer::NotYet(why)) if why.to_string() == told));
}

#[test]
fn what_does_not_need_what_cannot_be_seen_is_decided() {
    for (source, answer) in [
        ("dependencies.web.state == 'Ready'", Answer::True),
        ("dependencies['web'].state != 'Ready'", Answer::False),
        ("dependencies.web.state != 'Ready' && dependencies.db.state == 'Ready'", Answer::False),
        ("dependencies.db.state == 'Ready' && dependencies.web.state != 'Ready'", Answer::False),
        ("dependencies.db.state == 'Ready' || dependencies.web.state == 'Ready'", Answer::True),
        ("has(dependencies.web.spec)", Answer::False),
    ] {
        assert_eq!(judge_without_db(source), Ok(answer), "{source}");
    }
}
