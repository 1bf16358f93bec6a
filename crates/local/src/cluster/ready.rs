//! When a component is ready, and what is said when it never is.

use std::{
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::Cluster;
use crate::{
    Component,
    error::{Error, Result},
    https, kwok, node,
    process::tail,
};

const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(40);

/// Why a component is not ready yet.
type NotYet = std::result::Result<(), String>;

impl Cluster {
    /// Whether the API server says that it is ready, at this moment.
    pub fn is_ready(&self) -> bool {
        self.client.get(self.port(), "/readyz").is_ok_and(|answer| answer.status == 200)
    }

    /// Waits until every component that runs is ready.
    pub fn wait_ready(&self) -> Result<()> {
        for status in self.status() {
            if status.pid.is_some() {
                self.await_ready(status.component)?;
            }
        }
        Ok(())
    }

    /// Waits until a component is ready; at once an error if it dies.
    pub(super) fn await_ready(&self, component: Component) -> Result<()> {
        let begun = Instant::now();
        loop {
            let why = match self.look(component) {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            self.still_alive(component)?;
            if begun.elapsed() > PATIENCE {
                return Err(Error::NotReady {
                    component,
                    seconds: PATIENCE.as_secs(),
                    why,
                    log: self.tail(component),
                });
            }
            thread::sleep(PAUSE);
        }
    }

    fn look(&self, component: Component) -> NotYet {
        let health = self.lock().state.components.get(&component).and_then(|record| record.health);
        match (component, health) {
            (Component::Etcd, Some(port)) => expect_ok(https::plain_get(port, "/health")),
            (Component::ApiServer, Some(port)) => expect_ok(self.client.get(port, "/readyz")),
            (Component::ControllerManager, Some(port)) => {
                expect_ok(self.client.get(port, "/healthz"))?;
                // Without it no pod is admitted; it is the last thing to appear in a new cluster.
                let path = "/api/v1/namespaces/default/serviceaccounts/default";
                expect_ok(self.client.get(self.port(), path))
            }
            (Component::Scheduler, Some(port)) => expect_ok(self.client.get(port, "/healthz")),
            (Component::Kwok, Some(port)) => {
                expect_ok(https::plain_get(port, "/healthz"))?;
                let nodes = self.read(&format!("/api/v1/nodes?labelSelector={}", kwok::SELECTOR))?;
                let wanted = self.lock().state.options.kwok.unwrap_or_default();
                let ready = kwok::count_ready(&nodes);
                if ready >= wanted as usize {
                    Ok(())
                } else {
                    Err(format!("{ready} of {wanted} nodes are ready"))
                }
            }
            (Component::Node, _) => {
                if node::ready_file(&self.dir).exists() {
                    Ok(())
                } else {
                    Err("it is not set up".to_owned())
                }
            }
            (Component::Services, _) => {
                if node::services_file(&self.dir).exists() {
                    Ok(())
                } else {
                    Err("it does not know the Services yet".to_owned())
                }
            }
            (Component::Containerd, _) => {
                UnixStream::connect(node::socket(&self.dir)).map(drop).map_err(|error| error.to_string())
            }
            (Component::Kubelet, _) => {
                // The object says what the kubelet once said; a restarted one must answer for itself, and know its pods.
                let pods =
                    |path: String| self.read(&path).map(|list| list["items"].as_array().map_or(0, Vec::len));
                let known = pods(format!("/api/v1/nodes/{}/proxy/pods", node::NAME))?;
                let bound = pods(format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{}", node::NAME))?;
                if known < bound {
                    return Err(format!("it knows {known} of its {bound} pods"));
                }
                let object = self.read(&format!("/api/v1/nodes/{}", node::NAME))?;
                if kwok::is_ready(&object) { Ok(()) } else { Err("its node is not ready".to_owned()) }
            }
            // It does nothing that could be asked for: that it lives is all there is to know.
            _ => Ok(()),
        }
    }

    fn read(&self, path: &str) -> std::result::Result<Value, String> {
        let answer = self.client.get(self.port(), path).map_err(|error| error.to_string())?;
        let object = serde_json::from_str(&answer.body).map_err(|error| error.to_string())?;
        if answer.status == 200 {
            Ok(object)
        } else {
            Err(format!("the API server answers {}", answer.status))
        }
    }

    /// An error if the component, or etcd, without which none becomes ready, has ended.
    fn still_alive(&self, component: Component) -> Result<()> {
        for one in [Component::Etcd, component] {
            let mut inner = self.lock();
            let status = inner.children.get_mut(&one).and_then(|child| child.try_wait().ok().flatten());
            let gone = inner.state.components.get(&one).is_some_and(|record| record.running().is_none());
            drop(inner);
            if gone && (one == component || status.is_some()) {
                let status = status.map_or_else(|| "gone".to_owned(), |status| status.to_string());
                return Err(Error::died(one, status, self.tail(one), self.dir()));
            }
        }
        Ok(())
    }

    fn tail(&self, component: Component) -> String {
        let from = self.lock().log_from.get(&component).copied().unwrap_or_default();
        tail(&self.dir.log(component), from)
    }
}

fn expect_ok(answer: std::io::Result<https::HttpsAnswer>) -> NotYet {
    match answer {
        Ok(answer) if answer.status == 200 => Ok(()),
        Ok(answer) => Err(format!("it answers {}: {}", answer.status, first_line(&answer.body))),
        Err(error) => Err(error.to_string()),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().find(|line| line.contains("failed")).or_else(|| text.lines().next()).unwrap_or_default()
}
