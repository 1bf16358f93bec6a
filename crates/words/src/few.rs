//! A set that mostly has one member or two.
//!
//! A tree takes the room of eleven members for one. What is kept for each of thousands of objects (who reads an answer, what
//! a name is asked for) is a sorted list: [`Few`] takes no more than its members, and behaves like any other set of them.
//! Larger sets are right too, and change more slowly.

use std::ops::Deref;

/// A set, sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Few<T>(Vec<T>);

/// From so many members on it grows as lists do.
const MANY: usize = 8;

impl<T: Ord> Few<T> {
    /// Adds a member; whether it is new.
    pub fn insert(&mut self, member: T) -> bool {
        let Err(position) = self.0.binary_search(&member) else { return false };
        if self.0.len() < MANY {
            self.0.reserve_exact(1);
        }
        self.0.insert(position, member);
        true
    }

    /// Takes a member out; whether it was there.
    pub fn remove(&mut self, member: &T) -> bool {
        self.0.binary_search(member).map(|position| self.0.remove(position)).is_ok()
    }

    /// Whether it has a member.
    pub fn contains(&self, member: &T) -> bool {
        self.0.binary_search(member).is_ok()
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Ord> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Self {
        let mut members: Vec<T> = members.into_iter().collect();
        members.sort_unstable();
        members.dedup();
        members.shrink_to_fit();
        Self(members)
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_behaves_like_any_other_set() {
        let (mut few, mut set) = (Few::default(), BTreeSet::new());
        for number in [5, 1, 9, 5, 3, 9, 7, 2, 8, 6, 4, 0, 1] {
            assert_eq!(few.insert(number), set.insert(number), "{number}");
        }
        for number in [4, 11, 4, 0] {
            assert_eq!(few.remove(&number), set.remove(&number), "{number}");
            assert!(!few.contains(&number));
        }
        assert!(few.contains(&9) && few.iter().eq(&set) && (&few).into_iter().eq(&set));
        assert_eq!(few, [9, 1, 2, 3, 9, 5, 6, 7, 8, 1].into_iter().collect());
    }

    #[test]
    fn it_takes_no_more_room_than_its_members() {
        let mut few = Few::default();
        for number in 0..3 {
            few.insert(number);
            assert_eq!(few.0.capacity(), few.len());
        }
        assert_eq!([1, 1, 1].into_iter().collect::<Few<_>>().0.capacity(), 1);
    }
}
