//! A look at a text before it is rendered.
//!
//! Most templates only fill values into a text whose shape can be seen. [`documents`] shows the objects of such a text
//! with holes where values go, so that rights and names are known early; [`json`] tells whether a text can ever be
//! JSON. Where a template decides about the shape itself (`if`, `range`, …) there is no sketch, and nothing is said.

use std::ops::Range;

use linchpin_lang::template::parse_documents;
use serde_json::Value;

/// Stands for what is not known yet: a character that no manifest uses.
const HOLE: char = '\u{E000}';

/// The words that make an action decide about the shape of the text.
const DECIDING: [&str; 10] =
    ["if", "else", "end", "range", "with", "define", "block", "template", "break", "continue"];

/// Whether a text has templates in it.
pub(crate) fn is_template(text: &str) -> bool {
    text.contains("{{")
}

/// Whether a text of a sketch, or of an object as written, is not fully known.
pub(crate) fn has_holes(text: &str) -> bool {
    text.contains(HOLE) || is_template(text)
}

/// A text with its holes shown as `*`.
pub(crate) fn readable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            HOLE if shown.ends_with('*') => {}
            HOLE => shown.push('*'),
            other => shown.push(other),
        }
    }
    shown
}

/// The documents of a text of YAML, with holes; none where that cannot be told.
pub(crate) fn documents(text: &str) -> Option<Vec<Value>> {
    let mut flat = String::with_capacity(text.len());
    let mut end = 0;
    for action in actions(text)? {
        flat.push_str(&text[end..action.start]);
        flat.push(HOLE);
        end = action.end;
    }
    flat.push_str(&text[end..]);
    parse_documents("", &flat).ok()
}

/// A text of JSON with something in every hole, of the same length; none where holes are not values or parts of texts,
/// so that what is around them says nothing.
pub(crate) fn json(text: &str) -> Option<String> {
    let holes = actions(text)?;
    let mut flat = String::with_capacity(text.len());
    let (mut in_text, mut escaped, mut last) = (false, false, ' ');
    let mut end = 0;
    let close = text.len()..text.len();
    for hole in holes.iter().chain(std::iter::once(&close)) {
        for character in text[end..hole.start].chars() {
            match character {
                _ if escaped => escaped = false,
                '\\' if in_text => escaped = true,
                '"' => in_text = !in_text,
                _ => {}
            }
            if !character.is_whitespace() {
                last = character;
            }
            flat.push(character);
        }
        if hole.is_empty() {
            break;
        }
        let filler = match (in_text, last) {
            (true, _) => 'x',
            (false, ':' | '[') => '1',
            (false, _) => return None,
        };
        flat.extend(std::iter::repeat_n(filler, hole.len()));
        last = filler;
        end = hole.end;
    }
    Some(flat)
}

/// Where the actions of a template are; none where one of them decides about the shape of the text.
fn actions(text: &str) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("{{").map(|offset| from + offset) {
        let end = start + 2 + end_of_action(&text[start + 2..])?;
        let inner = text[start + 2..end - 2].trim_start_matches('-').trim();
        let word: String = inner.chars().take_while(|letter| letter.is_alphanumeric()).collect();
        let silent = inner.starts_with("/*") || inner.starts_with('$') && inner.contains('=');
        if silent || DECIDING.contains(&word.as_str()) {
            return None;
        }
        found.push(start..end);
        from = end;
    }
    Some(found)
}

/// The length of an action's text up to and with its `}}`, past texts that hold one.
fn end_of_action(text: &str) -> Option<usize> {
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for (offset, character) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some('"' | '\'') if character == '\\' => escaped = true,
            Some(open) if character == open => quote = None,
            None if matches!(character, '"' | '\'' | '`') => quote = Some(character),
            None if text[offset..].starts_with("}}") => return Some(offset + 2),
            Some(_) | None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objects_of_a_template_are_seen_before_it_is_rendered() {
        let text =
            "kind: Secret\nmetadata:\n  name: a\n  namespace: {{ .Dependencies.x.Name }}\n---\nkind: B\n";
        let found = documents(text).expect("a sketch");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0]["metadata"]["name"], "a");
        assert!(has_holes(found[0]["metadata"]["namespace"].as_str().expect("a text")));
    }

    #[test]
    fn a_template_that_decides_about_its_shape_has_no_sketch() {
        assert!(documents("{{ if .Values.a }}kind: A{{ end }}").is_none());
        assert!(documents("{{ $a := 1 }}kind: A").is_none());
        assert!(documents("{{- range .Values.a }}kind: A{{ end }}").is_none());
        assert!(documents("{{/* nothing */}}kind: A").is_none());
    }

    #[test]
    fn an_action_may_hold_braces_in_a_text() {
        assert_eq!(json(r#"{"a":"{{ printf "}}" }}"}"#).as_deref(), Some(r#"{"a":"xxxxxxxxxxxxxxxxx"}"#));
    }

    #[test]
    fn holes_keep_their_length_so_that_positions_stay_true() {
        let text = r#"{"a":{{ .Values.n }},"b":"{{ .Now }}"}"#;
        let flat = json(text).expect("a sketch");
        assert_eq!(flat.len(), text.len());
        assert!(serde_json::from_str::<Value>(&flat).is_ok());
        assert!(json(r"{ {{ .Values.pair }} }").is_none(), "what stands for a whole entry cannot be judged");
    }
}
