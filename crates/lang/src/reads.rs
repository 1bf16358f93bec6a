//! Which parts of an object a condition reads, known before it ever runs.
//!
//! The hub keeps projections, not whole objects: it asks each compiled condition for its [`Reads`] and keeps the
//! union. A path is a prefix: everything below it counts as read.

use std::collections::BTreeSet;

/// The parts of one object that a condition can look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// The condition looks at the object as such, or at parts that cannot be known beforehand.
    pub whole: bool,
    /// The prefixes read, each a list of field names from the root. None contains another.
    pub paths: BTreeSet<Vec<String>>,
}

impl Reads {
    /// Reads everything.
    pub fn everything() -> Self {
        Reads { whole: true, paths: BTreeSet::new() }
    }

    /// Adds one prefix; the empty one means the whole object.
    pub fn add(&mut self, path: Vec<String>) {
        if self.whole {
            return;
        }
        if path.is_empty() {
            *self = Reads::everything();
        } else if !self.paths.iter().any(|known| path.starts_with(known)) {
            self.paths.retain(|known| !known.starts_with(&path));
            self.paths.insert(path);
        }
    }

    /// Adds all that `other` reads.
    pub fn merge(&mut self, other: &Reads) {
        if other.whole {
            *self = Reads::everything();
        }
        for path in &other.paths {
            self.add(path.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(dotted: &str) -> Vec<String> {
        dotted.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn a_shorter_prefix_swallows_the_longer_ones() {
        let mut reads = Reads::default();
        reads.add(path("status.a.b"));
        reads.add(path("status.ab"));
        reads.add(path("status.a"));
        reads.add(path("status.a.c"));
        assert_eq!(reads.paths, BTreeSet::from([path("status.a"), path("status.ab")]));
    }

    #[test]
    fn reading_the_root_reads_everything_and_stays_so() {
        let mut reads = Reads::default();
        reads.add(path("spec"));
        reads.add(Vec::new());
        reads.add(path("status"));
        assert_eq!(reads, Reads::everything());

        let mut other = Reads::default();
        other.add(path("spec"));
        other.merge(&reads);
        assert_eq!(other, Reads::everything());
    }
}
