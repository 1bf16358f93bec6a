//! What a cluster is to be like. The default is a whole control plane on loopback, without nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use crate::Component;

/// What a cluster is to be like.
///
/// ```
/// # use linchpin_local::{Component, ClusterOptions};
/// let options = ClusterOptions { kwok: Some(3), ..ClusterOptions::default() }
///     .flag(Component::ApiServer, "--etcd-compaction-interval=10s");
/// assert_eq!(options.flags[&Component::ApiServer], ["--etcd-compaction-interval=10s"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterOptions {
    /// Where everything of the cluster lies; it is removed with the cluster. By default a new temporary directory.
    pub dir: Option<PathBuf>,
    /// The port of the API server on 127.0.0.1. By default a free one.
    pub port: Option<u16>,
    /// The Kubernetes minor version to behave as, such as `1.33`.
    pub emulated_version: Option<String>,
    /// Further flags of each component, put last, so that they override ours.
    pub flags: BTreeMap<Component, Vec<String>>,
    /// Whether etcd waits for the disk on each write. Off by default: such a cluster is fast, and does not survive a
    /// power cut, which it need not.
    pub fsync: bool,
    /// Control-plane components not to start: those a test does not need.
    pub without: BTreeSet<Component>,
    /// Whether to add a real node: kubelet and containerd in namespaces of their own. Needs root.
    pub node: bool,
    /// How many simulated nodes to add.
    pub kwok: Option<u32>,
    /// The Stage file that says how pods behave, instead of kwok's own "fast" set.
    pub kwok_stages: Option<PathBuf>,
}

impl ClusterOptions {
    /// Adds a flag to a component's command line.
    #[must_use]
    pub fn flag(mut self, component: Component, flag: impl Into<String>) -> Self {
        self.flags.entry(component).or_default().push(flag.into());
        self
    }

    /// Leaves a component out.
    #[must_use]
    pub fn without(mut self, component: Component) -> Self {
        self.without.insert(component);
        self
    }

    pub(crate) fn has(&self, component: Component) -> bool {
        let wanted = match component {
            Component::Etcd | Component::ApiServer | Component::ControllerManager | Component::Scheduler => {
                true
            }
            Component::Kwok => self.kwok.is_some(),
            Component::Network
            | Component::Forwarder
            | Component::Services
            | Component::Node
            | Component::Containerd
            | Component::Kubelet => self.node,
        };
        wanted && !self.without.contains(&component)
    }

    pub(crate) fn extra(&self, component: Component) -> impl Iterator<Item = String> {
        self.flags.get(&component).into_iter().flatten().cloned()
    }
}
