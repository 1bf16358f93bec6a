//! Which hosts may be fetched from: `[http://]host[:port]`, `*.domain`, `*`, separated by commas.
//!
//! The administrator's list. A host without `http://` is spoken to over TLS alone; one without a port on any port.
//! Nothing is allowed by an empty list.

use linchpin_words::{Reason, text::quote};

use crate::{
    Problem,
    url::{Scheme, Url, plain_host},
};

/// A list of hosts, and the flag it was given with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostList {
    flag: &'static str,
    entries: Vec<HostEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HostEntry {
    name: HostName,
    port: Option<u16>,
    /// Whether it may be spoken to in the clear.
    clear: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostName {
    Any,
    /// Every name below a domain, not the domain itself.
    Below(String),
    Exactly(String),
}

impl HostList {
    /// Reads a list; `flag` is named where a host is not in it.
    pub fn parse(flag: &'static str, text: &str) -> Result<Self, String> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let entries: Result<Vec<HostEntry>, String> = entries.map(HostEntry::parse).collect();
        Ok(Self { flag, entries: entries? })
    }

    /// A list of none; `flag` is named where a host is asked for.
    pub fn none(flag: &'static str) -> Self {
        Self { flag, entries: Vec::new() }
    }

    /// Refuses an address whose host is not listed, or only for TLS.
    pub fn check(&self, url: &Url) -> Result<(), Problem> {
        let matching: Vec<&HostEntry> = self.entries.iter().filter(|entry| entry.covers(url)).collect();
        if matching.iter().any(|entry| entry.clear || url.scheme == Scheme::Https) {
            return Ok(());
        }
        let host = quote(&url.authority());
        let why = if matching.is_empty() {
            format!("the host {host} is not allowed; an administrator lists hosts with {}", self.flag)
        } else {
            format!("the host {host} is allowed over https alone; {} lists it without http://", self.flag)
        };
        Err(Problem::new(Reason::HostNotAllowed, why))
    }
}

impl HostEntry {
    fn parse(text: &str) -> Result<Self, String> {
        let refused = |why: &str| format!("{} {why}", quote(text));
        let (clear, rest) = match text.split_once("://") {
            Some(("http", rest)) => (true, rest),
            Some(("https", rest)) => (false, rest),
            Some(_) => return Err(refused("has a scheme other than http://")),
            None => (false, text),
        };
        if rest.contains(['/', '@', '?', '#', ' ']) {
            return Err(refused("is not [http://]host[:port]"));
        }
        let (name, port) = split_port(rest).ok_or_else(|| refused("has a port that is none"))?;
        // Without its dot it would mean everything.
        if name == "*." {
            return Err(refused("names no domain"));
        }
        let name = plain_host(name);
        let name = match name.strip_prefix("*.") {
            _ if name == "*" => HostName::Any,
            Some(domain) if !domain.is_empty() && !domain.contains('*') => {
                HostName::Below(format!(".{domain}"))
            }
            None if !name.is_empty() && !name.contains('*') => HostName::Exactly(name),
            _ => return Err(refused("has a * that is not the whole first label")),
        };
        Ok(Self { name, port, clear })
    }

    fn covers(&self, url: &Url) -> bool {
        let named = match &self.name {
            HostName::Any => true,
            HostName::Below(domain) => url.host.len() > domain.len() && url.host.ends_with(domain.as_str()),
            HostName::Exactly(host) => url.host == *host,
        };
        named && self.port.is_none_or(|port| port == url.port)
    }
}

/// A host without its port.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        let port = rest.strip_prefix(':').map(str::parse).transpose().ok()?;
        return (rest.is_empty() || port.is_some()).then_some((host, port));
    }
    match text.split_once(':') {
        Some((host, port)) => Some((host, Some(port.parse().ok()?))),
        None => Some((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(list: &str, url: &str) -> bool {
        let list = HostList::parse("--source-hosts", list).unwrap();
        list.check(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn only_what_is_listed_is_allowed_and_only_as_it_is_listed() {
        for (list, url, expected) in [
            ("", "https://a.example/", false),
            ("a.example", "https://a.example/", true),
            ("a.example", "https://A.Example.:8443/x", true),
            ("a.example", "http://a.example/", false),
            ("a.example", "https://b.a.example/", false),
            ("a.example", "https://aa.example/", false),
            ("a.example:8443", "https://a.example:8443/", true),
            ("a.example:8443", "https://a.example/", false),
            ("http://a.example", "http://a.example/", true),
            ("http://a.example", "https://a.example/", true),
            ("*.example", "https://a.example/", true),
            ("*.example", "https://b.a.example/", true),
            ("*.example", "https://example/", false),
            ("*.example", "https://evilexample/", false),
            ("x, *", "https://anything/", true),
            ("*", "http://anything/", false),
            ("http://*", "http://anything/", true),
            ("a., b", "https://a/", true),
            ("[2001:db8::1]:443", "https://[2001:db8::1]/", true),
        ] {
            assert_eq!(allowed(list, url), expected, "{list:?} {url}");
        }
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused() {
        for list in ["ftp://a", "a/b", "a@b", "a*", "*a", "*.", "a:b", "a:70000", "a b", "[::1"] {
            assert!(HostList::parse("--source-hosts", list).is_err(), "{list}");
        }
    }

    #[test]
    fn the_refusal_names_the_host_and_the_flag() {
        let list = HostList::parse("--source-hosts", "").unwrap();
        let problem = list.check(&Url::parse("https://a.example/x?token=y").unwrap()).unwrap_err();
        assert_eq!(problem.reason, Reason::HostNotAllowed);
        assert!(problem.message.contains("a.example") && problem.message.contains("--source-hosts"));
        assert!(!problem.message.contains("token"), "{problem}");
    }
}
