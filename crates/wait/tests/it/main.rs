//! The waiter as a process: what it says, how it ends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    os::unix::process::ExitStatusExt,
    process::{Child, Command, Output, Stdio},
    thread,
};

fn waiter(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linchpin-wait"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, Vec<String>, String) {
    ended(waiter(arguments).output().unwrap())
}

fn ended(output: Output) -> (Option<i32>, Vec<String>, String) {
    let lines = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    (output.status.code(), lines, String::from_utf8(output.stderr).unwrap())
}

fn start(arguments: &[&str]) -> Child {
    waiter(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A port that nobody listens at.
fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A server that answers with one status after the other, the last one for ever.
fn server(statuses: &'static [u16]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (index, tcp) in listener.incoming().flatten().enumerate() {
            let mut tcp = tcp;
            let mut buffer = [0; 4096];
            let _ = tcp.read(&mut buffer);
            let status = statuses.get(index).or(statuses.last()).unwrap();
            let _ = write!(tcp, "HTTP/1.1 {status} x\r\n\r\n");
        }
    });
    address
}

#[test]
fn it_ends_when_the_port_opens_and_says_what_it_waited_for() {
    let address = closed();
    let target = address.to_string();
    let child = start(&["tcp", &target, "--timeout", "60s"]);
    let mut child = child;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), format!("Waiting for {target} (60s)"));
    assert_eq!(lines.next().unwrap().unwrap(), format!("{target}: connection refused"));
    let listener = TcpListener::bind(address).unwrap();
    let last = lines.next().unwrap().unwrap();
    let taken = last.strip_prefix(&format!("{target} is ready after ")).unwrap();
    assert!(taken.ends_with('s') && taken.contains('.'), "{last}");
    assert!(lines.next().is_none(), "a cause is said once, however often it is found");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(listener);
}

#[test]
fn it_ends_with_1_and_the_last_cause_when_the_time_is_up() {
    let target = closed().to_string();
    let (code, lines, _) = run(&["tcp", &target, "--timeout", "300ms"]);
    assert_eq!(code, Some(1));
    assert_eq!(lines.last().unwrap(), &format!("Timed out after 300ms: {target}: connection refused"));
    let (code, lines, _) = run(&["tcp", &target, "--timeout", "300ms", "--on-timeout", "proceed"]);
    assert_eq!(code, Some(0), "it may go on without");
    let expected = format!("Timed out after 300ms: {target}: connection refused; proceeding without it");
    assert_eq!(lines.last().unwrap(), &expected);
}

#[test]
fn every_change_of_the_cause_is_one_line() {
    let url = format!("http://{}/healthz?a='b'&c", server(&[503, 503, 404, 200]));
    let (code, lines, _) = run(&["http", &url]);
    let (first, rest) = lines.split_first().unwrap();
    assert_eq!((code, first.as_str()), (Some(0), format!("Waiting for {url} (60s)").as_str()));
    assert_eq!(rest[..2], [format!("{url}: HTTP 503"), format!("{url}: HTTP 404")]);
    assert!(rest[2].starts_with(&format!("{url} is ready after ")), "{rest:?}");
}

#[test]
fn b16_several_targets_are_waited_for_at_once() {
    let (first, second) = (server(&[503, 200]).to_string(), format!("http://{}/", server(&[500, 200])));
    let (code, lines, _) = run(&["tcp", &first, "http", &second, "--timeout", "60s"]);
    assert_eq!(code, Some(0));
    assert_eq!(lines.iter().filter(|line| line.contains(" is ready after ")).count(), 2, "{lines:?}");
    let missing = closed().to_string();
    let there = server(&[200]).to_string();
    let (code, lines, _) =
        run(&["tcp", &missing, "--timeout", "1s", "--on-timeout", "proceed", "--", "tcp", &there]);
    assert_eq!(code, Some(0), "{lines:?}");
    let place = |words: &str| lines.iter().position(|line| line.contains(words));
    let (ready, over) = (place(" is ready after "), place("Timed out after 1s: "));
    assert!(ready.is_some() && ready < over, "the second does not wait for the first: {lines:?}");
    let (code, lines, _) =
        run(&["tcp", &missing, "--timeout", "200ms", "--", "tcp", &missing, "--timeout", "1h"]);
    assert_eq!(code, Some(1), "one that is not there in time is enough");
    assert!(lines.last().unwrap().starts_with("Timed out after 200ms"), "{lines:?}");
}

#[test]
fn headers_come_from_the_environment_and_from_files_and_are_said_nowhere() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "from-a-file\n").unwrap();
    let from_file = format!("X-File={}", file.path().display());
    let mut command =
        waiter(&["http", &url, "--header-env", "Authorization=TOKEN", "--header-file", &from_file]);
    let child =
        command.env("TOKEN", "Bearer hunter2").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut tcp, _) = listener.accept().unwrap();
    let mut buffer = [0; 4096];
    let count = tcp.read(&mut buffer).unwrap();
    let request = String::from_utf8_lossy(&buffer[..count]).into_owned();
    assert!(request.contains("\r\nAuthorization: Bearer hunter2\r\nX-File: from-a-file\r\n"), "{request}");
    tcp.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let (code, lines, errors) = ended(child.wait_with_output().unwrap());
    assert_eq!(code, Some(0));
    assert!(!format!("{lines:?}{errors}").contains("hunter2"), "{lines:?}{errors}");
}

#[test]
fn sigterm_ends_it_at_once() {
    let target = closed().to_string();
    let mut child = start(&["tcp", &target, "--timeout", "1h"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(
        (status.code(), status.signal()),
        (Some(143), None),
        "ended by itself, as the first process must"
    );
}

#[test]
fn a_command_line_without_sense_ends_with_2_and_one_line() {
    for arguments in [&[][..], &["tcp"], &["tcp", "db"], &["http", "db"], &["tcp", "db:1", "--timeout", "60"]]
    {
        let (code, lines, errors) = run(arguments);
        assert_eq!((code, lines.len(), errors.lines().count()), (Some(2), 0, 1), "{arguments:?}: {errors}");
        assert!(errors.starts_with("linchpin-wait: ") && errors.contains("--help"), "{errors}");
    }
    let (code, lines, _) = run(&["--help"]);
    assert!(code == Some(0) && lines.len() > 10);
    assert_eq!(run(&["--version"]).1, [concat!("linchpin-wait ", env!("CARGO_PKG_VERSION"))]);
}
