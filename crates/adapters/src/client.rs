//! Asks a server that the administrator names for JSON, through the one checked connector of `linchpin-source`.
//!
//! Time and size of every answer are bounded, redirects are not followed, plain text goes to this machine alone unless the
//! administrator says otherwise. The token is read again for every request, so that one which was changed counts at once;
//! it is in no message. Used by the adapters that speak HTTP.

use std::{
    fmt::{self, Write as _},
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header::CONTENT_TYPE};
use linchpin_consist::Trouble;
use linchpin_source::{
    hosts::HostList,
    http::{HttpRequest, Reach},
    tls,
    url::{Scheme, Url},
};
use linchpin_words::{egress::Egress, limits, text};
use rustls::ClientConfig;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where it is.
    pub url: String,
    /// The file with the bearer token.
    pub token_file: Option<PathBuf>,
    /// The file with the certificates to believe instead of the usual ones.
    pub ca_file: Option<PathBuf>,
    /// How long one answer may take.
    pub timeout: Duration,
    /// Whether plain text may leave this machine.
    pub allow_insecure: bool,
}

/// What TLS is made with, and the file's content that it was made of.
type Believed = Mutex<Option<(Vec<u8>, Arc<ClientConfig>)>>;

/// A server that answers JSON.
pub struct ProviderClient {
    base: Url,
    reach: Reach,
    access: Access,
    believed: Believed,
}

impl fmt::Debug for ProviderClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("access", &self.access).finish_non_exhaustive()
    }
}

/// One request.
#[derive(Debug)]
pub(crate) struct ProviderRequest<'r> {
    pub(crate) method: Method,
    /// The path below the address, with its query.
    pub(crate) path: &'r str,
    pub(crate) headers: HeaderMap,
    /// The Authorization header, where it is not the token's.
    pub(crate) authorization: Option<&'r str>,
    pub(crate) body: Option<&'r Value>,
}

impl<'r> ProviderRequest<'r> {
    pub(crate) fn new(method: Method, path: &'r str, body: Option<&'r Value>) -> Self {
        Self { method, path, headers: HeaderMap::new(), authorization: None, body }
    }
}

/// An answer: its status and its body, which is null where it is not JSON.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Reply {
    /// What the server says of itself, where the status is not as agreed.
    pub(crate) fn refused(&self) -> String {
        let code = self.status.as_u16();
        match self.body.get("message").and_then(Value::as_str) {
            Some(message) => format!("answers {code}: {}", text::line(message)),
            None => format!("answers {code}"),
        }
    }
}

impl ProviderClient {
    /// A client for a server; `flag` names where its address came from.
    pub fn new(flag: &'static str, access: Access) -> Result<Self, Trouble> {
        let wrong = |why: &str| Trouble(format!("{flag}: {why}"));
        let mut base = Url::parse(&access.url).map_err(|error| wrong(&error.to_string()))?;
        if base.path.contains('?') {
            return Err(wrong("the URL has a query; it is the part before /v1/"));
        }
        base.path.truncate(base.path.trim_end_matches('/').len());
        if base.scheme == Scheme::Http && !is_this_machine(&base.host) && !access.allow_insecure {
            return Err(wrong(
                "http:// beyond this machine sends everything in the clear; use https:// or --allow-insecure-provider",
            ));
        }
        let host = format!("{}://{}", base.scheme.as_str(), base.authority());
        let hosts = HostList::parse(flag, &host).map_err(|error| wrong(&error))?;
        // The administrator's own address: this machine is where most providers' agents listen.
        let egress = Egress::default().with_loopback();
        let reach = Reach { hosts: Arc::new(hosts), egress: Arc::new(egress) };
        Ok(Self { base, reach, access, believed: Believed::default() })
    }

    /// Host and port as the Host header has them.
    pub(crate) fn authority(&self) -> String {
        self.base.authority()
    }

    /// Sends a request and reads the answer.
    pub(crate) async fn ask(&self, request: ProviderRequest<'_>) -> Result<Reply, Trouble> {
        let url = self.base.at(format!("{}{}", self.base.path, request.path));
        let method = request.method.clone();
        let trouble = |why: &str| Trouble(text::line(&format!("{method} {url}: {why}")));
        match tokio::time::timeout(self.access.timeout, self.send(&url, request)).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(why)) => Err(trouble(&why)),
            Err(_) => Err(trouble(&format!("no answer within {:?}", self.access.timeout))),
        }
    }

    async fn send(&self, url: &Url, request: ProviderRequest<'_>) -> Result<Reply, String> {
        let ProviderRequest { method, mut headers, authorization, body, .. } = request;
        let token = match &self.access.token_file {
            Some(file) => Some(format!("Bearer {}", token(file).await?)),
            None => None,
        };
        let tls = self.believed().await?;
        let body = match body {
            Some(body) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                serde_json::to_vec(body).map_err(|_| "the request cannot be written as JSON".to_owned())?
            }
            None => Vec::new(),
        };
        let ask = HttpRequest {
            method,
            url,
            headers,
            authorization: authorization.or(token.as_deref()),
            tls: &tls,
            body: body.into(),
            limit: limits::PROVIDER_ANSWER,
        };
        let answer = self.reach.ask(ask).await.map_err(|problem| problem.message)?;
        Ok(Reply { status: answer.status, body: serde_json::from_slice(&answer.body).unwrap_or_default() })
    }

    /// Whom to believe, made anew when the file has changed.
    async fn believed(&self) -> Result<Arc<ClientConfig>, String> {
        let pem = match &self.access.ca_file {
            Some(file) => read(file, limits::PROBE_ROOTS).await?,
            None => Vec::new(),
        };
        let known = self.believed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, config)) = known.filter(|(of, _)| *of == pem) {
            return Ok(config);
        }
        let authorities = self.access.ca_file.is_some().then_some(pem.as_slice());
        let unusable = |_| "--ca-file holds no certificate that can be used".to_owned();
        let config = tls::client(authorities).map_err(unusable)?;
        *self.believed.lock().unwrap_or_else(PoisonError::into_inner) = Some((pem, config.clone()));
        Ok(config)
    }
}

/// Whether a host is this machine, whatever a name server says.
fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The token in a file.
async fn token(file: &Path) -> Result<String, String> {
    let bytes = read(file, limits::PROBE_HEADER_VALUE).await?;
    let token = std::str::from_utf8(&bytes).unwrap_or_default().trim();
    if token.is_empty() || !token.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
        return Err(format!("the token file {} holds no token", file.display()));
    }
    Ok(token.to_owned())
}

/// A file of at most so many bytes.
async fn read(file: &Path, limit: usize) -> Result<Vec<u8>, String> {
    let failed = |why: &str| format!("the file {} {why}", file.display());
    let opened = tokio::fs::File::open(file).await.map_err(|_| failed("cannot be opened"))?;
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    opened.take(most).read_to_end(&mut bytes).await.map_err(|_| failed("cannot be read"))?;
    if bytes.len() > limit { Err(failed(&format!("has more than {limit} bytes"))) } else { Ok(bytes) }
}

/// One segment of a path, so that no character of it means anything.
pub(crate) fn segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    // A path of dots alone would be another place.
    if matches!(encoded.as_str(), "." | "..") { encoded.replace('.', "%2E") } else { encoded }
}

/// What the escapes mean of a segment; none where it is no text.
pub(crate) fn unescaped(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            bytes.push(digit(rest.next()?)? << 4 | digit(rest.next()?)?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn access(url: &str) -> Access {
        Access {
            url: url.to_owned(),
            token_file: None,
            ca_file: None,
            timeout: Duration::from_secs(5),
            allow_insecure: false,
        }
    }

    #[test]
    fn plain_text_stays_on_this_machine_unless_it_is_allowed() {
        for (url, fits) in [
            ("http://127.0.0.1:9900", true),
            ("http://localhost:9900/base/", true),
            ("http://[::1]:9900", true),
            ("https://provider.example", true),
            ("http://provider.example", false),
            ("http://10.0.0.1:80", false),
            ("http://127.0.0.1.example:80", false),
            ("https://provider.example/?a=b", false),
            ("ftp://provider.example", false),
        ] {
            assert_eq!(ProviderClient::new("--provider", access(url)).is_ok(), fits, "{url}");
        }
        let allowed = Access { allow_insecure: true, ..access("http://provider.example") };
        assert!(ProviderClient::new("--provider", allowed).is_ok());
        let refused =
            ProviderClient::new("--provider", access("https://u:hunter2@h/")).unwrap_err().to_string();
        assert!(refused.starts_with("--provider: ") && !refused.contains("hunter2"), "{refused}");
    }

    proptest! {
        #[test]
        fn a_segment_says_what_it_was_made_of_and_means_nothing_else(text in ".{0,40}") {
            let encoded = segment(&text);
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#;".contains(&byte)));
            prop_assert!(encoded != "." && encoded != "..");
            prop_assert_eq!(unescaped(&encoded), Some(text));
        }
    }
}
