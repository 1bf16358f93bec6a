//! A probe: what is dialled, what is asked there, and what counts as an answer.
//!
//! A [`Probe`] is a plain value, so that equal probes of different objects are one question. Texts that users write are
//! checked when it is made: nothing in a [`Probe`] can break a line of a request. Values that come from Secrets ride along
//! with their [`Origin`] and are shown nowhere, also not by `Debug`. [`Miss`] is why a probe was not met, with a reason and
//! words for people that hold nothing a server sent. Made by doors and by the waiter, carried out by `crates/probe`.

mod miss;

use std::{fmt, net::SocketAddr};

pub use miss::{AnswerFault, Miss, NameFault, ProbePhase, TlsFault};

use crate::{limits, text};

/// What is dialled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeTarget {
    /// A host by name or address, resolved anew for each attempt.
    Host {
        /// Host name, IPv4 or IPv6 address (without brackets).
        host: String,
        /// Port.
        port: u16,
    },
    /// Addresses that are known: one good answer suffices.
    Addresses(Vec<SocketAddr>),
}

impl ProbeTarget {
    /// A host that a user named: brackets around an IPv6 address are taken off.
    pub fn host(host: &str, port: u16) -> Result<Self, ProbeError> {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let is_address = bare.parse::<std::net::Ipv6Addr>().is_ok();
        let is_name = bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let fits = !bare.is_empty() && bare.len() <= limits::NAME;
        if fits && (is_address || is_name && bare == host) {
            Ok(Self::Host { host: bare.to_owned(), port })
        } else {
            Err(ProbeError::Host(text::quote(host)))
        }
    }
}

/// `host:port`, an IPv6 address in brackets.
impl fmt::Display for ProbeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Host { host, port } => write!(f, "{host}:{port}"),
            Self::Addresses(addresses) => {
                let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                f.write_str(&shown.join(", "))
            }
        }
    }
}

/// One question to the network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probe {
    /// What is dialled.
    pub place: ProbeTarget,
    /// What is asked there; none if being connected is enough.
    pub request: Option<ProbeRequest>,
}

impl Probe {
    /// Whether something of it must not be shared with other identities: what came from a Secret or a ConfigMap.
    pub fn is_private(&self) -> bool {
        let Some(request) = &self.request else { return false };
        let roots = request.tls.as_ref().and_then(|tls| tls.roots.as_ref());
        request.headers.iter().map(|header| &header.value).chain(roots).any(|value| value.origin.is_some())
    }

    /// The kind of probe, for metrics: `tcp`, `http` or `https`.
    pub fn kind(&self) -> &'static str {
        match &self.request {
            None => "tcp",
            Some(ProbeRequest { tls: None, .. }) => "http",
            Some(ProbeRequest { tls: Some(_), .. }) => "https",
        }
    }
}

/// An HTTP request and the answers that count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProbeRequest {
    authority: String,
    path: String,
    method: String,
    headers: Vec<Header>,
    expected: Vec<u16>,
    tls: Option<Tls>,
}

/// A header of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: ProbeText,
}

/// How a server proves who it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tls {
    /// The name that is asked for and that the certificate must have.
    pub name: String,
    /// Whether any certificate will do.
    pub insecure: bool,
    /// Certificates in PEM that are trusted instead of the usual ones.
    pub roots: Option<ProbeText>,
}

/// A text that may be secret: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProbeText {
    text: String,
    origin: Option<Origin>,
}

/// The object that a value was read from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// Which object.
    pub uid: String,
    /// At which version.
    pub version: u64,
}

impl ProbeText {
    /// A value that the user wrote where everybody may read it.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), origin: None }
    }

    /// A value that was stored somewhere: the line's end that editors and shells put behind it is not part of it.
    pub fn stored(text: &str) -> Self {
        Self::literal(without_line_end(text))
    }

    /// A value that was read from an object.
    pub fn read_from(origin: Origin, text: impl Into<String>) -> Self {
        Self { text: text.into(), origin: Some(origin) }
    }

    /// The text itself: for the wire alone.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for ProbeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value").field("text", &"***").field("origin", &self.origin).finish()
    }
}

/// A text without the ends of lines behind it.
pub fn without_line_end(text: &str) -> &str {
    text.trim_end_matches(['\r', '\n'])
}

/// Whether a text can be the value of a header: by the schema's rule, which counts characters.
pub fn is_header_value(text: &str) -> bool {
    text.chars().count() <= limits::PROBE_HEADER_VALUE && !text.chars().any(char::is_control)
}

/// Headers that say how the connection itself works: they are ours to send.
const OURS: [&str; 7] =
    ["connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive"];

/// Why something cannot be probed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The host.
    #[error(
        "{0} is not a host: expected a host name, an IPv4 or an IPv6 address, without scheme, port or user"
    )]
    Host(String),
    /// The authority of a URL, or a `Host` header.
    #[error("{0} is not a host with its port")]
    Authority(String),
    /// The path.
    #[error("the path {0} is not usable: expected / and visible ASCII characters, at most {most}", most = limits::PROBE_PATH)]
    Path(String),
    /// The method.
    #[error("{0} is not an HTTP method: expected upper-case letters, for example GET")]
    Method(String),
    /// The name of a header.
    #[error(
        "{0} is not a header that can be set: expected a name such as X-Tenant, none that governs the connection"
    )]
    HeaderName(String),
    /// The value of a header, which is not repeated: it may be secret.
    #[error(
        "the value of header {0} is not usable: expected at most {most} characters, none of them a control character", most = limits::PROBE_HEADER_VALUE
    )]
    HeaderValue(String),
    /// Too many of something.
    #[error("more than {most} headers or statuses", most = limits::PROBE_LIST)]
    TooMany,
    /// A status that does not exist.
    #[error("{0} is not an HTTP status: expected 100 to 599")]
    Status(u16),
}

impl ProbeRequest {
    /// A GET of `path` at `authority` (the value of the `Host` header), without TLS; any 2xx counts.
    pub fn get(authority: &str, path: &str) -> Result<Self, ProbeError> {
        let is_authority = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]".contains(&byte);
        if authority.is_empty() || authority.len() > limits::NAME + 8 || !authority.bytes().all(is_authority)
        {
            return Err(ProbeError::Authority(text::quote(authority)));
        }
        let visible = path.bytes().all(|byte| byte.is_ascii_graphic());
        if !path.starts_with('/') || !visible || path.len() > limits::PROBE_PATH {
            return Err(ProbeError::Path(text::quote(path)));
        }
        // What follows # is never sent.
        let sent = path.split('#').next().unwrap_or_default();
        Ok(Self {
            authority: authority.to_owned(),
            path: sent.to_owned(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            expected: Vec::new(),
            tls: None,
        })
    }

    /// The same with another method.
    pub fn method(mut self, method: &str) -> Result<Self, ProbeError> {
        let fits = (1..=limits::PROBE_METHOD).contains(&method.len());
        if !fits || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(ProbeError::Method(text::quote(method)));
        }
        method.clone_into(&mut self.method);
        Ok(self)
    }

    /// The same with a further header. `Host` replaces the authority.
    pub fn header(mut self, name: &str, value: ProbeText) -> Result<Self, ProbeError> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let lower = name.to_ascii_lowercase();
        let ours = OURS.contains(&lower.as_str()) || lower.starts_with("proxy-");
        let fits = (1..=limits::PROBE_HEADER_NAME).contains(&name.len());
        if !fits || ours || !name.bytes().all(is_token) {
            return Err(ProbeError::HeaderName(text::quote(name)));
        }
        if !is_header_value(value.reveal()) {
            return Err(ProbeError::HeaderValue(text::quote(name)));
        }
        if self.headers.len() >= limits::PROBE_LIST {
            return Err(ProbeError::TooMany);
        }
        self.headers.push(Header { name: name.to_owned(), value });
        Ok(self)
    }

    /// The same, where exactly these statuses count; none means any 2xx.
    pub fn expect(mut self, statuses: impl IntoIterator<Item = u16>) -> Result<Self, ProbeError> {
        for status in statuses {
            if !(100..=599).contains(&status) {
                return Err(ProbeError::Status(status));
            }
            if self.expected.len() >= limits::PROBE_LIST {
                return Err(ProbeError::TooMany);
            }
            self.expected.push(status);
        }
        // Their order means nothing: equal probes are equal values.
        self.expected.sort_unstable();
        self.expected.dedup();
        Ok(self)
    }

    /// The same over TLS.
    #[must_use]
    pub fn over(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// How it is secured, where it is.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// The method that is sent.
    pub fn verb(&self) -> &str {
        &self.method
    }

    /// Whether a status counts as an answer.
    pub fn accepts(&self, status: u16) -> bool {
        if self.expected.is_empty() { (200..300).contains(&status) } else { self.expected.contains(&status) }
    }

    /// The request as it goes over the wire: it has no body, and the connection ends with the answer.
    pub fn wire(&self, agent: &str) -> Vec<u8> {
        let given = |name: &str| self.headers.iter().any(|header| header.name.eq_ignore_ascii_case(name));
        let mut lines = vec![format!("{} {} HTTP/1.1", self.method, self.path)];
        if !given("host") {
            lines.push(format!("Host: {}", self.authority));
        }
        for (name, value) in [("User-Agent", agent), ("Accept", "*/*")] {
            if !given(name) {
                lines.push(format!("{name}: {value}"));
            }
        }
        let headers = self.headers.iter();
        lines.extend(headers.map(|header| format!("{}: {}", header.name, header.value.reveal())));
        if matches!(self.method.as_str(), "POST" | "PUT" | "PATCH") {
            lines.push("Content-Length: 0".to_owned());
        }
        lines.push("Connection: close\r\n\r\n".to_owned());
        lines.join("\r\n").into_bytes()
    }
}

#[cfg(test)]
mod tests;
