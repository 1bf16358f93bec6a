//! How a cluster comes up: directory, keeper, certificates, then the processes in order, each awaited.

use std::{
    collections::BTreeMap,
    fs::{self, File, TryLockError},
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::Mutex,
};

use super::{Cluster, Inner, admin_pair};
use crate::{
    ClusterOptions, Component, audit,
    binary::{self, Kwok, Tools},
    certificates::{self, CertificateAuthority},
    components::{Addresses, CommandLines, SERVICE_ADDRESS},
    error::{Error, Result},
    https::HttpsClient,
    keeper::{self, ClusterKeeper},
    kubeconfig, kwok, node,
    paths::{Directory, create, write},
    ports::PortChooser,
    state::ClusterState,
    waiter::waiter_image,
};

/// How often other ports are tried when one was lost to a race.
const ATTEMPTS: usize = 4;

impl Cluster {
    /// Starts a cluster, and returns when it is ready: the API server answers, controllers and scheduler are healthy,
    /// pods can be created.
    ///
    /// It dies with this process, or when the returned value is dropped.
    pub fn start(options: &ClusterOptions) -> Result<Self> {
        if options.node {
            node::check_node_support()?;
        }
        let programs = Programs {
            tools: binary::tools()?,
            kubernetes: binary::kubernetes()?,
            kwok: if options.has(Component::Kwok) { Some(binary::kwok()?) } else { None },
        };
        let mut attempt = 1;
        loop {
            match Self::start_once(options, &programs) {
                Err(error) if attempt < ATTEMPTS && is_lost_race(&error, options) => attempt += 1,
                other => return other,
            }
        }
    }

    fn start_once(options: &ClusterOptions, programs: &Programs) -> Result<Self> {
        let mut ports = PortChooser::default();
        let addresses = addresses(options, &mut ports)?;
        let (dir, lock) = prepare_directory(options, &programs.tools)?;
        let keeper = ClusterKeeper::watch(&programs.tools.keeper, &dir)?;
        let state = ClusterState {
            options: options.clone(),
            programs: programs.kubernetes.clone(),
            port: addresses.host,
            complete: false,
            components: BTreeMap::new(),
        };
        state.write(&dir)?;
        create(&dir.logs())?;
        create(&dir.certificates())?;
        write(&dir.file("audit-policy.yaml"), audit::POLICY)?;
        let authority = CertificateAuthority::create(&dir)?;
        let client = write_credentials(&dir, &authority, addresses)?;
        let inner = Inner { state, children: BTreeMap::new(), log_from: BTreeMap::new() };
        let cluster = Self { dir, inner: Mutex::new(inner), client, keeper: Some(keeper) };
        cluster.bring_up(options, programs, addresses)?;
        cluster.lock().state.complete = true;
        cluster.lock().state.write(&cluster.dir)?;
        drop(lock);
        Ok(cluster)
    }

    fn bring_up(&self, options: &ClusterOptions, programs: &Programs, addresses: Addresses) -> Result<()> {
        let dir = &self.dir;
        let lines = CommandLines { options, dir, programs: &programs.kubernetes, addresses };
        if options.node {
            self.begin(Component::Network, node::hold_network(&programs.tools), None)?;
            node::set_up_network(self.holder(Component::Network)?)?;
            self.begin(Component::Forwarder, node::forward(&programs.tools, addresses.host), None)?;
        }
        self.begin(Component::Etcd, lines.etcd(), (!options.node).then_some(addresses.etcd))?;
        self.begin(Component::ApiServer, lines.api_server(), Some(addresses.host))?;
        if options.node {
            self.start_containers(options, programs)?;
        }
        self.await_ready(Component::Etcd)?;
        self.await_ready(Component::ApiServer)?;
        if options.has(Component::ControllerManager) {
            let health = Some(addresses.controller_manager);
            self.begin(Component::ControllerManager, lines.controller_manager(), health)?;
        }
        if options.has(Component::Scheduler) {
            self.begin(Component::Scheduler, lines.scheduler(), Some(addresses.scheduler))?;
        }
        if options.node {
            self.begin(Component::Services, node::services(&programs.tools, dir), None)?;
            let extra = options.extra(Component::Kubelet);
            self.begin(Component::Kubelet, node::kubelet(dir, &programs.kubernetes, extra), None)?;
        }
        if let Some(kwok) = &programs.kwok {
            let launch = kwok::launch(kwok, options, dir, addresses.kwok);
            self.begin(Component::Kwok, launch, Some(addresses.kwok))?;
            self.create_simulated_nodes(options)?;
        }
        let rest = [
            Component::ControllerManager,
            Component::Scheduler,
            Component::Services,
            Component::Kubelet,
            Component::Kwok,
        ];
        rest.into_iter().filter(|component| options.has(*component)).try_for_each(|one| self.await_ready(one))
    }

    /// Everything of the node that needs no API server yet, while that one starts.
    fn start_containers(&self, options: &ClusterOptions, programs: &Programs) -> Result<()> {
        let dir = &self.dir;
        node::create_control_groups(&dir.name())?;
        node::write_files(dir, &CertificateAuthority::open(dir)?)?;
        let hold = node::hold_node(&programs.tools, dir, &programs.kubernetes);
        self.begin(Component::Node, hold, None)?;
        self.await_ready(Component::Node)?;
        self.begin(Component::Containerd, node::containerd(dir, options.extra(Component::Containerd)), None)?;
        self.await_ready(Component::Containerd)?;
        let images = node::images(&programs.tools).into_iter().chain(waiter_image());
        images.into_iter().try_for_each(|image| self.import(&image))
    }

    fn create_simulated_nodes(&self, options: &ClusterOptions) -> Result<()> {
        for index in 0..options.kwok.unwrap_or_default() {
            let body = kwok::node(index, options.node).to_string();
            let doing = format!("creating simulated node {index}");
            let answer = self.client.post(self.port(), "/api/v1/nodes", &body);
            let answer = answer.map_err(Error::io("creating", format!("node {index}")))?;
            if answer.status != 201 {
                return Err(Error::Refused { doing, status: answer.status, body: answer.body });
            }
        }
        Ok(())
    }
}

/// Everything that is run.
struct Programs {
    tools: Tools,
    /// The directory of Kubernetes' own.
    kubernetes: PathBuf,
    kwok: Option<Kwok>,
}

/// Whether a port was taken between the moment it was chosen and the moment it was used.
fn is_lost_race(error: &Error, options: &ClusterOptions) -> bool {
    error.is_port_race() || options.port.is_none() && matches!(error, Error::PortTaken { .. })
}

fn addresses(options: &ClusterOptions, ports: &mut PortChooser) -> Result<Addresses> {
    let host = if let Some(port) = options.port { ports.exactly(port)? } else { ports.next()? };
    let (controller_manager, scheduler, kwok) = (ports.next()?, ports.next()?, ports.next()?);
    // In a network of its own a cluster may have the usual numbers.
    let (etcd, etcd_peers, api_server) =
        if options.node { (2379, 2380, node::API_SERVER_PORT) } else { (ports.next()?, ports.next()?, host) };
    Ok(Addresses { etcd, etcd_peers, api_server, host, controller_manager, scheduler, kwok })
}

/// An empty directory for the cluster, locked, marked as a cluster's.
fn prepare_directory(options: &ClusterOptions, tools: &Tools) -> Result<(Directory, File)> {
    let check = |dir: &Directory| {
        if options.node { node::check_path(dir) } else { Ok(()) }
    };
    let Some(path) = &options.dir else {
        let temporary = tempfile::Builder::new().prefix("linchpin-").tempdir();
        let path = temporary.map_err(Error::io("creating", std::env::temp_dir()))?.keep();
        let dir = Directory::at(&path)?;
        check(&dir)?;
        let lock = lock(&dir)?;
        return Ok((dir, lock));
    };
    let dir = Directory::at(path)?;
    check(&dir)?;
    if let Some(lock) = existing(&dir)? {
        // Nothing of it runs any more: a crash, or the machine was restarted.
        keeper::clean(&tools.keeper, &dir)?;
        drop(lock);
    }
    create(dir.path())?;
    let entries = fs::read_dir(dir.path()).map_err(Error::io("reading", dir.path()))?;
    let strange = entries.flatten().any(|entry| entry.file_name() != "lock");
    if strange {
        return Err(Error::NotOurs { dir: dir.path().to_owned() });
    }
    let lock = lock(&dir)?;
    Ok((dir, lock))
}

/// Whether a dead cluster is in the way; an error if a live one is.
fn existing(dir: &Directory) -> Result<Option<File>> {
    if !dir.state().exists() {
        return Ok(None);
    }
    let lock = lock(dir)?;
    let Some(state) = ClusterState::read(dir)? else {
        return Ok(None);
    };
    let path = dir.path().to_owned();
    let lost = state.lost();
    match (state.complete, lost.len()) {
        (true, 0) => Err(Error::AlreadyRunning { dir: path }),
        (true, lost_count) if lost_count < state.components.len() => {
            Err(Error::Broken { dir: path, lost: lost.iter().map(ToString::to_string).collect() })
        }
        _ => Ok(Some(lock)),
    }
}

/// Takes the directory for this process: others that start or stop a cluster there learn so.
pub(super) fn lock(dir: &Directory) -> Result<File> {
    let path = dir.lock();
    loop {
        let file = File::create(&path).map_err(Error::io("opening", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Busy { dir: dir.path().to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(Error::io("locking", path)(error)),
        }
        // The directory may have been removed between the two calls: a lock on a removed file locks nobody out.
        let same = |other: fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == other.ino());
        if fs::metadata(&path).is_ok_and(same) {
            return Ok(file);
        }
    }
}

/// Writes every certificate and kubeconfig, and returns a client with the administrator's.
fn write_credentials(
    dir: &Directory,
    authority: &CertificateAuthority,
    addresses: Addresses,
) -> Result<HttpsClient> {
    certificates::write_service_account_keys(dir)?;
    let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let inside = [SERVICE_ADDRESS, node::ADDRESS].into_iter().filter_map(|address| address.parse().ok());
    let names = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let ips: Vec<IpAddr> = [localhost].into_iter().chain(inside).collect();
    certificates::write_pair(dir, "serving", &authority.serving("kube-apiserver", &names, &ips)?)?;
    certificates::write_pair(dir, "front-proxy", &authority.client("front-proxy", None)?)?;
    let kubelet_client = authority.client("kube-apiserver-kubelet-client", Some("system:masters"))?;
    certificates::write_pair(dir, "kubelet-client", &kubelet_client)?;
    let server = format!("https://127.0.0.1:{}", addresses.host);
    let admin = admin_pair(authority)?;
    write(&dir.kubeconfig("admin"), &kubeconfig::render(&server, authority.certificate(), "admin", &admin))?;
    for component in [Component::ControllerManager, Component::Scheduler] {
        let user = format!("system:{component}");
        let pair = authority.client(&user, None)?;
        let content = kubeconfig::render(&server, authority.certificate(), &user, &pair);
        write(&dir.kubeconfig(component.name()), &content)?;
    }
    HttpsClient::new(authority.certificate(), &admin)
}
