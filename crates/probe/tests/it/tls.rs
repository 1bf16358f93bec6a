//! Servers that prove, or fail to prove, who they are.

use std::{io::Write, net::SocketAddr, sync::Arc, thread, time::Duration};

use linchpin_probe::{Miss, ProbePhase, ProbeText, Tls, TlsFault};
use rcgen::{Certificate, CertificateParams, CertifiedIssuer, KeyPair};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};

use crate::servers::{LONG, answering, get, probe, read_request, run, server};

/// An authority of the test's own.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        let pem = issuer.pem();
        Self { issuer, pem }
    }

    /// A server with a certificate for `name`, valid until `year`.
    fn server(&self, name: &str, year: i32) -> SocketAddr {
        let key = KeyPair::generate().unwrap();
        let certificate = parameters(name, year).signed_by(&key, &self.issuer).unwrap();
        serving(&certificate, &key)
    }
}

/// A certificate for `name`, valid until `year`.
fn parameters(name: &str, year: i32) -> CertificateParams {
    let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2000, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(year, 1, 1);
    parameters
}

fn serving(certificate: &Certificate, key: &KeyPair) -> SocketAddr {
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let configuration = Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap());
    server(move |tcp| {
        let connection = ServerConnection::new(Arc::clone(&configuration)).unwrap();
        let mut stream = StreamOwned::new(connection, tcp);
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").and_then(|()| stream.flush());
    })
}

fn ask(address: SocketAddr, name: &str, insecure: bool, roots: Option<&str>) -> Result<(), Miss> {
    let tls = Tls { name: name.to_owned(), insecure, roots: roots.map(ProbeText::literal) };
    run(&probe(address, Some(get("/").over(tls))), LONG)
}

#[test]
fn a_bundle_is_trusted_instead_of_the_usual_roots() {
    let authority = Authority::new();
    let address = authority.server("api.internal", 4000);
    assert_eq!(ask(address, "api.internal", false, Some(&authority.pem)), Ok(()));
    assert_eq!(ask(address, "api.internal.", false, Some(&authority.pem)), Ok(()), "a dot ends the name");
    let unknown = Err(Miss::Tls(TlsFault::UnknownIssuer));
    assert_eq!(ask(address, "api.internal", false, None), unknown, "Mozilla's roots know nothing of it");
    assert_eq!(ask(address, "api.internal", false, Some(&Authority::new().pem)), unknown);
    assert_eq!(ask(address, "api.internal", true, None), Ok(()), "any certificate will do");
}

/// As `openssl req -x509` makes one: it is its own authority, and says so.
#[test]
fn a_certificate_that_somebody_signed_himself_is_its_own_bundle() {
    let signed = |year: i32| {
        let mut parameters = parameters("api.internal", year);
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        (serving(&certificate, &key), certificate.pem())
    };
    let (address, bundle) = signed(4000);
    assert_eq!(ask(address, "api.internal", false, Some(&bundle)), Ok(()));
    let wrong = Err(Miss::Tls(TlsFault::WrongName));
    assert_eq!(ask(address, "other.internal", false, Some(&bundle)), wrong);
    let (other, _) = signed(4000);
    let unknown = Err(Miss::Tls(TlsFault::UnknownIssuer));
    assert_eq!(
        ask(other, "api.internal", false, Some(&bundle)),
        unknown,
        "of the same name, with another key"
    );
    assert_eq!(ask(address, "api.internal", false, None), unknown);
    let (old, bundle) = signed(2001);
    assert_eq!(ask(old, "api.internal", false, Some(&bundle)), Err(Miss::Tls(TlsFault::NotValidNow)));
}

#[test]
fn a_certificate_must_be_for_the_name_and_for_today() {
    let authority = Authority::new();
    let other = authority.server("evil\u{2d}name.internal", 4000);
    let missed = ask(other, "api.internal", false, Some(&authority.pem)).unwrap_err();
    assert_eq!(missed, Miss::Tls(TlsFault::WrongName));
    assert!(!missed.to_string().contains("evil"), "names in a certificate are the server's text: {missed}");
    let old = authority.server("api.internal", 2001);
    assert_eq!(ask(old, "api.internal", false, Some(&authority.pem)), Err(Miss::Tls(TlsFault::NotValidNow)));
    let good = authority.server("api.internal", 4000);
    assert_eq!(ask(good, "not a name", false, None), Err(Miss::Tls(TlsFault::BadName)));
}

#[test]
fn a_bundle_without_a_certificate_trusts_nobody() {
    let authority = Authority::new();
    let address = authority.server("api.internal", 4000);
    let large = format!("{}\n{}", authority.pem, "x".repeat(linchpin_probe::limits::PROBE_ROOTS));
    let key = KeyPair::generate().unwrap().serialize_pem();
    for roots in
        ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &key, &large]
    {
        let missed = ask(address, "api.internal", false, Some(roots));
        assert_eq!(missed, Err(Miss::Tls(TlsFault::NoRoots)), "{} bytes", roots.len());
    }
}

#[test]
fn what_is_not_tls_is_said_so_and_ends_in_time() {
    let plain = answering(b"HTTP/1.1 200 OK\r\n\r\n");
    let tls = || get("/").over(Tls { name: "a".to_owned(), insecure: true, roots: None });
    let within = |address: SocketAddr, patience| run(&probe(address, Some(tls())), patience);
    let short = Duration::from_secs(1);
    let garbage = server(|mut tcp| while tcp.write_all(&[0x16, 3, 3, 0x3f, 0xff, 0xff, 0x42]).is_ok() {});
    let text = server(|mut tcp| while tcp.write_all(b"220 smtp ready\r\n").is_ok() {});
    let silent = server(|tcp| {
        thread::sleep(Duration::from_mins(1));
        drop(tcp);
    });
    let broken =
        |missed: Result<(), Miss>| matches!(missed, Err(Miss::Tls(_) | Miss::TimedOut(ProbePhase::Tls)));
    assert!(broken(within(garbage, LONG)), "records without sense");
    assert_eq!(within(text, LONG), Err(Miss::Tls(TlsFault::NotTls)));
    assert_eq!(within(silent, short), Err(Miss::TimedOut(ProbePhase::Tls)));
    assert_eq!(within(server(drop), LONG), Err(Miss::Tls(TlsFault::Refused)));
    // A plain server waits for the end of a request that it cannot understand.
    assert!(broken(within(plain, short)));
}
