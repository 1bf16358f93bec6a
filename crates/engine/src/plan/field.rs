//! Where something is in an object: `spec.groups[1].components[0].template`.
//!
//! Errors of a spec carry it, so that a caller that shows them reads the path and not a text.

use std::fmt;

/// One step into an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldSegment {
    /// A field; of a text in it, with what is meant of that in parentheses.
    Name(String),
    /// An entry of a list.
    Index(usize),
    /// An entry of a map, whose key is no name of a field.
    Key(String),
}

/// A path from the root of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<FieldSegment>);

impl FieldPath {
    /// A path as people write it. Every text is one, and is shown again as it was written.
    pub fn parse(text: &str) -> Self {
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let inner = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'));
            rest = if let Some((key, after)) = inner {
                let index = key.parse().ok().filter(|index: &usize| index.to_string() == key);
                segments.push(index.map_or_else(|| FieldSegment::Key(key.to_owned()), FieldSegment::Index));
                after
            } else {
                let after_dot =
                    if segments.is_empty() { rest } else { rest.strip_prefix('.').unwrap_or(rest) };
                let (name, after) = after_dot.split_at(end_of_name(after_dot));
                segments.push(FieldSegment::Name(name.to_owned()));
                after
            };
        }
        let path = Self(segments);
        if path.to_string() == text { path } else { Self(vec![FieldSegment::Name(text.to_owned())]) }
    }

    /// Its steps, from the root.
    pub fn segments(&self) -> &[FieldSegment] {
        &self.0
    }

    /// Which entry it is in, of the list that these fields lead to.
    pub fn index_in(&self, list: &str) -> Option<usize> {
        let place =
            self.0.iter().position(|segment| matches!(segment, FieldSegment::Name(name) if name == list))?;
        match self.0.get(place + 1)? {
            FieldSegment::Index(index) => Some(*index),
            FieldSegment::Name(_) | FieldSegment::Key(_) => None,
        }
    }

    /// Whether it leads into a field of one of these names.
    pub fn is_in(&self, fields: &[&str]) -> bool {
        self.0
            .iter()
            .any(|segment| matches!(segment, FieldSegment::Name(name) if fields.contains(&name.as_str())))
    }
}

/// Where the name at the beginning of a text ends; what is in parentheses belongs to it.
fn end_of_name(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '.' | '[' if depth == 0 && at > 0 => return at,
            _ => {}
        }
    }
    text.len()
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                FieldSegment::Name(name) if at == 0 => f.write_str(name)?,
                FieldSegment::Name(name) => write!(f, ".{name}")?,
                FieldSegment::Index(index) => write!(f, "[{index}]")?,
                FieldSegment::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

impl From<&str> for FieldPath {
    fn from(text: &str) -> Self {
        Self::parse(text)
    }
}

impl From<&String> for FieldPath {
    fn from(text: &String) -> Self {
        Self::parse(text)
    }
}

impl From<String> for FieldPath {
    fn from(text: String) -> Self {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_shown_again_as_it_was_written() {
        for text in [
            "",
            "spec",
            "spec.groups[1].components[0].template",
            "spec.a.source.configMapRef (key web.yaml)[0].kind",
            "spec.a.porchPackageRef (web/all.yaml)",
            "metadata.annotations[linchpin.dev/first-journal]",
            "a..b",
            ".a",
            "a[",
            "a[01]",
            "a]b[x",
            "[0]",
            "(((",
        ] {
            assert_eq!(FieldPath::parse(text).to_string(), text);
        }
    }

    #[test]
    fn a_path_is_asked_for_entries_and_fields() {
        let path = FieldPath::parse("spec.groups[1].components[12].template.metadata");
        assert_eq!((path.index_in("groups"), path.index_in("components")), (Some(1), Some(12)));
        assert_eq!((path.index_in("template"), path.index_in("nothing")), (None, None));
        assert!(path.is_in(&["source", "template"]) && !path.is_in(&["group"]));
        let keyed = FieldPath::parse("spec.x (key spec.groups[3].y)[0]");
        assert_eq!((keyed.index_in("groups"), keyed.segments().len()), (None, 3));
    }
}
