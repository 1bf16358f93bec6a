//! Carries out probes: is somebody there, and does he answer as he should?
//!
//! Blocking, on std and rustls, without an async runtime: the operator runs probes on a few threads of its own, the waiter
//! is nothing else. Both see the same, since both use this. What is promised whatever the other side does:
//!
//! * **An end.** A probe returns by its deadline: names are resolved here (`names.rs`), because the system's resolver has no
//!   deadline; every connect, read and write gets what time is left.
//! * **Small.** Of an answer the head is read, up to 16 KiB, and never the body. Redirects are answers and not followed.
//! * **Only where it may.** A name is resolved once, every address is judged by the [`Rules`], and only an address that was
//!   judged is connected to.
//! * **Discreet.** A [`Miss`] holds nothing that a server sent, and no value of a header.

mod dial;
mod head;
mod names;
mod stream;
mod tls;

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    time::{Duration, Instant},
};

pub use linchpin_words::{
    Period,
    duration::DurationError,
    egress::Egress,
    limits,
    probe::{
        AnswerFault, Miss, NameFault, Probe, ProbeError, ProbePhase, ProbeRequest, ProbeTarget, ProbeText,
        Tls, TlsFault,
    },
    text,
};

pub use self::names::NameResolver;
use self::stream::Stream;

/// What every request says it comes from.
const AGENT: &str = concat!("linchpin-probe/", env!("CARGO_PKG_VERSION"));

/// How long a probe may take in all.
pub const LONGEST: Duration = Duration::from_millis(limits::PROBE_MILLISECONDS);

/// What may be done for a text that a user wrote.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Which addresses may be connected to; none means all.
    pub egress: Option<Egress>,
    /// Which methods may be sent; none means all.
    pub methods: Option<BTreeSet<String>>,
}

/// Carries out a probe: it is met, or this is why not. Returns by `deadline`.
pub fn run(probe: &Probe, rules: &Rules, names: &NameResolver, deadline: Instant) -> Result<(), Miss> {
    if let (Some(request), Some(allowed)) = (&probe.request, &rules.methods)
        && !allowed.contains(request.verb())
    {
        return Err(Miss::DeniedMethod(request.verb().to_owned()));
    }
    match &probe.place {
        ProbeTarget::Host { host, port } => {
            let found = names.resolve(host, deadline)?;
            let addresses: Vec<SocketAddr> =
                found.into_iter().map(|address| SocketAddr::new(address, *port)).collect();
            let addresses = dial::allowed(&addresses, rules)?;
            ask(dial::connect(&addresses, deadline)?, probe.request.as_ref())
        }
        ProbeTarget::Addresses(addresses) => one_of(addresses, rules, deadline, |address, until| {
            ask(dial::connect(&[address], until)?, probe.request.as_ref())
        }),
    }
}

/// Tries address after address, each with its share of the time, until one is good.
fn one_of(
    addresses: &[SocketAddr],
    rules: &Rules,
    deadline: Instant,
    mut attempt: impl FnMut(SocketAddr, Instant) -> Result<(), Miss>,
) -> Result<(), Miss> {
    let addresses = dial::allowed(addresses, rules)?;
    let mut missed = Miss::Unreachable;
    for (index, address) in addresses.iter().enumerate() {
        match attempt(*address, dial::share(deadline, addresses.len() - index)) {
            Ok(()) => return Ok(()),
            Err(miss) => missed = miss,
        }
    }
    Err(missed)
}

/// Sends the request over a connection that was made, and judges the answer.
fn ask(line: Stream, request: Option<&ProbeRequest>) -> Result<(), Miss> {
    let Some(request) = request else { return Ok(()) };
    let wire = request.wire(AGENT);
    let status = match request.tls() {
        None => head::exchange(line, &wire, |status| request.accepts(status))?,
        Some(tls) => head::exchange(tls::agree(line, tls)?, &wire, |status| request.accepts(status))?,
    };
    if request.accepts(status) { Ok(()) } else { Err(Miss::Status(status)) }
}
