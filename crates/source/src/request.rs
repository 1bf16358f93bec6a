//! From what a user wrote to a fetch that can be made: texts are read, the right list of hosts is taken, and credentials are
//! made of the Secret. Called by the operator for each look at a source.

use std::time::Duration;

use linchpin_words::{
    Reason,
    source::{Locator as Wanted, OciReference, Source},
};

use crate::{
    Problem,
    archive::ManifestSelection,
    credentials::Credentials,
    digest::Digest,
    fetch::{EarlierFetch, Fetch, FetchLocator, Fetched},
    flux::{self, FluxArtifact},
    http::Reach,
    registry::{ManifestReference, Repository},
    url::Url,
};

/// Where sources may be fetched from.
#[derive(Clone)]
pub struct SourceReach {
    /// What users name.
    pub named: Reach,
    /// What the status of an object of Flux names.
    pub flux: Reach,
}

impl SourceReach {
    /// Fetches a source; none if nothing has changed since `known`.
    pub async fn fetch(
        &self,
        source: &Source,
        timeout: Duration,
        known: Option<&EarlierFetch>,
    ) -> Result<Option<Fetched>, Problem> {
        let (reach, locator) = self.locate(&source.locator)?;
        let strip = usize::try_from(source.strip_components).unwrap_or(usize::MAX);
        let selection = ManifestSelection::new(&source.paths, strip)
            .map_err(|error| invalid(&format!("paths[{}]: {}", error.index, error.message)))?;
        let credentials = source.secret.as_ref().map(|secret| {
            Credentials::from_secret(secret.reveal(), server(&locator)).map_err(|error| {
                Problem::new(
                    Reason::Unauthorized,
                    format!("the Secret of the source cannot be used: {error}"),
                )
            })
        });
        let credentials = credentials.transpose()?;
        let fetch = Fetch {
            reach,
            locator: &locator,
            selection: &selection,
            credentials: credentials.as_ref(),
            timeout,
        };
        let mut fetched = fetch.run(known).await?;
        if let (Wanted::Flux { revision, .. }, Some(fetched)) = (&source.locator, &mut fetched) {
            fetched.known.revision.clone_from(revision);
        }
        Ok(fetched)
    }

    fn locate(&self, wanted: &Wanted) -> Result<(&Reach, FetchLocator), Problem> {
        let digest_of = |text: &str| {
            Digest::parse(text).ok_or_else(|| invalid("the digest is not sha256: and 64 hexadecimal digits"))
        };
        match wanted {
            Wanted::Http { url, digest } => {
                let url = Url::parse(url).map_err(|error| invalid(&error.to_string()))?;
                let digest = digest.as_deref().map(digest_of).transpose()?;
                Ok((&self.named, FetchLocator::Http { url, digest }))
            }
            Wanted::Oci { url, reference, media_type } => {
                let read = |clear| Repository::parse(url, clear).map_err(|error| invalid(&error.to_string()));
                // A registry is spoken to in the clear only where the administrator lists it with http://.
                let clear = read(true)?;
                let listed = self.named.hosts.check(&clear.server).is_ok();
                let repository = if listed { clear } else { read(false)? };
                let reference = match reference {
                    OciReference::Tag(tag) => {
                        ManifestReference::tag(tag).map_err(|error| invalid(&error.to_string()))?
                    }
                    OciReference::Digest(digest) => ManifestReference::Digest(digest_of(digest)?),
                };
                Ok((&self.named, FetchLocator::Oci { repository, reference, media_type: media_type.clone() }))
            }
            Wanted::Flux { kind, namespace, name, url, digest, .. } => {
                let locator = flux::locate(&FluxArtifact { kind: *kind, namespace, name, url, digest })?;
                Ok((&self.flux, locator))
            }
        }
    }
}

fn server(locator: &FetchLocator) -> &Url {
    match locator {
        FetchLocator::Http { url, .. } => url,
        FetchLocator::Oci { repository, .. } => &repository.server,
    }
}

fn invalid(message: &str) -> Problem {
    Problem::new(Reason::SpecInvalid, message)
}
