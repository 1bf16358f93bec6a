//! The audit-log witness: what really happened, in the API server's own words.
//!
//! The server writes a line before it answers, so what a test has seen answered is in the log. Times have microseconds
//! and compare as text. [`Audit::overreach`] lists what the operator did and must not do: `witness` has the rules.

mod line;
mod witness;

use std::{
    fmt,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use linchpin_operator::rights::TABLE;
use line::Line;
pub use witness::Accusation;

use crate::{CHART_OPERATOR, OPERATOR};

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
    /// Whether the operator sent it, as itself or as somebody else.
    pub fn is_by_operator(&self) -> bool {
        self.user == OPERATOR || self.user == CHART_OPERATOR
    }

    /// Whether it asks for a change, as opposed to a look.
    pub fn is_change(&self) -> bool {
        let changes =
            matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection");
        let is_question = self.resource.ends_with("accessreviews");
        changes && !is_question && !self.uri.contains("dryRun=")
    }

    /// Whether it changed something.
    pub fn is_write(&self) -> bool {
        self.is_change() && (200..300).contains(&self.code)
    }

    /// Whether it is about an object of a kind of ours.
    pub fn is_about_ours(&self) -> bool {
        matches!(
            self.group.as_str(),
            "tools.kubestellar.io"
                | "linchpin.dev"
                | "app.example.com"
                | "core.bootchain-operator.ruicoelho.dev"
        )
    }

    /// Whether the operator may do this as itself: what its table of rights says, whatever the names, and what everybody
    /// may: read what is served, and ask about oneself.
    pub fn is_the_operators_own(&self) -> bool {
        let asks_about_itself = matches!(
            (self.group.as_str(), self.resource.as_str()),
            ("authorization.k8s.io", "selfsubjectaccessreviews")
                | ("authentication.k8s.io", "selfsubjectreviews")
        );
        if asks_about_itself {
            return self.verb == "create";
        }
        if self.resource.is_empty() {
            return self.verb == "get";
        }
        // Of all Secrets it may touch but the one with its certificate; a creation does not say in its path what it creates.
        if self.resource == "secrets" && !(self.name.ends_with("webhook-tls") || self.verb == "create") {
            return false;
        }
        let resource = match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        };
        TABLE.iter().any(|row| {
            row.groups.contains(&self.group.as_str())
                && row.resources.contains(&resource.as_str())
                && row.verbs.contains(&self.verb.as_str())
        }) || self.is_for_webhooks()
    }

    /// Whether the operator writes its webhook configurations itself, as it does where it is reached at a URL.
    fn is_for_webhooks(&self) -> bool {
        self.group == "admissionregistration.k8s.io"
            && matches!(self.verb.as_str(), "create" | "update")
            && self.resource.ends_with("webhookconfigurations")
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

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything since then, in the order in which it was written.
    pub fn events(&self) -> Vec<Event> {
        let mut file = File::open(&self.path).unwrap();
        file.seek(SeekFrom::Start(self.from)).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).lines().filter_map(|line| Some(Line::read(line)?.event)).collect()
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

    /// The last write to an object by anyone but the operator: what let something go on, say.
    #[track_caller]
    pub fn last_by_others(&self, resource: &str, namespace: &str, name: &str) -> Event {
        let mut events = self.events();
        events.retain(|event| {
            event.is_write()
                && !event.is_by_operator()
                && (event.resource.as_str(), event.namespace.as_str(), event.name.as_str())
                    == (resource, namespace, name)
        });
        events.pop().unwrap_or_else(|| panic!("nobody else wrote {resource} {namespace}/{name}"))
    }

    /// Everything that an operator did on this API server, from its beginning on, and must not do.
    pub fn overreach(&self) -> Vec<Accusation> {
        witness::accusations(&self.path)
    }

    /// Fails the test if an operator did anything on this API server that it must not do and that no other test has
    /// been reported. Does nothing while a test is failing already.
    #[track_caller]
    pub fn assert_no_overreach(&self) {
        if !std::thread::panicking() {
            let found = witness::new_accusations(&self.path);
            assert!(found.is_empty(), "the operator did what it must not do: {found:#?}");
        }
    }

    /// What the operator changed for an object of ours, deletions aside: recognised by the field manager.
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
