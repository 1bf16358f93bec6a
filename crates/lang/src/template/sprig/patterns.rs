//! Functions with regular expressions.

use crate::template::error::Cause;
use crate::template::functions::{Function, Parameter};
use crate::template::pattern::GoPattern;
use crate::template::store::{PIECE, Store};
use crate::template::value::{Evaluated, Value};

use Parameter::{Int, Text};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("regexMatch", &[Text, Text], |store, a| matches(store, "regexMatch", a)),
    Function::new("mustRegexMatch", &[Text, Text], |store, a| matches(store, "mustRegexMatch", a)),
    Function::new("regexFind", &[Text, Text], |store, a| find(store, "regexFind", a)),
    Function::new("mustRegexFind", &[Text, Text], |store, a| find(store, "mustRegexFind", a)),
    Function::new("regexFindAll", &[Text, Text, Int], |store, a| {
        let pattern = prepared(store, "regexFindAll", a)?;
        let most = usize::try_from(a[2].as_int()).unwrap_or(usize::MAX);
        let text = a[1].as_text();
        let mut found = Vec::new();
        for one in pattern.regex.find_iter(text).take(most) {
            pattern.search(store, text.len() - one.end())?;
            store.charge(PIECE)?;
            found.push(one.as_str().to_owned());
        }
        store.texts(found)
    }),
    Function::new("regexReplaceAll", &[Text, Text, Text], |store, a| {
        let pattern = prepared(store, "regexReplaceAll", a)?;
        replaced(store, &pattern, a, |found, out| {
            found.expand(a[2].as_text(), out);
        })
    }),
    Function::new("regexReplaceAllLiteral", &[Text, Text, Text], |store, a| {
        let pattern = prepared(store, "regexReplaceAllLiteral", a)?;
        replaced(store, &pattern, a, |_, out| {
            out.push_str(a[2].as_text());
        })
    }),
    Function::new("regexSplit", &[Text, Text, Int], |store, a| {
        let pattern = prepared(store, "regexSplit", a)?;
        let pieces = split(store, &pattern, a[1].as_text(), a[2].as_int())?;
        store.texts(pieces)
    }),
    Function::new("regexQuoteMeta", &[Text], |store, a| {
        let mut quoted = String::new();
        for letter in a[0].as_text().chars() {
            if "\\.+*?()|[]{}^$".contains(letter) {
                quoted.push('\\');
            }
            quoted.push(letter);
        }
        store.text(quoted)
    }),
];

/// The pattern, with its first search through the text paid for.
///
/// Every further search goes through the rest of the text once more in the worst case, so it is paid for too.
fn prepared<'d>(store: &mut Store<'d>, function: &'static str, a: &[Value<'d>]) -> Result<GoPattern, Cause> {
    let pattern = store.pattern(function, a[0].as_text())?;
    pattern.search(store, a[1].as_text().len())?;
    Ok(pattern)
}

fn matches<'d>(store: &mut Store<'d>, function: &'static str, a: &[Value<'d>]) -> Evaluated<'d> {
    Ok(Value::Bool(prepared(store, function, a)?.regex.is_match(a[1].as_text())))
}

fn find<'d>(store: &mut Store<'d>, function: &'static str, a: &[Value<'d>]) -> Evaluated<'d> {
    let pattern = prepared(store, function, a)?;
    let found = pattern.regex.find(a[1].as_text()).map_or("", |found| found.as_str());
    store.text(found.to_owned())
}

fn replaced<'d>(
    store: &mut Store<'d>,
    pattern: &GoPattern,
    a: &[Value<'d>],
    replace: impl Fn(&regex::Captures<'_>, &mut String),
) -> Evaluated<'d> {
    let (text, replacement) = (a[1].as_text(), a[2].as_text());
    let references = replacement.matches('$').count();
    let mut out = String::new();
    let mut end = 0;
    for found in pattern.regex.captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        pattern.search(store, text.len() - whole.end())?;
        // Each reference gives back the whole match at most.
        let most = replacement.len() + references.saturating_mul(whole.len());
        store.charge((whole.start() - end).saturating_add(most))?;
        out.push_str(&text[end..whole.start()]);
        replace(&found, &mut out);
        end = whole.end();
    }
    out.push_str(&text[end..]);
    store.text(out)
}

/// Go's `Regexp.Split`: empty matches do not cut at the beginning.
fn split(store: &Store<'_>, pattern: &GoPattern, text: &str, most: i64) -> Result<Vec<String>, Cause> {
    if most == 0 {
        return Ok(Vec::new());
    }
    if !pattern.regex.as_str().is_empty() && text.is_empty() {
        return Ok(vec![String::new()]);
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut pieces = Vec::new();
    let (mut start, mut end) = (0, 0);
    for found in pattern.regex.find_iter(text) {
        if pieces.len() == most.saturating_sub(1) {
            break;
        }
        pattern.search(store, text.len() - found.end())?;
        store.charge(PIECE)?;
        end = found.start();
        if found.end() != 0 {
            pieces.push(text[start..end].to_owned());
        }
        start = found.end();
    }
    if end != text.len() {
        pieces.push(text[start..].to_owned());
    }
    Ok(pieces)
}
