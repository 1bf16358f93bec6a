//! Where the objects of a component come from.
//!
//! Written in the bundle itself, kept in a ConfigMap of its namespace, or in a package of Porch's. A further source is a
//! further arm here: it answers with bodies, or with what must be there first.

use linchpin_api::{
    Component, Dependency,
    app_bundle::{
        PorchIntegration,
        component::{ONE_SOURCE, SourceRef},
    },
};
use linchpin_engine::{
    contract::{ReadSet, Seen, Via, Want},
    plan::SpecError,
};
use linchpin_lang::template::parse_documents;
use linchpin_words::{Gvk, limits};
use serde_json::Value;

use super::{
    not_yet,
    objects::Marks,
    porch::{self, Package},
};
use crate::{
    assemble::Frame,
    errors::{at, bounded},
};

/// What a source gives.
pub(super) enum Source {
    /// Bodies, each with the field it is written in.
    Bodies(Vec<(String, Value)>),
    /// Nothing before this is there.
    Waits {
        /// What must be there.
        dependency: Box<Dependency>,
        /// What it is called, where that is not how it is written.
        called: Option<String>,
    },
    /// A package, whose variant is applied and whose objects come from elsewhere.
    Package(Box<Package>),
}

/// Reads the source of a component.
pub(super) fn read(
    frame: &Frame<'_>,
    via: &Via,
    porch: Option<&PorchIntegration>,
    component: &Component,
    marks: &Marks,
    field: &str,
) -> Result<Source, SpecError> {
    let sources = [
        component.template.is_some(),
        component.templates.is_some(),
        component.source.is_some(),
        component.porch_package_ref.is_some(),
    ];
    if sources.iter().filter(|given| **given).count() != 1 {
        return Err(at(field, ONE_SOURCE));
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
    if let Some(source) = &component.source {
        return config_map(frame, &source.config_map_ref, &format!("{field}.source.configMapRef"));
    }
    match &component.porch_package_ref {
        Some(package) => {
            let field = format!("{field}.porchPackageRef");
            porch::read(frame, via, porch, component, package, marks, &field)
        }
        None => Err(at(field, ONE_SOURCE)),
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
        let dependency = Box::new(Dependency { resource, cel, ..Dependency::default() });
        Source::Waits { dependency, called: None }
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
