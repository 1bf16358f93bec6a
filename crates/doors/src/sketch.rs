//! A look at a text before it is rendered.
//!
//! Most templates only fill values into a text whose shape can be seen. [`documents`] shows the objects of such a text
//! with holes where values go, so that rights and names are known early; [`json`] says whether a text can ever be
//! JSON. Where a template decides about the shape itself (`if`, `range`, …) there is no sketch, but mostly there are
//! [`outlines`]: what kinds of objects there may be, and where.

use std::ops::Range;

use linchpin_lang::template::parse_documents;
use serde_json::{Map, Value};

/// Takes the place of what is not known yet: a character that no manifest uses.
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

/// The documents of a text of YAML, with holes; none where that is not known.
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

/// What is known line by line of the objects that a text of YAML may give, whatever its template decides: kind, name
/// and namespace of each, with holes. More than there will be, where a template decides which.
pub(crate) fn outlines(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut outline = Map::new();
    let mut in_metadata = false;
    for line in text.lines().chain(std::iter::once("---")) {
        let bare = with_holes(line);
        let (key, value) = bare.split_once(':').unwrap_or((&bare, ""));
        let value = || Value::String(value.trim().trim_matches(['"', '\'']).to_owned());
        match key {
            _ if bare.starts_with("---") || key == "kind" && outline.contains_key("kind") => {
                // Two kinds without a separator between them are two branches of one template.
                let next = if key == "kind" { outline.clone() } else { Map::new() };
                if outline.contains_key("kind") {
                    found.push(Value::Object(std::mem::replace(&mut outline, next)));
                }
                if key == "kind" {
                    outline.insert(key.to_owned(), value());
                }
                in_metadata = false;
            }
            "kind" | "apiVersion" => {
                outline.insert(key.to_owned(), value());
                in_metadata = false;
            }
            "metadata" => in_metadata = true,
            "  name" | "  namespace" if in_metadata => {
                let metadata = outline.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
                metadata[key.trim()] = value();
            }
            _ if !bare.starts_with(' ') && !bare.is_empty() => in_metadata = false,
            _ => {}
        }
    }
    found
}

/// A line with holes for the values that go into it, and without the actions that give none.
fn with_holes(line: &str) -> String {
    let mut bare = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("{{") {
        bare.push_str(before);
        let end = end_of_action(after).unwrap_or(after.len());
        if gives_text(after[..end].trim_end_matches("}}")) {
            bare.push(HOLE);
        }
        rest = &after[end..];
    }
    bare.push_str(rest);
    bare.trim_end().to_owned()
}

/// Whether an action puts a value into the text, as opposed to deciding about its shape or saying nothing.
fn gives_text(action: &str) -> bool {
    let inner = action.trim_matches('-').trim();
    let word: String = inner.chars().take_while(|letter| letter.is_alphanumeric()).collect();
    let silent = inner.starts_with("/*") || inner.starts_with('$') && inner.contains('=');
    !silent && !DECIDING.contains(&word.as_str())
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
        if !gives_text(&text[start + 2..end - 2]) {
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
    fn what_objects_there_may_be_is_told_even_where_a_template_decides() {
        let text = "{{- $x := .Values.x }}\n{{ if .Values.a }}\napiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  namespace: {{ $x }}\n\
            data:\n  kind: no\n{{ end }}\n---\napiVersion: apps/v1\n{{ if .Values.b }}kind: Deployment{{ else }}\nkind: StatefulSet\n{{ end }}\n\
            metadata: \n  name: \"web\"\n";
        let found = outlines(text);
        let kinds: Vec<&str> = found.iter().filter_map(|one| one["kind"].as_str()).collect();
        assert_eq!(kinds, ["Secret", "Deployment", "StatefulSet"]);
        assert!(has_holes(found[0]["metadata"]["namespace"].as_str().expect("a text")));
        assert_eq!(found[2]["metadata"]["name"], "web");
        assert_eq!(found[2]["apiVersion"], "apps/v1");
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
        assert!(json(r"{ {{ .Values.pair }} }").is_none(), "what makes a whole entry cannot be judged");
    }
}
