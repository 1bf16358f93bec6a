//! Another object as one identity may be shown it: by its name, or by its kind alone where that identity may not `get` it.
//!
//! Statuses hold the text. What was kept from an older status is read back here and nowhere else.

use std::fmt;

use linchpin_words::{ObjectRef, text::NOT_VISIBLE};

/// An object that a status names. What may be named comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShownObject {
    /// By what it is called.
    Named(String),
    /// By its kind.
    Hidden(String),
}

impl ShownObject {
    /// An object, to one who may see it or not; `name` is what it is called.
    pub fn new(object: &ObjectRef, name: impl fmt::Display, visible: bool) -> Self {
        if visible { Self::Named(name.to_string()) } else { Self::Hidden(object.kind.kind.clone()) }
    }

    /// Whether its name is not shown.
    pub(crate) fn is_hidden(&self) -> bool {
        matches!(self, Self::Hidden(_))
    }

    /// One that a status kept. No name of an object ends so.
    pub(crate) fn read(text: &str) -> Self {
        match text.strip_suffix(NOT_VISIBLE) {
            Some(kind) => Self::Hidden(kind.trim_end().to_owned()),
            None => Self::Named(text.to_owned()),
        }
    }
}

impl fmt::Display for ShownObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Hidden(kind) => write!(f, "{kind} {NOT_VISIBLE}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use linchpin_words::GroupKind;

    use super::*;

    #[test]
    fn what_may_not_be_seen_is_told_by_its_kind_comes_last_and_is_read_as_it_was_written() {
        let object = ObjectRef::namespaced(GroupKind::new("linchpin.dev", "Sync"), "shop", "web");
        let mut all = [false, true].map(|visible| ShownObject::new(&object, &object, visible));
        all.sort();
        assert_eq!(all.each_ref().map(ToString::to_string), ["Sync shop/web", "Sync (not visible)"]);
        assert_eq!(all.each_ref().map(ShownObject::is_hidden), [false, true]);
        for one in &all {
            assert_eq!(ShownObject::read(&one.to_string()), *one);
        }
    }
}
