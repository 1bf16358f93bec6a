//! What objects of ours made and somebody deleted: their statuses still say that it was made.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use linchpin_engine::graph::Node;
use linchpin_view::{ArrowReason, NodeFacts, Picture, PictureState};
use linchpin_words::{ObjectRef, Reason};

use crate::cluster_reader::ClusterReader;

/// The state of what is gone. Looked at are the things in the picture that are good, and that somebody in it made in
/// this cluster; what the user may not see stays as the statuses say.
pub(super) async fn gone(client: &Client, picture: &Picture) -> BTreeMap<Node, NodeFacts> {
    let made = picture.arrows.iter().filter_map(|arrow| match &arrow.need {
        ArrowReason::MadeBy { done: true } => Some(arrow.from),
        ArrowReason::Wait { own: true, .. } => Some(arrow.to),
        _ => None,
    });
    let made = made.map(|at| &picture.items[at]).filter(|item| item.state == PictureState::Ready);
    let made: BTreeSet<&Node> = made
        .map(|item| &item.node)
        .filter(|node| node.cluster.is_none() && node.part.is_none() && !node.object.name.starts_with('['))
        .collect();
    let objects: BTreeSet<ObjectRef> = made.iter().map(|node| (*node.object).clone()).collect();
    let absent = ClusterReader::new(client.clone()).absent(&objects).await;
    let known = || NodeFacts {
        state: PictureState::Missing,
        reason: Reason::NotFound.as_str().to_owned(),
        detail: "it was made, and is gone".to_owned(),
        since: None,
    };
    made.into_iter()
        .filter(|node| absent.contains(&*node.object))
        .map(|node| (node.clone(), known()))
        .collect()
}
