//! Why nobody has looked at an object: whether an operator is there at all.

use jiff::Timestamp;
use linchpin_engine::{descend::DescendAnswer, graph::Node};
use serde_json::Value;

use crate::cluster_reader::ClusterReader;

/// The Lease that operators hold, unless they are configured otherwise.
const LEASE: &str = "linchpin";

/// What is said of an object that nobody has looked at.
pub(super) async fn describe(reader: &ClusterReader, node: &Node) -> String {
    let query = [("fieldSelector", format!("metadata.name={LEASE}"))];
    let namespace = node.object.namespace.as_deref().unwrap_or_default();
    match reader.list("/apis/coordination.k8s.io/v1/leases", &query).await {
        DescendAnswer::NotVisible => {
            "no operator has looked at it yet; whether one is running is not known: you may not list Leases"
                .to_owned()
        }
        DescendAnswer::Objects(leases) => in_words(&leases, namespace, Timestamp::now()),
    }
}

fn in_words(leases: &[Value], namespace: &str, now: Timestamp) -> String {
    let text = |lease: &Value, path: &str| {
        lease.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let holder = leases.iter().find(|lease| is_held(lease, now));
    match (holder, leases.first()) {
        (Some(held), _) => format!(
            "operator {} has not looked at it yet; does it serve namespace {namespace} (--watch-namespaces)?",
            text(held, "/spec/holderIdentity")
        ),
        (None, Some(lease)) => {
            let (place, name) = (text(lease, "/metadata/namespace"), text(lease, "/metadata/name"));
            format!("no operator holds Lease {place}/{name}: is it running?")
        }
        (None, None) => format!("no operator holds a Lease {LEASE} in any namespace: is it running?"),
    }
}

fn is_held(lease: &Value, now: Timestamp) -> bool {
    let text = |path: &str| lease.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let seconds = lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64).unwrap_or(15);
    let renewed: Option<Timestamp> = text("/spec/renewTime").parse().ok();
    let valid = renewed.is_some_and(|renewed| renewed.as_second().saturating_add(seconds) > now.as_second());
    !text("/spec/holderIdentity").is_empty() && valid
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_said_whether_an_operator_is_there() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let lease = |holder: &str, renewed: &str| {
            json!({"metadata": {"namespace": "linchpin-system", "name": "linchpin"},
                "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}})
        };
        let nobody = "no operator holds Lease linchpin-system/linchpin: is it running?";
        assert_eq!(in_words(&[lease("a", "2026-01-01T00:00:01.000000Z")], "shop", now), nobody);
        assert_eq!(in_words(&[lease("", "2026-01-01T00:00:59.000000Z")], "shop", now), nobody);
        assert_eq!(
            in_words(&[], "shop", now),
            "no operator holds a Lease linchpin in any namespace: is it running?"
        );
        assert_eq!(
            in_words(&[lease("a", "2026-01-01T00:00:59.000000Z")], "shop", now),
            "operator a has not looked at it yet; does it serve namespace shop (--watch-namespaces)?"
        );
    }
}
