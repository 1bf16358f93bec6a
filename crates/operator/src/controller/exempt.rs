//! What the wait-for graph says of global rules and of those that depend on others.
//!
//! A global rule leaves alone what its own dependency needs: everything of ours that is reachable from it over waits and
//! over what makes them, other rules left out. Otherwise a mesh would wait for itself. Found anew whenever something else is
//! joined with something; whoever is concerned by a difference gets a turn.

use std::collections::BTreeSet;

use linchpin_doors::Claim;
use linchpin_engine::graph::Node;
use linchpin_words::GroupKind;

use super::{Controller, entry::Entry};

const GROUP: &str = "linchpin.dev";
const RULE: &str = "GlobalDependency";

/// Whether a node is a global rule.
pub(super) fn is_rule(node: &Node) -> bool {
    node.object.kind.group == GROUP && node.object.kind.kind == RULE
}

impl Controller {
    /// Finds what each global rule leaves alone, if the graph has another shape than when it was found last.
    pub(super) fn find_exempt(&mut self) {
        if self.exempt_of == self.graph.shape() {
            return;
        }
        self.exempt_of = self.graph.shape();
        let rule = GroupKind::new(GROUP, RULE);
        let Some(kind) = self.group_kinds.iter().position(|known| *known == rule) else { return };
        let from = (kind, (None, String::new()));
        let rules = self.ids.range(from..).take_while(|((of, _), _)| *of == kind);
        let names: BTreeSet<String> = rules.map(|((_, (_, name)), _)| name.clone()).collect();
        let mut changed: BTreeSet<Node> = BTreeSet::new();
        self.exempt.retain(|name, exempt| {
            let kept = names.contains(name);
            if !kept {
                changed.append(exempt);
            }
            kept
        });
        for name in names {
            let node = Node::here(linchpin_words::ObjectRef::cluster_scoped(rule.clone(), &name));
            let behind = self.graph.behind(&node, |other| !is_rule(other));
            let ours = |node: &Node| self.group_kinds.contains(&node.object.kind) && node.cluster.is_none();
            let found: BTreeSet<Node> = behind.iter().filter(|node| ours(node)).map(Node::whole).collect();
            let known = self.exempt.entry(name).or_default();
            if *known != found {
                changed.extend(known.symmetric_difference(&found).cloned());
                changed.insert(node);
                *known = found;
            }
        }
        for node in changed {
            self.enqueue_node(&node);
        }
    }

    /// The global rules that leave a node alone.
    pub(super) fn exempt_from(&self, node: &Node) -> Vec<String> {
        self.exempt.iter().filter(|(_, exempt)| exempt.contains(node)).map(|(name, _)| name.clone()).collect()
    }

    /// Those that depend on the object of an entry; looked for only while it is being deleted.
    pub(super) fn claims_on(&self, entry: &Entry) -> Vec<Claim> {
        if !entry.subject.is_deleting() {
            return Vec::new();
        }
        let own = entry.subject.key().object_ref();
        let others = self.entries.values().filter(|other| other.kind == entry.kind);
        others
            .filter(|other| other.subject.claims().contains(&own))
            .map(|other| Claim {
                object: other.subject.key().object_ref(),
                deleting: other.subject.is_deleting(),
            })
            .collect()
    }
}
