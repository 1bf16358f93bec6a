//! Floating-point numbers as Go's `strconv.FormatFloat` writes them.
//!
//! Go and Rust agree on the digits (the shortest that read back, or exactly rounded) and differ in everything
//! around them: when an exponent is used and how it is written.

/// No number has more digits than this behind its point; more digits asked for are zeros, and Rust formats at most
/// 65,535 of them.
const MOST_DIGITS: usize = 1_100;

/// The shortest form (`%v`), with an exponent below 1e-4 and from 1e6 on.
pub(crate) fn shortest(value: f64) -> String {
    general(value, None)
}

/// `%e` with a number of digits behind the point, or the fewest that read back.
pub(crate) fn scientific(value: f64, precision: Option<usize>) -> String {
    if let Some(special) = special(value) {
        return special;
    }
    let plain = match precision {
        Some(precision) => {
            let exact = format!("{value:.*e}", precision.min(MOST_DIGITS));
            let (mantissa, exponent) = exact.split_once('e').unwrap_or((&exact, "0"));
            format!("{mantissa}{}e{exponent}", "0".repeat(precision.saturating_sub(MOST_DIGITS)))
        }
        None => format!("{value:e}"),
    };
    with_exponent(&plain)
}

/// `%f` with a number of digits behind the point, or the fewest that read back.
pub(crate) fn fixed(value: f64, precision: Option<usize>) -> String {
    if let Some(special) = special(value) {
        return special;
    }
    match precision {
        Some(precision) => {
            let zeros = "0".repeat(precision.saturating_sub(MOST_DIGITS));
            format!("{value:.*}{zeros}", precision.min(MOST_DIGITS))
        }
        None => format!("{value}"),
    }
}

/// `%g`: `%e` for very large and very small numbers, `%f` otherwise.
pub(crate) fn general(value: f64, precision: Option<usize>) -> String {
    if let Some(special) = special(value) {
        return special;
    }
    let precision = precision.map(|digits| digits.clamp(1, MOST_DIGITS));
    let scientific = match precision {
        Some(digits) => format!("{value:.*e}", digits - 1),
        None => format!("{value:e}"),
    };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let significant =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    let digits = i32::try_from(significant.bytes().filter(u8::is_ascii_digit).count()).unwrap_or(i32::MAX);
    let threshold = match precision {
        Some(precision) => {
            let precision = i32::try_from(precision).unwrap_or(i32::MAX);
            if precision > digits && digits > exponent { digits } else { precision }
        }
        None => 6,
    };
    if exponent < -4 || exponent >= threshold {
        return with_exponent(&format!("{significant}e{exponent}"));
    }
    let fraction = usize::try_from(digits - 1 - exponent).unwrap_or(0);
    format!("{value:.fraction$}")
}

/// A number as Go's `encoding/json` writes it.
pub(crate) fn json(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = scientific(value, None);
        // JSON drops the padding of a negative one-digit exponent: 1e-07 is 1e-7.
        return match text.split_once("e-0") {
            Some((mantissa, digit)) => format!("{mantissa}e-{digit}"),
            None => text,
        };
    }
    fixed(value, None)
}

fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        return Some("NaN".to_owned());
    }
    value.is_infinite().then(|| if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() })
}

/// Turns Rust's `1.5e7` into Go's `1.5e+07`.
fn with_exponent(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}
