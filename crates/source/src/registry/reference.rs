//! What an artifact is called: `oci://host[:port]/repository`, and a tag or a digest.

use std::fmt;

use linchpin_words::text::quote;

use crate::{
    digest::Digest,
    url::{Scheme, Url},
};

/// A repository of a registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository {
    /// The registry; its path means nothing.
    pub server: Url,
    name: String,
}

/// Which manifest of a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ManifestReference {
    /// The one that a tag points to now.
    Tag(String),
    /// This very one.
    Digest(Digest),
}

/// What is wrong with a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestReferenceError(String);

impl fmt::Display for ManifestReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ManifestReferenceError {}

/// The longest name of a repository that registries take.
const REPOSITORY_LENGTH: usize = 255;
/// The longest tag.
const TAG_LENGTH: usize = 128;

impl Repository {
    /// Reads `oci://host[:port]/repository`. With `clear` the registry is spoken to without TLS.
    pub fn parse(text: &str, clear: bool) -> Result<Self, ManifestReferenceError> {
        let wrong = |why: &str| ManifestReferenceError(format!("the URL {} {why}", quote(text)));
        let rest = text.strip_prefix("oci://").ok_or_else(|| wrong("does not begin with oci://"))?;
        let (host, name) = rest.split_once('/').ok_or_else(|| wrong("has no repository"))?;
        let scheme = if clear { Scheme::Http } else { Scheme::Https };
        let server = Url::parse(&format!("{}://{host}/", scheme.as_str()))
            .map_err(|_| ManifestReferenceError("the URL has no usable host".to_owned()))?;
        if name.len() > REPOSITORY_LENGTH || !name.split('/').all(is_part) {
            return Err(wrong(
                "has a repository that is none (lower-case letters, digits, . _ - /; a tag goes into tag)",
            ));
        }
        Ok(Self { server, name: name.to_owned() })
    }

    pub(super) fn manifest_url(&self, reference: &ManifestReference) -> Url {
        let reference = match reference {
            ManifestReference::Tag(tag) => tag,
            ManifestReference::Digest(digest) => digest.as_str(),
        };
        self.server.at(format!("/v2/{}/manifests/{reference}", self.name))
    }

    pub(super) fn blob_url(&self, digest: &Digest) -> Url {
        self.server.at(format!("/v2/{}/blobs/{digest}", self.name))
    }

    /// What a token must allow.
    pub(super) fn scope(&self) -> String {
        format!("repository:{}:pull", self.name)
    }
}

impl ManifestReference {
    /// A tag.
    pub fn tag(text: &str) -> Result<Self, ManifestReferenceError> {
        let mut bytes = text.bytes();
        let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let rest = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        if first && rest && text.len() <= TAG_LENGTH {
            Ok(Self::Tag(text.to_owned()))
        } else {
            Err(ManifestReferenceError(format!("{} is not a tag", quote(text))))
        }
    }
}

/// One part of a repository's name: letters and digits, with single separators between them.
fn is_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let allowed = part.bytes().all(|byte| plain(byte) || b"._-".contains(&byte));
    let ends = part.bytes().next().is_some_and(plain) && part.bytes().last().is_some_and(plain);
    allowed && ends && !part.contains("..") && !part.contains("._") && !part.contains("_.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_host_and_name() {
        let repository =
            Repository::parse("oci://registry.example:5000/platform/widget-crds", false).unwrap();
        let tag = ManifestReference::tag("1.4.0").unwrap();
        let expected = "https://registry.example:5000/v2/platform/widget-crds/manifests/1.4.0";
        assert_eq!(repository.manifest_url(&tag).to_string(), expected);
        assert_eq!(repository.scope(), "repository:platform/widget-crds:pull");
        assert_eq!(Repository::parse("oci://h/a__b/c.d", true).unwrap().server.to_string(), "http://h/");
    }

    #[test]
    fn a_name_cannot_lead_out_of_its_repository() {
        for text in [
            "https://h/a",
            "oci://h",
            "oci://h/",
            "oci://h/A",
            "oci://h/a:tag",
            "oci://h/a@sha256:00",
            "oci://h/../a",
            "oci://h/a/../../b",
            "oci://h/a//b",
            "oci://h/a?x",
            "oci://h/a#x",
            "oci://u:p@h/a",
            "oci://h/-a",
            "oci:///a",
        ] {
            assert!(Repository::parse(text, false).is_err(), "{text}");
        }
        for tag in ["", ".a", "-a", "a/b", "a b", "a:b", "..", "é"] {
            assert!(ManifestReference::tag(tag).is_err(), "{tag}");
        }
        assert!(
            ManifestReference::tag(&"a".repeat(128)).is_ok()
                && ManifestReference::tag(&"a".repeat(129)).is_err()
        );
    }
}
