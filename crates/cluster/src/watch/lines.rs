//! The lines of a watch's body. An idle stream holds no buffer; a line may be large, but not without bound.

use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::client::Body;

/// The longest line we take: an object is 1.5 MiB at most, twice that with its managed fields and quoting.
const LONGEST: usize = 16 << 20;

/// A body that is read line by line.
pub(super) struct Lines {
    body: Body,
    /// What has arrived and not been handed out.
    pending: Bytes,
    /// The beginning of a line whose end has not arrived.
    partial: Vec<u8>,
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        Self { body, pending: Bytes::new(), partial: Vec::new() }
    }

    /// The next line, without its end; none at the end of the body. Safe to cancel: nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line = self.pending.split_to(end + 1).slice(..end);
                if self.partial.is_empty() {
                    return Ok(Some(line));
                }
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(&line);
                return Ok(Some(Bytes::from(whole)));
            }
            self.partial.extend_from_slice(&std::mem::take(&mut self.pending));
            if self.partial.len() > LONGEST {
                return Err(format!("a line of more than {LONGEST} bytes"));
            }
            match self.body.frame().await {
                None if self.partial.is_empty() => return Ok(None),
                None => return Err("the stream broke off in the middle of a line".to_owned()),
                Some(Ok(frame)) => self.pending = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Err(error.to_string()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_told_apart_and_half_a_line_is_not_handed_out() {
        let mut lines = Lines::new(Body::from(b"one\ntwo\nhal".to_vec()));
        assert_eq!(lines.next().await.unwrap().unwrap(), "one");
        assert_eq!(lines.next().await.unwrap().unwrap(), "two");
        assert!(lines.next().await.is_err());
        let mut lines = Lines::new(Body::from(b"one\n".to_vec()));
        lines.next().await.unwrap();
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
