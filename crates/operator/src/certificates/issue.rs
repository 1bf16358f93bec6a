//! Making the certificates: ECDSA P-256, as PEM.

use std::net::IpAddr;

use linchpin_words::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};

use super::{AUTHORITY_DAYS, LEAF_DAYS};

const AUTHORITY_NAME: &str = "linchpin-webhook-ca";
const LEAF_NAME: &str = "linchpin-webhook";
const DAY: u64 = 24 * 3600;

/// A certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CertificatePair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Why no certificate could be made. Never shows a key.
#[derive(Debug, thiserror::Error)]
#[error("cannot make {whom}: {source}")]
pub(crate) struct IssueError {
    whom: &'static str,
    source: rcgen::Error,
}

fn failed(whom: &'static str) -> impl Fn(rcgen::Error) -> IssueError {
    move |source| IssueError { whom, source }
}

/// A new authority.
pub(crate) fn authority(now: Timestamp) -> Result<CertificatePair, IssueError> {
    let failed = failed("the authority of the webhooks");
    let key = KeyPair::generate().map_err(&failed)?;
    let certificate = authority_params(now).self_signed(&key).map_err(&failed)?;
    Ok(CertificatePair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// A new certificate for the server, signed by the authority with this key, for these names and addresses.
pub(crate) fn leaf(
    authority_key: &str,
    names: &[String],
    now: Timestamp,
) -> Result<CertificatePair, IssueError> {
    let failed = failed("the certificate of the webhooks");
    let issuer = Issuer::new(authority_params(now), KeyPair::from_pem(authority_key).map_err(&failed)?);
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, LEAF_NAME);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    for name in names {
        params.subject_alt_names.push(match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.as_str().try_into().map_err(&failed)?),
        });
    }
    valid(&mut params, now, LEAF_DAYS);
    let key = KeyPair::generate().map_err(&failed)?;
    let certificate = params.signed_by(&key, &issuer).map_err(&failed)?;
    Ok(CertificatePair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn authority_params(now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, AUTHORITY_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    valid(&mut params, now, AUTHORITY_DAYS);
    params
}

/// Valid from a day ago, for clocks that are slow, until a day after the last day.
fn valid(params: &mut CertificateParams, now: Timestamp, days: i64) {
    let day = |shifted: i64| {
        let second = now.as_second().saturating_add(shifted.saturating_mul(DAY.cast_signed()));
        let date = jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let date = date.to_zoned(jiff::tz::TimeZone::UTC).date();
        let part = |number: i8| u8::try_from(number).unwrap_or(1);
        date_time_ymd(i32::from(date.year()), part(date.month()), part(date.day()))
    };
    params.not_before = day(-1);
    params.not_after = day(days + 1);
}

#[cfg(test)]
mod tests {
    use linchpin_words::Period;

    use super::*;

    #[test]
    fn a_certificate_is_signed_by_its_authority_and_has_the_names() {
        let now = Timestamp::EPOCH.plus(Period::from_secs(20_000 * DAY));
        let ca = authority(now).unwrap();
        let names = ["linchpin.system.svc".to_owned(), "127.0.0.1".to_owned()];
        let pair = leaf(&ca.key, &names, now).unwrap();
        assert!(pair.certificate.contains("BEGIN CERTIFICATE") && pair.key.contains("PRIVATE KEY"));
        assert!(leaf("no key", &names, now).is_err());
        assert!(leaf(&ca.key, &["ü".to_owned()], now).is_err());
    }
}
