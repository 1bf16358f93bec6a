//! Addresses that a user's kubeconfig may not lead us to: the node we run on and its metadata services.
//!
//! Checked on the addresses that are really connected to, after a name was resolved, so a name cannot be made to
//! point elsewhere in between.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a server may live at this address.
pub(crate) fn is_allowed(address: IpAddr) -> bool {
    is_allowed_or_loopback(address) && !canonical(address).is_loopback()
}

/// The same where loopback is allowed too.
pub(crate) fn is_allowed_or_loopback(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(address) => {
            // 100.100.100.200 is a cloud's metadata service outside the link-local range.
            !(address.is_link_local()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_broadcast()
                || address.octets()[0] == 0
                || address == Ipv4Addr::new(100, 100, 100, 200))
        }
        IpAddr::V6(address) => {
            let link_local = address.segments()[0] & 0xffc0 == 0xfe80;
            let metadata = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
            !(link_local || address.is_unspecified() || address.is_multicast() || address == metadata)
        }
    }
}

/// An IPv4 address written as IPv6 is the IPv4 address.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_leads_us_to_the_node_or_its_metadata() {
        let refused = [
            "169.254.169.254",
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "100.100.100.200",
            "::1",
            "::",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "::ffff:127.0.0.1",
        ];
        for address in refused {
            assert!(!is_allowed(address.parse().unwrap()), "{address}");
        }
        for address in ["10.0.0.1", "192.168.1.1", "203.0.113.7", "fd12::1", "2001:db8::1"] {
            assert!(is_allowed(address.parse().unwrap()), "{address}");
        }
        assert!(is_allowed_or_loopback("127.0.0.1".parse().unwrap()));
        assert!(!is_allowed_or_loopback("169.254.169.254".parse().unwrap()));
    }
}
