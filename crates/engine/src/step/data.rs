//! The data that templates and expressions see: `.Now`, `.Values`, `.Dependencies`.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use linchpin_lang::weight;
use linchpin_words::{Timestamp, limits};
use serde_json::{Map, Value, json};

use super::judge::RequirementView;
use crate::{
    contract::{Projection, Question, ReadSet, Scope, Seen, World},
    plan::{Input, Requirement},
};

/// How many times the data of a dependency is copied on its way into a template or an expression, about.
const COPIES: u64 = 8;

/// The data is more than may be handed over in one step.
#[derive(Debug)]
pub(super) struct TooMuch;

impl std::fmt::Display for TooMuch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let most = limits::TURN_STEPS / COPIES;
        write!(
            formatter,
            "it reads more than {most} values of what it depends on: select fewer objects, or read less"
        )
    }
}

/// Adds what copying a value takes.
fn pay(value: &Value, spent: &mut u64) -> Result<(), TooMuch> {
    *spent += weight(value, limits::TURN_STEPS) * COPIES;
    if *spent > limits::TURN_STEPS { Err(TooMuch) } else { Ok(()) }
}

/// `.Values`, and what making them took.
pub(super) fn values_counted(
    inputs: &[Input],
    own: &Value,
    world: &World,
    spent: &mut u64,
) -> Result<Value, TooMuch> {
    for input in inputs {
        if let Some(Seen::Objects(observed)) = world.get(&input.want) {
            observed.items.iter().try_for_each(|item| pay(&item.content, spent))?;
        }
    }
    pay(own, spent)?;
    Ok(values(inputs, own, world))
}

/// `.Values`: the data of `valuesFrom` in order, later ones on top, `spec.values` on top of all.
pub fn values(inputs: &[Input], own: &Value, world: &World) -> Value {
    let mut values = Map::new();
    for input in inputs {
        let Some(Seen::Objects(observed)) = world.get(&input.want) else {
            continue;
        };
        for item in &observed.items {
            let secret = item.kind.kind == "Secret";
            let Some(data) = item.content.get("data").and_then(Value::as_object) else {
                continue;
            };
            for (key, value) in data {
                let value = if secret { decoded(value) } else { value.clone() };
                values.insert(key.clone(), value);
            }
        }
    }
    if let Value::Object(own) = own {
        values.extend(own.clone());
    }
    Value::Object(values)
}

/// A Secret's value as text, where it is text.
fn decoded(value: &Value) -> Value {
    let bytes = value.as_str().and_then(|text| BASE64.decode(text).ok());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.map_or_else(|| value.clone(), Value::String)
}

/// One entry of `.Dependencies`, and what making it took.
pub(super) fn dependency_data(
    requirement: &Requirement,
    found: &RequirementView,
    world: &World,
    reads: &ReadSet,
    spent: &mut u64,
) -> Result<Value, TooMuch> {
    let mut entry = Map::new();
    entry.insert("State".to_owned(), json!(found.state));
    entry.insert("Message".to_owned(), json!(found.message));
    match world.get(&requirement.want) {
        Some(Seen::Objects(observed)) => {
            let Question::Objects { kind, scope, .. } = requirement.want.question() else {
                return Ok(Value::Object(entry));
            };
            entry.insert("Kind".to_owned(), json!(kind.kind));
            entry.insert("APIVersion".to_owned(), json!(kind.api_version()));
            if let Scope::Name { namespace, name } = scope {
                entry.insert("Name".to_owned(), json!(name));
                entry.insert("Namespace".to_owned(), json!(namespace.clone().unwrap_or_default()));
                if let Some(item) = observed.items.first() {
                    describe(&mut entry, item, reads, spent)?;
                }
            } else {
                let mut items = Vec::with_capacity(observed.items.len());
                for item in &observed.items {
                    let mut one = Map::new();
                    one.insert("Name".to_owned(), json!(item.name));
                    one.insert("Namespace".to_owned(), json!(item.namespace.clone().unwrap_or_default()));
                    one.insert("Kind".to_owned(), json!(kind.kind));
                    one.insert("APIVersion".to_owned(), json!(kind.api_version()));
                    describe(&mut one, item, reads, spent)?;
                    items.push(Value::Object(one));
                }
                entry.insert("Items".to_owned(), Value::Array(items));
            }
        }
        Some(Seen::Version(version)) => {
            entry.insert("Name".to_owned(), json!("kubernetes"));
            let object = version_object(version);
            entry.insert("Status".to_owned(), object["status"].clone());
            entry.insert("Object".to_owned(), object);
        }
        _ => {
            if let Some(object) = requirement.want.object_ref() {
                entry.insert("Kind".to_owned(), json!(object.kind.kind));
                entry.insert("Name".to_owned(), json!(object.name));
                entry.insert("Namespace".to_owned(), json!(object.namespace.unwrap_or_default()));
            }
        }
    }
    Ok(Value::Object(entry))
}

/// The server's version as an object: what its endpoint answers, and the version itself where statuses are looked for.
pub(super) fn version_object(version: &Value) -> Value {
    let mut object = version.as_object().cloned().unwrap_or_default();
    object.insert("status".to_owned(), json!({"version": version.get("gitVersion")}));
    Value::Object(object)
}

/// The object's own parts, as far as somebody reads them.
fn describe(
    entry: &mut Map<String, Value>,
    item: &Projection,
    reads: &ReadSet,
    spent: &mut u64,
) -> Result<(), TooMuch> {
    let content = reads.project(&item.content);
    pay(&content, spent)?;
    let metadata = |key| content.get("metadata").and_then(|metadata| metadata.get(key)).cloned();
    entry.insert("Labels".to_owned(), metadata("labels").unwrap_or_else(|| json!({})));
    entry.insert("Annotations".to_owned(), metadata("annotations").unwrap_or_else(|| json!({})));
    entry.insert("Spec".to_owned(), content.get("spec").cloned().unwrap_or_else(|| json!({})));
    entry.insert("Status".to_owned(), content.get("status").cloned().unwrap_or_else(|| json!({})));
    entry.insert("Object".to_owned(), content);
    Ok(())
}

/// `.Now` as templates see it.
pub(super) fn now_text(now: Timestamp) -> Value {
    let second = Timestamp::from_second(now.as_second());
    Value::String(second.to_string())
}
