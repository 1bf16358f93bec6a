//! Other clusters: reached with a kubeconfig that the object's own identity may read.
//!
//! The Secret (and the ControlPlane that names it) is watched as that identity, so a credential that comes late is
//! waited for, a rotated one is taken up at once, and one whose right to be read was revoked is dropped within five
//! minutes. Kubeconfigs are a user's text: those that would run a program, read our files, go through a proxy, skip
//! TLS checks or point at an address of the node itself are refused (`remote/kubeconfig.rs`, `words::egress`).
//! Equal credentials of one Secret share their connections (`Pools`).

pub(crate) mod kubeconfig;
pub(crate) mod resolve;

use crate::transport::{Transport, TransportError, TransportOptions};
use kube::Config;
use linchpin_words::{egress::Egress, limits};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// Which other clusters may be reached, and how.
#[derive(Clone, Debug, Default)]
pub struct RemoteSettings {
    /// Which addresses their servers may have.
    pub egress: Egress,
    /// Whether we run inside a cluster, so that a ControlPlane's in-cluster address is the one to use.
    pub in_cluster: bool,
}

/// A credential: the Secret's uid and a hash of the kubeconfig's bytes.
pub(crate) type PoolKey = (String, [u8; 32]);

/// The connections to other clusters, shared by all who use the same credential. Unused ones end by themselves.
#[derive(Default)]
pub(crate) struct Pools {
    open: Mutex<BTreeMap<PoolKey, Weak<ConnectionPool>>>,
}

/// The connections made with one credential.
pub(crate) struct ConnectionPool {
    pub(crate) transport: Transport,
}

impl Pools {
    /// The connections for a credential, made if nobody has them.
    pub(crate) fn get(
        &self,
        key: &PoolKey,
        config: &Config,
        settings: &RemoteSettings,
    ) -> Result<Arc<ConnectionPool>, TransportError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, pool| pool.strong_count() > 0);
        if let Some(pool) = open.get(key).and_then(Weak::upgrade) {
            return Ok(pool);
        }
        let options = TransportOptions {
            egress: Some(settings.egress.clone()),
            answer_limit: limits::REMOTE_ANSWER,
            ..TransportOptions::default()
        };
        let pool = Arc::new(ConnectionPool { transport: Transport::new(config, &options)? });
        open.insert(key.clone(), Arc::downgrade(&pool));
        Ok(pool)
    }
}
