//! Host names to addresses, by a deadline.
//!
//! The system's resolver blocks for as long as it likes (musl's: five seconds for each name server that is dead, for each
//! entry of the search list), and a thread that waits for it cannot be ended. So names are resolved here, the way
//! `/etc/hosts` and `/etc/resolv.conf` say: name servers, search list, `ndots`; A and AAAA at once, over UDP, over TCP where
//! an answer does not fit. Each attempt reads the files anew: they are small, and a waiter may outlive a change of them.

mod files;
mod wire;

use std::{
    fs::File,
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use linchpin_words::probe::{Miss, NameFault, ProbePhase};

use self::{
    files::{Configuration, in_hosts},
    wire::{DnsAnswer, Query, RecordType},
};
use crate::stream::Stream;

/// How long one name server is waited for before the next is asked.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the second answer is waited for once the first has addresses.
const GRACE: Duration = Duration::from_millis(100);
/// How often name servers are asked for one name.
const ATTEMPTS: usize = 6;
/// The largest file that is read.
const FILE: u64 = 64 << 10;

/// Resolves names as two files say.
#[derive(Clone, Debug)]
pub struct NameResolver {
    hosts: PathBuf,
    configuration: PathBuf,
}

/// The files of this machine, or of this container.
impl Default for NameResolver {
    fn default() -> Self {
        Self { hosts: "/etc/hosts".into(), configuration: "/etc/resolv.conf".into() }
    }
}

impl NameResolver {
    /// The addresses of a host, at least one.
    pub(crate) fn resolve(&self, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, Miss> {
        if let Some(address) = host.parse().ok().or_else(|| numeric(host).map(IpAddr::V4)) {
            return Ok(vec![address]);
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        let known = in_hosts(&read(&self.hosts), name);
        if !known.is_empty() {
            return Ok(known);
        }
        if name.eq_ignore_ascii_case("localhost") {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        search(&Configuration::parse(&read(&self.configuration)), host, deadline)
    }
}

fn read(path: &Path) -> String {
    let mut content = Vec::new();
    // A file that is not there says nothing; one that ends too early says what it says.
    let _ = File::open(path).and_then(|file| file.take(FILE).read_to_end(&mut content));
    String::from_utf8_lossy(&content).into_owned()
}

/// The old ways to write an IPv4 address, which every other resolver understands: `2130706433`, `0x7f.1`, `0177.0.0.1`.
fn numeric(host: &str) -> Option<Ipv4Addr> {
    let part = |text: &str| -> Option<u32> {
        let lower = text.to_ascii_lowercase();
        let (digits, radix) = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
            (Some(digits), _) => (digits, 16),
            (None, Some(digits)) if !digits.is_empty() => (digits, 8),
            _ => (lower.as_str(), 10),
        };
        if digits.starts_with('+') { None } else { u32::from_str_radix(digits, radix).ok() }
    };
    let parts: Vec<u32> = host.split('.').map(part).collect::<Option<_>>()?;
    let (last, leading) = parts.split_last()?;
    let bits = 32_u32.checked_sub(8 * u32::try_from(leading.len()).ok()?).filter(|bits| *bits > 0)?;
    if leading.iter().any(|part| *part > 255) || u64::from(*last) >= 1 << bits {
        return None;
    }
    let high = leading.iter().fold(0, |address, part| address << 8 | part);
    Some(Ipv4Addr::from_bits(high.checked_shl(bits).unwrap_or(0) | last))
}

/// Tries the name with the entries of the search list, in the usual order.
fn search(configuration: &Configuration, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, Miss> {
    let mut failed = false;
    for name in configuration.candidates(host) {
        match look_up(&configuration.servers, &name, deadline)? {
            NameAnswer::Addresses(addresses) => return Ok(addresses),
            NameAnswer::Nothing => {}
            NameAnswer::Failed => failed = true,
        }
    }
    Err(Miss::Name(if failed { NameFault::ServerFailed } else { NameFault::NotFound }))
}

/// What the name servers know of one name.
enum NameAnswer {
    Addresses(Vec<IpAddr>),
    Nothing,
    Failed,
}

/// Asks name server after name server, until one knows or the time is up.
fn look_up(servers: &[SocketAddr], name: &str, deadline: Instant) -> Result<NameAnswer, Miss> {
    let mut silent = false;
    for server in servers.iter().cycle().take(ATTEMPTS.max(servers.len())) {
        let now = Instant::now();
        if now >= deadline {
            return Err(Miss::TimedOut(ProbePhase::Name));
        }
        match ask(*server, name, deadline.min(now + PATIENCE)) {
            Ok(found @ (NameAnswer::Addresses(_) | NameAnswer::Nothing)) => return Ok(found),
            Ok(NameAnswer::Failed) => silent = false,
            Err(error) => silent = crate::stream::is_timeout(&error),
        }
    }
    if silent { Err(Miss::TimedOut(ProbePhase::Name)) } else { Ok(NameAnswer::Failed) }
}

/// Asks one name server for both kinds of addresses.
fn ask(server: SocketAddr, name: &str, until: Instant) -> io::Result<NameAnswer> {
    // A name that cannot be asked for does not exist.
    let queries = [RecordType::A, RecordType::Aaaa].map(|kind| Query::new(identifier(), name, kind));
    let [Some(first), Some(second)] = queries else { return Ok(NameAnswer::Nothing) };
    let here: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((here, 0))?;
    socket.connect(server)?;
    let mut open = vec![first, second];
    for query in &open {
        socket.send(query.bytes())?;
    }
    let (mut addresses, mut failed, mut until) = (Vec::new(), false, until);
    let mut buffer = [0; 1500];
    while !open.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        let count = match socket.recv(&mut buffer) {
            Ok(count) => count,
            Err(error) if crate::stream::is_timeout(&error) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let message = buffer.get(..count).unwrap_or_default();
        // What answers none of our questions is not for us.
        let Some((index, answer)) =
            open.iter().enumerate().find_map(|(index, query)| Some((index, query.answer(message)?)))
        else {
            continue;
        };
        let query = open.swap_remove(index);
        match answer {
            DnsAnswer::Truncated(some) if some.is_empty() => match over_tcp(server, &query, until) {
                Some(more) => addresses.extend(more),
                None => failed = true,
            },
            DnsAnswer::Addresses(some) | DnsAnswer::Truncated(some) => addresses.extend(some),
            // Some servers say so of the other kind alone, of names that have IPv4 addresses.
            DnsAnswer::NoSuchName if query.kind() == RecordType::A => return Ok(NameAnswer::Nothing),
            DnsAnswer::NoSuchName => {}
            DnsAnswer::Failed => failed = true,
        }
        if !addresses.is_empty() {
            until = until.min(Instant::now() + GRACE);
        }
    }
    // IPv4 first: IPv6 addresses of a name are often not routed.
    addresses.sort_by_key(IpAddr::is_ipv6);
    // Some servers never answer the question for IPv6 addresses: the other one decides.
    let unanswered = open.iter().any(|query| query.kind() == RecordType::A);
    match (addresses.is_empty(), unanswered) {
        (false, _) => Ok(NameAnswer::Addresses(addresses)),
        (true, true) => Err(io::ErrorKind::TimedOut.into()),
        (true, false) if failed => Ok(NameAnswer::Failed),
        (true, false) => Ok(NameAnswer::Nothing),
    }
}

/// Asks again where the answer has more room.
fn over_tcp(server: SocketAddr, query: &Query, until: Instant) -> Option<Vec<IpAddr>> {
    let left = until.saturating_duration_since(Instant::now());
    let tcp = TcpStream::connect_timeout(&server, left.max(Duration::from_millis(1))).ok()?;
    let mut stream = Stream::new(tcp, until);
    let length = u16::try_from(query.bytes().len()).ok()?.to_be_bytes();
    stream.write_all(&[length.as_slice(), query.bytes()].concat()).ok()?;
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).ok()?;
    match query.answer(&message)? {
        DnsAnswer::Addresses(addresses) | DnsAnswer::Truncated(addresses) => Some(addresses),
        DnsAnswer::NoSuchName | DnsAnswer::Failed => None,
    }
}

/// A number that nobody can guess, so that nobody else can answer.
fn identifier() -> u16 {
    let [first, second, ..] = RandomState::new().build_hasher().finish().to_be_bytes();
    u16::from_be_bytes([first, second])
}

#[cfg(test)]
mod tests;
