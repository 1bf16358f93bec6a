//! Addresses that users and servers write: `https://host:port/path`, without user info and fragment.

use std::fmt;

use http::Uri;
use linchpin_words::{limits, text::quote};

/// Whether a connection is private.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Over TLS.
    Https,
    /// In the clear.
    Http,
}

impl Scheme {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    fn usual_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}

/// An address, checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Url {
    /// Whether it is private.
    pub scheme: Scheme,
    /// The host, in lower case and without a dot at its end; an IPv6 address without its brackets.
    pub host: String,
    /// The port, also where it is the usual one.
    pub port: u16,
    /// Path and query, beginning with a slash.
    pub path: String,
}

/// What is wrong with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError(String);

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UrlError {}

impl Url {
    /// Reads an `http://` or `https://` address.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > limits::SOURCE_URL {
            return Err(UrlError(format!("the URL is longer than {} bytes", limits::SOURCE_URL)));
        }
        let wrong = |why: &str| UrlError(format!("the URL {} {why}", quote(&without_user_info(text))));
        if text.contains('#') {
            return Err(wrong("has a fragment"));
        }
        let uri: Uri = text.parse().map_err(|_| wrong("is not one"))?;
        let scheme = match uri.scheme_str() {
            Some("https") => Scheme::Https,
            Some("http") => Scheme::Http,
            _ => return Err(wrong("begins with neither https:// nor http://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("has user info in it; credentials come from a Secret"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let host = plain_host(host);
        if host.is_empty() {
            return Err(wrong("has no host"));
        }
        let port = match authority.as_str().rsplit_once(':') {
            Some((_, digits)) if !digits.contains(']') => digits
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| wrong("has a port that is none"))?,
            _ => scheme.usual_port(),
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { scheme, host, port, path })
    }

    /// Where a redirect leads, seen from here.
    pub fn join(&self, location: &str) -> Result<Self, UrlError> {
        if location.contains("://") {
            // What follows # is for the reader alone.
            return Self::parse(location.split('#').next().unwrap_or_default());
        }
        let location = location.split('#').next().unwrap_or_default();
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{}://{rest}", self.scheme.as_str()));
        }
        let path = if location.starts_with('/') {
            location.to_owned()
        } else {
            let own = self.path.split('?').next().unwrap_or_default();
            let directory = own.rsplit_once('/').map_or("", |(directory, _)| directory);
            format!("{directory}/{location}")
        };
        Self::parse(&format!("{}://{}{path}", self.scheme.as_str(), self.authority()))
    }

    /// Another path on the same server.
    #[must_use]
    pub fn at(&self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self.clone() }
    }

    /// Whether both are one server, spoken to in one way.
    pub fn same_server(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }

    /// Host and port as the Host header has them.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.usual_port() { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.authority(), self.path)
    }
}

/// A host as it is compared: in lower case, without the dot at its end.
pub(crate) fn plain_host(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// A text without what may be a password.
fn without_user_info(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://…{}", &rest[at..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_compared() {
        let url = Url::parse("https://Releases.Example.com./a/b.tar.gz?x=1").unwrap();
        assert_eq!(
            (url.host.as_str(), url.port, url.path.as_str()),
            ("releases.example.com", 443, "/a/b.tar.gz?x=1")
        );
        assert_eq!(url.to_string(), "https://releases.example.com/a/b.tar.gz?x=1");
        assert_eq!(Url::parse("http://h:8080").unwrap().to_string(), "http://h:8080/");
        let six = Url::parse("https://[2001:db8::1]:8443/x").unwrap();
        assert_eq!((six.host.as_str(), six.port), ("2001:db8::1", 8443));
        assert_eq!(six.to_string(), "https://[2001:db8::1]:8443/x");
        assert_eq!(Url::parse("https://[::1]/x").unwrap().port, 443);
    }

    #[test]
    fn what_hides_something_is_no_address() {
        for text in [
            "",
            "ftp://h/x",
            "h/x",
            "//h/x",
            "https://",
            "https:///x",
            "https://u:p@h/x",
            "https://u@h/",
            "https://h/x#y",
            "https://h:0/",
            "https://h:99999/",
            "https://h:/x",
            "https://h h/",
            "file:///etc/passwd",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
        let message = Url::parse("https://user:hunter2@h/x").unwrap_err().to_string();
        assert!(!message.contains("hunter2"), "{message}");
    }

    #[test]
    fn a_redirect_leads_where_browsers_go() {
        let from = Url::parse("https://h:8443/a/b?c=d").unwrap();
        let to = |location: &str| from.join(location).unwrap().to_string();
        assert_eq!(to("https://other/x"), "https://other/x");
        assert_eq!(to("//other/x"), "https://other/x");
        assert_eq!(to("/x?y"), "https://h:8443/x?y");
        assert_eq!(to("x"), "https://h:8443/a/x");
        assert_eq!(to("/x#part"), "https://h:8443/x");
        assert!(from.join("https://u:p@other/").is_err());
    }
}
