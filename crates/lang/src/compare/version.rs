//! Versions as they are found in clusters: `28+`, `v1.36.4`, `1.24`, `v1.30.2+k3s1`, `v2.0.0-rc.1`.

use std::cmp::Ordering;

/// What a suffix must begin with to mean "before the release".
const BEFORE_RELEASE: [&str; 8] = ["alpha", "beta", "canary", "dev", "nightly", "pre", "rc", "snapshot"];

/// A version: numbers, then what follows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version<'t> {
    numbers: Vec<u64>,
    /// Before the release, the release itself, or something after it.
    stage: Ordering,
    suffix: &'t str,
}

impl<'t> Version<'t> {
    /// Reads a version: an optional `v`, numbers with dots, and a suffix after `-` or `+`. A suffix needs a `v` or two
    /// numbers before it (`2026-01-01` is a date), except a bare `+`, which means nothing (`28+`).
    pub(super) fn parse(text: &'t str) -> Option<Self> {
        if text.len() > 128 {
            return None;
        }
        let bare = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let end = bare.find(['-', '+']).unwrap_or(bare.len());
        let mut numbers = Vec::new();
        for number in bare[..end].split('.') {
            let plain = number.bytes().all(|digit| digit.is_ascii_digit());
            if !plain || (number.len() > 1 && number.starts_with('0')) {
                return None;
            }
            numbers.push(number.parse().ok()?);
        }
        let certain = numbers.len() > 1 || bare.len() < text.len();
        while numbers.len() > 1 && numbers.last() == Some(&0) {
            numbers.pop();
        }
        let suffix = if &bare[end..] == "+" { "" } else { &bare[end..] };
        if !suffix.is_empty() && !certain {
            return None;
        }
        let word = suffix.get(1..).unwrap_or_default().to_ascii_lowercase();
        let stage = if suffix.is_empty() {
            Ordering::Equal
        } else if suffix.starts_with('-') && BEFORE_RELEASE.iter().any(|before| word.starts_with(before)) {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        Some(Version { numbers, stage, suffix })
    }
}

impl Ord for Version<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers
            .cmp(&other.numbers)
            .then(self.stage.cmp(&other.stage))
            .then_with(|| compare_suffixes(self.suffix, other.suffix))
    }
}

impl PartialOrd for Version<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Runs of digits compare as numbers, everything else as text: `rc.2` < `rc.10`.
fn compare_suffixes(left: &str, right: &str) -> Ordering {
    let (mut left_parts, mut right_parts) = (parts(left), parts(right));
    loop {
        match (left_parts.next(), right_parts.next()) {
            (None, None) => return left.cmp(right),
            (left, right) => match left.cmp(&right) {
                Ordering::Equal => {}
                decided => return decided,
            },
        }
    }
}

/// A run of digits, by length and digits so that any length compares, or a run of anything else.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'t> {
    Number(usize, &'t str),
    Text(&'t str),
}

fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.bytes().next()?;
        let numeric = first.is_ascii_digit();
        let end = rest.find(|next: char| next.is_ascii_digit() != numeric).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        let digits = part.trim_start_matches('0');
        Some(if numeric { Part::Number(digits.len(), digits) } else { Part::Text(part) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rise_as_people_expect() {
        let rising = [
            "0.9",
            "1",
            "1.9",
            "1.24-alpha.2",
            "1.24-alpha.10",
            "1.24-beta.1",
            "v1.24.0-rc.1",
            "v1.24",
            "v1.24.0-eks-1",
            "1.24.1",
            "v1.29.4",
            "v1.29.4-gke.99",
            "v1.29.4-gke.1043002",
            "1.30.2+k3s1",
            "1.36.4",
            "24",
            "28+",
            "36",
        ];
        for pair in rising.windows(2) {
            let (left, right) = (Version::parse(pair[0]).unwrap(), Version::parse(pair[1]).unwrap());
            assert_eq!(left.cmp(&right), Ordering::Less, "{pair:?}");
        }
        for same in [["28+", "28"], ["v1.24", "1.24.0"], ["V2", "2"], ["0", "0.0"]] {
            let [left, right] = same.map(|text| Version::parse(text).unwrap());
            assert_eq!(left.cmp(&right), Ordering::Equal, "{same:?}");
        }
    }

    #[test]
    fn what_is_no_version_is_not_read_as_one() {
        for text in [
            "",
            "v",
            "1.",
            ".1",
            "1..2",
            "2026-01-01",
            "007",
            "1.02",
            "abc",
            "1.x",
            "10-abc",
            "99999999999999999999",
        ] {
            assert_eq!(Version::parse(text), None, "{text:?}");
        }
    }
}
