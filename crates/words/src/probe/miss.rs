//! Why a probe was not met: a reason for programs, words for people, and nothing that a server sent.

use std::fmt;

use crate::{Reason, egress::DeniedRange};

/// Why a probe was not met.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Miss {
    /// Nobody listens at that port.
    Refused,
    /// There was no answer in time.
    TimedOut(ProbePhase),
    /// The name leads nowhere.
    Name(NameFault),
    /// There is no way to the address, or the connection was broken off.
    Unreachable,
    /// The server did not prove who it is.
    Tls(TlsFault),
    /// The server answered with a status that does not count.
    Status(u16),
    /// What the server answered is not HTTP as we read it.
    Answer(AnswerFault),
    /// The rules forbid to connect there.
    DeniedRange(DeniedRange),
    /// The rules forbid this method.
    DeniedMethod(String),
}

/// How far a probe had come when its time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbePhase {
    /// The name was being resolved.
    Name,
    /// The connection was being made.
    Connect,
    /// TLS was being agreed on.
    Tls,
    /// The answer was awaited.
    Answer,
}

/// Why a name leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameFault {
    /// There is no such name, or it has no address.
    NotFound,
    /// The name servers gave no answer.
    ServerFailed,
}

/// What is wrong with a server's TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsFault {
    /// It does not speak TLS.
    NotTls,
    /// Its certificate is signed by nobody whom we trust.
    UnknownIssuer,
    /// Its certificate is for another name.
    WrongName,
    /// Its certificate is no longer valid, or not yet.
    NotValidNow,
    /// Its certificate cannot be used.
    BadCertificate,
    /// It broke the handshake off.
    Refused,
    /// The name that it is to be known by is none.
    BadName,
    /// What it is to be trusted by holds no certificate.
    NoRoots,
    /// Anything else.
    Failed,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnswerFault {
    /// It is not HTTP/1.
    NotHttp,
    /// Its head is too long.
    HeadTooLong,
    /// It ended before its head was complete.
    CutOff,
}

impl Miss {
    /// The word for programs.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Refused => Reason::Refused,
            Self::TimedOut(_) => Reason::TimedOut,
            Self::Name(_) => Reason::NameNotFound,
            Self::Unreachable => Reason::Unreachable,
            Self::Tls(_) => Reason::TlsFailed,
            Self::Status(_) => Reason::HttpStatus,
            Self::Answer(_) => Reason::BadAnswer,
            Self::DeniedRange(_) | Self::DeniedMethod(_) => Reason::ProbeDenied,
        }
    }

    /// Whether nothing was tried, so that nothing is known about what is probed.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::DeniedRange(_) | Self::DeniedMethod(_))
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::Refused => "connection refused",
            Self::TimedOut(ProbePhase::Name) => "no name server answered in time",
            Self::TimedOut(ProbePhase::Connect) => "connection timed out",
            Self::TimedOut(ProbePhase::Tls) => "the TLS handshake timed out",
            Self::TimedOut(ProbePhase::Answer) => "no answer in time",
            Self::Name(NameFault::NotFound) => "no such host",
            Self::Name(NameFault::ServerFailed) => "the name servers could not resolve the host",
            Self::Unreachable => "no route to the host, or the connection was broken off",
            Self::Tls(TlsFault::NotTls) => "the server does not speak TLS",
            Self::Tls(TlsFault::UnknownIssuer) => "the certificate is signed by an unknown authority",
            Self::Tls(TlsFault::WrongName) => "the certificate is for another name",
            Self::Tls(TlsFault::NotValidNow) => "the certificate has expired or is not valid yet",
            Self::Tls(TlsFault::BadCertificate) => "the certificate cannot be used",
            Self::Tls(TlsFault::Refused) => "the server refused the TLS handshake",
            Self::Tls(TlsFault::BadName) => "the server's name cannot be in a certificate",
            Self::Tls(TlsFault::NoRoots) => "the CA bundle holds no usable certificate",
            Self::Tls(TlsFault::Failed) => "the TLS handshake failed",
            Self::Status(status) => return write!(f, "HTTP {status}"),
            Self::Answer(AnswerFault::NotHttp) => "the answer is not HTTP/1",
            Self::Answer(AnswerFault::HeadTooLong) => "the head of the answer is longer than 16 KiB",
            Self::Answer(AnswerFault::CutOff) => "the connection ended before the answer was complete",
            Self::DeniedRange(denied) => {
                return write!(f, "{denied} is not probed; the operator's --probe-allow takes a range out");
            }
            Self::DeniedMethod(method) => {
                return write!(f, "the operator does not send {method}; --probe-methods allows it");
            }
        };
        f.write_str(words)
    }
}
