//! Reading answers: cheap, under the lock, without waiting.

use super::{
    objects::WatchKey,
    promotion::Family,
    state::{Source, State},
};
use crate::{call::Resource, watch::Select};
use linchpin_engine::contract::{Projection, Seen, Via, Want, Why};
use linchpin_words::{Reason, keys};
use serde_json::Value;
use std::sync::Arc;

/// What an open watch shows of an object that is about to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Glance {
    /// It is not there.
    Absent,
    /// It is there.
    Present {
        /// Which incarnation.
        uid: String,
        /// Who created it, where it says so.
        created_by: Option<String>,
        /// Whether it is being deleted.
        deleting: bool,
    },
}

impl Glance {
    fn of(projection: &Projection) -> Self {
        let created_by = projection.content.get("metadata").and_then(|metadata| metadata.get("annotations"));
        let created_by = created_by.and_then(|all| all.get(keys::CREATED_BY)).and_then(Value::as_str);
        Self::Present {
            uid: projection.uid.clone(),
            created_by: created_by.map(str::to_owned),
            deleting: projection.deleting,
        }
    }
}

impl State {
    /// The present answer.
    pub(super) fn answer(&self, want: &Want) -> Seen {
        match self.topics.get(want).map(|topic| &topic.source) {
            None => Seen::Unknown(Why::new(Reason::Unsynced, "nobody asked for this")),
            Some(Source::Nowhere(why)) => Seen::Unknown(why.clone()),
            Some(Source::Asked { answer, .. }) => answer.clone(),
            Some(Source::Objects(_)) if self.starved.contains(want) => {
                let message =
                    "the namespace has as many watches as it may have; some of its objects must go first";
                Seen::Unknown(Why::new(Reason::OverBudget, message))
            }
            Some(Source::Objects(supply)) => {
                let mut trouble = None;
                for (id, revision) in [supply.own, supply.wide].into_iter().flatten() {
                    let Some(watching) = self.watches.get(&id) else { continue };
                    if let Some(seen) = watching.view(revision, supply.name.as_deref()) {
                        return seen;
                    }
                    trouble = trouble.or_else(|| watching.trouble().cloned());
                }
                let waiting = || Why::new(Reason::Unsynced, "the first look has not been answered yet");
                Seen::Unknown(trouble.unwrap_or_else(waiting))
            }
        }
    }

    /// What an open watch of this identity shows of one object; none if no watch covers it or it may be old.
    pub(super) fn glance(
        &self,
        via: &Via,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Glance> {
        let family = Family {
            via: via.clone(),
            kind: resource.kind.clone(),
            namespace: namespace.filter(|_| resource.namespaced).map(str::to_owned),
        };
        let key = WatchKey { family: family.clone(), select: Select::Name(name.to_owned()) };
        // Who created an object is among the reads of every watch from its first revision on.
        let covering = |key: &WatchKey| {
            let watching = self.keys.get(key).and_then(|id| self.watches.get(id));
            watching.filter(|watching| watching.is_live() && watching.covers(1, Some(name)))
        };
        let watching = covering(&key).or_else(|| covering(&WatchKey { family, select: Select::All }))?;
        match watching.item(name) {
            None => Some(Glance::Absent),
            Some(item) => item.kept.as_ref().map(|kept: &Arc<Projection>| Glance::of(kept)),
        }
    }
}
