//! What a watch's task reports to: the follower's reports in, the hub's notes out.

use super::{Scope, WatchKey, WatchNote};
use crate::{
    call::{CallError, Resource},
    hub::{Inner, state::WatchId},
    watch::{Sink, SinkReply, WatchFailure, WatchItem, WatchReport, WatchSelect, interest::Interest},
};
use linchpin_engine::contract::{Right, Why};
use linchpin_words::{Reason, text};
use std::sync::{Arc, Weak};

/// Attempts in a row after which another cluster counts as unreachable.
const UNREACHABLE: u32 = 3;

/// What the watch's task reports to.
pub(in crate::hub) struct WatchSink {
    pub(in crate::hub) inner: Weak<Inner>,
    pub(in crate::hub) id: WatchId,
    pub(in crate::hub) scope: Arc<Scope>,
    pub(in crate::hub) resource: Resource,
    pub(in crate::hub) key: WatchKey,
    pub(in crate::hub) who: String,
    pub(in crate::hub) remote: Option<String>,
}

impl Sink for WatchSink {
    fn is_metadata(&self) -> bool {
        self.scope.is_metadata()
    }

    fn interest(&self, name: &str) -> Option<Arc<Interest>> {
        self.scope.interest(name)
    }

    fn report(&self, report: WatchReport) -> SinkReply {
        self.note(match report {
            WatchReport::Snapshot { items, others, as_of } => {
                let items = items.into_iter().map(|item| self.share(item)).collect();
                WatchReport::Snapshot { items, others, as_of }
            }
            WatchReport::Changed(item) => WatchReport::Changed(self.share(item)),
            report => report,
        })
    }

    fn failed(&self, failure: WatchFailure) {
        let note = match failure {
            WatchFailure::Lost { failures, message } => match &self.remote {
                Some(name) if failures >= UNREACHABLE => {
                    let message = text::line(&format!("{name} does not answer: {message}"));
                    WatchNote::Blind(Why::new(Reason::ClusterUnreachable, message))
                }
                _ => {
                    let why = Why::new(Reason::Disconnected, text::line(&message));
                    self.note(WatchNote::Dim(why));
                    WatchNote::Lost
                }
            },
            WatchFailure::Forbidden(error) => WatchNote::Blind(self.forbidden(&error)),
        };
        self.note(note);
    }
}

impl WatchSink {
    /// The same, with what is kept elsewhere already.
    fn share(&self, item: WatchItem) -> WatchItem {
        let Some(inner) = self.inner.upgrade() else { return item };
        WatchItem { kept: item.kept.map(|kept| inner.copies.share(kept)), ..item }
    }

    fn note(&self, note: impl Into<WatchNote>) -> SinkReply {
        self.inner.upgrade().map_or(SinkReply::Noted, |inner| inner.noted(self.id, note))
    }

    fn forbidden(&self, error: &CallError) -> Why {
        let said = error.refused().map(|refused| refused.status.message.as_str()).unwrap_or_default();
        if said.contains("cannot impersonate") {
            let message =
                format!("the operator may not act as {}: bind its impersonation Role there", self.who);
            return Why::new(Reason::Forbidden, message);
        }
        let name = match &self.key.select {
            WatchSelect::Name(name) => Some(name.clone()),
            WatchSelect::Labels(_) | WatchSelect::All => None,
        };
        let right = Right {
            verb: "list and watch".to_owned(),
            group: self.resource.kind.group.clone(),
            resource: self.resource.plural.clone(),
            subresource: None,
            namespace: self.key.family.namespace.clone().filter(|_| self.resource.namespaced),
            name,
        };
        let again = crate::watch::FORBIDDEN_AGAIN.as_secs();
        let message = format!("{} is not allowed to {right}; asked again in {again} s at most", self.who);
        Why::new(Reason::Forbidden, text::line(&message))
    }
}
