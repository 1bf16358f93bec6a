//! What `/etc/hosts` and `/etc/resolv.conf` say. Pure.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The port of name servers.
const PORT: u16 = 53;
/// As many as other resolvers take.
const SERVERS: usize = 3;
const SEARCH: usize = 32;

/// How names are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    /// Name servers.
    pub(super) servers: Vec<SocketAddr>,
    /// What is put behind a name.
    search: Vec<String>,
    /// A name with so many dots is tried as it is first.
    dots: usize,
}

impl Configuration {
    /// Reads a `resolv.conf`; what is not understood is passed over, as everywhere.
    pub(super) fn parse(text: &str) -> Self {
        let (mut servers, mut search, mut dots) = (Vec::new(), Vec::new(), 1);
        for line in text.lines().filter(|line| !line.starts_with(['#', ';'])) {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => servers.extend(words.next().and_then(server)),
                Some("search" | "domain") => {
                    search = words.map(|word| word.trim_matches('.').to_owned()).collect();
                    search.retain(|word| !word.is_empty());
                    search.truncate(SEARCH);
                }
                Some("options") => {
                    let given =
                        words.filter_map(|word| word.strip_prefix("ndots:")?.parse().ok()).next_back();
                    dots = given.map_or(dots, |dots: usize| dots.min(15));
                }
                _ => {}
            }
        }
        servers.truncate(SERVERS);
        if servers.is_empty() {
            servers.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
        }
        Self { servers, search, dots }
    }

    /// The names to ask for, in their order.
    pub(super) fn candidates(&self, host: &str) -> Vec<String> {
        if let Some(whole) = host.strip_suffix('.') {
            return vec![whole.to_owned()];
        }
        let found = self.search.iter().map(|domain| format!("{host}.{domain}"));
        let plain = std::iter::once(host.to_owned());
        if host.bytes().filter(|byte| *byte == b'.').count() >= self.dots {
            plain.chain(found).collect()
        } else {
            found.chain(plain).collect()
        }
    }
}

fn server(word: &str) -> Option<SocketAddr> {
    word.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, PORT)).or_else(|| word.parse().ok())
}

/// The addresses that a hosts file has for a name.
pub(super) fn in_hosts(text: &str, name: &str) -> Vec<IpAddr> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let named = lines.filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|word| word.eq_ignore_ascii_case(name)).then_some(address)
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "search shop.svc.cluster.local svc.cluster.local cluster.local\n\
                       nameserver 10.96.0.10\noptions ndots:5\n";

    #[test]
    fn a_pods_short_name_is_looked_for_in_its_namespace_first() {
        let configuration = Configuration::parse(POD);
        assert_eq!(configuration.servers, ["10.96.0.10:53".parse().unwrap()]);
        let expected = ["db.shop.svc.cluster.local", "db.svc.cluster.local", "db.cluster.local", "db"];
        assert_eq!(configuration.candidates("db"), expected);
        assert_eq!(configuration.candidates("db.shop.svc.cluster.local."), ["db.shop.svc.cluster.local"]);
        assert_eq!(configuration.candidates("a.b.c.d.e.f").first().unwrap(), "a.b.c.d.e.f");
    }

    #[test]
    fn what_is_not_understood_is_passed_over() {
        let odd = "# x\n; y\nnameserver\nnameserver x\nnameserver fe80::1%eth0\nsearch . .. a.\noptions ndots:x rotate\nsortlist 1\n";
        let configuration = Configuration::parse(odd);
        assert_eq!(configuration.servers, ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!(configuration.candidates("b.c"), ["b.c", "b.c.a"]);
        let many = "nameserver 10.0.0.1\n".repeat(100);
        assert_eq!(Configuration::parse(&many).servers.len(), SERVERS);
    }

    #[test]
    fn a_hosts_file_is_read_with_its_aliases_and_comments() {
        let text = "127.0.0.1 localhost\n10.0.0.7\tdb.example.com DB # not other\nfd00::7 db\nnonsense db\n";
        let expected: [IpAddr; 2] = ["10.0.0.7".parse().unwrap(), "fd00::7".parse().unwrap()];
        assert_eq!(in_hosts(text, "db"), expected);
        assert!(in_hosts(text, "other").is_empty());
    }
}
