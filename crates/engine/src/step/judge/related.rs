//! Related objects that a verdict asks for, read as the same identity as the object itself.

use linchpin_words::reference::KindWord;

use super::fresh_world::FreshWorld;
use crate::{
    contract::{Question, ReadSet, Scope, Seen, Selector, Served, Via, Want},
    readiness::{self, Related, RelatedQuery, RelatedSelect},
};

/// Related objects, read as the same identity as the object itself.
pub(super) struct Neighbours<'a> {
    pub(super) via: &'a Via,
    pub(super) fresh_world: &'a FreshWorld<'a>,
}

pub(super) fn need_as_want(via: &Via, need: &RelatedQuery) -> Want {
    match need {
        RelatedQuery::Served { gvk } => {
            let word = KindWord::from_manifest(Some(&gvk.api_version()), &gvk.kind);
            Want::new(Question::Kind { via: via.clone(), word })
        }
        RelatedQuery::Objects { gvk, namespace, select } => {
            let scope = match select {
                RelatedSelect::Name(name) => Scope::Name { namespace: namespace.clone(), name: name.clone() },
                RelatedSelect::Labels(labels) => {
                    Scope::Labels { namespace: namespace.clone(), selector: Selector::labels(labels) }
                }
            };
            let reads = ReadSet::dotted(need.reads().iter().copied());
            Want::new(Question::Objects { via: via.clone(), kind: gvk.clone(), scope, reads })
        }
    }
}

impl Related for Neighbours<'_> {
    fn get(&self, need: &RelatedQuery) -> readiness::RelatedAnswer<'_> {
        match self.fresh_world.ask(need_as_want(self.via, need)) {
            Some(Seen::Objects(observed)) if observed.items.is_empty() => readiness::RelatedAnswer::Absent,
            Some(Seen::Objects(observed)) => {
                readiness::RelatedAnswer::Objects(observed.items.iter().map(|item| &item.content).collect())
            }
            Some(Seen::Kind(served)) => {
                readiness::RelatedAnswer::Served(matches!(**served, Served::Yes { .. }))
            }
            _ => readiness::RelatedAnswer::Unknown,
        }
    }
}
