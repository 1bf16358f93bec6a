//! The control plane goes away under a running operator, and comes back.

use crate::{eventually, operator::Operator, seconds, with_definitions};
use linchpin_local::Component;

#[test]
fn a_lost_control_plane_is_survived_and_noticed() {
    let cluster = with_definitions();
    let mut operator = Operator::start("survivor", &cluster.kubeconfig(), &[]);
    let mut standby = Operator::start("standby", &cluster.kubeconfig(), &[]);
    eventually("both are ready", seconds(20), || operator.is_ready() && standby.is_ready());

    let outages: [&[Component]; 3] =
        [&[Component::ApiServer], &[Component::Etcd], &[Component::ApiServer, Component::Etcd]];
    for lost in outages {
        for component in lost {
            cluster.kill(*component).unwrap();
        }
        eventually("neither is ready", seconds(10), || !operator.is_ready() && !standby.is_ready());
        let (_, reason) = operator.readiness();
        assert!(reason.contains("[-] api-server: "), "it does not say why: {reason}");
        assert!(operator.is_live(), "a lost server is no reason to be restarted");
        // Long enough for the term to end.
        eventually("nobody leads", seconds(15), || !operator.leads() && !standby.leads());

        for component in lost.iter().rev() {
            cluster.start_component(*component).unwrap();
        }
        let took =
            eventually("both are ready again", seconds(5), || operator.is_ready() && standby.is_ready());
        println!("{lost:?}: ready again after {took:?}");
        assert!(operator.is_running() && standby.is_running());
        assert!(operator.leads() != standby.leads(), "exactly one leads");
    }
}

#[test]
fn an_operator_that_starts_before_its_cluster_waits_for_it() {
    let cluster = with_definitions();
    cluster.kill(Component::ApiServer).unwrap();
    let mut operator = Operator::start("early", &cluster.kubeconfig(), &[]);
    eventually("it says what it waits for", seconds(5), || {
        operator.readiness().1.contains("cannot connect to")
    });
    assert!(operator.is_running() && operator.is_live() && !operator.leads());
    cluster.start_component(Component::ApiServer).unwrap();
    eventually("it leads", seconds(5), || operator.is_ready() && operator.leads());
}
