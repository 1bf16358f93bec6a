//! What can go wrong with a local cluster, worded for the person who asked for one.
//!
//! Every message names what was being done and what to do about it; a component that fails brings the last
//! lines of its log along, so that nobody has to look for a file that is about to be removed.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    Component,
    process::{DISK_FULL, PORT_TAKEN},
};

/// Why a local cluster could not be built, started, found or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no `go` to build Kubernetes with.
    #[error(
        "building the local Kubernetes needs Go {minimum} or later, and no `go` is in PATH: install it from go.dev/dl"
    )]
    GoMissing {
        /// The oldest version that can build it.
        minimum: &'static str,
    },
    /// The `go` that was found cannot build this Kubernetes.
    #[error(
        "building the local Kubernetes needs Go {minimum} or later, and `go` is {found}: install a newer one from go.dev/dl"
    )]
    GoTooOld {
        /// What `go env GOVERSION` said.
        found: String,
        /// The oldest version that can build it.
        minimum: &'static str,
    },
    /// `go` said no.
    #[error("building {what} failed:\n{output}")]
    Build {
        /// Which program was being built.
        what: String,
        /// The last lines that `go` printed.
        output: String,
    },
    /// No room for a build or a cluster.
    #[error("the disk is full: {what} needs more room at {}", path.display())]
    DiskFull {
        /// What was being written.
        what: String,
        /// Where it was being written.
        path: PathBuf,
    },
    /// The user's home is unknown and no directory was given.
    #[error("no place for {what}: set HOME or {variable}")]
    NoHome {
        /// What needs a place.
        what: &'static str,
        /// The variable that would give it one.
        variable: &'static str,
    },
    /// A cluster runs in this directory already.
    #[error("a cluster is running in {} already: `linchpin local down` ends it", dir.display())]
    AlreadyRunning {
        /// The cluster's directory.
        dir: PathBuf,
    },
    /// A cluster is in this directory, but parts of it have died.
    #[error("the cluster in {} has lost {}: `linchpin local down` removes what is left of it", dir.display(), lost.join(", "))]
    Broken {
        /// The cluster's directory.
        dir: PathBuf,
        /// The components that no longer run.
        lost: Vec<String>,
    },
    /// There is no cluster in this directory.
    #[error("no cluster is running in {}: `linchpin local up` starts one", dir.display())]
    NotRunning {
        /// Where one was looked for.
        dir: PathBuf,
    },
    /// Another process is starting or stopping the cluster in this directory.
    #[error("another process is starting or stopping the cluster in {}: wait for it, or end it", dir.display())]
    Busy {
        /// The cluster's directory.
        dir: PathBuf,
    },
    /// The directory holds something that is not a cluster; it would be deleted with the cluster.
    #[error("{} is not empty and not a cluster's directory: name another one", dir.display())]
    NotOurs {
        /// The directory that was named.
        dir: PathBuf,
    },
    /// The path is too long for the sockets that must fit below it.
    #[error("{} is too long a path for a cluster with a node (at most {limit} bytes, sockets lie below it): name a shorter one", dir.display())]
    PathTooLong {
        /// The directory that was named.
        dir: PathBuf,
        /// How long it may be.
        limit: usize,
    },
    /// The port that was asked for is in use.
    #[error("port {port} on 127.0.0.1 is taken: name another one, or none to have a free one chosen")]
    PortTaken {
        /// The port that was asked for.
        port: u16,
    },
    /// A component ended instead of becoming ready.
    #[error("{component} died at start ({status}); the last lines of its log:\n{log}")]
    Died {
        /// Which component.
        component: Component,
        /// How it ended.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// A component runs but does not become ready.
    #[error("{component} was not ready after {seconds} s ({why}); the last lines of its log:\n{log}")]
    NotReady {
        /// Which component.
        component: Component,
        /// How long it was waited for.
        seconds: u64,
        /// What the last look said.
        why: String,
        /// The end of its log.
        log: String,
    },
    /// The cluster was started without this component.
    #[error("this cluster has no {component}")]
    NoSuchComponent {
        /// Which component.
        component: Component,
    },
    /// The component is not running, so it cannot be signalled.
    #[error("{component} is not running")]
    ComponentDown {
        /// Which component.
        component: Component,
    },
    /// The component runs, so it cannot be started.
    #[error("{component} is running already")]
    ComponentUp {
        /// Which component.
        component: Component,
    },
    /// A real node needs root.
    #[error(
        "a real node needs root (network namespaces, containers): run as root, or use kwok's simulated nodes"
    )]
    NotRoot,
    /// A real node needs programs that are not installed.
    #[error("a real node needs {}, not installed here: apt-get install {}", programs.join(", "), packages.join(" "))]
    PackagesMissing {
        /// The programs that were not found.
        programs: Vec<String>,
        /// The Debian packages that bring them.
        packages: Vec<String>,
    },
    /// A helper command failed.
    #[error("{doing} failed: `{command}`: {output}")]
    Command {
        /// What it was to do.
        doing: String,
        /// The command line.
        command: String,
        /// What it said.
        output: String,
    },
    /// The API server refused a request of ours.
    #[error("{doing} failed: the API server answered {status}: {body}")]
    Refused {
        /// What was asked for.
        doing: String,
        /// The HTTP status.
        status: u16,
        /// The answer.
        body: String,
    },
    /// A certificate could not be made.
    #[error("making the certificate for {whom} failed: {source}")]
    Certificate {
        /// Whose certificate.
        whom: String,
        /// What went wrong.
        source: rcgen::Error,
    },
    /// TLS could not be set up.
    #[error("setting up the client for {whom} failed: {why}")]
    Tls {
        /// Which server.
        whom: &'static str,
        /// What went wrong.
        why: String,
    },
    /// The cluster's state file cannot be understood.
    #[error("{} is not readable ({why}): `linchpin local down` removes that cluster", path.display())]
    State {
        /// The state file.
        path: PathBuf,
        /// What went wrong.
        why: String,
    },
    /// Something of a cluster could not be removed.
    #[error("cleaning up the cluster in {} left something behind: {why}", dir.display())]
    LeftBehind {
        /// The cluster's directory.
        dir: PathBuf,
        /// What is left, and why.
        why: String,
    },
    /// The file system said no.
    #[error("{doing} {} failed: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file or program.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Wraps an error of the file system with what was being done; a full disk gets its own words.
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { what: doing.to_owned(), path }
            }
            _ => Self::Io { doing, path, source },
        }
    }

    /// A component's early end; if the disk is full, that is the error.
    pub(crate) fn died(component: Component, status: String, log: String, dir: &Path) -> Self {
        if log.contains(DISK_FULL) {
            return Self::DiskFull { what: component.to_string(), path: dir.to_owned() };
        }
        Self::Died { component, status, log }
    }

    /// Whether a component lost the race for a port that was free when it was chosen.
    pub(crate) fn is_port_race(&self) -> bool {
        match self {
            Self::Died { log, .. } | Self::NotReady { log, .. } => log.contains(PORT_TAKEN),
            _ => false,
        }
    }
}
