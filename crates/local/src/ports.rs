//! Free ports on loopback.
//!
//! They are taken from below the range from which the kernel serves outgoing connections, so that a port that is free
//! now is not lost to a chance connection while a component restarts. Two clusters may still choose the same port at
//! the same moment: the caller that starts components tries again with other ports.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher, RandomState},
    net::{Ipv4Addr, TcpListener},
};

use crate::error::{Error, Result};

const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// Chooses ports, never the same one twice.
#[derive(Default)]
pub(crate) struct PortChooser(BTreeSet<u16>);

impl PortChooser {
    /// A free port.
    pub(crate) fn next(&mut self) -> Result<u16> {
        let random = RandomState::new().hash_one(self.0.len());
        let start = u16::try_from(random % u64::from(COUNT)).unwrap_or_default();
        (0..COUNT)
            .map(|step| FIRST + (start + step) % COUNT)
            .find(|port| !self.0.contains(port) && is_free(*port))
            .inspect(|port| {
                self.0.insert(*port);
            })
            .ok_or(Error::PortTaken { port: FIRST })
    }

    /// The port that was asked for, if it is free.
    pub(crate) fn exactly(&mut self, port: u16) -> Result<u16> {
        if is_free(port) && self.0.insert(port) { Ok(port) } else { Err(Error::PortTaken { port }) }
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_distinct() {
        let mut ports = PortChooser::default();
        let chosen: BTreeSet<u16> = (0..50).map(|_| ports.next().unwrap()).collect();
        assert_eq!(chosen.len(), 50);
        assert!(chosen.iter().all(|port| *port >= FIRST && *port < FIRST + COUNT));
    }

    #[test]
    fn a_taken_port_is_refused_by_name() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(PortChooser::default().exactly(port).unwrap_err().to_string().contains(&port.to_string()));
    }
}
