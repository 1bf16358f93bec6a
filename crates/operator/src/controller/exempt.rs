//! What the wait-for graph says of global rules and of those that depend on others.
//!
//! A global rule leaves alone what its own dependency needs: everything of ours that is reachable from it over waits
//! and over what makes them, other rules left out. Otherwise a mesh would wait for itself. Found anew whenever
//! something else is joined with something; a subject that a difference concerns gets a turn.

use std::collections::BTreeSet;

use linchpin_doors::{Insight, LabelMap};
use linchpin_engine::graph::Node;
use linchpin_words::{GroupKind, ObjectRef};

use super::{Controller, entry::Entry};

impl Controller {
    /// Whether a node is a global rule.
    fn is_rule(&self, node: &Node) -> bool {
        self.kind_of(&node.object).is_some_and(|kind| kind.insight == Insight::Subjects)
    }

    /// Finds what each global rule leaves alone, if the graph has another shape than when it was found last.
    pub(super) fn find_exempt(&mut self) {
        if self.exempt_of == Some(self.graph.shape()) {
            return;
        }
        self.exempt_of = Some(self.graph.shape());
        let rules = self.rules();
        if rules.is_empty() && self.exempt.is_empty() {
            return;
        }
        let mut changed: BTreeSet<Node> = BTreeSet::new();
        self.exempt.retain(|rule, exempt| {
            let kept = rules.contains(rule);
            if !kept {
                changed.append(exempt);
            }
            kept
        });
        for rule in rules {
            let behind = self.behind(&rule);
            let ours = |node: &&Node| self.kind_of(&node.object).is_some() && node.cluster.is_none();
            let found: BTreeSet<Node> = behind.iter().filter(ours).map(Node::whole).collect();
            let known = self.exempt.entry(rule.clone()).or_default();
            if *known != found {
                changed.extend(known.symmetric_difference(&found).cloned());
                changed.insert(rule);
                *known = found;
            }
        }
        for node in changed {
            self.enqueue_node(&node);
        }
    }

    /// All global rules.
    fn rules(&self) -> BTreeSet<Node> {
        let mut rules = BTreeSet::new();
        for (index, kind) in
            self.served.iter().enumerate().filter(|(_, kind)| kind.insight == Insight::Subjects)
        {
            let all =
                self.ids.range((index, (None, String::new()))..).take_while(|((of, _), _)| *of == index);
            rules.extend(all.map(|((_, (namespace, name)), _)| {
                let (kind, namespace) = (kind.group_kind.clone(), namespace.clone());
                Node::here(ObjectRef { kind, namespace, name: name.clone() })
            }));
        }
        rules
    }

    /// All that a rule's dependency needs: over waits and what makes them, and from configurations of webhooks over their
    /// Services to the pods that answer, in sets that are not applied yet too.
    fn behind(&self, rule: &Node) -> BTreeSet<Node> {
        let mut found: BTreeSet<Node> = BTreeSet::new();
        let mut open = vec![rule.clone()];
        while let Some(next) = open.pop() {
            for node in self.graph.behind(&next, |other| !self.is_rule(other)) {
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
        let named = all().flat_map(|(entry, backing)| backing.webhooks.iter().map(move |one| (entry, one)));
        let named: BTreeSet<(String, String)> = named
            .filter(|(entry, (object, _))| object == configuration && self.vouches(entry, configuration))
            .map(|(_, (_, service))| service.clone())
            .collect();
        let mut nodes = Vec::new();
        for service in named {
            let object = ObjectRef::namespaced(GroupKind::new("", "Service"), &service.0, &service.1);
            let selectors =
                all().flat_map(|(entry, backing)| backing.services.iter().map(move |one| (entry, one)));
            let selectors: Vec<&LabelMap> = selectors
                .filter(|(entry, (named, _))| *named == service && self.vouches(entry, &object))
                .map(|(_, (_, selected))| selected)
                .collect();
            let behind = all().filter(|(entry, backing)| {
                let mut pods = selectors.iter().flat_map(|selected| backing.behind(&service.0, selected));
                pods.any(|object| self.vouches(entry, object))
            });
            nodes.extend(behind.map(|(entry, _)| Node::here(entry.subject.key().object_ref())));
            nodes.push(Node::here(object));
        }
        nodes
    }

    /// Whether what an entry says of an object counts: it is a rule, which has looked at it, or makes it. Who only writes
    /// down what another makes would be left alone with it.
    fn vouches(&self, entry: &Entry, object: &ObjectRef) -> bool {
        let own = entry.subject.key().object_ref();
        self.served[entry.kind].insight == Insight::Subjects
            || self.graph.makers(&Node::here(object.clone())).iter().any(|maker| *maker.object == own)
    }

    /// The Syncs that have made the object of an entry, and those that have made these: the object names its maker, and
    /// the maker's journal says so too. Either alone is anybody's text.
    pub(super) fn makers_of(&self, entry: &Entry) -> Vec<ObjectRef> {
        let mut makers = Vec::new();
        let mut child = entry;
        while let Some(uid) = child.subject.created_by() {
            let maker = self.uids.get(uid).and_then(|id| self.entries.get(id));
            let Some(maker) = maker.filter(|maker| maker.kind == entry.kind) else { break };
            let made = maker.subject.key().object_ref();
            if makers.contains(&made) || !maker.subject.has_made(child.subject.key()) {
                break;
            }
            makers.push(made);
            child = maker;
        }
        makers
    }

    /// The global rules that leave a node alone.
    pub(super) fn exempt_from(&self, node: &Node) -> Vec<String> {
        let rules = self.exempt.iter().filter(|(_, exempt)| exempt.contains(node));
        rules.map(|(rule, _)| rule.object.name.clone()).collect()
    }
}
