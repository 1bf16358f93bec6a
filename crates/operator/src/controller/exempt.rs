//! What the wait-for graph says of global rules and of those that depend on others.
//!
//! A global rule leaves alone what its own dependency needs: everything of ours that is reachable from it over waits and
//! over what makes them, other rules left out. Otherwise a mesh would wait for itself. Found anew whenever something else is
//! joined with something; whoever is concerned by a difference gets a turn.

use std::collections::BTreeSet;

use linchpin_doors::Claim;
use linchpin_engine::graph::Node;
use linchpin_words::{GroupKind, ObjectRef};

use super::{Controller, entry::Entry};

const GROUP: &str = "linchpin.dev";
const RULE: &str = "GlobalDependency";
const SYNC: &str = "Sync";

/// Whether a node is a global rule.
pub(super) fn is_rule(node: &Node) -> bool {
    node.object.kind.group == GROUP && node.object.kind.kind == RULE
}

/// Whether a node is a Sync.
pub(super) fn is_sync(node: &Node) -> bool {
    node.object.kind.group == GROUP && node.object.kind.kind == SYNC
}

impl Controller {
    /// Finds what each global rule leaves alone, if the graph has another shape than when it was found last.
    pub(super) fn find_exempt(&mut self) {
        if self.exempt_of == Some(self.graph.shape()) {
            return;
        }
        self.exempt_of = Some(self.graph.shape());
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
            let node = Node::here(ObjectRef::cluster_scoped(rule.clone(), &name));
            let behind = self.behind(&node);
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

    /// All that a rule's dependency needs: over waits and what makes them, and from configurations of webhooks over their
    /// Services to the pods that answer, in sets that are not applied yet too.
    fn behind(&self, rule: &Node) -> BTreeSet<Node> {
        let mut found: BTreeSet<Node> = BTreeSet::new();
        let mut open = vec![rule.clone()];
        while let Some(next) = open.pop() {
            for node in self.graph.behind(&next, |other| !is_rule(other)) {
                if found.insert(node.clone()) {
                    open.extend(
                        self.answering(&node.object).into_iter().filter(|node| !found.contains(node)),
                    );
                }
            }
            if next != *rule {
                found.insert(next);
            }
        }
        found
    }

    /// The Syncs whose pods answer a configuration of webhooks, and what makes the Services between.
    fn answering(&self, configuration: &ObjectRef) -> Vec<Node> {
        let all = || self.entries.values().filter_map(|entry| Some((entry, entry.subject.backing()?)));
        let named: BTreeSet<(String, String)> = all()
            .flat_map(|(_, backing)| &backing.webhooks)
            .filter(|(object, _)| object == configuration)
            .map(|(_, service)| service.clone())
            .collect();
        let mut nodes = Vec::new();
        for service in named {
            let kind = GroupKind::new("", "Service");
            nodes.push(Node::here(ObjectRef::namespaced(kind, &service.0, &service.1)));
            let selectors = all().flat_map(|(_, backing)| &backing.services);
            let selectors: Vec<_> = selectors.filter(|(named, _)| *named == service).collect();
            let behind = all().filter(|(_, backing)| {
                selectors.iter().any(|(_, selected)| backing.is_behind(&service.0, selected))
            });
            nodes.extend(behind.map(|(entry, _)| Node::here(entry.subject.key().object_ref())));
        }
        nodes
    }

    /// The Syncs that have made the object of an entry, and those that have made these.
    pub(super) fn makers_of(&self, entry: &Entry) -> Vec<ObjectRef> {
        let mut makers = Vec::new();
        let mut next = entry.subject.created_by();
        while let Some(uid) = next {
            let mut others = self.entries.values().filter(|other| other.kind == entry.kind);
            let Some(maker) = others.find(|other| other.subject.key().uid == uid) else { break };
            let made = maker.subject.key().object_ref();
            if makers.contains(&made) {
                break;
            }
            makers.push(made);
            next = maker.subject.created_by();
        }
        makers
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
