//! Moments.
//!
//! [`Timestamp`] is a moment to the microsecond, in UTC, written as RFC 3339. It is cut to microseconds when it is
//! made, so what a status or journal holds is equal to what was put there, also after it was read back. Nothing in
//! this crate knows what time it is: callers bring the moment along.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{duration::Period, text};

/// The beginning of the year 1.
const FIRST_SECOND: i64 = -62_135_596_800;
/// Near the end of the year 9999, wherever on Earth.
const LAST_SECOND: i64 = 253_402_200_000;

/// A moment, to the microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

/// A text is not an RFC 3339 moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} is not a time; write it as 2026-01-31T12:00:00Z")]
pub struct TimeError {
    /// The text, quoted.
    text: String,
}

impl Timestamp {
    /// The first moment of 1970: where tests and model checkers start counting.
    pub const EPOCH: Self = Self(jiff::Timestamp::UNIX_EPOCH);

    /// So many seconds after 1970 began, in the years 1 to 9999.
    pub fn from_second(second: i64) -> Self {
        Self::from_microsecond(second.saturating_mul(1_000_000))
    }

    /// So many microseconds after 1970 began, in the years 1 to 9999.
    pub fn from_microsecond(microsecond: i64) -> Self {
        let bounded = microsecond.clamp(FIRST_SECOND * 1_000_000, LAST_SECOND * 1_000_000);
        // Within these years every microsecond is a moment, so the fallback is never taken.
        Self(jiff::Timestamp::from_microsecond(bounded).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
    }

    /// Microseconds since 1970 began.
    pub fn as_microsecond(self) -> i64 {
        self.0.as_microsecond()
    }

    /// Whole seconds since 1970 began.
    pub fn as_second(self) -> i64 {
        self.0.as_second()
    }

    /// The moment `period` later, cut to the microsecond.
    #[must_use]
    pub fn plus(self, period: Period) -> Self {
        self.plus_duration(period.length())
    }

    /// The moment `duration` later, cut to the microsecond; at most the last one that can be represented.
    #[must_use]
    pub fn plus_duration(self, duration: Duration) -> Self {
        let microseconds = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_microsecond(self.as_microsecond().saturating_add(microseconds))
    }

    /// How much later than `earlier` this is; no time at all where it is not later, ten years at most.
    pub fn since(self, earlier: Self) -> Period {
        let microseconds = self.as_microsecond().saturating_sub(earlier.as_microsecond());
        Period::new(Duration::from_micros(u64::try_from(microseconds).unwrap_or(0)))
    }

    /// Reads RFC 3339.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        text.parse::<jiff::Timestamp>().map(Self::from).map_err(|_| TimeError { text: text::quote(text) })
    }
}

impl From<jiff::Timestamp> for Timestamp {
    fn from(moment: jiff::Timestamp) -> Self {
        Self::from_microsecond(moment.as_microsecond())
    }
}

impl From<Timestamp> for jiff::Timestamp {
    fn from(moment: Timestamp) -> Self {
        moment.0
    }
}

impl fmt::Display for Timestamp {
    /// `2026-01-31T12:00:00Z`, with six decimals where there is a fraction, as Kubernetes writes its micro times.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_microsecond() % 1_000_000 == 0 {
            write!(f, "{:.0}", self.0)
        } else {
            write!(f, "{:.6}", self.0)
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moments_are_written_as_kubernetes_writes_them() {
        let moment = Timestamp::from_second(1_769_860_800);
        assert_eq!(moment.to_string(), "2026-01-31T12:00:00Z");
        assert_eq!(moment.plus(Period::from_millis(1)).to_string(), "2026-01-31T12:00:00.001000Z");
    }

    #[test]
    fn any_offset_is_read() {
        assert_eq!(Timestamp::parse("2026-01-31T13:00:00+01:00"), Ok(Timestamp::from_second(1_769_860_800)));
        assert_eq!(
            Timestamp::parse("yesterday").unwrap_err().to_string(),
            "\"yesterday\" is not a time; write it as 2026-01-31T12:00:00Z"
        );
    }

    #[test]
    fn time_never_runs_backwards_nor_off_the_calendar() {
        let moment = Timestamp::from_second(10);
        assert_eq!(moment.since(Timestamp::from_second(4)), Period::from_secs(6));
        assert_eq!(moment.since(Timestamp::from_second(40)), Period::ZERO);
        let last = Timestamp::from_microsecond(i64::MAX);
        assert_eq!(last.plus(Period::MAX), last);
        assert_eq!(Timestamp::parse(&last.to_string()), Ok(last));
        assert!(Timestamp::from_microsecond(i64::MIN) < Timestamp::EPOCH);
    }

    proptest! {
        #[test]
        fn every_moment_survives_its_own_text(microsecond in -60_000_000_000_000_000i64..250_000_000_000_000_000) {
            let moment = Timestamp::from_microsecond(microsecond);
            prop_assert_eq!(Timestamp::parse(&moment.to_string()), Ok(moment));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9TZ:.+-]{0,40}|\\PC{0,40}") {
            let _ = Timestamp::parse(&text);
        }
    }
}
