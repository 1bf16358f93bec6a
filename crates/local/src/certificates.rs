//! The cluster's certificates: one authority, one serving certificate for every component on loopback, a client
//! certificate per component, and the key pair that signs service-account tokens. All ECDSA P-256.
//!
//! The authority's key stays in the cluster's directory, so that certificates for further users can be made while
//! the cluster runs.

use std::{fs, net::IpAddr};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};

use crate::{
    error::{Error, Result},
    paths::{Directory, write},
};

/// A certificate and its key, as PEM.
pub(crate) struct PemPair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The cluster's certificate authority.
pub(crate) struct CertificateAuthority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl CertificateAuthority {
    /// A new authority, kept in the cluster's directory.
    pub(crate) fn create(dir: &Directory) -> Result<Self> {
        let failed = failure("the authority");
        let key = KeyPair::generate().map_err(&failed)?;
        let params = authority_params();
        let certificate = params.self_signed(&key).map_err(&failed)?.pem();
        write(&dir.certificate("ca"), &certificate)?;
        write(&dir.key("ca"), &key.serialize_pem())?;
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// The authority of a cluster that exists already.
    pub(crate) fn open(dir: &Directory) -> Result<Self> {
        let read = |path: std::path::PathBuf| fs::read_to_string(&path).map_err(Error::io("reading", path));
        let key = KeyPair::from_pem(&read(dir.key("ca"))?).map_err(failure("the authority"))?;
        Ok(Self { certificate: read(dir.certificate("ca"))?, issuer: Issuer::new(authority_params(), key) })
    }

    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A client certificate: Kubernetes takes the common name for the user and the organization for its group.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<PemPair> {
        let mut params = params(user, ExtendedKeyUsagePurpose::ClientAuth);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        self.issue(&params, user)
    }

    /// A serving certificate for these names and addresses.
    pub(crate) fn serving(&self, name: &str, names: &[&str], addresses: &[IpAddr]) -> Result<PemPair> {
        let mut params = params(name, ExtendedKeyUsagePurpose::ServerAuth);
        for one in names {
            let one = (*one).try_into().map_err(failure(name))?;
            params.subject_alt_names.push(SanType::DnsName(one));
        }
        params.subject_alt_names.extend(addresses.iter().copied().map(SanType::IpAddress));
        self.issue(&params, name)
    }

    fn issue(&self, params: &CertificateParams, whom: &str) -> Result<PemPair> {
        let key = KeyPair::generate().map_err(failure(whom))?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failure(whom))?;
        Ok(PemPair { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// Writes the key pair that signs and checks service-account tokens, as `service-account.key` and `.crt`.
pub(crate) fn write_service_account_keys(dir: &Directory) -> Result<()> {
    let key = KeyPair::generate().map_err(failure("service accounts"))?;
    write(&dir.key("service-account"), &key.serialize_pem())?;
    write(&dir.certificate("service-account"), &key.public_key_pem())
}

/// Writes a pair under `name`.
pub(crate) fn write_pair(dir: &Directory, name: &str, pair: &PemPair) -> Result<()> {
    write(&dir.certificate(name), &pair.certificate)?;
    write(&dir.key(name), &pair.key)
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "linchpin-local-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
    within_our_time(&mut params);
    params
}

fn params(common_name: &str, usage: ExtendedKeyUsagePurpose) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    within_our_time(&mut params);
    params
}

// Fixed dates: such a cluster lives for minutes or days, and a wrong clock must not break it.
fn within_our_time(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2120, 1, 1);
}

fn failure(whom: &str) -> impl Fn(rcgen::Error) -> Error {
    let whom = whom.to_owned();
    move |source| Error::Certificate { whom: whom.clone(), source }
}
