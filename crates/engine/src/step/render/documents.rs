//! The documents and texts of an action, counted, and what is wrong with them: no object is or is called what a Secret says.

use linchpin_lang::{
    template::{self, RenderClock, RenderError, Template},
    weight,
};
use linchpin_words::limits;
use serde_json::Value;

use super::{Context, RenderProblem};
use crate::{
    contract::{PatchKind, Seen, names_instead},
    plan::{Documents, Step},
    step::secret,
};

/// What a step of a template takes, against one of an expression.
const TEMPLATE_PRICE: u64 = 4;
/// How much of a text is read in one step.
const BYTES_PER_STEP: u64 = 4;

impl Context<'_> {
    /// Takes what a part of the rendering took.
    fn spend(&self, steps: u64) -> Result<(), RenderProblem> {
        self.spent.set(self.spent.get().saturating_add(steps));
        if self.spent.get() > limits::TURN_STEPS {
            let most = limits::TURN_STEPS;
            return Err(self.wrong(&format!("rendering it takes more than {most} steps: split the action")));
        }
        Ok(())
    }

    pub(super) fn documents(&self, documents: &Documents) -> Result<Vec<Value>, RenderProblem> {
        let found = match documents {
            Documents::Text(template) => {
                let rendered = self.rendered(template, &self.data)?.map_err(|error| self.problem(&error))?;
                self.spend(rendered.text.len() as u64 / BYTES_PER_STEP)?;
                let found = template::parse_documents(&self.step.field, &rendered.text)
                    .map_err(|error| RenderProblem::Wrong(error.to_string()))?;
                if self.secrets.any(rendered.reads.iter()) {
                    self.check_text(template, &found)?;
                }
                found
            }
            Documents::Objects(documents) => {
                let rendered: Result<Vec<Value>, RenderProblem> = documents
                    .iter()
                    .map(|document| match &document.template {
                        None => Ok((*document.value).clone()),
                        Some(template) => {
                            let mut taken = 0;
                            let rendered = template.render_counted(&self.data, &self.clock(), &mut taken);
                            self.spend(taken * TEMPLATE_PRICE)?;
                            let rendered = rendered.map_err(|error| self.problem(&error))?;
                            self.spend(weight(&rendered.value, limits::TURN_STEPS))?;
                            if self.reads_secrets(rendered.reads.iter()) {
                                self.check_fields(&document.value)?;
                            }
                            Ok(rendered.value)
                        }
                    })
                    .collect();
                rendered?
            }
        };
        for (index, document) in found.iter().enumerate() {
            self.check(index, document)?;
        }
        Ok(found)
    }

    /// A document must at least say what it is and what it is called.
    fn check(&self, index: usize, document: &Value) -> Result<(), RenderProblem> {
        let text =
            |path: &str| document.pointer(path).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        for (path, name) in
            [("/apiVersion", "apiVersion"), ("/kind", "kind"), ("/metadata/name", "metadata.name")]
        {
            if !text(path) {
                return Err(self.wrong(&format!("document {} has no {name}", index + 1)));
            }
        }
        Ok(())
    }

    /// Refuses a document that is or is called what a Secret says: each of these fields is a template of its own.
    fn check_fields(&self, document: &Value) -> Result<(), RenderProblem> {
        for (path, name) in secret::IDENTITY {
            let text = document.pointer(path).and_then(Value::as_str);
            let Some(Ok(template)) = text.map(|text| Template::parse(&self.step.field, text)) else {
                continue;
            };
            let reads = self.rendered(&template, &self.data)?.map(|rendered| rendered.reads).ok();
            if self.secrets.any(reads.iter().flatten()) {
                return Err(self.wrong(&secret::refusal(name)));
            }
        }
        Ok(())
    }

    /// The same for documents that are one text: they must be the same whatever the Secrets say. Where they cannot be
    /// rendered without them, no name may hold a Secret's value.
    fn check_text(&self, template: &Template, found: &[Value]) -> Result<(), RenderProblem> {
        let concealed = self
            .rendered(template, &self.secrets.concealed(&self.data))?
            .ok()
            .and_then(|rendered| template::parse_documents(&self.step.field, &rendered.text).ok())
            .filter(|concealed| concealed.len() == found.len());
        let is_secret = |text: &str| self.secrets.is_in(text, &self.data);
        for (index, document) in found.iter().enumerate() {
            let other = concealed.as_ref().and_then(|concealed| concealed.get(index));
            let of = format!("of document {}", index + 1);
            for (path, name) in secret::IDENTITY {
                let text = document.pointer(path).and_then(Value::as_str);
                let refused = match other {
                    Some(other) => text != other.pointer(path).and_then(Value::as_str),
                    None => text.is_some_and(is_secret),
                };
                if refused {
                    return Err(self.wrong(&secret::refusal(&format!("{name} {of}"))));
                }
            }
            if secret::has_key(document, other.unwrap_or(&Value::Null), &is_secret) {
                return Err(self.wrong(&secret::refusal(&format!("a key {of}"))));
            }
        }
        Ok(())
    }

    pub(super) fn patch(&self, kind: PatchKind, text: &Template) -> Result<Value, RenderProblem> {
        let text = self.text(text)?;
        self.spend(text.len() as u64 / BYTES_PER_STEP)?;
        let first = text.trim_start().chars().next();
        let parsed = if matches!(first, Some('{' | '[')) {
            serde_json::from_str(&text).map_err(|error| {
                self.wrong(&format!(
                    "patch is not valid JSON at line {} column {}: {}",
                    error.line(),
                    error.column(),
                    plain_json_error(&error)
                ))
            })?
        } else {
            let mut documents = template::parse_documents(&self.step.field, &text)
                .map_err(|error| RenderProblem::Wrong(error.to_string()))?;
            if documents.len() != 1 {
                return Err(self.wrong(&format!("patch must be one document, not {}", documents.len())));
            }
            documents.swap_remove(0)
        };
        let fits = if kind == PatchKind::Json { parsed.is_array() } else { parsed.is_object() };
        if fits {
            Ok(parsed)
        } else if kind == PatchKind::Json {
            Err(self.wrong("patch of type json must be a list of operations"))
        } else {
            Err(self.wrong("patch must be an object"))
        }
    }

    fn clock(&self) -> RenderClock {
        RenderClock::at(self.journal.run.now.into())
    }

    pub(super) fn text(&self, template: &Template) -> Result<String, RenderProblem> {
        self.rendered(template, &self.data)?
            .map(|rendered| rendered.text)
            .map_err(|error| self.problem(&error))
    }

    /// Renders a template and counts what that took.
    fn rendered(
        &self,
        template: &Template,
        data: &Value,
    ) -> Result<Result<template::Rendered, RenderError>, RenderProblem> {
        let mut taken = 0;
        let rendered = template.render_counted(data, &self.clock(), &mut taken);
        self.spend(taken * TEMPLATE_PRICE)?;
        if let Ok(rendered) = &rendered {
            self.reads_secrets(rendered.reads.iter());
        }
        Ok(rendered)
    }

    /// Whether one of these reads a Secret's value; what does is not spoken of.
    fn reads_secrets<'p>(&self, paths: impl Iterator<Item = &'p template::DataPath>) -> bool {
        let reads = self.secrets.any(paths);
        self.discreet.set(self.discreet.get() || reads);
        reads
    }

    fn problem(&self, error: &RenderError) -> RenderProblem {
        match error.missing() {
            Some(path) if path.segments().first().is_some_and(|root| self.plan.roots.contain(root)) => {
                match self.ambiguous(path.segments().get(1)) {
                    Some(why) => RenderProblem::Wrong(why),
                    None => RenderProblem::Missing(format!("{error}{}", self.instead(path.segments()))),
                }
            }
            Some(path) if path.segments().len() == 2 => {
                RenderProblem::Wrong(format!("{error}{}", names_instead(&self.data, path.segments())))
            }
            _ => RenderProblem::Wrong(error.to_string()),
        }
    }

    /// Which keys an object has instead of one that is read of it: `.Dependencies.db.Object.data.host`, `.….Status.host`.
    fn instead(&self, path: &[String]) -> String {
        let [_, key, part, rest @ ..] = path else { return String::new() };
        let within: &[&str] = match part.as_str() {
            "Object" => &[],
            "Spec" => &["spec"],
            "Status" => &["status"],
            "Labels" => &["metadata", "labels"],
            "Annotations" => &["metadata", "annotations"],
            _ => return String::new(),
        };
        let named = |step: &&Step| step.requirement().is_some_and(|one| one.keys.contains(key));
        let requirement = self.plan.steps().iter().find(named).and_then(Step::requirement);
        match requirement.and_then(|requirement| self.world.get(&requirement.want)) {
            Some(Seen::Objects(observed)) => {
                let path: Vec<String> =
                    within.iter().map(|part| (*part).to_owned()).chain(rest.iter().cloned()).collect();
                let item = observed.items.first().filter(|item| !item.is_secret());
                item.map(|item| names_instead(&item.content, &path)).unwrap_or_default()
            }
            _ => String::new(),
        }
    }

    /// A key that two dependencies have is an error only for who reads it.
    fn ambiguous(&self, key: Option<&String>) -> Option<String> {
        let key = key?;
        let owners: Vec<&str> = self
            .plan
            .steps()
            .iter()
            .filter(|step| step.requirement().is_some_and(|requirement| requirement.keys.contains(key)))
            .map(|step| step.field.as_str())
            .collect();
        (owners.len() > 1).then(|| {
            format!("{}: .Dependencies.{key} is the key of both {}", self.step.field, owners.join(" and "))
        })
    }

    fn wrong(&self, message: &str) -> RenderProblem {
        RenderProblem::Wrong(format!("{}: {message}", self.step.field))
    }
}

/// serde's text without its own position, and without any value: it may quote what it read.
fn plain_json_error(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Eof => "the text ends too early; is a closing brace or bracket missing?",
        serde_json::error::Category::Syntax => {
            "unexpected character; is there a brace, bracket or comma too many?"
        }
        serde_json::error::Category::Data | serde_json::error::Category::Io => "it cannot be read",
    }
}
