//! In which order things can go, and the longest chain of waits.

use super::cause::Chain;
use super::component::components;
use super::node::Node;
use super::store::{NodeId, Reading};
use super::{End, Graph};

impl Graph {
    /// All nodes by level: what needs nothing comes first, everything else one level after the last thing it needs.
    ///
    /// Met waits count too: this is the order of the plans, not of what is left. Nodes that need each other share a
    /// level. Each level is sorted.
    pub fn levels(&self) -> Vec<Vec<Node>> {
        let store = &self.store;
        let mut level_of: Vec<Option<usize>> = vec![None; store.bound()];
        let mut levels: Vec<Vec<NodeId>> = Vec::new();
        let found = components(store.bound(), store.ids().map(|(_, id)| id), |id, targets| {
            targets.extend(store.before(id, Reading::Order));
        });
        for members in found {
            let below = members.iter().flat_map(|&id| store.before(id, Reading::Order));
            let level = below.filter_map(|id| level_of[id as usize]).max().map_or(0, |level| level + 1);
            for &id in &members {
                level_of[id as usize] = Some(level);
            }
            if levels.len() <= level {
                levels.resize_with(level + 1, Vec::new);
            }
            levels[level].extend(members);
        }
        levels
            .into_iter()
            .map(|mut ids| {
                store.sort(&mut ids);
                ids.into_iter().map(|id| store.node(id).clone()).collect()
            })
            .collect()
    }

    /// All nodes, each after everything it needs: the levels one after another.
    pub fn order(&self) -> Vec<Node> {
        self.levels().into_iter().flatten().collect()
    }

    /// The longest chain of things that are not there yet; none when nothing waits.
    ///
    /// A chain that leads into a cycle ends there. Of several equally long ones, the one that starts and goes on
    /// with the smallest nodes. Links in the middle of a long chain are left out, as in every [`Chain`].
    pub fn critical_path(&self) -> Option<Chain> {
        let store = &self.store;
        let mut length = vec![0_usize; store.bound()];
        let mut next: Vec<Option<NodeId>> = vec![None; store.bound()];
        let found = components(store.bound(), store.ids().map(|(_, id)| id), |id, targets| {
            targets.extend(store.before(id, Reading::Blocking));
        });
        for id in found.into_iter().flatten().filter(|&id| self.cyclic.component(id).is_none()) {
            for to in store.before_sorted(id, Reading::Blocking) {
                if length[to as usize] + 1 > length[id as usize] {
                    length[id as usize] = length[to as usize] + 1;
                    next[id as usize] = Some(to);
                }
            }
        }
        let mut start: Option<NodeId> = None;
        for (_, id) in store.ids() {
            if start.is_none_or(|best| length[id as usize] > length[best as usize]) {
                start = Some(id);
            }
        }
        let mut path = vec![start?];
        while let Some(to) = path.last().and_then(|&id| next[id as usize]) {
            path.push(to);
        }
        let end =
            self.cyclic.cycle_of(store, *path.last()?).map_or(End::Leaf, |cycle| End::Cycle(Some(cycle)));
        (path.len() > 1 || end != End::Leaf).then(|| self.chain(&path, end))
    }
}
