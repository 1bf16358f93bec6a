//! When a protection finalizer goes on, and when it comes off.

use std::collections::BTreeMap;

use super::Turn;
use crate::{
    answer::{ItemPair, ProviderAnswer},
    pod::PodView,
};

/// What is known of a pod's traffic through one employer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Nothing is known: holds.
    Unknown,
    /// It may have traffic.
    In,
    /// It was observed to have none.
    Out,
}

/// What is to happen to the finalizer of one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    On,
    Off,
    Keep,
}

/// The items of an answer by the employee they are about.
pub(super) fn by_name(answer: &ProviderAnswer) -> BTreeMap<&str, Vec<&ItemPair>> {
    let mut by_name: BTreeMap<&str, Vec<&ItemPair>> = BTreeMap::new();
    for pair in &answer.employees {
        by_name.entry(pair.name.as_str()).or_default().push(pair);
    }
    by_name
}

/// What one item says.
fn of_pair(pair: &ItemPair, terminating: bool) -> Protection {
    let ready = pair.ready.unwrap_or_default() && !terminating;
    let out =
        pair.current.is_none() || pair.in_traffic == Some(false) || (pair.in_traffic.is_none() && pair.same);
    match (ready, pair.same, out) {
        (true, true, _) => Protection::On,
        (true, false, _) | (false, _, false) => Protection::Keep,
        (false, _, true) => Protection::Off,
    }
}

/// What all items of a pod say together: on or off only where they agree; off where there is none.
pub(super) fn of_pod(pod: &PodView, pairs: Option<&Vec<&ItemPair>>) -> Protection {
    let mut said = pairs.into_iter().flatten().map(|pair| of_pair(pair, pod.is_terminating()));
    let Some(first) = said.next() else { return Protection::Off };
    if said.all(|next| next == first) { first } else { Protection::Keep }
}

impl Turn<'_> {
    /// Whether a terminating pod is let go whatever the provider says: law 11, a pod never hangs on us.
    pub(super) fn must_let_go(&mut self, pod: &PodView) -> bool {
        let Some(deletion) = pod.deletion else { return false };
        if !pod.running || !pod.scheduled || pod.node_gone || self.observed.namespace_going {
            return true;
        }
        let last = deletion.plus_duration(self.observed.drain_timeout);
        if self.now < last {
            self.wake(last);
        }
        self.now >= last
    }
}
