//! The parts of a cluster by name: start, kill, pause, look at. Fault tests live on this.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use super::{Cluster, Inner};
use crate::{
    Component, Image,
    error::{Error, Result},
    node,
    process::{Holders, Launch, ProcessIdentity},
    state::ComponentRecord,
};

/// How long a process that was asked to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Whether a component runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComponentStatus {
    /// Which component.
    pub component: Component,
    /// Its process, if it runs.
    pub pid: Option<i32>,
}

impl Cluster {
    /// Every component of this cluster, in the order in which they start, and whether it runs.
    pub fn status(&self) -> Vec<ComponentStatus> {
        let mut inner = self.lock();
        inner.collect();
        let components = Component::ALL.into_iter();
        components
            .filter_map(|component| {
                let record = inner.state.components.get(&component)?;
                Some(ComponentStatus { component, pid: record.running().map(ProcessIdentity::pid) })
            })
            .collect()
    }

    /// The process of a component, if it runs.
    pub fn pid(&self, component: Component) -> Option<i32> {
        self.status().into_iter().find(|status| status.component == component).and_then(|status| status.pid)
    }

    /// Kills a component (SIGKILL), and returns when it is dead.
    pub fn kill(&self, component: Component) -> Result<()> {
        self.signal_and_wait(component, Signal::SIGKILL)
    }

    /// Asks a component to end (SIGTERM), and returns when it is dead.
    pub fn terminate(&self, component: Component) -> Result<()> {
        self.signal_and_wait(component, Signal::SIGTERM)
    }

    /// Stops a component's clock (SIGSTOP): it holds its connections and answers nothing. Returns when all of it is
    /// still: a thread on another processor may run on for a moment.
    pub fn pause(&self, component: Component) -> Result<()> {
        let identity = self.signal(component, Signal::SIGSTOP)?;
        let deadline = Instant::now() + GRACE;
        while !identity.is_stopped() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Lets a paused component run on (SIGCONT).
    pub fn resume(&self, component: Component) -> Result<()> {
        self.signal(component, Signal::SIGCONT).map(drop)
    }

    /// Starts a component that was killed, with the same command line, and returns when it is ready.
    pub fn start_component(&self, component: Component) -> Result<()> {
        let mut inner = self.lock();
        inner.collect();
        let record = inner.state.components.get(&component).ok_or(Error::NoSuchComponent { component })?;
        if record.running().is_some() {
            return Err(Error::ComponentUp { component });
        }
        let ComponentRecord { launch, health, .. } = record.clone();
        drop(inner);
        self.begin(component, launch, health)?;
        self.await_ready(component)
    }

    /// Kills a component if it runs, starts it again, and returns when it is ready.
    pub fn restart(&self, component: Component) -> Result<()> {
        match self.kill(component) {
            Ok(()) | Err(Error::ComponentDown { .. }) => self.start_component(component),
            Err(error) => Err(error),
        }
    }

    /// Gives an image to the real node.
    pub fn import(&self, image: &Image) -> Result<()> {
        node::import(&self.dir, self.holder(Component::Node)?, image)
    }

    /// Gives an image in a tar file to the real node.
    pub fn import_archive(&self, file: &Path) -> Result<()> {
        let doing = format!("importing {}", file.display());
        // The node has mounts of its own: what lies in a directory that it hides goes through one that it sees.
        let seen = self.dir.node().join("import.tar");
        fs::copy(file, &seen).map_err(Error::io("copying", file))?;
        let imported = node::import_archive(&self.dir, self.holder(Component::Node)?, &seen, &doing);
        let removed = fs::remove_file(&seen).map_err(Error::io("removing", seen));
        imported.and(removed)
    }

    /// The process of a component that must run.
    pub(super) fn holder(&self, component: Component) -> Result<i32> {
        self.pid(component).ok_or(Error::ComponentDown { component })
    }

    /// Starts a component and writes down that it runs.
    pub(super) fn begin(&self, component: Component, launch: Launch, health: Option<u16>) -> Result<()> {
        // Left by an earlier run, they would say ready too early.
        match component {
            Component::Node => drop(fs::remove_file(node::ready_file(&self.dir))),
            Component::Services => drop(fs::remove_file(node::services_file(&self.dir))),
            _ => {}
        }
        let holder = |one| self.lock().state.components.get(&one).and_then(ComponentRecord::running);
        let holders = Holders { network: holder(Component::Network), node: holder(Component::Node) };
        let started = launch.start(component, &self.dir, holders)?;
        let mut inner = self.lock();
        inner.children.insert(component, started.child);
        inner.log_from.insert(component, started.log_from);
        let record = ComponentRecord { launch, health, identity: Some(started.identity) };
        inner.state.components.insert(component, record);
        inner.state.write(&self.dir)
    }

    fn signal(&self, component: Component, signal: Signal) -> Result<ProcessIdentity> {
        let inner = self.lock();
        let record = inner.state.components.get(&component).ok_or(Error::NoSuchComponent { component })?;
        let running = record.running().filter(|identity| identity.signal(signal));
        running.ok_or(Error::ComponentDown { component })
    }

    fn signal_and_wait(&self, component: Component, signal: Signal) -> Result<()> {
        let identity = self.signal(component, signal)?;
        let deadline = Instant::now() + GRACE;
        while identity.is_alive() {
            if Instant::now() > deadline {
                identity.signal(Signal::SIGKILL);
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.lock().collect();
        Ok(())
    }
}

impl Inner {
    /// Takes note of children that have ended, so that none stays a zombie.
    fn collect(&mut self) {
        self.children.retain(|_, child| !matches!(child.try_wait(), Ok(Some(_))));
    }
}
