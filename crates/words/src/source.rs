//! A source: where manifests are fetched from, which of them, and with what.
//!
//! A [`Source`] is a plain value, so that equal sources of different objects are one question. Its texts are as users
//! wrote them; the fetcher checks them. What comes from a Secret rides along with its [`Origin`] and is shown nowhere,
//! also not by `Debug`. Made by doors, carried out by `crates/source`.

use std::{collections::BTreeMap, fmt};

use crate::probe::Origin;

/// Where a source is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Locator {
    /// A file of a web server.
    Http {
        /// `https://…` or `http://…`.
        url: String,
        /// What it must hash to: `sha256:` and 64 hexadecimal digits.
        digest: Option<String>,
    },
    /// A layer of an OCI artifact.
    Oci {
        /// `oci://host[:port]/repository`.
        url: String,
        /// Which manifest of it.
        reference: OciReference,
        /// The media type of the layer; otherwise the first one that is known.
        media_type: Option<String>,
    },
    /// The artifact of a source of Flux, as the status of that object says.
    Flux {
        /// The kind of the object.
        kind: FluxSourceKind,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Where the artifact is.
        url: String,
        /// What Flux calls it.
        revision: String,
        /// What it must hash to.
        digest: String,
    },
}

impl Locator {
    /// Whether it is the same place, whatever is there now.
    fn follows(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (
                Self::Flux { kind, namespace, name, .. },
                Self::Flux { kind: earlier_kind, namespace: earlier_namespace, name: earlier_name, .. },
            ) => (kind, namespace, name) == (earlier_kind, earlier_namespace, earlier_name),
            _ => self == earlier,
        }
    }

    /// Whether it names its content: what was fetched once need not be fetched again.
    pub fn is_pinned(&self) -> bool {
        match self {
            Self::Http { digest, .. } => digest.is_some(),
            Self::Oci { reference, .. } => matches!(reference, OciReference::Digest(_)),
            Self::Flux { .. } => true,
        }
    }
}

/// Which manifest of a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OciReference {
    /// The one that a tag points to now.
    Tag(String),
    /// This very one.
    Digest(String),
}

/// The kinds of Flux that have an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FluxSourceKind {
    /// A repository of Git.
    GitRepository,
    /// An OCI artifact.
    OciRepository,
    /// A bucket of an object store.
    Bucket,
    /// What somebody else publishes.
    ExternalArtifact,
}

impl FluxSourceKind {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::GitRepository, Self::OciRepository, Self::Bucket, Self::ExternalArtifact];

    /// As the kind is called.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GitRepository => "GitRepository",
            Self::OciRepository => "OCIRepository",
            Self::Bucket => "Bucket",
            Self::ExternalArtifact => "ExternalArtifact",
        }
    }
}

/// Where manifests are, which of them are meant, and what opens the door there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// Where.
    pub locator: Locator,
    /// Directories or files of an archive; none mean all of it.
    pub paths: Vec<String>,
    /// How many leading directories are taken off the names in it.
    pub strip_components: u32,
    /// The Secret with credentials.
    pub secret: Option<SecretData>,
}

impl Source {
    /// Whether another one is this one at another time: Flux has fetched something else, or the Secret has other data.
    pub fn follows(&self, earlier: &Self) -> bool {
        let secret = |source: &Self| source.secret.as_ref().map(|secret| secret.origin.uid.clone());
        let how = |source: &Self| (source.paths.clone(), source.strip_components);
        self.locator.follows(&earlier.locator) && secret(self) == secret(earlier) && how(self) == how(earlier)
    }
}

/// The data of a Secret. `Debug` shows none of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretData {
    /// Which incarnation of which Secret.
    pub origin: Origin,
    data: BTreeMap<String, Vec<u8>>,
}

impl SecretData {
    /// What was read from a Secret.
    pub fn new(origin: Origin, data: BTreeMap<String, Vec<u8>>) -> Self {
        Self { origin, data }
    }

    /// The values: for the wire alone.
    pub fn reveal(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.data
    }
}

impl fmt::Debug for SecretData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretData").field("origin", &self.origin).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_a_secret_is_not_printed() {
        let origin = Origin { uid: "u".to_owned(), version: 7 };
        let data = SecretData::new(origin, BTreeMap::from([("password".to_owned(), b"hunter2".to_vec())]));
        let shown = format!("{data:?}");
        assert!(
            shown.contains("version: 7") && !shown.contains("hunter2") && !shown.contains("104"),
            "{shown}"
        );
    }
}
