//! Times as Go's `time` writes them, always in UTC.
//!
//! The operator has no local zone: a manifest must not depend on where the operator runs. Layouts are Go's
//! reference time (`2006-01-02T15:04:05Z07:00`).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::value::Value;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The layout of `.Now`.
pub(crate) const RFC3339: &str = "2006-01-02T15:04:05Z07:00";

/// A time as `{{ now }}` prints it.
pub(crate) fn display(moment: Timestamp) -> String {
    format(moment, "2006-01-02 15:04:05.999999999 -0700 MST")
}

/// The parts of a layout that have a meaning, the longer ones of equal beginnings first.
const PARTS: [&str; 34] = [
    "January",
    "Jan",
    "Monday",
    "Mon",
    "MST",
    "2006",
    "002",
    "01",
    "02",
    "03",
    "04",
    "05",
    "06",
    "__2",
    "_2006",
    "_2",
    "15",
    "PM",
    "pm",
    "-07:00:00",
    "-070000",
    "-07:00",
    "-0700",
    "-07",
    "Z07:00:00",
    "Z070000",
    "Z07:00",
    "Z0700",
    "Z07",
    "1",
    "2",
    "3",
    "4",
    "5",
];

/// A time in a Go layout.
pub(crate) fn format(moment: Timestamp, layout: &str) -> String {
    let time = Offset::UTC.to_datetime(moment);
    let mut out = String::with_capacity(layout.len() + 8);
    let mut rest = layout;
    while !rest.is_empty() {
        if let Some(length) = fraction(rest) {
            push_fraction(&mut out, &rest[..length], time.subsec_nanosecond());
            rest = &rest[length..];
            continue;
        }
        let part = PARTS.iter().find(|part| rest.starts_with(**part) && is_whole(part, rest));
        if let Some(part) = part {
            push_part(&mut out, part, time);
            rest = &rest[part.len()..];
        } else {
            let letter = rest.chars().next().unwrap_or_default();
            out.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    out
}

/// Go does not take `Jan` for a month at the beginning of a longer lower-case word.
fn is_whole(part: &str, rest: &str) -> bool {
    match part {
        "Jan" | "Mon" => !rest[part.len()..].starts_with(|letter: char| letter.is_ascii_lowercase()),
        _ => true,
    }
}

/// The length of `.000` or `.999` (or with a comma), which ends where no other digit follows.
fn fraction(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    if !matches!(bytes.first()?, b'.' | b',') {
        return None;
    }
    let digit = *bytes.get(1)?;
    if digit != b'0' && digit != b'9' {
        return None;
    }
    let length = 1 + bytes[1..].iter().take_while(|byte| **byte == digit).count();
    (!bytes.get(length).is_some_and(u8::is_ascii_digit)).then_some(length)
}

fn push_fraction(out: &mut String, part: &str, nanoseconds: i32) {
    let digits = format!("{nanoseconds:09}");
    let wanted = (part.len() - 1).min(9);
    let shown = &digits[..wanted];
    if part.ends_with('9') {
        let trimmed = shown.trim_end_matches('0');
        if !trimmed.is_empty() {
            out.push_str(&part[..1]);
            out.push_str(trimmed);
        }
        return;
    }
    out.push_str(&part[..1]);
    out.push_str(shown);
}

fn name(names: &'static [&'static str], position: i8) -> &'static str {
    usize::try_from(position - 1).ok().and_then(|index| names.get(index)).copied().unwrap_or_default()
}

fn push_part(out: &mut String, part: &str, time: DateTime) {
    let hour = time.hour();
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let month = name(&MONTHS, time.month());
    let day = name(&DAYS, time.weekday().to_monday_one_offset());
    let text = match part {
        "January" => month.to_owned(),
        "Jan" => month[..3].to_owned(),
        "1" => time.month().to_string(),
        "01" => format!("{:02}", time.month()),
        "Monday" => day.to_owned(),
        "Mon" => day[..3].to_owned(),
        "2" => time.day().to_string(),
        "_2" => format!("{:2}", time.day()),
        "02" => format!("{:02}", time.day()),
        "__2" => format!("{:3}", time.day_of_year()),
        "002" => format!("{:03}", time.day_of_year()),
        "15" => format!("{hour:02}"),
        "3" => twelve.to_string(),
        "03" => format!("{twelve:02}"),
        "4" => time.minute().to_string(),
        "04" => format!("{:02}", time.minute()),
        "5" => time.second().to_string(),
        "05" => format!("{:02}", time.second()),
        "2006" => format!("{:04}", time.year()),
        "_2006" => format!("_{:04}", time.year()),
        "06" => format!("{:02}", time.year() % 100),
        "PM" => if hour >= 12 { "PM" } else { "AM" }.to_owned(),
        "pm" => if hour >= 12 { "pm" } else { "am" }.to_owned(),
        "MST" => "UTC".to_owned(),
        "-0700" => "+0000".to_owned(),
        "-07:00" => "+00:00".to_owned(),
        "-07" => "+00".to_owned(),
        "-070000" => "+000000".to_owned(),
        "-07:00:00" => "+00:00:00".to_owned(),
        _ => "Z".to_owned(),
    };
    out.push_str(&text);
}

/// Reads a duration such as `-1.5h` or `1h30m`, as Go's `time.ParseDuration`, in nanoseconds.
pub(crate) fn duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: f64 = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let number: f64 = rest[..length].parse().ok()?;
        rest = &rest[length..];
        let unit = rest.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(rest.len());
        total += number
            * match &rest[..unit] {
                "ns" => 1.0,
                "us" | "µs" | "μs" => 1e3,
                "ms" => 1e6,
                "s" => 1e9,
                "m" => 60e9,
                "h" => 3600e9,
                _ => return None,
            };
        rest = &rest[unit..];
    }
    #[allow(clippy::cast_possible_truncation, reason = "checked to be in range on the line above")]
    (total < 9.2e18).then_some(if negative { -total as i64 } else { total as i64 })
}

/// The parts of a time that a template can take with `.Year` and the like.
pub(crate) fn part<'d>(moment: Timestamp, name: &str) -> Option<Value<'d>> {
    let time = Offset::UTC.to_datetime(moment);
    Some(match name {
        "Year" => Value::Int(i64::from(time.year())),
        "Day" => Value::Int(i64::from(time.day())),
        "YearDay" => Value::Int(i64::from(time.day_of_year())),
        "Hour" => Value::Int(i64::from(time.hour())),
        "Minute" => Value::Int(i64::from(time.minute())),
        "Second" => Value::Int(i64::from(time.second())),
        "Nanosecond" => Value::Int(i64::from(time.subsec_nanosecond())),
        "Unix" => Value::Int64(moment.as_second()),
        "UnixMilli" => Value::Int64(moment.as_millisecond()),
        "UTC" => Value::Moment(moment),
        _ => return None,
    })
}
