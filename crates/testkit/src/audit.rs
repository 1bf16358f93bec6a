//! The audit-log witness: what really happened, in the API server's own words.
//!
//! The server writes a line before it answers, so what a test has seen answered is in the log. Times have microseconds
//! and compare as text.

use std::{
    fmt,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::OPERATOR;

/// One request, as the server saw it.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` …
    pub verb: String,
    /// API group; empty for the core.
    pub group: String,
    /// Plural name of the kind; empty for paths such as `/version`.
    pub resource: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// `status`, say.
    pub subresource: String,
    /// Who sent it.
    pub user: String,
    /// Whom that one impersonated.
    pub acting_as: Option<String>,
    /// The answer.
    pub code: u64,
    /// What the answer says, where it is a refusal.
    pub message: String,
    /// `ResponseStarted` for a watch that goes on, `ResponseComplete` otherwise.
    pub stage: String,
    /// When the request came in.
    pub received: String,
    /// When this line was written: for what is complete, when it was answered.
    pub written: String,
    /// The whole path.
    pub uri: String,
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actor = self.acting_as.as_deref().unwrap_or("-");
        let (received, verb, uri, code) = (&self.received, &self.verb, &self.uri, self.code);
        write!(
            f,
            "{received} {verb} {uri} → {code} ({} as {actor}, {}/{})",
            self.user, self.resource, self.name
        )
    }
}

impl Event {
    fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text =
            |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self {
            verb: text("/verb"),
            group: text("/objectRef/apiGroup"),
            resource: text("/objectRef/resource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            subresource: text("/objectRef/subresource"),
            user: text("/user/username"),
            acting_as: value.pointer("/impersonatedUser/username").and_then(Value::as_str).map(str::to_owned),
            code: value.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default(),
            message: text("/responseStatus/message"),
            stage: text("/stage"),
            received: text("/requestReceivedTimestamp"),
            written: text("/stageTimestamp"),
            uri: text("/requestURI"),
        })
    }

    /// Whether the operator sent it, as itself or as somebody else.
    pub fn is_by_operator(&self) -> bool {
        self.user == OPERATOR
    }

    /// Whether it changed something.
    pub fn is_write(&self) -> bool {
        let changes =
            matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection");
        let is_question = self.resource.ends_with("accessreviews");
        changes && !is_question && (200..300).contains(&self.code) && !self.uri.contains("dryRun=")
    }

    /// Whether the operator may do this as itself: look after its own kinds, leases, events and access reviews, and
    /// read what is served, which namespaces and which ServiceAccounts there are.
    pub fn is_the_operators_own(&self) -> bool {
        let reads = matches!(self.verb.as_str(), "get" | "list" | "watch");
        match (self.group.as_str(), self.resource.as_str()) {
            ("coordination.k8s.io", "leases")
            | ("events.k8s.io", "events")
            | ("app.example.com", "bundlerevisions") => true,
            ("tools.kubestellar.io" | "linchpin.dev" | "app.example.com", _) => {
                reads || matches!(self.verb.as_str(), "patch" | "update")
            }
            ("authorization.k8s.io", _) => self.verb == "create",
            (_, "")
            | ("apiextensions.k8s.io", "customresourcedefinitions")
            | ("apiregistration.k8s.io", "apiservices")
            | ("", "namespaces" | "serviceaccounts") => reads,
            _ => false,
        }
    }
}

/// Reads the log of one API server.
#[derive(Clone, Debug)]
pub struct Audit {
    path: PathBuf,
    from: u64,
}

impl Audit {
    /// What happens from now on.
    pub fn from_now(path: &Path) -> Self {
        let from = path.metadata().map(|file| file.len()).unwrap_or_default();
        Self { path: path.to_owned(), from }
    }

    /// What has happened since the API server began.
    pub fn from_the_beginning(path: &Path) -> Self {
        Self { path: path.to_owned(), from: 0 }
    }

    /// Everything since then, in the order in which it was written.
    pub fn events(&self) -> Vec<Event> {
        let mut file = File::open(&self.path).unwrap();
        file.seek(SeekFrom::Start(self.from)).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).lines().filter_map(Event::read).collect()
    }

    /// What the operator has changed for users in a namespace, or in all if it is empty: not its own kinds, no events.
    pub fn user_writes(&self, namespace: &str) -> Vec<Event> {
        let directed = |event: &Event| {
            event.is_by_operator()
                && event.is_write()
                && event.acting_as.is_some()
                && (namespace.is_empty() || event.namespace == namespace)
        };
        self.events().into_iter().filter(directed).collect()
    }

    /// The first write to an object, by anyone.
    #[track_caller]
    pub fn first_write(&self, resource: &str, namespace: &str, name: &str) -> Event {
        let events = self.events();
        let found = events.into_iter().find(|event| {
            event.is_write()
                && event.resource == resource
                && event.namespace == namespace
                && event.name == name
        });
        found.unwrap_or_else(|| panic!("nobody wrote {resource} {namespace}/{name}"))
    }

    /// What the operator did in its own name and must not do so. A request as somebody else that was refused before it
    /// became one is none of these: an API server that has just begun knows no rights.
    pub fn overreach(&self) -> Vec<Event> {
        let events = self.events().into_iter();
        events
            .filter(|event| {
                event.is_by_operator()
                    && event.acting_as.is_none()
                    && !event.is_the_operators_own()
                    && !event.message.contains("cannot impersonate")
            })
            .collect()
    }

    /// What the operator changed for an object of ours, deletions aside: told from the field manager.
    pub fn writes_for(&self, kind: &str, namespace: &str, name: &str) -> Vec<Event> {
        let manager = format!("fieldManager=linchpin%3A{kind}%3A{namespace}%2F{name}%3A");
        let mut writes = self.user_writes("");
        writes.retain(|event| event.uri.contains(&manager));
        writes
    }

    /// What the operator asked or wrote for a namespace, watches that merely go on or end aside.
    pub fn requests_for(&self, namespace: &str) -> Vec<Event> {
        let account = format!("system:serviceaccount:{namespace}:");
        let about = |event: &Event| {
            event.is_by_operator()
                && event.verb != "watch"
                && event.resource != "leases"
                && (event.namespace == namespace
                    || event.acting_as.as_deref().is_some_and(|actor| actor.starts_with(&account)))
        };
        self.events().into_iter().filter(about).collect()
    }
}

/// Asserts that one thing was begun before the other: what somebody else does is seen in a watch before the one who
/// did it has the answer.
#[track_caller]
pub fn assert_before(first: &Event, second: &Event) {
    assert!(first.received < second.received, "out of order:\n  {first:?}\n  {second:?}");
}

/// Asserts that one thing was answered before the other was begun: so it is among the actions of one object.
#[track_caller]
pub fn assert_finished_before(first: &Event, second: &Event) {
    assert!(first.written <= second.received, "not finished before:\n  {first:?}\n  {second:?}");
}

#[cfg(test)]
mod tests;
