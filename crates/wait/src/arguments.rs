//! The command line. Pure: what it names (variables, files) is read through [`ValueSources`].
//!
//! Targets are in groups that `--` separates; the options of a group hold for all targets in it. So one group with
//! several targets reads naturally (`tcp db:5432 http http://api/healthz --timeout 60s`), and targets with options of
//! their own are groups of their own. Values of headers are in no error: they may be secret.

use std::fmt;

use linchpin_probe::{Period, Probe, ProbeRequest, ProbeTarget, ProbeText, Tls, text};

pub(crate) const HELP: &str = "\
linchpin-wait waits until hosts answer

  linchpin-wait tcp HOST:PORT [OPTIONS]            until a connection is taken
  linchpin-wait http URL [OPTIONS]                 until a request is answered
  linchpin-wait tcp db:5432 http http://api/healthz --timeout 60s
  linchpin-wait tcp db:5432 -- http https://api/healthz --expect 200,204
                                                   several at once; options hold for the targets up to the next --

  --timeout TIME            how long to wait, for example 500ms, 30s, 1m30s (60s if not given)
  --on-timeout fail|proceed what then: exit 1, or exit 0 all the same
  --method METHOD           GET if not given
  --header 'NAME: VALUE'    a header; also --header-env NAME=VARIABLE and --header-file NAME=PATH
  --expect STATUS,...       the statuses that count; any 2xx if not given
  --ca PATH                 certificates to trust instead of the usual ones; also --ca-env VARIABLE
  --server-name NAME        the name in the server's certificate, if it is not the host's
  --insecure                take any certificate of an https server

exit codes: 0 ready, 1 timed out, 2 the command line makes no sense";

/// How long is waited if nothing is said.
const TIMEOUT: &str = "60s";
/// The longest wait.
const LONGEST: Period = Period::from_secs(24 * 3600);

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Version,
    Wait(Vec<WaitTarget>),
}

/// One thing to wait for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WaitTarget {
    /// As it was written.
    pub(crate) label: String,
    pub(crate) probe: Probe,
    pub(crate) timeout: Timeout,
    /// Whether to go on without it.
    pub(crate) proceed: bool,
}

/// How long to wait, shown as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timeout {
    pub(crate) length: Period,
    written: String,
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// Where values come from that are not written in the arguments.
pub(crate) struct ValueSources<'a> {
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) file: &'a dyn Fn(&str) -> Result<String, String>,
}

/// Reads the arguments; an error says what is wrong with which.
pub(crate) fn parse(arguments: &[String], sources: &ValueSources<'_>) -> Result<Command, String> {
    match arguments.first().map(String::as_str) {
        None => return Err("nothing to wait for".to_owned()),
        Some("-h" | "--help" | "help") => return Ok(Command::Help),
        Some("-V" | "--version") => return Ok(Command::Version),
        Some(_) => {}
    }
    let mut targets = Vec::new();
    for group in arguments.split(|argument| argument == "--") {
        targets.extend(Group::read(group, sources)?.targets()?);
    }
    Ok(Command::Wait(targets))
}

/// Targets with the options that hold for them.
#[derive(Default)]
struct Group {
    places: Vec<Named>,
    timeout: Option<Timeout>,
    proceed: bool,
    method: Option<String>,
    headers: Vec<(String, ProbeText)>,
    expected: Vec<u16>,
    roots: Option<ProbeText>,
    server_name: Option<String>,
    insecure: bool,
    /// The first option that only a request has, and the first that only TLS has.
    of_requests: Option<String>,
    of_tls: Option<String>,
}

/// A target without its options.
struct Named {
    label: String,
    place: ProbeTarget,
    /// What is asked there; none for a connection alone.
    http: Option<Http>,
}

struct Http {
    request: ProbeRequest,
    /// The host, if it is to be spoken to over TLS.
    secure: Option<String>,
}

impl Group {
    fn read(words: &[String], sources: &ValueSources<'_>) -> Result<Self, String> {
        let mut group = Self::default();
        let mut rest = words.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            let (name, attached) = match word.split_once('=').filter(|_| word.starts_with("--")) {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            // Without TLS there is nothing to check: a BootDependency may say it of any request.
            if name == "--insecure" && attached.is_none() {
                group.insecure = true;
                group.of_requests.get_or_insert_with(|| name.to_owned());
                continue;
            }
            let is_known = matches!(name, "tcp" | "http") || OPTIONS.contains(&name);
            if !is_known {
                return Err(format!("{} is neither tcp nor http nor an option", text::quote(word)));
            }
            let value = attached.or_else(|| rest.next()).ok_or_else(|| format!("{name} needs a value"))?;
            group.take(name, value, sources).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(group)
    }

    /// Takes a target or an option.
    fn take(&mut self, name: &str, value: &str, sources: &ValueSources<'_>) -> Result<(), String> {
        if REQUEST_OPTIONS.contains(&name) {
            self.of_requests.get_or_insert_with(|| name.to_owned());
        }
        if TLS_OPTIONS.contains(&name) {
            self.of_tls.get_or_insert_with(|| name.to_owned());
        }
        match name {
            "tcp" => self.places.push(tcp(value)?),
            "http" => self.places.push(http(value)?),
            "--timeout" => self.timeout = Some(timeout(value)?),
            "--on-timeout" => self.proceed = on_timeout(value)?,
            "--method" => self.method = Some(value.to_owned()),
            "--header" => {
                let (name, value) = value.split_once(':').ok_or("expected 'NAME: VALUE'")?;
                self.headers.push((name.to_owned(), ProbeText::literal(value.trim_start_matches(' '))));
            }
            "--header-env" => {
                let (name, variable) = value.split_once('=').ok_or("expected NAME=VARIABLE")?;
                self.headers.push((name.to_owned(), ProbeText::stored(&from_variable(variable, sources)?)));
            }
            "--header-file" => {
                let (name, path) = value.split_once('=').ok_or("expected NAME=PATH")?;
                self.headers.push((name.to_owned(), ProbeText::stored(&from_file(path, sources)?)));
            }
            "--expect" => {
                let status = |word: &str| {
                    word.trim().parse().map_err(|_| format!("{} is no status", text::quote(word)))
                };
                for word in value.split(',') {
                    self.expected.push(status(word)?);
                }
            }
            "--ca" => self.roots = Some(ProbeText::literal(from_file(value, sources)?)),
            "--ca-env" => self.roots = Some(ProbeText::literal(from_variable(value, sources)?)),
            "--server-name" => self.server_name = Some(value.to_owned()),
            _ => return Err("is no option".to_owned()),
        }
        Ok(())
    }

    /// The targets, each with the options that it can have.
    fn targets(self) -> Result<Vec<WaitTarget>, String> {
        if self.places.is_empty() {
            return Err("options without a target; name one with tcp HOST:PORT or http URL".to_owned());
        }
        let requests = || self.places.iter().filter_map(|named| named.http.as_ref());
        if let Some(option) = self.of_requests.as_ref().filter(|_| requests().next().is_none()) {
            return Err(format!("{option} is for http targets, and there is none"));
        }
        if let Some(option) = self.of_tls.as_ref().filter(|_| !requests().any(|http| http.secure.is_some())) {
            return Err(format!("{option} is for https, and there is no such target"));
        }
        let default = || Timeout { length: Period::from_secs(60), written: TIMEOUT.to_owned() };
        let timeout = self.timeout.clone().unwrap_or_else(default);
        let proceed = self.proceed;
        let made = self.places.iter().map(|Named { label, place, http }| {
            let request = http.as_ref().map(|http| self.request(http)).transpose();
            let request = request.map_err(|error| format!("{}: {error}", text::quote(label)))?;
            let probe = Probe { place: place.clone(), request };
            Ok(WaitTarget { label: text::line(label), probe, timeout: timeout.clone(), proceed })
        });
        made.collect()
    }

    fn request(&self, http: &Http) -> Result<ProbeRequest, linchpin_probe::ProbeError> {
        let mut request = http.request.clone().expect(self.expected.iter().copied())?;
        if let Some(method) = &self.method {
            request = request.method(method)?;
        }
        for (name, value) in &self.headers {
            request = request.header(name, value.clone())?;
        }
        let Some(host) = &http.secure else { return Ok(request) };
        let name = self.server_name.as_ref().unwrap_or(host).clone();
        Ok(request.over(Tls { name, insecure: self.insecure, roots: self.roots.clone() }))
    }
}

const REQUEST_OPTIONS: [&str; 5] = ["--method", "--header", "--header-env", "--header-file", "--expect"];
const TLS_OPTIONS: [&str; 3] = ["--ca", "--ca-env", "--server-name"];
const OPTIONS: [&str; 10] = [
    "--timeout",
    "--on-timeout",
    "--method",
    "--header",
    "--header-env",
    "--header-file",
    "--expect",
    "--ca",
    "--ca-env",
    "--server-name",
];

fn tcp(text: &str) -> Result<Named, String> {
    let (host, port) = text.rsplit_once(':').ok_or_else(|| expected_host(text))?;
    let place = place(host, port).ok_or_else(|| expected_host(text))?;
    Ok(Named { label: text.to_owned(), place, http: None })
}

fn expected_host(given: &str) -> String {
    format!("{} is not HOST:PORT, for example db:5432 or [fd00::1]:5432", text::quote(given))
}

/// A host and its port. An IPv6 address must be in brackets, or it is not clear where the port begins.
fn place(host: &str, port: &str) -> Option<ProbeTarget> {
    let port = port.parse().ok().filter(|port: &u16| *port > 0)?;
    if host.contains(':') && !host.starts_with('[') {
        return None;
    }
    ProbeTarget::host(host, port).ok()
}

fn http(url: &str) -> Result<Named, String> {
    let wrong = || format!("{} is not a URL such as http://api:8080/healthz", text::quote(url));
    let (secure, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return Err(wrong()),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let after_brackets = authority.find(']').unwrap_or(0);
    let (host, port) = match authority.get(after_brackets..).and_then(|tail| tail.rfind(':')) {
        Some(at) => authority.split_at(after_brackets + at),
        None => (authority, if secure { ":443" } else { ":80" }),
    };
    let place = place(host, port.trim_start_matches(':')).ok_or_else(wrong)?;
    let request = ProbeRequest::get(authority, &path).map_err(|error| error.to_string())?;
    let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let http = Some(Http { request, secure: secure.then_some(name) });
    Ok(Named { label: url.to_owned(), place, http })
}

fn timeout(written: &str) -> Result<Timeout, String> {
    let length = Period::parse(written).map_err(|error| error.to_string())?;
    if length.is_zero() || length > LONGEST {
        return Err(format!("{} is not more than 0 and at most 24h", text::quote(written)));
    }
    Ok(Timeout { length, written: written.to_owned() })
}

fn on_timeout(word: &str) -> Result<bool, String> {
    match word {
        "fail" => Ok(false),
        "proceed" => Ok(true),
        _ => Err(format!("{} is neither fail nor proceed", text::quote(word))),
    }
}

fn from_variable(name: &str, sources: &ValueSources<'_>) -> Result<String, String> {
    (sources.variable)(name).ok_or_else(|| format!("there is no environment variable {}", text::quote(name)))
}

fn from_file(path: &str, sources: &ValueSources<'_>) -> Result<String, String> {
    (sources.file)(path).map_err(|error| format!("reading {}: {error}", text::quote(path)))
}

#[cfg(test)]
mod tests;
