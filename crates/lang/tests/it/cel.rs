//! CEL: what it answers, what it refuses, and what it can never do.

mod bounds;
mod unknown;

use std::collections::BTreeSet;

use linchpin_lang::answer::{Answer, NotYet};
use linchpin_lang::cel::{Bindings, CompileError, EvaluateError, Expression};
use serde_json::{Value as Json, json};

pub(crate) fn object() -> Json {
    json!({
        "metadata": {"name": "db", "generation": 3, "labels": {"app": "db", "a.b/c": "x"}, "deleted": null},
        "spec": {"replicas": 3, "image": "db:1.2", "ratio": 0.5, "big": 18_446_744_073_709_551_615_u64},
        "status": {
            "phase": "Running", "readyReplicas": 3, "observedGeneration": 3,
            "started": "2026-01-02T03:04:05Z", "finished": "2026-01-02T03:14:05Z",
            "conditions": [
                {"type": "Progressing", "status": "True"},
                {"status": "False"},
                {"type": "Ready", "status": "True", "reason": "s3cr3t"}
            ],
            "numbers": [3, 1, 2], "names": ["a", "b"], "empty": []
        }
    })
}

pub(crate) fn compile(source: &str) -> Result<Expression, CompileError> {
    Expression::compile("dependencies[0].cel", source, &["self", "dependencies"])
}

fn judge_over(source: &str, object: &Json) -> Result<Answer, EvaluateError> {
    let expression = compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    expression.evaluate(&Bindings::from([("self", object)]))
}

fn judge(source: &str) -> Result<Answer, EvaluateError> {
    judge_over(source, &object())
}

fn missing(path: &str) -> Answer {
    Answer::NotYet(NotYet::Missing { path: path.to_owned() })
}

#[test]
fn what_holds_holds() {
    for source in [
        "true",
        "self.status.phase == 'Running'",
        "self.status.readyReplicas == self.spec.replicas && self.spec.replicas > 0",
        "self.metadata.generation <= self.status.observedGeneration",
        "self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
        "self.status.conditions.filter(c, has(c.type)).all(c, c.status == 'True')",
        "self.status.conditions.exists_one(c, c.status == 'False')",
        "self.status.conditions.filter(c, has(c.type)).map(c, c.type) == ['Progressing', 'Ready']",
        "self.status.numbers.map(n, n > 1, n * 10) == [30, 20]",
        "self.status.names.all(a, self.status.numbers.exists(b, size(a) == b))",
        "self.metadata.labels['a.b/c'] == 'x'",
        "self.metadata.labels.`a.b/c` == 'x'",
        "self.metadata.labels.exists(k, k == 'app')",
        "'app' in self.metadata.labels && !('x' in self.metadata.labels)",
        "2 in self.status.numbers && !(2.5 in self.status.numbers) && 2.0 in self.status.numbers",
        "'b' in self.status.names",
        "self.?status.?nothing.orValue('none') == 'none'",
        "self.?status.?phase.orValue('none') == 'Running'",
        "self.status.?phase.hasValue() && !self.?nothing.hasValue()",
        "self.status[?'phase'].value() == 'Running'",
        "self.?nothing.or(self.?status).hasValue()",
        "optional.of(1).value() == 1 && !optional.none().hasValue()",
        "[1, ?optional.none(), 2] == [1, 2] && {'a': 1, ?'b': optional.none()} == {'a': 1}",
        "has(self.status.phase) && !has(self.status.nothing)",
        "has(self.metadata.deleted) && self.metadata.deleted == null",
        "1 == 1.0 && 1u == 1 && 2 > 1.5 && 1 != 'a'",
        "self.spec.big > 9223372036854775807",
        "7 / 2 == 3 && 7 % 2 == 1 && -7 / 2 == -3 && 2 * 3 - 1 == 5 && 1.5 + 1.5 == 3.0 && 3u - 1u == 2u",
        "'a' + 'b' == 'ab' && [1] + [2] == [1, 2]",
        "size('añb') == 3 && 'abc'.size() == 3 && size(self.status.numbers) == 3 && size(self.metadata) == 4",
        "'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c')",
        "self.spec.image.matches('^db:[0-9.]+$') && matches('x', 'x')",
        "'AbC'.lowerAscii() == 'abc' && 'AbC'.upperAscii() == 'ABC' && ' a '.trim() == 'a'",
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b' && ['a', 'b'].join() == 'ab'",
        "'aaa'.replace('a', 'b') == 'bbb' && 'héllo'.substring(1, 3) == 'él' && 'abc'.substring(3) == ''",
        "'héllo'.indexOf('l') == 2 && 'abc'.indexOf('z') == -1",
        "self.status.numbers.sum() == 6 && self.status.numbers.min() == 1 && self.status.numbers.max() == 3",
        "self.status.empty.sum() == 0 && self.status.empty.all(x, false) && !self.status.empty.exists(x, true)",
        "int('42') == 42 && int(3.9) == 3 && uint(3) == 3u && double('1.5') == 1.5 && string(42) == '42'",
        "bool('true') && !bool('False') && dyn(1) == 1",
        "type(1) == int && type('a') == string && type(self) == map && type([]) == list && type(null) == null_type",
        "timestamp(self.status.finished) - timestamp(self.status.started) == duration('10m')",
        "timestamp(self.status.finished) > timestamp(self.status.started) + duration('9m59s')",
        "duration('1h30m') + duration('30m') == duration('2h') && duration('500ms') < duration('1s')",
        "self.spec.replicas > 2 ? true : false",
        "{'a': [1, {'b': 2}]} == {'a': [1.0, {'b': 2u}]}",
        "{1: 'x'}[1u] == 'x' && {true: 1}[true] == 1",
    ] {
        assert_eq!(judge(source), Ok(Answer::True), "{source}");
    }
}

#[test]
fn what_does_not_hold_does_not() {
    for source in [
        "false",
        "self.status.phase == 'Pending'",
        "self.status.conditions.exists_one(c, c.status == 'True')",
        "0.0 / 0.0 == 0.0 / 0.0",
        "self.status.phase == 3",
        "1 < 0.5",
    ] {
        assert_eq!(judge(source), Ok(Answer::False), "{source}");
    }
}

#[test]
fn missing_data_is_not_yet_and_names_its_path() {
    for (source, path) in [
        ("self.status.ready", "self.status.ready"),
        ("self.nothing.deep.er == 1", "self.nothing"),
        ("has(self.nothing.x)", "self.nothing"),
        ("self.metadata.deleted.at == 'x'", "self.metadata.deleted.at"),
        ("self.status.numbers[7] == 1", "self.status.numbers[7]"),
        ("self.metadata.labels['zz'] == 'x'", "self.metadata.labels['zz']"),
        ("self.metadata.labels[self.status.phase] == 'x'", "self.metadata.labels[self.status.phase]"),
        ("self.status.conditions.all(c, c.type != 'x')", "c.type"),
        ("self.status.conditions.exists(c, c.reason == 'zz')", "c.reason"),
        ("dependencies.db.state == 'Ready'", "dependencies"),
        ("self.?status.?ready", "self.?status.?ready"),
        ("self.?status.?ready.value()", "(…)"),
        ("self.status.empty.max() > 1", "(…)"),
        ("!self.status.ready", "self.status.ready"),
        ("self.status.ready && self.spec.image > 3", "self.status.ready"),
        ("self.spec.image > 3 || self.status.ready", "self.status.ready"),
    ] {
        assert_eq!(judge(source), Ok(missing(path)), "{source}");
    }
}

#[test]
fn a_deciding_side_decides_whatever_is_missing_or_wrong_on_the_other() {
    for (source, answer) in [
        ("self.nothing || true", Answer::True),
        ("self.nothing && false", Answer::False),
        ("true || self.nothing", Answer::True),
        ("self.spec.image > 3 || true", Answer::True),
        ("self.spec.image && false", Answer::False),
        ("self.status.conditions.exists(c, c.type == 'Ready')", Answer::True),
        ("self.status.conditions.all(c, c.type == 'Ready')", Answer::False),
    ] {
        assert_eq!(judge(source), Ok(answer), "{source}");
    }
}

#[test]
fn wrong_data_is_an_error_that_names_types_and_place_and_no_value() {
    for (source, message) in [
        (
            "self.status.phase",
            "at 1:13: the expression gives a value of type string; it must give true or false",
        ),
        ("self.spec.image > 3", "at 1:17: > does not apply to string and int"),
        ("self.status.conditions[2].reason + 1 == 2", "at 1:34: + does not apply to string and int"),
        ("1 / (self.spec.replicas - 3) == 1", "at 1:3: division by zero"),
        ("9223372036854775807 + self.spec.replicas > 0", "at 1:21: the result of + does not fit its type"),
        ("int(self.status.phase) == 1", "at 1:1: int() cannot read this string"),
        ("timestamp(self.status.phase) == timestamp(0)", "at 1:1: timestamp() cannot read this string"),
        ("duration('1 hour') == duration('1h')", "at 1:1: duration() cannot read this string"),
        ("self.status.phase.x == 1", "at 1:19: selecting a field does not apply to string"),
        ("self.status.numbers['a'] == 1", "at 1:20: [] does not apply to list and string"),
        ("self.status.phase.all(c, true)", "at 1:19: a loop does not apply to string"),
        ("self.spec.image && true", "at 1:11: a true-or-false operator does not apply to string"),
        ("{'a': 1, 'a': 2} == {}", "at 1:10: a map literal has the same key twice"),
        ("1 + 1.0 == 2.0", "at 1:3: + does not apply to int and double"),
        ("'abc'.substring(2, 9) == ''", "at 1:7: the result of substring does not fit its type"),
    ] {
        let error = judge(source).expect_err(source).to_string();
        assert_eq!(error, format!("dependencies[0].cel: {message}"), "{source}");
        assert!(!error.contains("s3cr3t") && !error.contains("Running"), "{error}");
    }
}

#[test]
fn what_can_be_refused_beforehand_is() {
    for (source, message) in [
        ("", "at 1:1: not a CEL expression: expected a value, found the end"),
        ("self.", "at 1:6: not a CEL expression: expected a field name"),
        ("self.a ==", "at 1:10: not a CEL expression: expected a value, found the end"),
        ("self.a\n  == nobody.x", "at 2:6: unknown name \"nobody\"; use self, dependencies"),
        (
            "dependencies.my-db.state == 'x'",
            "unknown name \"db\"; use self, dependencies (a name with a dash is written in brackets: x['a-b'])",
        ),
        ("self.a.all(x, y)", "at 1:15: unknown name \"y\"; use self, dependencies, x"),
        (
            "self.a == now()",
            "unknown function now() with 0 arguments; there is no clock in conditions: use a timeout",
        ),
        ("frob(self)", "at 1:1: unknown function frob() with 1 argument; there are all, bool, contains"),
        (
            "self.a.size(1)",
            "unknown function .size() with 1 argument; use size() with 1 argument(s) or .size() with 0",
        ),
        ("self.a.all(x)", "at 1:8: not a CEL expression: expected .all(x, test)"),
        ("has(self)", "has() needs a field: has(x.field)"),
        ("self.a.matches(self.b)", "matches() needs a literal pattern: this one is computed"),
        ("self.a.matches('(')", "matches() needs a literal pattern: unclosed group"),
        ("self.a.matches('(\\\\w{40}){40}')", "it is too large once compiled"),
        ("self.a = 1", "at 1:8: not a CEL expression: expected ==, found ="),
        ("self.a == 'x", "at 1:11: not a CEL expression: expected a closing quote, found the end"),
        ("self.a == 'a\\d'", "at 1:13: not a CEL expression: expected an escape"),
        ("self.a == 9223372036854775808", "at 1:11: not a CEL expression: this number is too large"),
        ("self.a == (1", "at 1:13: not a CEL expression: expected ), found the end"),
        ("self.a b", "at 1:8: not a CEL expression: expected an operator or the end, found b"),
        ("self.a ? 1", "at 1:11: not a CEL expression: expected :, found the end"),
        ("size(1,)", "at 1:8: not a CEL expression: expected an argument, found )"),
        ("self.in", "at 1:6: not a CEL expression: expected a field name"),
        ("object.x", "(the object is called self)"),
        ("self.é == 1", "at 1:6: not a CEL expression: expected an expression, found 'é'"),
        ("self.a == b'x'", "byte strings are not supported here"),
        ("Foo{a: 1} == 1", "messages are not supported here"),
        ("self.a.all(x, x.all(y, y.all(z, z)))", "loops inside loops may be 2 deep"),
    ] {
        let error = compile(source).expect_err(source).to_string();
        assert!(error.starts_with("dependencies[0].cel: "), "{error}");
        assert!(error.contains(message), "{source}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn it_is_known_beforehand_what_an_expression_reads() {
    let cases: [(&str, &[&str]); 12] = [
        ("true", &[]),
        ("self.status.phase == 'x'", &["status.phase"]),
        ("has(self.status.phase)", &["status.phase"]),
        ("self.?status.?phase.orValue('') == self.metadata['name']", &["metadata.name", "status.phase"]),
        ("self.status.conditions.exists(c, c.type == 'Ready')", &["status.conditions"]),
        ("self.status.list[0].x == 1", &["status.list"]),
        ("self.spec.map[self.status.key] == 1", &["spec.map", "status.key"]),
        ("self.status == 1 && self.status.phase == 2", &["status"]),
        ("self.a.filter(x, x.b).all(y, y.c == self.d.e)", &["a", "d.e"]),
        ("self == 1", &["*"]),
        ("self.all(k, k != '')", &["*"]),
        ("[self.a, {'k': self.b}] == [] || self.c.matches('x')", &["a", "b", "c"]),
    ];
    for (source, expected) in cases {
        let reads = compile(source).expect(source).reads().get("self").cloned().unwrap_or_default();
        let mut paths: BTreeSet<String> = reads.paths.iter().map(|path| path.join(".")).collect();
        if reads.whole {
            paths.insert("*".to_owned());
        }
        assert_eq!(paths, expected.iter().map(|&path| path.to_owned()).collect(), "{source}");
    }
    let guard = compile("dependencies.db.state == 'Ready'").expect("compiles");
    assert!(!guard.reads().contains_key("self"));
    assert!(guard.reads()["dependencies"].paths.contains(&vec!["db".to_owned(), "state".to_owned()]));
}

#[test]
fn what_is_false_says_which_part_and_which_values() {
    for (source, told, discreet) in [
        (
            "self.spec.replicas >= 5",
            "self.spec.replicas >= 5 is false: self.spec.replicas is 3",
            "self.spec.replicas >= 5 is false",
        ),
        (
            "self.spec.replicas == 3 && (self.status.phase == 'Ready' && true)",
            "self.status.phase == 'Ready' is false: self.status.phase is \"Running\"",
            "self.status.phase == 'Ready' is false",
        ),
        (
            "self.status.readyReplicas > self.spec.replicas + 1",
            "self.status.readyReplicas > self.spec.replicas + 1 is false: self.status.readyReplicas is 3, \
             self.spec.replicas + 1 is 4",
            "self.status.readyReplicas > self.spec.replicas + 1 is false",
        ),
        (
            "'c' in self.status.names",
            "'c' in self.status.names is false: self.status.names is a list of 2",
            "'c' in self.status.names is false",
        ),
        (
            "self.status.conditions.exists(c, has(c.type) && c.type == 'Gone')",
            "self.status.conditions.exists(c, has(c.type) && c.type == 'Gone') is false",
            "self.status.conditions.exists(c, has(c.type) && c.type == 'Gone') is false",
        ),
        ("!has(self.status)", "!has(self.status) is false", "!has(self.status) is false"),
    ] {
        let (expression, object) = (compile(source).expect(source), object());
        let bindings = Bindings::from([("self", &object)]);
        assert_eq!(expression.evaluate(&bindings), Ok(Answer::False), "{source}");
        assert_eq!(expression.explain(&bindings, true, &mut 0), told);
        assert_eq!(expression.explain(&bindings, false, &mut 0), discreet);
    }
}

#[test]
fn an_explanation_has_a_bound() {
    let object = json!({"a": "ü".repeat(10_000)});
    let source = format!("self.a == '{}'", "ä".repeat(400));
    let told = compile(&source).expect("CEL").explain(&Bindings::from([("self", &object)]), true, &mut 0);
    assert!(told.chars().count() < 300 && told.contains('…'), "{told}");
}
