//! Shares: who is served next where places are few, so that nobody's slow work stops everybody's. Pure.
//!
//! Work goes in lanes of their own, each with its own places. Within a lane namespaces take turns, and by priority
//! within one. Nobody holds more places of a lane than it leaves free: one namespace alone may have half of them under
//! way, a second one half of the rest, and the first work of a newcomer always finds a place unless as many others as
//! the lane has halves came before. The same holds for what answers (a cluster, an API group), for every caller. What
//! may not start yet keeps nothing else waiting, not even in its own namespace.
//!
//! The driver starts effects this way, and the hub takes first looks.

use std::collections::{BTreeMap, VecDeque};

/// Places of the same sort.
pub trait Lane: Copy + Ord {
    /// How many there are of them, where `limit` is what the shares were made with.
    fn places(self, limit: usize) -> usize;
}

/// Whose places some work uses, besides its namespace's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route<L> {
    /// Which places.
    pub lane: L,
    /// What answers, where it may be slow on its own: another cluster, an API group.
    pub backend: Option<String>,
}

/// The place of work under way, to be given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot<L> {
    namespace: String,
    /// Where the work goes.
    pub route: Route<L>,
}

impl<L> Slot<L> {
    /// Whose work it is.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

/// Work that waits, to be withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTicket<L> {
    namespace: String,
    route: Route<L>,
    number: (i32, u64),
}

/// Work that waits, by namespace, route, priority and arrival.
type Waiting<L, T> = BTreeMap<String, BTreeMap<Route<L>, BTreeMap<(i32, u64), T>>>;

/// What waits and what is under way.
#[derive(Debug)]
pub struct Shares<L, T> {
    limit: usize,
    waiting: Waiting<L, T>,
    turns: VecDeque<String>,
    arrivals: u64,
    under_way: BTreeMap<L, UnderWay>,
}

/// The places of one lane that are held.
#[derive(Debug, Default)]
struct UnderWay {
    all: usize,
    namespaces: BTreeMap<String, usize>,
    backends: BTreeMap<String, usize>,
}

/// Whether somebody who holds `own` of the `held` places may have another: never more than are left free.
fn may_have_another(places: usize, held: usize, own: usize) -> bool {
    held.saturating_add(own) < places
}

impl UnderWay {
    fn may_start(&self, places: usize, namespace: &str, backend: Option<&String>) -> bool {
        let own = self.namespaces.get(namespace).copied().unwrap_or_default();
        let there = backend.and_then(|backend| self.backends.get(backend)).copied().unwrap_or_default();
        may_have_another(places, self.all, own.max(there))
    }

    fn start<L>(&mut self, slot: &Slot<L>) {
        self.all += 1;
        *self.namespaces.entry(slot.namespace.clone()).or_default() += 1;
        if let Some(backend) = &slot.route.backend {
            *self.backends.entry(backend.clone()).or_default() += 1;
        }
    }

    fn end<L>(&mut self, slot: &Slot<L>) {
        self.all = self.all.saturating_sub(1);
        one_less(&mut self.namespaces, &slot.namespace);
        if let Some(backend) = &slot.route.backend {
            one_less(&mut self.backends, backend);
        }
    }
}

fn one_less(held: &mut BTreeMap<String, usize>, who: &str) {
    if let Some(count) = held.get_mut(who) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            held.remove(who);
        }
    }
}

impl<L: Lane, T> Shares<L, T> {
    /// Nothing waits. How many places that makes is said by each lane.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            waiting: BTreeMap::new(),
            turns: VecDeque::new(),
            arrivals: 0,
            under_way: BTreeMap::new(),
        }
    }

    /// Adds work behind that of its namespace and route which has the same priority.
    pub fn push(&mut self, namespace: &str, route: Route<L>, priority: i32, work: T) -> WaitingTicket<L> {
        if !self.waiting.contains_key(namespace) {
            self.turns.push_back(namespace.to_owned());
        }
        self.arrivals += 1;
        let number = (priority, self.arrivals);
        let routes = self.waiting.entry(namespace.to_owned()).or_default();
        routes.entry(route.clone()).or_default().insert(number, work);
        WaitingTicket { namespace: namespace.to_owned(), route, number }
    }

    /// Takes out what waits; none where it does not wait any more.
    pub fn withdraw(&mut self, ticket: &WaitingTicket<L>) -> Option<T> {
        let work = self.take(&ticket.namespace, &ticket.route, Some(ticket.number))?;
        if !self.waiting.contains_key(&ticket.namespace) {
            self.turns.retain(|namespace| *namespace != ticket.namespace);
        }
        Some(work)
    }

    /// Takes out the work of this number, or the first of its route.
    fn take(&mut self, namespace: &str, route: &Route<L>, number: Option<(i32, u64)>) -> Option<T> {
        let routes = self.waiting.get_mut(namespace)?;
        let line = routes.get_mut(route)?;
        let work = match number {
            Some(number) => line.remove(&number),
            None => line.pop_first().map(|(_, work)| work),
        };
        if line.is_empty() {
            routes.remove(route);
        }
        if routes.is_empty() {
            self.waiting.remove(namespace);
        }
        work
    }

    /// Takes what is next and its place: the first that may start of the first namespace, in turn, that has one.
    pub fn pop(&mut self) -> Option<(Slot<L>, T)> {
        let mut turns = self.turns.iter().enumerate();
        let (index, route) = turns.find_map(|(index, namespace)| Some((index, self.next_of(namespace)?)))?;
        let namespace = self.turns.remove(index)?;
        let work = self.take(&namespace, &route, None)?;
        if self.waiting.contains_key(&namespace) {
            self.turns.push_back(namespace.clone());
        }
        let slot = Slot { namespace, route };
        self.under_way.entry(slot.route.lane).or_default().start(&slot);
        Some((slot, work))
    }

    /// The route of the first work of a namespace that may start.
    fn next_of(&self, namespace: &str) -> Option<Route<L>> {
        let routes = self.waiting.get(namespace)?;
        let may_start = |route: &Route<L>| {
            let held = self.under_way.get(&route.lane);
            let places = route.lane.places(self.limit);
            held.is_none_or(|held| held.may_start(places, namespace, route.backend.as_ref()))
        };
        let startable = routes.iter().filter(|(route, _)| may_start(route));
        let first = startable.filter_map(|(route, line)| Some((line.first_key_value()?.0, route)));
        first.min().map(|(_, route)| route.clone())
    }

    /// Gives a place back.
    pub fn end(&mut self, slot: &Slot<L>) {
        if let Some(held) = self.under_way.get_mut(&slot.route.lane) {
            held.end(slot);
        }
    }

    /// How many are under way in a lane.
    pub fn under_way(&self, lane: L) -> usize {
        self.under_way.get(&lane).map_or(0, |held| held.all)
    }

    /// Whether work waits.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests;
