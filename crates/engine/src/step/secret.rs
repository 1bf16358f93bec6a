//! Which of the templates' data stem from Secrets, and where that must not go.
//!
//! Secret values move into what is applied and nowhere else. What an object is and what it is called is shown: in
//! statuses, events and logs, and in the server's refusals. So an `apiVersion`, kind, name or namespace that depends on
//! a Secret's value is refused before anything is done with it, by the name of the field alone; so is a key of a
//! document that holds such a value, since refusals name fields.
//!
//! A field with a template of its own shows what it reads. A document that is one text does not show it by field: it is
//! rendered once more with other values in place of the Secrets' ([`Secrets::concealed`]), and the two are compared.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use linchpin_lang::template::DataPath;
use serde_json::Value;

use crate::{
    contract::{Question, Seen, World},
    plan::{Input, Plan, Roots},
};

/// What says what an object is and what it is called: where it is, and what people call it.
pub(super) const IDENTITY: [(&str, &str); 4] = [
    ("/apiVersion", "apiVersion"),
    ("/kind", "kind"),
    ("/metadata/name", "metadata.name"),
    ("/metadata/namespace", "metadata.namespace"),
];

/// The annotation in which kubectl keeps a whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The shortest value that is looked for in other texts: shorter ones are everywhere.
const SHORTEST_FORM: usize = 4;

/// What the author reads about a field.
pub fn refusal(field: &str) -> String {
    format!(
        "{field} is rendered from a value of a Secret, and would be shown in statuses and events: take it from a \
         ConfigMap or from spec.values"
    )
}

/// Where Secrets' values are in the data of templates.
#[derive(Debug, Default)]
pub struct Secrets {
    /// Keys of `.Values`.
    values: BTreeSet<String>,
    /// Keys of dependencies.
    dependencies: BTreeSet<String>,
    /// Under which names those are read.
    roots: Roots,
}

impl Secrets {
    /// The keys of `.Values` whose value is a Secret's: those that nothing on top of it replaces.
    pub fn of_values(inputs: &[Input], own: &Value, world: &World) -> Self {
        let mut values = BTreeSet::new();
        for input in inputs {
            let Some(Seen::Objects(observed)) = world.get(&input.want) else { continue };
            for item in &observed.items {
                let keys = item.content.get("data").and_then(Value::as_object);
                for key in keys.into_iter().flat_map(|data| data.keys()) {
                    if item.kind.kind == "Secret" {
                        values.insert(key.clone());
                    } else {
                        values.remove(key);
                    }
                }
            }
        }
        values.retain(|key| own.get(key).is_none());
        Self { values, dependencies: BTreeSet::new(), roots: Roots::default() }
    }

    /// The same, with those of the dependencies.
    pub(super) fn of_plan(plan: &Plan, world: &World) -> Self {
        let mut secrets =
            Self { roots: plan.roots, ..Self::of_values(&plan.terms.inputs, &plan.terms.values, world) };
        let requirements = plan.steps().iter().filter_map(|step| step.requirement());
        for requirement in requirements {
            if let Question::Objects { kind, .. } = requirement.want.question()
                && kind.kind == "Secret"
            {
                secrets.dependencies.extend(requirement.keys.iter().cloned());
            }
        }
        secrets
    }

    /// Whether reading this path reads a Secret's value.
    pub fn holds(&self, path: &DataPath) -> bool {
        let segments: Vec<&str> = path.segments().iter().map(String::as_str).collect();
        match segments.as_slice() {
            [] => !self.values.is_empty() || !self.dependencies.is_empty(),
            ["Values"] => !self.values.is_empty(),
            ["Values", key, ..] => self.values.contains(*key),
            [root] if self.roots.contain(root) => !self.dependencies.is_empty(),
            [root, key, rest @ ..] if self.roots.contain(root) => {
                self.dependencies.contains(*key) && is_content(rest)
            }
            _ => false,
        }
    }

    /// Whether one of these paths reads a Secret's value.
    pub fn any<'a>(&self, mut paths: impl Iterator<Item = &'a DataPath>) -> bool {
        paths.any(|path| self.holds(path))
    }

    /// The data with other values in place of the Secrets', alike in shape: digits, letters and structure stay such.
    pub(super) fn concealed(&self, data: &Value) -> Value {
        let mut data = data.clone();
        self.each(&mut data, |value, encoded| {
            if let Some(text) = value.as_str() {
                *value = Value::String(if encoded { other_encoded(text) } else { other(text) });
            }
        });
        data
    }

    /// Whether a text holds one of the Secrets' values, short ones aside.
    pub(super) fn is_in(&self, text: &str, data: &Value) -> bool {
        let mut found = false;
        self.each(&mut data.clone(), |value, encoded| {
            let value = value.as_str().unwrap_or_default();
            let plain = if encoded { decoded(value) } else { None };
            let mut forms = [Some(value), plain.as_deref()].into_iter().flatten();
            found |= forms.any(|form| form.len() >= SHORTEST_FORM && text.contains(form));
        });
        found
    }

    /// Visits every value of a Secret in the data; the flag marks those that are base64.
    fn each(&self, data: &mut Value, mut visit: impl FnMut(&mut Value, bool)) {
        for key in &self.values {
            if let Some(value) = data.get_mut("Values").and_then(|values| values.get_mut(key)) {
                visit(value, false);
            }
        }
        for root in self.roots.0 {
            for key in &self.dependencies {
                let Some(entry) = data.get_mut(root).and_then(|all| all.get_mut(key)) else { continue };
                each_of_entry(entry, &mut visit);
                let items = entry.get_mut("Items").and_then(Value::as_array_mut);
                items.into_iter().flatten().for_each(|item| each_of_entry(item, &mut visit));
            }
        }
    }
}

/// Whether a path below a Secret leads to a value of it, or to something that holds one.
fn is_content(path: &[&str]) -> bool {
    match path {
        []
        | ["Items" | "Object" | "Annotations"]
        | ["Object", "data" | "stringData", ..]
        | ["Object", "metadata"]
        | ["Object", "metadata", "annotations"] => true,
        ["Object", "metadata", "annotations", key] | ["Annotations", key] => *key == LAST_APPLIED,
        ["Items", _, rest @ ..] => is_content(rest),
        _ => false,
    }
}

fn each_of_entry(entry: &mut Value, visit: &mut impl FnMut(&mut Value, bool)) {
    for (path, encoded) in [("/Object/data", true), ("/Object/stringData", false)] {
        let map = entry.pointer_mut(path).and_then(Value::as_object_mut);
        map.into_iter().flat_map(|map| map.values_mut()).for_each(|value| visit(value, encoded));
    }
    for path in ["/Object/metadata/annotations", "/Annotations"] {
        let kept = entry.pointer_mut(path).and_then(|annotations| annotations.get_mut(LAST_APPLIED));
        if let Some(value) = kept {
            visit(value, false);
        }
    }
}

fn decoded(text: &str) -> Option<String> {
    String::from_utf8(BASE64.decode(text).ok()?).ok()
}

fn other_encoded(text: &str) -> String {
    match decoded(text) {
        Some(plain) => BASE64.encode(other(&plain)),
        None => other(text),
    }
}

/// Another text of the same shape. Of JSON the keys stay, for templates look for them.
fn other(text: &str) -> String {
    if let Ok(mut value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str::<Value>(text) {
        replace_leaves(&mut value);
        return value.to_string();
    }
    let turned: String = text.chars().map(turned).collect();
    if turned == text { format!("{text}x") } else { turned }
}

fn replace_leaves(value: &mut Value) {
    match value {
        Value::String(text) => *text = other(text),
        Value::Number(number) => *number = number.as_i64().map_or(0, |number| number.wrapping_add(1)).into(),
        Value::Array(items) => items.iter_mut().for_each(replace_leaves),
        Value::Object(entries) => entries.values_mut().for_each(replace_leaves),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The next digit or letter of the same case; no digit becomes a zero, which no number begins with.
fn turned(character: char) -> char {
    match character {
        '9' => '1',
        'z' => 'a',
        'Z' => 'A',
        '0'..='8' | 'a'..='y' | 'A'..='Y' => char::from(u8::try_from(character).unwrap_or(b'x') + 1),
        other => other,
    }
}

/// Whether a key of a document holds a Secret's value; `concealed` is the document without such values.
pub(super) fn has_key(document: &Value, concealed: &Value, is_secret: &dyn Fn(&str) -> bool) -> bool {
    let (mut keys, mut others) = (BTreeSet::new(), BTreeSet::new());
    collect_keys(document, &mut keys);
    collect_keys(concealed, &mut others);
    keys.difference(&others).any(|key| is_secret(key))
}

fn collect_keys<'v>(value: &'v Value, keys: &mut BTreeSet<&'v str>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                keys.insert(key);
                collect_keys(value, keys);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets() -> Secrets {
        let one = |key: &str| BTreeSet::from([key.to_owned()]);
        Secrets { values: one("password"), dependencies: one("login"), roots: Roots::default() }
    }

    #[test]
    fn only_what_holds_a_secrets_value_is_one() {
        let secrets = secrets();
        let path = |text: &str| DataPath::new(text.split('.').filter(|segment| !segment.is_empty()));
        for held in [
            "",
            "Values",
            "Values.password",
            "Dependencies",
            "Dependencies.login",
            "Dependencies.login.Object",
            "Dependencies.login.Object.data.user",
            "Dependencies.login.Items.0.Object.stringData",
            "Dependencies.login.Annotations",
        ] {
            assert!(secrets.holds(&path(held)), "{held}");
        }
        for open in [
            "Now",
            "Values.host",
            "Elsewhere.login.Object",
            "Dependencies.db.Object.data",
            "Dependencies.login.Name",
            "Dependencies.login.Object.metadata.uid",
            "Dependencies.login.Labels.app",
            "Dependencies.login.Annotations.app",
        ] {
            assert!(!secrets.holds(&path(open)), "{open}");
        }
    }

    #[test]
    fn another_value_is_different_and_of_the_same_shape() {
        for (text, expected) in [
            ("hunter2", "ivoufs3"),
            ("5432", "6543"),
            ("90", "11"),
            ("Zz", "Aa"),
            ("--", "--x"),
            ("", "x"),
            (r#"{"user":"a","port":5}"#, r#"{"user":"b","port":6}"#),
        ] {
            assert_eq!(other(text), expected);
        }
        assert_eq!(decoded(&other_encoded(&BASE64.encode("hunter2"))).as_deref(), Some("ivoufs3"));
    }

    #[test]
    fn every_place_of_a_secret_is_concealed_and_nothing_else() {
        let entry = |value: &str, kept: &str| {
            json!({"Name": "login", "Object": {"data": {"user": BASE64.encode(value)}, "metadata": {
                "annotations": {LAST_APPLIED: kept, "note": "user"}}}})
        };
        let data = json!({"Values": {"password": "user", "host": "user"},
            "Dependencies": {"login": entry("user", "user"), "db": {"Object": {"data": {"user": "user"}}}}});
        let concealed = secrets().concealed(&data);
        assert_eq!(
            concealed,
            json!({"Values": {"password": "vtfs", "host": "user"},
                "Dependencies": {"login": entry("vtfs", "vtfs"), "db": {"Object": {"data": {"user": "user"}}}}})
        );
        assert!(secrets().is_in("the-user", &data) && !secrets().is_in("the-admin", &data));
    }
}
