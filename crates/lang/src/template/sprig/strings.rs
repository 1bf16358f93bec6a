//! Functions on text.

use std::collections::BTreeMap;

use crate::template::error::Cause;
use crate::template::functions::{Function, Parameter, failure};
use crate::template::limits;
use crate::template::quote;
use crate::template::store::{PIECE, Store};
use crate::template::value::{Element, Evaluated, TemplateText, Value};

use Parameter::{Any, Int, Text as TextParameter};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("upper", &[TextParameter], |store, a| map_letters(store, &a[0], upper)),
    Function::new("lower", &[TextParameter], |store, a| map_letters(store, &a[0], lower)),
    Function::new("title", &[TextParameter], title),
    Function::new("untitle", &[TextParameter], untitle),
    Function::new("trim", &[TextParameter], |store, a| part(store, a[0].as_text().trim())),
    Function::new("trimAll", &[TextParameter, TextParameter], trim_all),
    Function::new("trimall", &[TextParameter, TextParameter], trim_all),
    Function::new("trimPrefix", &[TextParameter, TextParameter], |store, a| {
        let text = a[1].as_text();
        part(store, text.strip_prefix(a[0].as_text()).unwrap_or(text))
    }),
    Function::new("trimSuffix", &[TextParameter, TextParameter], |store, a| {
        let text = a[1].as_text();
        part(store, text.strip_suffix(a[0].as_text()).unwrap_or(text))
    }),
    Function::new("nospace", &[TextParameter], |store, a| {
        store.text(a[0].as_text().chars().filter(|letter| !letter.is_whitespace()).collect())
    }),
    Function::new("contains", &[TextParameter, TextParameter], |_, a| {
        Ok(Value::Bool(a[1].as_text().contains(a[0].as_text())))
    }),
    Function::new("hasPrefix", &[TextParameter, TextParameter], |_, a| {
        Ok(Value::Bool(a[1].as_text().starts_with(a[0].as_text())))
    }),
    Function::new("hasSuffix", &[TextParameter, TextParameter], |_, a| {
        Ok(Value::Bool(a[1].as_text().ends_with(a[0].as_text())))
    }),
    Function::new("replace", &[TextParameter, TextParameter, TextParameter], replace),
    Function::new("repeat", &[Int, TextParameter], repeat),
    Function::new("substr", &[Int, Int, TextParameter], substr),
    Function::new("trunc", &[Int, TextParameter], trunc),
    Function::new("indent", &[Int, TextParameter], |store, a| indent(store, a, "indent", "")),
    Function::new("nindent", &[Int, TextParameter], |store, a| indent(store, a, "nindent", "\n")),
    Function::variadic("quote", &[], Any, |store, a| quoted(store, a, |text| quote::quote(text, false))),
    Function::variadic("squote", &[], Any, |store, a| quoted(store, a, |text| format!("'{text}'"))),
    Function::variadic("cat", &[], Any, |store, a| quoted(store, a, str::to_owned)),
    Function::new("plural", &[TextParameter, TextParameter, Int], |_, a| {
        Ok(if a[2].as_int() == 1 { a[0].clone() } else { a[1].clone() })
    }),
    Function::new("split", &[TextParameter, TextParameter], |store, a| {
        let parts = pieces(store, a[1].as_text(), a[0].as_text(), None)?;
        numbered(store, parts)
    }),
    Function::new("splitn", &[TextParameter, Int, TextParameter], |store, a| {
        let parts = pieces(store, a[2].as_text(), a[0].as_text(), Some(a[1].as_int()))?;
        numbered(store, parts)
    }),
    Function::new("splitList", &[TextParameter, TextParameter], |store, a| {
        let parts = pieces(store, a[1].as_text(), a[0].as_text(), None)?;
        store.texts(parts)
    }),
    Function::new("join", &[TextParameter, Any], |store, a| {
        let texts = store.display_items(&a[1])?;
        let size = texts.iter().map(|text| text.len() + a[0].as_text().len()).sum();
        store.charge(size)?;
        Ok(Value::text(texts.join(a[0].as_text())))
    }),
    Function::new("toString", &[Any], |store, a| match &a[0] {
        Value::Text(_) => Ok(a[0].clone()),
        value => {
            let text = store.display(value)?;
            store.text(text)
        }
    }),
    Function::new("toStrings", &[Any], |store, a| {
        let texts = store.display_items(&a[0])?;
        store.texts(texts)
    }),
];

fn part<'d>(store: &mut Store<'d>, text: &str) -> Evaluated<'d> {
    store.text(text.to_owned())
}

/// Go changes the case of each character alone; what would become several stays.
fn upper(letter: char) -> char {
    let mut letters = letter.to_uppercase();
    match (letters.next(), letters.next()) {
        (Some(upper), None) => upper,
        _ => letter,
    }
}

fn lower(letter: char) -> char {
    if letter == 'İ' {
        return 'i';
    }
    let mut letters = letter.to_lowercase();
    match (letters.next(), letters.next()) {
        (Some(lower), None) => lower,
        _ => letter,
    }
}

fn map_letters<'d>(store: &mut Store<'d>, value: &Value<'d>, change: fn(char) -> char) -> Evaluated<'d> {
    store.text(value.as_text().chars().map(change).collect())
}

fn title<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    let mut previous = ' ';
    let text = a[0].as_text().chars().map(|letter| {
        let starts = if previous.is_ascii() {
            !previous.is_ascii_alphanumeric() && previous != '_'
        } else {
            !previous.is_alphanumeric() && previous.is_whitespace()
        };
        previous = letter;
        if starts { upper(letter) } else { letter }
    });
    let text = text.collect();
    store.text(text)
}

/// Every word gets a small first letter, words being separated by white space.
fn untitle<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    let mut previous = ' ';
    let text = a[0].as_text().chars().map(|letter| {
        let starts = previous.is_whitespace();
        previous = letter;
        if starts { lower(letter) } else { letter }
    });
    let text = text.collect();
    store.text(text)
}

fn trim_all<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    let letters = a[0].as_text();
    part(store, a[1].as_text().trim_matches(|letter| letters.contains(letter)))
}

fn replace<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    let (old, new, text) = (a[0].as_text(), a[1].as_text(), a[2].as_text());
    let found = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    store.charge(text.len() + found.saturating_mul(new.len()))?;
    Ok(Value::text(text.replace(old, new)))
}

fn repeat<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    let text = a[1].as_text();
    let Ok(count) = usize::try_from(a[0].as_int()) else {
        return failure("repeat", "the count is negative");
    };
    store.charge(count.saturating_mul(text.len()))?;
    Ok(Value::text(text.repeat(count)))
}

fn cut<'d>(
    store: &mut Store<'d>,
    function: &'static str,
    text: &str,
    start: usize,
    end: usize,
) -> Evaluated<'d> {
    if start > end || end > text.len() {
        return failure(function, "the position is out of range");
    }
    match text.get(start..end) {
        Some(part) => store.text(part.to_owned()),
        None => failure(function, "the position is inside of a character"),
    }
}

fn substr<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    let text = a[2].as_text();
    let (start, end) = (usize::try_from(a[0].as_int()), usize::try_from(a[1].as_int()));
    match (start, end) {
        (Err(_), Ok(end)) => cut(store, "substr", text, 0, end),
        (Err(_), Err(_)) => failure("substr", "the position is out of range"),
        (Ok(start), end) => {
            let end = end.ok().filter(|end| *end <= text.len()).unwrap_or(text.len());
            cut(store, "substr", text, start, end)
        }
    }
}

fn trunc<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    let text = a[1].as_text();
    let count = a[0].as_int();
    let bytes = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if bytes >= text.len() {
        return Ok(a[1].clone());
    }
    if count < 0 {
        return cut(store, "trunc", text, text.len() - bytes, text.len());
    }
    cut(store, "trunc", text, 0, bytes)
}

fn indent<'d>(store: &mut Store<'d>, a: &[Value<'d>], function: &'static str, before: &str) -> Evaluated<'d> {
    let text = a[1].as_text();
    let Ok(spaces) = usize::try_from(a[0].as_int()) else {
        return failure(function, "the number of spaces is negative");
    };
    let lines = text.matches('\n').count() + 1;
    store.charge(text.len() + lines.saturating_mul(spaces))?;
    let pad = " ".repeat(spaces.min(limits::INTERMEDIATE_BYTES));
    Ok(Value::text(format!("{before}{pad}{}", text.replace('\n', &format!("\n{pad}")))))
}

fn quoted<'d>(store: &mut Store<'d>, a: &[Value<'d>], quote: fn(&str) -> String) -> Evaluated<'d> {
    let mut shown = Vec::new();
    for value in a.iter().filter(|value| !value.is_nil()) {
        let text = quote(&store.display(value)?);
        store.charge(text.len())?;
        shown.push(text);
    }
    Ok(Value::text(shown.join(" ")))
}

/// Go's `strings.Split` and `strings.SplitN`; the pieces are paid for before they are made.
fn pieces(store: &Store<'_>, text: &str, separator: &str, most: Option<i64>) -> Result<Vec<String>, Cause> {
    let most = match most {
        Some(0) => return Ok(Vec::new()),
        Some(most) => usize::try_from(most).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    let count = if separator.is_empty() { text.chars().count() } else { text.matches(separator).count() + 1 };
    store.charge(count.saturating_mul(PIECE))?;
    if !separator.is_empty() {
        return Ok(text.splitn(most, separator).map(str::to_owned).collect());
    }
    let mut parts: Vec<String> = text.chars().map(String::from).collect();
    if parts.len() > most {
        let rest = parts.split_off(most.saturating_sub(1)).concat();
        parts.push(rest);
    }
    Ok(parts)
}

fn numbered<'d>(store: &mut Store<'d>, parts: Vec<String>) -> Evaluated<'d> {
    let mut entries = BTreeMap::new();
    for (index, part) in parts.into_iter().enumerate() {
        let value = store.text(part)?;
        entries.insert(TemplateText::Shared(format!("_{index}").into()), value);
    }
    store.dict(Element::Text, entries)
}
