//! Servers that do what a test says with every connection, and probes of them.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use linchpin_probe::{Miss, NameResolver, Probe, ProbeRequest, ProbeTarget, Rules};

/// Does `what` with every connection, each on a thread of its own.
pub(crate) fn server(what: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            let what = what.clone();
            thread::spawn(move || what(tcp));
        }
    });
    address
}

/// Reads a request and answers with `answer`.
pub(crate) fn answering(answer: &'static [u8]) -> SocketAddr {
    server(move |mut tcp| {
        read_request(&mut tcp);
        let _ = tcp.write_all(answer);
    })
}

/// What was sent, up to the empty line.
pub(crate) fn read_request(tcp: &mut impl Read) -> String {
    let (mut read, mut byte) = (Vec::new(), [0]);
    while !read.ends_with(b"\r\n\r\n") && tcp.read(&mut byte).is_ok_and(|count| count == 1) {
        read.push(byte[0]);
    }
    String::from_utf8(read).unwrap()
}

/// A port at which nobody listens.
pub(crate) fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A probe of a server on loopback by its address.
pub(crate) fn probe(address: SocketAddr, request: Option<ProbeRequest>) -> Probe {
    Probe { place: ProbeTarget::host(&address.ip().to_string(), address.port()).unwrap(), request }
}

pub(crate) fn get(path: &str) -> ProbeRequest {
    ProbeRequest::get("test.example:80", path).unwrap()
}

/// Runs a probe without rules, within `patience`.
pub(crate) fn run(probe: &Probe, patience: Duration) -> Result<(), Miss> {
    linchpin_probe::run(probe, &Rules::default(), &NameResolver::default(), Instant::now() + patience)
}

/// Long enough for anything that answers at all, on a busy machine too.
pub(crate) const LONG: Duration = Duration::from_secs(30);
