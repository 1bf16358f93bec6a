//! One hash for what is stored, SHA-256 in lower-case hexadecimal, and one for what is only compared, FNV-1a.
//!
//! The first is used where a hash outlives the process: definitions of steps, tokens, field managers. Never for secrets'
//! values. The second is quick and, unlike the standard library's, the same in every run.

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

/// FNV-1a, 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Fnv {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut hash = Self::default();
        std::hash::Hasher::write(&mut hash, bytes);
        hash.0
    }
}

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl std::hash::Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_sha256_that_everybody_knows() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(super::sha256_hex(b""), empty);
    }

    #[test]
    fn it_is_the_fnv_that_everybody_knows() {
        assert_eq!(super::Fnv::of(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
