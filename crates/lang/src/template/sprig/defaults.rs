//! Functions that choose between values, and the ones that look at types.

use crate::template::compare;
use crate::template::functions::{Function, FunctionAction, Parameter};
use crate::template::store::Store;
use crate::template::value::Value;

use Parameter::{Any, Bool, Text};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::variadic("default", &[Any], Any, |store, a| {
        Ok(match a.get(1) {
            Some(given) if store.is_true(given) => given.clone(),
            _ => a[0].clone(),
        })
    }),
    Function::new("empty", &[Any], |store, a| Ok(Value::Bool(!store.is_true(&a[0])))),
    Function::variadic("coalesce", &[], Any, |store, a| {
        Ok(a.iter().find(|value| store.is_true(value)).cloned().unwrap_or(Value::NIL))
    }),
    Function::variadic("all", &[], Any, |store, a| {
        Ok(Value::Bool(a.iter().all(|value| store.is_true(value))))
    }),
    Function::variadic("any", &[], Any, |store, a| {
        Ok(Value::Bool(a.iter().any(|value| store.is_true(value))))
    }),
    Function::new("ternary", &[Any, Any, Bool], |_, a| {
        Ok(if matches!(a[2], Value::Bool(true)) { a[0].clone() } else { a[1].clone() })
    }),
    Function::special("required", &[Text, Any], None, FunctionAction::Refuse),
    Function::special("fail", &[Text], None, FunctionAction::Refuse),
    Function::new("kindOf", &[Any], |_, a| Ok(Value::borrowed(Store::kind_name(&a[0])))),
    Function::new("kindIs", &[Text, Any], |_, a| Ok(Value::Bool(Store::kind_name(&a[1]) == a[0].as_text()))),
    Function::new("typeOf", &[Any], |store, a| Ok(Value::borrowed(store.type_name(&a[0]).0))),
    Function::new("typeIs", &[Text, Any], |store, a| {
        Ok(Value::Bool(store.type_name(&a[1]).0 == a[0].as_text()))
    }),
    Function::new("deepEqual", &[Any, Any], |store, a| {
        Ok(Value::Bool(compare::deep_equal(store, &a[0], &a[1], 0)?))
    }),
];
