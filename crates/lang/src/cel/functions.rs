//! The functions an expression may call: CEL's own, the string and list functions Kubernetes adds, and optionals.
//! None of them knows the time, the environment or chance.

use std::cmp::Ordering;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use super::meter::{Fault, Meter, types};
use super::node::Binary;
use super::operators;
use super::value::{CelList, CelValue};
use super::{CompileProblem, EvaluateProblem};

/// A function, whichever way it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CelFunction {
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
type Signature = (&'static str, bool, usize, usize, CelFunction);

const SIGNATURES: &[Signature] = &[
    ("size", false, 1, 1, CelFunction::Size),
    ("size", true, 1, 1, CelFunction::Size),
    ("contains", true, 2, 2, CelFunction::Contains),
    ("startsWith", true, 2, 2, CelFunction::StartsWith),
    ("endsWith", true, 2, 2, CelFunction::EndsWith),
    ("matches", false, 2, 2, CelFunction::Matches),
    ("matches", true, 2, 2, CelFunction::Matches),
    ("lowerAscii", true, 1, 1, CelFunction::LowerAscii),
    ("upperAscii", true, 1, 1, CelFunction::UpperAscii),
    ("trim", true, 1, 1, CelFunction::Trim),
    ("split", true, 2, 2, CelFunction::Split),
    ("join", true, 1, 2, CelFunction::Join),
    ("replace", true, 3, 3, CelFunction::Replace),
    ("substring", true, 2, 3, CelFunction::Substring),
    ("indexOf", true, 2, 2, CelFunction::IndexOf),
    ("sum", true, 1, 1, CelFunction::Sum),
    ("min", true, 1, 1, CelFunction::Min),
    ("max", true, 1, 1, CelFunction::Max),
    ("int", false, 1, 1, CelFunction::Int),
    ("uint", false, 1, 1, CelFunction::Uint),
    ("double", false, 1, 1, CelFunction::Double),
    ("string", false, 1, 1, CelFunction::String),
    ("bool", false, 1, 1, CelFunction::Bool),
    ("dyn", false, 1, 1, CelFunction::Dyn),
    ("type", false, 1, 1, CelFunction::Type),
    ("timestamp", false, 1, 1, CelFunction::Timestamp),
    ("duration", false, 1, 1, CelFunction::Duration),
    ("optional.of", false, 1, 1, CelFunction::OptionalOf),
    ("optional.none", false, 0, 0, CelFunction::OptionalNone),
    ("hasValue", true, 1, 1, CelFunction::HasValue),
    ("value", true, 1, 1, CelFunction::ValueOf),
    ("or", true, 2, 2, CelFunction::Or),
    ("orValue", true, 2, 2, CelFunction::OrValue),
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
pub(super) fn find(name: &str, member: bool, arguments: usize) -> Option<CelFunction> {
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
    function: CelFunction,
    arguments: &[CelValue<'a>],
) -> Result<CelValue<'a>, Fault> {
    match arguments {
        [] => Ok(CelValue::Optional(None)),
        [only] => unary(meter, function, only),
        [CelValue::String(text), rest @ ..] => on_text(meter, function, text.as_str(), arguments, rest),
        [CelValue::Optional(inner), other] if matches!(function, CelFunction::Or | CelFunction::OrValue) => {
            match (inner, function) {
                (Some(inner), CelFunction::OrValue) => Ok(inner.as_ref().clone()),
                (Some(_), _) => Ok(arguments[0].clone()),
                (None, _) => Ok(other.clone()),
            }
        }
        [CelValue::List(list), CelValue::String(separator)] if function == CelFunction::Join => {
            join(meter, list, separator.as_str())
        }
        _ => Err(mismatch(function, arguments)),
    }
}

fn mismatch(function: CelFunction, arguments: &[CelValue<'_>]) -> Fault {
    types(name(function), &arguments.iter().collect::<Vec<_>>())
}

fn name(function: CelFunction) -> &'static str {
    SIGNATURES.iter().find(|signature| signature.4 == function).map_or("function", |signature| signature.0)
}

fn unary<'a>(meter: &mut Meter, function: CelFunction, value: &CelValue<'a>) -> Result<CelValue<'a>, Fault> {
    let length = |length: usize| Ok(CelValue::Int(i64::try_from(length).unwrap_or(i64::MAX)));
    match (function, value) {
        (CelFunction::Size, CelValue::String(text)) => {
            meter.text(text.as_str().len())?;
            length(text.as_str().chars().count())
        }
        (CelFunction::Size, CelValue::List(list)) => length(list.len()),
        (CelFunction::Size, CelValue::Map(map)) => length(map.len()),
        (CelFunction::LowerAscii, CelValue::String(text)) => {
            meter.string(&text.as_str().to_ascii_lowercase())
        }
        (CelFunction::UpperAscii, CelValue::String(text)) => {
            meter.string(&text.as_str().to_ascii_uppercase())
        }
        (CelFunction::Trim, CelValue::String(text)) => meter.string(text.as_str().trim()),
        (CelFunction::Join, CelValue::List(list)) => join(meter, list, ""),
        (CelFunction::Sum, CelValue::List(list)) => {
            meter.steps(list.len())?;
            let mut items = list.iter();
            let first = items.next().unwrap_or(CelValue::Int(0));
            items.try_fold(first, |sum, item| operators::binary(meter, Binary::Add, &sum, &item))
        }
        (CelFunction::Min, CelValue::List(list)) => extreme(meter, list, Binary::Less, Ordering::Less),
        (CelFunction::Max, CelValue::List(list)) => extreme(meter, list, Binary::Greater, Ordering::Greater),
        (CelFunction::Dyn, value) => Ok(value.clone()),
        (CelFunction::Type, value) => Ok(CelValue::Type(value.type_name())),
        (CelFunction::OptionalOf, value) => {
            meter.make_list(1)?;
            Ok(CelValue::Optional(Some(Rc::new(value.clone()))))
        }
        (CelFunction::HasValue, CelValue::Optional(inner)) => Ok(CelValue::Bool(inner.is_some())),
        (CelFunction::ValueOf, CelValue::Optional(inner)) => inner.as_deref().cloned().ok_or(Fault::Missing),
        (
            CelFunction::Int
            | CelFunction::Uint
            | CelFunction::Double
            | CelFunction::String
            | CelFunction::Bool
            | CelFunction::Timestamp
            | CelFunction::Duration,
            _,
        ) => convert(meter, function, value),
        _ => Err(mismatch(function, std::slice::from_ref(value))),
    }
}

fn on_text<'a>(
    meter: &mut Meter,
    function: CelFunction,
    text: &str,
    arguments: &[CelValue<'a>],
    rest: &[CelValue<'a>],
) -> Result<CelValue<'a>, Fault> {
    // Searching costs as if every byte were looked at once: the standard library's search is linear.
    meter.text(text.len())?;
    match (function, rest) {
        (CelFunction::Contains, [CelValue::String(part)]) => Ok(CelValue::Bool(text.contains(part.as_str()))),
        (CelFunction::StartsWith, [CelValue::String(part)]) => {
            Ok(CelValue::Bool(text.starts_with(part.as_str())))
        }
        (CelFunction::EndsWith, [CelValue::String(part)]) => {
            Ok(CelValue::Bool(text.ends_with(part.as_str())))
        }
        (CelFunction::IndexOf, [CelValue::String(part)]) => Ok(CelValue::Int(
            text.find(part.as_str())
                .and_then(|byte| i64::try_from(text[..byte].chars().count()).ok())
                .unwrap_or(-1),
        )),
        (CelFunction::Split, [CelValue::String(separator)]) => {
            let separator = separator.as_str();
            let parts =
                if separator.is_empty() { text.chars().count() } else { text.matches(separator).count() + 1 };
            // Each part is a small allocation of its own.
            meter.make(parts.saturating_mul(16).saturating_add(text.len()))?;
            let parts = if separator.is_empty() {
                text.chars().map(|character| CelValue::made(character.encode_utf8(&mut [0; 4]))).collect()
            } else {
                text.split(separator).map(CelValue::made).collect()
            };
            meter.list(parts)
        }
        (CelFunction::Replace, [CelValue::String(from), CelValue::String(to)]) => {
            let (from, to) = (from.as_str(), to.as_str());
            let found = text.matches(from).count();
            meter.make(text.len().saturating_add(found.saturating_mul(to.len())))?;
            Ok(CelValue::made(&text.replace(from, to)))
        }
        (CelFunction::Substring, [CelValue::Int(start)]) => {
            substring(meter, text, *start, None).ok_or(EvaluateProblem::Overflow("substring"))?
        }
        (CelFunction::Substring, [CelValue::Int(start), CelValue::Int(end)]) => {
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
) -> Option<Result<CelValue<'a>, Fault>> {
    let place = |characters: i64| -> Option<usize> {
        let characters = usize::try_from(characters).ok()?;
        let ends = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
        ends.into_iter().nth(characters)
    };
    let end = end.map_or(Some(text.len()), place)?;
    Some(meter.string(text.get(place(start)?..end)?))
}

fn join<'a>(meter: &mut Meter, list: &CelList<'a>, separator: &str) -> Result<CelValue<'a>, Fault> {
    let mut bytes = 0_usize;
    for item in list.iter() {
        let CelValue::String(text) = &item else {
            return Err(types("join", &[&item]));
        };
        bytes = bytes.saturating_add(text.as_str().len() + separator.len());
    }
    meter.steps(list.len())?;
    meter.make(bytes)?;
    let mut joined = String::with_capacity(bytes);
    for (index, item) in list.iter().enumerate() {
        if let CelValue::String(text) = &item {
            joined.push_str(if index == 0 { "" } else { separator });
            joined.push_str(text.as_str());
        }
    }
    Ok(CelValue::made(&joined))
}

/// The least or greatest element. An empty list has none: the data is not there yet.
fn extreme<'a>(
    meter: &mut Meter,
    list: &CelList<'a>,
    operator: Binary,
    better: Ordering,
) -> Result<CelValue<'a>, Fault> {
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

fn convert<'a>(
    meter: &mut Meter,
    function: CelFunction,
    value: &CelValue<'a>,
) -> Result<CelValue<'a>, Fault> {
    if let CelValue::String(text) = value {
        meter.text(text.as_str().len())?;
    }
    let unreadable =
        || Fault::Wrong(EvaluateProblem::Conversion { function: name(function), from: value.type_name() });
    match (function, value) {
        (CelFunction::Int, CelValue::Int(_))
        | (CelFunction::Uint, CelValue::Uint(_))
        | (CelFunction::Double, CelValue::Double(_))
        | (CelFunction::String, CelValue::String(_))
        | (CelFunction::Bool, CelValue::Bool(_))
        | (CelFunction::Timestamp, CelValue::Timestamp(_))
        | (CelFunction::Duration, CelValue::Duration(_)) => Ok(value.clone()),
        (CelFunction::Int, CelValue::Uint(number)) => {
            i64::try_from(*number).map(CelValue::Int).map_err(|_| unreadable())
        }
        (CelFunction::Int, CelValue::Double(number)) => whole(*number)
            .and_then(|number| i64::try_from(number).ok())
            .map(CelValue::Int)
            .ok_or_else(unreadable),
        (CelFunction::Int, CelValue::String(text)) => {
            text.as_str().parse().map(CelValue::Int).map_err(|_| unreadable())
        }
        (CelFunction::Int, CelValue::Timestamp(time)) => Ok(CelValue::Int(time.as_second())),
        (CelFunction::Uint, CelValue::Int(number)) => {
            u64::try_from(*number).map(CelValue::Uint).map_err(|_| unreadable())
        }
        (CelFunction::Uint, CelValue::Double(number)) => whole(*number)
            .and_then(|number| u64::try_from(number).ok())
            .map(CelValue::Uint)
            .ok_or_else(unreadable),
        (CelFunction::Uint, CelValue::String(text)) => {
            text.as_str().parse().map(CelValue::Uint).map_err(|_| unreadable())
        }
        #[allow(clippy::cast_precision_loss)]
        (CelFunction::Double, CelValue::Int(number)) => Ok(CelValue::Double(*number as f64)),
        #[allow(clippy::cast_precision_loss)]
        (CelFunction::Double, CelValue::Uint(number)) => Ok(CelValue::Double(*number as f64)),
        (CelFunction::Double, CelValue::String(text)) => {
            text.as_str().parse().map(CelValue::Double).map_err(|_| unreadable())
        }
        (CelFunction::String, CelValue::Int(number)) => meter.string(&number.to_string()),
        (CelFunction::String, CelValue::Uint(number)) => meter.string(&number.to_string()),
        (CelFunction::String, CelValue::Double(number)) => meter.string(&number.to_string()),
        (CelFunction::String, CelValue::Bool(value)) => meter.string(&value.to_string()),
        (CelFunction::String, CelValue::Timestamp(time)) => meter.string(&time.to_string()),
        (CelFunction::String, CelValue::Duration(span)) => {
            let seconds = span.as_secs_f64();
            meter.string(&format!("{seconds}s"))
        }
        (CelFunction::Bool, CelValue::String(text)) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(CelValue::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(CelValue::Bool(false)),
            _ => Err(unreadable()),
        },
        (CelFunction::Timestamp, CelValue::String(text)) => timestamp(text.as_str()).ok_or_else(unreadable),
        (CelFunction::Timestamp, CelValue::Int(seconds)) => {
            Timestamp::from_second(*seconds).map(CelValue::Timestamp).map_err(|_| unreadable())
        }
        (CelFunction::Duration, CelValue::String(text)) => duration(text.as_str()).ok_or_else(unreadable),
        _ => Err(mismatch(function, std::slice::from_ref(value))),
    }
}

fn whole(number: f64) -> Option<i128> {
    // Beyond 2^64 nothing fits; below it the cast is exact after truncation.
    #[allow(clippy::cast_possible_truncation)]
    (number.abs() < 2e19).then(|| number.trunc() as i128)
}

fn timestamp<'a>(text: &str) -> Option<CelValue<'a>> {
    if text.len() > 64 {
        return None;
    }
    text.parse().ok().map(CelValue::Timestamp)
}

/// Durations as Go writes them: `1h30m`, `500ms`, `-2s`. The reader below knows more forms; they are kept out.
fn duration<'a>(text: &str) -> Option<CelValue<'a>> {
    let known = |byte: &u8| byte.is_ascii_digit() || b"+-.hmsun".contains(byte);
    if text.len() > 64 || !text.as_bytes().iter().all(known) {
        return None;
    }
    text.parse::<SignedDuration>().ok().map(CelValue::Duration)
}
