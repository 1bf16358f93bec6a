//! `printf`: Go's verbs, flags, widths and precisions, and Go's way of showing a verb that does not fit.

use std::fmt::Write;

use super::error::Cause;
use super::float;
use super::format::Writer;
use super::functions::failure;
use super::limits;
use super::moment;
use super::quote;
use super::store::Store;
use super::value::Value;

/// The widest column and the longest precision; Go has the same limit.
const MOST_COLUMNS: i64 = 1_000_000;

/// One `%…` of a format.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "they are Go's five independent flags")]
pub(crate) struct Directive {
    verb: char,
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// The `#` of `%#v`, which asks for Go syntax.
    syntax: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

impl Directive {
    pub(crate) const PLAIN: Directive = Directive {
        verb: 'v',
        plus: false,
        minus: false,
        sharp: false,
        space: false,
        zero: false,
        syntax: false,
        width: None,
        precision: None,
    };

    /// Whether this is `%#v`.
    pub(crate) fn go_syntax(&self) -> bool {
        self.syntax
    }

    /// Whether the directive is about the value as one thing, whatever it holds.
    pub(crate) fn takes_whole(&self) -> bool {
        matches!(self.verb, 'T' | 'p')
    }

    fn pad(&self, text: String) -> String {
        self.pad_with(text, self.zero && !self.minus)
    }

    fn pad_with(&self, text: String, zero: bool) -> String {
        let length = text.chars().count();
        let Some(missing) =
            self.width.and_then(|width| width.checked_sub(length)).filter(|missing| *missing > 0)
        else {
            return text;
        };
        if self.minus {
            return text + &" ".repeat(missing);
        }
        (if zero { "0" } else { " " }).repeat(missing) + &text
    }
}

/// `fmt.Sprintf`.
pub(crate) fn printf<'d>(store: &Store<'d>, format: &str, arguments: &[Value<'d>]) -> Result<String, Cause> {
    let mut run = Run {
        writer: Writer::new(store),
        arguments,
        next: 0,
        reordered: false,
        bad_index: false,
        letters: format,
    };
    run.all()?;
    Ok(run.writer.text)
}

struct Run<'s, 'd> {
    writer: Writer<'s, 'd>,
    arguments: &'s [Value<'d>],
    next: usize,
    reordered: bool,
    bad_index: bool,
    letters: &'s str,
}

impl Run<'_, '_> {
    fn all(&mut self) -> Result<(), Cause> {
        while let Some(start) = self.letters.find('%') {
            self.writer.push(&self.letters[..start])?;
            self.letters = &self.letters[start + 1..];
            self.writer.store.step(1)?;
            self.directive()?;
        }
        self.writer.push(self.letters)?;
        if self.reordered || self.next >= self.arguments.len() {
            return Ok(());
        }
        self.writer.push("%!(EXTRA ")?;
        for (index, argument) in self.arguments[self.next..].iter().enumerate() {
            if index > 0 {
                self.writer.push(", ")?;
            }
            let name = self.writer.store.type_name(argument);
            self.writer.push(name.0)?;
            if !argument.is_nil() {
                self.writer.push("=")?;
                self.writer.value(argument)?;
            }
        }
        self.writer.push(")")
    }

    fn peek(&self) -> Option<char> {
        self.letters.chars().next()
    }

    fn skip(&mut self, letter: char) {
        self.letters = &self.letters[letter.len_utf8()..];
    }

    fn directive(&mut self) -> Result<(), Cause> {
        let mut directive = Directive::PLAIN;
        while let Some(flag) = self.peek() {
            match flag {
                '#' => directive.sharp = true,
                '0' => directive.zero = true,
                '+' => directive.plus = true,
                '-' => directive.minus = true,
                ' ' => directive.space = true,
                _ => break,
            }
            self.skip(flag);
        }
        self.bad_index = false;
        let mut after_index = self.argument_index();
        if self.peek() == Some('*') {
            self.skip('*');
            match self.star() {
                Some(width) => {
                    directive.minus |= width < 0;
                    directive.width = usize::try_from(width.abs()).ok();
                }
                None => self.writer.push("%!(BADWIDTH)")?,
            }
            after_index = false;
        } else {
            directive.width = self.number();
            if after_index && directive.width.is_some() {
                self.bad_index = true;
            }
        }
        if self.peek() == Some('.') {
            self.skip('.');
            if after_index {
                self.bad_index = true;
            }
            after_index = self.argument_index();
            if self.peek() == Some('*') {
                self.skip('*');
                let precision = self.star();
                directive.precision = precision.and_then(|precision| usize::try_from(precision).ok());
                if precision.is_none() {
                    self.writer.push("%!(BADPREC)")?;
                }
                after_index = false;
            } else {
                directive.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !after_index {
            self.argument_index();
        }
        self.verb(directive)
    }

    fn verb(&mut self, mut directive: Directive) -> Result<(), Cause> {
        let Some(verb) = self.peek() else {
            return self.writer.push("%!(NOVERB)");
        };
        self.skip(verb);
        directive.verb = verb;
        if verb == 'v' {
            directive.syntax = std::mem::take(&mut directive.sharp);
            directive.plus = false;
        }
        if verb == '%' {
            return self.writer.push("%");
        }
        if self.bad_index {
            return self.writer.push(&format!("%!{verb}(BADINDEX)"));
        }
        let Some(argument) = self.arguments.get(self.next) else {
            return self.writer.push(&format!("%!{verb}(MISSING)"));
        };
        self.next += 1;
        self.writer.directive(&directive, argument, 0)
    }

    /// `[n]` before a width, precision or verb.
    fn argument_index(&mut self) -> bool {
        if self.peek() != Some('[') {
            return false;
        }
        self.reordered = true;
        let Some(end) = self.letters.find(']') else {
            self.skip('[');
            self.bad_index = true;
            return false;
        };
        let number = self.letters[1..end].parse::<usize>().ok();
        self.letters = &self.letters[end + 1..];
        match number.filter(|number| (1..=self.arguments.len()).contains(number)) {
            Some(number) => self.next = number - 1,
            None => self.bad_index = true,
        }
        true
    }

    fn number(&mut self) -> Option<usize> {
        let length = self.letters.bytes().take_while(u8::is_ascii_digit).count();
        let number = self.letters[..length].parse::<usize>().ok();
        self.letters = &self.letters[length..];
        number.filter(|number| i64::try_from(*number).is_ok_and(|number| number <= MOST_COLUMNS))
    }

    fn star(&mut self) -> Option<i64> {
        let argument = self.arguments.get(self.next)?;
        self.next += 1;
        match argument {
            Value::Int(number) | Value::Int64(number) => Some(*number),
            Value::Byte(number) => Some(i64::from(*number)),
            _ => None,
        }
        .filter(|number| number.abs() <= MOST_COLUMNS)
    }
}

/// One value that is no list and no map.
pub(crate) fn scalar<'d>(
    store: &Store<'d>,
    directive: &Directive,
    value: &Value<'d>,
) -> Result<String, Cause> {
    if directive.width.or(directive.precision).is_some_and(|columns| columns > limits::OUTPUT_BYTES) {
        return Err(Cause::Limit { what: "bytes of output", limit: limits::OUTPUT_BYTES });
    }
    if directive.verb == 'T' {
        return Ok(directive.pad(text_cut(directive, store.type_name(value).0).to_owned()));
    }
    if directive.verb == 'p' {
        return failure("printf", "%p shows an address, which differs at every rendering");
    }
    let fitting = match value {
        Value::Nil(_) => (directive.verb == 'v').then(|| directive.pad("<nil>".to_owned())),
        Value::Bool(value) => matches!(directive.verb, 't' | 'v').then(|| directive.pad(value.to_string())),
        Value::Int(number) | Value::Int64(number) => integer(directive, number.unsigned_abs(), *number < 0),
        Value::Byte(number) => {
            let shown = integer(directive, u64::from(*number), false);
            if directive.go_syntax() { Some(format!("0x{number:x}")) } else { shown }
        }
        Value::Float(number) => match directive.verb {
            'x' | 'X' | 'b' => {
                return failure("printf", "%x and %b of a floating-point number are not supported");
            }
            _ if directive.sharp => {
                return failure("printf", "the flag # is not supported for a floating-point number");
            }
            _ => floating(directive, *number),
        },
        Value::Text(text) => text_verb(directive, text),
        Value::Moment(moment) => match directive.verb {
            'v' if directive.syntax => return failure("printf", "%#v of a time is not supported"),
            'v' | 's' | 'q' | 'x' | 'X' => text_verb(directive, &moment::display(*moment)),
            _ => return failure("printf", "a time can be printed with %v, %s and %q only"),
        },
        Value::Data(..) | Value::List(_) | Value::Dict(_) => Some(String::new()),
    };
    if let Some(text) = fitting {
        return Ok(text);
    }
    let name = store.type_name(value);
    if value.is_nil() {
        return Ok(format!("%!{}(<nil>)", directive.verb));
    }
    let plain = Directive { verb: 'v', ..directive.clone() };
    let shown = scalar(store, &plain, value)?;
    Ok(format!("%!{}({name}={shown})", directive.verb))
}

fn integer(directive: &Directive, magnitude: u64, negative: bool) -> Option<String> {
    let character = || u32::try_from(magnitude).ok().filter(|_| !negative).and_then(char::from_u32);
    let (mut digits, prefix) = match directive.verb {
        'v' | 'd' => (magnitude.to_string(), ""),
        'b' => (format!("{magnitude:b}"), if directive.sharp { "0b" } else { "" }),
        'o' => (format!("{magnitude:o}"), if directive.sharp { "0" } else { "" }),
        'O' => (format!("{magnitude:o}"), "0o"),
        'x' => (format!("{magnitude:x}"), if directive.sharp { "0x" } else { "" }),
        'X' => (format!("{magnitude:X}"), if directive.sharp { "0X" } else { "" }),
        'c' => {
            return Some(directive.pad(character().unwrap_or('\u{fffd}').to_string()));
        }
        'q' => {
            let quoted = quote::quote_character(character().unwrap_or('\u{fffd}'), directive.plus);
            return Some(directive.pad(quoted));
        }
        'U' => {
            let code = if negative { magnitude.wrapping_neg() } else { magnitude };
            let mut shown = format!("U+{code:04X}");
            if let Some(letter) = character().filter(|letter| directive.sharp && quote::is_printable(*letter))
            {
                shown.extend([' ', '\'', letter, '\'']);
            }
            return Some(directive.pad_with(shown, false));
        }
        _ => return None,
    };
    let sign = match (negative, directive.plus, directive.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    };
    let mut least = 0;
    if let Some(precision) = directive.precision {
        if precision == 0 && magnitude == 0 {
            return Some(directive.pad_with(String::new(), false));
        }
        least = precision;
    } else if let (true, false, Some(width)) = (directive.zero, directive.minus, directive.width) {
        least = width.saturating_sub(sign.len());
    }
    if digits.len() < least {
        digits = "0".repeat(least - digits.len()) + &digits;
    }
    let prefix = if prefix == "0" && digits.starts_with('0') { "" } else { prefix };
    Some(directive.pad_with(format!("{sign}{prefix}{digits}"), false))
}

fn floating(directive: &Directive, number: f64) -> Option<String> {
    let precision = directive.precision;
    let text = match directive.verb {
        'v' => match precision {
            None => float::shortest(number),
            some => float::general(number, some),
        },
        'g' => float::general(number, precision),
        'G' => float::general(number, precision).replace('e', "E"),
        'e' => float::scientific(number, precision.or(Some(6))),
        'E' => float::scientific(number, precision.or(Some(6))).replace('e', "E"),
        'f' | 'F' => float::fixed(number, precision.or(Some(6))),
        _ => return None,
    };
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => match text.strip_prefix('+') {
            Some(digits) => ("+", digits),
            None => ("", text.as_str()),
        },
    };
    let sign = match sign {
        "-" => "-",
        _ if directive.plus => "+",
        _ if directive.space => " ",
        "+" => "+",
        _ => "",
    };
    let zero = directive.zero && !directive.minus && number.is_finite();
    if let (true, Some(width)) = (zero, directive.width) {
        let least = width.saturating_sub(sign.len());
        let zeros = "0".repeat(least.saturating_sub(digits.len()));
        return Some(format!("{sign}{zeros}{digits}"));
    }
    Some(directive.pad_with(format!("{sign}{digits}"), false))
}

fn text_cut<'t>(directive: &Directive, text: &'t str) -> &'t str {
    match directive.precision {
        Some(precision) => text.char_indices().nth(precision).map_or(text, |(end, _)| &text[..end]),
        None => text,
    }
}

fn text_verb(directive: &Directive, text: &str) -> Option<String> {
    Some(match directive.verb {
        'v' if directive.syntax => quote::quote(text, false),
        'v' | 's' => directive.pad(text_cut(directive, text).to_owned()),
        'q' => {
            let cut = text_cut(directive, text);
            let raw = directive.sharp && quote::fits_raw(cut);
            directive.pad(if raw { format!("`{cut}`") } else { quote::quote(cut, directive.plus) })
        }
        'x' | 'X' => {
            let bytes = text.as_bytes();
            let bytes = &bytes[..directive.precision.unwrap_or(bytes.len()).min(bytes.len())];
            directive.pad(hexadecimal(directive, bytes))
        }
        _ => return None,
    })
}

fn hexadecimal(directive: &Directive, bytes: &[u8]) -> String {
    let upper = directive.verb == 'X';
    let prefix = match (directive.sharp, upper) {
        (false, _) => "",
        (true, false) => "0x",
        (true, true) => "0X",
    };
    let mut out = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if directive.space && index > 0 {
            out.push(' ');
        }
        if index == 0 || directive.space {
            out.push_str(prefix);
        }
        let _ = if upper { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
    }
    out
}
