use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc,
};

use linchpin_engine::contract::Via;
use linchpin_words::{
    Reason, Shared,
    source::{Locator, Source},
};

use super::*;

/// A web server that answers every request with a text.
fn server(text: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        }
    });
    port
}

fn want(port: u16) -> Want {
    let locator = Locator::Http { url: format!("http://127.0.0.1:{port}/a.yaml"), digest: None };
    let source = Shared::new(Source { locator, paths: Vec::new(), strip_components: 0, secret: None });
    let via = Via::service_account("shop", "default");
    let (interval, timeout) = (Duration::from_mins(5), Duration::from_secs(30));
    Want::new(Question::Artifact { via, source, interval, timeout })
}

async fn answer(hosts: &str, egress: Egress, want: &Want) -> Seen {
    let (send, notified) = mpsc::channel();
    let send = Mutex::new(send);
    let listener: AnswerListener = Arc::new(move |woken: &[SubscriberId]| {
        let _ = send.lock().unwrap().send(woken.to_vec());
    });
    let sources = Sources::new(&SourceSettings::parse(hosts, "").unwrap(), &egress, listener);
    sources.subscribe(SubscriberId(1), [want.clone()].into());
    let woken = tokio::task::spawn_blocking(move || notified.recv_timeout(Duration::from_mins(1)));
    assert_eq!(woken.await.unwrap().unwrap(), [SubscriberId(1)]);
    sources.read(want)
}

#[tokio::test]
async fn a_source_is_fetched_from_a_listed_host_at_an_allowed_address_and_from_nowhere_else() {
    let want = want(server("a: 1"));
    let Seen::Artifact(found) = answer("http://127.0.0.1", Egress::default().with_loopback(), &want).await
    else {
        panic!("nothing was fetched");
    };
    let content = found.content.as_ref().unwrap();
    assert_eq!(content.files, [(String::new(), "a: 1".to_owned())]);
    assert!(content.revision.starts_with("sha256:") && found.fault.is_none());
    for (hosts, egress, reason) in [
        ("", Egress::default().with_loopback(), Reason::HostNotAllowed),
        ("http://127.0.0.1", Egress::default(), Reason::AddressDenied),
    ] {
        let Seen::Artifact(found) = answer(hosts, egress, &want).await else { panic!("no answer") };
        let fault = found.fault.as_ref().unwrap();
        assert_eq!((fault.reason, fault.refused, &found.content), (reason, false, &None), "{fault:?}");
    }
}
