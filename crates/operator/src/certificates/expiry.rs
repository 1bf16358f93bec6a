//! When a certificate expires, read from its bytes: one field of X.509 needs no library.
//!
//! The one judge of that: the metric and `linchpin check` both ask it.

use linchpin_words::Timestamp;
use rustls::pki_types::CertificateDer;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The last moment at which a certificate and all between it and its authority are valid; none where one of them cannot
/// be read.
pub(crate) fn expiry(chain: &[CertificateDer<'_>]) -> Option<Timestamp> {
    let moments: Option<Vec<Timestamp>> = chain.iter().map(|certificate| not_after(certificate)).collect();
    moments?.into_iter().min()
}

/// The last moment at which a certificate (DER) is valid; none where it cannot be read.
fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (SEQUENCE, whole, _) = element(certificate)? else { return None };
    let (SEQUENCE, mut fields, _) = element(whole)? else { return None };
    if let (VERSION, _, rest) = element(fields)? {
        fields = rest;
    }
    // Serial number, algorithm of the signature, issuer.
    for _ in 0..3 {
        (_, _, fields) = element(fields)?;
    }
    let (SEQUENCE, validity, _) = element(fields)? else { return None };
    let (_, _, after_begin) = element(validity)?;
    let (tag, end, _) = element(after_begin)?;
    moment(tag, end)
}

/// The first element of these bytes: its tag, its content, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let length = digits
            .iter()
            .try_fold(0_usize, |length, digit| length.checked_mul(256)?.checked_add(usize::from(*digit)))?;
        (length, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// A time as certificates write it: `YYMMDDHHMMSSZ` before 2050, `YYYYMMDDHHMMSSZ` else.
fn moment(tag: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let text = match tag {
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| text.get(from..to);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    Timestamp::parse(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")).ok()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject as _;

    use super::*;
    use crate::certificates::authority;

    #[test]
    fn a_certificate_says_when_it_expires_and_torn_bytes_say_nothing() {
        // Certificates end with the day after their last one.
        let mut chain = Vec::new();
        for (made, end) in [
            ("2026-01-01T00:00:00Z", "2027-01-02T00:00:00Z"),
            ("2062-03-04T05:06:07Z", "2063-03-05T00:00:00Z"),
        ] {
            let pem = authority(Timestamp::parse(made).unwrap()).unwrap().certificate;
            let bytes = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            assert_eq!(not_after(&bytes), Some(Timestamp::parse(end).unwrap()));
            for end in 0..bytes.len() {
                assert_eq!(not_after(&bytes[..end]), None, "{end}");
            }
            chain.insert(0, bytes);
        }
        assert_eq!(
            expiry(&chain),
            Timestamp::parse("2027-01-02T00:00:00Z").ok(),
            "the first of a chain to expire"
        );
        chain.push(CertificateDer::from_slice(b"torn"));
        assert_eq!((expiry(&chain), expiry(&[])), (None, None));
    }
}
