//! The processes a cluster is made of, by the names under which they can be looked at, killed and restarted.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// One process of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// The store.
    Etcd,
    /// The API server.
    #[serde(rename = "kube-apiserver")]
    ApiServer,
    /// Deployments, Jobs, garbage collection and the other controllers.
    #[serde(rename = "kube-controller-manager")]
    ControllerManager,
    /// Gives pods their nodes.
    #[serde(rename = "kube-scheduler")]
    Scheduler,
    /// Simulates nodes and pods.
    Kwok,
    /// Holds the network namespace of a cluster with a real node.
    Network,
    /// Carries connections of the host into the network namespace of a cluster with a real node.
    Forwarder,
    /// Makes the Services of a cluster with a real node reachable, by address and by name.
    Services,
    /// Holds the namespaces of the real node; without it nothing on the node lives.
    Node,
    /// Runs the real node's containers.
    Containerd,
    /// The real node's agent.
    Kubelet,
}

impl Component {
    /// Every component, in the order in which they start.
    pub const ALL: [Self; 11] = [
        Self::Network,
        Self::Etcd,
        Self::Forwarder,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Services,
        Self::Node,
        Self::Containerd,
        Self::Kubelet,
        Self::Kwok,
    ];

    /// Its name: that of the upstream program where there is one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
            Self::Network => "network",
            Self::Forwarder => "forwarder",
            Self::Services => "services",
            Self::Node => "node",
            Self::Containerd => "containerd",
            Self::Kubelet => "kubelet",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A name that is no component's.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a component: choose one of {known}", known = Component::ALL.map(Component::name).join(", "))]
pub struct UnknownComponent(String);

impl FromStr for Component {
    type Err = UnknownComponent;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|component| component.name() == text)
            .ok_or_else(|| UnknownComponent(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_is_found_by_its_own_name() {
        for component in Component::ALL {
            assert_eq!(component.name().parse::<Component>().unwrap(), component);
            assert_eq!(serde_json::to_value(component).unwrap(), component.name());
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let message = "kube-proxy".parse::<Component>().unwrap_err().to_string();
        assert!(message.contains("kube-proxy") && message.contains("kube-apiserver"), "{message}");
    }
}
