//! Quantities as Kubernetes writes them: `2`, `100m`, `1.5`, `500Mi`, `12e3`. Compared exactly, in billionths.

use std::cmp::Ordering;

/// A number, possibly with a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quantity {
    billionths: i128,
    /// It was written with a suffix, so it means a quantity and nothing else.
    pub(super) suffixed: bool,
}

const SUFFIXES: [(&str, i128); 14] = [
    ("n", 1),
    ("u", 1_000),
    ("m", 1_000_000),
    ("k", 1_000_000_000_000),
    ("M", 1_000_000_000_000_000),
    ("G", 1_000_000_000_000_000_000),
    ("T", 1_000_000_000_000_000_000_000),
    ("P", 1_000_000_000_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000_000_000_000),
    ("Ki", 1_000_000_000 << 10),
    ("Mi", 1_000_000_000 << 20),
    ("Gi", 1_000_000_000 << 30),
    ("Ti", 1_000_000_000 << 40),
    ("Pi", 1_000_000_000 << 50),
];
const ONE: i128 = 1_000_000_000;
const EXBI: i128 = ONE << 60;

impl Quantity {
    /// Reads a quantity. A text with needless leading zeros is a name, not a number; one that is too large or too
    /// fine to compare exactly is not a quantity.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.len() > 40 {
            return None;
        }
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole = &rest[..digits(rest)];
        let mut suffix = &rest[whole.len()..];
        let mut fraction = "";
        if let Some(after) = suffix.strip_prefix('.') {
            fraction = &after[..digits(after)];
            suffix = &after[fraction.len()..];
            if fraction.is_empty() {
                return None;
            }
        }
        if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
            return None;
        }
        let (unit, suffixed) = unit(suffix)?;
        let mut value = whole.parse::<i128>().ok()?.checked_mul(unit)?;
        let mut place = unit;
        for digit in fraction.bytes().map(|digit| i128::from(digit - b'0')) {
            if digit != 0 && place % 10 != 0 {
                // Finer than the unit divides: exact only while it does.
                return None;
            }
            place /= 10;
            value = value.checked_add(digit.checked_mul(place)?)?;
        }
        Some(Quantity { billionths: if negative { -value } else { value }, suffixed })
    }

    /// Which of two quantities is greater.
    pub(super) fn cmp_value(&self, other: &Self) -> Ordering {
        self.billionths.cmp(&other.billionths)
    }
}

/// What a suffix or exponent multiplies by, in billionths, and whether it is a suffix.
fn unit(suffix: &str) -> Option<(i128, bool)> {
    if suffix.is_empty() {
        return Some((ONE, false));
    }
    if suffix == "Ei" {
        return Some((EXBI, true));
    }
    if let Some((_, unit)) = SUFFIXES.iter().find(|(known, _)| *known == suffix) {
        return Some((*unit, true));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power =
        10_i128.checked_pow(u32::try_from(exponent.checked_add(9)?).ok().filter(|power| *power <= 30)?)?;
    Some((power, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_compare_across_their_units() {
        let rising = [
            "-1", "0", "1n", "999n", "1u", "100m", "0.5", "1", "1.5", "2", "1e1", "1k", "1Ki", "1M", "1Mi",
            "0.5Gi", "1G", "1Gi", "1T", "1Ti", "1P", "1Pi", "1E", "1Ei",
        ];
        for pair in rising.windows(2) {
            let (left, right) = (Quantity::parse(pair[0]).unwrap(), Quantity::parse(pair[1]).unwrap());
            assert_eq!(left.cmp_value(&right), Ordering::Less, "{pair:?}");
        }
        for same in
            [["1000m", "1"], ["0.5Gi", "512Mi"], ["1e3", "1k"], ["1.0", "1"], ["-0", "0"], ["1E3", "1000"]]
        {
            let [left, right] = same.map(|text| Quantity::parse(text).unwrap());
            assert_eq!(left.cmp_value(&right), Ordering::Equal, "{same:?}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_not_read_as_one() {
        for text in [
            "", "-", ".", "1.", ".5", "007", "00", "1Kib", "Mi", "1 Gi", "1e", "1e99", "1e-99", "0x1", "١",
            "28+",
        ] {
            assert_eq!(Quantity::parse(text), None, "{text:?}");
        }
        assert_eq!(Quantity::parse(&"9".repeat(41)), None);
        assert_eq!(Quantity::parse("99999999999999999999999999Ei"), None);
        assert_eq!(Quantity::parse("0.0000000001"), None, "finer than a billionth");
    }
}
