//! Whether the API server believes a certificate: judged as it judges, for `linchpin check`.

use std::{sync::Arc, time::Duration};

use linchpin_words::Timestamp;
use rustls::{
    CertificateError, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
};

use super::expiry;

/// Why it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// It, or an authority, is no certificate.
    Unreadable,
    /// Its time is over.
    Expired,
    /// It is for other names.
    OtherName,
    /// None of the authorities signed it.
    OtherAuthority,
    /// Something else.
    Other(String),
}

/// Judges a certificate for a name, at a moment, by these authorities; all as PEM. Returns until when it is believed.
///
/// # Errors
/// Why it is not believed.
pub fn inspect(
    authorities: &str,
    certificate: &str,
    name: &str,
    at: Timestamp,
) -> Result<Timestamp, CertificateFault> {
    let read = |pem: &str| -> Result<Vec<CertificateDer<'static>>, CertificateFault> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        all.map_err(|_| CertificateFault::Unreadable)
    };
    let mut roots = RootCertStore::empty();
    for authority in read(authorities)? {
        roots.add(authority).map_err(|_| CertificateFault::Unreadable)?;
    }
    let chain = read(certificate)?;
    let [leaf, others @ ..] = chain.as_slice() else { return Err(CertificateFault::Unreadable) };
    let other = |error: &dyn std::fmt::Display| CertificateFault::Other(error.to_string());
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|_| CertificateFault::Unreadable)?;
    let name = ServerName::try_from(name.to_owned()).map_err(|error| other(&error))?;
    let moment =
        UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(at.as_second()).unwrap_or_default()));
    match verifier.verify_server_cert(leaf, others, &name, &[], moment) {
        Ok(_) => expiry(&chain).ok_or(CertificateFault::Unreadable),
        Err(rustls::Error::InvalidCertificate(why)) => Err(match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => CertificateFault::Expired,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                CertificateFault::OtherName
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                CertificateFault::OtherAuthority
            }
            why => other(&why),
        }),
        Err(error) => Err(other(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::{LEAF_DAYS, authority, leaf};

    #[test]
    fn a_certificate_is_judged_as_the_api_server_judges_it() {
        let now = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
        let days =
            |number: i64| now.plus_duration(Duration::from_secs(u64::try_from(number).unwrap() * 24 * 3600));
        let ours = authority(now).unwrap();
        let others = authority(now).unwrap();
        let name = "linchpin-webhook.linchpin-system.svc";
        let certificate = leaf(&ours.key, &[name.to_owned()], now).unwrap().certificate;
        let judged = |authorities: &str, name: &str, at| inspect(authorities, &certificate, name, at);
        let end = days(LEAF_DAYS + 1);
        assert_eq!(judged(&ours.certificate, name, now), Ok(end));
        assert_eq!(
            judged(&(others.certificate.clone() + &ours.certificate), name, now),
            Ok(end),
            "one of several"
        );
        assert_eq!(judged(&ours.certificate, name, days(LEAF_DAYS + 2)), Err(CertificateFault::Expired));
        assert_eq!(judged(&ours.certificate, "other.svc", now), Err(CertificateFault::OtherName));
        assert_eq!(judged(&others.certificate, name, now), Err(CertificateFault::OtherAuthority));
        assert_eq!(judged("", name, now), Err(CertificateFault::Unreadable));
        assert_eq!(inspect(&ours.certificate, "", name, now), Err(CertificateFault::Unreadable));
    }
}
