//! Functions on dicts and on the objects of the data.

use std::collections::BTreeMap;

use crate::template::error::Cause;
use crate::template::functions::{Function, Parameter, failure};
use crate::template::limits;
use crate::template::store::Store;
use crate::template::value::{Element, Evaluated, TemplateText, Value};

use Parameter::{Any, Dict, Text as TextParameter};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::variadic("dict", &[], Any, dict),
    Function::new("get", &[Dict, TextParameter], |store, a| {
        Ok(store.entry(&a[0], &key(&a[1])).unwrap_or(Value::borrowed("")))
    }),
    Function::new("set", &[Dict, TextParameter, Any], set),
    Function::new("unset", &[Dict, TextParameter], unset),
    Function::new("hasKey", &[Dict, TextParameter], |store, a| {
        Ok(Value::Bool(store.entry(&a[0], &key(&a[1])).is_some()))
    }),
    Function::variadic("pluck", &[TextParameter], Dict, |store, a| {
        let name = key(&a[0]);
        let found = a[1..].iter().filter_map(|dict| store.entry(dict, &name)).collect();
        store.list(Element::Any, found)
    }),
    Function::variadic("keys", &[], Dict, |store, a| {
        let mut keys = Vec::new();
        for dict in a {
            keys.extend(
                store.entries(dict)?.unwrap_or_default().into_iter().map(|(key, _)| Value::Text(key)),
            );
        }
        store.list(Element::Text, keys)
    }),
    Function::new("values", &[Dict], |store, a| {
        let entries = store.entries(&a[0])?.unwrap_or_default();
        store.list(Element::Any, entries.into_iter().map(|(_, value)| value).collect())
    }),
    Function::variadic("pick", &[Dict], TextParameter, |store, a| {
        let found =
            a[1..].iter().filter_map(|name| Some((key(name), store.entry(&a[0], &key(name))?))).collect();
        store.dict(Element::Any, found)
    }),
    Function::variadic("omit", &[Dict], TextParameter, |store, a| {
        let entries = store.entries(&a[0])?.unwrap_or_default().into_iter();
        let kept =
            entries.filter(|(name, _)| !a[1..].iter().any(|other| other.as_text() == &**name)).collect();
        store.dict(Element::Any, kept)
    }),
    Function::variadic("dig", &[], Any, dig),
    Function::new("deepCopy", &[Any], |store, a| {
        if a[0].is_nil() {
            return failure("deepCopy", "there is nothing to copy");
        }
        copy(store, &a[0], 0)
    }),
];

fn key<'d>(value: &Value<'d>) -> TemplateText<'d> {
    match value {
        Value::Text(text) => text.clone(),
        _ => TemplateText::Borrowed(""),
    }
}

fn dict<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    let mut entries = BTreeMap::new();
    for pair in a.chunks(2) {
        let name = match &pair[0] {
            Value::Text(text) => text.clone(),
            other => TemplateText::Shared(store.display(other)?.into()),
        };
        entries.insert(name, pair.get(1).cloned().unwrap_or(Value::borrowed("")));
    }
    store.dict(Element::Any, entries)
}

const READ_ONLY: &str = "the data cannot be changed; change a copy made with deepCopy";

fn set<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    let Value::Dict(id) = &a[0] else {
        return failure("set", if a[0].is_nil() { "there is no dict to change" } else { READ_ONLY });
    };
    store.charge(64 + a[1].as_text().len())?;
    store.dict_of_mut(*id).entries.insert(key(&a[1]), a[2].clone());
    Ok(a[0].clone())
}

fn unset<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    match &a[0] {
        Value::Dict(id) => {
            store.dict_of_mut(*id).entries.remove(a[1].as_text());
            Ok(a[0].clone())
        }
        Value::Nil(_) => Ok(Value::NIL),
        _ => failure("unset", READ_ONLY),
    }
}

fn dig<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    let [keys @ .., default, dict] = a else {
        return failure("dig", "needs at least three arguments: keys, a default and a dict");
    };
    if keys.is_empty() {
        return failure("dig", "needs at least three arguments: keys, a default and a dict");
    }
    let mut value = dict.clone();
    for name in keys {
        let Value::Text(name) = name else {
            return failure("dig", "the keys must be text");
        };
        if store.type_name(&value).0 != Dict.type_name() {
            return failure("dig", format!("a value of type {} has no entries", store.type_name(&value)));
        }
        match store.entry(&value, name) {
            Some(found) => value = found,
            None => return Ok(default.clone()),
        }
    }
    Ok(value)
}

fn copy<'d>(store: &mut Store<'d>, value: &Value<'d>, depth: usize) -> Evaluated<'d> {
    if depth > limits::VALUE_DEPTH {
        return Err(Cause::Limit { what: "levels in a value", limit: limits::VALUE_DEPTH });
    }
    let value = &store.whole(value);
    if let Some(items) = store.items(value)? {
        let element = match value {
            Value::List(id) => store.list_of(*id).element,
            _ => Element::Any,
        };
        let mut copies = Vec::with_capacity(items.len());
        for item in &items {
            copies.push(copy(store, item, depth + 1)?);
        }
        return store.list(element, copies);
    }
    if let Some(entries) = store.entries(value)? {
        let element = match value {
            Value::Dict(id) => store.dict_of(*id).element,
            _ => Element::Any,
        };
        let mut copies = BTreeMap::new();
        for (name, item) in entries {
            let item = copy(store, &item, depth + 1)?;
            copies.insert(name, item);
        }
        return store.dict(element, copies);
    }
    Ok(value.clone())
}
