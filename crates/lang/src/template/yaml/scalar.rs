//! One text in YAML: plain where YAML 1.1 reads it back as the same text, quoted or as a block otherwise.

use std::fmt::Write;

use crate::template::literal;

/// The column behind which lines are folded.
const WIDTH: usize = 80;

/// Where a text is written: what its further lines are indented by, where its first one starts, and whether it may
/// be folded.
pub(super) struct Scalar {
    pub(super) indent: usize,
    pub(super) column: usize,
    pub(super) folds: bool,
}

impl Scalar {
    pub(super) fn text(&self, text: &str) -> String {
        let facts = Facts::of(text);
        if text.contains('\n') {
            return if facts.block_allowed { block(text, self.indent) } else { self.double_quoted(text) };
        }
        if reads_as_other(text) {
            return self.double_quoted(text);
        }
        if facts.plain_allowed {
            return self.folded(text, "");
        }
        if facts.single_allowed { self.folded(text, "'") } else { self.double_quoted(text) }
    }

    /// Breaks the line at single spaces once it is longer than wanted.
    fn folded(&self, text: &str, quote: &str) -> String {
        let mut out = String::from(quote);
        let mut column = self.column + quote.len();
        let mut after_space = false;
        let mut letters = text.char_indices().peekable();
        while let Some((index, letter)) = letters.next() {
            let next = letters.peek().map(|(_, next)| *next);
            let inside = quote.is_empty() || (index > 0 && next.is_some());
            if letter == ' ' && self.folds && !after_space && column > WIDTH && inside && next != Some(' ') {
                out.push('\n');
                out.push_str(&" ".repeat(self.indent));
                column = self.indent;
            } else {
                if letter == '\'' && !quote.is_empty() {
                    out.push('\'');
                    column += 1;
                }
                out.push(letter);
                column += 1;
            }
            after_space = letter == ' ';
        }
        out.push_str(quote);
        out
    }

    fn double_quoted(&self, text: &str) -> String {
        let mut out = String::from("\"");
        let mut column = self.column + 1;
        let mut after_space = false;
        let mut letters = text.char_indices().peekable();
        while let Some((index, letter)) = letters.next() {
            let before = out.len();
            let next = letters.peek().map(|(_, next)| *next);
            if letter == ' ' && self.folds && !after_space && column > WIDTH && index > 0 && next.is_some() {
                out.push('\n');
                out.push_str(&" ".repeat(self.indent));
                column = self.indent;
                if next == Some(' ') {
                    out.push('\\');
                    column += 1;
                }
            } else {
                push_escaped(&mut out, letter);
                column += out[before..].chars().count();
            }
            after_space = letter == ' ';
        }
        out.push('"');
        out
    }
}

/// What a text allows, as libyaml's `analyze_scalar` finds out.
struct Facts {
    plain_allowed: bool,
    single_allowed: bool,
    block_allowed: bool,
}

impl Facts {
    fn of(text: &str) -> Self {
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut breaks, mut special, mut break_space, mut space_break) = (false, false, false, false);
        let (mut after_space, mut after_break) = (false, false);
        let mut before_is_blank = true;
        let mut letters = text.chars().peekable();
        let mut first = true;
        while let Some(letter) = letters.next() {
            let after_is_blank = letters.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            indicators |= match letter {
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
                    first
                }
                '#' => before_is_blank,
                '?' | '-' => first && after_is_blank,
                ':' => after_is_blank,
                _ => false,
            };
            let is_break = letter == '\n';
            special |= !is_printable(letter);
            break_space |= letter == ' ' && after_break;
            space_break |= is_break && after_space;
            breaks |= is_break;
            after_space = letter == ' ';
            after_break = is_break;
            before_is_blank = matches!(letter, ' ' | '\t' | '\n');
            first = false;
        }
        let edges = text.starts_with([' ', '\n']) || text.ends_with([' ', '\n']);
        Self {
            plain_allowed: !(edges || break_space || space_break || special || breaks || indicators),
            single_allowed: !(break_space || space_break || special),
            block_allowed: !(text.ends_with(' ') || space_break || special),
        }
    }
}

fn is_printable(letter: char) -> bool {
    matches!(letter,
        '\n' | ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
        | '\u{ff00}'..='\u{fffd}')
}

fn block(text: &str, indent: usize) -> String {
    let mut out = String::from("|");
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    if !text.ends_with('\n') {
        out.push('-');
    } else if text.ends_with("\n\n") || text == "\n" {
        out.push('+');
    }
    let body = text.strip_suffix('\n').unwrap_or(text);
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.push_str(&" ".repeat(indent));
            out.push_str(line);
        }
    }
    out
}

fn push_escaped(out: &mut String, letter: char) {
    let short = match letter {
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ if is_printable(letter) => {
            out.push(letter);
            return;
        }
        _ => {
            let code = u32::from(letter);
            let _ = match code {
                0..=0xff => write!(out, "\\x{code:02X}"),
                0x100..=0xffff => write!(out, "\\u{code:04X}"),
                _ => write!(out, "\\U{code:08X}"),
            };
            return;
        }
    };
    out.push('\\');
    out.push(short);
}

/// Whether plain text would be read as null, a boolean, a number or a time.
fn reads_as_other(text: &str) -> bool {
    match text {
        "" | "~" | "null" | "Null" | "NULL" | "<<" => return text != "<<",
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "n" | "N" | "no" | "No" | "NO" | "off"
        | "Off" | "OFF" | "true" | "True" | "TRUE" | "false" | "False" | "FALSE" | ".nan" | ".NaN"
        | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" => {
            return true;
        }
        _ => {}
    }
    let first = text.as_bytes()[0];
    if first == b'.' {
        return literal::float(text).is_some();
    }
    if !first.is_ascii_digit() && first != b'+' && first != b'-' {
        return false;
    }
    let plain = text.replace('_', "");
    literal::integer(&plain).is_some()
        || literal::unsigned(&plain)
        || (looks_like_float(&plain) && literal::float(&plain).is_some())
        || is_time(text)
        || is_base_sixty(text)
}

fn looks_like_float(text: &str) -> bool {
    let body = text.trim_start_matches(['+', '-']);
    body.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'))
        && body.bytes().any(|byte| byte.is_ascii_digit())
}

/// `190:20:30` is a number to YAML 1.1.
fn is_base_sixty(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = body.split(':');
    let first = parts.next().unwrap_or_default();
    let whole =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    if !whole(first) || !first.starts_with(|letter: char| letter.is_ascii_digit()) {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    !rest.is_empty()
        && rest.iter().enumerate().all(|(index, part)| {
            let part =
                if index + 1 == rest.len() { part.split('.').next().unwrap_or_default() } else { part };
            (part.len() == 1 || (part.len() == 2 && part.as_bytes()[0] <= b'5'))
                && part.bytes().all(|byte| byte.is_ascii_digit())
        })
}

fn is_time(text: &str) -> bool {
    let date = |text: &str| {
        let parts: Vec<&str> = text.split('-').collect();
        let small = |part: &str, most: u32| {
            (1..=2).contains(&part.len())
                && part.parse::<u32>().is_ok_and(|number| (1..=most).contains(&number))
        };
        matches!(parts.as_slice(), [year, month, day]
            if year.len() == 4 && year.parse::<u32>().is_ok() && small(month, 12) && small(day, 31))
    };
    match text.split_once(['T', 't', ' ']) {
        None => date(text),
        Some((day, clock)) => {
            let zoned = text.as_bytes().get(day.len()) != Some(&b' ');
            let clock = match clock.strip_suffix('Z') {
                Some(clock) if zoned => clock,
                None if zoned => match clock.rfind(['+', '-']) {
                    Some(sign) => &clock[..sign],
                    None => return false,
                },
                _ => clock,
            };
            let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
            let parts: Vec<&str> = clock.split(':').collect();
            date(day)
                && parts.len() == 3
                && fraction.bytes().all(|byte| byte.is_ascii_digit())
                && parts
                    .iter()
                    .all(|part| part.len() <= 2 && part.parse::<u32>().is_ok_and(|number| number < 60))
        }
    }
}
