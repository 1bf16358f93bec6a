//! Whom to believe over TLS: Mozilla's roots, or the authorities of a Secret instead of them.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::Problem;

/// What a connection over TLS is made with. It offers HTTP/1.1 and no certificate of ours.
pub fn client(authorities: Option<&[u8]>) -> Result<Arc<ClientConfig>, Problem> {
    let unusable = || Problem::failed("ca.crt of the source's Secret holds no certificate that can be used");
    let mut roots = RootCertStore::empty();
    match authorities {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|_| unusable())?;
                roots.add(certificate).map_err(|_| unusable())?;
            }
            if roots.is_empty() {
                return Err(unusable());
            }
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| unusable())?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
