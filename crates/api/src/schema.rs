//! Schema that the derive macros cannot write.
//!
//! Small schemas for field types (`duration`, `free_object` …), validation rules in the form the API server wants
//! them ([`rules`]), and [`finish`]: the one place where a generated definition is corrected. Called by the types
//! of this crate while their definition is generated; nothing else sees it.

mod finish;

use linchpin_words::{CompareOperator, limits};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

pub(crate) use self::finish::{finish, plain_policy, set, status, without};

/// The name of a dependency, action or group: what status, guards and annotations call it.
pub(crate) const NAME_PATTERN: &str = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$";

/// A kind with or without group, with or without the name of an object. The parser says more about mistakes.
pub(crate) const REFERENCE_PATTERN: &str = r"^[A-Za-z][A-Za-z0-9-]*(\.[A-Za-z0-9-]+)*(/[^/%{}\s]+)?$";

pub(crate) const DURATION_PATTERN: &str = r"^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";

/// Validation rules from pairs of expression and message.
pub(crate) fn rules(pairs: &[(&str, &str)]) -> Value {
    pairs.iter().map(|(rule, message)| json!({"rule": rule, "message": message})).collect()
}

/// The rule that no two entries of a list have the same name, for lists whose names are optional.
pub(crate) fn names_are_unique(what: &str) -> Value {
    let once = "self.exists_one(other, has(other.name) && other.name == one.name)";
    // By `map`: what `filter` finds is counted as if it were as large as a request.
    let twice = format!("self.map(one, has(one.name) && !{once}, one.name)[0]");
    json!([{
        "rule": format!("self.all(one, !has(one.name) || {once})"),
        "message": format!("two {what} have the same name; names must differ"),
        "messageExpression": format!("'two {what} have the same name, ' + {twice} + '; names must differ'"),
    }])
}

/// An object whose fields are not ours to judge.
pub(crate) fn free_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// The same, written as a whole: the API server does not keep who wrote which of its fields, of which there may be
/// thousands.
pub(crate) fn whole_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-map-type": "atomic"
    })
}

/// Any value at all.
pub(crate) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// A length of time in Go's notation. [`finish`] also lets numbers in, as far as the rule, which says what to write
/// instead. The pattern is what counts; people get the sentence too, by a rule that catches most mistakes and is counted as
/// little however long a text may be: a regular expression would be counted as if the text were as long as a request.
pub(crate) fn duration() -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": limits::DURATION,
        "pattern": DURATION_PATTERN,
        "x-kubernetes-validations": rules(&[(
            "type(self) == string && !self.startsWith('-') && (self.endsWith('s') \
             ? !(self.endsWith('ds') || self.endsWith('es') || self.endsWith('rs')) \
             : self.endsWith('m') || self.endsWith('h') || self == '0' || self == '+0')",
            "write a duration such as 30s, 5m or 1m30s",
        )])
    })
}

/// How a field is compared.
pub(crate) fn compare_operator(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": CompareOperator::ALL})
}

/// A moment.
pub(crate) fn moment(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// `status.conditions` as every Kubernetes object has them.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {"type": "string", "maxLength": 316, "description": "What the condition is about."},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it holds."},
                "reason": {"type": "string", "maxLength": 1024, "description": "Why, as one word."},
                "message": {"type": "string", "maxLength": 32768, "description": "Why, for people."},
                "observedGeneration": {
                    "type": "integer", "format": "int64",
                    "description": "The generation of the object this was judged for."
                },
                "lastTransitionTime": {
                    "type": "string", "format": "date-time",
                    "description": "Since when the status is what it is."
                }
            }
        }
    })
}

/// Whether a flag has its default, for leaving it out.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// Whether a priority has its default, for leaving it out.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(number: &i32) -> bool {
    *number == 0
}
