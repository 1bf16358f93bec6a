//! One hash for what is stored: SHA-256 in lower-case hexadecimal.
//!
//! Used where a hash outlives the process: definitions of steps, tokens, field managers. Never for secrets' values.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// SHA-256 of some bytes, as 64 hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_sha256_that_everybody_knows() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(super::sha256_hex(b""), empty);
    }
}
