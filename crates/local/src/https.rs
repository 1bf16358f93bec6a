//! A client of a few lines for the questions this crate asks: is it ready, does it exist, create it.
//!
//! It trusts the cluster's own authority only, so a stranger on a recycled port is never taken for our API server.
//! HTTP/1.0, one request per connection: no chunks, no keep-alive, no state.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};

use crate::{
    certificates::PemPair,
    error::{Error, Result},
};

const PATIENCE: Duration = Duration::from_secs(5);

/// Talks TLS to components on 127.0.0.1, as the holder of a client certificate.
#[derive(Clone, Debug)]
pub(crate) struct HttpsClient(Arc<ClientConfig>);

/// A status and a body.
pub(crate) struct HttpsAnswer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl HttpsClient {
    pub(crate) fn new(authority: &str, pair: &PemPair) -> Result<Self> {
        let failed = |why: &dyn ToString| Error::Tls { whom: "the cluster", why: why.to_string() };
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(authority.as_bytes()).map_err(|why| failed(&why))?;
        roots.add(authority).map_err(|why| failed(&why))?;
        let certificate =
            CertificateDer::from_pem_slice(pair.certificate.as_bytes()).map_err(|why| failed(&why))?;
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(|why| failed(&why))?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|why| failed(&why))?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key)
            .map_err(|why| failed(&why))?;
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn get(&self, port: u16, path: &str) -> io::Result<HttpsAnswer> {
        self.request(port, &format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"))
    }

    pub(crate) fn post(&self, port: u16, path: &str, body: &str) -> io::Result<HttpsAnswer> {
        let length = body.len();
        self.request(
            port,
            &format!(
                "POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            ),
        )
    }

    fn request(&self, port: u16, request: &str) -> io::Result<HttpsAnswer> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let socket = TcpStream::connect_timeout(&address, PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let connection = ClientConnection::new(Arc::clone(&self.0), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, socket);
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // Some servers close without TLS's own goodbye; an answer that came is an answer.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !answer.is_empty() => {}
            other => drop(other?),
        }
        parse(&String::from_utf8_lossy(&answer))
    }
}

/// Asks a component that does not speak TLS.
pub(crate) fn plain_get(port: u16, path: &str) -> io::Result<HttpsAnswer> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    parse(&answer)
}

fn parse(answer: &str) -> io::Result<HttpsAnswer> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| io::Error::other("the answer is not HTTP"))?;
    Ok(HttpsAnswer { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let answer = parse("HTTP/1.0 503 Service Unavailable\r\nA: b\r\n\r\n[-]etcd failed").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (503, "[-]etcd failed"));
        assert!(parse("SSH-2.0").is_err());
    }
}
