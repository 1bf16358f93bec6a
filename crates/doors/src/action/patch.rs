//! What can be said of a patch before it is rendered.

use std::borrow::Cow;

use linchpin_engine::{
    contract::PatchKind,
    plan::{Delivery, SpecError},
};
use linchpin_lang::template::parse_documents;
use serde_json::Value;

use crate::{errors::at, sketch};

/// A patch in JSON without the braces and brackets at its end that close nothing, and how many those are. What the patch
/// says is plain all the same; the document that the kind comes from writes it so.
pub(super) fn without_surplus(text: &str, raw: bool) -> (&str, usize) {
    let Some(flat) = flat_json(text, raw) else { return (text, 0) };
    let mut values = serde_json::Deserializer::from_str(&flat).into_iter::<Value>();
    let Some(Ok(_)) = values.next() else { return (text, 0) };
    let end = values.byte_offset();
    let surplus: Vec<char> = flat[end..].chars().filter(|character| !character.is_whitespace()).collect();
    if surplus.iter().all(|character| matches!(character, '}' | ']')) {
        (&text[..end], surplus.len())
    } else {
        (text, 0)
    }
}

/// A text of JSON with something in every hole, of the same length, where it is JSON and its shape can be seen.
fn flat_json(text: &str, raw: bool) -> Option<Cow<'_, str>> {
    let fixed = raw || !sketch::is_template(text);
    if !is_json(text, fixed) {
        return None;
    }
    if fixed { Some(Cow::Borrowed(text)) } else { sketch::json(text).map(Cow::Owned) }
}

fn is_json(text: &str, fixed: bool) -> bool {
    text.trim_start().starts_with(['{', '[']) && (fixed || !text.trim_start().starts_with("{{"))
}

/// The patch as far as it can be seen, or why it can never be one. Templates that only fill values in do not hide
/// what is around them: a comma too many is one whatever the values are.
pub(super) fn check(text: &str, kind: PatchKind, raw: bool, field: &str) -> Result<Option<Value>, SpecError> {
    let fixed = raw || !sketch::is_template(text);
    let seen = if is_json(text, fixed) {
        flat_json(text, raw)
            .map(|flat| serde_json::from_str(&flat).map_err(|error| at(field, json_problem(&error))))
            .transpose()?
    } else if fixed {
        let mut documents = parse_documents(field, text).map_err(|error| {
            let (line, column) = error.position();
            at(field, format!("at line {line} column {column}: {}", error.message()))
        })?;
        if documents.len() != 1 {
            return Err(at(field, format!("it must be one document, not {}", documents.len())));
        }
        documents.pop()
    } else {
        sketch::documents(text).and_then(|mut documents| documents.pop())
    };
    // A hole may turn out to be anything, so only what is plain is refused.
    match &seen {
        Some(Value::String(_) | Value::Null | Value::Number(_)) | None => Ok(seen),
        Some(value) if kind == PatchKind::Json && !value.is_array() => {
            Err(at(field, "a patch of type json must be a list of operations"))
        }
        Some(value) if kind != PatchKind::Json && !value.is_object() => {
            Err(at(field, "it must be an object"))
        }
        Some(_) => Ok(seen),
    }
}

/// Where and what, without the text: a patch may hold secrets.
fn json_problem(error: &serde_json::Error) -> String {
    let what = if error.is_eof() {
        "the text ends too early; is a closing brace or bracket missing?"
    } else {
        "unexpected character; is there a brace, bracket or comma too many?"
    };
    format!("not valid JSON at line {} column {}: {what}", error.line(), error.column())
}

/// Whether doing a patch twice differs from doing it once: then it follows the rule for commands. A JSON patch that
/// adds to a list, removes from one by index, moves or copies does; so may one that cannot be seen.
pub(super) fn delivery(kind: PatchKind, seen: Option<&Value>) -> Option<Delivery> {
    if kind != PatchKind::Json {
        return None;
    }
    let harmless =
        seen.and_then(Value::as_array).is_some_and(|operations| operations.iter().all(is_harmless));
    (!harmless).then_some(Delivery::AtMostOnce)
}

fn is_harmless(operation: &Value) -> bool {
    let text = |key: &str| operation.get(key).and_then(Value::as_str);
    let last = text("path").and_then(|path| path.rsplit('/').next());
    let in_list = last.is_none_or(|last| {
        last == "-"
            || sketch::has_holes(last)
            || !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())
    });
    match text("op") {
        Some("test" | "replace") => true,
        Some("add" | "remove") => !in_list,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(patch: &str) -> Option<Delivery> {
        delivery(PatchKind::Json, check(patch, PatchKind::Json, false, "p").expect("a patch").as_ref())
    }

    #[test]
    fn patches_that_differ_when_done_twice_follow_the_rule_for_commands() {
        for patch in [
            r#"[{"op":"add","path":"/spec/list/-","value":1}]"#,
            r#"[{"op":"add","path":"/spec/list/0","value":1}]"#,
            r#"[{"op":"remove","path":"/spec/list/2"}]"#,
            r#"[{"op":"move","from":"/a","path":"/b"}]"#,
            r#"[{"op":"copy","from":"/a","path":"/b"}]"#,
            "{{ .Values.patch }}",
            "- op: add\n  path: /spec/{{ .Values.where }}\n  value: 1\n",
        ] {
            assert_eq!(delivered(patch), Some(Delivery::AtMostOnce), "{patch}");
        }
    }

    #[test]
    fn patches_of_fields_may_be_done_again() {
        for patch in [
            r#"[{"op":"add","path":"/metadata/labels/a","value":"{{ .Now }}"}]"#,
            r#"[{"op":"replace","path":"/spec/list/0","value":1},{"op":"test","path":"/a","value":1}]"#,
            "- op: remove\n  path: /metadata/labels/a\n",
        ] {
            assert_eq!(delivered(patch), None, "{patch}");
        }
        assert_eq!(delivery(PatchKind::Merge, None), None);
    }

    #[test]
    fn a_comma_too_many_is_found_at_its_place_although_there_is_a_template() {
        let error =
            check(r#"{"a":{"b":"{{ .Now }}"},}"#, PatchKind::Strategic, false, "p").expect_err("invalid");
        assert_eq!(
            error.to_string(),
            "p: not valid JSON at line 1 column 25: unexpected character; is there a brace, bracket or comma too many?"
        );
    }

    #[test]
    fn what_closes_nothing_at_the_end_of_a_patch_is_left_out() {
        let left = |text| without_surplus(text, false);
        assert_eq!(left(r#"{"a":"{{ .Now }}"}}"#), (r#"{"a":"{{ .Now }}"}"#, 1));
        assert_eq!(left("{\"a\":{{ .Values.n }}}\n}]\n"), ("{\"a\":{{ .Values.n }}}", 2));
        assert_eq!(left(r#"{"a":1}"#), (r#"{"a":1}"#, 0));
        for other in [r#"{"a":1}}{"#, r#"{"a":1}, {}"#, r#"{"a":1"#, "a: 1}", "{{ .Values.patch }}}", "[1,]]"]
        {
            assert_eq!(left(other), (other, 0));
        }
        assert_eq!(without_surplus(r#"{"a":"{{"}}"#, true), (r#"{"a":"{{"}"#, 1));
    }

    #[test]
    fn the_form_of_a_patch_must_fit_its_type() {
        assert!(check("{}", PatchKind::Json, false, "p").is_err());
        assert!(check("[]", PatchKind::Merge, false, "p").is_err());
        assert!(check("a: 1", PatchKind::Merge, false, "p").is_ok());
        assert!(check("a: 1\n---\nb: 2", PatchKind::Merge, false, "p").is_err());
    }
}
