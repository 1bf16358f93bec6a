//! Texts that fit: how wide they are, how to shorten them, how to write them inside each format.

use linchpin_engine::graph::{Node, explain};
use linchpin_words::Text;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns a text takes in a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text, or its beginning and `mark`, in at most `columns`.
pub(crate) fn cut(text: &str, columns: usize, mark: &str) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mark = if width(mark) > columns { "" } else { mark };
    format!("{}{mark}", take(text.chars(), columns.saturating_sub(width(mark))))
}

/// The text, or its two ends around `mark`, in at most `columns`: a name's end says as much as its beginning.
pub(crate) fn cut_middle(text: &str, columns: usize, mark: &str) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mark = if width(mark) > columns { "" } else { mark };
    let room = columns.saturating_sub(width(mark));
    let tail: String = take(text.chars().rev(), room / 2);
    let tail: String = tail.chars().rev().collect();
    format!("{}{mark}{tail}", take(text.chars(), room - width(&tail)))
}

/// The text in lines of at most `columns`, broken between words where that can be.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.extend(pieces(word, columns)),
        }
    }
    lines
}

/// A word in pieces of at most `columns`; a character that is wider is put alone.
fn pieces(word: &str, columns: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut used = usize::MAX;
    for character in word.chars() {
        let wide = character.width().unwrap_or(0);
        match pieces.last_mut() {
            Some(piece) if used.saturating_add(wide) <= columns => {
                piece.push(character);
                used += wide;
            }
            _ => {
                pieces.push(character.to_string());
                used = wide;
            }
        }
    }
    pieces
}

fn take(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    characters
        .take_while(|character| {
            used += character.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

/// A node's name without its kind: `shop/web`, `shop/stack[crds]`, `db/migrate@east`.
pub(crate) fn name(node: &Node) -> String {
    let kind = node.object.kind.kind.len();
    explain::clean(node.to_string().get(kind..).unwrap_or_default())
}

/// A node's kind.
pub(crate) fn kind(node: &Node) -> String {
    explain::clean(&node.object.kind.kind)
}

/// Detail and reason in one line, as `explain` says it.
pub(crate) fn why(reason: &str, detail: &str) -> String {
    use linchpin_engine::graph::{Wait, WaitState};
    explain::why(&Wait::new(WaitState::InProgress, Text::new(reason)).detail(Text::new(detail)))
}

/// Text inside XML, in elements and in attributes.
pub(crate) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // XML 1.0 has no way to write these at all.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            character if character.is_control() => out.push(' '),
            character => out.push(character),
        }
    }
    out
}

/// Text inside a quoted DOT string.
pub(crate) fn dot(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            character if character.is_control() => out.push(' '),
            character => out.push(character),
        }
    }
    out
}

/// Text inside a quoted Mermaid label: everything that could mean something becomes an entity code.
pub(crate) fn mermaid(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | '/' | '.' | ',' | '-' | ':' => out.push(character),
            character if character.is_control() => out.push(' '),
            character => {
                out.push('#');
                out.push_str(&u32::from(character).to_string());
                out.push(';');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_to_the_columns_it_may_take() {
        assert_eq!(cut("reconciling", 6, "…"), "recon…");
        assert_eq!(cut("ready", 5, "…"), "ready");
        assert_eq!(cut_middle("shop/a-very-long-name", 11, "…"), "shop/…-name");
        assert_eq!(cut_middle("日本語日本語", 7, "…"), "日本…語");
        assert_eq!((cut("abc", 0, "…"), cut_middle("abc", 1, "…")), (String::new(), "…".to_owned()));
    }

    #[test]
    fn markup_in_texts_stays_text() {
        assert_eq!(xml("<a b=\"c\">&'\u{1}\u{ffff}"), "&lt;a b=&quot;c&quot;&gt;&amp;&apos; \u{fffd}");
        assert_eq!(dot("a\"b\\N\n"), "a\\\"b\\\\N ");
        assert_eq!(mermaid("a\"]<b>#9;"), "a#34;#93;#60;b#62;#35;9#59;");
    }
}
