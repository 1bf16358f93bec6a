//! Go's regular expressions on Rust's engine.
//!
//! Both come from RE2 and run in linear time. They differ in details that are translated here: `\d`, `\w` and
//! `\s` mean ASCII in Go, `\Q…\E` quotes, and inside `[…]` only Rust gives `[`, `&&`, `--` and `~~` a meaning.

use regex::{Regex, RegexBuilder};

use super::limits;

/// Compiles a Go pattern.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translate(pattern))
        .size_limit(limits::REGEX_BYTES)
        .dfa_size_limit(limits::REGEX_BYTES)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "the regular expression is too large".to_owned(),
            _ => "the regular expression is not valid".to_owned(),
        })
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut letters = pattern.chars().peekable();
    let mut in_class = false;
    let mut class_start = false;
    while let Some(letter) = letters.next() {
        let at_start = std::mem::take(&mut class_start);
        match letter {
            '\\' => match letters.next() {
                Some('Q') if !in_class => {
                    let rest: String = letters.clone().collect();
                    let quoted = rest.split("\\E").next().unwrap_or_default();
                    out.push_str(&regex::escape(quoted));
                    let skip = quoted.chars().count() + if rest.contains("\\E") { 2 } else { 0 };
                    for _ in 0..skip {
                        letters.next();
                    }
                }
                Some(class @ ('d' | 'D' | 'w' | 'W' | 's' | 'S')) => out.push_str(ascii_class(class)),
                Some('b') if !in_class => out.push_str("(?-u:\\b)"),
                Some(escaped) => {
                    out.push('\\');
                    out.push(escaped);
                }
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                class_start = true;
                out.push('[');
                if letters.peek() == Some(&'^') {
                    letters.next();
                    out.push('^');
                }
            }
            '[' if letters.peek() == Some(&':') => {
                out.push('[');
                for next in letters.by_ref() {
                    out.push(next);
                    if next == ']' {
                        break;
                    }
                }
            }
            ']' if in_class && !at_start => {
                in_class = false;
                out.push(']');
            }
            '[' | ']' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out
}

fn ascii_class(letter: char) -> &'static str {
    match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => "[\\t\\n\\x0C\\r ]",
        _ => "[^\\t\\n\\x0C\\r ]",
    }
}
