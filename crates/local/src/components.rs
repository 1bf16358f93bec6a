//! The command line of each control-plane component.
//!
//! Upstream's defaults stay as they are (all default admission plugins, RBAC, node authorization) except where a local
//! cluster must differ: loopback addresses, no leader election, generous client limits, a complete audit log.

use crate::{
    ClusterOptions, Component,
    paths::Directory,
    process::{Launch, ProcessScope},
};

/// The first address of the service range: `kubernetes.default`.
pub(crate) const SERVICE_ADDRESS: &str = "10.96.0.1";
/// The whole range.
pub(crate) const SERVICE_ADDRESSES: &str = "10.96.0.0/16";

/// Where the control plane is to be found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    /// etcd's client port, in the API server's network.
    pub(crate) etcd: u16,
    /// etcd's port for other members, of which there are none.
    pub(crate) etcd_peers: u16,
    /// The API server's port in its own network.
    pub(crate) api_server: u16,
    /// The API server's port on the host: the same, unless it lives in another network.
    pub(crate) host: u16,
    pub(crate) controller_manager: u16,
    pub(crate) scheduler: u16,
    pub(crate) kwok: u16,
}

/// Writes command lines for one cluster.
pub(crate) struct CommandLines<'a> {
    pub(crate) options: &'a ClusterOptions,
    pub(crate) dir: &'a Directory,
    pub(crate) programs: &'a std::path::Path,
    pub(crate) addresses: Addresses,
}

impl CommandLines<'_> {
    pub(crate) fn etcd(&self) -> Launch {
        let client = format!("http://127.0.0.1:{}", self.addresses.etcd);
        let peers = format!("http://127.0.0.1:{}", self.addresses.etcd_peers);
        self.launch(
            Component::Etcd,
            vec![
                format!("--data-dir={}", self.dir.file("etcd").display()),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peers}"),
                format!("--initial-advertise-peer-urls={peers}"),
                format!("--initial-cluster=default={peers}"),
                format!("--unsafe-no-fsync={}", !self.options.fsync),
                "--log-level=warn".to_owned(),
            ],
        )
    }

    pub(crate) fn api_server(&self) -> Launch {
        let dir = self.dir;
        let authority = dir.certificate("ca");
        let pair = |certificate: &str, key: &str, name: &str| {
            [
                format!("--{certificate}={}", dir.certificate(name).display()),
                format!("--{key}={}", dir.key(name).display()),
            ]
        };
        let mut flags = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.addresses.etcd),
            format!("--secure-port={}", self.addresses.api_server),
            format!("--client-ca-file={}", authority.display()),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", dir.certificate("service-account").display()),
            format!("--service-account-signing-key-file={}", dir.key("service-account").display()),
            "--authorization-mode=Node,RBAC".to_owned(),
            format!("--service-cluster-ip-range={SERVICE_ADDRESSES}"),
            "--allow-privileged=true".to_owned(),
            format!("--requestheader-client-ca-file={}", authority.display()),
            "--requestheader-allowed-names=front-proxy".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
            format!("--kubelet-certificate-authority={}", authority.display()),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            // A webhook given as a service is called at its endpoints: there is no kube-proxy.
            "--enable-aggregator-routing=true".to_owned(),
            "--profiling=false".to_owned(),
            "--event-ttl=15m".to_owned(),
            "--max-requests-inflight=800".to_owned(),
            "--max-mutating-requests-inflight=400".to_owned(),
            format!("--audit-policy-file={}", dir.file("audit-policy.yaml").display()),
            format!("--audit-log-path={}", dir.audit_log().display()),
            // The witness must be complete: no batches, no loss, no rotation (0 would mean 100 MB).
            "--audit-log-mode=blocking-strict".to_owned(),
            "--audit-log-maxsize=1048576".to_owned(),
        ];
        flags.extend(pair("tls-cert-file", "tls-private-key-file", "serving"));
        flags.extend(pair("proxy-client-cert-file", "proxy-client-key-file", "front-proxy"));
        flags.extend(pair("kubelet-client-certificate", "kubelet-client-key", "kubelet-client"));
        flags.extend(self.emulated_version());
        if self.options.node {
            let address = crate::node::ADDRESS;
            flags.extend(["--bind-address=0.0.0.0".to_owned(), format!("--advertise-address={address}")]);
        } else {
            flags.extend(
                [
                    "--bind-address=127.0.0.1",
                    "--advertise-address=127.0.0.1",
                    "--endpoint-reconciler-type=none",
                ]
                .map(str::to_owned),
            );
        }
        self.launch(Component::ApiServer, flags)
    }

    pub(crate) fn controller_manager(&self) -> Launch {
        let dir = self.dir;
        let mut flags = self.client_flags(Component::ControllerManager, self.addresses.controller_manager);
        flags.extend([
            "--use-service-account-credentials=true".to_owned(),
            format!("--service-account-private-key-file={}", dir.key("service-account").display()),
            format!("--root-ca-file={}", dir.certificate("ca").display()),
            format!("--cluster-signing-cert-file={}", dir.certificate("ca").display()),
            format!("--cluster-signing-key-file={}", dir.key("ca").display()),
            "--concurrent-deployment-syncs=20".to_owned(),
            "--concurrent-gc-syncs=20".to_owned(),
            "--concurrent-namespace-syncs=20".to_owned(),
            // A node that a test has paused must not lose its pods; the test of node loss shortens this.
            "--node-monitor-grace-period=24h".to_owned(),
        ]);
        self.launch(Component::ControllerManager, flags)
    }

    pub(crate) fn scheduler(&self) -> Launch {
        self.launch(Component::Scheduler, self.client_flags(Component::Scheduler, self.addresses.scheduler))
    }

    fn client_flags(&self, component: Component, port: u16) -> Vec<String> {
        let kubeconfig = self.dir.kubeconfig(component.name());
        let kubeconfig = kubeconfig.display();
        let mut flags = vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", self.dir.certificate("serving").display()),
            format!("--tls-private-key-file={}", self.dir.key("serving").display()),
            "--leader-elect=false".to_owned(),
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=2000".to_owned(),
            "--profiling=false".to_owned(),
        ];
        flags.extend(self.emulated_version());
        flags
    }

    fn emulated_version(&self) -> Option<String> {
        self.options.emulated_version.as_ref().map(|version| format!("--emulated-version={version}"))
    }

    fn launch(&self, component: Component, mut flags: Vec<String>) -> Launch {
        flags.extend(self.options.extra(component));
        // Only what nodes and pods talk to, and what that needs, lives in the cluster's own network.
        let inside = self.options.node && matches!(component, Component::Etcd | Component::ApiServer);
        let place = if inside { ProcessScope::Network } else { ProcessScope::Host };
        Launch::on_host(self.programs.join(component.name()), flags).at(place)
    }
}
