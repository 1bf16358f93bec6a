//! What a refusal means, and what of it may be shown.
//!
//! Bodies are rendered from anything, Secrets included, and servers like to repeat values in their errors. So of an
//! error about a body only the machine-readable parts pass: reason, field paths, names of managers and of policies.
//! Which right is missing is said by the request that was made, not by the server's prose.

use crate::call::{CallError, Refused, Resource};
use linchpin_engine::contract::{Failure, Right};
use linchpin_words::text;
use std::time::Duration;

/// How many fields an error names.
const FIELDS: usize = 5;

/// The request that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt<'a> {
    pub(super) verb: &'static str,
    pub(super) resource: &'a Resource,
    pub(super) subresource: Option<&'static str>,
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
}

impl Attempt<'_> {
    /// The object as people name it.
    pub(super) fn what(&self) -> String {
        match self.namespace.filter(|_| self.resource.namespaced) {
            Some(namespace) => format!("{} {namespace}/{}", self.resource.kind.kind, self.name),
            None => format!("{} {}", self.resource.kind.kind, self.name),
        }
    }

    fn right(&self, verb: &str) -> Right {
        // The right to create cannot be given for one name.
        let name = (verb != "create" || self.subresource.is_some()).then(|| self.name.to_owned());
        Right {
            verb: verb.to_owned(),
            group: self.resource.kind.group.clone(),
            resource: self.resource.plural.clone(),
            subresource: self.subresource.map(str::to_owned),
            namespace: self.namespace.filter(|_| self.resource.namespaced).map(str::to_owned),
            name,
        }
    }

    /// What the failure of this request means.
    pub(super) fn failure(&self, error: &CallError) -> Failure {
        match error {
            CallError::Unanswered { message, .. } => Failure::Transient(text::line(message)),
            CallError::TooLarge { .. } => Failure::Transient(error.to_string()),
            CallError::Refused(refused) => self.refusal(refused),
        }
    }

    fn refusal(&self, refused: &Refused) -> Failure {
        let Refused { code, status, retry_after } = refused;
        let what = self.what();
        match code {
            401 => Failure::Transient("the API server does not accept the credential".to_owned()),
            403 => self.forbidden(refused),
            404 => self.not_found(refused),
            409 if status.reason == "AlreadyExists" && status.message.contains("object is being deleted") => {
                Failure::Terminating(format!("{what} is being deleted"))
            }
            409 if status.reason == "AlreadyExists" => Failure::AlreadyExists(what),
            409 => match conflicts(refused) {
                Some(fields) => Failure::FieldConflict(format!("{what}: {fields}")),
                None => {
                    Failure::StalePrecondition(format!("{what} has changed or is another one than was seen"))
                }
            },
            429 => Failure::Throttled(retry_after.unwrap_or(Duration::from_secs(1))),
            503 if retry_after.is_some() => Failure::Throttled(retry_after.unwrap_or_default()),
            // A body of the wrong types is the author's fault, whatever the server calls it.
            500 if status.message.contains("failed to create typed patch object") => {
                Failure::Invalid(format!("{what} was refused: {}", reduced(refused)))
            }
            408 | 500.. => Failure::Transient(match webhook(&status.message) {
                Some(name) => format!("{what}: admission webhook {name} failed"),
                None => format!("{what}: {}", refused.summary()),
            }),
            415 => {
                Failure::Invalid(format!("{what}: this kind takes no such patch; write it as a merge patch"))
            }
            422 if self.verb == "patch" && is_immutable(refused) => Failure::Immutable {
                target: super::written(self.resource, self.namespace, self.name),
                message: format!("{what} cannot be changed in place: {}", reduced(refused)),
            },
            _ => Failure::Invalid(format!("{what} was refused: {}", reduced(refused))),
        }
    }

    fn forbidden(&self, refused: &Refused) -> Failure {
        let message = &refused.status.message;
        let causes = refused.status.details.iter().flat_map(|details| &details.causes);
        if causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating") {
            let namespace = self.namespace.unwrap_or_default();
            return Failure::Terminating(format!("namespace {namespace} is being deleted"));
        }
        // The operator's own right, about which the object's author can do nothing; also an API server that has just
        // begun and does not know any rights yet says so.
        if message.contains("cannot impersonate") {
            let namespace = self.namespace.unwrap_or_default();
            return Failure::Transient(format!(
                "the operator may not impersonate ServiceAccounts (to act in namespace {namespace})"
            ));
        }
        // Some requests need two rights: server-side apply of what is not there patch and create, exec get and create.
        // The server's message says which of them is missing.
        let named = ["create", "get", self.verb]
            .into_iter()
            .find(|verb| message.contains(&format!("cannot {verb} ")));
        if let Some(verb) = named.or_else(|| message.is_empty().then_some(self.verb)) {
            return Failure::Forbidden(self.right(verb));
        }
        let what = self.what();
        Failure::Invalid(match (policy(message), message.contains("exceeded quota")) {
            (Some(name), _) => format!("{what} was refused by admission policy {name}"),
            (None, true) => format!("{what} was refused: it exceeds a resource quota"),
            (None, false) => format!("{what} was refused by an admission check"),
        })
    }

    fn not_found(&self, refused: &Refused) -> Failure {
        let what = self.what();
        match &refused.status.details {
            Some(details) if details.kind == "namespaces" => {
                Failure::Gone(format!("namespace {} does not exist", self.namespace.unwrap_or_default()))
            }
            Some(details) if !details.name.is_empty() => Failure::Gone(format!("{what} does not exist")),
            _ => Failure::NotServed(format!(
                "the API server does not serve {} {} now",
                self.resource.kind.api_version(),
                self.resource.kind.kind
            )),
        }
    }
}

/// Whether a refusal is about fields that cannot be changed. Kinds say so in their own words, never in a reason.
fn is_immutable(refused: &Refused) -> bool {
    let causes = refused.status.details.iter().flat_map(|details| &details.causes);
    let mut messages = causes.map(|cause| cause.message.as_str());
    messages.any(|message| {
        message.contains("immutable") || message.contains("updates to ") && message.contains(" are forbidden")
    })
}

/// Fields that other managers hold, and who they are.
fn conflicts(refused: &Refused) -> Option<String> {
    let causes = refused.status.details.iter().flat_map(|details| &details.causes);
    let held: Vec<String> = causes
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| {
            let manager = quoted(&cause.message).unwrap_or("somebody else");
            format!("{} is held by {}", cause.field, text::quote(manager))
        })
        .collect();
    (!held.is_empty()).then(|| text::line(&several(held)))
}

/// Reason and field paths.
fn reduced(refused: &Refused) -> String {
    let causes = refused.status.details.iter().flat_map(|details| &details.causes);
    let fields: Vec<String> = causes
        .filter(|cause| !cause.field.is_empty())
        .map(|cause| format!("{} ({})", cause.field, spelled(&cause.reason)))
        .collect();
    let fields = if fields.is_empty() { typed(&refused.status.message) } else { fields };
    let reason = if refused.status.reason.is_empty() { "Invalid" } else { &refused.status.reason };
    text::line(&if fields.is_empty() { reason.to_owned() } else { format!("{reason}: {}", several(fields)) })
}

/// Field paths in the errors that come without causes: unknown fields, and values of the wrong type.
fn typed(message: &str) -> Vec<String> {
    let mut fields = Vec::new();
    for part in message.split("unknown field ").skip(1) {
        if let Some(field) = quoted(part) {
            fields.push(format!("{field} (unknown field)"));
        }
    }
    // "… : .spec.replicas: expected numeric (int or float), got &value.…": the value comes last and is cut off.
    for line in message.lines() {
        let Some((before, _)) = line.split_once(", got ") else { continue };
        let Some((path, expected)) = before.rsplit_once(": expected ") else { continue };
        let path = path.rsplit(": ").next().unwrap_or_default();
        if path.starts_with('.') {
            fields.push(format!("{path} (expected {expected})"));
        }
    }
    fields
}

fn several(mut parts: Vec<String>) -> String {
    let more = parts.len().saturating_sub(FIELDS);
    parts.truncate(FIELDS);
    let mut text = parts.join(", ");
    if more > 0 {
        text = format!("{text} and {more} more");
    }
    text
}

/// A cause in words.
fn spelled(reason: &str) -> &str {
    match reason {
        "FieldValueInvalid" => "invalid value",
        "FieldValueRequired" => "required",
        "FieldValueDuplicate" => "duplicate value",
        "FieldValueNotSupported" => "unsupported value",
        "FieldValueForbidden" => "forbidden",
        "FieldValueTooLong" => "too long",
        "FieldValueTooMany" => "too many",
        "FieldValueTypeInvalid" => "wrong type",
        "FieldValueNotFound" => "not found",
        other => other,
    }
}

/// What is in the first pair of double quotes.
fn quoted(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}

fn webhook(message: &str) -> Option<String> {
    message.split("failed calling webhook ").nth(1).and_then(quoted).map(text::quote)
}

fn policy(message: &str) -> Option<String> {
    let named = message.split("ValidatingAdmissionPolicy '").nth(1).and_then(|rest| rest.split('\'').next());
    let webhook = message.split("admission webhook ").nth(1).and_then(quoted);
    named.or(webhook).map(text::quote)
}

#[cfg(test)]
mod tests;
