//! Regular expressions with a known price.
//!
//! Matching takes time linear in the text, but the factor is the size of the compiled pattern: a few bytes such as
//! `[^a]{1000}` cost ten thousand times as much for each character as a plain word. So a pattern is bounded by what it
//! compiles to, and matching is paid for by that size and the text's length. `cel` and `compare` both use it.

use linchpin_words::limits;
use regex::{Regex, RegexBuilder};

/// The sizes that are distinguished, in KiB.
const SIZES: [usize; 4] = [4, 16, 64, limits::PATTERN_COMPILED >> 10];

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct PricedPattern {
    regex: Regex,
    /// The first of [`SIZES`] that it fits.
    size: usize,
}

impl PricedPattern {
    /// The pattern as it was written.
    pub(crate) fn source(&self) -> &str {
        self.regex.as_str()
    }

    /// Compiles a pattern; the error says on one line what is wrong with it.
    pub(crate) fn compile(pattern: &str) -> Result<Self, String> {
        if pattern.len() > limits::PATTERN {
            return Err(format!("it has {} bytes; {} are allowed", pattern.len(), limits::PATTERN));
        }
        for size in SIZES {
            match RegexBuilder::new(pattern).size_limit(size << 10).dfa_size_limit(size << 10).build() {
                Ok(regex) => return Ok(PricedPattern { regex, size }),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => {
                    // The last line says what is wrong, the ones before draw the pattern.
                    let text = error.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    return Err(last.strip_prefix("error: ").unwrap_or(last).chars().take(200).collect());
                }
            }
        }
        Err("it is too large once compiled; repeat less, and use [0-9A-Za-z_] for \\w".to_owned())
    }

    /// How large it is once compiled, about, in KiB: compiling it took as long as that.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// What it costs at most to look through a text, in steps as `cel` counts them.
    pub(crate) fn price(&self, text: &str) -> usize {
        1 + text.len().saturating_mul(self.size) / 4
    }

    /// Whether it is found in a text.
    pub(crate) fn is_found(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_follows_the_compiled_size_and_not_the_length_of_the_pattern() {
        let price = |pattern: &str| PricedPattern::compile(pattern).unwrap().price(&"x".repeat(1000));
        assert_eq!(price("^db:[0-9.]+$"), 1001);
        assert!(price(r"\w+") > 10 * price("^db:[0-9.]+$"));
        assert!(price("[^a]{99}z") > 10 * price("[^a]{9}z{9}"));
        assert!(PricedPattern::compile("[^a]{1000}z").unwrap_err().contains("too large once compiled"));
    }
}
