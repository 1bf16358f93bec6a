//! Opens connections, to addresses that were judged and to no others.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    time::Instant,
};

use linchpin_words::{
    limits,
    probe::{Miss, ProbePhase},
};

use crate::{
    Rules,
    stream::{Stream, is_timeout},
};

/// Those of the addresses that may be connected to, at least one; else which range denies the first.
pub(crate) fn allowed(addresses: &[SocketAddr], rules: &Rules) -> Result<Vec<SocketAddr>, Miss> {
    let mut denied = None;
    let mut allowed = Vec::with_capacity(addresses.len());
    for address in addresses.iter().take(limits::PROBE_ADDRESSES) {
        match rules.egress.as_ref().map_or(Ok(()), |egress| egress.check(address.ip())) {
            Ok(()) => allowed.push(*address),
            Err(range) => denied = denied.or(Some(range)),
        }
    }
    match denied {
        Some(range) if allowed.is_empty() => Err(Miss::DeniedRange(range)),
        _ if allowed.is_empty() => Err(Miss::Unreachable),
        _ => Ok(allowed),
    }
}

/// The end of the time of the first of `many` attempts that share what is left until `deadline`.
pub(crate) fn share(deadline: Instant, many: usize) -> Instant {
    let now = Instant::now();
    let left = deadline.saturating_duration_since(now);
    now + left / u32::try_from(many.max(1)).unwrap_or(u32::MAX)
}

/// Connects to the first address that takes the connection.
pub(crate) fn connect(addresses: &[SocketAddr], deadline: Instant) -> Result<Stream, Miss> {
    let mut misses = Vec::with_capacity(addresses.len());
    for (index, address) in addresses.iter().enumerate() {
        let left = share(deadline, addresses.len() - index).saturating_duration_since(Instant::now());
        if left.is_zero() {
            misses.push(Miss::TimedOut(ProbePhase::Connect));
            break;
        }
        match TcpStream::connect_timeout(address, left) {
            Ok(tcp) => {
                // It only costs time, should it fail.
                let _ = tcp.set_nodelay(true);
                return Ok(Stream::new(tcp, deadline));
            }
            Err(error) => misses.push(miss(&error)),
        }
    }
    // A refusal says most: somebody is there. That there is no way often only means that IPv6 is not set up.
    let rank = |miss: &Miss| match miss {
        Miss::Refused => 2,
        Miss::TimedOut(_) => 1,
        _ => 0,
    };
    Err(misses.into_iter().max_by_key(rank).unwrap_or(Miss::Unreachable))
}

fn miss(error: &io::Error) -> Miss {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Miss::Refused,
        _ if is_timeout(error) => Miss::TimedOut(ProbePhase::Connect),
        _ => Miss::Unreachable,
    }
}
