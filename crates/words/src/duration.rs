//! Lengths of time as Go writes them: `2m`, `1m30s`, `500ms`, `1.5h`.
//!
//! [`Period`] is what every timeout, delay and interval of a spec becomes. It is never negative and never longer
//! than ten years ([`limits::PERIOD_SECONDS`]), so arithmetic on it cannot overflow a timestamp that people use.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{limits, text};

/// Units with their length in nanoseconds, as Go spells them; the micro sign exists twice in Unicode.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Digits beyond these are below a nanosecond even in hours.
const FRACTION_DIGITS: usize = 15;

/// A length of time, at least zero and at most ten years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(Duration);

/// Why a text is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing was written.
    #[error("the duration is empty; write for example 30s, 5m or 1m30s")]
    Empty,
    /// A number was expected.
    #[error("{text}: expected a number at character {position}; write for example 30s, 5m or 1m30s")]
    NumberExpected {
        /// The text, quoted.
        text: String,
        /// Where, in characters from 1.
        position: usize,
    },
    /// A number has no unit.
    #[error("{text}: the number at character {position} has no unit; write ns, us, ms, s, m or h after it")]
    UnitMissing {
        /// The text, quoted.
        text: String,
        /// Where the number starts, in characters from 1.
        position: usize,
    },
    /// A unit that is none of ours.
    #[error("{text}: unknown unit {unit} at character {position}; use ns, us, ms, s, m or h (a day is 24h)")]
    UnknownUnit {
        /// The text, quoted.
        text: String,
        /// The unit, quoted.
        unit: String,
        /// Where the unit starts, in characters from 1.
        position: usize,
    },
    /// Less than nothing.
    #[error("{text}: a duration cannot be negative")]
    Negative {
        /// The text, quoted.
        text: String,
    },
    /// More than ten years.
    #[error("{text}: longer than {} hours, the longest duration allowed", limits::PERIOD_SECONDS / 3600)]
    TooLong {
        /// The text, quoted.
        text: String,
    },
}

impl Period {
    /// No time at all.
    pub const ZERO: Self = Self(Duration::ZERO);
    /// The longest one.
    pub const MAX: Self = Self(Duration::from_secs(limits::PERIOD_SECONDS));

    /// So many seconds, at most [`Period::MAX`].
    pub const fn from_secs(seconds: u64) -> Self {
        Self::new(Duration::from_secs(seconds))
    }

    /// So many milliseconds, at most [`Period::MAX`].
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self::new(Duration::from_millis(milliseconds))
    }

    /// A period of that length, at most [`Period::MAX`].
    pub const fn new(length: Duration) -> Self {
        if length.as_secs() >= limits::PERIOD_SECONDS { Self::MAX } else { Self(length) }
    }

    /// Its length.
    pub const fn length(self) -> Duration {
        self.0
    }

    /// Whether it is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    /// Reads Go's notation. Unlike Go it refuses negative values and those over ten years.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let quoted = || text::quote(text);
        let at = |rest: &str| text::position(text, text.len() - rest.len());
        if text.is_empty() {
            return Err(DurationError::Empty);
        }
        if text.starts_with('-') {
            return Err(DurationError::Negative { text: quoted() });
        }
        let mut rest = text.strip_prefix('+').unwrap_or(text);
        if rest == "0" {
            return Ok(Self::ZERO);
        }
        let mut nanoseconds: u128 = 0;
        loop {
            let (whole, after) = digits(rest);
            let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
            if whole.is_empty() && fraction.is_empty() {
                return Err(DurationError::NumberExpected { text: quoted(), position: at(rest) });
            }
            let unit = &after[..after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len())];
            if unit.is_empty() {
                return Err(DurationError::UnitMissing { text: quoted(), position: at(rest) });
            }
            let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                return Err(DurationError::UnknownUnit {
                    text: quoted(),
                    unit: text::quote(unit),
                    position: at(after),
                });
            };
            nanoseconds = whole_part(whole, *length)
                .and_then(|part| part.checked_add(fraction_part(fraction, *length)))
                .and_then(|part| part.checked_add(nanoseconds))
                .filter(|sum| *sum <= Self::MAX.0.as_nanos())
                .ok_or_else(|| DurationError::TooLong { text: quoted() })?;
            rest = &after[unit.len()..];
            if rest.is_empty() {
                break;
            }
        }
        u64::try_from(nanoseconds)
            .map(|exact| Self(Duration::from_nanos(exact)))
            .map_err(|_| DurationError::TooLong { text: quoted() })
    }

    /// As people write it: without parts that are zero (`2m`, where Go prints `2m0s`).
    pub fn brief(self) -> String {
        let full = self.to_string();
        let short = full.strip_suffix("m0s").map_or(full.clone(), |head| format!("{head}m"));
        short.strip_suffix("h0m").map_or(short.clone(), |head| format!("{head}h"))
    }
}

/// The leading digits of `text` and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// `digits` times `unit`, none where it is beyond counting.
fn whole_part(digits: &str, unit: u128) -> Option<u128> {
    if digits.is_empty() {
        return Some(0);
    }
    u128::from(digits.parse::<u64>().ok()?).checked_mul(unit)
}

/// `0.digits` times `unit`, cut to whole nanoseconds as Go does.
fn fraction_part(digits: &str, unit: u128) -> u128 {
    let kept = &digits[..digits.len().min(FRACTION_DIGITS)];
    let mut scale: u128 = 1;
    let mut value: u128 = 0;
    for digit in kept.bytes() {
        scale *= 10;
        value = value * 10 + u128::from(digit - b'0');
    }
    value * unit / scale
}

impl fmt::Display for Period {
    /// Go's notation: `1h30m0s`, `1m30s`, `1.5s`, `500ms`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let fraction = self.0.subsec_nanos();
        if seconds == 0 {
            return match fraction {
                0 => f.write_str("0s"),
                1..1_000 => write!(f, "{fraction}ns"),
                1_000..1_000_000 => write_decimal(f, u64::from(fraction), 1_000, "µs"),
                _ => write_decimal(f, u64::from(fraction), 1_000_000, "ms"),
            };
        }
        if seconds >= 3_600 {
            write!(f, "{}h", seconds / 3_600)?;
        }
        if seconds >= 60 {
            write!(f, "{}m", seconds / 60 % 60)?;
        }
        write_decimal(f, seconds % 60 * 1_000_000_000 + u64::from(fraction), 1_000_000_000, "s")
    }
}

/// Writes `value / unit` with as many decimals as it takes.
fn write_decimal(f: &mut fmt::Formatter<'_>, value: u64, unit: u64, name: &str) -> fmt::Result {
    write!(f, "{}", value / unit)?;
    let mut rest = value % unit;
    let mut place = unit;
    if rest > 0 {
        f.write_str(".")?;
    }
    while rest > 0 {
        place /= 10;
        write!(f, "{}", rest / place)?;
        rest %= place;
    }
    f.write_str(name)
}

impl FromStr for Period {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl From<Period> for Duration {
    fn from(period: Period) -> Self {
        period.0
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> String {
        Period::parse(text).map_or_else(|error| error.to_string(), |period| period.to_string())
    }

    #[test]
    fn durations_read_and_print_as_in_go() {
        // Right-hand sides are what Go's time.ParseDuration and Duration.String give.
        for (text, shown) in [
            ("2m", "2m0s"),
            ("1m30s", "1m30s"),
            ("500ms", "500ms"),
            ("1.5h", "1h30m0s"),
            ("0", "0s"),
            ("0s", "0s"),
            ("+5s", "5s"),
            ("90m", "1h30m0s"),
            (".5s", "500ms"),
            ("1.s", "1s"),
            ("1h0.5s", "1h0m0.5s"),
            ("1500us", "1.5ms"),
            ("1µs", "1µs"),
            ("1μs1ns", "1.001µs"),
            ("1.0000000009s", "1s"),
            ("87600h", "87600h0m0s"),
        ] {
            assert_eq!(parsed(text), shown, "{text}");
        }
    }

    #[test]
    fn a_wrong_duration_is_told_where_and_how_to_write_it() {
        for (text, error) in [
            ("", "the duration is empty; write for example 30s, 5m or 1m30s"),
            ("10", "\"10\": the number at character 1 has no unit; write ns, us, ms, s, m or h after it"),
            ("1m30", "\"1m30\": the number at character 3 has no unit; write ns, us, ms, s, m or h after it"),
            ("1d", "\"1d\": unknown unit \"d\" at character 2; use ns, us, ms, s, m or h (a day is 24h)"),
            ("5 m", "\"5 m\": unknown unit \" m\" at character 2; use ns, us, ms, s, m or h (a day is 24h)"),
            ("soon", "\"soon\": expected a number at character 1; write for example 30s, 5m or 1m30s"),
            (".s", "\".s\": expected a number at character 1; write for example 30s, 5m or 1m30s"),
            ("-5s", "\"-5s\": a duration cannot be negative"),
            ("87600h1ns", "\"87600h1ns\": longer than 87600 hours, the longest duration allowed"),
            (
                "99999999999999999999999h",
                "\"99999999999999999999999h\": longer than 87600 hours, the longest duration allowed",
            ),
        ] {
            assert_eq!(parsed(text), error, "{text}");
        }
    }

    #[test]
    fn people_are_shown_no_zero_parts() {
        for (text, shown) in
            [("2m", "2m"), ("3h", "3h"), ("1h30m", "1h30m"), ("10s", "10s"), ("70s", "1m10s"), ("0", "0s")]
        {
            assert_eq!(Period::parse(text).map(Period::brief), Ok(shown.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn every_period_survives_its_own_text(nanoseconds in 0u64..=limits::PERIOD_SECONDS * 1_000_000_000) {
            let period = Period::new(Duration::from_nanos(nanoseconds));
            prop_assert_eq!(Period::parse(&period.to_string()), Ok(period));
            prop_assert_eq!(Period::parse(&period.brief()), Ok(period));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9a-zµ.+ -]{0,40}|\\PC{0,40}") {
            let _ = Period::parse(&text);
        }
    }
}
