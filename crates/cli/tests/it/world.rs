//! The cluster with one operator that tests about objects of ours share: controllers, simulated nodes, our
//! definitions. Each test has a namespace of its own in it.

use crate::{eventually, operator::Operator, seconds};
use linchpin_local::{Cluster, ClusterOptions};
use linchpin_testkit::{Api, OPERATOR, Scenario, audit::Audit, grant_operator};
use std::sync::OnceLock;

pub(crate) struct World {
    // Ends before the cluster, whose audit log it is judged from.
    pub(crate) operator: Operator,
    pub(crate) api: Api,
    pub(crate) cluster: Cluster,
}

impl World {
    /// Starts a cluster with an operator that has its own few rights and no more.
    pub(crate) fn start(options: &ClusterOptions, flags: &[&str]) -> Self {
        let cluster = Cluster::start(options).expect("a local Kubernetes");
        let api = Api::connect(&cluster.kubeconfig());
        grant_operator(&api);
        let operator = operator(&cluster, flags);
        Self { operator, api, cluster }
    }

    /// A namespace of its own.
    pub(crate) fn scenario(&self, name: &str) -> Scenario {
        Scenario::begin(&self.api, Audit::from_now(&self.cluster.audit_log()), name)
    }
}

/// Starts an operator with its own few rights in this cluster.
pub(crate) fn operator(cluster: &Cluster, flags: &[&str]) -> Operator {
    let kubeconfig = cluster.kubeconfig_for(OPERATOR, None).unwrap();
    let operator = Operator::start("operator", &kubeconfig, flags);
    eventually("the operator is ready", seconds(60), || operator.is_ready());
    operator
}

/// The one that all share.
pub(crate) fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let options = ClusterOptions { kwok: Some(1), ..ClusterOptions::default() };
        World::start(&options, &["--allow-loopback-clusters"])
    })
}

/// A namespace in the shared cluster.
pub(crate) fn scenario(name: &str) -> Scenario {
    world().scenario(name)
}
