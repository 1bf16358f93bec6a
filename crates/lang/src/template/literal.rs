//! Go's literals: numbers as `strconv` reads them and quoted text as `strconv.Unquote` does.
//!
//! Used for the literals of a template and by the functions that turn text into numbers.

/// Reads an integer with Go's prefixes (`0x`, `0o`, `0b`, a leading `0` for octal) and digit separators.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let (negative, magnitude) = magnitude(text)?;
    if negative {
        (magnitude <= 1 << 63).then(|| 0i64.wrapping_sub_unsigned(magnitude))
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// Whether this is an integer too large for `int64` that still fits into 64 bits.
pub(crate) fn unsigned(text: &str) -> bool {
    magnitude(text).is_some_and(|(negative, _)| !negative)
}

fn magnitude(text: &str) -> Option<(bool, u64)> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = body.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    let digits = without_separators(digits, radix != 10)?;
    if digits.is_empty() || digits.starts_with(['+', '-']) {
        return None;
    }
    Some((negative, u64::from_str_radix(&digits, radix).ok()?))
}

/// Drops `_` where Go allows it: between digits, or right after a prefix.
fn without_separators(digits: &str, after_prefix: bool) -> Option<String> {
    if !digits.contains('_') {
        return Some(digits.to_owned());
    }
    let mut previous_is_digit = after_prefix;
    for letter in digits.chars() {
        if letter == '_' && !previous_is_digit {
            return None;
        }
        previous_is_digit = letter != '_' && letter.is_ascii_hexdigit();
    }
    previous_is_digit.then(|| digits.replace('_', ""))
}

/// Reads a floating-point number as Go does, hexadecimal ones included.
pub(crate) fn float(text: &str) -> Option<f64> {
    let (sign, body) = match text.strip_prefix('-') {
        Some(body) => (-1.0, body),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if let Some(digits) = body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
        return Some(sign * hexadecimal_float(digits)?);
    }
    let plain = without_separators(body, false)?;
    if plain.starts_with(['+', '-']) {
        return None;
    }
    let value: f64 = plain.parse().ok()?;
    let spelled_out = plain.to_ascii_lowercase().starts_with("inf");
    (value.is_finite() || value.is_nan() || spelled_out).then_some(sign * value)
}

fn hexadecimal_float(digits: &str) -> Option<f64> {
    let lower = without_separators(&digits.to_ascii_lowercase(), true)?;
    let (mantissa, exponent) = lower.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || whole.len() + fraction.len() > 13 {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let shift = exponent.parse::<i32>().ok()?.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    Some(value * 2f64.powi(shift))
}

/// Reads a double-quoted or raw text with its quotes.
pub(crate) fn text(quoted: &str) -> Result<String, &'static str> {
    if let Some(raw) = quoted.strip_prefix('`') {
        return Ok(raw.trim_end_matches('`').replace('\r', ""));
    }
    let body = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(body.len());
    let mut letters = body.chars();
    while let Some(letter) = letters.next() {
        match if letter == '\\' { escape(&mut letters, '"')? } else { Unescaped::Letter(letter) } {
            Unescaped::Letter(letter) => bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
            Unescaped::Byte(byte) => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| "this text is not valid UTF-8")
}

/// Reads a character constant with its quotes; its value is the code point.
pub(crate) fn character(quoted: &str) -> Result<u32, &'static str> {
    let body = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let mut letters = body.chars();
    let value = match letters.next() {
        Some('\\') => match escape(&mut letters, '\'')? {
            Unescaped::Letter(letter) => u32::from(letter),
            Unescaped::Byte(byte) => u32::from(byte),
        },
        Some(letter) => u32::from(letter),
        None => return Err("this character constant is empty"),
    };
    if letters.next().is_some() {
        return Err("a character constant holds one character");
    }
    Ok(value)
}

enum Unescaped {
    Letter(char),
    Byte(u8),
}

fn escape(letters: &mut std::str::Chars<'_>, quote: char) -> Result<Unescaped, &'static str> {
    const UNKNOWN: &str = "this escape sequence is not known";
    let letter = letters.next().ok_or(UNKNOWN)?;
    let plain = match letter {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '\\' => '\\',
        _ if letter == quote => quote,
        'x' => {
            return Ok(Unescaped::Byte(u8::try_from(digits(letters, 2, 16, 0)?).map_err(|_| UNKNOWN)?));
        }
        'u' => {
            return char::from_u32(digits(letters, 4, 16, 0)?).map(Unescaped::Letter).ok_or(UNKNOWN);
        }
        'U' => {
            return char::from_u32(digits(letters, 8, 16, 0)?).map(Unescaped::Letter).ok_or(UNKNOWN);
        }
        '0'..='7' => {
            let first = u32::from(letter) - u32::from('0');
            return Ok(Unescaped::Byte(u8::try_from(digits(letters, 2, 8, first)?).map_err(|_| UNKNOWN)?));
        }
        _ => return Err(UNKNOWN),
    };
    Ok(Unescaped::Letter(plain))
}

fn digits(
    letters: &mut std::str::Chars<'_>,
    count: usize,
    radix: u32,
    first: u32,
) -> Result<u32, &'static str> {
    let mut value = first;
    for _ in 0..count {
        let digit = letters.next().and_then(|letter| letter.to_digit(radix));
        let digit = digit.ok_or("this escape sequence is too short")?;
        value = value.wrapping_mul(radix).wrapping_add(digit);
    }
    Ok(value)
}
