//! An API server for tests, of one function: what it answers to which request.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use kube::Client;
use linchpin_cluster::transport::{Transport, TransportOptions};
use serde_json::Value;

/// A client of a server that answers so: the status line and the body for `GET /path?query`.
pub(crate) fn answering(mut answer: impl FnMut(&str) -> (&'static str, Value) + Send + 'static) -> Client {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", server.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut connection in server.incoming().flatten() {
            let request = request(&mut connection);
            let line = request.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1");
            let (status, body) = answer(line);
            let (body, head) = (body.to_string(), "content-type: application/json\r\nconnection: close");
            let length = body.len();
            let _ =
                write!(connection, "HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}");
        }
    });
    let config = kube::Config::new(url.parse().unwrap());
    Transport::new(&config, &TransportOptions::default()).unwrap().writes(None)
}

/// A whole request, with its body: what is not read makes the end of a connection an error.
fn request(connection: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase();
            let length = length.split_once("content-length: ").map_or("0", |(_, length)| length);
            let length = length.lines().next().and_then(|length| length.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        match connection.read(&mut piece) {
            Ok(count) if count > 0 => read.extend(&piece[..count]),
            _ => return text,
        }
    }
}
