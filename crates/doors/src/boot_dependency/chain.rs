//! Who a pod belongs to, as far as it has been looked at: the chain of its controllers, and what their annotations say.
//!
//! The webhook asks the API server for the same at the moment of admission; here it is a question like any other, so that a
//! held pod follows what becomes of its workload.

use std::collections::BTreeSet;

use linchpin_engine::contract::{ReadSet, Seen, Want, World};
use linchpin_words::{Gvk, reference::built_in_kind};
use serde_json::Value;

use super::{
    held::operator,
    selection::{OwnerName, is_skipped},
};

/// How many controllers are followed: Pod, ReplicaSet, Deployment, and somebody above it.
pub const LONGEST: usize = 4;

/// Kinds that the operator may read.
const READABLE: [&str; 5] = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"];

/// The chain of a pod.
pub(super) struct OwnerChain {
    /// The pod itself first.
    pub(super) owners: Vec<OwnerName>,
    /// Whether one of its controllers says that the wait is to be bypassed.
    pub(super) skipped: bool,
    /// Whether all of it has been looked at, as far as it can be.
    pub(super) complete: bool,
}

/// Chains of the pods of one namespace, and what is asked to know them.
pub(super) struct Chains<'w> {
    world: &'w World,
    namespace: &'w str,
    pub(super) wants: BTreeSet<Want>,
}

impl<'w> Chains<'w> {
    pub(super) fn new(world: &'w World, namespace: &'w str) -> Self {
        Self { world, namespace, wants: BTreeSet::new() }
    }

    /// The chain of a pod with this controller.
    pub(super) fn of(&mut self, pod: &str, mut above: Option<(OwnerName, String)>) -> OwnerChain {
        let itself = OwnerName { group: String::new(), kind: "Pod".to_owned(), name: pod.to_owned() };
        let mut chain = OwnerChain { owners: vec![itself], skipped: false, complete: true };
        while let Some((owner, uid)) = above.take().filter(|_| chain.owners.len() < LONGEST) {
            chain.owners.push(owner.clone());
            let known = built_in_kind(&owner.group, &owner.kind);
            let Some(known) = known.filter(|known| READABLE.contains(&known.kind)) else { break };
            let reads = ReadSet::dotted(["metadata.ownerReferences", "metadata.annotations"]);
            let kind = Gvk::new(known.group, known.version, known.kind);
            let want = Want::object(operator(), kind, Some(self.namespace.to_owned()), &owner.name, reads);
            self.wants.insert(want.clone());
            match self.world.get(&want) {
                Some(Seen::Objects(observed)) => {
                    let Some(object) = observed.items.first().filter(|object| object.uid == uid) else {
                        break;
                    };
                    let metadata = &object.content["metadata"];
                    chain.skipped |= is_skipped(&metadata["annotations"]);
                    above = controller(metadata);
                }
                Some(Seen::Unknown(why)) if !why.is_passing() => break,
                _ => chain.complete = false,
            }
        }
        chain
    }
}

/// The controller that an object's metadata names, and its uid.
pub fn controller(metadata: &Value) -> Option<(OwnerName, String)> {
    let references = metadata["ownerReferences"].as_array()?;
    let reference = references.iter().find(|reference| reference["controller"] == true)?;
    let text = |key: &str| reference[key].as_str().map(str::to_owned);
    let group = Gvk::group_of(reference["apiVersion"].as_str()?).to_owned();
    Some((OwnerName { group, kind: text("kind")?, name: text("name")? }, text("uid")?))
}
