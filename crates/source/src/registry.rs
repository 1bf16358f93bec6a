//! OCI artifacts: a manifest by tag or digest, and the one layer of it that holds the manifests to apply.
//!
//! Everything is addressed by its content: the manifest by what it hashes to here (servers need not say), the layer by
//! the digest that the manifest names. A registry may ask for a token first; the service that gives it is checked like
//! every other server, and is asked for the scope that we need and no other.

mod challenge;
mod manifest;
mod reference;

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, WWW_AUTHENTICATE},
};
use linchpin_words::limits;
use rustls::ClientConfig;
use serde::Deserialize;
use std::sync::Arc;

use self::challenge::Challenge;
pub use self::{
    manifest::{Layer, layer},
    reference::{ManifestReference, ManifestReferenceError, Repository},
};
use crate::{
    Problem,
    credentials::Credentials,
    digest::Digest,
    http::{Get, HttpAnswer, Reach, failed},
    url::Url,
};

/// A pull from one repository.
pub struct Pull<'p> {
    /// Where requests may go.
    pub reach: &'p Reach,
    /// The repository.
    pub repository: &'p Repository,
    /// Who we are there.
    pub credentials: Option<&'p Credentials>,
    /// Whom to believe there.
    pub tls: &'p Arc<ClientConfig>,
}

/// What a token service answers.
#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

impl Pull<'_> {
    /// The digest of a manifest and its bytes.
    pub async fn manifest(&self, reference: &ManifestReference) -> Result<(Digest, Vec<u8>), Problem> {
        let url = self.repository.manifest_url(reference);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(manifest::ACCEPTED));
        let body = self.get(&url, headers, limits::REGISTRY_MANIFEST).await?.body;
        if let ManifestReference::Digest(digest) = reference {
            digest.check(&body, "the manifest that the registry answers")?;
        }
        Ok((Digest::of(&body), body))
    }

    /// The bytes of a layer.
    pub async fn layer(&self, layer: &Layer) -> Result<Vec<u8>, Problem> {
        let url = self.repository.blob_url(&layer.digest);
        let body = self.get(&url, HeaderMap::new(), limits::SOURCE_DOWNLOAD).await?.body;
        layer.digest.check(&body, "the layer that the registry answers")?;
        Ok(body)
    }

    /// Asks, and asks again with a token if the registry wants one.
    async fn get(&self, url: &Url, headers: HeaderMap, limit: usize) -> Result<HttpAnswer, Problem> {
        let own = self.credentials.and_then(Credentials::authorization);
        let get = Get { url, headers, authorization: own, tls: self.tls, limit };
        let answer = self.reach.get(&get).await?;
        if answer.status != StatusCode::UNAUTHORIZED || !answer.from.same_server(url) {
            return answer.success();
        }
        let wanted = answer.headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let Some(Challenge::Bearer { realm, service }) = wanted.and_then(Challenge::parse) else {
            return answer.success();
        };
        let token = self.token(&realm, service.as_deref(), own).await?;
        let authorization = format!("Bearer {token}");
        let get = Get { authorization: Some(&authorization), ..get };
        self.reach.get(&get).await?.success()
    }

    /// Gets a token to pull. Our credentials go along only where the service is on the registry's own server.
    async fn token(&self, realm: &Url, service: Option<&str>, own: Option<&str>) -> Result<String, Problem> {
        let url = realm.at(challenge::query(&realm.path, service, &self.repository.scope()));
        let trusted = realm.same_server(&self.repository.server);
        let get = Get {
            url: &url,
            headers: HeaderMap::new(),
            authorization: own.filter(|_| trusted),
            tls: self.tls,
            limit: limits::REGISTRY_TOKEN,
        };
        let body = self.reach.get(&get).await?.success()?.body;
        let garbage = || failed(realm, "answers something else than a token");
        let answer: TokenAnswer = serde_json::from_slice(&body).map_err(|_| garbage())?;
        let token = if answer.token.is_empty() { answer.access_token } else { answer.token };
        if token.is_empty() || !token.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
            return Err(garbage());
        }
        Ok(token)
    }
}
