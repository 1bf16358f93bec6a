//! Go's regular expressions on Rust's engine.
//!
//! Both come from RE2 and run in linear time. They differ in details that are translated here: `\d`, `\w` and
//! `\s` mean ASCII in Go, `\Q…\E` quotes, and inside `[…]` only Rust gives `[`, `&&`, `--` and `~~` a meaning.

use regex::{Error, Regex, RegexBuilder};

use super::error::Cause;
use super::limits;
use super::store::Store;

/// The compiled size up to which a pattern counts as small.
const SMALL: usize = 8 * 1024;

/// A compiled pattern and what a byte of text costs with it.
#[derive(Clone)]
pub(crate) struct GoPattern {
    pub(crate) regex: Regex,
    price: u64,
}

impl GoPattern {
    /// Compiles a Go pattern.
    pub(crate) fn compile(source: &str) -> Result<Self, &'static str> {
        const TOO_LARGE: &str = "the regular expression is too large";
        if source.len() > limits::REGEX_SOURCE_BYTES {
            return Err(TOO_LARGE);
        }
        let translated = translate(source);
        for (size, price) in [(SMALL, 1), (limits::REGEX_BYTES, 8)] {
            match RegexBuilder::new(&translated).size_limit(size).build() {
                Ok(regex) => return Ok(Self { regex, price }),
                Err(Error::CompiledTooBig(_)) => {}
                Err(_) => return Err("the regular expression is not valid"),
            }
        }
        Err(TOO_LARGE)
    }

    /// Pays for one search through this many bytes: the time it can take is that times the pattern's size.
    pub(crate) fn search(&self, store: &Store<'_>, bytes: usize) -> Result<(), Cause> {
        store.step(1 + bytes as u64 * self.price / 32)
    }
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
