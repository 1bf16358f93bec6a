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
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
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
        Error::InvalidCertificate(_) if is_authority(error) => TlsFault::UnknownIssuer,
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
    let bundle = tls.roots.as_ref().filter(|_| !tls.insecure);
    if tls.insecure || bundle.is_some() {
        let provider = ring::default_provider();
        let bundle = bundle.map(|roots| Bundle::read(roots.reveal())).transpose()?;
        let verifier = Verifier { algorithms: provider.signature_verification_algorithms, bundle };
        let builder = builder(provider)?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        return Ok(Arc::new(builder.with_no_client_auth()));
    }
    if let Some(usual) = USUAL.get() {
        return Ok(Arc::clone(usual));
    }
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let builder = builder(ring::default_provider())?;
    let made = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
    Ok(Arc::clone(USUAL.get_or_init(|| made)))
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn builder(provider: CryptoProvider) -> Result<Builder, Miss> {
    let builder = ClientConfig::builder_with_provider(Arc::new(provider));
    builder.with_safe_default_protocol_versions().map_err(|error| miss(&error))
}

/// Whether a certificate was refused because it calls itself an authority. It is valid now: that is judged before.
fn is_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Trusts the certificates of a bundle: what they sign, and a server that shows one of them. A certificate that people
/// sign themselves (`openssl req -x509`) calls itself an authority, and is a server's all the same.
#[derive(Debug)]
struct Bundle {
    signed: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Bundle {
    /// The certificates in a text; at least one must be usable.
    fn read(text: &str) -> Result<Self, Miss> {
        let none = Miss::Tls(TlsFault::NoRoots);
        if text.len() > limits::PROBE_ROOTS {
            return Err(none);
        }
        let trusted: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(text.as_bytes()).map_while(Result::ok).collect();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        let provider = Arc::new(ring::default_provider());
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { signed: signed.map_err(|_| none)?, trusted })
    }
}

/// Checks that a server holds the key of its certificate; which certificates it takes is said by a bundle. Without one it
/// takes any.
#[derive(Debug)]
struct Verifier {
    algorithms: WebPkiSupportedAlgorithms,
    bundle: Option<Bundle>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        revocation: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(Bundle { signed, trusted }) = &self.bundle else {
            return Ok(ServerCertVerified::assertion());
        };
        let is_trusted = || trusted.iter().any(|trusted| trusted.as_ref() == certificate.as_ref());
        match signed.verify_server_cert(certificate, others, name, revocation, now) {
            Err(error) if is_authority(&error) && is_trusted() => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
