//! Keeping a session in another cluster open: from ControlPlane to Secret to kubeconfig to connection.

use super::{PoolKey, RemoteSettings, kubeconfig};
use crate::{
    hub::session::{ActorClient, HubParts, SessionCluster, SessionGate, SessionKeeper},
    transport::Impersonation,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_engine::contract::{
    Actor, ClusterRef, ControlPlaneSelect, Observed, Projection, Question, ReadSet, RemoteUser, Right, Scope,
    Seen, Via, Want, Why,
};
use linchpin_words::{Gvk, Reason, text};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Why there is no connection now.
struct Obstacle {
    why: Why,
    right: Option<Box<Right>>,
}

impl Obstacle {
    fn pending(message: impl AsRef<str>) -> Self {
        Self { why: Why::new(Reason::ClusterPending, text::line(message.as_ref())), right: None }
    }

    /// What leads to the cluster was looked for and is not there.
    fn absent(message: impl AsRef<str>) -> Self {
        let Self { why, right } = Self::pending(message);
        Self { why: why.absent(), right }
    }
}

impl From<Why> for Obstacle {
    fn from(why: Why) -> Self {
        Self { why, right: None }
    }
}

/// The keys of a kubeconfig where none is named: the common one, then Cluster API's.
const USUAL_KEYS: [&str; 2] = ["kubeconfig", "value"];

/// Where a kubeconfig is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Location {
    namespace: String,
    name: String,
    /// The keys to try, the best first.
    keys: Vec<String>,
}

/// Keeps the gate of a session in another cluster true, for ever.
pub(crate) async fn keep(keeper: SessionKeeper, via: Via) {
    if via.actor == Actor::Operator {
        let message = "other clusters are reached as a ServiceAccount only";
        return keeper.close(Why::new(Reason::Forbidden, message), None);
    }
    let mut connected: Option<PoolKey> = None;
    let mut last: Option<Want> = None;
    loop {
        let Some(hub) = keeper.hub() else { return };
        match look(&keeper, &via, &hub.settings.remote, &mut last) {
            None => return,
            Some(Err(obstacle)) => {
                // A look that is not finished says nothing about what was seen before.
                if !(obstacle.why.is_passing() && keeper.is_open()) {
                    connected = None;
                    keeper.close(obstacle.why, obstacle.right.map(|right| *right));
                }
            }
            Some(Ok((key, bytes))) => {
                if connected.as_ref() != Some(&key) || !keeper.is_open() {
                    match connect(&hub, &via, &key, &bytes).await {
                        Ok(reach) => {
                            connected = Some(key);
                            keeper.set(SessionGate::Open(Arc::new(reach)));
                        }
                        Err(obstacle) => {
                            connected = None;
                            keeper.close(obstacle.why, obstacle.right.map(|right| *right));
                        }
                    }
                }
            }
        }
        drop(hub);
        keeper.changed().await;
    }
}

/// Follows the references as far as they lead now; none when the hub is gone. `last` is the Secret that was asked for
/// last: it stays asked for while the ControlPlane is looked at, or its watch would begin anew each time.
fn look(
    keeper: &SessionKeeper,
    via: &Via,
    settings: &RemoteSettings,
    last: &mut Option<Want>,
) -> Option<Result<(PoolKey, Vec<u8>), Obstacle>> {
    let here = Via { cluster: ClusterRef::Here, actor: via.actor.clone() };
    let mut wants = Vec::new();
    let secret = match &via.cluster {
        ClusterRef::Here => return Some(Err(Obstacle::pending("this is no other cluster"))),
        ClusterRef::Kubeconfig { namespace, name, key, .. } => {
            let keys = match key.as_str() {
                "" => USUAL_KEYS.map(str::to_owned).to_vec(),
                key => vec![key.to_owned()],
            };
            Location { namespace: namespace.clone(), name: name.clone(), keys }
        }
        ClusterRef::ControlPlane { select, require_ready, .. } => {
            wants.push(control_plane(&here, select));
            let both: Vec<Want> = wants.iter().cloned().chain(last.clone()).collect();
            let seen = keeper.ask(&both)?.into_iter().next();
            match secret_of(&via.cluster, seen, *require_ready, settings) {
                Ok(secret) => secret,
                Err(obstacle) => return Some(Err(obstacle)),
            }
        }
    };
    wants.push(secret_want(&here, &secret));
    *last = wants.last().cloned();
    let seen = keeper.ask(&wants)?.pop();
    Some(credential(&secret, seen))
}

fn control_plane(via: &Via, select: &ControlPlaneSelect) -> Want {
    let scope = match select {
        ControlPlaneSelect::Name(name) => Scope::Name { namespace: None, name: name.clone() },
        ControlPlaneSelect::Labels(selector) => Scope::Labels { namespace: None, selector: selector.clone() },
    };
    Want::new(Question::Objects {
        via: via.clone(),
        kind: Gvk::new("tenancy.kflex.kubestellar.org", "v1alpha1", "ControlPlane"),
        scope,
        reads: ReadSet::dotted(["status.secretRef", "status.conditions"]),
    })
}

fn secret_want(via: &Via, secret: &Location) -> Want {
    let mut reads = ReadSet::nothing();
    for key in &secret.keys {
        reads.add(vec!["data".to_owned(), key.clone()]);
    }
    let kind = Gvk::new("", "v1", "Secret");
    Want::object(via.clone(), kind, Some(secret.namespace.clone()), &secret.name, reads)
}

fn objects(seen: Option<Seen>) -> Result<Arc<Observed>, Why> {
    match seen {
        Some(Seen::Objects(observed)) => Ok(observed),
        Some(Seen::Unknown(why)) => Err(why),
        _ => Err(Why::new(Reason::Unsynced, "not looked yet")),
    }
}

/// The Secret that a ControlPlane names.
fn secret_of(
    cluster: &ClusterRef,
    seen: Option<Seen>,
    require_ready: bool,
    settings: &RemoteSettings,
) -> Result<Location, Obstacle> {
    let observed = objects(seen)?;
    let plane: &Projection = match observed.items.as_slice() {
        [plane] => plane,
        [] => return Err(Obstacle::absent(format!("{cluster} does not exist"))),
        several => {
            return Err(Obstacle::pending(format!("{} objects are {cluster}, not one", several.len())));
        }
    };
    let ready =
        plane.content.pointer("/status/conditions").and_then(Value::as_array).is_some_and(|conditions| {
            conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        });
    if require_ready && !ready {
        return Err(Obstacle::pending(format!("ControlPlane {} is not ready", plane.name)));
    }
    let field = |name: &str| {
        let value = plane.content.pointer("/status/secretRef").and_then(|secret| secret.get(name));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (namespace, name) = (field("namespace"), field("name"));
    if namespace.is_empty() || name.is_empty() {
        return Err(Obstacle::pending(format!("ControlPlane {} names no kubeconfig Secret yet", plane.name)));
    }
    let mut keys = vec![field("inClusterKey"), field("key")];
    if !settings.in_cluster {
        keys.reverse();
    }
    keys.retain(|key| !key.is_empty());
    keys.dedup();
    Ok(Location { namespace, name, keys })
}

/// The kubeconfig in a Secret.
fn credential(secret: &Location, seen: Option<Seen>) -> Result<(PoolKey, Vec<u8>), Obstacle> {
    let Location { namespace, name, keys } = secret;
    let observed = objects(seen).map_err(|why| match why.reason {
        Reason::Forbidden => {
            let right = Right {
                verb: "watch".to_owned(),
                group: String::new(),
                resource: "secrets".to_owned(),
                subresource: None,
                namespace: Some(namespace.clone()),
                name: Some(name.clone()),
            };
            Obstacle { why, right: Some(Box::new(right)) }
        }
        _ => why.into(),
    })?;
    let Some(found) = observed.items.first() else {
        return Err(Obstacle::absent(format!(
            "Secret {namespace}/{name} with the kubeconfig does not exist"
        )));
    };
    let value = |key: &String| {
        let encoded = found.content.get("data").and_then(|data| data.get(key)).and_then(Value::as_str)?;
        STANDARD.decode(encoded).ok().filter(|bytes| !bytes.is_empty())
    };
    if let Some(bytes) = keys.iter().find_map(value) {
        Ok(((found.uid.clone(), Sha256::digest(&bytes).into()), bytes))
    } else {
        let keys = keys.join(" nor ");
        Err(Obstacle::pending(format!("Secret {namespace}/{name} has no kubeconfig in {keys} yet")))
    }
}

async fn connect(hub: &HubParts, via: &Via, key: &PoolKey, bytes: &[u8]) -> Result<ActorClient, Obstacle> {
    let unusable = |reason: &dyn std::fmt::Display| {
        Obstacle::pending(format!("the kubeconfig of {} cannot be used: {reason}", via.cluster))
    };
    let config = kubeconfig::read(bytes).await.map_err(|refused| unusable(&refused))?;
    let impersonation = match impersonated(&via.cluster) {
        None => None,
        Some(RemoteUser { user, groups }) => {
            Some(Impersonation::user(user, groups).map_err(|error| unusable(&error))?)
        }
    };
    let pool = hub.pools.get(key, &config, &hub.settings.remote).map_err(|error| unusable(&error))?;
    let place = SessionCluster::remote(pool, via.cluster.to_string(), impersonation.as_ref(), &hub.counters);
    Ok(ActorClient {
        watches: place.transport.watches(impersonation.as_ref()),
        writes: place.transport.writes(impersonation.as_ref()),
        who: format!("the credential for {}", via.cluster),
        place: Arc::new(place),
        rights: crate::access::Reviewer::default(),
    })
}

fn impersonated(cluster: &ClusterRef) -> Option<&RemoteUser> {
    match cluster {
        ClusterRef::Here => None,
        ClusterRef::Kubeconfig { impersonate, .. } | ClusterRef::ControlPlane { impersonate, .. } => {
            impersonate.as_ref()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(name: &str, content: Value) -> Seen {
        let projection = Projection {
            kind: Gvk::new("", "v1", "X"),
            namespace: None,
            name: name.into(),
            uid: "uid".into(),
            generation: 1,
            version: 1,
            deleting: false,
            content,
        };
        Seen::Objects(Arc::new(Observed {
            items: vec![Arc::new(projection)],
            as_of: 1,
            live: true,
            looked: None,
        }))
    }

    fn its1() -> ClusterRef {
        let select = ControlPlaneSelect::Name("its1".into());
        ClusterRef::ControlPlane { select, require_ready: true, impersonate: None }
    }

    fn said<T>(result: Result<T, Obstacle>) -> String {
        result
            .err()
            .map(|obstacle| format!("{}: {}", obstacle.why.reason, obstacle.why.message))
            .unwrap_or_default()
    }

    #[test]
    fn a_control_plane_must_be_ready_unless_only_its_kubeconfig_is_needed() {
        let status = json!({"status": {"secretRef": {"namespace": "its1-system", "name": "vc", "key": "config",
            "inClusterKey": "config-incluster"}}});
        let outside = RemoteSettings::default();
        let inside = RemoteSettings { in_cluster: true, ..outside.clone() };
        let error = said(secret_of(&its1(), Some(seen("its1", status.clone())), true, &outside));
        assert_eq!(error, "ClusterPending: ControlPlane its1 is not ready");
        let secret = secret_of(&its1(), Some(seen("its1", status.clone())), false, &outside).ok().unwrap();
        assert_eq!(secret.keys, ["config", "config-incluster"]);
        let secret = secret_of(&its1(), Some(seen("its1", status)), false, &inside).ok().unwrap();
        assert_eq!(secret.keys, ["config-incluster", "config"]);
    }

    #[test]
    fn a_control_plane_without_a_secret_is_waited_for() {
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let error = said(secret_of(&its1(), Some(seen("its1", ready)), true, &RemoteSettings::default()));
        assert_eq!(error, "ClusterPending: ControlPlane its1 names no kubeconfig Secret yet");
        let none = Some(Seen::Objects(Arc::default()));
        let error = said(secret_of(&its1(), none, true, &RemoteSettings::default()));
        assert_eq!(error, "ClusterPending: ControlPlane its1 does not exist");
    }

    #[test]
    fn only_what_was_observed_to_be_missing_is_absent() {
        let settings = RemoteSettings::default();
        let nothing = || Some(Seen::Objects(Arc::default()));
        let is_absent = |obstacle: Option<Obstacle>| obstacle.is_some_and(|obstacle| obstacle.why.absent);
        let unready = Some(seen("its1", json!({"status": {}})));
        assert!(!is_absent(secret_of(&its1(), unready, true, &settings).err()));
        let hidden = Some(Seen::Unknown(Why::new(Reason::Forbidden, "no")));
        assert!(!is_absent(secret_of(&its1(), hidden, true, &settings).err()));
        assert!(!is_absent(secret_of(&its1(), None, true, &settings).err()));
        assert!(is_absent(secret_of(&its1(), nothing(), true, &settings).err()));

        let secret = Location { namespace: "n".into(), name: "s".into(), keys: vec!["k".into()] };
        assert!(!is_absent(credential(&secret, Some(seen("s", json!({"data": {"k": ""}})))).err()));
        assert!(!is_absent(credential(&secret, None).err()));
        assert!(is_absent(credential(&secret, nothing()).err()));
    }

    #[test]
    fn an_empty_key_is_not_there_yet_and_the_next_best_is_taken() {
        let keys = vec!["config-incluster".to_owned(), "config".to_owned()];
        let secret = Location { namespace: "n".into(), name: "s".into(), keys };
        let empty = seen("s", json!({"data": {"config-incluster": ""}}));
        assert_eq!(
            said(credential(&secret, Some(empty))),
            "ClusterPending: Secret n/s has no kubeconfig in config-incluster nor config yet"
        );
        let other = seen("s", json!({"data": {"config-incluster": "", "config": STANDARD.encode("x")}}));
        let (key, bytes) = credential(&secret, Some(other)).ok().unwrap();
        assert_eq!((key.0.as_str(), bytes.as_slice()), ("uid", b"x".as_slice()));
    }

    #[test]
    fn a_secret_that_may_not_be_read_names_the_right() {
        let secret = Location { namespace: "n".into(), name: "s".into(), keys: vec!["k".into()] };
        let why = Why::new(Reason::Forbidden, "no");
        let obstacle = credential(&secret, Some(Seen::Unknown(why))).err().unwrap();
        assert_eq!(obstacle.right.unwrap().to_string(), "watch secrets s in n");
    }
}
