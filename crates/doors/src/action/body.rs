//! What an action does: its body, with every template parsed.

use std::{sync::Arc, time::Duration};

use linchpin_api::{
    Action,
    action::{
        ActionType, Adopt, Delivery as DeliveryWord, Exec, OnExisting, Patch, PatchType,
        Propagation as PropagationWord,
    },
};
use linchpin_engine::{
    contract::{EffectTarget, Existing, PatchKind, Propagation, Right, Via},
    plan::{ActionBody, Delivery, Document, Documents, Readings, SpecError},
    rights::ObjectAccess,
};
use linchpin_lang::template::{StaticReads, Template, ValueTemplate, parse_documents};
use linchpin_words::{Gvk, limits};
use serde_json::Value;

use super::{
    patch,
    rights::{self, ActionRights},
};
use crate::{
    assemble::{Frame, Keys},
    errors::{self, at, bounded, duration},
    kinds::KindMeaning,
    sketch,
};

/// How long a command may run where nothing is said: long enough for a migration, short enough to notice a hang.
const EXEC_TIMEOUT: Duration = Duration::from_mins(5);

/// A body, and the rights that carrying it out needs as far as they can be known.
pub(super) struct DraftedBody {
    pub body: ActionBody,
    pub needs: ActionRights,
}

/// What an entry says is to be done.
pub(super) fn compile(
    frame: &Frame<'_>,
    entry: &Action,
    via: &Via,
    field: &str,
    readings: &mut Readings,
    keys: &Keys,
) -> Result<DraftedBody, SpecError> {
    let mut work = Work { frame, via, raw: entry.raw, readings, keys };
    let missing = |what: &str| at(field, format!("an action of type {} needs {what}", entry.kind.as_str()));
    match entry.kind {
        ActionType::Create => {
            let body = entry.resource.clone().ok_or_else(|| missing("resource"))?;
            let (existing, deed) = match entry.on_existing.unwrap_or_default() {
                OnExisting::Skip => (Existing::Skip, ObjectAccess::Create),
                OnExisting::Adopt => (Existing::Adopt, ObjectAccess::Apply),
                OnExisting::Fail => (Existing::Fail, ObjectAccess::Create),
            };
            let bodies = [(format!("{field}.resource"), Value::Object(body))];
            let (documents, needs) = work.objects(&bodies, deed)?;
            Ok(DraftedBody { body: ActionBody::Create { documents, existing }, needs })
        }
        ActionType::Template => {
            let text = entry.template.as_ref().ok_or_else(|| missing("template"))?;
            let (documents, needs) = work.documents(&format!("{field}.template"), text)?;
            Ok(DraftedBody { body: ActionBody::Apply { documents, existing: existing(entry.adopt) }, needs })
        }
        ActionType::Apply => {
            let (documents, needs) = work.applied(entry, field)?;
            Ok(DraftedBody { body: ActionBody::Apply { documents, existing: existing(entry.adopt) }, needs })
        }
        ActionType::Patch => {
            let change = entry.patch.as_ref().ok_or_else(|| missing("patch"))?;
            work.patch(change, &format!("{field}.patch"))
        }
        ActionType::Delete => {
            let delete = entry.delete.as_ref().ok_or_else(|| missing("delete"))?;
            let (target, rights) =
                work.target(&delete.target, ObjectAccess::Delete, &format!("{field}.delete"))?;
            let propagation = match delete.propagation.unwrap_or_default() {
                PropagationWord::Background => Propagation::Background,
                PropagationWord::Foreground => Propagation::Foreground,
                PropagationWord::Orphan => Propagation::Orphan,
            };
            Ok(DraftedBody {
                body: ActionBody::Delete { target, propagation },
                needs: ActionRights::only(rights),
            })
        }
        ActionType::Wait => {
            let pause = duration(entry.wait.as_ref(), &format!("{field}.wait"))?;
            Ok(DraftedBody {
                body: ActionBody::Wait(pause.ok_or_else(|| missing("wait"))?),
                needs: ActionRights::default(),
            })
        }
        ActionType::Exec => {
            let exec = entry.exec.as_ref().ok_or_else(|| missing("exec"))?;
            work.exec(exec, &format!("{field}.exec"))
        }
    }
}

/// What happens to an object that somebody else made. Plain server-side apply where nothing is said: fields that
/// others hold are never taken, and a field that is, is a visible conflict.
fn existing(adopt: Option<Adopt>) -> Existing {
    match adopt {
        None => Existing::Apply,
        Some(Adopt::Never) => Existing::Fail,
        Some(Adopt::Adopt) => Existing::Adopt,
    }
}

struct Work<'a> {
    frame: &'a Frame<'a>,
    via: &'a Via,
    raw: bool,
    readings: &'a mut Readings,
    keys: &'a Keys,
}

impl Work<'_> {
    /// Notes what a template reads, and refuses keys that no dependency has.
    fn note(&mut self, reads: &StaticReads, field: &str) -> Result<(), SpecError> {
        self.keys.check(reads, field)?;
        self.readings.add(reads, self.keys.roots(), self.keys.steps());
        Ok(())
    }

    /// A text as a template; with `raw`, as it is.
    fn text(&mut self, field: &str, text: &str) -> Result<Arc<Template>, SpecError> {
        let literal;
        let source = if self.raw {
            literal = text.replace("{{", r#"{{ "{{" }}"#);
            &literal
        } else {
            text
        };
        let template = Template::parse(field, source).map_err(|error| errors::template(&error))?;
        self.note(&template.reads(), field)?;
        Ok(Arc::new(template))
    }

    /// Objects whose strings are templates.
    fn objects(
        &mut self,
        bodies: &[(String, Value)],
        deed: ObjectAccess,
    ) -> Result<(Documents, ActionRights), SpecError> {
        let mut documents = Vec::with_capacity(bodies.len());
        let mut needs = ActionRights::default();
        for (field, body) in bodies {
            check_document(field, body)?;
            needs.extend(rights::of_document(self.frame, self.via, deed, body, field));
            let template = if self.raw {
                None
            } else {
                Some(ValueTemplate::parse(field, body).map_err(|error| errors::template(&error))?)
            };
            if let Some(template) = &template {
                self.note(&template.reads(), field)?;
            }
            let template = template.filter(|template| !template.is_plain()).map(Arc::new);
            documents.push(Document { value: Arc::new(body.clone()), template });
        }
        Ok((Documents::Objects(documents), needs))
    }

    /// A text of YAML documents.
    fn documents(&mut self, field: &str, text: &str) -> Result<(Documents, ActionRights), SpecError> {
        let template = self.text(field, text)?;
        let fixed = self.raw || !sketch::is_template(text);
        let mut certain = true;
        let seen = if fixed {
            let found = parse_documents(field, text).map_err(|error| {
                let (line, column) = error.position();
                at(field, format!("at line {line} column {column}: {}", error.message()))
            })?;
            if found.is_empty() {
                return Err(at(field, "there is no document in it"));
            }
            for document in &found {
                check_document(field, document)?;
            }
            found
        } else {
            sketch::documents(text).unwrap_or_else(|| {
                certain = false;
                sketch::outlines(text)
            })
        };
        let mut needs = ActionRights::default();
        for document in &seen {
            needs.extend(rights::of_document(self.frame, self.via, ObjectAccess::Apply, document, field));
        }
        if !certain {
            needs.makes.clear();
        }
        Ok((Documents::Text(template), needs))
    }

    /// The objects of an `apply` action, in any of their forms.
    fn applied(&mut self, entry: &Action, field: &str) -> Result<(Documents, ActionRights), SpecError> {
        let inner = format!("{field}.apply");
        match (&entry.resource, &entry.apply) {
            (Some(body), None) => {
                let bodies = [(format!("{field}.resource"), Value::Object(body.clone()))];
                self.objects(&bodies, ObjectAccess::Apply)
            }
            (None, Some(Value::String(text))) => self.documents(&inner, text),
            (None, Some(body @ Value::Object(_))) => {
                self.objects(&[(inner, body.clone())], ObjectAccess::Apply)
            }
            (None, Some(Value::Array(bodies))) if !bodies.is_empty() => {
                bounded(bodies.len(), limits::RENDERED_OBJECTS, &inner, "objects")?;
                let bodies: Vec<(String, Value)> = bodies
                    .iter()
                    .enumerate()
                    .map(|(index, body)| (format!("{inner}[{index}]"), body.clone()))
                    .collect();
                self.objects(&bodies, ObjectAccess::Apply)
            }
            (None, Some(_)) => {
                Err(at(inner, "give an object, a list of objects, or a text of YAML documents"))
            }
            _ => Err(at(field, "an action of type apply needs one of apply and resource")),
        }
    }

    fn patch(&mut self, change: &Patch, field: &str) -> Result<DraftedBody, SpecError> {
        let kind = match change.patch_type.unwrap_or_default() {
            PatchType::Strategic => PatchKind::Strategic,
            PatchType::Merge => PatchKind::Merge,
            PatchType::Json => PatchKind::Json,
            PatchType::Apply => PatchKind::Apply,
        };
        let (target, rights) = self.target(&change.target, ObjectAccess::Patch, field)?;
        let place = format!("{field}.patch");
        let (source, surplus) = patch::without_surplus(&change.patch, self.raw);
        if surplus > 0 {
            self.frame.remark(&place, "what closes nothing at its end is left out");
        }
        let text = self.text(&place, source)?;
        let seen = patch::check(source, kind, self.raw, &place)?;
        let delivery = patch::delivery(kind, seen.as_ref());
        Ok(DraftedBody {
            body: ActionBody::Patch { target, kind, text, delivery },
            needs: ActionRights::only(rights),
        })
    }

    fn exec(&mut self, exec: &Exec, field: &str) -> Result<DraftedBody, SpecError> {
        if !["pod", "pods", "po"].contains(&exec.target.kind.to_ascii_lowercase().as_str()) {
            let problem = format!("a command runs in a Pod, not in a {}", exec.target.kind);
            return Err(at(format!("{field}.target.kind"), problem));
        }
        if exec.command.is_empty() {
            return Err(at(format!("{field}.command"), "it is empty; give a program and its arguments"));
        }
        bounded(exec.command.len(), limits::COMMAND, &format!("{field}.command"), "words")?;
        let (target, rights) = self.target(&exec.target, ObjectAccess::Exec, field)?;
        let command: Result<Vec<Arc<Template>>, SpecError> = exec
            .command
            .iter()
            .enumerate()
            .map(|(index, word)| self.text(&format!("{field}.command[{index}]"), word))
            .collect();
        let delivery = match exec.delivery.unwrap_or_default() {
            DeliveryWord::AtMostOnce => Delivery::AtMostOnce,
            DeliveryWord::AtLeastOnce => Delivery::AtLeastOnce,
        };
        let timeout = duration(exec.timeout.as_ref(), &format!("{field}.timeout"))?.unwrap_or(EXEC_TIMEOUT);
        if timeout > Duration::from_secs(limits::EXEC_SECONDS) {
            let problem = "a command may run for an hour at most (1h): what takes longer belongs in a Job";
            return Err(at(format!("{field}.timeout"), problem));
        }
        let body = ActionBody::Exec {
            target,
            container: exec.container.clone(),
            command: command?,
            timeout,
            delivery,
        };
        Ok(DraftedBody { body, needs: ActionRights::only(rights) })
    }

    /// One object that is named field by field, resolved as far as it can be.
    fn target(
        &self,
        target: &linchpin_api::common::Target,
        deed: ObjectAccess,
        field: &str,
    ) -> Result<(EffectTarget, Vec<Right>), SpecError> {
        let namespace = target.namespace.clone().unwrap_or_else(|| self.frame.owner.namespace.clone());
        let word = target.kind_word();
        let meaning = self.frame.kinds.resolve(self.via, &word);
        match meaning.map_err(|problem| at(format!("{field}.target.kind"), problem))? {
            KindMeaning::Known(kind) => {
                let namespace = kind.place(&namespace);
                let needed = linchpin_engine::rights::changing(
                    deed,
                    &kind.resource(),
                    namespace.as_ref(),
                    Some(&target.name),
                );
                Ok((EffectTarget { kind: kind.word(), namespace, name: target.name.clone() }, needed))
            }
            KindMeaning::Open(_) => Ok((
                EffectTarget { kind: word, namespace: Some(namespace), name: target.name.clone() },
                Vec::new(),
            )),
        }
    }
}

/// A document must at least say what it is and what it is called.
pub(crate) fn check_document(field: &str, document: &Value) -> Result<(), SpecError> {
    if !document.is_object() {
        return Err(at(field, "it is not an object with apiVersion, kind and metadata.name"));
    }
    for (path, name) in
        [("/apiVersion", "apiVersion"), ("/kind", "kind"), ("/metadata/name", "metadata.name")]
    {
        let given = document.pointer(path).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        if !given {
            return Err(at(field, format!("it has no {name}")));
        }
    }
    check_kind(field, document)
}

/// What a document is must be something that an API server can serve, unless a template says what it is.
fn check_kind(field: &str, document: &Value) -> Result<(), SpecError> {
    let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if sketch::is_template(api_version) || sketch::is_template(kind) {
        return Ok(());
    }
    match Gvk::from_api_version(api_version, kind).problem() {
        Some(problem) => Err(at(field, problem)),
        None => Ok(()),
    }
}
