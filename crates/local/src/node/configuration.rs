//! The configuration files of containerd, kubelet and the pod network, with every path inside the cluster's directory.

use serde_json::json;

use super::{ADDRESS, DOMAIN, NAME_SERVER, socket};
use crate::paths::Directory;

/// Addresses of pods; the same in every cluster, as each has a network of its own.
const PODS: &str = "10.244.0.0/24";

/// containerd's configuration.
pub(super) fn containerd(dir: &Directory, plugins: &str) -> String {
    let node = dir.node();
    let node = node.display();
    let socket = socket(dir);
    let socket = socket.display();
    format!(
        r#"version = 2
root = "{node}/containerd"
state = "{node}/containerd-state"
oom_score = 0

[grpc]
address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{node}/opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true
disable_tcp_service = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{node}/cni"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
Root = "{node}/runc"
"#
    )
}

/// kubelet's configuration. What is switched off needs a whole machine: eviction, image collection, swap checks.
pub(super) fn kubelet(dir: &Directory) -> String {
    let authority = dir.certificate("ca");
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": authority },
        },
        "authorization": { "mode": "Webhook" },
        "tlsCertFile": dir.certificate("kubelet-serving"),
        "tlsPrivateKeyFile": dir.key("kubelet-serving"),
        "containerRuntimeEndpoint": format!("unix://{}", socket(dir).display()),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", dir.name()),
        "failCgroupV1": false,
        "failSwapOn": false,
        "enforceNodeAllocatable": [],
        "oomScoreAdj": 0,
        "resolvConf": "",
        "clusterDNS": [NAME_SERVER],
        "clusterDomain": DOMAIN,
        "makeIPTablesUtilChains": false,
        "localStorageCapacityIsolation": false,
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": dir.node().join("pod-logs"),
        "fileCheckFrequency": "1s",
        "nodeStatusUpdateFrequency": "2s",
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
    })
    .to_string()
}

/// The pod network: a bridge, and addresses remembered inside the directory.
pub(super) fn network(dir: &Directory) -> String {
    json!({
        "cniVersion": "1.0.0",
        "name": "linchpin",
        "plugins": [{
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": true,
            "hairpinMode": true,
            "ipam": {
                "type": "host-local",
                "dataDir": dir.node().join("cni-addresses"),
                "ranges": [[{ "subnet": PODS }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    })
    .to_string()
}
