//! Whoever answers what subjects want to see: all that the controller knows of it.

use std::collections::BTreeSet;

use linchpin_cluster::hub::SubscriberId;
use linchpin_engine::contract::{Want, World};

use crate::probes::BesideHub;

/// Answers questions about the world, and calls when answers change.
pub(super) trait Answers: Send {
    /// Replaces all that a subscriber asks for. An empty set unsubscribes.
    fn subscribe(&self, subscriber: SubscriberId, wants: BTreeSet<Want>);
    /// The present answers.
    fn read(&self, wants: &mut dyn Iterator<Item = &Want>) -> World;
    /// Asks for an immediate fresh look.
    fn refresh(&self, wants: &BTreeSet<Want>);
}

impl Answers for BesideHub {
    fn subscribe(&self, subscriber: SubscriberId, wants: BTreeSet<Want>) {
        Self::subscribe(self, subscriber, wants);
    }

    fn read(&self, wants: &mut dyn Iterator<Item = &Want>) -> World {
        Self::read(self, wants)
    }

    fn refresh(&self, wants: &BTreeSet<Want>) {
        Self::refresh(self, wants);
    }
}
