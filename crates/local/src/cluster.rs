//! The cluster itself: what a test, a demonstration or `linchpin local` holds in its hand.
//!
//! Every method takes `&self` and may be called from any thread, so that tests can share a cluster. How a cluster
//! comes up is in [`start`]; how its parts are killed and started again in [`parts`].

mod parts;
mod ready;
mod start;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::{Mutex, MutexGuard, PoisonError},
};

pub use self::parts::ComponentStatus;
use crate::{
    ClusterOptions, Component, binary,
    certificates::{CertificateAuthority, PemPair},
    error::{Error, Result},
    https::HttpsClient,
    keeper::{self, ClusterKeeper},
    kubeconfig, node,
    paths::{Directory, write_whole},
    process::MARKER,
    state::ClusterState,
};

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    dir: Directory,
    inner: Mutex<Inner>,
    client: HttpsClient,
    /// None for a cluster that someone else started, or that was detached.
    keeper: Option<ClusterKeeper>,
}

#[derive(Debug)]
struct Inner {
    state: ClusterState,
    /// The processes that are children of this one, to be collected when they end.
    children: BTreeMap<Component, Child>,
    /// Where in its log each component's current run begins.
    log_from: BTreeMap<Component, u64>,
}

impl Cluster {
    /// The cluster that runs in `dir`, started by another process. It is not ended when this value is dropped.
    pub fn open(dir: &Path) -> Result<Self> {
        let dir = Directory::at(dir)?;
        let state =
            ClusterState::read(&dir)?.ok_or_else(|| Error::NotRunning { dir: dir.path().to_owned() })?;
        let authority = CertificateAuthority::open(&dir)?;
        let client = HttpsClient::new(authority.certificate(), &admin_pair(&authority)?)?;
        let inner = Inner { state, children: BTreeMap::new(), log_from: BTreeMap::new() };
        Ok(Self { dir, inner: Mutex::new(inner), client, keeper: None })
    }

    /// Makes the cluster live on after this process, until [`down`].
    pub fn detach(mut self) -> Result<()> {
        self.keeper.take().map_or(Ok(()), ClusterKeeper::release)
    }

    /// Ends the cluster and returns when nothing of it is left. Dropping it does the same, without a word.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let ended = self.keeper.take().map_or(Ok(()), ClusterKeeper::end);
        let children = &mut self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).children;
        if ended.is_ok() {
            for child in children.values_mut() {
                let _ = child.try_wait();
            }
        }
        ended
    }

    /// Where everything of the cluster lies.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.kubeconfig("admin")
    }

    /// A kubeconfig for this user, in this group, with a client certificate that says so. What the user may do is up
    /// to RBAC.
    pub fn kubeconfig_for(&self, user: &str, group: Option<&str>) -> Result<PathBuf> {
        let authority = CertificateAuthority::open(&self.dir)?;
        let pair = authority.client(user, group)?;
        let file_name: String =
            user.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = self.dir.kubeconfig(&format!("user-{file_name}"));
        write_whole(&path, &kubeconfig::render(&self.server(), authority.certificate(), user, &pair))?;
        Ok(path)
    }

    /// The API server's address, as seen from the host.
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.port())
    }

    /// The API server's audit log: one JSON event per line, complete, written before the answer is sent.
    pub fn audit_log(&self) -> PathBuf {
        self.dir.audit_log()
    }

    /// The log of a component.
    pub fn log(&self, component: Component) -> PathBuf {
        self.dir.log(component)
    }

    /// What the cluster was asked to be.
    pub fn options(&self) -> ClusterOptions {
        self.lock().state.options.clone()
    }

    /// kubectl for this cluster, as its administrator: add arguments and run it.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(self.lock().state.programs.join("kubectl"));
        command.env("KUBECONFIG", self.kubeconfig());
        // What kubectl remembers of an API server goes with the cluster.
        command.env("KUBECACHEDIR", self.dir.file("kubectl-cache"));
        command
    }

    /// A program as a process of this cluster, as its administrator: add arguments and run it. With a real node it runs
    /// in the cluster's network, where pods and Services have their addresses and names and the API server reaches it at
    /// 10.99.0.1; without one, where this process runs. It ends with the cluster.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let mut command = if self.options().node {
            let holder = self.holder(Component::Network)?;
            node::inside(&binary::tools()?, &self.dir, holder, program.as_ref())
        } else {
            let mut command = Command::new(program.as_ref());
            command.env("KUBECONFIG", self.kubeconfig());
            command
        };
        command.env(MARKER, self.dir.path());
        Ok(command)
    }

    fn port(&self) -> u16 {
        self.lock().state.port
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change of the state is written as a whole; a panic elsewhere does not make it wrong.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Ends the cluster in `dir`, whatever state it is in, and returns whether there was one.
///
/// Nothing of it is left afterwards: no process, port, mount, control group, namespace or file.
pub fn down(dir: &Path) -> Result<bool> {
    let dir = Directory::at(dir)?;
    let found = dir.state().exists();
    // Also without a directory: its files may have been removed by hand while it ran.
    let lock = if found { Some(start::lock(&dir)?) } else { None };
    keeper::clean(&binary::tools()?.keeper, &dir)?;
    drop(lock);
    if dir.state().exists() {
        let why = format!("{} is still there", dir.state().display());
        return Err(Error::LeftBehind { dir: dir.path().to_owned(), why });
    }
    // The empty directories above the default one are ours as well; any other is kept by not being empty.
    if let Some(parent) = dir.path().parent().filter(|parent| parent.ends_with("linchpin")) {
        let _ = fs::remove_dir(parent);
    }
    Ok(found)
}

fn admin_pair(authority: &CertificateAuthority) -> Result<PemPair> {
    authority.client("admin", Some("system:masters"))
}
