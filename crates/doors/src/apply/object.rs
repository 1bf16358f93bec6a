//! One object that is applied: what it is, where it is, and its body.
//!
//! Kind, name and namespace must be known before anything is applied, since what comes after waits for this very
//! object: templates in them may read `.Values` and nothing else. Marks are put on the object's own metadata and nowhere
//! below, and win over what the author wrote.

use std::sync::Arc;

use linchpin_engine::{
    contract::{Via, Want},
    plan::{Document, SpecError},
    step::secret_refusal,
};
use linchpin_lang::template::{RenderClock, StaticReads, Template, ValueTemplate};
use linchpin_words::{Gvk, KindWord, Timestamp};
use serde_json::{Map, Value, json};

use super::values::Values;
use crate::{
    action,
    assemble::Frame,
    errors::{self, at},
    kinds::{KindMeaning, ResolvedKind},
    sketch,
};

/// One object that is applied.
#[derive(Debug)]
pub(crate) struct Object {
    /// Where it is written.
    pub field: String,
    /// What it is, as written.
    pub gvk: Gvk,
    /// What discovery says of that; the open question where it says nothing yet.
    pub kind: Result<ResolvedKind, Want>,
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
    pub(crate) fn label(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.gvk.kind, self.name),
            None => format!("{} {}", self.gvk.kind, self.name),
        }
    }

    /// What the engine renders.
    pub(crate) fn document(&self) -> Document {
        Document { value: Arc::new(self.body.clone()), template: self.template.clone().map(Arc::new) }
    }

    /// What its templates read.
    pub(crate) fn reads(&self) -> StaticReads {
        self.template.as_ref().map(ValueTemplate::reads).unwrap_or_default()
    }
}

/// What is put on the metadata of every object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    pub labels: Vec<(&'static str, String)>,
    pub annotations: Vec<(&'static str, String)>,
}

impl Marks {
    /// Puts them on an object's metadata.
    fn put_on(&self, body: &mut Value, field: &str) -> Result<(), SpecError> {
        for (name, marks) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if !marks.is_empty() {
                map(body, name, field)?.extend(as_json(marks));
            }
        }
        Ok(())
    }
}

/// Labels or annotations, as an object has them.
pub(crate) fn as_json(marks: &[(&'static str, String)]) -> impl Iterator<Item = (String, Value)> {
    marks.iter().map(|(key, value)| ((*key).to_owned(), json!(value)))
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
pub(crate) fn read(
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
        KindMeaning::Known(kind) => {
            let place = kind.place(&namespace);
            (Ok(kind), place)
        }
        KindMeaning::Open(want) => (Err(want), Some(namespace)),
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
    let clock = RenderClock::at(Timestamp::from_second(0).into());
    let rendered = template.render_counted(values.data()?, &clock, &mut taken);
    values.pay(taken * TEMPLATE_PRICE, field)?;
    let rendered = rendered.map_err(|error| at(field, error))?;
    if values.secrets().any(rendered.reads.iter()) {
        return Err(at(field, secret_refusal("this")));
    }
    Ok(rendered.text)
}
