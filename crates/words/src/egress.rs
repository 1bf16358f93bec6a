//! Where a text that a user wrote may lead us: every address but those of the node itself and its metadata services.
//!
//! One list for probes and for the kubeconfigs of other clusters. It judges the addresses that are really connected to,
//! after a name was resolved, so a name cannot be made to point elsewhere in between; and an IPv4 address that is
//! written inside an IPv6 one (mapped, compatible, NAT64, 6to4) is judged as what it means. Asked before each
//! connection.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use crate::text;

/// A range of addresses: `10.0.0.0/8`, `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    first: IpAddr,
    bits: u8,
}

/// Why a text is not a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CidrError {
    /// No address.
    #[error("{0} is not a range of addresses; write for example 10.0.0.0/8, fd00::/8 or a single address")]
    Malformed(String),
    /// More bits than the address has.
    #[error("{text}: the length of a prefix is at most {most}")]
    TooManyBits {
        /// The text, quoted.
        text: String,
        /// How many bits the address has.
        most: u8,
    },
    /// Bits behind the prefix.
    #[error("{text}: the address has bits behind its prefix; {meant} is the range that holds it")]
    HostBits {
        /// The text, quoted.
        text: String,
        /// The range that was probably meant.
        meant: Cidr,
    },
}

impl Cidr {
    const fn v4(octets: [u8; 4], bits: u8) -> Self {
        let [a, b, c, d] = octets;
        Self { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
    }

    const fn v6(first: Ipv6Addr, bits: u8) -> Self {
        Self { first: IpAddr::V6(first), bits }
    }

    /// The range of `bits` leading bits around an address.
    fn around(address: IpAddr, bits: u8) -> Self {
        let first = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        Self { first, bits }
    }

    /// Whether an address lies in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && Self::around(address, self.bits).first == self.first
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let malformed = || CidrError::Malformed(text::quote(text));
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| malformed())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits: u8 = bits.map_or(Ok(most), str::parse).map_err(|_| malformed())?;
        if bits > most {
            return Err(CidrError::TooManyBits { text: text::quote(text), most });
        }
        let range = Self::around(address, bits);
        if range.first == address {
            Ok(range)
        } else {
            Err(CidrError::HostBits { text: text::quote(text), meant: range })
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

/// Ranges that nobody is led to unless they are allowed, and what they are.
const DENIED: [(Cidr, &str); 11] = [
    (Cidr::v4([0, 0, 0, 0], 8), "unspecified"),
    (Cidr::v4([127, 0, 0, 0], 8), "loopback"),
    (Cidr::v4([169, 254, 0, 0], 16), "link-local"),
    (Cidr::v4([224, 0, 0, 0], 4), "multicast"),
    (Cidr::v4([240, 0, 0, 0], 4), "reserved"),
    (Cidr::v4([100, 100, 100, 200], 32), "a cloud's metadata service"),
    (Cidr::v6(Ipv6Addr::UNSPECIFIED, 128), "unspecified"),
    (Cidr::v6(Ipv6Addr::LOCALHOST, 128), "loopback"),
    (Cidr::v6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10), "link-local"),
    (Cidr::v6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8), "multicast"),
    (Cidr::v6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128), "a cloud's metadata service"),
];

/// What the ranges of the machine itself are.
const LOOPBACK: [Cidr; 2] = [Cidr::v4([127, 0, 0, 0], 8), Cidr::v6(Ipv6Addr::LOCALHOST, 128)];

/// The rule: what is denied always, what else is, and what is allowed all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Egress {
    deny: Vec<Cidr>,
    allow: Vec<Cidr>,
}

/// A range that an address lies in and that is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeniedRange {
    /// The range.
    pub range: Cidr,
    /// What it is; none for one that the administrator added.
    pub what: Option<&'static str>,
}

impl fmt::Display for DeniedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.range.fmt(f)?;
        self.what.map_or(Ok(()), |what| write!(f, " ({what})"))
    }
}

impl Egress {
    /// The rule with further denied ranges, and with ranges that are allowed whatever denies them.
    pub fn new(deny: Vec<Cidr>, allow: Vec<Cidr>) -> Self {
        Self { deny, allow }
    }

    /// The same, with the machine's own addresses allowed.
    #[must_use]
    pub fn with_loopback(mut self) -> Self {
        self.allow.extend(LOOPBACK);
        self
    }

    /// Whether an address may be connected to; an error says which range denies it.
    pub fn check(&self, address: IpAddr) -> Result<(), DeniedRange> {
        meanings(address).into_iter().flatten().try_for_each(|meaning| self.check_one(meaning))
    }

    fn check_one(&self, address: IpAddr) -> Result<(), DeniedRange> {
        let holds = |range: &Cidr| range.contains(address);
        if self.allow.iter().any(holds) {
            return Ok(());
        }
        let usual = DENIED.into_iter().map(|(range, what)| DeniedRange { range, what: Some(what) });
        let added = self.deny.iter().map(|range| DeniedRange { range: *range, what: None });
        usual.chain(added).find(|denied| holds(&denied.range)).map_or(Ok(()), Err)
    }
}

/// What an address means: itself, and the IPv4 address that is written inside it.
fn meanings(address: IpAddr) -> [Option<IpAddr>; 2] {
    let IpAddr::V6(v6) = address.to_canonical() else { return [Some(address.to_canonical()), None] };
    let [.., a, b, c, d] = v6.octets();
    let last = Ipv4Addr::new(a, b, c, d);
    let embedded = match v6.segments() {
        // Compatible (`::a.b.c.d`), and NAT64 with its two well-known prefixes.
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => Some(last),
        [0x64, 0xff9b, 0 | 1, 0, 0, 0, _, _] => Some(last),
        // 6to4.
        [0x2002, high, low, ..] => Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))),
        _ => None,
    };
    [Some(address), embedded.map(IpAddr::V4)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn nobody_leads_us_to_the_node_or_its_metadata() {
        let refused = [
            "169.254.169.254",
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "100.100.100.200",
            "::1",
            "::",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::127.0.0.1",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::1",
        ];
        for text in refused {
            assert!(Egress::default().check(address(text)).is_err(), "{text}");
        }
        let allowed =
            ["10.0.0.1", "192.168.1.1", "203.0.113.7", "fd12::1", "2001:db8::1", "64:ff9b::8.8.8.8"];
        for text in allowed {
            assert_eq!(Egress::default().check(address(text)), Ok(()), "{text}");
        }
    }

    #[test]
    fn an_administrator_adds_ranges_and_takes_others_out() {
        let range = |text: &str| text.parse::<Cidr>().unwrap();
        let egress = Egress::new(vec![range("10.0.0.0/8")], vec![range("10.1.0.0/16"), range("127.0.0.1")]);
        assert_eq!(egress.check(address("10.2.0.1")).unwrap_err().to_string(), "10.0.0.0/8");
        assert_eq!(egress.check(address("10.1.0.1")), Ok(()), "what is allowed wins");
        assert_eq!(egress.check(address("127.0.0.1")), Ok(()));
        assert_eq!(egress.check(address("127.0.0.2")).unwrap_err().to_string(), "127.0.0.0/8 (loopback)");
        assert!(egress.check(address("2002:a02:1::1")).is_err(), "6to4 of an address that is denied");
        let nat64 = Egress::new(Vec::new(), vec![range("64:ff9b::/96")]);
        assert!(nat64.check(address("64:ff9b::127.0.0.1")).is_err(), "the way is allowed, its end is not");
    }

    #[test]
    fn loopback_is_allowed_where_it_is_said() {
        let egress = Egress::default().with_loopback();
        for text in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(egress.check(address(text)), Ok(()), "{text}");
        }
        assert!(egress.check(address("169.254.169.254")).is_err());
    }

    #[test]
    fn a_range_is_read_as_it_is_written() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "fd00::/8", "::/0", "192.0.2.1/32"] {
            assert_eq!(text.parse::<Cidr>().unwrap().to_string(), text);
        }
        assert_eq!("192.0.2.1".parse::<Cidr>().unwrap().to_string(), "192.0.2.1/32");
        assert!("0.0.0.0/0".parse::<Cidr>().unwrap().contains(address("203.0.113.7")));
        assert!(!"0.0.0.0/0".parse::<Cidr>().unwrap().contains(address("fd00::1")));
        for text in
            ["", "10.0.0.0/", "10.0.0/8", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "example.com", "a/8"]
        {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
        let error = "10.1.2.3/8".parse::<Cidr>().unwrap_err().to_string();
        assert!(error.contains("10.0.0.0/8 is the range that holds it"), "{error}");
    }
}
