//! Rendering: from an admitted action to the verbs that carry it out.
//!
//! Happens at admission only, on the world that the action was admitted on. A value that is missing under
//! `.Dependencies` makes the action wait; anything else that goes wrong is the author's to mend.

use std::{collections::BTreeMap, sync::Arc};

use linchpin_lang::template::{self, Clock, RenderError, Template};
use serde_json::{Map, Value, json};

use super::{
    data::{dependency_data, now_text, values},
    inventory::same_object,
    judge::View,
};
use crate::{
    contract::{ExecOrder, Force, PatchKind, Propagation, ReadSet, Target, Verb, World},
    journal::Journal,
    plan::{Action, Body, Documents, Drift, Plan, Step, target_of_document},
};

/// What an action turned out to be.
pub(super) struct Rendered {
    /// What to do, wave by wave, last wave first: the order in which waves are taken off the end.
    pub waves: Vec<Vec<Verb>>,
    /// The objects it will make or write, as far as they are named.
    pub targets: Vec<Target>,
}

/// Why an action could not be rendered.
pub(super) enum Problem {
    /// A value is not there yet.
    Missing(String),
    /// Somebody has to mend the text.
    Wrong(String),
}

/// Renders an action on the world it was admitted on.
pub(super) fn render(
    plan: &Plan,
    step: &Step,
    action: &Action,
    journal: &Journal,
    views: &[View],
    world: &World,
) -> Result<Rendered, Problem> {
    if let Some(recreate) = journal.steps.get(&step.id).and_then(|record| record.recreate.as_ref()) {
        let verb = Verb::Delete {
            target: recreate.target.clone(),
            uid: Some(recreate.uid.clone()),
            creator: Some(plan.uid.clone()),
            propagation: Propagation::Background,
        };
        return Ok(Rendered { waves: vec![vec![verb]], targets: Vec::new() });
    }
    let context = Context { plan, step, journal, data: data(plan, action, journal, views, world) };
    let verbs = match &action.body {
        Body::Create { documents, existing } => context
            .documents(documents)?
            .into_iter()
            .map(|body| Verb::Create {
                body: Arc::new(body),
                default_namespace: action.default_namespace.clone(),
                manager: action.manager.clone(),
                existing: *existing,
                creator: plan.uid.clone(),
            })
            .collect(),
        Body::Apply { documents, existing } => context
            .documents(documents)?
            .into_iter()
            .map(|body| Verb::Apply {
                force: force(step, action, journal, &body),
                yields: action.drift().map(Drift::yields).unwrap_or_default(),
                body: Arc::new(body),
                default_namespace: action.default_namespace.clone(),
                manager: action.manager.clone(),
                existing: *existing,
                creator: plan.uid.clone(),
                owner: action.owner.clone(),
            })
            .collect(),
        Body::Patch { target, kind, text, delivery } => {
            let body = context.patch(*kind, text)?;
            vec![Verb::Patch {
                target: target.clone(),
                kind: *kind,
                body: Arc::new(body),
                manager: action.manager.clone(),
                once: delivery.is_some(),
            }]
        }
        Body::Delete { target, propagation } => {
            vec![Verb::Delete { target: target.clone(), uid: None, creator: None, propagation: *propagation }]
        }
        Body::Wait(_) => Vec::new(),
        Body::Exec { target, container, command, .. } => {
            let command: Result<Vec<String>, Problem> =
                command.iter().map(|word| context.text(word)).collect();
            let record = journal.steps.get(&step.id);
            vec![Verb::Exec(ExecOrder {
                namespace: target.namespace.clone().unwrap_or_else(|| action.default_namespace.clone()),
                pod: target.name.clone(),
                container: container.clone(),
                command: command?,
                token: record.and_then(|record| record.token.clone()).unwrap_or_default(),
            })]
        }
        Body::Notice(notice) => vec![Verb::Notice(notice.clone())],
    };
    let targets = verbs.iter().filter_map(|verb| target_of(verb, &action.default_namespace)).collect();
    Ok(Rendered { waves: in_waves(verbs), targets })
}

/// What must be there before the rest of the same action: Namespaces and definitions of kinds.
fn in_waves(verbs: Vec<Verb>) -> Vec<Vec<Verb>> {
    let (first, rest): (Vec<Verb>, Vec<Verb>) = verbs.into_iter().partition(|verb| match verb {
        Verb::Apply { body, .. } | Verb::Create { body, .. } => {
            matches!(body.get("kind").and_then(Value::as_str), Some("Namespace" | "CustomResourceDefinition"))
        }
        _ => false,
    });
    [rest, first].into_iter().filter(|wave| !wave.is_empty()).collect()
}

fn target_of(verb: &Verb, default_namespace: &str) -> Option<Target> {
    let (Verb::Apply { body, .. } | Verb::Create { body, .. }) = verb else {
        return None;
    };
    target_of_document(body, default_namespace)
}

/// Whether an action may take back what others hold: only one that keeps what it wrote, and not on first contact.
fn force(step: &Step, action: &Action, journal: &Journal, body: &Value) -> Force {
    if action.drift().is_none() {
        return Force::Never;
    }
    let Some(target) = target_of_document(body, &action.default_namespace) else {
        return Force::IfCreated;
    };
    let written = journal.made_by(&step.id).any(|row| row.uid.is_some() && same_object(&row.target, &target));
    if written { Force::Always } else { Force::IfCreated }
}

struct Context<'a> {
    plan: &'a Plan,
    step: &'a Step,
    journal: &'a Journal,
    data: Value,
}

impl Context<'_> {
    fn documents(&self, documents: &Documents) -> Result<Vec<Value>, Problem> {
        let found = match documents {
            Documents::Text(template) => {
                let text = self.text(template)?;
                template::parse_documents(&self.step.field, &text)
                    .map_err(|error| Problem::Wrong(error.to_string()))?
            }
            Documents::Objects(documents) => {
                let rendered: Result<Vec<Value>, Problem> = documents
                    .iter()
                    .map(|document| match &document.template {
                        None => Ok((*document.value).clone()),
                        Some(template) => match template.render(&self.data, &self.clock()) {
                            Ok(rendered) => Ok(rendered.value),
                            Err(error) => Err(self.problem(&error)),
                        },
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
    fn check(&self, index: usize, document: &Value) -> Result<(), Problem> {
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

    fn patch(&self, kind: PatchKind, text: &Template) -> Result<Value, Problem> {
        let text = self.text(text)?;
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
                .map_err(|error| Problem::Wrong(error.to_string()))?;
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

    fn clock(&self) -> Clock {
        Clock::at(self.journal.run.now.into())
    }

    fn text(&self, template: &Template) -> Result<String, Problem> {
        template
            .render(&self.data, &self.clock())
            .map(|rendered| rendered.text)
            .map_err(|error| self.problem(&error))
    }

    fn problem(&self, error: &RenderError) -> Problem {
        match error.missing() {
            Some(path)
                if path
                    .segments()
                    .first()
                    .is_some_and(|root| root == "Dependencies" || root == "Components") =>
            {
                match self.ambiguous(path.segments().get(1)) {
                    Some(why) => Problem::Wrong(why),
                    None => Problem::Missing(error.to_string()),
                }
            }
            _ => Problem::Wrong(error.to_string()),
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

    fn wrong(&self, message: &str) -> Problem {
        Problem::Wrong(format!("{}: {message}", self.step.field))
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

/// The data of one action: only the dependencies it reads, unless that cannot be known.
fn data(plan: &Plan, action: &Action, journal: &Journal, views: &[View], world: &World) -> Value {
    let mut dependencies: BTreeMap<&str, Option<Value>> = BTreeMap::new();
    let whole = ReadSet::whole();
    for (position, step) in plan.steps().iter().enumerate() {
        let Some(requirement) = step.requirement() else {
            continue;
        };
        let reads = match &action.reads {
            Some(reads) => reads.get(&step.id),
            None => Some(&whole),
        };
        let Some(reads) = reads else { continue };
        let entry = dependency_data(requirement, &views[position], world, reads);
        for key in &requirement.keys {
            let twice = dependencies.contains_key(key.as_str());
            dependencies.insert(key, (!twice).then(|| entry.clone()));
        }
    }
    // A key that two dependencies have is left out: reading it is an error that names both.
    let dependencies: Map<String, Value> =
        dependencies.into_iter().filter_map(|(key, entry)| Some((key.to_owned(), entry?))).collect();
    // What an object waits for and what it made itself are read alike, by two names.
    let mut data = json!({"Now": now_text(journal.run.now), "Components": dependencies});
    data["Dependencies"] = data["Components"].clone();
    if action.reads_values {
        data["Values"] = values(&plan.inputs, &plan.values, world);
    }
    data
}
