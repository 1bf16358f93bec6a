//! CEL, compared with the evaluator of the `cel` crate wherever both have an answer.

use linchpin_lang::answer::Answer;
use linchpin_lang::cel::{Bindings, MAX_SOURCE_BYTES};
use serde_json::Value as Json;

use crate::cel::{compile, object};

/// JSON for the reference evaluator. Its own conversion makes unsigned numbers of all that are not negative, which is
/// not what Kubernetes does.
fn foreign(json: &Json) -> ::cel::Value {
    match json {
        Json::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => ::cel::to_value(number).expect("a number"),
        },
        Json::Array(items) => items.iter().map(foreign).collect::<Vec<_>>().into(),
        Json::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), foreign(value)));
            fields.collect::<std::collections::HashMap<String, ::cel::Value>>().into()
        }
        other => ::cel::to_value(other).expect("a scalar"),
    }
}

/// The evaluator of the `cel` crate, for what both of them can do.
fn reference(source: &str, object: &Json) -> Result<bool, String> {
    let tree = ::cel::parser::Parser::new()
        .enable_optional_syntax(true)
        .enable_ident_escape_syntax(true)
        .parse(source)
        .map_err(|error| error.to_string())?;
    let mut context = ::cel::Context::default();
    context.add_variable_from_value("self", foreign(object));
    match ::cel::Value::resolve(&tree, &context).map_err(|error| error.to_string())? {
        ::cel::Value::Bool(value) => Ok(value),
        other => Err(format!("{:?}", other.type_of())),
    }
}

/// Compares both evaluators; true when they gave an answer.
fn agree(source: &str, object: &Json) -> bool {
    let theirs = reference(source, object);
    let ours = match compile(source) {
        Ok(expression) => expression.evaluate(&Bindings::from([("self", object)])),
        Err(error) => panic!("{source}: ours {error}, theirs {theirs:?}"),
    };
    match (&ours, &theirs) {
        (Ok(Answer::True), Ok(true)) | (Ok(Answer::False), Ok(false)) => true,
        (Ok(Answer::NotYet(_)) | Err(_), Err(_)) => false,
        // Theirs adds a map to a list, which CEL does not have.
        (Err(error), _) if error.to_string().ends_with("+ does not apply to list and map") => false,
        _ => panic!("{source}: ours {ours:?}, theirs {theirs:?}"),
    }
}

const ATOMS: [&str; 22] = [
    "self.status.phase",
    "self.status.readyReplicas",
    "self.spec.ratio",
    "self.nothing",
    "self.status.numbers",
    "self.status.names",
    "self.metadata.labels",
    "self.spec.big",
    "self.metadata.deleted",
    "1",
    "1u",
    "2.5",
    "'Running'",
    "true",
    "false",
    "null",
    "[1, 2]",
    "{'a': 1}",
    "''",
    "-3",
    "0x1F",
    "r'\\n'",
];
const OPERATORS: [&str; 14] = ["==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%", "&&", "||"];

/// Their parser needs more stack than tests have.
fn on_a_large_stack(body: fn()) {
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(body).expect("a thread");
    assert!(thread.join().is_ok());
}

#[test]
fn every_operator_answers_like_the_reference() {
    on_a_large_stack(|| {
        let object = object();
        let (mut answered, mut turn) = (0, 0);
        // Their parser is slow: each pair of values is tried in one of the forms, in turn.
        for (left, other) in ATOMS.iter().flat_map(|left| ATOMS.iter().map(move |right| (left, right))) {
            // Every second operator, and the others with the next pair.
            for operator in OPERATORS.iter().skip(turn % 2).step_by(2) {
                turn += 1;
                let source = match turn % 3 {
                    0 => format!("{left} {operator} {other}"),
                    1 => format!("({left} {operator} {other}) == {other}"),
                    _ => format!("[{left}].exists(x, x {operator} {other})"),
                };
                answered += usize::from(agree(&source, &object));
            }
            turn += 1;
            let source = match turn % 8 {
                0 => format!("has(self.status.phase) ? {left} == {other} : false"),
                1 => format!("({left} == {other}) || ({left} == 1 && self.nothing)"),
                2 => format!("type({left}) == type({other})"),
                3 => format!("string({left}) == string({other})"),
                4 => format!("int({left}) == int({other})"),
                5 => format!("self.?spec.?ratio.orValue({left}) == {other}"),
                6 => format!("[?optional.of({left}), {other}] == [{left}, {other}]"),
                _ => format!("{{'a': {left}, 'b': {other}}}['a'] == {left}"),
            };
            answered += usize::from(agree(&source, &object));
        }
        assert!(answered > 800, "only {answered} expressions were answered");
    });
}

/// A small generator of expressions, from a seed: the same every time.
struct Writer {
    state: u64,
}

impl Writer {
    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        choices[usize::try_from(self.state >> 33).unwrap_or(0) % choices.len()]
    }

    fn write(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.pick(&ATOMS).to_owned();
        }
        let form = self.pick(&[
            "binary",
            "binary",
            "binary",
            "not",
            "paren",
            "negate",
            "conditional",
            "list",
            "all",
            "filter",
            "map",
            "size",
            "index",
            "truth",
            "truth",
            "string",
        ]);
        match form {
            "binary" => {
                let (left, right) = (self.write(depth - 1), self.write(depth - 1));
                format!("{left} {} {right}", self.pick(&OPERATORS))
            }
            "not" => format!("!({})", self.write(depth - 1)),
            "paren" => format!("({})", self.write(depth - 1)),
            "negate" => format!("-({})", self.write(depth - 1)),
            "conditional" => {
                let parts = [self.write(depth - 1), self.write(depth - 1), self.write(depth - 1)];
                format!("(({}) ? ({}) : ({}))", parts[0], parts[1], parts[2])
            }
            "list" => format!("[{}, {}]", self.write(depth - 1), self.write(depth - 1)),
            "all" => {
                let test = self.write(depth - 1);
                format!(
                    "self.status.numbers.{}(x, x > 1 || {test})",
                    self.pick(&["all", "exists", "exists_one"])
                )
            }
            "filter" => format!("self.status.names.filter(x, x != 'a' && {})", self.write(depth - 1)),
            "map" => format!("[1, 2].map(x, [x, {}])", self.write(depth - 1)),
            "size" => format!("size([{}])", self.write(depth - 1)),
            "index" => format!("[{}, 1][{}]", self.write(depth - 1), self.pick(&["0", "1", "2", "'a'"])),
            "string" => format!("('a' + string({})).startsWith('a')", self.write(depth - 1)),
            _ => {
                let (left, right) = (self.write(depth - 1), self.write(depth - 1));
                format!("({left} == {right}) {} ({right} != 1)", self.pick(&["&&", "||", "=="]))
            }
        }
    }
}

#[test]
fn written_at_random_expressions_answer_like_the_reference() {
    on_a_large_stack(|| {
        let object = object();
        let mut writer = Writer { state: 7 };
        let (mut answered, mut total) = (0, 0);
        for round in 0..800 {
            let source = writer.write(1 + round % 3);
            let nested_too_deep =
                compile(&source).is_err_and(|error| error.to_string().contains("loops inside"));
            if source.len() <= MAX_SOURCE_BYTES && !nested_too_deep {
                total += 1;
                answered += usize::from(agree(&source, &object));
            }
        }
        assert!(total > 500 && answered > 120, "{answered} of {total} were answered");
    });
}
