//! A label selector as kubectl writes it, as the API wants it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A text that is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no label selector: write a=b,c!=d,e in (f,g),h,!i")]
pub struct SelectorError(String);

/// The selector of a text; of an empty one that matches everything.
pub fn parse(text: &str) -> Result<Value, SelectorError> {
    let wrong = || SelectorError(text.to_owned());
    let mut expressions = Vec::new();
    for part in parts(text) {
        let part = part.trim();
        expressions.push(requirement(part).ok_or_else(wrong)?);
    }
    Ok(json!({"matchExpressions": expressions}))
}

/// Whether labels match a selector of this form.
pub fn matches(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let mut expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    expressions.all(|expression| {
        let found = labels.get(expression["key"].as_str().unwrap_or_default());
        let mut values = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let among = found.is_some_and(|found| values.any(|value| value == found));
        match expression["operator"].as_str() {
            Some("In") => among,
            Some("NotIn") => !among,
            Some("Exists") => found.is_some(),
            _ => found.is_none(),
        }
    })
}

/// The requirements: commas outside parentheses separate them.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_end = |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => (),
        }
        letter == ',' && depth == 0
    };
    if text.trim().is_empty() { Vec::new() } else { text.split(is_end).collect() }
}

fn requirement(text: &str) -> Option<Value> {
    let of = |key: &str, operator: &str, values: Vec<&str>| {
        let key = key.trim();
        let plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
        let valid = !key.is_empty() && plain(key) && values.iter().all(|value| plain(value));
        let mut expression = json!({"key": key, "operator": operator});
        if !values.is_empty() {
            expression["values"] = json!(values);
        }
        valid.then_some(expression)
    };
    let listed = |word: &str| {
        let (key, rest) = text.split_once(word)?;
        let inner = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
        let values: Vec<&str> = inner.split(',').map(str::trim).collect();
        Some((key, values))
    };
    if let Some((key, values)) = listed(" notin ") {
        return of(key, "NotIn", values);
    }
    if let Some((key, values)) = listed(" in ") {
        return of(key, "In", values);
    }
    if let Some((key, value)) = text.split_once("!=") {
        return of(key, "NotIn", vec![value.trim()]);
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return of(key, "In", vec![value.trim()]);
    }
    match text.strip_prefix('!') {
        Some(key) => of(key, "DoesNotExist", Vec::new()),
        None => of(text, "Exists", Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_as_kubectl_reads_them() {
        assert_eq!(parse("").unwrap(), json!({"matchExpressions": []}));
        assert_eq!(
            parse("linchpin.dev/boot=enabled, a!=b,c in (d, e),f notin (g),h,!i,j==k").unwrap(),
            json!({"matchExpressions": [
                {"key": "linchpin.dev/boot", "operator": "In", "values": ["enabled"]},
                {"key": "a", "operator": "NotIn", "values": ["b"]},
                {"key": "c", "operator": "In", "values": ["d", "e"]},
                {"key": "f", "operator": "NotIn", "values": ["g"]},
                {"key": "h", "operator": "Exists"},
                {"key": "i", "operator": "DoesNotExist"},
                {"key": "j", "operator": "In", "values": ["k"]},
            ]})
        );
        for wrong in ["=", "a b", "a in b", "a in (b", ",", "a=b,,c", "a=\"b\""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
