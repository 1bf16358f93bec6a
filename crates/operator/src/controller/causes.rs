//! Root causes in statuses: what the object that is waited for waits for in turn.
//!
//! A status names its direct blocker at once. What is behind it is found in the wait-for graph by this reporter, which
//! has the lowest priority of all: it looks at a few objects a second while no effect is under way, and has only a few
//! statuses drawn anew, so that a long chain is shown in time and never in a storm of writes. A chain goes on only into
//! objects that the waiting object's own identity may `get`.

mod reporter;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound,
    time::Instant,
};

use linchpin_cluster::hub::SubscriberId;
use linchpin_doors::{ImposedOn, Insight, ShownObject, VisibleCauses};
use linchpin_engine::{
    contract::{Question, Right, Seen, Served, Via, Want},
    graph::{Chain, CyclePath, Node, Relation, WaitState, explain, is_in_line},
    step::Phase,
};
use linchpin_words::{
    GroupKind, ObjectRef, limits,
    reference::{KindWord, built_in_kind},
    text::NOT_VISIBLE,
};

pub(super) use self::reporter::Reporter;
use super::{Controller, entry::Entry};

/// What is behind the blockers of an object, and what had to be asked to know whether it may be shown.
struct FoundCauses {
    causes: VisibleCauses,
    asked: BTreeSet<Want>,
    /// Whether a right has not been answered yet.
    open: bool,
}

impl Controller {
    /// Looks at the next few objects, if it is time.
    pub(super) fn look_for_causes(&mut self) {
        let now = Instant::now();
        if self.reporter.next(now, self.driver.is_busy(now)).is_none_or(|at| at > now) {
            return;
        }
        let (from, looks) = self.reporter.begin(now);
        let ids: Vec<SubscriberId> =
            self.entries.range((from, Bound::Unbounded)).take(looks).map(|(id, _)| *id).collect();
        for id in ids {
            let changed = self.look_behind(id);
            if !self.reporter.looked(id, changed, Instant::now()) {
                return;
            }
        }
        self.reporter.ended();
    }

    /// Finds the causes of one object anew; whether its status has to be.
    fn look_behind(&mut self, id: SubscriberId) -> bool {
        let Some(entry) = self.entries.get(&id) else { return false };
        let found = self.causes_of(entry);
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        let asks_more = !found.asked.iter().all(|want| entry.wants.contains(want));
        entry.curious = found.asked.into_iter().collect();
        if asks_more {
            let wants: BTreeSet<Want> = entry.wants.iter().chain(&entry.curious).cloned().collect();
            entry.wants = wants.iter().cloned().collect();
            self.answers.subscribe(id, wants);
        }
        if found.open || entry.causes == found.causes {
            return false;
        }
        entry.causes = found.causes;
        self.enqueue(id);
        true
    }

    fn causes_of(&self, entry: &Entry) -> FoundCauses {
        let mut found = FoundCauses { causes: VisibleCauses::new(), asked: BTreeSet::new(), open: false };
        let insight = self.served[entry.kind].insight;
        let settled = entry.phase == Some(Phase::Completed);
        let waits = !entry.subject.is_deleting() && (!settled || insight == Insight::Makers);
        if !waits && insight != Insight::Subjects {
            return found;
        }
        let node = Node::here(entry.subject.key().object_ref());
        if insight == Insight::Subjects {
            self.look_at_subjects(&node, entry.subject.via(), &mut found);
        }
        let Some(via) = entry.subject.via().filter(|_| waits) else { return found };
        // It takes a right for each object that is waited for.
        let makers = insight != Insight::Causes;
        let waits = if settled { BTreeSet::new() } else { self.waits_to_follow(&node, makers) };
        let nobodys = is_nobodys(&via);
        let sight = RefCell::new(IdentityView::new(via));
        let visible = |node: &Node| {
            // What it has looked at itself it may see. Of what it could not look at, not even that there is something
            // behind it may be shown without a right: that would show that it exists.
            if waits.iter().any(|(_, blocker, seen)| *seen && blocker == node) {
                return true;
            }
            if nobodys {
                return node.cluster.is_none() && self.plural_of_ours(&node.object).is_some();
            }
            self.may_see(node, &mut sight.borrow_mut())
        };
        if makers {
            self.look_further(&node, &waits, &visible, &mut found.causes);
        }
        for (part, blocker, _) in &waits {
            let chains = self.graph.root_causes(part, &visible).chains;
            let through = |chain: &&Chain| chain.links.first().is_some_and(|link| link.node == *blocker);
            if let Some(chain) = chains.iter().find(through) {
                let steps = explain::steps(chain, None).into_iter().skip(1).collect();
                found.causes.insert(blocker.object.clone().into_inner(), steps);
            }
        }
        sight.into_inner().note(&mut found);
        found
    }

    /// The circle that an object waits in, spelled out as far as its own identity may see it, and what has to be asked to
    /// know that; no circle before it is known. What the object names itself, it knows. Kinds that wait for nothing but what
    /// they name, and what answers for that, spell all of it out.
    pub(super) fn circle_seen(
        &self,
        entry: &Entry,
        circle: &CyclePath,
    ) -> (Option<CyclePath>, BTreeSet<Want>) {
        let looks_further = self.served[entry.kind].insight != Insight::Causes;
        let Some(via) = entry.subject.via().filter(|via| looks_further && !is_nobodys(via)) else {
            return (Some(circle.clone()), BTreeSet::new());
        };
        let own = entry.subject.key().object_ref();
        let parts = circle.0.iter().filter(|node| *node.object == own);
        let waits = parts.flat_map(|part| self.graph.edges_from(part));
        let named: BTreeSet<Node> =
            waits.filter(|edge| matches!(edge.relation, Relation::WaitsFor(_))).map(|edge| edge.to).collect();
        let mut sight = IdentityView::new(via);
        let mut seen = |node: &Node| {
            let known = *node.object == own || named.contains(node);
            if known || self.may_see(node, &mut sight) {
                return node.clone();
            }
            let kind = node.object.kind.clone();
            Node::here(ObjectRef { kind, namespace: None, name: NOT_VISIBLE.to_owned() })
        };
        let circle = CyclePath(circle.0.iter().map(&mut seen).collect());
        let open = sight.asked.values().any(|answered| !answered);
        (Some(circle).filter(|_| !open), sight.asked.into_keys().collect())
    }

    /// Whom a rule is imposed on, and whom it leaves alone, as far as the account that it names may see them. A rule that
    /// names none looks at objects of ours alone, as we do.
    fn look_at_subjects(&self, rule: &Node, via: Option<Via>, found: &mut FoundCauses) {
        let named = via.filter(|via| !is_nobodys(via));
        let mut sight = named.map(IdentityView::new);
        let mut shown = |node: &Node| {
            let visible = sight.as_mut().is_none_or(|sight| self.may_see(node, sight));
            ShownObject::new(&node.object, node, visible)
        };
        let exempt: Vec<ShownObject> = self.exempt.get(rule).into_iter().flatten().map(&mut shown).collect();
        let (total, held) = self.graph.waiting_for(rule);
        if let Some(sight) = sight {
            sight.note(found);
        }
        found.causes.imposed = Some(ImposedOn { total, held, exempt });
    }

    /// Who is to make what is waited for, and all that is waited for through others.
    fn look_further(
        &self,
        node: &Node,
        waits: &BTreeSet<(Node, Node, bool)>,
        visible: &dyn Fn(&Node) -> bool,
        causes: &mut VisibleCauses,
    ) {
        let (mut makers, mut open) = (BTreeMap::new(), VecDeque::new());
        open.extend(waits.iter().map(|(_, blocker, _)| blocker.clone()));
        for edge in self.graph.edges_from(node) {
            let Relation::WaitsFor(wait) = &edge.relation else { continue };
            if self.plural_of_ours(&edge.to.object).is_some() || makers.contains_key(&edge.to) {
                continue;
            }
            let all = self.graph.makers(&edge.to);
            if !wait.met() && all.iter().all(|maker| maker.object != node.object) {
                open.push_back(edge.to.clone());
            }
            makers.insert(edge.to, all);
        }
        for (made, all) in makers {
            let others = all.iter().filter(|maker| maker.object != node.object);
            // Who may see what is made knows that something makes it, also where not what.
            let shown = |maker: &Node| {
                let seen = visible(maker);
                (seen || visible(&made)).then(|| ShownObject::new(&maker.object, maker, seen))
            };
            let mut makers: Vec<ShownObject> = others.filter_map(shown).collect();
            makers.sort_unstable();
            if !makers.is_empty() {
                causes.providers.insert(made.object.clone().into_inner(), makers);
            }
        }
        // "if a Sync sees its own name in that list, there's a cycle": its own name is in it where it is found.
        let mut seen = BTreeSet::new();
        while let Some(next) = open.pop_front() {
            if causes.waiting_on.len() >= limits::WAITING_ON || !visible(&next) || !seen.insert(next.clone())
            {
                continue;
            }
            causes.waiting_on.push(next.whole().to_string());
            // What only comes after something else, such as the objects of a Sync that is held, is not what it waits for.
            let blockers = self.graph.blockers(&next).into_iter();
            open.extend(blockers.filter(|(_, wait)| !is_in_line(&wait.reason)).map(|(blocker, _)| blocker));
            if self.plural_of_ours(&next.object).is_none() {
                open.extend(self.graph.makers(&next));
            }
        }
        causes.waiting_on.dedup();
    }

    /// What an object waits for that something of ours is behind, with which of its parts, and whether it could look at it:
    /// objects of ours, and if asked for those that they make.
    fn waits_to_follow(&self, node: &Node, makers: bool) -> BTreeSet<(Node, Node, bool)> {
        let mut waits = BTreeSet::new();
        let mut parts = vec![node.clone()];
        let mut seen = BTreeSet::new();
        while let Some(part) = parts.pop() {
            if !seen.insert(part.clone()) {
                continue;
            }
            for (blocker, wait) in self.graph.blockers(&part) {
                if blocker.object == node.object {
                    parts.push(blocker);
                } else if blocker.cluster.is_none()
                    && (self.plural_of_ours(&blocker.object).is_some()
                        || makers && !is_in_line(&wait.reason) && self.is_made_by_another(&blocker, node))
                {
                    waits.insert((part.clone(), blocker, wait.state != WaitState::Unknown));
                }
            }
        }
        waits
    }

    fn is_made_by_another(&self, made: &Node, node: &Node) -> bool {
        self.graph.makers(made).iter().any(|maker| maker.object != node.object)
    }

    fn plural_of_ours(&self, object: &ObjectRef) -> Option<&str> {
        self.kind_of(object).map(|kind| kind.own.plural())
    }

    /// Whether an identity may get an object.
    fn may_see(&self, node: &Node, sight: &mut IdentityView) -> bool {
        if node.cluster.is_some() {
            return false;
        }
        let ObjectRef { kind, namespace, name } = &*node.object;
        let alike = |one: &KindInNamespace| one.kind == *kind && one.namespace == *namespace;
        let known = sight.alike.iter().position(alike);
        let at = known.unwrap_or_else(|| {
            let plural = self.plural_seen(kind, sight);
            // One question for all objects of a kind, and one for each only where that is denied: a long line of objects
            // would make every one of them ask for every other.
            let all = plural
                .as_ref()
                .and_then(|plural| self.answer(sight.right(kind, plural, namespace.as_ref(), None), sight));
            let all = all.map(|seen| matches!(seen, Seen::Right(true)));
            sight.alike.push(KindInNamespace {
                kind: kind.clone(),
                namespace: namespace.clone(),
                plural,
                all,
            });
            sight.alike.len() - 1
        });
        let KindInNamespace { all, plural, .. } = &sight.alike[at];
        match (all, plural) {
            (Some(false), Some(plural)) => {
                let own = sight.right(kind, plural, namespace.as_ref(), Some(name));
                matches!(self.answer(own, sight), Some(Seen::Right(true)))
            }
            (all, _) => *all == Some(true),
        }
    }

    /// As URLs name a kind, as far as an identity knows.
    fn plural_seen(&self, kind: &GroupKind, sight: &mut IdentityView) -> Option<String> {
        let ours = self.served.iter().find(|served| served.group_kind == *kind);
        let known = ours.map(|served| served.own.plural());
        if let Some(plural) =
            known.or_else(|| built_in_kind(&kind.group, &kind.kind).map(|known| known.plural))
        {
            return Some(plural.to_owned());
        }
        let word = KindWord { group: Some(kind.group.clone()), ..KindWord::new(&kind.kind) };
        match self.answer(Want::new(Question::Kind { via: sight.via.clone(), word }), sight) {
            Some(Seen::Kind(served)) => match &*served {
                Served::Yes { plural, .. } => Some(plural.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The answer to a question, if there is one; that nobody can tell is one.
    fn answer(&self, want: Want, sight: &mut IdentityView) -> Option<Seen> {
        let world = self.answers.read([&want]);
        let is_open = |seen: &&Seen| matches!(seen, Seen::Unknown(why) if why.is_passing());
        let answer = world.get(&want).filter(|seen| !is_open(seen)).cloned();
        sight.asked.insert(want, answer.is_some());
        answer
    }
}

/// Whether an identity is that of a rule that names no account: it looks at objects of ours alone, as we do.
fn is_nobodys(via: &Via) -> bool {
    *via == Via::service_account(String::new(), "")
}

/// What one identity may see, during one look: a subject behind a long line is asked about a thousand times.
struct IdentityView {
    via: Via,
    /// What was asked, and whether it was answered.
    asked: BTreeMap<Want, bool>,
    alike: Vec<KindInNamespace>,
}

/// The objects of one kind in one namespace.
struct KindInNamespace {
    kind: GroupKind,
    namespace: Option<String>,
    /// As URLs name the kind; none while that is not known.
    plural: Option<String>,
    /// Whether all of them may be seen; none while that is not answered.
    all: Option<bool>,
}

impl IdentityView {
    fn new(via: Via) -> Self {
        Self { via, asked: BTreeMap::new(), alike: Vec::new() }
    }

    /// Whether something may be got: one object, or all of them.
    fn right(
        &self,
        kind: &GroupKind,
        plural: &str,
        namespace: Option<&String>,
        name: Option<&String>,
    ) -> Want {
        let right = Right {
            verb: "get".to_owned(),
            group: kind.group.clone(),
            resource: plural.to_owned(),
            subresource: None,
            namespace: namespace.cloned(),
            name: name.cloned(),
        };
        Want::new(Question::Right { via: self.via.clone(), right })
    }

    /// Notes what had to be asked.
    fn note(self, found: &mut FoundCauses) {
        for (want, answered) in self.asked {
            found.open |= !answered;
            found.asked.insert(want);
        }
    }
}
