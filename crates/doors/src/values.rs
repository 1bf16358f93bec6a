//! Where `.Values` come from, and which of them a step reads.

use linchpin_api::{Common, common::ValuesSource};
use linchpin_engine::{
    contract::{ReadSet, Right, Scope, Via, Want, find_field},
    plan::{Input, Readings, SpecError},
    rights::{self, RightResource},
};
use linchpin_words::{Gvk, limits, reference::built_in_kind};
use serde_json::{Map, Value};

use crate::errors::{at, bounded};

/// `spec.values` as data.
pub(crate) fn own(common: &Common) -> Value {
    common.values.clone().map_or(Value::Null, Value::Object)
}

/// The sources of `spec.valuesFrom`, read in the object's own namespace as its own identity.
pub(crate) fn inputs(common: &Common, via: &Via, namespace: &str) -> Result<Vec<Input>, SpecError> {
    bounded(common.values_from.len(), limits::VALUES_FROM, "spec.valuesFrom", "sources of values")?;
    common
        .values_from
        .iter()
        .enumerate()
        .map(|(index, from)| {
            let (kind, source): (&str, &ValuesSource) = match (&from.config_map_ref, &from.secret_ref) {
                (Some(source), None) => ("ConfigMap", source),
                (None, Some(source)) => ("Secret", source),
                _ => {
                    let problem = "give exactly one of configMapRef and secretRef";
                    return Err(at(format!("spec.valuesFrom[{index}]"), problem));
                }
            };
            let want = Want::object(
                via.clone(),
                Gvk::new("", "v1", kind),
                Some(namespace.to_owned()),
                &source.name,
                ReadSet::dotted(["data"]),
            );
            Ok(Input { want, optional: source.optional })
        })
        .collect()
}

/// The rights that reading these sources needs.
pub(crate) fn rights(inputs: &[Input]) -> Vec<Right> {
    inputs
        .iter()
        .filter_map(|input| input.want.object_ref())
        .flat_map(|object| {
            let plural =
                built_in_kind("", &object.kind.kind).map_or_else(String::new, |kind| kind.plural.to_owned());
            let resource = RightResource { group: String::new(), plural, namespaced: true };
            let scope = Scope::Name { namespace: object.namespace, name: object.name };
            rights::observing(&resource, &Gvk::new("", "v1", object.kind.kind), &scope)
        })
        .collect()
}

/// The part of `spec.values` that an action reads: it belongs to the action's text.
pub(crate) fn read(common: &Common, readings: &Readings) -> Value {
    let Some(values) = common.values.as_ref().filter(|_| readings.values) else {
        return Value::Null;
    };
    let Some(keys) = &readings.value_keys else {
        return Value::Object(values.clone());
    };
    let found: Map<String, Value> = keys
        .iter()
        .filter_map(|key| find_field(values, key))
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect();
    Value::Object(found)
}
