//! The objects of one component: what they are, where they are, and the body that is applied.
//!
//! Kind, name and namespace must be known before anything is applied, since what comes after waits for these very
//! objects: templates in them may read `.Values` and nothing else. Labels and the sync wave are put on the object's own
//! metadata and nowhere below, and win over what the author wrote.

use std::sync::Arc;

use linchpin_api::{BundleGroup, Component};
use linchpin_engine::{
    contract::{Via, Want},
    plan::{Document, SpecError},
    step::secret_refusal,
};
use linchpin_lang::template::{Clock, StaticReads, Template, ValueTemplate};
use linchpin_words::{Gvk, KindWord, Timestamp, keys};
use serde_json::{Map, Value, json};

use super::{path, values::Values};
use crate::{
    action,
    assemble::Frame,
    errors::{self, at},
    kinds::{Kind, Meaning},
    sketch,
};

/// One object of a component.
#[derive(Debug)]
pub(super) struct Object {
    /// Where it is written.
    pub field: String,
    /// What it is, as written.
    pub gvk: Gvk,
    /// What discovery says of that; the open question where it says nothing yet.
    pub kind: Result<Kind, Want>,
    /// Where it is; none for cluster-scoped kinds.
    pub namespace: Option<String>,
    pub name: String,
    /// The body with labels and annotations.
    pub body: Value,
    /// Its strings as templates, where there are any.
    pub template: Option<ValueTemplate>,
}

impl Object {
    /// As people call it.
    pub(super) fn label(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.gvk.kind, self.name),
            None => format!("{} {}", self.gvk.kind, self.name),
        }
    }

    /// What the engine renders.
    pub(super) fn document(&self) -> Document {
        Document { value: Arc::new(self.body.clone()), template: self.template.clone().map(Arc::new) }
    }

    /// What its templates read.
    pub(super) fn reads(&self) -> StaticReads {
        self.template.as_ref().map(ValueTemplate::reads).unwrap_or_default()
    }
}

/// What is put on every object of a component.
pub(super) struct Marks {
    labels: [(&'static str, String); 3],
    wave: String,
}

impl Marks {
    /// The marks of a component: whose it is, and its sync wave.
    pub(super) fn new(bundle: &str, group: &BundleGroup, component: &Component) -> Self {
        let (major, minor) = (group.order.unwrap_or(0), component.order.unwrap_or(0));
        Self {
            labels: [
                (keys::APP_BUNDLE, bundle.to_owned()),
                (keys::APP_BUNDLE_GROUP, group.name.clone()),
                (keys::APP_BUNDLE_COMPONENT, component.name.clone()),
            ],
            wave: (i64::from(major) * 100 + i64::from(minor)).to_string(),
        }
    }

    /// The component they are of.
    pub(super) fn path(&self) -> String {
        path(&self.labels[1].1, &self.labels[2].1)
    }

    /// The sync wave.
    pub(super) fn wave(&self) -> &str {
        &self.wave
    }

    /// The labels, as an object has them.
    pub(super) fn labels(&self) -> Value {
        self.labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
    }

    /// Puts them on an object's metadata.
    fn put_on(&self, body: &mut Value, field: &str) -> Result<(), SpecError> {
        let labels = map(body, "labels", field)?;
        labels.extend(self.labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
        map(body, "annotations", field)?.insert(keys::SYNC_WAVE.to_owned(), json!(self.wave));
        Ok(())
    }
}

/// A map of an object's metadata, made if it is not there.
fn map<'a>(body: &'a mut Value, name: &str, field: &str) -> Result<&'a mut Map<String, Value>, SpecError> {
    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
    let entry = metadata.map(|metadata| metadata.entry(name).or_insert_with(|| json!({})));
    if let Some(entry) = entry {
        if entry.is_null() {
            *entry = json!({});
        }
        if let Value::Object(found) = entry {
            return Ok(found);
        }
    }
    Err(at(field, format!("its metadata.{name} is not a map")))
}

/// Reads one object. With `values` its strings are templates.
pub(super) fn read(
    frame: &Frame<'_>,
    via: &Via,
    field: String,
    body: &Value,
    marks: &Marks,
    values: Option<&Values<'_>>,
) -> Result<Object, SpecError> {
    action::check_document(&field, body)?;
    let mut body = body.clone();
    for path in ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"] {
        if let (Some(values), Some(place)) = (values, body.pointer_mut(path))
            && let Some(text) = place.as_str().filter(|text| sketch::is_template(text))
        {
            *place = Value::String(identity(text, &format!("{field}{}", path.replace('/', ".")), values)?);
        }
    }
    let text = |path: &str| body.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let gvk = Gvk::from_api_version(&text("/apiVersion"), text("/kind"));
    let name = text("/metadata/name");
    let namespace = Some(text("/metadata/namespace")).filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or_else(|| frame.owner.namespace.clone());
    let word = KindWord::from_manifest(Some(&gvk.api_version()), &gvk.kind);
    let meaning = frame.kinds.resolve(via, &word).map_err(|problem| at(format!("{field}.kind"), problem))?;
    let (kind, namespace) = match meaning {
        Meaning::Known(kind) => {
            let place = kind.place(&namespace);
            (Ok(kind), place)
        }
        Meaning::Open(want) => (Err(want), Some(namespace)),
    };
    marks.put_on(&mut body, &field)?;
    let template = if values.is_some() {
        let parsed = ValueTemplate::parse(&field, &body).map_err(|error| errors::template(&error))?;
        (!parsed.is_plain()).then_some(parsed)
    } else {
        None
    };
    Ok(Object { field, gvk, kind, namespace, name, body, template })
}

/// What a step of a template takes, against one of an expression.
const TEMPLATE_PRICE: u64 = 4;

/// The text of a kind, name or namespace.
fn identity(text: &str, field: &str, values: &Values<'_>) -> Result<String, SpecError> {
    let template = Template::parse(field, text).map_err(|error| errors::template(&error))?;
    let reads = template.reads();
    let others = reads.paths.iter().any(|path| path.segments().first().is_none_or(|root| root != "Values"));
    if reads.dynamic || others {
        let problem =
            "what an object is and is called must be known before it is applied: read .Values here only";
        return Err(at(field, problem));
    }
    let mut taken = 1;
    let clock = Clock::at(Timestamp::from_second(0).into());
    let rendered = template.render_counted(values.data()?, &clock, &mut taken);
    values.pay(taken * TEMPLATE_PRICE, field)?;
    let rendered = rendered.map_err(|error| at(field, error))?;
    if values.secrets().any(rendered.reads.iter()) {
        return Err(at(field, secret_refusal("this")));
    }
    Ok(rendered.text)
}
