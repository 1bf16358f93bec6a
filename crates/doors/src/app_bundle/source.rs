//! Where the objects of a component come from.
//!
//! Written in the bundle itself, or kept in a ConfigMap of its namespace. A further source is a further arm here: it
//! answers with bodies, or with what must be there first. (Porch packages are refused until that arm is there.)

use linchpin_api::{
    Component, Dependency,
    app_bundle::{PorchIntegration, component::SourceRef},
};
use linchpin_engine::{
    contract::{ReadSet, Seen, Want},
    plan::SpecError,
};
use linchpin_lang::template::parse_documents;
use linchpin_words::{Gvk, limits};
use serde_json::Value;

use super::not_yet;
use crate::{
    assemble::Frame,
    errors::{at, bounded},
};

/// What a source gives.
pub(super) enum Source {
    /// Bodies, each with the field it is written in.
    Bodies(Vec<(String, Value)>),
    /// Nothing before this is there.
    Waits(Box<Dependency>),
}

/// Reads the source of a component.
pub(super) fn read(
    frame: &Frame<'_>,
    porch: Option<&PorchIntegration>,
    component: &Component,
    field: &str,
) -> Result<Source, SpecError> {
    let sources = [
        component.template.is_some(),
        component.templates.is_some(),
        component.source.is_some(),
        component.porch_package_ref.is_some(),
    ];
    if sources.iter().filter(|given| **given).count() != 1 {
        return Err(at(field, "Component must have either template or porchPackageRef specified"));
    }
    if let Some(template) = &component.template {
        return Ok(Source::Bodies(vec![(format!("{field}.template"), Value::Object(template.clone()))]));
    }
    if let Some(templates) = &component.templates {
        bounded(templates.len(), limits::TEMPLATES, &format!("{field}.templates"), "objects")?;
        let bodies = templates.iter().enumerate();
        let bodies =
            bodies.map(|(index, body)| (format!("{field}.templates[{index}]"), Value::Object(body.clone())));
        return Ok(Source::Bodies(bodies.collect()));
    }
    match &component.source {
        Some(source) => config_map(frame, &source.config_map_ref, &format!("{field}.source.configMapRef")),
        None if porch.is_some_and(|porch| porch.enabled) => Err(at(
            format!("{field}.porchPackageRef"),
            "packages are not deployed by this version; give template, templates or source",
        )),
        None => Err(at(
            format!("{field}.porchPackageRef"),
            "spec.porchIntegration.enabled is not true, so nothing is taken from Porch",
        )),
    }
}

/// The documents in a ConfigMap.
fn config_map(frame: &Frame<'_>, source: &SourceRef, field: &str) -> Result<Source, SpecError> {
    let want = Want::object(
        frame.via.clone(),
        Gvk::new("", "v1", "ConfigMap"),
        Some(frame.owner.namespace.clone()),
        &source.name,
        ReadSet::dotted(["data"]),
    );
    let found = match frame.kinds.ask(want) {
        None => return Err(not_yet(field)),
        Some(Seen::Unknown(why)) if why.is_passing() => return Err(not_yet(field)),
        Some(Seen::Objects(observed)) => observed.items.first(),
        Some(_) => None,
    };
    let texts = found.and_then(|item| item.content.get("data")).and_then(Value::as_object);
    let waits = || {
        let cel = source
            .key
            .as_ref()
            .map(|key| format!("has(self.data) && {} in self.data", Value::from(key.as_str())));
        let resource = Some(format!("configmap/{}", source.name));
        Source::Waits(Box::new(Dependency { resource, cel, ..Dependency::default() }))
    };
    if found.is_none() {
        return Ok(waits());
    }
    let mut bodies = Vec::new();
    for (key, text) in texts.into_iter().flatten() {
        if source.key.as_ref().is_some_and(|wanted| wanted != key) {
            continue;
        }
        let place = format!("{field} (key {key})");
        let documents = parse_documents(&place, text.as_str().unwrap_or_default()).map_err(|error| {
            let (line, column) = error.position();
            at(&place, format!("at line {line} column {column}: {}", error.message()))
        })?;
        bodies.extend(
            documents.into_iter().enumerate().map(|(index, body)| (format!("{place}[{index}]"), body)),
        );
    }
    if bodies.is_empty() {
        return if source.key.is_some() { Ok(waits()) } else { Err(at(field, "there is no document in it")) };
    }
    bounded(bodies.len(), limits::RENDERED_OBJECTS, field, "objects")?;
    Ok(Source::Bodies(bodies))
}
