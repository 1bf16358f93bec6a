//! Reading answers: cheap, under the lock, without waiting.

use super::{
    objects::WatchKey,
    promotion::Family,
    state::{AnswerSource, HubState, Supply},
};
use crate::{call::Resource, watch::WatchSelect};
use linchpin_engine::contract::{Projection, Seen, Via, Want, Why};
use linchpin_words::{Reason, keys};
use serde_json::Value;
use std::sync::Arc;

/// What an open watch shows of an object that is about to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CachedObject {
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

impl CachedObject {
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

impl HubState {
    /// The present answer.
    pub(super) fn answer(&self, want: &Want) -> Seen {
        match self.topics.get(want).map(|topic| &topic.source) {
            None => Seen::Unknown(Why::new(Reason::Unsynced, "nobody asked for this")),
            Some(AnswerSource::Nowhere(why)) => Seen::Unknown(why.clone()),
            Some(AnswerSource::Held) => Seen::Unknown(self.why_starved(want)),
            Some(AnswerSource::Asked { answer, .. } | AnswerSource::Right(answer)) => answer.clone(),
            Some(AnswerSource::Objects(supply)) => self.observed(want, supply),
        }
    }

    /// What the watches of a question show: the one that is further, so that nothing is answered that is older than
    /// what was answered before.
    fn observed(&self, want: &Want, supply: &Supply) -> Seen {
        let watches = || {
            let numbers = [supply.wide, supply.own].into_iter().flatten();
            numbers.filter_map(|(id, revision)| Some((self.watches.get(&id)?, revision)))
        };
        let recency = |seen: &Seen| match seen {
            Seen::Objects(observed) => (observed.live, observed.as_of),
            _ => (false, 0),
        };
        let views =
            watches().filter_map(|(watching, revision)| watching.view(revision, supply.name.as_deref()));
        if let Some(seen) = views.max_by_key(recency) {
            return seen;
        }
        let trouble = watches().filter_map(|(watching, _)| watching.trouble().cloned()).next_back();
        if trouble.is_none() && self.starved.contains_key(want) {
            return Seen::Unknown(self.why_starved(want));
        }
        let waiting = || Why::new(Reason::Unsynced, "the first look has not been answered yet");
        Seen::Unknown(trouble.unwrap_or_else(waiting))
    }

    fn why_starved(&self, want: &Want) -> Why {
        let over = || Why::new(Reason::OverBudget, "the budget of the namespace is used up");
        self.starved.get(want).map_or_else(over, |starved| starved.why.clone())
    }

    /// What an open watch of this identity shows of one object; none if no watch covers it or it may be old.
    pub(super) fn cached_object(
        &self,
        via: &Via,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<CachedObject> {
        let family = Family {
            via: via.clone(),
            kind: resource.kind.clone(),
            namespace: namespace.filter(|_| resource.namespaced).map(str::to_owned),
        };
        let key = WatchKey { family: family.clone(), select: WatchSelect::Name(name.to_owned()) };
        // Who created an object is kept whatever else is read of it.
        let covering = |key: &WatchKey| {
            let watching = self.keys.get(key).and_then(|id| self.watches.get(id));
            watching.filter(|watching| watching.is_live() && watching.covers(0, Some(name)))
        };
        let watching = covering(&key).or_else(|| covering(&WatchKey { family, select: WatchSelect::All }))?;
        match watching.item(name) {
            None => Some(CachedObject::Absent),
            Some(item) => item.kept.as_ref().map(|kept: &Arc<Projection>| CachedObject::of(kept)),
        }
    }
}
