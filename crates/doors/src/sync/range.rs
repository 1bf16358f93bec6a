//! Ranges of versions: comparators, all of which must hold. Versions compare by rule 4 of `docs/conditions.md`.

use std::cmp::Ordering;

use linchpin_lang::compare::order_versions;
use linchpin_words::{limits, text::quote};

/// A range of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    text: String,
    comparators: Vec<(Comparator, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparator {
    Equal,
    Differs,
    Greater,
    AtLeast,
    Less,
    AtMost,
}

impl Comparator {
    /// What conditions call it.
    const fn name(self) -> &'static str {
        match self {
            Self::Equal => "eq",
            Self::Differs => "ne",
            Self::Greater => "gt",
            Self::AtLeast => "gte",
            Self::Less => "lt",
            Self::AtMost => "lte",
        }
    }
}

/// Longer signs first, so that none is mistaken for the beginning of another.
const SIGNS: [(&str, Comparator); 7] = [
    (">=", Comparator::AtLeast),
    ("<=", Comparator::AtMost),
    ("!=", Comparator::Differs),
    ("==", Comparator::Equal),
    (">", Comparator::Greater),
    ("<", Comparator::Less),
    ("=", Comparator::Equal),
];

impl Range {
    /// Reads a range; the error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        for character in ['|', '^', '~', '*'] {
            if text.contains(character) {
                let allowed = "write comparators such as >=14 <16";
                return Err(format!("{} has a {character}, which is not understood: {allowed}", quote(text)));
            }
        }
        let mut comparators = Vec::new();
        let mut sign = None;
        for word in text.split([' ', ',', '\t']).filter(|word| !word.is_empty()) {
            let found =
                SIGNS.iter().find_map(|(sign, comparator)| Some((*comparator, word.strip_prefix(sign)?)));
            let (comparator, version) = match (sign.take(), found) {
                (Some(before), None) => (before, word),
                (Some(_), Some(_)) => return Err(format!("{} has two signs in a row", quote(text))),
                (None, Some((comparator, ""))) => {
                    sign = Some(comparator);
                    continue;
                }
                (None, Some(found)) => found,
                (None, None) => (Comparator::Equal, word),
            };
            if version.contains(['<', '>', '=', '!']) {
                let apart = "put a blank or a comma between comparators, such as >=14 <16";
                return Err(format!("{} has two comparators in one word: {apart}", quote(text)));
            }
            if version.split('.').any(|part| part.eq_ignore_ascii_case("x")) {
                let allowed = "write comparators such as >=14 <15";
                return Err(format!("{} has an x, which is not understood: {allowed}", quote(text)));
            }
            comparators.push((comparator, version.to_owned()));
        }
        if sign.is_some() || comparators.is_empty() {
            return Err(format!("{} names no version; write comparators such as >=14 <16", quote(text)));
        }
        if comparators.len() > limits::COMPARATORS {
            let (count, most) = (comparators.len(), limits::COMPARATORS);
            return Err(format!("it has {count} comparators; {most} are allowed"));
        }
        Ok(Self { text: text.trim().to_owned(), comparators })
    }

    /// The range as it is written.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Its comparators, by the names that conditions have for them, and the versions that they compare with.
    pub(super) fn comparisons(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.comparators.iter().map(|(comparator, version)| (comparator.name(), version.as_str()))
    }

    /// Whether a version is in it; none where they cannot be compared. What is no version matches by its text alone.
    pub(super) fn contains(&self, version: &str) -> Option<bool> {
        let mut within = Some(true);
        for (comparator, bound) in &self.comparators {
            let holds = match (comparator, order_versions(version, bound)) {
                (Comparator::Equal, None) => version == bound,
                (Comparator::Differs, None) => version != bound,
                (_, None) => {
                    within = None;
                    continue;
                }
                (Comparator::Equal, Some(order)) => order == Ordering::Equal,
                (Comparator::Differs, Some(order)) => order != Ordering::Equal,
                (Comparator::Greater, Some(order)) => order == Ordering::Greater,
                (Comparator::AtLeast, Some(order)) => order != Ordering::Less,
                (Comparator::Less, Some(order)) => order == Ordering::Less,
                (Comparator::AtMost, Some(order)) => order != Ordering::Greater,
            };
            if !holds {
                return Some(false);
            }
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_in_a_range_if_every_comparator_holds() {
        let (yes, no, unknown) = (Some(true), Some(false), None);
        for (range, version, expected) in [
            (">=14 <16", "14", yes),
            (">=14,<16", "15.9", yes),
            (">=14 <16", "16.0.0", no),
            (">= 2", "10", yes),
            ("9", "9.0.0", yes),
            ("=9", "v9", yes),
            ("<10", "9", yes),
            ("!=1.2", "1.3", yes),
            (">=2", "2.0.0-rc.1", no),
            (">=2", "main", unknown),
            ("main", "main", yes),
            ("!=main", "dev", yes),
            (">=0.50", "0.59.0", yes),
        ] {
            assert_eq!(Range::parse(range).unwrap().contains(version), expected, "{version} in {range}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_and_the_character_named() {
        for (range, named) in [
            ("1 || 2", "a |"),
            ("^1", "a ^"),
            ("~1", "a ~"),
            ("1.x", "an x"),
            ("1.*", "a *"),
            (">=", "names no version"),
            ("", "names no version"),
            (">= <2", "two signs"),
            (">=14<16", "two comparators in one word"),
            ("1.0=2", "two comparators in one word"),
            ("1 2 3 4 5 6 7 8 9", "9 comparators"),
        ] {
            let error = Range::parse(range).unwrap_err();
            assert!(error.contains(named), "{range}: {error}");
        }
    }
}
