//! A chain of causes continued beyond our own objects, with the rights of the user.

use std::collections::BTreeSet;

use linchpin_doors::Registry;
use linchpin_engine::{
    descend::{self, DescendRelation, Descent, Lack},
    graph::{Chain, ChainEnd, ChainLink, Hop, Node, Wait, WaitState},
    readiness::State,
};
use linchpin_words::{ObjectRef, Reason, similar};
use serde_json::Value;

use crate::cluster_reader::{ClusterReader, LookResult};

/// How one link of a chain leads to the next, as programs read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum LinkKind {
    /// It is waited for.
    WaitsFor,
    /// It makes the one before.
    MadeBy,
    /// Found beyond our own objects.
    #[serde(untagged)]
    Beyond(DescendRelation),
}

/// A chain, how each of its links is come to, and the uid of the last object where it was looked at.
#[derive(Debug, Clone)]
pub(super) struct LongChain {
    pub(super) chain: Chain,
    pub(super) kinds: Vec<LinkKind>,
    pub(super) leaf: Option<Value>,
}

impl LongChain {
    pub(super) fn new(chain: Chain) -> Self {
        let kinds = chain.links.iter().map(|link| match link.hop {
            Hop::WaitsFor(_) => LinkKind::WaitsFor,
            Hop::MadeBy => LinkKind::MadeBy,
        });
        Self { kinds: kinds.collect(), chain, leaf: None }
    }

    /// The last object of the chain.
    pub(super) fn last(&self) -> &Node {
        self.chain.links.last().map_or(&self.chain.start, |link| &link.node)
    }

    /// Why the last object is as it is.
    pub(super) fn last_wait(&self) -> Option<&Wait> {
        match self.chain.links.last().map(|link| &link.hop) {
            Some(Hop::WaitsFor(wait)) => Some(wait),
            _ => None,
        }
    }

    /// Goes on from the last object, `depth` further links at most.
    pub(super) async fn go_on(&mut self, reader: &mut ClusterReader, kinds: &Registry, depth: usize) {
        if self.chain.end != ChainEnd::Leaf || self.last().cluster.is_some() || self.last().part.is_some() {
            return;
        }
        let mut passed: BTreeSet<ObjectRef> = BTreeSet::from([(*self.last().object).clone()]);
        let mut look = look_at(reader, &self.last().object).await;
        for _ in 0..depth {
            let object = match look {
                LookResult::Found(object) => *object,
                other => {
                    self.ends_without(reader, &other).await;
                    return;
                }
            };
            let kind = self.last().object.kind.clone();
            let answers = reader.answers(descend::questions(&kind, &object)).await;
            let Descent { lack, next, hidden } =
                descend::descend(&kind, kinds.is_ours(&kind), &object, &answers);
            self.leaf = Some(object);
            if lack.state.is_ready() && next.is_none() {
                return;
            }
            self.lacks(&lack);
            if hidden {
                self.chain.end = ChainEnd::Unread;
            }
            let Some(next) = next.filter(|next| passed.insert(next.place.object())) else { return };
            look = reader.at(&next.place).await;
            let wait = Wait::new(WaitState::Unknown, "");
            let node = Node::here(next.place.object());
            self.chain.links.push(ChainLink { hop: Hop::WaitsFor(wait), node });
            self.kinds.push(LinkKind::Beyond(next.relation));
        }
    }

    /// What is known now of the last object; what our own object requires of it in other words stays as it is.
    fn lacks(&mut self, lack: &Lack) {
        let Some(ChainLink { hop: Hop::WaitsFor(wait), .. }) = self.chain.links.last_mut() else { return };
        let ours = [Reason::ConditionNotMet, Reason::CountNotMet, Reason::AwaitingAbsence, Reason::TimedOut];
        let deleting = lack.reason == Reason::Terminating.as_str();
        if ours.iter().any(|reason| *wait.reason == *reason.as_str()) && !deleting {
            return;
        }
        wait.state = match lack.state {
            State::NotFound => WaitState::Absent,
            State::InProgress => WaitState::InProgress,
            State::Ready | State::Completed => WaitState::Met,
            State::Failed => WaitState::Failed,
        };
        wait.reason = lack.reason.clone().into();
        wait.detail = lack.message.clone().into();
        wait.since = lack.since.or(wait.since);
    }

    /// The last object cannot be looked at.
    async fn ends_without(&mut self, reader: &ClusterReader, look: &LookResult) {
        let object = (*self.last().object).clone();
        let near = match look {
            LookResult::Absent => neighbour(reader, &object).await,
            _ => None,
        };
        let Some(ChainLink { hop: Hop::WaitsFor(wait), .. }) = self.chain.links.last_mut() else { return };
        let detail = match look {
            LookResult::NoNamespace => {
                format!("namespace {} does not exist", object.namespace.unwrap_or_default())
            }
            LookResult::Absent if &*wait.reason == Reason::AwaitingAbsence.as_str() => return,
            LookResult::Absent => match near {
                Some(near) => format!("it does not exist; did you mean {near}?"),
                // The waiting object says it in its own words.
                None if !wait.detail.is_empty() => return,
                None => "it does not exist".to_owned(),
            },
            LookResult::NotVisible => {
                if wait.reason.is_empty() {
                    self.chain.end = ChainEnd::Unread;
                }
                return;
            }
            LookResult::NotServed | LookResult::Found(_) => return,
        };
        wait.state = WaitState::Absent;
        wait.reason = Reason::NotFound.as_str().into();
        wait.detail = detail.into();
    }
}

async fn look_at(reader: &mut ClusterReader, object: &ObjectRef) -> LookResult {
    reader.object(&object.kind, object.namespace.as_deref(), &object.name).await
}

/// An object of the same kind and place that is called almost the same.
async fn neighbour(reader: &ClusterReader, object: &ObjectRef) -> Option<String> {
    let names = reader.names(object).await;
    similar::nearest(&object.name, names.iter().map(String::as_str)).map(str::to_owned)
}
