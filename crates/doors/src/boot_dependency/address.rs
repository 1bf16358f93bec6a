//! What an entry is about, in words: the address that is dialled, and what people call it.

use linchpin_api::{BootEntry, Dependency};
use linchpin_engine::contract::StepId;

use crate::names::{self, NamedStep};

/// Host and port of a `service` or `host` entry; none for an object. A Service is meant by its full name in the cluster's
/// domain, so that the operator and a pod mean the same.
pub(super) fn address(entry: &BootEntry, own_namespace: &str, cluster_domain: &str) -> Option<(String, i32)> {
    let port = entry.port?;
    if let Some(service) = &entry.service {
        let namespace = entry.namespace.as_deref().unwrap_or(own_namespace);
        return Some((format!("{service}.{namespace}.svc.{cluster_domain}"), port));
    }
    entry.host.as_ref().map(|host| (bracketed(host), port))
}

/// An IPv6 address is in brackets before a port.
fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() }
}

/// The target as the user wrote it: the Service, the host or the resource.
pub(super) fn target(entry: &BootEntry) -> String {
    match (&entry.service, &entry.host) {
        (Some(service), _) => service.clone(),
        (None, Some(host)) => host.clone(),
        (None, None) => names::resource_text(&as_dependency(entry)),
    }
}

/// What status, events and orders call an entry: its name, else its target and port, else its resource.
pub fn entry_name(entry: &BootEntry) -> String {
    entry.name.clone().unwrap_or_else(|| target_and_port(entry))
}

/// The document's `<target>:<port>`; of an object its resource.
pub(super) fn target_and_port(entry: &BootEntry) -> String {
    let dialled = entry.service.is_some() || entry.host.is_some();
    if let Some(port) = entry.port.filter(|_| dialled) {
        return format!("{}:{port}", bracketed(&target(entry)));
    }
    let written = as_dependency(entry);
    names::label(&written, written.namespace.as_deref().unwrap_or_default())
}

/// The part of an entry that is a dependency like those of every other kind.
pub(super) fn as_dependency(entry: &BootEntry) -> Dependency {
    Dependency {
        name: entry.name.clone(),
        namespace: entry.namespace.clone(),
        object: entry.object.clone(),
        ..Dependency::default()
    }
}

/// What the entries of one object are called as steps; those that would be called the same are numbered.
pub(super) fn step_names(entries: &[&BootEntry]) -> Vec<NamedStep> {
    let ids = names::number(entries.iter().map(|entry| entry_name(entry)).collect(), |_| true);
    let words = |entry: &BootEntry| entry.name.iter().cloned().chain([target_and_port(entry)]).collect();
    let named = |(id, entry): (String, &&BootEntry)| NamedStep { id: StepId::new(id), words: words(entry) };
    ids.into_iter().zip(entries).map(named).collect()
}
