//! TLS: 1.2 and later, with Mozilla's roots compiled in or a bundle of the user's instead of them.
//!
//! An image from scratch has no other roots, and operator and waiter must agree. What a server's certificate says is never
//! repeated: names in it are the server's text.

use std::{
    io::{self, Read, Write},
    sync::{Arc, OnceLock},
};

use linchpin_words::{
    limits,
    probe::{Miss, ProbePhase, Tls, TlsFault},
};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

use crate::stream::{Stream, is_timeout};

/// Agrees on TLS over a connection.
pub(crate) fn agree(line: Stream, tls: &Tls) -> Result<impl Read + Write, Miss> {
    let host = tls.name.strip_suffix('.').unwrap_or(&tls.name).to_owned();
    let name = ServerName::try_from(host).map_err(|_| Miss::Tls(TlsFault::BadName))?;
    let client = ClientConnection::new(configuration(tls)?, name).map_err(|error| miss(&error))?;
    let mut stream = StreamOwned::new(client, line);
    while stream.conn.is_handshaking() {
        match stream.conn.complete_io(&mut stream.sock) {
            // Nothing was read or written any more: the other side has gone.
            Ok((0, 0)) => return Err(Miss::Tls(TlsFault::Refused)),
            Ok(_) => {}
            Err(error) => return Err(broken(&error)),
        }
    }
    Ok(stream)
}

/// Why a handshake ended.
fn broken(error: &io::Error) -> Miss {
    if is_timeout(error) {
        return Miss::TimedOut(ProbePhase::Tls);
    }
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    inner.map_or(Miss::Tls(TlsFault::Refused), miss)
}

fn miss(error: &Error) -> Miss {
    Miss::Tls(match error {
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => TlsFault::NotTls,
        Error::AlertReceived(_) => TlsFault::Refused,
        Error::InvalidCertificate(fault) => match fault {
            // Another authority of the same name signs differently.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsFault::UnknownIssuer,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                TlsFault::WrongName
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => TlsFault::NotValidNow,
            _ => TlsFault::BadCertificate,
        },
        _ => TlsFault::Failed,
    })
}

fn configuration(tls: &Tls) -> Result<Arc<ClientConfig>, Miss> {
    static USUAL: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if tls.insecure {
        let provider = ring::default_provider();
        let any = Arc::new(AnyCertificate(provider.clone()));
        let builder = builder(provider)?;
        return Ok(Arc::new(builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth()));
    }
    let trusting = |roots: RootCertStore| {
        let builder = builder(ring::default_provider())?;
        Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
    };
    if let Some(roots) = &tls.roots {
        return trusting(bundle(roots.reveal())?);
    }
    if let Some(usual) = USUAL.get() {
        return Ok(Arc::clone(usual));
    }
    let made = trusting(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })?;
    Ok(Arc::clone(USUAL.get_or_init(|| made)))
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn builder(provider: CryptoProvider) -> Result<Builder, Miss> {
    let builder = ClientConfig::builder_with_provider(Arc::new(provider));
    builder.with_safe_default_protocol_versions().map_err(|error| miss(&error))
}

/// The certificates in a text; at least one must be usable.
fn bundle(text: &str) -> Result<RootCertStore, Miss> {
    let mut roots = RootCertStore::empty();
    if text.len() <= limits::PROBE_ROOTS {
        let certificates = CertificateDer::pem_slice_iter(text.as_bytes());
        roots.add_parsable_certificates(certificates.map_while(Result::ok));
    }
    if roots.is_empty() { Err(Miss::Tls(TlsFault::NoRoots)) } else { Ok(roots) }
}

/// Takes any certificate: only that the server holds its key is checked.
#[derive(Debug)]
struct AnyCertificate(CryptoProvider);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
