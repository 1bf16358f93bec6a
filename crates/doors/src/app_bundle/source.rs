//! Where the objects of a component come from.
//!
//! Written in the bundle itself, kept in a ConfigMap of its namespace, or in a package of Porch's. A further source is a
//! further arm here: it answers with bodies, or with what must be there first.

use linchpin_api::{
    Component,
    app_bundle::{PorchIntegration, component::ONE_SOURCE},
};
use linchpin_engine::{contract::Via, plan::SpecError};
use linchpin_words::limits;
use serde_json::Value;

use super::porch::{self, Package};
use crate::{
    apply::{self, Bodies, Marks},
    assemble::Frame,
    errors::{at, bounded},
    names,
    requirement::RequirementSpec,
};

/// What a source gives.
pub(super) enum SourceContent {
    /// Bodies, each with the field it is written in.
    Bodies(Vec<(String, Value)>),
    /// Nothing before this is there.
    Waits(Box<RequirementSpec>),
    /// A package, whose variant is applied and whose objects come from elsewhere.
    Package(Box<Package>),
}

/// The component whose source is read.
#[derive(Clone, Copy)]
pub(super) struct SourceContext<'p> {
    pub frame: &'p Frame<'p>,
    pub via: &'p Via,
    /// `group/component`.
    pub path: &'p str,
    pub marks: &'p Marks,
    pub field: &'p str,
}

/// Reads the source of a component.
pub(super) fn read(
    context: &SourceContext<'_>,
    porch: Option<&PorchIntegration>,
    component: &Component,
) -> Result<SourceContent, SpecError> {
    let field = context.field;
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
        return Ok(SourceContent::Bodies(vec![(
            format!("{field}.template"),
            Value::Object(template.clone()),
        )]));
    }
    if let Some(templates) = &component.templates {
        bounded(templates.len(), limits::TEMPLATES, &format!("{field}.templates"), "objects")?;
        let bodies = templates.iter().enumerate();
        let bodies =
            bodies.map(|(index, body)| (format!("{field}.templates[{index}]"), Value::Object(body.clone())));
        return Ok(SourceContent::Bodies(bodies.collect()));
    }
    if let Some(source) = &component.source {
        let map = &source.config_map_ref;
        let field = format!("{field}.source.configMapRef");
        let id = names::source(context.path);
        return Ok(match apply::config_map(context.frame, &map.name, map.key.as_deref(), id, &field)? {
            Bodies::Found(bodies) => SourceContent::Bodies(bodies),
            Bodies::Waits(requirement) => SourceContent::Waits(requirement),
        });
    }
    match &component.porch_package_ref {
        Some(package) => {
            let field = format!("{field}.porchPackageRef");
            porch::read(&SourceContext { field: &field, ..*context }, porch, component, package)
        }
        None => Err(at(field, ONE_SOURCE)),
    }
}
