//! One fetch: from what a Sync names to the manifests it applies, or to why not.
//!
//! A fetch that finds what is known already says so and reads nothing. The whole of it, name resolution, redirects,
//! tokens and bodies included, has one limit in time.

use std::{sync::Arc, time::Duration};

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED},
};
use linchpin_words::limits;
use rustls::ClientConfig;

use crate::{
    Problem,
    archive::{self, Manifest, ManifestSelection},
    credentials::Credentials,
    digest::Digest,
    http::{Get, Reach},
    registry::{ManifestReference, Pull, Repository, layer},
    tls,
    url::Url,
};

/// What is fetched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FetchLocator {
    /// A file of a web server.
    Http {
        /// Where.
        url: Url,
        /// What it must hash to.
        digest: Option<Digest>,
    },
    /// A layer of an artifact.
    Oci {
        /// Where.
        repository: Repository,
        /// Which.
        reference: ManifestReference,
        /// The media type of the layer.
        media_type: Option<String>,
    },
}

/// What is known of an earlier fetch with the same locator, selection and credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierFetch {
    /// The revision it had.
    pub revision: String,
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
}

/// What a fetch gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// What to send with the next fetch.
    pub known: EarlierFetch,
    /// The digest of what was downloaded.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: usize,
    /// The manifests.
    pub manifests: Vec<Manifest>,
}

impl Fetched {
    /// The revision.
    pub fn revision(&self) -> &str {
        &self.known.revision
    }
}

/// A fetch to be made.
pub struct Fetch<'f> {
    /// Where requests may go.
    pub reach: &'f Reach,
    /// What is fetched.
    pub locator: &'f FetchLocator,
    /// Which manifests of it.
    pub selection: &'f ManifestSelection,
    /// Who we are there.
    pub credentials: Option<&'f Credentials>,
    /// How long all of it may take.
    pub timeout: Duration,
}

impl Fetch<'_> {
    /// Fetches; none if nothing has changed since `known`.
    pub async fn run(&self, known: Option<&EarlierFetch>) -> Result<Option<Fetched>, Problem> {
        let tls = tls::client(self.credentials.and_then(Credentials::authorities))?;
        let work = async {
            match self.locator {
                FetchLocator::Http { url, digest } => self.http(url, digest.as_ref(), &tls, known).await,
                FetchLocator::Oci { repository, reference, media_type } => {
                    self.oci(repository, reference, media_type.as_deref(), &tls, known).await
                }
            }
        };
        let late = |_| Problem::failed(format!("the source was not there within {:?}", self.timeout));
        tokio::time::timeout(self.timeout, work).await.map_err(late)?
    }

    async fn http(
        &self,
        url: &Url,
        digest: Option<&Digest>,
        tls: &Arc<ClientConfig>,
        known: Option<&EarlierFetch>,
    ) -> Result<Option<Fetched>, Problem> {
        let mut headers = HeaderMap::new();
        if let Some(known) = known {
            let both = [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.last_modified)];
            for (name, value) in both {
                headers.extend(value.clone().map(|value| (name, value)));
            }
        }
        let authorization = self.credentials.and_then(Credentials::authorization);
        let get = Get { url, headers, authorization, tls, limit: limits::SOURCE_DOWNLOAD };
        let answer = self.reach.get(&get).await?;
        if answer.status == StatusCode::NOT_MODIFIED && known.is_some() {
            return Ok(None);
        }
        let answer = answer.success()?;
        if let Some(digest) = digest {
            digest.check(&answer.body, "what was downloaded")?;
        }
        let found = Digest::of(&answer.body);
        let now = EarlierFetch {
            revision: found.to_string(),
            etag: answer.headers.get(ETAG).cloned(),
            last_modified: answer.headers.get(LAST_MODIFIED).cloned(),
        };
        self.unpack(now, found, answer.body).await.map(Some)
    }

    async fn oci(
        &self,
        repository: &Repository,
        reference: &ManifestReference,
        media_type: Option<&str>,
        tls: &Arc<ClientConfig>,
        known: Option<&EarlierFetch>,
    ) -> Result<Option<Fetched>, Problem> {
        let pull = Pull { reach: self.reach, repository, credentials: self.credentials, tls };
        let (digest, manifest) = pull.manifest(reference).await?;
        let revision = match reference {
            ManifestReference::Tag(tag) => format!("{tag}@{digest}"),
            ManifestReference::Digest(digest) => digest.to_string(),
        };
        if known.is_some_and(|known| known.revision == revision) {
            return Ok(None);
        }
        let layer = layer(&manifest, media_type)?;
        let bytes = pull.layer(&layer).await?;
        self.unpack(EarlierFetch { revision, ..EarlierFetch::default() }, layer.digest, bytes).await.map(Some)
    }

    /// Unpacks what was downloaded, on a thread where that holds nobody else up.
    async fn unpack(&self, known: EarlierFetch, digest: Digest, bytes: Vec<u8>) -> Result<Fetched, Problem> {
        let (size, selection) = (bytes.len(), self.selection.clone());
        let unpacking = tokio::task::spawn_blocking(move || archive::unpack(&bytes, &selection));
        let cut_off = |_| Problem::failed("the source could not be unpacked before the operator stopped");
        let manifests = unpacking.await.map_err(cut_off)??;
        Ok(Fetched { known, digest, size, manifests })
    }
}
