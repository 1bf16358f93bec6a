//! The word that was probably meant where one is not known: `deploymnet` is near `deployment`.
//!
//! Called by whatever refuses a word because it is none of a known few, so that the refusal can say which of them was
//! meant. Small and bounded: words over `LONGEST` bytes are near nothing.

/// Words that are longer are not compared.
const LONGEST: usize = 64;

/// The known word that is nearest, if one is near enough: the same but for its case, or one or two letters more, fewer,
/// other or swapped. Two letters only in words long enough that little else is as near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_lowercase();
    if wanted.is_empty() || wanted.len() > LONGEST {
        return None;
    }
    let near = match wanted.chars().count() {
        1 => 0,
        2..=4 => 1,
        _ => 2,
    };
    let known = known.into_iter().filter(|one| one.len() <= LONGEST);
    let distances = known.map(|one| (distance(&wanted, &one.to_lowercase()), one));
    distances
        .filter(|(distance, _)| *distance <= near)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, one)| one)
}

/// `; did you mean deployment?`, or nothing.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |one| format!("; did you mean {one}?"))
}

/// How many letters must be added, taken away, replaced or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let width = other.len() + 1;
    let mut before = vec![0; width];
    let mut above: Vec<usize> = (0..width).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut current = vec![row + 1; width];
        for (column, against) in other.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != against);
            let mut least = replaced.min(above[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && one[row - 1] == *against && other[column - 1] == *letter;
            if swapped {
                least = least.min(before[column - 1] + 1);
            }
            current[column + 1] = least;
        }
        before = std::mem::replace(&mut above, current);
    }
    above[width - 1]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_typing_error_is_near_what_was_meant() {
        let known = ["deployment", "daemonset", "pod", "Ready", "db"];
        for (word, meant) in [
            ("deploymnet", Some("deployment")),
            ("deploment", Some("deployment")),
            ("DaemonSets", Some("daemonset")),
            ("pods", Some("pod")),
            ("Redy", Some("Ready")),
            ("ready", Some("Ready")),
            ("bd", Some("db")),
            ("d", None),
            ("widget", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(did_you_mean("deploymnet", known), "; did you mean deployment?");
        assert_eq!(did_you_mean("widget", known), "");
    }

    #[test]
    fn a_long_word_costs_nothing() {
        assert_eq!(nearest(&"x".repeat(1 << 20), ["x"]), None);
    }

    proptest! {
        #[test]
        fn a_distance_is_the_same_both_ways_and_none_only_to_itself(one in "[a-c]{0,6}", other in "[a-c]{0,6}") {
            prop_assert_eq!(distance(&one, &other), distance(&other, &one));
            prop_assert_eq!(distance(&one, &other) == 0, one == other);
            prop_assert!(distance(&one, &other) <= one.len().max(other.len()));
        }
    }
}
