//! References to objects as people write them: `deployment/web`, `crd/widgets.example.com`, `pods.v1/db-0`.
//!
//! ```text
//! reference = kind "/" name            an object
//!           | kind                     all objects of a kind, only together with a selector
//! kind      = word [ "." version ] [ "." group ]
//! ```
//!
//! `word` is a kind, its plural or a short name, in any case; `version` looks like `v1` or `v2beta1`. Which kind a
//! word means is known from [`built_in`] for Kubernetes' own kinds and from discovery, in the rim, for all others;
//! `version/kubernetes` is the server's version and no object. Called wherever a spec holds a reference. Parsing is
//! total: any text gives a reference or an error that says where and what to write instead.

mod built_in;
mod key;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

pub use self::{
    built_in::{BuiltIn, all_built_in, built_in, built_in_kind},
    key::{as_identifier, template_keys},
};
use crate::{kind, limits, text};

/// A kind as written: a word, and the group and version if they were given. All in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KindWord {
    /// Kind, plural or short name.
    pub word: String,
    /// API group; the core group is the empty string. None where none was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// API version; none where none was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// An object, or with a selector all objects of a kind, as written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The kind.
    pub word: KindWord,
    /// The object's name; none for all objects of the kind.
    pub name: Option<String>,
}

/// Why a text is not a reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Nothing was written.
    #[error("the reference is empty; write kind/name, for example deployment/web")]
    Empty,
    /// A kind alone, where an object is needed.
    #[error("{text} has no name; write kind/name, for example deployment/web, or give a selector")]
    NoName {
        /// The text, quoted.
        text: String,
    },
    /// An object, where a kind is needed.
    #[error(
        "{text} names one object at character {position}; with a selector write the kind only, for example pod"
    )]
    NameWithSelector {
        /// The text, quoted.
        text: String,
        /// Where, in characters from 1.
        position: usize,
    },
    /// A part of the kind is missing or misspelt.
    #[error("{text}: expected {expected} at character {position}; write kind/name or kind.group/name")]
    Kind {
        /// The text, quoted.
        text: String,
        /// What was expected.
        expected: &'static str,
        /// Where, in characters from 1.
        position: usize,
    },
    /// The name holds a character that no name can have.
    #[error("{text}: unexpected {found} in the name at character {position}; {hint}")]
    Name {
        /// The text, quoted.
        text: String,
        /// The character, quoted.
        found: String,
        /// Where, in characters from 1.
        position: usize,
        /// What to do.
        hint: &'static str,
    },
    /// A part is too long.
    #[error("{text}: the {part} at character {position} is longer than {limit} bytes")]
    TooLong {
        /// The text, quoted.
        text: String,
        /// Which part.
        part: &'static str,
        /// Where it starts, in characters from 1.
        position: usize,
        /// How long it may be.
        limit: usize,
    },
}

impl Reference {
    /// Reads a reference to one object.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let (word, name) = match text.split_once('/') {
            _ if text.is_empty() => return Err(ReferenceError::Empty),
            None | Some((_, "")) => {
                KindWord::read(text, text.strip_suffix('/').unwrap_or(text))?;
                return Err(ReferenceError::NoName { text: text::quote(text) });
            }
            Some(parts) => parts,
        };
        let word = KindWord::read(text, word)?;
        check_name(text, name)?;
        Ok(Self { word, name: Some(name.to_owned()) })
    }

    /// Reads a kind that means all its objects; a selector says which.
    pub fn parse_kind(text: &str) -> Result<Self, ReferenceError> {
        if text.is_empty() {
            return Err(ReferenceError::Empty);
        }
        if let Some(slash) = text.find('/') {
            let position = text::position(text, slash);
            return Err(ReferenceError::NameWithSelector { text: text::quote(text), position });
        }
        Ok(Self { word: KindWord::read(text, text)?, name: None })
    }

    /// Whether this is `version/kubernetes`: the server's version, which is no object.
    pub fn is_server_version(&self) -> bool {
        self.word.word == "version" && self.word.group.is_none() && self.name.as_deref() == Some("kubernetes")
    }
}

impl KindWord {
    /// What is wrong with its parts, if no API server can serve a kind that is called so.
    pub fn problem(&self) -> Option<&'static str> {
        let group = self.group.as_deref().and_then(kind::group_problem);
        group
            .or_else(|| self.version.as_deref().and_then(kind::version_problem))
            .or_else(|| kind::word_problem(&self.word))
    }

    /// A bare word.
    pub fn new(word: impl AsRef<str>) -> Self {
        Self { word: word.as_ref().to_ascii_lowercase(), group: None, version: None }
    }

    /// Reads `word`, `word.group`, `word.version` or `word.version.group`.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        Reference::parse_kind(text).map(|reference| reference.word)
    }

    /// The kind that a manifest's `apiVersion` and `kind` say. Without `apiVersion` it is a bare word.
    pub fn from_manifest(api_version: Option<&str>, kind: &str) -> Self {
        let (group, version) = match api_version {
            None => (None, None),
            Some(text) => match text.split_once('/') {
                None => (Some(String::new()), Some(text.to_ascii_lowercase())),
                Some((group, version)) => {
                    (Some(group.to_ascii_lowercase()), Some(version.to_ascii_lowercase()))
                }
            },
        };
        Self { word: kind.to_ascii_lowercase(), group, version }
    }

    /// Reads the kind at the start of `text`.
    fn read(text: &str, kind: &str) -> Result<Self, ReferenceError> {
        let wrong = |expected, offset| ReferenceError::Kind {
            text: text::quote(text),
            expected,
            position: text::position(text, offset),
        };
        let too_long = |part, offset, limit| ReferenceError::TooLong {
            text: text::quote(text),
            part,
            position: text::position(text, offset),
            limit,
        };
        let mut parts = kind.splitn(2, '.');
        let word = parts.next().unwrap_or_default();
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(wrong("a kind", 0));
        }
        if let Some(offset) = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            return Err(wrong("a letter, a digit, \".\" or \"/\"", offset));
        }
        if word.len() > limits::LABEL {
            return Err(too_long("kind", 0, limits::LABEL));
        }
        let (mut group, mut version) = (None, None);
        if let Some(rest) = parts.next() {
            let start = word.len() + 1;
            let (first, others) =
                rest.split_once('.').map_or((rest, None), |(first, others)| (first, Some(others)));
            let rest = if looks_like_a_version(first) {
                version = Some(first.to_ascii_lowercase());
                others.unwrap_or_default()
            } else {
                if rest.is_empty() {
                    return Err(wrong("an API group", start));
                }
                rest
            };
            check_group(rest, start + (kind.len() - start - rest.len()), wrong)?;
            if rest.len() > limits::GROUP_NAME {
                return Err(too_long("API group", start, limits::GROUP_NAME));
            }
            group = Some(rest.to_ascii_lowercase());
        }
        Ok(Self { word: word.to_ascii_lowercase(), group, version })
    }
}

/// Refuses a group that is no DNS subdomain; an empty one is the core group, written as a version alone.
fn check_group(
    group: &str,
    start: usize,
    wrong: impl Fn(&'static str, usize) -> ReferenceError,
) -> Result<(), ReferenceError> {
    if group.is_empty() {
        return Ok(());
    }
    if let Some(offset) = group.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.') {
        return Err(wrong("a letter, a digit, \"-\", \".\" or \"/\"", start + offset));
    }
    let mut offset = start;
    for label in group.split('.') {
        if label.is_empty() {
            return Err(wrong("a part of the API group", offset));
        }
        offset += label.len() + 1;
    }
    Ok(())
}

/// Whether a part between dots is a version, such as `v1` or `v2beta1`, and not the start of a group.
fn looks_like_a_version(part: &str) -> bool {
    let lower = part.to_ascii_lowercase();
    let Some(number) = lower.strip_prefix('v') else {
        return false;
    };
    let stage = number.trim_start_matches(|c: char| c.is_ascii_digit());
    if stage.len() == number.len() {
        return false;
    }
    let minor = stage.strip_prefix("alpha").or_else(|| stage.strip_prefix("beta"));
    stage.is_empty()
        || minor.is_some_and(|minor| !minor.is_empty() && minor.bytes().all(|b| b.is_ascii_digit()))
}

/// Refuses names that no object can have. Names are case-sensitive and some kinds allow nearly anything.
fn check_name(text: &str, name: &str) -> Result<(), ReferenceError> {
    let start = text.len() - name.len();
    let unexpected = |offset: usize, found: &str, hint| ReferenceError::Name {
        text: text::quote(text),
        found: text::quote(found),
        position: text::position(text, start + offset),
        hint,
    };
    for (offset, character) in name.char_indices() {
        let hint = match character {
            '/' => "a group is written kind.group/name, a namespace goes into the field namespace",
            '{' | '}' => "references are not templates",
            '%' => "names cannot be percent-encoded",
            _ if character.is_whitespace() || character.is_control() => "names have no white space",
            _ => continue,
        };
        return Err(unexpected(offset, character.encode_utf8(&mut [0; 4]), hint));
    }
    if name == "." || name == ".." {
        return Err(unexpected(0, name, "this is no name"));
    }
    if name.len() > limits::NAME {
        let position = text::position(text, start);
        return Err(ReferenceError::TooLong {
            text: text::quote(text),
            part: "name",
            position,
            limit: limits::NAME,
        });
    }
    Ok(())
}

impl fmt::Display for KindWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.word)?;
        for part in [&self.version, &self.group].into_iter().flatten().filter(|part| !part.is_empty()) {
            write!(f, ".{part}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{}/{name}", self.word),
            None => write!(f, "{}", self.word),
        }
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests;
