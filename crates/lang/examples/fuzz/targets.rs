//! What is fuzzed: one line for each target. A target turns a text into a description of what came out, which must
//! be the same every time.

use std::fmt::Debug;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use linchpin_lang::cel::{Bindings, Expression};
use linchpin_lang::compare::FieldCondition;
use linchpin_lang::jsonpath::JsonPath;
use linchpin_lang::template::{RenderClock, Template, parse_documents};
use serde_json::{Value as Json, json};

/// Something that reads a text.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&str) -> String,
    /// Texts that are worth putting anywhere.
    pub(crate) words: &'static [&'static str],
}

pub(crate) const TARGETS: [Target; 8] = [
    Target { name: "cel", run: cel, words: CEL_WORDS },
    Target { name: "jsonpath", run: jsonpath, words: PATH_WORDS },
    Target { name: "compare", run: compare, words: PATH_WORDS },
    Target { name: "template", run: template, words: TEMPLATE_WORDS },
    Target { name: "yaml", run: yaml, words: YAML_WORDS },
    Target {
        name: "reference",
        run: reference,
        words: &["/", ".", "crd", "deploy", "version/kubernetes", "apps/v1"],
    },
    Target {
        name: "duration",
        run: duration,
        words: &["h", "m", "s", "ms", "us", "ns", "1", "9", ".", "-", "0"],
    },
    // Breaks every promise once, at the first inputs: the check of the runner itself.
    Target { name: "broken", run: broken, words: &["-"] },
];

const CEL_WORDS: &[&str] = &[
    "self",
    "self.a",
    "self.list",
    "self.text",
    "x",
    "dependencies",
    "==",
    "!=",
    "<=",
    "&&",
    "||",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    " in ",
    "?",
    ":",
    "?:",
    ".",
    ".?",
    "[?",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    "'",
    "\"",
    "'''",
    "r'",
    "b'",
    "`",
    "\\",
    "\\u00e9",
    "true",
    "null",
    "1",
    "0",
    "1u",
    "1.5",
    "0x7f",
    "1e308",
    "9223372036854775807",
    "18446744073709551615u",
    ".all(x,",
    ".exists(x,",
    ".exists_one(x,",
    ".map(x,",
    ".filter(x,",
    ".map(x,x+x)",
    "has(self.a)",
    "size(",
    ".size()",
    ".matches('",
    ".split('')",
    ".join(',')",
    ".replace('','xx')",
    ".substring(1)",
    "int(",
    "string(",
    "timestamp(",
    "duration('",
    "type(",
    ".orValue(",
    "optional.of(",
    "optional.none()",
    ".sum()",
    ".max()",
    "//",
    "\n",
];
const PATH_WORDS: &[&str] = &[
    ".",
    "..",
    "*",
    "[*]",
    "[0]",
    "[-1]",
    "[0:2]",
    "[::2]",
    "[?(",
    ")]",
    "@",
    "$",
    "@.a",
    "$.list",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "'",
    "\"",
    "\\",
    "{",
    "}",
    "{range",
    "{end}",
    "['a','b']",
    "[0,0,0,0]",
    ".a",
    ".list",
    ".a.b",
    "99999",
    "-100000",
    "true",
    "null",
    "eq",
    "gte",
    "in",
    "matches",
    "exists",
    "(",
    "|",
    "\\w{50}",
    "[[:alpha:]]",
    "28+",
    "v1.2.3-rc.1",
    "500Mi",
    "1e30",
    "\n",
];
const TEMPLATE_WORDS: &[&str] = &[
    "{{",
    "}}",
    "{{-",
    "-}}",
    "{{/*",
    "*/}}",
    "if",
    "else",
    "else if",
    "with",
    "range",
    "break",
    "continue",
    "end",
    "define",
    "template",
    "block",
    "$x := ",
    "$x = ",
    "$",
    ".",
    ".Values",
    ".Values.list",
    "|",
    "(",
    ")",
    "printf",
    "\"%d %s %v %q %x\"",
    "\"%1000d\"",
    "repeat 1000000",
    "default",
    "index",
    "slice",
    "len",
    "eq",
    "lt",
    "and",
    "or",
    "not",
    "toYaml",
    "toJson",
    "indent 9",
    "nindent",
    "replace",
    "regexMatch",
    "split",
    "join",
    "until 1000000",
    "list",
    "dict",
    "merge",
    "now",
    "date",
    "trunc",
    "'a'",
    "`",
    "0x1p-2",
    "9223372036854775807",
    "1e308",
];
const YAML_WORDS: &[&str] = &[
    "---\n",
    "...\n",
    "- ",
    ": ",
    "? ",
    "&a ",
    "*a",
    "<<: *a",
    "!!str ",
    "!!binary ",
    "| ",
    ">-\n",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    ",",
    "#",
    "%YAML 1.2\n",
    "\t",
    "\n  ",
    "yes",
    "0644",
    ".nan",
    "1e400",
    "~",
    "\\u0000",
    "\u{85}",
    "\u{feff}",
];

/// One object with a bit of everything, for whatever looks into one.
fn object() -> Json {
    json!({
        "a": {"b": {"c": [1, 2.5, -3, "x", null, true, {"d": "deep"}]}, "é": 1, "a.b": "dotted"},
        "list": (0..300).collect::<Vec<_>>(),
        "text": "The quick brown fox jumps over the lazy dog. ".repeat(200),
        "numbers": [0, -1, i64::MAX, i64::MIN, u64::MAX, 1e308, 0.1],
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Failed", "status": "False"}, {}],
        "quantity": "500Mi", "version": "v1.36.4-rc.1+build", "minor": "28+", "time": "2026-01-02T03:04:05Z", "flag": true, "none": null
    })
}

fn shown(result: &impl Debug) -> String {
    format!("{result:?}")
}

fn cel(text: &str) -> String {
    let expression = match Expression::compile("f", text, &["self", "dependencies"]) {
        Ok(expression) => expression,
        Err(error) => return error.to_string(),
    };
    let answer = expression.evaluate(&Bindings::from([("self", &object())]));
    format!("{answer:?} {:?}", expression.reads())
}

fn jsonpath(text: &str) -> String {
    match JsonPath::compile("f", text) {
        Ok(path) => format!("{:?} {:?}", path.find(&object()).map(|found| found.len()), path.reads()),
        Err(error) => error.to_string(),
    }
}

/// Lines: path, operator, value as JSON or else as a text.
fn compare(text: &str) -> String {
    let mut lines = text.splitn(3, '\n');
    let path = lines.next().unwrap_or_default();
    let operator = lines.next().filter(|operator| !operator.is_empty());
    let value = lines.next().map(|value| serde_json::from_str(value).unwrap_or_else(|_| Json::from(value)));
    match FieldCondition::compile("f", path, operator, value.as_ref()) {
        Ok(condition) => shown(&condition.evaluate(&object())),
        Err(error) => error.to_string(),
    }
}

fn template(text: &str) -> String {
    let template = match Template::parse("f", text) {
        Ok(template) => template,
        Err(error) => return error.to_string(),
    };
    let data = json!({"Values": object(), "Dependencies": {"db": {"Status": {"phase": "Running"}}}, "Now": "2026-01-02T03:04:05Z"});
    let clock = RenderClock::at(jiff::Timestamp::UNIX_EPOCH);
    format!("{:?} {:?}", template.render(&data, &clock), template.reads())
}

fn yaml(text: &str) -> String {
    shown(&parse_documents("f", text))
}

fn reference(text: &str) -> String {
    format!("{:?} {:?}", linchpin_words::Reference::parse(text), linchpin_words::Reference::parse_kind(text))
}

fn duration(text: &str) -> String {
    shown(&linchpin_words::Period::parse(text))
}

fn broken(text: &str) -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    match text {
        "panic" => format!("{:?}", &text[9..]),
        "overflow" => deeper(text, 0),
        "memory" => black_box(vec![1_u8; 65 << 20]).len().to_string(),
        "slow" => {
            // An amount of work and not of time: what counts is the time at work.
            for turn in 0..2_500_000_000_u64 {
                black_box(turn);
            }
            String::new()
        }
        "flaky" => CALLS.fetch_add(1, Ordering::Relaxed).to_string(),
        _ => String::new(),
    }
}

/// Never ends: each call needs what the next one gives.
fn deeper(text: &str, depth: u64) -> String {
    match black_box(depth) {
        u64::MAX => text.to_owned(),
        depth => deeper(text, depth + 1) + text,
    }
}
