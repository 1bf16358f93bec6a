//! Values and texts of others in a few words, for messages. What is longer than a message can bear is cut, and says so.

use serde_json::Value as Json;

/// The longest text of the data that is quoted, in characters.
const LONGEST_VALUE: usize = 64;

/// At most so many characters of a text.
pub(crate) fn brief(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text of the data, quoted.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", brief(text, LONGEST_VALUE))
}

/// A value of the data in a few words.
pub(crate) fn shown(value: &Json) -> String {
    match value {
        Json::String(text) if is_plain(text) => brief(text, LONGEST_VALUE),
        Json::String(text) => quoted(text),
        Json::Array(items) => format!("a list of {}", items.len()),
        Json::Object(fields) => format!("a map of {}", fields.len()),
        other => other.to_string(),
    }
}

/// Whether a text reads as one word without quotes around it.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|character| character.is_alphanumeric() || "._-+/:".contains(character))
}
