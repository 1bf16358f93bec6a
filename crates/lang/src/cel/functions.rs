//! The functions an expression may call: CEL's own, the string and list functions Kubernetes adds, and optionals.
//! None of them knows the time, the environment or chance.

use std::cmp::Ordering;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use super::meter::{Fault, Meter, types};
use super::node::Binary;
use super::operators;
use super::value::{List, Value};
use super::{CompileProblem, EvaluateProblem};

/// A function, whichever way it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    LowerAscii,
    UpperAscii,
    Trim,
    Split,
    Join,
    Replace,
    Substring,
    IndexOf,
    Sum,
    Min,
    Max,
    Int,
    Uint,
    Double,
    String,
    Bool,
    Dyn,
    Type,
    Timestamp,
    Duration,
    OptionalOf,
    OptionalNone,
    HasValue,
    ValueOf,
    Or,
    OrValue,
}

/// Name, whether it is called on a value, how many arguments at least and at most (that value included), function.
type Signature = (&'static str, bool, usize, usize, Function);

const SIGNATURES: &[Signature] = &[
    ("size", false, 1, 1, Function::Size),
    ("size", true, 1, 1, Function::Size),
    ("contains", true, 2, 2, Function::Contains),
    ("startsWith", true, 2, 2, Function::StartsWith),
    ("endsWith", true, 2, 2, Function::EndsWith),
    ("matches", false, 2, 2, Function::Matches),
    ("matches", true, 2, 2, Function::Matches),
    ("lowerAscii", true, 1, 1, Function::LowerAscii),
    ("upperAscii", true, 1, 1, Function::UpperAscii),
    ("trim", true, 1, 1, Function::Trim),
    ("split", true, 2, 2, Function::Split),
    ("join", true, 1, 2, Function::Join),
    ("replace", true, 3, 3, Function::Replace),
    ("substring", true, 2, 3, Function::Substring),
    ("indexOf", true, 2, 2, Function::IndexOf),
    ("sum", true, 1, 1, Function::Sum),
    ("min", true, 1, 1, Function::Min),
    ("max", true, 1, 1, Function::Max),
    ("int", false, 1, 1, Function::Int),
    ("uint", false, 1, 1, Function::Uint),
    ("double", false, 1, 1, Function::Double),
    ("string", false, 1, 1, Function::String),
    ("bool", false, 1, 1, Function::Bool),
    ("dyn", false, 1, 1, Function::Dyn),
    ("type", false, 1, 1, Function::Type),
    ("timestamp", false, 1, 1, Function::Timestamp),
    ("duration", false, 1, 1, Function::Duration),
    ("optional.of", false, 1, 1, Function::OptionalOf),
    ("optional.none", false, 0, 0, Function::OptionalNone),
    ("hasValue", true, 1, 1, Function::HasValue),
    ("value", true, 1, 1, Function::ValueOf),
    ("or", true, 2, 2, Function::Or),
    ("orValue", true, 2, 2, Function::OrValue),
];

/// The forms of the macros, which the parser knows by itself.
const MACROS: [(&str, &str); 7] = [
    ("all", ".all(x, test)"),
    ("exists", ".exists(x, test)"),
    ("exists_one", ".exists_one(x, test)"),
    ("filter", ".filter(x, test)"),
    ("has", "has(x.field)"),
    ("map", ".map(x, value)"),
    ("existsOne", ".existsOne(x, test)"),
];

/// The function of this name that takes this many arguments.
pub(super) fn find(name: &str, member: bool, arguments: usize) -> Option<Function> {
    SIGNATURES
        .iter()
        .find(|&&(known, on_value, least, most, _)| {
            known == name && on_value == member && (least..=most).contains(&arguments)
        })
        .map(|&(.., function)| function)
}

/// How a loop of this name is written, if there is one.
pub(super) fn loop_form(name: &str) -> Option<&'static str> {
    MACROS.iter().find(|&&(known, _)| known == name && known != "has").map(|&(_, form)| form)
}

/// What to say about a call that does not exist in this form.
pub(super) fn unknown(name: &str, member: bool, arguments: usize) -> CompileProblem {
    let forms = forms(name);
    let hint = if !forms.is_empty() {
        format!("; use {}", forms.join(" or "))
    } else if name == "now" {
        "; there is no clock in conditions: use a timeout".to_owned()
    } else {
        format!("; there are {}", names().join(", "))
    };
    let dot = if member { "." } else { "" };
    let name: String = name.chars().take(64).collect();
    let plural = if arguments == 1 { "" } else { "s" };
    CompileProblem::UnknownFunction { call: format!("{dot}{name}() with {arguments} argument{plural}"), hint }
}

/// The forms in which a name can be called.
fn forms(name: &str) -> Vec<String> {
    let functions =
        SIGNATURES.iter().filter(|signature| signature.0 == name).map(|&(_, member, least, most, _)| {
            let own = usize::from(member);
            let count = if least == most {
                format!("{}", least - own)
            } else {
                format!("{} or {}", least - own, most - own)
            };
            format!("{}{name}() with {count} argument(s)", if member { "." } else { "" })
        });
    let macros = MACROS.iter().filter(|&&(known, _)| known == name).map(|&(_, form)| form.to_owned());
    functions.chain(macros).collect()
}

/// All names, sorted.
fn names() -> Vec<&'static str> {
    let mut names: Vec<_> =
        SIGNATURES.iter().map(|signature| signature.0).chain(MACROS.map(|(name, _)| name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Calls a function. `matches` is not called this way: its pattern is part of the tree.
pub(super) fn call<'a>(
    meter: &mut Meter,
    function: Function,
    arguments: &[Value<'a>],
) -> Result<Value<'a>, Fault> {
    match arguments {
        [] => Ok(Value::Optional(None)),
        [only] => unary(meter, function, only),
        [Value::String(text), rest @ ..] => on_text(meter, function, text.as_str(), arguments, rest),
        [Value::Optional(inner), other] if matches!(function, Function::Or | Function::OrValue) => {
            match (inner, function) {
                (Some(inner), Function::OrValue) => Ok(inner.as_ref().clone()),
                (Some(_), _) => Ok(arguments[0].clone()),
                (None, _) => Ok(other.clone()),
            }
        }
        [Value::List(list), Value::String(separator)] if function == Function::Join => {
            join(meter, list, separator.as_str())
        }
        _ => Err(mismatch(function, arguments)),
    }
}

fn mismatch(function: Function, arguments: &[Value<'_>]) -> Fault {
    types(name(function), &arguments.iter().collect::<Vec<_>>())
}

fn name(function: Function) -> &'static str {
    SIGNATURES.iter().find(|signature| signature.4 == function).map_or("function", |signature| signature.0)
}

fn unary<'a>(meter: &mut Meter, function: Function, value: &Value<'a>) -> Result<Value<'a>, Fault> {
    let length = |length: usize| Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)));
    match (function, value) {
        (Function::Size, Value::String(text)) => {
            meter.text(text.as_str().len())?;
            length(text.as_str().chars().count())
        }
        (Function::Size, Value::List(list)) => length(list.len()),
        (Function::Size, Value::Map(map)) => length(map.len()),
        (Function::LowerAscii, Value::String(text)) => meter.string(&text.as_str().to_ascii_lowercase()),
        (Function::UpperAscii, Value::String(text)) => meter.string(&text.as_str().to_ascii_uppercase()),
        (Function::Trim, Value::String(text)) => meter.string(text.as_str().trim()),
        (Function::Join, Value::List(list)) => join(meter, list, ""),
        (Function::Sum, Value::List(list)) => {
            meter.steps(list.len())?;
            let mut items = list.iter();
            let first = items.next().unwrap_or(Value::Int(0));
            items.try_fold(first, |sum, item| operators::binary(meter, Binary::Add, &sum, &item))
        }
        (Function::Min, Value::List(list)) => extreme(meter, list, Binary::Less, Ordering::Less),
        (Function::Max, Value::List(list)) => extreme(meter, list, Binary::Greater, Ordering::Greater),
        (Function::Dyn, value) => Ok(value.clone()),
        (Function::Type, value) => Ok(Value::Type(value.type_name())),
        (Function::OptionalOf, value) => {
            meter.make_list(1)?;
            Ok(Value::Optional(Some(Rc::new(value.clone()))))
        }
        (Function::HasValue, Value::Optional(inner)) => Ok(Value::Bool(inner.is_some())),
        (Function::ValueOf, Value::Optional(inner)) => inner.as_deref().cloned().ok_or(Fault::Missing),
        (
            Function::Int
            | Function::Uint
            | Function::Double
            | Function::String
            | Function::Bool
            | Function::Timestamp
            | Function::Duration,
            _,
        ) => convert(meter, function, value),
        _ => Err(mismatch(function, std::slice::from_ref(value))),
    }
}

fn on_text<'a>(
    meter: &mut Meter,
    function: Function,
    text: &str,
    arguments: &[Value<'a>],
    rest: &[Value<'a>],
) -> Result<Value<'a>, Fault> {
    // Searching costs as if every byte were looked at once: the standard library's search is linear.
    meter.text(text.len())?;
    match (function, rest) {
        (Function::Contains, [Value::String(part)]) => Ok(Value::Bool(text.contains(part.as_str()))),
        (Function::StartsWith, [Value::String(part)]) => Ok(Value::Bool(text.starts_with(part.as_str()))),
        (Function::EndsWith, [Value::String(part)]) => Ok(Value::Bool(text.ends_with(part.as_str()))),
        (Function::IndexOf, [Value::String(part)]) => Ok(Value::Int(
            text.find(part.as_str())
                .and_then(|byte| i64::try_from(text[..byte].chars().count()).ok())
                .unwrap_or(-1),
        )),
        (Function::Split, [Value::String(separator)]) => {
            let separator = separator.as_str();
            let parts =
                if separator.is_empty() { text.chars().count() } else { text.matches(separator).count() + 1 };
            // Each part is a small allocation of its own.
            meter.make(parts.saturating_mul(16).saturating_add(text.len()))?;
            let parts = if separator.is_empty() {
                text.chars().map(|character| Value::made(character.encode_utf8(&mut [0; 4]))).collect()
            } else {
                text.split(separator).map(Value::made).collect()
            };
            meter.list(parts)
        }
        (Function::Replace, [Value::String(from), Value::String(to)]) => {
            let (from, to) = (from.as_str(), to.as_str());
            let found = text.matches(from).count();
            meter.make(text.len().saturating_add(found.saturating_mul(to.len())))?;
            Ok(Value::made(&text.replace(from, to)))
        }
        (Function::Substring, [Value::Int(start)]) => {
            substring(meter, text, *start, None).ok_or(EvaluateProblem::Overflow("substring"))?
        }
        (Function::Substring, [Value::Int(start), Value::Int(end)]) => {
            substring(meter, text, *start, Some(*end)).ok_or(EvaluateProblem::Overflow("substring"))?
        }
        _ => Err(mismatch(function, arguments)),
    }
}

/// The characters from `start` up to `end`; `None` when the text has no such places.
fn substring<'a>(
    meter: &mut Meter,
    text: &str,
    start: i64,
    end: Option<i64>,
) -> Option<Result<Value<'a>, Fault>> {
    let place = |characters: i64| -> Option<usize> {
        let characters = usize::try_from(characters).ok()?;
        let ends = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
        ends.into_iter().nth(characters)
    };
    let end = end.map_or(Some(text.len()), place)?;
    Some(meter.string(text.get(place(start)?..end)?))
}

fn join<'a>(meter: &mut Meter, list: &List<'a>, separator: &str) -> Result<Value<'a>, Fault> {
    let mut bytes = 0_usize;
    for item in list.iter() {
        let Value::String(text) = &item else {
            return Err(types("join", &[&item]));
        };
        bytes = bytes.saturating_add(text.as_str().len() + separator.len());
    }
    meter.steps(list.len())?;
    meter.make(bytes)?;
    let mut joined = String::with_capacity(bytes);
    for (index, item) in list.iter().enumerate() {
        if let Value::String(text) = &item {
            joined.push_str(if index == 0 { "" } else { separator });
            joined.push_str(text.as_str());
        }
    }
    Ok(Value::made(&joined))
}

/// The least or greatest element. An empty list has none: the data is not there yet.
fn extreme<'a>(
    meter: &mut Meter,
    list: &List<'a>,
    operator: Binary,
    better: Ordering,
) -> Result<Value<'a>, Fault> {
    meter.steps(list.len())?;
    let mut items = list.iter();
    let mut best = items.next().ok_or(Fault::Missing)?;
    for item in items {
        if operators::compare(meter, operator, &item, &best)? == Some(better) {
            best = item;
        }
    }
    Ok(best)
}

fn convert<'a>(meter: &mut Meter, function: Function, value: &Value<'a>) -> Result<Value<'a>, Fault> {
    if let Value::String(text) = value {
        meter.text(text.as_str().len())?;
    }
    let unreadable =
        || Fault::Wrong(EvaluateProblem::Conversion { function: name(function), from: value.type_name() });
    match (function, value) {
        (Function::Int, Value::Int(_))
        | (Function::Uint, Value::Uint(_))
        | (Function::Double, Value::Double(_))
        | (Function::String, Value::String(_))
        | (Function::Bool, Value::Bool(_))
        | (Function::Timestamp, Value::Timestamp(_))
        | (Function::Duration, Value::Duration(_)) => Ok(value.clone()),
        (Function::Int, Value::Uint(number)) => {
            i64::try_from(*number).map(Value::Int).map_err(|_| unreadable())
        }
        (Function::Int, Value::Double(number)) => whole(*number)
            .and_then(|number| i64::try_from(number).ok())
            .map(Value::Int)
            .ok_or_else(unreadable),
        (Function::Int, Value::String(text)) => {
            text.as_str().parse().map(Value::Int).map_err(|_| unreadable())
        }
        (Function::Int, Value::Timestamp(time)) => Ok(Value::Int(time.as_second())),
        (Function::Uint, Value::Int(number)) => {
            u64::try_from(*number).map(Value::Uint).map_err(|_| unreadable())
        }
        (Function::Uint, Value::Double(number)) => whole(*number)
            .and_then(|number| u64::try_from(number).ok())
            .map(Value::Uint)
            .ok_or_else(unreadable),
        (Function::Uint, Value::String(text)) => {
            text.as_str().parse().map(Value::Uint).map_err(|_| unreadable())
        }
        #[allow(clippy::cast_precision_loss)]
        (Function::Double, Value::Int(number)) => Ok(Value::Double(*number as f64)),
        #[allow(clippy::cast_precision_loss)]
        (Function::Double, Value::Uint(number)) => Ok(Value::Double(*number as f64)),
        (Function::Double, Value::String(text)) => {
            text.as_str().parse().map(Value::Double).map_err(|_| unreadable())
        }
        (Function::String, Value::Int(number)) => meter.string(&number.to_string()),
        (Function::String, Value::Uint(number)) => meter.string(&number.to_string()),
        (Function::String, Value::Double(number)) => meter.string(&number.to_string()),
        (Function::String, Value::Bool(value)) => meter.string(&value.to_string()),
        (Function::String, Value::Timestamp(time)) => meter.string(&time.to_string()),
        (Function::String, Value::Duration(span)) => {
            let seconds = span.as_secs_f64();
            meter.string(&format!("{seconds}s"))
        }
        (Function::Bool, Value::String(text)) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(unreadable()),
        },
        (Function::Timestamp, Value::String(text)) => timestamp(text.as_str()).ok_or_else(unreadable),
        (Function::Timestamp, Value::Int(seconds)) => {
            Timestamp::from_second(*seconds).map(Value::Timestamp).map_err(|_| unreadable())
        }
        (Function::Duration, Value::String(text)) => duration(text.as_str()).ok_or_else(unreadable),
        _ => Err(mismatch(function, std::slice::from_ref(value))),
    }
}

fn whole(number: f64) -> Option<i128> {
    // Beyond 2^64 nothing fits; below it the cast is exact after truncation.
    #[allow(clippy::cast_possible_truncation)]
    (number.abs() < 2e19).then(|| number.trunc() as i128)
}

fn timestamp<'a>(text: &str) -> Option<Value<'a>> {
    if text.len() > 64 {
        return None;
    }
    text.parse().ok().map(Value::Timestamp)
}

/// Durations as Go writes them: `1h30m`, `500ms`, `-2s`. The reader below knows more forms; they are kept out.
fn duration<'a>(text: &str) -> Option<Value<'a>> {
    let known = |byte: &u8| byte.is_ascii_digit() || b"+-.hmsun".contains(byte);
    if text.len() > 64 || !text.as_bytes().iter().all(known) {
        return None;
    }
    text.parse::<SignedDuration>().ok().map(Value::Duration)
}
