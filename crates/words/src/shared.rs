//! Values that are passed on far more often than they are changed.
//!
//! [`Shared`] is any value behind a counted pointer: a clone costs no copy, two that are the same place compare at
//! once, and the first change of one that others hold makes a copy of its own. [`Text`] is the same for texts that are
//! written once: a fixed word costs nothing at all. Both behave, compare and are written like what they hold, so that
//! only who makes one knows. Journals, reports and the wait-for graph are made of them: what has not changed since the
//! last look is not copied for the next.

use std::{
    borrow::{Borrow, Cow},
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    ops::{Deref, DerefMut},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that is cheap to clone. Changing one that is held elsewhere changes a copy.
#[derive(Default)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// A value, to be shared.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Whether two are one and the same place, so that they are surely equal.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Clone> Shared<T> {
    /// The value itself, copied if others hold it.
    pub fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    /// The value, to be changed: from here on it is a copy of its own. Ask before, where most often nothing changes.
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

#[allow(clippy::into_iter_without_iter)] // what it holds has one, and that is found
impl<'a, T> IntoIterator for &'a Shared<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&**self).into_iter()
    }
}

impl<T> Borrow<T> for Shared<T> {
    fn borrow(&self) -> &T {
        &self.0
    }
}

impl<T: Eq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || *self.0 == *other.0
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T: Ord> PartialOrd for Shared<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for Shared<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.is_same(other) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl<T: Hash> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::new)
    }
}

/// A text that is cheap to clone: one of our own words, or one that was put together and is shared.
#[derive(Clone)]
pub struct Text(TextStorage);

#[derive(Clone)]
enum TextStorage {
    Fixed(&'static str),
    Shared(Arc<str>),
}

impl Text {
    /// A text, copied once.
    pub fn new(text: &str) -> Self {
        if text.is_empty() { Self::default() } else { Self(TextStorage::Shared(Arc::from(text))) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            TextStorage::Fixed(text) => text,
            TextStorage::Shared(text) => text,
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self(TextStorage::Fixed(""))
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self(TextStorage::Fixed(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        Self::new(text)
    }
}

impl From<Cow<'static, str>> for Text {
    fn from(text: Cow<'static, str>) -> Self {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.as_str().to_owned()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.as_str(), other.as_str()) || self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<Text> for &str {
    fn eq(&self, other: &Text) -> bool {
        *self == other.as_str()
    }
}

impl PartialEq<Text> for String {
    fn eq(&self, other: &Text) -> bool {
        self == other.as_str()
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_str().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_change_is_seen_by_nobody_else() {
        let mut one = Shared::new(vec![1, 2]);
        let other = one.clone();
        assert!(one.is_same(&other));
        one.push(3);
        assert_eq!((&*one, &*other), (&vec![1, 2, 3], &vec![1, 2]));
        assert!(!one.is_same(&other) && one != other);
    }

    #[test]
    fn equal_values_are_equal_wherever_they_are() {
        let (one, other) = (Shared::new("a".to_owned()), Shared::new("a".to_owned()));
        assert!(one == other && !one.is_same(&other));
        assert_eq!(one.cmp(&Shared::new("b".to_owned())), Ordering::Less);
    }

    #[test]
    fn a_fixed_word_and_a_made_one_are_the_same_text() {
        let made = Text::from(["Re", "ady"].concat());
        assert_eq!(made, Text::from("Ready"));
        assert_eq!(made, *"Ready");
        assert!(BTreeSet::from([made]).contains("Ready"), "also in a sorted set");
        assert_eq!(Text::from("a").cmp(&Text::new("b")), Ordering::Less);
    }

    #[test]
    fn they_are_written_like_what_they_hold() {
        let text = serde_json::to_string(&Shared::new(vec![Text::from("a"), Text::new("b")]));
        assert_eq!(text.expect("plain JSON"), r#"["a","b"]"#);
        let read: Shared<Vec<Text>> = serde_json::from_str(r#"["a"]"#).expect("plain JSON");
        assert_eq!(*read, [Text::from("a")]);
    }
}
