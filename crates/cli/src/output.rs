//! What every command prints with: notes on standard error, texts that no terminal obeys, words that no shell takes apart.
//!
//! Answers are for standard output alone; whoever stops reading either of them is no failure. Parts of what is printed
//! come from files and from servers, where anybody may have written them.

use std::{
    env,
    io::{self, IsTerminal as _, Write as _},
};

use anyhow::Error;
use clap::ValueEnum;
use linchpin_words::text::line_of;

use crate::cli::program;

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    /// Whether it is, where standard output goes.
    pub(crate) fn is_on(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                let dumb = env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
                io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none() && !dumb
            }
        }
    }
}

/// A note, a line on standard error.
pub(crate) fn note(text: &str) {
    // Where nobody listens there is nobody to report it to.
    let _ = writeln!(io::stderr(), "{}", line_of(text, usize::MAX));
}

/// A note that says which program it is from.
pub(crate) fn note_of_program(text: &str) {
    note(&format!("{}: {text}", program()));
}

/// An error with all that led to it, each said once; of what an API server refused, its own sentence.
pub(crate) fn words_of(error: &Error) -> String {
    let mut words: Vec<String> = Vec::new();
    for cause in error.chain() {
        if let Some(kube::Error::Api(status)) = cause.downcast_ref()
            && !status.message.is_empty()
        {
            // What is behind it says the same in other words.
            words.push(status.message.clone());
            break;
        }
        let said = cause.to_string();
        let said = said.strip_prefix("ServiceError: ").unwrap_or(&said);
        if !words.last().is_some_and(|before| before.ends_with(said)) {
            words.push(said.to_owned());
        }
    }
    words.join(": ")
}

/// A text of several lines with nothing in it that changes how a terminal reads the rest.
pub(crate) fn harmless(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| line_of(line, usize::MAX)).collect();
    lines.join("\n")
}

/// A word as shells take it: quoted where it could be taken for anything else.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@,".contains(letter);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { shell_quoted(word) }
}

/// A word in quotes, as shells take it.
pub(crate) fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_what_terminals_obey_is_shown() {
        assert_eq!(harmless("a\n  b\u{1b}[31m\r\n\u{202e}c\n"), "a\n  b\\u{1b}[31m\\r\n\\u{202e}c\n");
    }

    #[test]
    fn what_several_causes_say_is_said_once() {
        let refused = || io::Error::other("cannot connect to https://a/: refused");
        let lost = Error::from(kube::Error::Service(refused().into())).context("reading syncs");
        assert_eq!(words_of(&lost), "reading syncs: cannot connect to https://a/: refused");
        let status: kube::core::Status =
            serde_json::from_value(serde_json::json!({"message": "no", "code": 403})).unwrap();
        let denied = Error::from(kube::Error::Api(status.into())).context("reading syncs");
        assert_eq!(words_of(&denied), "reading syncs: no");
    }

    #[test]
    fn a_word_is_one_word_for_a_shell() {
        for (word, shown) in [
            ("web-1.v2", "web-1.v2"),
            ("linchpin.dev/proceed=gate@1", "linchpin.dev/proceed=gate@1"),
            ("", "''"),
            ("x; rm -rf ~", "'x; rm -rf ~'"),
            ("$(evil)", "'$(evil)'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(shell_word(word), shown);
        }
    }
}
