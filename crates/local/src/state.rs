//! What a cluster writes down about itself, so that another process can look at it, use it and end it.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    ClusterOptions, Component,
    error::{Error, Result},
    paths::{Directory, write_whole},
    process::{Launch, ProcessIdentity},
};

/// The content of `cluster.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClusterState {
    pub(crate) options: ClusterOptions,
    /// The directory that holds a program per component.
    pub(crate) programs: PathBuf,
    /// The API server's port on the host.
    pub(crate) port: u16,
    /// Whether the cluster once became ready.
    pub(crate) complete: bool,
    pub(crate) components: BTreeMap<Component, ComponentRecord>,
}

/// What is known of one component.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ComponentRecord {
    pub(crate) launch: Launch,
    /// The port on the host at which its health can be asked for.
    pub(crate) health: Option<u16>,
    pub(crate) identity: Option<ProcessIdentity>,
}

impl ComponentRecord {
    pub(crate) fn running(&self) -> Option<ProcessIdentity> {
        self.identity.filter(|identity| identity.is_alive())
    }
}

impl ClusterState {
    /// Reads a cluster's state; none if the directory is no cluster's.
    pub(crate) fn read(dir: &Directory) -> Result<Option<Self>> {
        let path = dir.state();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("reading", path)(error)),
        };
        serde_json::from_str(&text).map(Some).map_err(|why| Error::State { path, why: why.to_string() })
    }

    pub(crate) fn write(&self, dir: &Directory) -> Result<()> {
        let path = dir.state();
        let text = serde_json::to_string_pretty(self);
        let text = text.map_err(|why| Error::State { path: path.clone(), why: why.to_string() })?;
        write_whole(&path, &text)
    }

    /// The components that were started and no longer run.
    pub(crate) fn lost(&self) -> Vec<Component> {
        let dead = |record: &ComponentRecord| record.running().is_none();
        self.components.iter().filter(|(_, record)| dead(record)).map(|(component, _)| *component).collect()
    }
}
