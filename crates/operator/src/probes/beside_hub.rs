//! The hub and the probes as one: whoever asks need not know who answers.

use std::collections::BTreeSet;

use linchpin_cluster::hub::{Hub, SubscriberId};
use linchpin_engine::contract::{Question, Want, World};

use super::Probes;

/// Answers questions about API servers with the hub, and those about the network with probes.
pub struct BesideHub {
    hub: Hub,
    probes: Probes,
}

/// Whether a question is about the network.
fn is_probe(want: &Want) -> bool {
    matches!(want.question(), Question::Probe { .. })
}

impl BesideHub {
    /// Both.
    pub fn new(hub: Hub, probes: Probes) -> Self {
        Self { hub, probes }
    }

    /// Replaces all that `subscriber` asks for. An empty set unsubscribes.
    pub fn subscribe(&self, subscriber: SubscriberId, wants: BTreeSet<Want>) {
        let (probes, rest) = if wants.iter().any(is_probe) {
            wants.into_iter().partition(is_probe)
        } else {
            (BTreeSet::new(), wants)
        };
        self.probes.subscribe(subscriber, probes);
        self.hub.subscribe(subscriber, rest);
    }

    /// The present answers.
    pub fn read<'a>(&self, wants: impl IntoIterator<Item = &'a Want>) -> World {
        let mut probes = Vec::new();
        let rest = wants.into_iter().filter(|want| {
            let is_probe = is_probe(want);
            if is_probe {
                probes.push(*want);
            }
            !is_probe
        });
        let mut world = self.hub.read(rest);
        for want in probes {
            world.insert(want.clone(), self.probes.read(want));
        }
        world
    }

    /// Asks for an immediate fresh look.
    pub fn refresh<'a>(&self, wants: impl IntoIterator<Item = &'a Want>) {
        let (probes, rest): (Vec<&Want>, Vec<&Want>) = wants.into_iter().partition(|want| is_probe(want));
        self.probes.refresh(probes);
        self.hub.refresh(rest);
    }
}
