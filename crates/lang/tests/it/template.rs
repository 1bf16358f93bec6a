//! The template language, one file per promise.

mod corpus;

use jiff::Timestamp;
use linchpin_lang::template::Clock;

/// The time the corpus was rendered at, a little after 15:06 on the fourth of March 2026.
fn clock() -> Clock {
    Clock::at(Timestamp::from_millisecond(1_772_636_767_089).unwrap_or_default())
}
