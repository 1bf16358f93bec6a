//! In which order things can go.

use super::Graph;
use super::component::components;
use super::node::Node;
use super::store::{ArcFilter, NodeId};

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
            targets.extend(store.before(id, ArcFilter::Order));
        });
        for members in found {
            let below = members.iter().flat_map(|&id| store.before(id, ArcFilter::Order));
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
}
