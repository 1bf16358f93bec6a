//! All sources of what subjects want to see, as one: the hub what API servers know, and others beside it what only they
//! know. All that the controller knows of any of them is to subscribe, to read and to ask for a fresh look.

use std::collections::BTreeSet;

use linchpin_cluster::hub::{Hub, SubscriberId};
use linchpin_engine::contract::{Question, Seen, Want, World};

/// Answers some questions that no API server can.
pub trait Answerer: Send {
    /// Whether it is asked this.
    fn answers(&self, question: &Question) -> bool;
    /// Replaces all that a subscriber asks for. An empty set unsubscribes.
    fn subscribe(&self, subscriber: SubscriberId, wants: BTreeSet<Want>);
    /// The present answer.
    fn read(&self, want: &Want) -> Seen;
    /// Asks for an immediate fresh look.
    fn refresh(&self, want: &Want);
}

/// The hub, and who answers beside it.
pub struct Answers {
    hub: Hub,
    beside: Vec<Box<dyn Answerer>>,
}

impl Answers {
    /// The hub alone.
    pub fn new(hub: Hub) -> Self {
        Self { hub, beside: Vec::new() }
    }

    /// The same, and one more beside it.
    #[must_use]
    pub fn with(mut self, answerer: impl Answerer + 'static) -> Self {
        self.beside.push(Box::new(answerer));
        self
    }

    fn beside(&self, want: &Want) -> Option<&dyn Answerer> {
        let mut all = self.beside.iter();
        all.find(|answerer| answerer.answers(want.question())).map(|answerer| &**answerer)
    }

    /// Replaces all that a subscriber asks for. An empty set unsubscribes.
    pub fn subscribe(&self, subscriber: SubscriberId, wants: BTreeSet<Want>) {
        let mut rest = wants;
        for answerer in &self.beside {
            let is_its = |want: &Want| answerer.answers(want.question());
            // Nearly nobody asks anything but API servers: then nothing is taken apart.
            let (its, others) = if rest.iter().any(is_its) {
                rest.into_iter().partition(is_its)
            } else {
                (BTreeSet::new(), rest)
            };
            answerer.subscribe(subscriber, its);
            rest = others;
        }
        self.hub.subscribe(subscriber, rest);
    }

    /// The present answers.
    pub fn read<'a>(&self, wants: impl IntoIterator<Item = &'a Want>) -> World {
        let mut beside = Vec::new();
        let rest = wants.into_iter().filter(|want| match self.beside(want) {
            None => true,
            Some(answerer) => {
                beside.push(((*want).clone(), answerer.read(want)));
                false
            }
        });
        let mut world = self.hub.read(rest);
        for (want, seen) in beside {
            world.insert(want, seen);
        }
        world
    }

    /// Asks for an immediate fresh look.
    pub fn refresh<'a>(&self, wants: impl IntoIterator<Item = &'a Want>) {
        let rest = wants.into_iter().filter(|want| match self.beside(want) {
            None => true,
            Some(answerer) => {
                answerer.refresh(want);
                false
            }
        });
        self.hub.refresh(rest);
    }
}
