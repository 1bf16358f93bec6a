//! The chart's values from one commented file: `values.schema.json` and `docs/values.md` are made from it.
//!
//! A comment above a key describes it. `# @…` lines add what a YAML value cannot say: `@enum a b`, `@minimum n`,
//! `@maximum n`, `@items SCHEMA` of a list, `@values SCHEMA` of a map with keys of the user's own, `@fields SCHEMAS` of one that
//! is given as a whole and has these fields alone.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// One value, or a map of them.
#[derive(Debug, Clone)]
pub struct Field {
    /// The path, with dots.
    pub path: String,
    /// What is above it.
    pub about: String,
    /// Lines with `@`.
    marks: Vec<(String, String)>,
    /// The default.
    pub default: Value,
}

impl Field {
    fn mark(&self, name: &str) -> Option<&str> {
        self.marks.iter().find(|(mark, _)| mark == name).map(|(_, text)| text.as_str())
    }

    /// Whether its keys are fields of their own.
    fn has_fields(&self) -> bool {
        self.default.as_object().is_some_and(|fields| !fields.is_empty())
            && self.mark("fields").is_none()
            && self.mark("values").is_none()
    }

    fn schema(&self) -> Value {
        let mut schema = match &self.default {
            Value::Bool(_) => json!({"type": "boolean"}),
            Value::Number(_) => json!({"type": "integer"}),
            Value::String(_) => json!({"type": "string"}),
            Value::Array(_) => json!({"type": "array"}),
            _ => json!({"type": "object"}),
        };
        if !self.about.is_empty() {
            schema["description"] = json!(self.about);
        }
        let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        for (mark, text) in &self.marks {
            match mark.as_str() {
                "enum" => schema["enum"] = json!(text.split_whitespace().collect::<Vec<_>>()),
                "minimum" | "maximum" => schema[mark] = parsed(text),
                "items" => schema["items"] = parsed(text),
                "values" => schema["additionalProperties"] = parsed(text),
                "fields" => {
                    schema["properties"] = parsed(text);
                    schema["additionalProperties"] = json!(false);
                }
                other => panic!("values.yaml: {}: @{other} is not known", self.path),
            }
        }
        schema
    }
}

/// The fields of a values file, in its order.
pub fn fields(text: &str) -> Vec<Field> {
    let all: Value = serde_saphyr::from_str(text).unwrap();
    let mut found: Vec<Field> = Vec::new();
    let mut open: Vec<(usize, String)> = Vec::new();
    let (mut about, mut marks) = (Vec::new(), Vec::new());
    let mut hidden: Option<usize> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if line.is_empty() {
            (about, marks) = (Vec::new(), Vec::new());
        } else if let Some(mark) = line.strip_prefix("# @") {
            let (mark, text) = mark.split_once(' ').unwrap_or((mark, ""));
            marks.push((mark.to_owned(), text.to_owned()));
        } else if let Some(comment) = line.strip_prefix("# ") {
            about.push(comment.to_owned());
        } else if let Some((key, _)) = line.split_once(':') {
            if hidden.is_some_and(|level| indent > level) {
                continue;
            }
            open.retain(|(level, _)| *level < indent);
            let mut path: Vec<&str> = open.iter().map(|(_, key)| key.as_str()).collect();
            path.push(key);
            let default = path.iter().fold(&all, |value, key| &value[*key]).clone();
            let field = Field {
                path: path.join("."),
                about: std::mem::take(&mut about).join(" "),
                marks: std::mem::take(&mut marks),
                default,
            };
            hidden = (!field.has_fields()).then_some(indent);
            open.push((indent, key.to_owned()));
            found.push(field);
        }
    }
    found
}

/// `values.schema.json`: nothing is allowed that is not in the file.
pub fn schema(fields: &[Field]) -> Value {
    let mut root = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "additionalProperties": false, "properties": {"global": {"type": "object", "description": "Helm's own."}}});
    for field in fields {
        let mut schema = field.schema();
        if field.has_fields() {
            schema["additionalProperties"] = json!(false);
            schema["properties"] = Value::Object(Map::new());
        }
        let mut place = &mut root;
        let keys: Vec<&str> = field.path.split('.').collect();
        for key in &keys[..keys.len() - 1] {
            place = &mut place["properties"][*key];
        }
        place["properties"][keys[keys.len() - 1]] = schema;
    }
    root
}

/// `docs/values.md`.
pub fn page(fields: &[Field]) -> String {
    let mut out = "\
# The chart's values

Written from `charts/linchpin/values.yaml`; `make docs` writes it, a test compares. A value that is not listed here is
refused, so a misspelt one is an error and not a default.

| value | default | |
|---|---|---|
"
    .to_owned();
    for field in fields.iter().filter(|field| !field.has_fields()) {
        let default = match &field.default {
            Value::String(text) if text.is_empty() => String::new(),
            Value::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        let words = field
            .mark("enum")
            .map(|words| format!(" One of `{}`.", words.split_whitespace().collect::<Vec<_>>().join("`, `")));
        let about = format!("{}{}", field.about, words.unwrap_or_default()).replace('|', "\\|");
        let _ = writeln!(out, "| `{}` | {default} | {about} |", field.path);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
# What is outside.
outer:
  # How many.
  # @minimum 1
  count: 3
  # Whatever.
  # @fields {\"a\": {\"type\": \"string\"}, \"c\": {}}
  open:
    a: b

# Words.
# @enum on off
mode: \"off\"
";

    #[test]
    fn comments_describe_and_marks_restrict() {
        let fields = fields(SAMPLE);
        let paths: Vec<&str> = fields.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, ["outer", "outer.count", "outer.open", "mode"]);
        let schema = schema(&fields);
        let outer = &schema["properties"]["outer"];
        assert_eq!(outer["additionalProperties"], false);
        assert_eq!(
            outer["properties"]["count"],
            json!({"type": "integer", "description": "How many.", "minimum": 1})
        );
        let open = &outer["properties"]["open"];
        assert_eq!(
            (&open["additionalProperties"], &open["properties"]["c"]),
            (&json!(false), &json!({})),
            "{open}"
        );
        assert_eq!(schema["properties"]["mode"]["enum"], json!(["on", "off"]));
        assert!(page(&fields).contains("| `outer.count` | `3` | How many. |"));
    }
}
