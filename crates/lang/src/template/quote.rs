//! Text in quotes, as Go's `strconv.Quote` and the verbs `%q` and `%#q` write it.

use std::fmt::Write;

/// Whether Go shows this character as it is: letters, marks, numbers, punctuation, symbols and the plain space.
pub(crate) fn is_printable(letter: char) -> bool {
    if letter.is_ascii() {
        return matches!(letter, ' '..='~');
    }
    // Rust's debug form escapes what is not printable, and marks only where they start a text.
    let mut shown = String::new();
    let mut buffer = [0; 4];
    let _ = write!(shown, "{:?}", ['a', letter].iter().collect::<String>());
    shown.contains(&*letter.encode_utf8(&mut buffer))
}

/// `%q` of a text; with `ascii` everything else is escaped too.
pub(crate) fn quote(text: &str, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        push_escaped(&mut out, letter, '"', ascii);
    }
    out.push('"');
    out
}

/// `%q` of a number: the character with that code.
pub(crate) fn quote_character(letter: char, ascii: bool) -> String {
    let mut out = String::from("'");
    push_escaped(&mut out, letter, '\'', ascii);
    out.push('\'');
    out
}

/// Whether `%#q` may use raw quotes.
pub(crate) fn fits_raw(text: &str) -> bool {
    !text.chars().any(|letter| {
        letter == '`' || letter == '\u{feff}' || letter == '\u{7f}' || (letter < ' ' && letter != '\t')
    })
}

fn push_escaped(out: &mut String, letter: char, quote: char, ascii: bool) {
    if letter == quote || letter == '\\' {
        out.push('\\');
        out.push(letter);
        return;
    }
    if is_printable(letter) && (!ascii || letter.is_ascii()) {
        out.push(letter);
        return;
    }
    let short = match letter {
        '\x07' => 'a',
        '\x08' => 'b',
        '\x0c' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\x0b' => 'v',
        _ => {
            let code = u32::from(letter);
            let _ = match code {
                0..0x20 | 0x7f => write!(out, "\\x{code:02x}"),
                0..0x1_0000 => write!(out, "\\u{code:04x}"),
                _ => write!(out, "\\U{code:08x}"),
            };
            return;
        }
    };
    out.push('\\');
    out.push(short);
}
