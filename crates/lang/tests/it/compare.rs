//! Conditions: the tables of `docs/conditions.md`, and what is refused.

use linchpin_lang::answer::{Answer, NotYet};
use linchpin_lang::compare::{FieldCondition, MAX_CHOICES, MAX_PATTERN_BYTES, MAX_VALUE_NODES};
use linchpin_words::CompareOperator;
use serde_json::{Value as Json, json};

fn judge(actual: &Json, operator: &str, value: &Json) -> Result<Answer, String> {
    let condition = FieldCondition::compile("conditions[0]", ".x", Some(operator), Some(value))
        .unwrap_or_else(|error| panic!("{operator} {value}: {error}"));
    condition.evaluate(&json!({"x": actual})).map_err(|error| error.to_string())
}

fn refusal(path: &str, operator: Option<&str>, value: Option<&Json>) -> String {
    FieldCondition::compile("conditions[1]", path, operator, value).expect_err("refused").to_string()
}

/// The rows of the first table after a heading of the document, as cells.
fn table(heading: &str) -> Vec<Vec<String>> {
    let document = include_str!("../../../../docs/conditions.md");
    let section = document.split(&format!("\n## {heading}\n")).nth(1).expect(heading);
    let rows =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| {
        line.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().trim_matches('`').to_owned())
            .collect::<Vec<_>>()
    };
    rows.skip(2).map(cells).collect()
}

#[test]
fn the_documented_comparisons_are_what_happens() {
    let rows = table("Examples");
    assert!(rows.len() >= 40, "only {} rows", rows.len());
    for row in rows {
        let [actual, operator, value, answer, ..] = row.as_slice() else { panic!("{row:?}") };
        let actual: Json = serde_json::from_str(actual).unwrap_or_else(|error| panic!("{row:?}: {error}"));
        let value: Json = serde_json::from_str(value).unwrap_or_else(|error| panic!("{row:?}: {error}"));
        let ours = match judge(&actual, operator, &value) {
            Ok(Answer::True) => "true",
            Ok(Answer::False) => "false",
            Ok(Answer::NotYet(_)) => "not yet",
            Err(_) => "error",
        };
        assert_eq!(ours, answer, "{row:?}");
    }
}

#[test]
fn the_documented_operators_are_the_ones_there_are() {
    let rows = table("Operators");
    assert_eq!(rows.len(), 11);
    for row in rows {
        let name = row[0].as_str();
        let operator = CompareOperator::parse(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(operator.as_str(), name);
    }
    for other in ["gtx", "NOTIN", ">="] {
        assert_eq!(CompareOperator::parse(other), None, "the schema refuses {other} too");
    }
}

#[test]
fn of_two_values_one_is_smaller_or_they_are_the_same_or_they_have_no_order() {
    let values = [
        json!(1),
        json!(1.0),
        json!(2),
        json!(-3),
        json!(0.5),
        json!(1.24),
        json!("1"),
        json!("2"),
        json!("-3"),
        json!("1.9"),
        json!("1.24"),
        json!("28+"),
        json!("28"),
        json!("v1.36.4"),
        json!("v1.36.4-rc.1"),
        json!("v1.36.4+k3s1"),
        json!("500Mi"),
        json!("0.5Gi"),
        json!("100m"),
        json!("2k"),
        json!("abc"),
        json!("abd"),
        json!(""),
        json!("007"),
        json!("2026-01-02T03:04:05Z"),
        json!("2026-01-03T03:04:05Z"),
        json!(18_446_744_073_709_551_615_u64),
        json!(1e300),
    ];
    for left in &values {
        for right in &values {
            let holds = |operator: &str| judge(left, operator, right).map(|answer| answer == Answer::True);
            let (less, same, greater) = (holds("lt"), holds("eq").expect("eq always decides"), holds("gt"));
            assert_eq!(holds("ne"), Ok(!same), "{left} {right}");
            assert_eq!(same, judge(right, "eq", left) == Ok(Answer::True), "{left} {right}");
            match (less, greater) {
                (Ok(less), Ok(greater)) => {
                    assert_eq!(u8::from(less) + u8::from(same) + u8::from(greater), 1, "{left} {right}");
                    assert_eq!(holds("lte"), Ok(less || same), "{left} {right}");
                    assert_eq!(holds("gte"), Ok(greater || same), "{left} {right}");
                    assert_eq!(
                        judge(right, "gt", left).map(|answer| answer == Answer::True),
                        Ok(less),
                        "{left} {right}"
                    );
                }
                (Err(_), Err(_)) => assert!(!same || left == right, "{left} {right}"),
                (less, greater) => panic!("{left} {right}: {less:?} {greater:?}"),
            }
        }
    }
}

#[test]
fn what_is_not_there_is_not_yet_except_for_exists_and_absent() {
    let judge = |operator: Option<&str>, value: Option<Json>, object: Json| {
        FieldCondition::compile("c", ".a.b", operator, value.as_ref())
            .expect("compiles")
            .evaluate(&object)
            .expect("answers")
    };
    let not_yet = Answer::NotYet(NotYet::Missing { path: ".a.b".to_owned() });
    for object in [json!({}), json!({"a": null}), json!({"a": {"b": null}}), json!([]), json!(1)] {
        for operator in ["eq", "ne", "gt", "lte"] {
            assert_eq!(judge(Some(operator), Some(json!(1)), object.clone()), not_yet, "{operator} {object}");
        }
        assert_eq!(judge(Some("in"), Some(json!([1])), object.clone()), not_yet);
        assert_eq!(judge(Some("notIn"), Some(json!([1])), object.clone()), not_yet);
        assert_eq!(judge(Some("matches"), Some(json!("x")), object.clone()), not_yet);
        assert_eq!(judge(Some("exists"), None, object.clone()), Answer::False);
        assert_eq!(judge(None, None, object.clone()), Answer::False);
        assert_eq!(judge(Some("absent"), None, object), Answer::True);
    }
    let there = json!({"a": {"b": false}});
    assert_eq!(judge(Some("exists"), None, there.clone()), Answer::True);
    assert_eq!(judge(None, None, there.clone()), Answer::True);
    assert_eq!(judge(Some("absent"), None, there.clone()), Answer::False);
    assert_eq!(judge(None, Some(json!("false")), there), Answer::True);
}

#[test]
fn a_path_with_several_values_asks_every_one() {
    let condition = |operator: &str, value: Json| {
        FieldCondition::compile("c", ".x[*]", Some(operator), Some(&value)).unwrap()
    };
    let all = condition("eq", json!(true));
    assert_eq!(all.evaluate(&json!({"x": [true, "True", true]})), Ok(Answer::True));
    assert_eq!(all.evaluate(&json!({"x": [true, false]})), Ok(Answer::False));
    assert_eq!(condition("ne", json!("a")).evaluate(&json!({"x": ["b", "a"]})), Ok(Answer::False));
    assert!(condition("gt", json!(1)).evaluate(&json!({"x": [2, {}]})).is_err());
    assert_eq!(condition("gt", json!(1)).evaluate(&json!({"x": [{}, 0]})), Ok(Answer::False));
    let many = json!({"x": vec![true; 10_001]});
    assert!(matches!(all.evaluate(&many), Ok(Answer::NotYet(NotYet::TooLarge { .. }))));
}

#[test]
fn a_costly_pattern_over_much_text_is_undecided() {
    let text = json!({"x": "y".repeat(60_000)});
    let matches = |pattern: &str| {
        FieldCondition::compile("c", ".x", Some("matches"), Some(&json!(pattern))).unwrap().evaluate(&text)
    };
    assert_eq!(matches("^y+$"), Ok(Answer::True));
    assert!(matches!(matches("[^a]{99}z"), Ok(Answer::NotYet(NotYet::TooLarge { .. }))));
}

#[test]
fn what_cannot_be_compared_is_an_error_without_the_value() {
    for (actual, operator, value, message) in [
        (
            json!("s3cr3t"),
            "gt",
            json!(24),
            "conditions[0]: .x is a text, which operator gt cannot compare with a number",
        ),
        (
            json!({"s3cr3t": 1}),
            "lt",
            json!("a"),
            ".x is an object, which operator lt cannot compare with a text",
        ),
        (json!(true), "gte", json!(1), ".x is a boolean, which operator gte cannot compare with a number"),
        (
            json!(5),
            "matches",
            json!("5"),
            ".x is a number, which operator matches cannot compare with a pattern",
        ),
    ] {
        let error = judge(&actual, operator, &value).expect_err("an error");
        assert!(error.contains(message), "{error}");
        assert!(!error.contains("s3cr3t"), "{error}");
    }
}

#[test]
fn what_can_be_refused_beforehand_is() {
    let known = "use one of eq, ne, gt, gte, lt, lte, in, notIn, exists, absent, matches";
    assert_eq!(
        refusal(".a", Some("gtx"), Some(&json!(1))),
        format!("conditions[1].operator: unknown operator \"gtx\"; {known}")
    );
    for (operator, value, message) in [
        ("eq", None, "conditions[1].value: operator eq needs a value"),
        ("eq", Some(json!(null)), "conditions[1].value: operator eq needs a value"),
        ("exists", Some(json!(true)), "conditions[1].value: operator exists takes no value"),
        ("in", Some(json!("a")), "conditions[1].value: operator in needs a list of 1 to 256 values"),
        ("notIn", Some(json!([])), "operator notIn needs a list of 1 to 256 values"),
        ("gt", Some(json!(true)), "operator gt needs a number, quantity, version or text, not a boolean"),
        ("lte", Some(json!([1])), "operator lte needs a number, quantity, version or text, not a list"),
        ("matches", Some(json!(5)), "operator matches needs a pattern of at most 512 bytes"),
        ("matches", Some(json!("(")), "operator matches cannot use this pattern: unclosed group"),
        ("matches", Some(json!("(\\w{50}){50}")), "operator matches cannot use this pattern"),
        ("eq", Some(json!(vec![1; 2000])), "operator eq takes a value of at most 1024 parts"),
    ] {
        let error = refusal(".a", Some(operator), value.as_ref());
        assert!(error.contains(message), "{error}");
    }
    assert!(refusal(".a[", None, None).starts_with("conditions[1].jsonPath: at character 4: "));
    let choices =
        |count: usize| FieldCondition::compile("c", ".a", Some("in"), Some(&json!(vec!["x"; count])));
    assert!(choices(MAX_CHOICES).is_ok());
    assert!(choices(MAX_CHOICES + 1).is_err() && choices(MAX_CHOICES * 100).is_err());
    let pattern =
        |length: usize| FieldCondition::compile("c", ".a", Some("matches"), Some(&json!("x".repeat(length))));
    assert!(pattern(MAX_PATTERN_BYTES).is_ok());
    let parts =
        |count: usize| FieldCondition::compile("c", ".a", Some("eq"), Some(&json!(vec![1; count - 1])));
    assert!(parts(MAX_VALUE_NODES).is_ok());
    assert!(parts(MAX_VALUE_NODES + 1).is_err() && parts(MAX_VALUE_NODES * 100).is_err());
    assert!(pattern(MAX_PATTERN_BYTES + 1).is_err() && pattern(MAX_PATTERN_BYTES * 100).is_err());
}

#[test]
fn what_does_not_hold_says_what_is_there_and_what_is_needed() {
    let object = json!({"minor": "36", "phase": "Not Yet", "sizes": [1, 5, 2], "none": null});
    for (path, operator, value, told, discreet) in [
        (".minor", "gte", json!(999), ".minor is 36, needs ≥ 999", ".minor is not as gte needs it"),
        (".minor", "eq", json!("35"), ".minor is 36, needs 35", ".minor is not as eq needs it"),
        (
            ".phase",
            "ne",
            json!("Not Yet"),
            ".phase is \"Not Yet\", needs ≠ \"Not Yet\"",
            ".phase is not as ne needs it",
        ),
        (".sizes[*]", "lt", json!(5), ".sizes[*] is 5, needs < 5", ".sizes[*] is not as lt needs it"),
        (".minor", "in", json!([1, 2]), ".minor is 36, needs one of 1, 2", ".minor is not as in needs it"),
        (
            ".phase",
            "matches",
            json!("^Y"),
            ".phase is \"Not Yet\", needs a match of \"^Y\"",
            ".phase is not as matches needs it",
        ),
    ] {
        let condition =
            FieldCondition::compile("conditions[0]", path, Some(operator), Some(&value)).expect(path);
        assert_eq!(condition.evaluate(&object), Ok(Answer::False), "{path} {operator}");
        assert_eq!(condition.explain(&object, true, &mut 0), told);
        assert_eq!(condition.explain(&object, false, &mut 0), discreet);
    }
    for (path, operator, told) in [
        (".none", "exists", ".none is not there, and must be"),
        (".phase", "absent", ".phase is there, and must not be"),
    ] {
        let condition = FieldCondition::compile("conditions[0]", path, Some(operator), None).expect(path);
        assert_eq!(condition.evaluate(&object), Ok(Answer::False), "{path} {operator}");
        assert_eq!(condition.explain(&object, true, &mut 0), told);
    }
}
