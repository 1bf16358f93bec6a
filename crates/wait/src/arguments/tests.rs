use super::*;

fn read(line: &[&str]) -> Result<Vec<WaitTarget>, String> {
    let sources = ValueSources {
        variable: &|name| (name == "TOKEN").then(|| "Bearer hunter2".to_owned()),
        file: &|path| if path == "/ca.crt" { Ok("pem\n".to_owned()) } else { Err("not found".to_owned()) },
    };
    let words: Vec<String> = line.iter().map(ToString::to_string).collect();
    match parse(&words, &sources)? {
        Command::Wait(targets) => Ok(targets),
        other => panic!("{other:?}"),
    }
}

fn one(line: &[&str]) -> WaitTarget {
    let mut targets = read(line).unwrap();
    assert_eq!(targets.len(), 1);
    targets.remove(0)
}

fn wire(target: &WaitTarget) -> String {
    String::from_utf8(target.probe.request.as_ref().unwrap().wire("agent")).unwrap()
}

#[test]
fn the_arguments_that_the_operator_writes_are_understood() {
    let tcp = one(&["tcp", "db.shop.svc.cluster.local:5432", "--timeout", "30s"]);
    assert_eq!(
        tcp.probe,
        Probe { place: ProbeTarget::host("db.shop.svc.cluster.local", 5432).unwrap(), request: None }
    );
    assert_eq!((tcp.timeout.length, tcp.proceed), (Period::from_secs(30), false));
    let http = one(&[
        "http",
        "https://api.backend.svc.cluster.local:8443/healthz?deep=1",
        "--method",
        "GET",
        "--header",
        "X-Tenant: shop",
        "--header-env",
        "Authorization=TOKEN",
        "--expect",
        "200,204",
        "--ca-env",
        "TOKEN",
        "--server-name",
        "api.internal",
        "--timeout",
        "1m30s",
        "--on-timeout",
        "proceed",
    ]);
    let text = wire(&http);
    assert!(
        text.starts_with("GET /healthz?deep=1 HTTP/1.1\r\nHost: api.backend.svc.cluster.local:8443\r\n"),
        "{text}"
    );
    assert!(text.contains("\r\nX-Tenant: shop\r\nAuthorization: Bearer hunter2\r\n"), "{text}");
    let request = http.probe.request.as_ref().unwrap();
    assert!(request.accepts(204) && !request.accepts(201));
    assert_eq!(request.tls().unwrap().name, "api.internal");
    assert_eq!((http.timeout.to_string().as_str(), http.proceed), ("1m30s", true));
}

#[test]
fn what_the_schema_lets_through_is_no_mistake_here() {
    let plain = one(&["http", "http://api:80/healthz", "--insecure", "--timeout", "60s"]);
    assert!(plain.probe.request.as_ref().unwrap().tls().is_none(), "nothing to check, and nothing wrong");
    // The line's end that editors and shells put behind a Secret is not part of it.
    let sources =
        ValueSources { variable: &|_| Some("Bearer hunter2\r\n".to_owned()), file: &|_| Err(String::new()) };
    let line = ["http", "http://a", "--header-env", "Authorization=TOKEN"].map(str::to_owned);
    let Ok(Command::Wait(targets)) = parse(&line, &sources) else { panic!("it is taken") };
    assert!(wire(&targets[0]).contains("\r\nAuthorization: Bearer hunter2\r\n"));
}

#[test]
fn the_options_of_a_group_hold_for_all_its_targets() {
    let targets = read(&["tcp", "db:5432", "http", "http://api/healthz", "--timeout", "5s"]).unwrap();
    assert_eq!(targets.len(), 2);
    assert!(targets.iter().all(|target| target.timeout.length == Period::from_secs(5)));
    let apart =
        read(&["tcp", "db:5432", "--timeout=2s", "--", "http", "http://api", "--expect", "418"]).unwrap();
    assert_eq!(apart[0].timeout.to_string(), "2s");
    assert_eq!(apart[1].timeout.to_string(), "60s", "what is not said is a minute");
    assert!(apart[1].probe.request.as_ref().unwrap().accepts(418));
    assert!(wire(&apart[1]).starts_with("GET / HTTP/1.1\r\nHost: api\r\n"));
}

#[test]
fn urls_and_hosts_are_read_as_people_write_them() {
    for (url, place, line) in [
        ("http://api", "api:80", "GET / HTTP/1.1\r\nHost: api\r\n"),
        ("https://api?x=1", "api:443", "GET /?x=1 HTTP/1.1\r\nHost: api\r\n"),
        ("http://[fd00::1]/a", "[fd00::1]:80", "GET /a HTTP/1.1\r\nHost: [fd00::1]\r\n"),
        ("http://[fd00::1]:81/a#b", "[fd00::1]:81", "GET /a HTTP/1.1\r\nHost: [fd00::1]:81\r\n"),
        ("http://a/:b", "a:80", "GET /:b HTTP/1.1\r\nHost: a\r\n"),
    ] {
        let target = one(&["http", url]);
        assert_eq!(target.probe.place.to_string(), place, "{url}");
        assert!(wire(&target).starts_with(line), "{url}: {}", wire(&target));
    }
    assert_eq!(one(&["tcp", "[fd00::1]:5432"]).probe.place.to_string(), "[fd00::1]:5432");
}

#[test]
fn what_makes_no_sense_is_named() {
    for (line, expected) in [
        (vec!["tcp"], "tcp needs a value"),
        (vec!["udp", "a:1"], "\"udp\" is neither tcp nor http"),
        (vec!["--timeout", "1s"], "options without a target"),
        (vec!["tcp", "a:1", "--", "--timeout", "1s"], "options without a target"),
        (vec!["tcp", "a:1", "--"], "options without a target"),
        (vec!["tcp", "db"], "is not HOST:PORT"),
        (vec!["tcp", "db:0"], "is not HOST:PORT"),
        (vec!["tcp", "db:65536"], "is not HOST:PORT"),
        (vec!["tcp", "fd00::1:5432"], "is not HOST:PORT"),
        (vec!["tcp", "a b:1"], "is not HOST:PORT"),
        (vec!["tcp", "a:1", "--timeout", "60"], "has no unit"),
        (vec!["tcp", "a:1", "--timeout", "0s"], "is not more than 0"),
        (vec!["tcp", "a:1", "--timeout", "25h"], "at most 24h"),
        (vec!["tcp", "a:1", "--timeout", "-5s"], "cannot be negative"),
        (vec!["tcp", "a:1", "--on-timeout", "maybe"], "neither fail nor proceed"),
        (vec!["tcp", "a:1", "--expect", "200"], "--expect is for http targets"),
        (vec!["tcp", "a:1", "--insecure"], "--insecure is for http targets"),
        (vec!["http", "http://a", "--server-name", "b"], "--server-name is for https"),
        (vec!["http", "ftp://a"], "is not a URL"),
        (vec!["http", "http://user@a"], "is not a URL"),
        (vec!["http", "http://"], "is not a URL"),
        (vec!["http", "http://a/b c"], "the path"),
        (vec!["http", "http://a/\r\nX:y"], "the path"),
        (vec!["http", "http://a", "--expect", "abc"], "is no status"),
        (vec!["http", "http://a", "--expect", "99"], "is not an HTTP status"),
        (vec!["http", "http://a", "--method", "get"], "is not an HTTP method"),
        (vec!["http", "http://a", "--header", "nonsense"], "expected 'NAME: VALUE'"),
        (vec!["http", "http://a", "--header", "Connection: keep-alive"], "is not a header that can be set"),
        (vec!["http", "http://a", "--header-env", "A=NONE"], "no environment variable \"NONE\""),
        (vec!["http", "https://a", "--ca", "/none"], "reading \"/none\": not found"),
        (vec!["tcp", "a:1", "--nonsense", "1"], "nor an option"),
    ] {
        let error = read(&line).unwrap_err();
        assert!(error.contains(expected), "{line:?}: {error}");
    }
    assert_eq!(
        parse(&[], &ValueSources { variable: &|_| None, file: &|_| Err(String::new()) }).unwrap_err(),
        "nothing to wait for"
    );
}

#[test]
fn a_secret_is_in_no_error() {
    let sources =
        ValueSources { variable: &|_| Some("hunter2\nX".to_owned()), file: &|_| Err(String::new()) };
    let line = ["http", "http://a", "--header-env", "Authorization=TOKEN"].map(str::to_owned);
    let error = parse(&line, &sources).unwrap_err();
    assert!(error.contains("Authorization") && !error.contains("hunter2"), "{error}");
}
