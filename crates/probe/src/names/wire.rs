//! DNS messages: a question and what answers it. Pure; whatever comes in, it ends and reads nothing twice.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordType {
    /// IPv4 addresses.
    A = 1,
    /// IPv6 addresses.
    Aaaa = 28,
}

/// One question, as it is sent.
#[derive(Clone, Debug)]
pub(super) struct Query {
    bytes: Vec<u8>,
    kind: RecordType,
}

/// An answer to a question of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DnsAnswer {
    /// Addresses; none if the name has none of this kind.
    Addresses(Vec<IpAddr>),
    /// There is no such name.
    NoSuchName,
    /// Addresses, and more that did not fit.
    Truncated(Vec<IpAddr>),
    /// The server gave no answer.
    Failed,
}

const HEADER: usize = 12;
const LABEL: usize = 63;
const NAME: usize = 253;
/// The class of the Internet.
const INTERNET: u16 = 1;
/// Bits of the third and fourth byte.
const IS_ANSWER: u8 = 0x80;
const IS_TRUNCATED: u8 = 0x02;
const CODE: u8 = 0x0f;
/// Codes: all is well; there is no such name.
const FINE: u8 = 0;
const NO_SUCH_NAME: u8 = 3;

impl Query {
    /// The question for a name; none for one that cannot exist.
    pub(super) fn new(identifier: u16, name: &str, kind: RecordType) -> Option<Self> {
        if name.is_empty() || name.len() > NAME {
            return None;
        }
        let [high, low] = identifier.to_be_bytes();
        // One question; the server shall find out for itself.
        let mut bytes = vec![high, low, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            let length = u8::try_from(label.len()).ok().filter(|_| (1..=LABEL).contains(&label.len()))?;
            bytes.push(length);
            bytes.extend(label.bytes());
        }
        bytes.extend([0, 0, kind as u8, 0, 1]);
        Some(Self { bytes, kind })
    }

    pub(super) fn kind(&self) -> RecordType {
        self.kind
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What a message answers to this question; none if it is not an answer to it.
    pub(super) fn answer(&self, message: &[u8]) -> Option<DnsAnswer> {
        let question = self.bytes.get(HEADER..)?;
        let same = message.get(..2)? == self.bytes.get(..2)?
            && message.get(HEADER..HEADER + question.len())?.eq_ignore_ascii_case(question);
        let [third, fourth] = [*message.get(2)?, *message.get(3)?];
        if !same || third & IS_ANSWER == 0 {
            return None;
        }
        match fourth & CODE {
            FINE => {}
            NO_SUCH_NAME => return Some(DnsAnswer::NoSuchName),
            _ => return Some(DnsAnswer::Failed),
        }
        let count = u16::from_be_bytes([*message.get(6)?, *message.get(7)?]);
        let addresses = self.records(message, HEADER + question.len(), count);
        Some(if third & IS_TRUNCATED == 0 {
            DnsAnswer::Addresses(addresses)
        } else {
            DnsAnswer::Truncated(addresses)
        })
    }

    /// The addresses among the records that begin at `at`, as far as they can be read.
    fn records(&self, message: &[u8], mut at: usize, count: u16) -> Vec<IpAddr> {
        let mut addresses = Vec::new();
        for _ in 0..count {
            let Some((kind, class, data, next)) = record(message, at) else { break };
            at = next;
            if class != INTERNET || kind != self.kind as u16 {
                continue;
            }
            addresses.extend(match self.kind {
                RecordType::A => {
                    <[u8; 4]>::try_from(data).ok().map(|octets| IpAddr::V4(Ipv4Addr::from(octets)))
                }
                RecordType::Aaaa => {
                    <[u8; 16]>::try_from(data).ok().map(|octets| IpAddr::V6(Ipv6Addr::from(octets)))
                }
            });
        }
        addresses
    }
}

/// Kind, class and data of the record at `at`, and where the next one begins.
fn record(message: &[u8], at: usize) -> Option<(u16, u16, &[u8], usize)> {
    let at = skip_name(message, at)?;
    let number = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
    let (kind, class, length) = (number(at)?, number(at + 2)?, usize::from(number(at + 8)?));
    let begin = at + 10;
    Some((kind, class, message.get(begin..begin + length)?, begin + length))
}

/// Where a name that begins at `at` ends: at its empty label, or at a pointer, which is not followed.
fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length if length & 0xc0 == 0xc0 => return Some(at + 2),
            length => at += 1 + usize::from(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reply(query: &Query, flags: [u8; 2], records: &[&[u8]]) -> Vec<u8> {
        let mut message = query.bytes().to_vec();
        message[2] = flags[0];
        message[3] = flags[1];
        message[7] = u8::try_from(records.len()).unwrap();
        message.extend(records.concat());
        message
    }

    const CNAME: &[u8] = &[0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 4, 1, b'x', 0xc0, 12];
    const ADDRESS: &[u8] = &[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0, 7];

    #[test]
    fn addresses_are_found_behind_other_records() {
        let query = Query::new(7, "db.shop", RecordType::A).unwrap();
        let expected = DnsAnswer::Addresses(vec!["10.0.0.7".parse().unwrap()]);
        assert_eq!(query.answer(&reply(&query, [0x81, 0x80], &[CNAME, ADDRESS])), Some(expected));
        assert_eq!(query.answer(&reply(&query, [0x81, 0x80], &[])), Some(DnsAnswer::Addresses(Vec::new())));
        assert_eq!(query.answer(&reply(&query, [0x81, 0x83], &[])), Some(DnsAnswer::NoSuchName));
        assert_eq!(query.answer(&reply(&query, [0x81, 0x82], &[])), Some(DnsAnswer::Failed));
        assert_eq!(query.answer(&reply(&query, [0x83, 0x80], &[])), Some(DnsAnswer::Truncated(Vec::new())));
    }

    #[test]
    fn what_answers_another_question_is_not_for_us() {
        let query = Query::new(7, "db.shop", RecordType::A).unwrap();
        let other = |query: Query| reply(&query, [0x81, 0x80], &[ADDRESS]);
        assert_eq!(query.answer(&other(Query::new(8, "db.shop", RecordType::A).unwrap())), None);
        assert_eq!(query.answer(&other(Query::new(7, "db.shoq", RecordType::A).unwrap())), None);
        assert_eq!(query.answer(&other(Query::new(7, "db.shop", RecordType::Aaaa).unwrap())), None);
        assert_eq!(query.answer(query.bytes()), None, "our own question is no answer");
        assert!(query.answer(&other(Query::new(7, "DB.shop", RecordType::A).unwrap())).is_some());
    }

    #[test]
    fn a_name_that_cannot_be_asked_for_is_not() {
        let long = "a".repeat(64);
        for name in ["", ".", "a..b", "a.", long.as_str(), &["a"; 128].join(".")] {
            assert!(Query::new(1, name, RecordType::A).is_none(), "{name}");
        }
        assert!(Query::new(1, &"a".repeat(63), RecordType::A).is_some());
    }

    proptest! {
        #[test]
        fn no_message_is_more_than_no_answer(tail in proptest::collection::vec(any::<u8>(), 0..100), count in any::<u8>()) {
            let query = Query::new(7, "db", RecordType::Aaaa).unwrap();
            let mut message = reply(&query, [0x81, 0x80], &[&tail]);
            message[7] = count;
            let _ = query.answer(&message);
            let _ = query.answer(&tail);
        }
    }
}
