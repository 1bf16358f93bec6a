//! Bodies that are kept in a ConfigMap of the object's own namespace.

use linchpin_engine::{
    contract::{ReadSet, Seen, StepId, Want},
    plan::{SpecError, definition},
};
use linchpin_lang::template::parse_documents;
use linchpin_words::{Gvk, limits};
use serde_json::{Value, json};

use crate::{
    assemble::Frame,
    errors::{at, bounded, not_yet},
    readiness_profile,
    requirement::RequirementSpec,
};

/// Bodies, each with the field it is written in; or what must be there before there are any.
pub(crate) enum Bodies {
    Found(Vec<(String, Value)>),
    Waits(Box<RequirementSpec>),
}

/// The documents in a ConfigMap: under one key, or under all of them. While they are not there, `id` waits for them.
pub(crate) fn config_map(
    frame: &Frame<'_>,
    name: &str,
    key: Option<&str>,
    id: StepId,
    field: &str,
) -> Result<Bodies, SpecError> {
    let kind = Gvk::new("", "v1", "ConfigMap");
    let namespace = &frame.owner.namespace;
    let reads = ReadSet::dotted(["data"]);
    let want = Want::object(frame.via.clone(), kind.clone(), Some(namespace.clone()), name, reads);
    let found = match frame.kinds.ask(want) {
        None => return Err(not_yet(field)),
        Some(Seen::Unknown(why)) if why.is_passing() => return Err(not_yet(field)),
        Some(Seen::Objects(observed)) => observed.items.first(),
        Some(_) => None,
    };
    let waits = || {
        let cel = key.map(|key| format!("has(self.data) && {} in self.data", Value::from(key)));
        let spec =
            RequirementSpec::on_object(id, field, frame.via.clone(), &kind, Some(namespace.as_str()), name);
        Ok(Bodies::Waits(Box::new(RequirementSpec {
            label: format!("configmap/{name}"),
            definition: definition(&json!([name, key]), &Value::Null),
            clauses: readiness_profile::clauses(cel.as_deref(), &[], field)?,
            ..spec
        })))
    };
    let Some(found) = found else {
        return waits();
    };
    let mut bodies = Vec::new();
    for (one, text) in found.content.get("data").and_then(Value::as_object).into_iter().flatten() {
        if key.is_some_and(|wanted| wanted != one) {
            continue;
        }
        let place = format!("{field} (key {one})");
        let documents = parse_documents(&place, text.as_str().unwrap_or_default()).map_err(|error| {
            let (line, column) = error.position();
            at(&place, format!("at line {line} column {column}: {}", error.message()))
        })?;
        bodies.extend(
            documents.into_iter().enumerate().map(|(index, body)| (format!("{place}[{index}]"), body)),
        );
    }
    if bodies.is_empty() {
        return if key.is_some() { waits() } else { Err(at(field, "there is no document in it")) };
    }
    bounded(bodies.len(), limits::RENDERED_OBJECTS, field, "objects")?;
    Ok(Bodies::Found(bodies))
}
