//! A real Kubernetes on this machine: built from Go modules, started in seconds, gone without a trace.
//!
//! A [`Cluster`] is etcd, kube-apiserver, kube-controller-manager and kube-scheduler as processes of their own on free
//! loopback ports, everything else in one directory. [`ClusterOptions`] adds simulated nodes (kwok) or a real one (kubelet and
//! containerd). Several clusters run side by side.
//!
//! ```no_run
//! use linchpin_local::{Cluster, Component, ClusterOptions};
//!
//! # fn main() -> linchpin_local::Result<()> {
//! let cluster = Cluster::start(&ClusterOptions::default())?; // returns when it is ready
//! println!("KUBECONFIG={}", cluster.kubeconfig().display());
//! cluster.kill(Component::ApiServer)?; // SIGKILL, by name
//! cluster.start_component(Component::ApiServer)?; // the same command line again; returns when it is ready
//! let tenant = cluster.kubeconfig_for("alice", Some("tenants"))?; // a client certificate for anyone
//! println!("what really happened: {}", cluster.audit_log().display());
//! cluster.stop()?; // or let it drop
//! # Ok(())
//! # }
//! ```
//!
//! # Who ends a cluster
//!
//! A cluster belongs to the process that started it and dies with it, also when that process is killed: a small
//! *keeper* waits on a pipe for its owner's end and then removes every process, mount, control group, namespace and
//! file. So a test may put a cluster into a `static` and never think of it again. [`Cluster::detach`] makes it live on;
//! [`down`] ends such a one.
//!
//! # The first time
//!
//! The programs are built once per machine, which takes minutes and says so on standard error; see [`kubernetes`].
//! Everything here blocks: call it from a thread of its own (`spawn_blocking`) in an asynchronous program.

mod audit;
mod binary;
mod certificates;
mod cluster;
mod component;
mod components;
mod error;
mod https;
mod image;
mod keeper;
mod kubeconfig;
mod kwok;
mod node;
mod options;
mod paths;
mod ports;
mod process;
mod state;
mod waiter;

pub use binary::{HELM_VERSION, KUBERNETES_VERSION, helm, kubernetes};
pub use cluster::{Cluster, ComponentStatus, down};
pub use component::{Component, UnknownComponent};
pub use error::{Error, Result};
pub use image::{Image, is_static};
pub use node::{check_node_support, is_node_promised};
pub use options::ClusterOptions;
pub use paths::{cache_directory, default_directory};
pub use waiter::waiter_image;
