//! SHA-256 digests as `sha256:<64 hexadecimal digits>`: what content is called, and what it is compared with.

use std::fmt;

use linchpin_words::{Reason, hash::sha256_hex, text::quote};

use crate::Problem;

/// The digest of some content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

impl Digest {
    const ALGORITHM: &str = "sha256:";

    /// Reads a digest; only SHA-256 is known.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(Self::ALGORITHM)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (digits.len() == 64 && digits.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("{}{}", Self::ALGORITHM, sha256_hex(bytes)))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Refuses `bytes` that have another digest.
    pub fn check(&self, bytes: &[u8], what: &str) -> Result<(), Problem> {
        let found = Self::of(bytes);
        if found == *self {
            return Ok(());
        }
        let message = format!("{what} has the digest {found} and {} is asked for", quote(&self.0));
        Err(Problem::new(Reason::DigestMismatch, message))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_lower_case_sha256_is_a_digest() {
        let digits = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::parse(&format!("sha256:{digits}")), Some(Digest::of(b"")));
        let wrong = [
            digits.to_owned(),
            format!("sha256:{}", &digits[1..]),
            format!("sha256:{digits}0"),
            format!("sha256:{}", digits.to_uppercase()),
            format!("sha512:{digits}"),
            "sha256:".to_owned(),
            String::new(),
        ];
        for text in wrong {
            assert_eq!(Digest::parse(&text), None, "{text}");
        }
    }

    #[test]
    fn other_content_is_refused() {
        let digest = Digest::of(b"a");
        assert!(digest.check(b"a", "it").is_ok());
        assert_eq!(digest.check(b"b", "it").unwrap_err().reason, Reason::DigestMismatch);
    }
}
