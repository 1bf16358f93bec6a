//! Who provides a named capability: the Capability of that name, then the Syncs of the namespace that say so.
//!
//! Any of them will do. Where there are several, one that is Ready and has the version is taken before one that is not, so
//! that nobody waits for one while another is there.

use linchpin_engine::{
    contract::{Projection, ReadSet, Seen, Want},
    plan::SpecError,
};
use serde_json::Value;

use super::{ourselves, text};
use crate::{
    assemble::Frame,
    errors::not_yet,
    sync::{dependency::version_obstacle, kind, range::Range},
};

/// Where it is seen whether a provider is Ready.
const READY_READS: [&str; 4] = [
    "metadata.generation",
    "status.observedGeneration",
    "status.conditions.type",
    "status.conditions.status",
];

/// One that provides a capability.
#[derive(Clone, Debug)]
pub(super) struct Provider {
    /// Its kind, one of ours.
    pub kind: &'static str,
    pub namespace: Option<String>,
    pub name: String,
    /// The version that it provides.
    pub version: Option<String>,
}

impl Provider {
    /// The Capability of that name.
    pub(super) fn capability(item: &Projection) -> Self {
        let version = text(&item.content, "/status/version");
        Self { kind: "Capability", namespace: None, name: item.name.clone(), version }
    }

    /// A Sync, if it provides this.
    pub(super) fn sync(item: &Projection, capability: &str) -> Option<Self> {
        let (_, version) = offers(&item.content).find(|(name, _)| *name == capability)?;
        let version = version.map(str::to_owned).or_else(|| text(&item.content, "/status/version"));
        Some(Self { kind: "Sync", namespace: item.namespace.clone(), name: item.name.clone(), version })
    }

    fn is_ready(&self, frame: &Frame<'_>, field: &str) -> Result<bool, SpecError> {
        let (namespace, reads) = (self.namespace.clone(), ReadSet::dotted(READY_READS));
        match frame.kinds.ask(Want::object(ourselves(), kind(self.kind), namespace, &self.name, reads)) {
            None => Err(not_yet(field)),
            Some(Seen::Unknown(why)) if why.is_passing() => Err(not_yet(field)),
            Some(Seen::Objects(observed)) => {
                Ok(observed.items.first().is_some_and(|item| says_ready(&item.content)))
            }
            Some(_) => Ok(false),
        }
    }
}

/// What a Sync says that it provides: name and version.
pub(super) fn offers(sync: &Value) -> impl Iterator<Item = (&str, Option<&str>)> {
    let list = sync.pointer("/spec/provides").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|one| Some((one["capability"].as_str()?, one["version"].as_str())))
}

/// The one of several that is waited for: the first that is Ready and has the version, else the first that is Ready, else
/// the first.
pub(super) fn best(
    frame: &Frame<'_>,
    all: Vec<Provider>,
    range: Option<&Range>,
    field: &str,
) -> Result<Option<Provider>, SpecError> {
    if all.len() < 2 {
        return Ok(all.into_iter().next());
    }
    let mut ranked = Vec::with_capacity(all.len());
    for provider in all {
        let lacks = version_obstacle("", range, provider.version.as_deref()).is_some();
        let rank = if provider.is_ready(frame, field)? { u8::from(lacks) } else { 2 };
        ranked.push((rank, provider));
    }
    Ok(ranked.into_iter().min_by_key(|(rank, _)| *rank).map(|(_, provider)| provider))
}

fn says_ready(content: &Value) -> bool {
    let at = |path: &str| content.pointer(path);
    let is_current =
        at("/status/observedGeneration").is_some_and(|seen| Some(seen) == at("/metadata/generation"));
    let conditions = at("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let mut ready = conditions.filter(|one| one["type"] == "Ready" && one["status"] == "True");
    is_current && ready.next().is_some()
}
