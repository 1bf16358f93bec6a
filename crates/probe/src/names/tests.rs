use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use super::*;

/// A name server on loopback; `answer` makes the records and the flags of each reply, or none for silence.
fn server(answer: impl Fn(&str, bool) -> Option<(u8, u8, Vec<IpAddr>)> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((count, from)) = socket.recv_from(&mut buffer) {
            let question = &buffer[..count];
            let (name, end) = name(question);
            let v6 = question[end + 1] == 28;
            let Some((third, fourth, addresses)) = answer(&name, v6) else { continue };
            let mut reply = question.to_vec();
            reply[2] = third;
            reply[3] = fourth;
            reply[7] = u8::try_from(addresses.len()).unwrap();
            for address in addresses {
                let octets = match address {
                    IpAddr::V4(address) => address.octets().to_vec(),
                    IpAddr::V6(address) => address.octets().to_vec(),
                };
                let kind = if address.is_ipv6() { 28 } else { 1 };
                let length = u8::try_from(octets.len()).unwrap();
                reply.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 1, 0, length]);
                reply.extend(octets);
            }
            socket.send_to(&reply, from).unwrap();
        }
    });
    address
}

fn name(question: &[u8]) -> (String, usize) {
    let (mut labels, mut at) = (Vec::new(), 12);
    while question[at] != 0 {
        let length = usize::from(question[at]);
        labels.push(String::from_utf8(question[at + 1..=at + length].to_vec()).unwrap());
        at += 1 + length;
    }
    (labels.join("."), at + 1)
}

fn resolve(servers: &[SocketAddr], extra: &str, host: &str, patience: Duration) -> Result<Vec<IpAddr>, Miss> {
    let servers: Vec<String> = servers.iter().map(|server| format!("nameserver {server}")).collect();
    let text = format!("{}\n{extra}", servers.join("\n"));
    search(&Configuration::parse(&text), host, Instant::now() + patience)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn both_kinds_of_addresses_are_found_through_the_search_list() {
    let server = server(|name, v6| {
        let found = name == "db.shop.svc";
        let address = address(if v6 { "fd00::7" } else { "10.0.0.7" });
        Some((0x81, if found { 0x80 } else { 0x83 }, if found { vec![address] } else { Vec::new() }))
    });
    let found = resolve(&[server], "search svc shop.svc\noptions ndots:5", "db", LONG).unwrap();
    assert_eq!(found, [address("10.0.0.7"), address("fd00::7")]);
    let none = resolve(&[server], "search svc", "nowhere", LONG);
    assert_eq!(none, Err(Miss::Name(NameFault::NotFound)));
}

#[test]
fn a_silent_name_server_is_passed_over_and_all_of_them_end_by_the_deadline() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let silent = server(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        None
    });
    let good = server(|_, v6| Some((0x81, 0x80, if v6 { Vec::new() } else { vec![address("10.0.0.7")] })));
    assert_eq!(resolve(&[silent, good], "", "db.example", LONG), Ok(vec![address("10.0.0.7")]));
    assert!(asked.load(Ordering::Relaxed) > 0);
    let begun = Instant::now();
    let missed = resolve(&[silent], "", "db.example", Duration::from_millis(300));
    assert_eq!(missed, Err(Miss::TimedOut(ProbePhase::Name)));
    assert!(begun.elapsed() < Duration::from_secs(10), "it ends by its deadline, not by that of a resolver");
}

#[test]
fn a_name_server_that_fails_is_not_an_absence() {
    let failing = server(|_, _| Some((0x81, 0x82, Vec::new())));
    assert_eq!(resolve(&[failing], "", "db.example", LONG), Err(Miss::Name(NameFault::ServerFailed)));
    let closed = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap()
    };
    assert_eq!(resolve(&[closed], "", "db.example", LONG), Err(Miss::Name(NameFault::ServerFailed)));
}

#[test]
fn one_kind_of_addresses_is_enough_when_the_other_is_never_answered() {
    let half = server(|_, v6| (!v6).then(|| (0x81, 0x80, vec![address("10.0.0.7")])));
    assert_eq!(resolve(&[half], "", "db.example", LONG), Ok(vec![address("10.0.0.7")]));
}

#[test]
fn a_server_that_is_wrong_about_ipv6_does_not_hide_a_name() {
    // It denies the name where it has no such address, or says nothing at all.
    let denies = server(|name, v6| {
        let found = name == "db.b" && !v6;
        Some((
            0x81,
            if found { 0x80 } else { 0x83 },
            if found { vec![address("10.0.0.7")] } else { Vec::new() },
        ))
    });
    assert_eq!(resolve(&[denies], "search a b", "db", LONG), Ok(vec![address("10.0.0.7")]));
    let silent = server(|name, v6| {
        let found = name == "db.b";
        (!v6).then(|| {
            (
                0x81,
                if found { 0x80 } else { 0x83 },
                if found { vec![address("10.0.0.7")] } else { Vec::new() },
            )
        })
    });
    assert_eq!(resolve(&[silent], "search a b", "db", LONG), Ok(vec![address("10.0.0.7")]));
    assert_eq!(resolve(&[silent], "", "nowhere.a", LONG), Err(Miss::Name(NameFault::NotFound)));
}

#[test]
fn old_ways_to_write_an_address_mean_that_address() {
    for text in ["2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.1", "127.0.1", "0X7F.0.0.0x1"] {
        assert_eq!(numeric(text), Some(Ipv4Addr::LOCALHOST), "{text}");
    }
    assert_eq!(numeric("0"), Some(Ipv4Addr::UNSPECIFIED));
    assert_eq!(numeric("4294967295"), Some(Ipv4Addr::BROADCAST));
    for text in ["", "db", "1.2.3.4.5", "256.1", "4294967296", "1..2", "0x", "08", "+1", "-1", "0x7g", "a.1"]
    {
        assert_eq!(numeric(text), None, "{text}");
    }
}
