//! One HTTP/1 exchange: the request goes out, the head of the answer comes in, the connection is dropped.

use std::io::{self, Read, Write};

use linchpin_words::{
    limits,
    probe::{AnswerFault, Miss, ProbePhase},
};

use crate::stream::is_timeout;

/// Sends `request` and returns the status of the answer. Interim answers are passed over unless they are wanted.
pub(crate) fn exchange(
    mut line: impl Read + Write,
    request: &[u8],
    wanted: impl Fn(u16) -> bool,
) -> Result<u16, Miss> {
    // A server may answer, and close, before it has read the whole request: only the answer decides.
    let sent = line.write_all(request).and_then(|()| line.flush());
    if let Err(error) = &sent
        && is_timeout(error)
    {
        return Err(Miss::TimedOut(ProbePhase::Answer));
    }
    let mut head = Head::default();
    let mut buffer = [0; 2048];
    loop {
        while let Some(status) = head.status()? {
            if status / 100 != 1 || status == 101 || wanted(status) {
                return Ok(status);
            }
            head.pass_over();
        }
        let room = limits::PROBE_HEAD.saturating_sub(head.read.len()).min(buffer.len());
        let part = buffer.get_mut(..room).filter(|part| !part.is_empty());
        let Some(part) = part else { return Err(Miss::Answer(AnswerFault::HeadTooLong)) };
        match line.read(part) {
            Ok(0) => return Err(Miss::Answer(AnswerFault::CutOff)),
            Ok(count) => head.read.extend_from_slice(part.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_timeout(&error) => return Err(Miss::TimedOut(ProbePhase::Answer)),
            Err(_) => return Err(Miss::Answer(AnswerFault::CutOff)),
        }
    }
}

/// What was read so far. No byte is looked at twice, however it arrives.
#[derive(Default)]
struct Head {
    read: Vec<u8>,
    /// Where the line begins that is not complete yet, and how far its end was looked for.
    line: usize,
    searched: usize,
}

impl Head {
    /// The status of the first head, if it is complete; an error as soon as it cannot be one.
    fn status(&mut self) -> Result<Option<u16>, Miss> {
        const BEGIN: &[u8] = b"HTTP/1.";
        if self.read.iter().zip(BEGIN).any(|(found, expected)| found != expected) {
            return Err(Miss::Answer(AnswerFault::NotHttp));
        }
        if !self.is_complete() {
            return Ok(None);
        }
        // "HTTP/1.1 200 OK"
        match self.read.as_slice() {
            [_, _, _, _, _, _, _, minor, b' ', a, b, c, after, ..]
                if minor.is_ascii_digit()
                    && [a, b, c].iter().all(|digit| digit.is_ascii_digit())
                    && b" \r\n".contains(after) =>
            {
                Ok(Some([a, b, c].iter().fold(0, |status, digit| status * 10 + u16::from(**digit - b'0'))))
            }
            _ => Err(Miss::Answer(AnswerFault::NotHttp)),
        }
    }

    /// Whether the empty line has come that ends a head. Lines may end without a carriage return.
    fn is_complete(&mut self) -> bool {
        while let Some(offset) = self.read.iter().skip(self.searched).position(|byte| *byte == b'\n') {
            let end = self.searched + offset;
            let line = self.read.get(self.line..end).unwrap_or_default();
            let is_empty = line.is_empty() || line == b"\r";
            (self.line, self.searched) = (end + 1, end + 1);
            if is_empty {
                return true;
            }
        }
        self.searched = self.read.len();
        false
    }

    /// Goes on with what came behind a head that is complete.
    fn pass_over(&mut self) {
        self.read.drain(..self.line.min(self.read.len()));
        (self.line, self.searched) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judge(answer: &[u8]) -> Result<u16, Miss> {
        struct Line<'a>(&'a [u8]);
        impl Read for Line<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                // A byte at a time: heads end wherever the network cuts them.
                let count = self.0.len().min(buffer.len()).min(1);
                self.0.read(&mut buffer[..count])
            }
        }
        impl Write for Line<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        exchange(Line(answer), b"GET / HTTP/1.1\r\n\r\n", |status| (200..300).contains(&status))
    }

    #[test]
    fn a_status_is_read_from_a_complete_head() {
        let good: [(&[u8], u16); 6] = [
            (b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", 200),
            (b"HTTP/1.0 503\r\n\r\n", 503),
            (b"HTTP/1.1 204 \n\n", 204),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 200),
            (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 N\r\n\r\n", 404),
            (b"HTTP/1.1 101 Switching\r\n\r\n", 101),
        ];
        for (answer, status) in good {
            assert_eq!(judge(answer), Ok(status), "{}", String::from_utf8_lossy(answer));
        }
        let bad: [(&[u8], AnswerFault); 8] = [
            (b"", AnswerFault::CutOff),
            (b"HTTP/1.1 200 OK\r\nA: b\r\n", AnswerFault::CutOff),
            (b"SSH-2.0-OpenSSH_9.2\r\n", AnswerFault::NotHttp),
            (b"HTTP/2 200\r\n\r\n", AnswerFault::NotHttp),
            (b"HTTP/1.1 20\r\n\r\n", AnswerFault::NotHttp),
            (b"HTTP/1.1 2000 OK\r\n\r\n", AnswerFault::NotHttp),
            (b"HTTP/1.1  200 OK\r\n\r\n", AnswerFault::NotHttp),
            (b"\r\n\r\n", AnswerFault::NotHttp),
        ];
        for (answer, fault) in bad {
            assert_eq!(judge(answer), Err(Miss::Answer(fault)), "{}", String::from_utf8_lossy(answer));
        }
    }

    #[test]
    fn a_head_has_a_limit() {
        let head = |length: usize| {
            let mut head = b"HTTP/1.1 200 OK\r\nA: ".to_vec();
            head.resize(length - 4, b'x');
            head.extend(b"\r\n\r\n");
            head
        };
        assert_eq!(judge(&head(limits::PROBE_HEAD)), Ok(200));
        for length in [limits::PROBE_HEAD + 1, limits::PROBE_HEAD * 100] {
            assert_eq!(judge(&head(length)), Err(Miss::Answer(AnswerFault::HeadTooLong)));
        }
        assert_eq!(
            judge(&b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100)),
            Err(Miss::Answer(AnswerFault::CutOff))
        );
    }

    proptest! {
        #[test]
        fn no_answer_is_more_than_an_error(answer in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = judge(&answer);
            let _ = judge(&[b"HTTP/1.1 ".as_slice(), &answer].concat());
        }
    }
}
