use super::*;

fn request() -> ProbeRequest {
    ProbeRequest::get("api.shop.svc.cluster.local:8080", "/healthz?deep=1").unwrap()
}

fn text(request: &ProbeRequest) -> String {
    String::from_utf8(request.wire("linchpin-probe/1")).unwrap()
}

#[test]
fn a_request_says_who_asks_whom_and_ends_the_connection() {
    let expected = "GET /healthz?deep=1 HTTP/1.1\r\nHost: api.shop.svc.cluster.local:8080\r\n\
                    User-Agent: linchpin-probe/1\r\nAccept: */*\r\nConnection: close\r\n\r\n";
    assert_eq!(text(&request()), expected);
}

#[test]
fn b20_operator_and_waiter_send_the_same_of_a_path() {
    let fragment = ProbeRequest::get("a:1", "/a?b#c").unwrap();
    assert!(text(&fragment).starts_with("GET /a?b HTTP/1.1\r\n"), "{}", text(&fragment));
}

#[test]
fn a_host_header_replaces_the_authority_and_a_post_has_an_empty_body() {
    let request = request().method("POST").unwrap().header("host", ProbeText::literal("other")).unwrap();
    let text = text(&request);
    assert!(text.starts_with("POST "), "{text}");
    assert!(text.contains("\r\nhost: other\r\n") && !text.contains("Host: api"), "{text}");
    assert!(text.contains("\r\nContent-Length: 0\r\n"), "{text}");
}

#[test]
fn no_text_of_a_user_breaks_a_line_of_the_request() {
    for path in ["", "x", "/a b", "/a\r\nX: y", "/\u{7f}", "/é", "/\t"] {
        assert!(ProbeRequest::get("a:1", path).is_err(), "{path:?}");
    }
    assert!(ProbeRequest::get("a:1", &format!("/{}", "x".repeat(limits::PROBE_PATH - 1))).is_ok());
    assert!(ProbeRequest::get("a:1", &format!("/{}", "x".repeat(limits::PROBE_PATH))).is_err());
    for path in ["/'\"&$;`|", "/%0a", "/$(id)"] {
        assert!(ProbeRequest::get("a:1", path).is_ok(), "{path}");
    }
    for authority in ["", "a b", "a\r\nb", "a/b", "user@a"] {
        assert!(ProbeRequest::get(authority, "/").is_err(), "{authority:?}");
    }
    for method in ["", "get", "GET ", "GET\r\n", "G-T", &"A".repeat(33)] {
        assert!(request().method(method).is_err(), "{method:?}");
    }
    for name in ["", "a b", "a:b", "a\r\n", "Connection", "content-length", "Proxy-Authorization", "TE", "é"]
    {
        assert!(request().header(name, ProbeText::literal("x")).is_err(), "{name:?}");
    }
    for value in ["a\r\nb", "a\nb", "\0", "\u{85}", &"x".repeat(limits::PROBE_HEADER_VALUE + 1)] {
        assert!(request().header("X-A", ProbeText::literal(value)).is_err(), "{value:?}");
    }
    let longest = "é".repeat(limits::PROBE_HEADER_VALUE);
    assert!(request().header("X-A", ProbeText::literal(longest)).is_ok(), "characters are counted");
    for status in [0, 99, 600, 65_535] {
        assert!(request().expect([status]).is_err(), "{status}");
    }
}

#[test]
fn lists_have_a_limit() {
    let mut full = request();
    for number in 0..limits::PROBE_LIST {
        full = full.header(&format!("X-{number}"), ProbeText::literal("")).unwrap();
    }
    assert_eq!(full.header("X-Last", ProbeText::literal("")).unwrap_err(), ProbeError::TooMany);
    assert_eq!(request().expect(100..=200).unwrap_err(), ProbeError::TooMany);
}

#[test]
fn the_order_of_statuses_makes_no_other_probe() {
    assert_eq!(request().expect([204, 200, 200]).unwrap(), request().expect([200, 204]).unwrap());
    assert!(request().accepts(299) && !request().accepts(301));
    let moved = request().expect([301]).unwrap();
    assert!(moved.accepts(301) && !moved.accepts(200));
}

#[test]
fn a_secret_is_in_no_debug_output_and_makes_a_probe_private() {
    let origin = Origin { uid: "u".to_owned(), version: 7 };
    let secret = request().header("Authorization", ProbeText::read_from(origin.clone(), "hunter2")).unwrap();
    assert!(!format!("{secret:?}").contains("hunter2"));
    let place = ProbeTarget::host("api", 80).unwrap();
    let public = Probe { place: place.clone(), request: Some(request()) };
    assert!(!public.is_private());
    assert!(Probe { place: place.clone(), request: Some(secret) }.is_private());
    let roots = Some(ProbeText::read_from(origin, "pem"));
    let tls = Tls { name: "api".to_owned(), insecure: false, roots };
    assert!(Probe { place, request: Some(request().over(tls)) }.is_private());
}

#[test]
fn a_host_is_a_name_or_an_address() {
    for (host, shown) in [
        ("db", "db:1"),
        ("db.example.com", "db.example.com:1"),
        ("10.0.0.1", "10.0.0.1:1"),
        ("my_db", "my_db:1"),
        ("fd00::1", "[fd00::1]:1"),
        ("[fd00::1]", "[fd00::1]:1"),
    ] {
        assert_eq!(ProbeTarget::host(host, 1).unwrap().to_string(), shown);
    }
    for host in ["", "a b", "a:5432", "http://a", "u@a", "fe80::1%eth0", "[db]", "a\n", &"a".repeat(254)] {
        assert!(ProbeTarget::host(host, 1).is_err(), "{host:?}");
    }
}

#[test]
fn every_miss_is_one_line_and_says_nothing_of_time() {
    let range = crate::egress::Egress::default().check([127, 0, 0, 1].into()).unwrap_err();
    for miss in
        [Miss::Refused, Miss::Status(503), Miss::DeniedRange(range), Miss::DeniedMethod("POST".to_owned())]
    {
        assert!(
            !miss.to_string().contains('\n')
                && miss.is_denied() == (miss.reason() == crate::Reason::ProbeDenied)
        );
    }
    assert_eq!(Miss::Refused.to_string(), "connection refused");
    assert_eq!(Miss::Status(503).to_string(), "HTTP 503");
    let expected = "127.0.0.0/8 (loopback) is not probed; the operator's --probe-allow takes a range out";
    assert_eq!(Miss::DeniedRange(range).to_string(), expected);
}
