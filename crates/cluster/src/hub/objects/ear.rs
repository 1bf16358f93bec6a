//! What a watch's task reports to: follower's words in, the hub's notes out.

use super::{Note, Scope, WatchKey};
use crate::{
    call::{CallError, Resource},
    hub::{Inner, state::WatchId},
    watch::{Heed, Report, Select, Sink, interest::Interest},
};
use linchpin_engine::contract::{Right, Why};
use linchpin_words::{Reason, text};
use std::sync::{Arc, Weak};

/// Attempts in a row after which another cluster counts as unreachable.
const UNREACHABLE: u32 = 3;

/// What the watch's task reports to.
pub(in crate::hub) struct Ear {
    pub(in crate::hub) inner: Weak<Inner>,
    pub(in crate::hub) id: WatchId,
    pub(in crate::hub) scope: Arc<Scope>,
    pub(in crate::hub) resource: Resource,
    pub(in crate::hub) key: WatchKey,
    pub(in crate::hub) who: String,
    pub(in crate::hub) remote: Option<String>,
}

impl Sink for Ear {
    fn is_metadata(&self) -> bool {
        self.scope.is_metadata()
    }

    fn interest(&self, name: &str) -> Option<Arc<Interest>> {
        self.scope.interest(name)
    }

    fn report(&self, report: Report) -> Heed {
        let note = match report {
            Report::Looking => Note::Looking,
            Report::Snapshot { items, others, as_of } => Note::Snapshot { items, others, as_of },
            Report::Changed(item) => Note::Changed(item),
            Report::Passed { name, version } => Note::Passed { name, version },
            Report::Gone { name, version } => Note::Gone { name, version },
            Report::Reached(version) => Note::Reached(version),
            Report::Live => Note::Live,
            Report::Lost { failures, message } => match &self.remote {
                Some(name) if failures >= UNREACHABLE => {
                    let message = text::line(&format!("{name} does not answer: {message}"));
                    Note::Blind(Why::new(Reason::ClusterUnreachable, message))
                }
                _ => {
                    let why = Why::new(Reason::Disconnected, text::line(&message));
                    self.note(Note::Dim(why));
                    Note::Lost
                }
            },
            Report::Forbidden(error) => Note::Blind(self.forbidden(&error)),
        };
        self.note(note)
    }
}

impl Ear {
    fn note(&self, note: Note) -> Heed {
        self.inner.upgrade().map_or(Heed::Noted, |inner| inner.noted(self.id, note))
    }

    fn forbidden(&self, error: &CallError) -> Why {
        let said = error.refused().map(|refused| refused.status.message.as_str()).unwrap_or_default();
        if said.contains("cannot impersonate") {
            let message =
                format!("the operator may not act as {}: bind its impersonation Role there", self.who);
            return Why::new(Reason::Forbidden, message);
        }
        let name = match &self.key.select {
            Select::Name(name) => Some(name.clone()),
            Select::Labels(_) | Select::All => None,
        };
        let right = Right {
            verb: "list and watch".to_owned(),
            group: self.resource.kind.group.clone(),
            resource: self.resource.plural.clone(),
            subresource: None,
            namespace: self.key.family.namespace.clone().filter(|_| self.resource.namespaced),
            name,
        };
        Why::new(Reason::Forbidden, text::line(&format!("{} is not allowed to {right}", self.who)))
    }
}
