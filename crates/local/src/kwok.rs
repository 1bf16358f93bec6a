//! Simulated nodes: kwok plays the kubelet of nodes that exist in the API only. For scale, and where there is no root.

use serde_json::{Value, json};

use crate::{ClusterOptions, binary::Kwok, paths::Directory, process::Launch};

/// The annotation by which kwok knows its nodes.
const ANNOTATION: &str = "kwok.x-k8s.io/node";
/// The label by which we find them.
pub(crate) const SELECTOR: &str = "type%3Dkwok";

/// kwok's command line; `port` is where it answers for its health.
pub(crate) fn launch(kwok: &Kwok, options: &ClusterOptions, dir: &Directory, port: u16) -> Launch {
    let stages = options.kwok_stages.as_ref().unwrap_or(&kwok.stages);
    let mut arguments = vec![
        format!("--kubeconfig={}", dir.kubeconfig("admin").display()),
        format!("--config={}", stages.display()),
        "--manage-all-nodes=false".to_owned(),
        format!("--manage-nodes-with-annotation-selector={ANNOTATION}=fake"),
        "--node-lease-duration-seconds=40".to_owned(),
        format!("--server-address=127.0.0.1:{port}"),
    ];
    arguments.extend(options.extra(crate::Component::Kwok));
    Launch::on_host(&kwok.program, arguments)
}

/// The node object number `index`. Beside a real node it takes only pods that ask for it.
pub(crate) fn node(index: u32, beside_real: bool) -> Value {
    let name = format!("kwok-{index}");
    let taints = if beside_real {
        json!([{ "key": ANNOTATION, "value": "fake", "effect": "NoSchedule" }])
    } else {
        json!([])
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": { (ANNOTATION): "fake", "node.alpha.kubernetes.io/ttl": "0" },
            "labels": {
                "type": "kwok",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": { "taints": taints },
    })
}

/// How many of these nodes are ready.
pub(crate) fn count_ready(nodes: &Value) -> usize {
    let items = nodes["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter(|node| is_ready(node)).count()
}

/// Whether a node, real or simulated, says that it is ready.
pub(crate) fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
