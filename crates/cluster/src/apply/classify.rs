//! What a refusal means, and what of it may be shown.
//!
//! The server's own sentence says best what is wrong, and is kept. But bodies are rendered from anything, Secrets
//! included, and servers like to repeat values in their errors: of an error about a body that holds a Secret's value, or
//! about a kind that holds secrets, only the machine-readable parts pass: field paths, what is wrong with each in our
//! words, names of managers, policies and quotas. Which right is missing is said by the request that was made, not by
//! the server's prose.

use crate::call::{CallError, Refused, Resource};
use kube::core::response::StatusCause;
use linchpin_engine::contract::{Failure, Right};
use linchpin_words::text;
use std::time::Duration;

/// How many fields an error names.
const FIELDS: usize = 5;

/// The request that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttemptedRequest<'a> {
    pub(super) verb: &'static str,
    pub(super) resource: &'a Resource,
    pub(super) subresource: Option<&'static str>,
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
    /// Whether something in the body stems from a Secret.
    pub(super) discreet: bool,
}

impl AttemptedRequest<'_> {
    /// Whether the server's own words may be shown.
    fn shows_server_text(&self) -> bool {
        !self.discreet && !self.resource.kind.kind.contains("Secret")
    }

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
                Failure::Invalid(format!("{what} was refused: {}", self.problems(refused)))
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
                message: format!("{what} cannot be changed in place: {}", self.problems(refused)),
            },
            _ => Failure::Invalid(match denial(&status.message) {
                Some(denial) => self.denied(&denial),
                None => format!("{what} was refused: {}", self.problems(refused)),
            }),
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
        if let Some(denial) = denial(message) {
            return Failure::Invalid(self.denied(&denial));
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
        let quota = message.split("exceeded quota: ").nth(1).and_then(|rest| rest.split(',').next());
        let said = message.split_once(" is forbidden: ").map_or(message.as_str(), |(_, said)| said);
        Failure::Invalid(match quota {
            _ if self.shows_server_text() => text::line(&format!("{what} was refused: {said}")),
            Some(quota) => format!("{what} was refused: it exceeds resource quota {}", text::quote(quota)),
            None => format!("{what} was refused by an admission check"),
        })
    }

    /// Which policy or webhook denied, and why.
    fn denied(&self, denial: &Denial<'_>) -> String {
        let Denial { by, name, why } = denial;
        let why =
            if self.shows_server_text() && !why.is_empty() { format!(": {why}") } else { String::new() };
        text::line(&format!("{} was refused by {by} {}{why}", self.what(), text::quote(name)))
    }

    /// What is wrong with the body, field by field.
    fn problems(&self, refused: &Refused) -> String {
        let causes = refused.status.details.iter().flat_map(|details| &details.causes);
        let problem = |cause: &StatusCause| match cause.message.as_str() {
            said if self.shows_server_text() && !said.is_empty() => format!("{}: {said}", path(&cause.field)),
            _ => format!("{}: {}", path(&cause.field), spelled(&cause.reason)),
        };
        let fields: Vec<String> = causes.filter(|cause| !cause.field.is_empty()).map(problem).collect();
        let fields = if fields.is_empty() { typed(&refused.status.message) } else { fields };
        let (reason, message) = (&refused.status.reason, &refused.status.message);
        text::line(&match fields.is_empty() {
            false => several(fields),
            true if self.shows_server_text() && !message.is_empty() => said(message).to_owned(),
            true if reason.is_empty() => "Invalid".to_owned(),
            true => reason.clone(),
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

/// A field as people write it, from the top.
fn path(field: &str) -> String {
    if field.starts_with(['.', '<']) { field.to_owned() } else { format!(".{field}") }
}

/// The server's sentence without what it says about itself and the object.
fn said(message: &str) -> &str {
    ["\" is invalid: ", " is invalid: ", " is forbidden: "]
        .iter()
        .find_map(|before| message.split_once(before))
        .map_or(message, |(_, said)| said)
}

/// Fields in the errors that come without causes: unknown fields, and values of the wrong type.
fn typed(message: &str) -> Vec<String> {
    let mut fields = Vec::new();
    for part in message.split("unknown field ").skip(1) {
        if let Some(field) = quoted(part) {
            fields.push(format!("{}: unknown field", path(field)));
        }
    }
    // "… : .spec.replica: field not declared in schema", and "… : .spec.replicas: expected numeric (int or float), got
    // &value.…": the value comes last and is cut off.
    for line in message.lines() {
        for (before, problem) in
            line.match_indices(": field not declared in schema").map(|(at, _)| (&line[..at], "unknown field"))
        {
            if let Some(field) = last_path(before) {
                fields.push(format!("{field}: {problem}"));
            }
        }
        let Some((before, _)) = line.split_once(", got ") else { continue };
        let Some((before, expected)) = before.rsplit_once(": expected ") else { continue };
        if let Some(field) = last_path(before) {
            fields.push(format!("{field}: expected {expected}"));
        }
    }
    // "… json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
    if let Some((_, rest)) = message.split_once("json: cannot unmarshal ")
        && let Some((found, rest)) = rest.split_once(" into Go struct field ")
        && let Some((field, kind)) = rest.split_once(" of type ")
    {
        let field = field.split_once('.').map_or(field, |(_, field)| field);
        let word = |text: &'_ str| text.split_whitespace().next().unwrap_or_default().to_owned();
        let (kind, found) = (word(kind), word(found));
        fields.push(format!("{}: expected {}, got {found}", path(field), kind_of_value(&kind)));
    }
    fields
}

/// The path that a text ends in.
fn last_path(text: &str) -> Option<&str> {
    text.rsplit(": ").next().map(str::trim).filter(|path| path.starts_with('.'))
}

/// A type of Go in words.
fn kind_of_value(kind: &str) -> &str {
    match kind.trim_start_matches('*') {
        "int" | "int32" | "int64" | "float64" => "a number",
        "bool" => "true or false",
        "string" => "a text",
        kind if kind.starts_with("[]") => "a list",
        kind if kind.starts_with("map[") => "an object",
        _ => "something else",
    }
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

/// Who denied a request, and why.
struct Denial<'a> {
    by: &'static str,
    name: &'a str,
    why: &'a str,
}

/// A denial by a policy or a webhook; both name themselves, and nothing else in the answer does.
fn denial(message: &str) -> Option<Denial<'_>> {
    let policy =
        message.split_once("ValidatingAdmissionPolicy '").and_then(|(_, rest)| rest.split_once('\''));
    if let Some((name, rest)) = policy {
        let why = rest.split_once(" denied request: ").map_or("", |(_, why)| why);
        return Some(Denial { by: "admission policy", name, why });
    }
    let (_, rest) = message.split_once("admission webhook \"")?;
    let (name, rest) = rest.split_once('"')?;
    let why = rest.strip_prefix(" denied the request")?;
    Some(Denial { by: "admission webhook", name, why: why.strip_prefix(": ").unwrap_or_default() })
}

#[cfg(test)]
mod tests;
