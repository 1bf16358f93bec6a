//! Text that is shown to people: bounded and harmless.
//!
//! Messages end up in status, events, terminals and logs, and parts of them come from users and foreign
//! controllers. [`line()`] makes one line of bounded length of any text; [`quote`] does so for a fragment of input
//! quoted in an error. Called by conditions, by every parser of this crate, and by everything that builds a message.

use crate::limits;

/// How a name, or a chain of causes, ends where nothing more may be shown to whom it is for.
pub const NOT_VISIBLE: &str = "(not visible)";
/// How much of an input an error message repeats, in bytes.
const QUOTED: usize = 80;

/// `text` as one line of at most [`limits::MESSAGE`] bytes; control characters are shown as escapes.
pub fn line(text: &str) -> String {
    line_of(text, limits::MESSAGE)
}

/// `text` as one line of at most `limit` bytes, cut at a character and marked with `…` where something was cut.
pub fn line_of(text: &str, limit: usize) -> String {
    const ELLIPSIS: char = '…';
    let mut shown = String::with_capacity(text.len().min(limit));
    // The length up to which an ellipsis would still fit.
    let mut fits = 0;
    for character in text.chars() {
        if misleads(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
        if shown.len() > limit {
            shown.truncate(fits);
            if fits + ELLIPSIS.len_utf8() <= limit {
                shown.push(ELLIPSIS);
            }
            return shown;
        }
        if shown.len() + ELLIPSIS.len_utf8() <= limit {
            fits = shown.len();
        }
    }
    shown
}

/// A fragment of input in quotes, short and on one line.
pub fn quote(text: &str) -> String {
    format!("\"{}\"", line_of(text, QUOTED))
}

/// Adds a number to a text, in far less time than formatting takes.
pub fn push_number(text: &mut String, number: i64) {
    if number < 0 {
        text.push('-');
    }
    let number = number.unsigned_abs();
    let mut place = number.checked_ilog10().map_or(1, |digits| 10_u64.pow(digits));
    while place > 0 {
        let digit = u8::try_from(number / place % 10).unwrap_or_default();
        text.push(char::from(b'0' + digit));
        place /= 10;
    }
}

/// Whether a character could break the line or change how the rest of it is read (controls, direction marks).
fn misleads(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The position of byte `offset` in `text` as people count: characters, from 1.
pub(crate) fn position(text: &str, offset: usize) -> usize {
    text.char_indices().take_while(|(at, _)| *at < offset).count() + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_stays_on_one_line() {
        assert_eq!(line("first\nsecond\t\u{1b}[31m"), "first\\nsecond\\t\\u{1b}[31m");
    }

    #[test]
    fn a_long_message_is_cut_at_a_character_and_says_so() {
        assert_eq!(line_of("aaééé", 7), "aaé…");
        assert_eq!(line_of("aaéé", 6), "aaéé", "what fits exactly is not cut");
        assert_eq!(line(&"x".repeat(5000)).len(), limits::MESSAGE);
    }

    #[test]
    fn a_text_cannot_turn_the_direction_of_the_line() {
        assert_eq!(quote("a\u{202e}b"), "\"a\\u{202e}b\"");
    }

    proptest! {
        #[test]
        fn a_number_is_written_as_everybody_writes_it(number in any::<i64>()) {
            for number in [number, number % 100, 0, i64::MIN, i64::MAX] {
                let mut shown = String::from("n=");
                push_number(&mut shown, number);
                prop_assert_eq!(shown, format!("n={number}"));
            }
        }

        #[test]
        fn any_text_becomes_one_bounded_line(text in any::<String>(), limit in 0usize..64) {
            let shown = line_of(&text, limit);
            prop_assert!(shown.len() <= limit);
            prop_assert!(!shown.chars().any(char::is_control));
        }
    }
}
