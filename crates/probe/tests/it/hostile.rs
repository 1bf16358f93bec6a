//! What servers do that a probe must survive, and where probes must not go.

use std::{
    collections::BTreeSet,
    io::Write,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use linchpin_probe::{
    AnswerFault, Egress, Miss, NameResolver, Probe, ProbePhase, ProbeRequest, ProbeTarget, ProbeText, Rules,
};

use crate::servers::{LONG, answering, closed, get, probe, read_request, run, server};

#[test]
fn a_server_that_answers_is_there() {
    let address = answering(b"HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(run(&probe(address, None), LONG), Ok(()));
    assert_eq!(run(&probe(address, Some(get("/healthz"))), LONG), Ok(()));
    let strict = get("/").expect([200]).unwrap();
    assert_eq!(run(&probe(address, Some(strict)), LONG), Err(Miss::Status(204)));
}

#[test]
fn a_closed_port_refuses() {
    assert_eq!(run(&probe(closed(), None), LONG), Err(Miss::Refused));
}

#[test]
fn the_request_is_the_one_that_was_asked_for() {
    let (send, requests) = mpsc::channel();
    let address = server(move |mut tcp| {
        send.send(read_request(&mut tcp)).unwrap();
        let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
    });
    let request = get("/a'b?c=%0a&d=$(id)").method("POST").unwrap();
    let request = request.header("X-Tenant", ProbeText::literal("it's \"quoted\"")).unwrap();
    assert_eq!(run(&probe(address, Some(request)), LONG), Ok(()));
    let request = requests.recv().unwrap();
    let expected = format!(
        "POST /a'b?c=%0a&d=$(id) HTTP/1.1\r\nHost: test.example:80\r\nUser-Agent: linchpin-probe/{}\r\nAccept: */*\r\n\
         X-Tenant: it's \"quoted\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(request, expected);
}

/// Every one of these would hold a careless client for ever, or fill its memory.
#[test]
fn no_hostile_server_holds_a_probe_beyond_its_deadline() {
    let endless = |first: &'static [u8], again: &'static [u8], pause: Duration| {
        server(move |mut tcp| {
            let mut sent = tcp.write_all(first);
            while sent.is_ok() {
                thread::sleep(pause);
                sent = tcp.write_all(again);
            }
        })
    };
    let huge: &[u8] = &[b'x'; 4096];
    let slow = Duration::from_millis(20);
    let cases: Vec<(&str, SocketAddr, Result<(), Miss>)> = vec![
        ("a body without end", endless(b"HTTP/1.1 200 OK\r\n\r\n", huge, Duration::ZERO), Ok(())),
        (
            "a head without end",
            endless(b"HTTP/1.1 200 OK\r\nA: ", huge, Duration::ZERO),
            Err(Miss::Answer(AnswerFault::HeadTooLong)),
        ),
        (
            "a head a byte at a time",
            endless(b"HTTP/1.1 200 OK\r\nA: ", b"x", slow),
            Err(Miss::TimedOut(ProbePhase::Answer)),
        ),
        (
            "interim answers without end",
            endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", slow),
            Err(Miss::TimedOut(ProbePhase::Answer)),
        ),
        ("silence", endless(b"", b"", slow), Err(Miss::TimedOut(ProbePhase::Answer))),
        ("another protocol", endless(b"SSH-2.0-x\r\n", b"", slow), Err(Miss::Answer(AnswerFault::NotHttp))),
        ("nothing", server(drop), Err(Miss::Answer(AnswerFault::CutOff))),
        ("half a head", answering(b"HTTP/1.1 200 OK\r\n"), Err(Miss::Answer(AnswerFault::CutOff))),
        ("control characters", answering(b"\x1b[31mred\n\n"), Err(Miss::Answer(AnswerFault::NotHttp))),
    ];
    for (name, address, expected) in cases {
        // What ends by its deadline alone need not have a long one; what the server ends has time on a busy machine.
        let ends_late = matches!(expected, Err(Miss::TimedOut(_)));
        let patience = if ends_late { Duration::from_secs(1) } else { LONG };
        assert_eq!(run(&probe(address, Some(get("/"))), patience), expected, "{name}");
    }
}

#[test]
fn a_redirect_is_an_answer_and_is_not_followed() {
    let metadata = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/meta-data\r\n\r\n";
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let address = server(move |mut tcp| {
        count.fetch_add(1, Ordering::SeqCst);
        read_request(&mut tcp);
        let _ = tcp.write_all(metadata);
    });
    assert_eq!(run(&probe(address, Some(get("/"))), LONG), Err(Miss::Status(302)));
    let wanted = get("/").expect([302]).unwrap();
    assert_eq!(run(&probe(address, Some(wanted)), LONG), Ok(()));
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[test]
fn only_addresses_that_were_judged_are_dialled() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    let rules = Rules { egress: Some(Egress::default()), methods: None };
    let ways =
        ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "0177.0.0.1", "::ffff:127.0.0.1", "::1"];
    for host in ways.into_iter().chain(["0.0.0.0", "169.254.169.254", "64:ff9b::127.0.0.1"]) {
        let probe = Probe { place: ProbeTarget::host(host, port).unwrap(), request: Some(get("/")) };
        let missed =
            linchpin_probe::run(&probe, &rules, &NameResolver::default(), Instant::now() + LONG).unwrap_err();
        assert!(matches!(missed, Miss::DeniedRange(_)), "{host}: {missed:?}");
    }
    let claimed = Probe {
        place: ProbeTarget::Addresses(vec![SocketAddr::new([127, 0, 0, 1].into(), port)]),
        request: None,
    };
    let missed =
        linchpin_probe::run(&claimed, &rules, &NameResolver::default(), Instant::now() + LONG).unwrap_err();
    assert!(missed.is_denied(), "an address that somebody claims is judged too: {missed:?}");
    assert!(listener.accept().is_err(), "nobody was connected to");
    let rules =
        Rules { egress: Some(Egress::new(Vec::new(), vec!["127.0.0.1".parse().unwrap()])), methods: None };
    let probe = Probe { place: ProbeTarget::host("0x7f.1", port).unwrap(), request: None };
    assert_eq!(linchpin_probe::run(&probe, &rules, &NameResolver::default(), Instant::now() + LONG), Ok(()));
}

#[test]
fn only_methods_that_are_allowed_are_sent() {
    let address = answering(b"HTTP/1.1 200 OK\r\n\r\n");
    let methods = Some(BTreeSet::from(["GET".to_owned(), "HEAD".to_owned()]));
    let rules = Rules { egress: None, methods };
    let judge = |request: ProbeRequest| {
        linchpin_probe::run(
            &probe(address, Some(request)),
            &rules,
            &NameResolver::default(),
            Instant::now() + LONG,
        )
    };
    assert_eq!(judge(get("/")), Ok(()));
    assert_eq!(judge(get("/").method("DELETE").unwrap()), Err(Miss::DeniedMethod("DELETE".to_owned())));
}

#[test]
fn one_good_address_of_several_suffices() {
    let good = answering(b"HTTP/1.1 200 OK\r\n\r\n");
    let bad = answering(b"HTTP/1.1 503 Unavailable\r\n\r\n");
    let place = |addresses: Vec<SocketAddr>| Probe {
        place: ProbeTarget::Addresses(addresses),
        request: Some(get("/")),
    };
    assert_eq!(run(&place(vec![closed(), bad, good]), LONG), Ok(()));
    assert_eq!(run(&place(vec![closed(), bad]), LONG), Err(Miss::Status(503)));
    assert_eq!(run(&place(Vec::new()), LONG), Err(Miss::Unreachable));
}
