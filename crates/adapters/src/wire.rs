//! States as they come over the wire: items with an id, a name and statuses of any shape, compared in one of two ways.
//!
//! The provider contract counts zero values as absent ([`Loose`]), the contract of remote adapters only null ([`Exact`]).
//! Reading a list is all or nothing: one item that is not as agreed makes the whole list trouble.

use linchpin_consist::{Item, Trouble, state::Statuses};
use linchpin_words::text::quote;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Statuses of which absent and zero values are equal.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Loose(pub Value);

impl PartialEq for Loose {
    fn eq(&self, other: &Self) -> bool {
        equal(&self.0, &other.0, is_zero)
    }
}

/// Statuses of which absent and null are equal.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Exact(pub Value);

impl PartialEq for Exact {
    fn eq(&self, other: &Self) -> bool {
        equal(&self.0, &other.0, Value::is_null)
    }
}

fn lifecycle_ready(statuses: &Value) -> Option<bool> {
    statuses.get("lifecycleReady").and_then(Value::as_bool)
}

impl Statuses for Loose {
    fn lifecycle_ready(&self) -> Option<bool> {
        lifecycle_ready(&self.0)
    }
}

impl Statuses for Exact {
    fn lifecycle_ready(&self) -> Option<bool> {
        lifecycle_ready(&self.0)
    }
}

/// Whether a value is what its type begins with.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
    }
}

/// Whether two values are equal, fields that are `nothing` counting as absent. JSON that was read has a bounded depth.
fn equal(one: &Value, other: &Value, nothing: fn(&Value) -> bool) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let matched = |from: &Map<String, Value>, to: &Map<String, Value>| {
                from.iter().all(|(key, value)| match to.get(key) {
                    Some(there) => equal(value, there, nothing),
                    None => nothing(value),
                })
            };
            matched(one, other) && matched(other, one)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other, nothing))
        }
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other || (nothing(one) && nothing(other)),
    }
}

/// A value without the fields that are null.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        value => value,
    }
}

/// The items of an answer `{"items": [{"id", "name"?, "statuses", "inTraffic"?}]}`; a name that is missing is the id.
pub(crate) fn items<S>(
    body: &Value,
    statuses: impl Fn(Value) -> Result<S, Trouble>,
) -> Result<Vec<Item<S>>, Trouble> {
    let list = body.get("items").and_then(Value::as_array);
    let list = list.ok_or_else(|| Trouble::new("the answer is not JSON with a list \"items\""))?;
    list.iter().map(|item| read_item(item, &statuses)).collect()
}

fn read_item<S>(item: &Value, statuses: impl Fn(Value) -> Result<S, Trouble>) -> Result<Item<S>, Trouble> {
    let id = item.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| Trouble::new("an item of the answer has no id"))?;
    let wrong = |what: &str| Trouble(format!("the item {} of the answer has {what}", quote(id)));
    let name = match item.get("name") {
        None | Some(Value::Null) => id,
        Some(name) => name.as_str().ok_or_else(|| wrong("a name that is no text"))?,
    };
    let name = if name.is_empty() { id } else { name };
    let in_traffic = match item.get("inTraffic") {
        None | Some(Value::Null) => None,
        Some(value) => {
            Some(value.as_bool().ok_or_else(|| wrong("inTraffic that is neither true nor false"))?)
        }
    };
    let read = match item.get("statuses") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(value @ Value::Object(_)) => value.clone(),
        Some(_) => return Err(wrong("statuses that are no object")),
    };
    Ok(Item { id: id.to_owned(), name: name.to_owned(), statuses: statuses(read)?, in_traffic })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_and_zero_values_are_equal_in_the_provider_contract() {
        let full = json!({"ip": "", "lifecycleReady": false, "extraStatus": {"trafficOn": false, "trafficWeight": 0}});
        assert_eq!(Loose(full.clone()), Loose(json!({})));
        assert_eq!(Loose(full), Loose(json!({"extraStatus": null})));
        assert_eq!(Loose(json!({"weight": 100})), Loose(json!({"weight": 100.0})));
        for other in
            [json!({"ip": "10.0.0.7"}), json!({"extraStatus": {"trafficOn": true}}), json!({"list": [0]})]
        {
            assert_ne!(Loose(other), Loose(json!({})));
        }
    }

    #[test]
    fn only_null_is_absent_for_remote_adapters() {
        assert_eq!(Exact(json!({"a": null, "b": {"c": null}})), Exact(json!({"b": {}})));
        for (one, other) in
            [(json!({"a": 0}), json!({})), (json!({"a": []}), json!({})), (json!([null]), json!([]))]
        {
            assert_ne!(Exact(one), Exact(other));
        }
    }

    #[test]
    fn one_item_that_is_not_as_agreed_makes_the_whole_list_trouble() {
        let read = |body: Value| items(&body, Ok);
        let good = json!({"items": [{"id": "a"}, {"id": "b", "name": "c", "statuses": {"x": 1}, "inTraffic": false}]});
        let good = read(good).unwrap();
        assert_eq!(
            (good[0].name.as_str(), good[1].name.as_str(), good[1].in_traffic),
            ("a", "c", Some(false))
        );
        for bad in [
            json!(null),
            json!([]),
            json!({}),
            json!({"items": {}}),
            json!({"items": [1]}),
            json!({"items": [{"id": "a"}, {"name": "b"}]}),
            json!({"items": [{"id": 1}]}),
            json!({"items": [{"id": "a", "name": 1}]}),
            json!({"items": [{"id": "a", "statuses": []}]}),
            json!({"items": [{"id": "a", "inTraffic": "no"}]}),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
