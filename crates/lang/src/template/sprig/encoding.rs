//! Functions between text and other forms: base64, hashes, JSON, YAML.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use sha2::{Digest, Sha256, Sha512};

use crate::template::documents;
use crate::template::error::Cause;
use crate::template::functions::{Function, Parameter, failure};
use crate::template::json::{self, JsonLayout};
use crate::template::store::Store;
use crate::template::value::{Evaluated, Value};
use crate::template::yaml;

use Parameter::{Any, Text};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("b64enc", &[Text], |store, a| store.text(STANDARD.encode(a[0].as_text()))),
    Function::new("b64dec", &[Text], |store, a| {
        // Go skips line breaks inside of base64.
        let text: String = a[0].as_text().chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
        let Ok(bytes) = STANDARD.decode(text) else {
            return failure("b64dec", "the text is not base64");
        };
        match String::from_utf8(bytes) {
            Ok(text) => store.text(text),
            Err(_) => failure("b64dec", "the decoded bytes are not text (UTF-8)"),
        }
    }),
    Function::new("sha256sum", &[Text], |store, a| store.text(hexadecimal(&Sha256::digest(a[0].as_text())))),
    Function::new("sha512sum", &[Text], |store, a| store.text(hexadecimal(&Sha512::digest(a[0].as_text())))),
    Function::new("toJson", &[Any], |store, a| to_json(store, &a[0], JsonLayout::Compact)),
    Function::new("mustToJson", &[Any], |store, a| to_json(store, &a[0], JsonLayout::Compact)),
    Function::new("toRawJson", &[Any], |store, a| to_json(store, &a[0], JsonLayout::Raw)),
    Function::new("mustToRawJson", &[Any], |store, a| to_json(store, &a[0], JsonLayout::Raw)),
    Function::new("toPrettyJson", &[Any], |store, a| to_json(store, &a[0], JsonLayout::Pretty)),
    Function::new("mustToPrettyJson", &[Any], |store, a| to_json(store, &a[0], JsonLayout::Pretty)),
    Function::new("fromJson", &[Text], |store, a| match read_json(store, a[0].as_text())? {
        Some(value) => json::adopt(store, &value),
        None => Ok(Value::NIL),
    }),
    Function::new("mustFromJson", &[Text], |store, a| match read_json(store, a[0].as_text())? {
        Some(value) => json::adopt(store, &value),
        None => failure("mustFromJson", "the text is not JSON"),
    }),
    Function::new("toYaml", &[Any], |store, a| {
        let text = yaml::encode(store, &a[0])?;
        store.text(text)
    }),
    Function::new("fromYaml", &[Text], |store, a| {
        from_yaml(store, "fromYaml", a[0].as_text(), Json::is_object)
    }),
    Function::new("fromYamlArray", &[Text], |store, a| {
        from_yaml(store, "fromYamlArray", a[0].as_text(), Json::is_array)
    }),
];

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reading JSON builds more than its text: it is paid for before.
fn read_json(store: &Store<'_>, text: &str) -> Result<Option<Json>, Cause> {
    store.charge(text.len() * 8)?;
    Ok(serde_json::from_str(text).ok())
}

fn to_json<'d>(store: &mut Store<'d>, value: &Value<'d>, layout: JsonLayout) -> Evaluated<'d> {
    let text = json::encode(store, value, layout)?;
    store.text(text)
}

fn from_yaml<'d>(
    store: &mut Store<'d>,
    function: &'static str,
    text: &str,
    is_wanted: fn(&Json) -> bool,
) -> Evaluated<'d> {
    // Reading YAML builds more than its text: pay for it before.
    store.charge(text.len() * 8)?;
    let value = match documents::parse_one(text) {
        Ok(Json::Null) if function == "fromYaml" => Json::Object(serde_json::Map::new()),
        Ok(Json::Null) => Json::Array(Vec::new()),
        Ok(value) => value,
        Err(_) => return failure(function, "the text is not valid YAML"),
    };
    if !is_wanted(&value) {
        return failure(function, "the YAML has another shape: fromYaml wants a map, fromYamlArray a list");
    }
    json::adopt(store, &value)
}
