//! HAProxy's runtime API: one connection and one line for each command, the answer up to the end of the connection.
//!
//! The socket has no status codes: a few texts and an empty answer are success, every other text is the error. Size and
//! time of an answer are bounded. No command is sent that has a second one in it.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use linchpin_consist::Trouble;
use linchpin_words::{limits, text};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
};

/// Where a HAProxy listens for commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system: `unix:/path`.
    Unix(PathBuf),
    /// Host and port: `tcp://host:port`.
    Tcp(String),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unix:"));
        if let Some(path) = path.filter(|path| path.starts_with('/')) {
            return Ok(Self::Unix(path.into()));
        }
        let host = text.strip_prefix("tcp://").and_then(|rest| Some((rest, rest.rsplit_once(':')?)));
        match host {
            Some((rest, (host, port)))
                if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) =>
            {
                Ok(Self::Tcp(rest.to_owned()))
            }
            _ => Err(format!("{} is not unix:/path or tcp://host:port", text::quote(text))),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

/// Sends a command and reads the whole answer.
pub(super) async fn talk(address: &Address, command: &str, patience: Duration) -> Result<String, Trouble> {
    let trouble = |why: &str| Trouble(format!("haproxy {address}: {why}"));
    // What separates commands; nothing that may be written into one has it.
    if command.contains([';', '\n', '\r', '\\', '<']) {
        return Err(trouble("a command with more than one command in it is not sent"));
    }
    let answer = async {
        match address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|_| "does not accept connections")?;
                exchange(stream, command).await
            }
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await.map_err(|_| "does not accept connections")?;
                exchange(stream, command).await
            }
        }
    };
    match tokio::time::timeout(patience, answer).await {
        Ok(answer) => answer.map_err(trouble),
        Err(_) => Err(trouble(&format!("no answer within {patience:?}"))),
    }
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    command: &str,
) -> Result<String, &'static str> {
    let sent = stream.write_all(format!("{command}\n").as_bytes()).await;
    sent.map_err(|_| "closed the connection before the command was sent")?;
    let mut bytes = Vec::new();
    let most = u64::try_from(limits::PROVIDER_ANSWER).unwrap_or(u64::MAX).saturating_add(1);
    let read = stream.take(most).read_to_end(&mut bytes).await;
    read.map_err(|_| "broke off in the middle of its answer")?;
    if bytes.len() > limits::PROVIDER_ANSWER {
        return Err("the answer is larger than any that is read");
    }
    String::from_utf8(bytes).map_err(|_| "the answer is no text")
}

/// What an answer to a command that changes something means.
pub(super) fn judge(answer: &str) -> Result<(), String> {
    let said = answer.trim();
    let fine = ["New server registered.", "Server deleted.", ""].contains(&said)
        || ["IP changed from", "port changed from", "no need to change"]
            .iter()
            .any(|text| said.starts_with(text));
    if fine { Ok(()) } else { Err(text::line(said)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_sockets_or_hosts_with_ports() {
        let read = |text: &str| text.parse::<Address>();
        assert_eq!(read("unix:/run/haproxy.sock"), Ok(Address::Unix("/run/haproxy.sock".into())));
        assert_eq!(read("unix:///run/haproxy.sock").unwrap().to_string(), "unix:/run/haproxy.sock");
        assert_eq!(read("tcp://10.0.0.1:9999"), Ok(Address::Tcp("10.0.0.1:9999".to_owned())));
        for wrong in
            ["", "unix:run", "tcp://h", "tcp://:1", "tcp://h:0", "tcp://h:99999", "/run/x", "http://h:1"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_known_texts_are_success() {
        for fine in [
            "\n",
            "",
            "New server registered.\n\n",
            "Server deleted.\n",
            "IP changed from '1' to '2' by 'x'\n",
        ] {
            assert_eq!(judge(fine), Ok(()), "{fine}");
        }
        for wrong in ["No such server.\n", "Permission denied\n", "Unknown command: 'add'\n", "\u{1b}[31mboo"]
        {
            let message = judge(wrong).unwrap_err();
            assert!(!message.is_empty() && !message.contains('\u{1b}'), "{message}");
        }
    }

    #[tokio::test]
    async fn a_command_with_a_second_one_in_it_is_not_sent() {
        for command in ["show stat; shutdown", "show\nstat", "a\\ b"] {
            let nowhere = Address::Unix("/nonexistent".into());
            let message = talk(&nowhere, command, Duration::from_secs(1)).await.unwrap_err().to_string();
            assert!(message.contains("more than one command"), "{message}");
        }
    }
}
