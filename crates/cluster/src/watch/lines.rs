//! The lines of a watch's body. An idle stream holds no buffer; a line may be large, but not without bound.

use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::client::Body;
use linchpin_words::limits;

/// A body that is read line by line.
pub(super) struct Lines {
    body: Body,
    /// What has arrived and not been handed out.
    pending: Bytes,
    /// The beginning of a line whose end has not arrived.
    partial: Vec<u8>,
    /// The longest line that is taken.
    limit: usize,
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        Self { body, pending: Bytes::new(), partial: Vec::new(), limit: limits::WATCH_LINE }
    }

    fn too_long(&self) -> String {
        format!("a line of more than {} bytes", self.limit)
    }

    /// The next line, without its end; none at the end of the body. Safe to cancel: nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                if self.partial.len() + end > self.limit {
                    return Err(self.too_long());
                }
                let line = self.pending.split_to(end + 1).slice(..end);
                if self.partial.is_empty() {
                    return Ok(Some(line));
                }
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(&line);
                return Ok(Some(Bytes::from(whole)));
            }
            self.partial.extend_from_slice(&std::mem::take(&mut self.pending));
            if self.partial.len() > self.limit {
                return Err(self.too_long());
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
    async fn a_line_has_a_limit() {
        let limit = 10_000;
        let lines = |length: usize, end: &[u8]| {
            let text = [vec![b'x'; length].as_slice(), end].concat();
            Lines { limit, ..Lines::new(Body::from(text)) }
        };
        assert_eq!(lines(limit, b"\n").next().await.unwrap().unwrap().len(), limit);
        for over in [limit + 1, limit * 100] {
            assert!(lines(over, b"\n").next().await.is_err());
            let error = lines(over, b"").next().await.unwrap_err();
            assert!(error.contains("more than"), "a line without an end is given up: {error}");
        }
        assert_eq!(Lines::new(Body::empty()).limit, limits::WATCH_LINE);
    }

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
