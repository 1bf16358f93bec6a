//! The cluster, what may be installed in it, and the definitions that are.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use linchpin_words::{GroupKind, keys};
use serde_json::Value;

use super::{doors, items, place};
use crate::check::{
    facts::{CheckFacts, Looked, UnseenFact},
    report::{CheckEnd, failed, list, ok, skipped, unseen},
};

/// The oldest minor version of Kubernetes 1 that is served.
const OLDEST: u64 = 33;

pub(super) fn api_version(version: Option<&Looked>) -> CheckEnd {
    let version = match version {
        Some(Ok(version)) => version,
        Some(Err(why)) => return unseen("/version", why),
        None => return skipped("not looked at"),
    };
    let number = |field: &str| {
        let digits: String =
            version[field].as_str().unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap_or_default()
    };
    let (major, minor) = (number("major"), number("minor"));
    let called = version["gitVersion"].as_str().unwrap_or("of no version");
    if (major, minor) >= (1, OLDEST) {
        ok(format!("Kubernetes {called}"))
    } else {
        failed(
            format!("Kubernetes {called} is older than 1.{OLDEST}"),
            format!("Linchpin needs Kubernetes 1.{OLDEST} or newer"),
        )
    }
}

pub(super) fn can_install(facts: &CheckFacts) -> CheckEnd {
    let mut lacking = Vec::new();
    for (kind, allowed) in &facts.may_create {
        match allowed {
            Ok(true) => {}
            Ok(false) => lacking.push(kind.clone()),
            Err(why) => return unseen("what you may do", why),
        }
    }
    if lacking.is_empty() {
        ok(format!("you may create all {} kinds of an installation", facts.may_create.len()))
    } else {
        failed(
            format!("you may not create {}", list(&lacking)),
            "ask somebody who may, or for a role with these",
        )
    }
}

pub(super) fn no_other_install(elsewhere: Option<&Looked>) -> CheckEnd {
    let found = match elsewhere {
        Some(Ok(found)) => found,
        Some(Err(why)) => return unseen("Deployments of all namespaces", why),
        None => return skipped("not looked at"),
    };
    let places: Vec<String> = items(found).map(place).collect();
    if places.is_empty() {
        ok("there is no other installation")
    } else {
        failed(
            format!("Linchpin is installed already: {}", list(&places)),
            "a second one needs watchNamespaces that do not overlap, and crds.install=false",
        )
    }
}

pub(super) fn no_foreign_crds(facts: &CheckFacts) -> CheckEnd {
    let mut foreign = Vec::new();
    for (name, looked) in &facts.definitions {
        match looked {
            Err(UnseenFact::Absent) => {}
            Err(why) => return unseen("definitions", why),
            Ok(found) if is_shared(found) => {}
            Ok(found) if found["metadata"]["annotations"].get(keys::SCHEMA_HASH).is_none() => {
                foreign.push(name.clone());
            }
            Ok(_) => {}
        }
    }
    if foreign.is_empty() {
        ok("no definition of ours is somebody else's")
    } else {
        failed(
            format!("{} are there and not ours", list(&foreign)),
            "look who made them: kubectl get crd NAME -o yaml; their objects would be read as ours",
        )
    }
}

/// Whether a definition is that of KusionStack itself, which has a kind of ours too: the chart leaves it alone by the same
/// test.
fn is_shared(definition: &Value) -> bool {
    definition["spec"]["group"] == "apps.kusionstack.io"
        && definition["metadata"]["labels"]["app.kubernetes.io/part-of"] != "linchpin"
}

/// The definitions that an operator with these doors needs.
fn needed(facts: &CheckFacts) -> BTreeSet<String> {
    let doors = doors(facts);
    let kind = |definition: &CustomResourceDefinition| {
        GroupKind::new(&definition.spec.group, &definition.spec.names.kind)
    };
    let served = facts.ours.iter().filter(|definition| doors.serve(&kind(definition)));
    served.filter_map(|definition| definition.metadata.name.clone()).collect()
}

pub(super) fn crds_served(facts: &CheckFacts) -> CheckEnd {
    let mut missing = Vec::new();
    for name in needed(facts) {
        match facts.definitions.get(&name) {
            Some(Ok(found)) => {
                let conditions = found["status"]["conditions"].as_array();
                let served = conditions
                    .into_iter()
                    .flatten()
                    .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
                if !served {
                    missing.push(name);
                }
            }
            Some(Err(UnseenFact::Absent)) | None => missing.push(name),
            Some(Err(why)) => return unseen("definitions", why),
        }
    }
    if missing.is_empty() {
        ok("all kinds are served")
    } else {
        failed(
            format!("the cluster does not serve {}", list(&missing)),
            "linchpin crds | kubectl apply --server-side -f -",
        )
    }
}

pub(super) fn crds_current(facts: &CheckFacts) -> CheckEnd {
    let needed = needed(facts);
    let (mut old, mut compared) = (Vec::new(), 0);
    for definition in &facts.ours {
        let name = definition.metadata.name.clone().unwrap_or_default();
        let found = match facts.definitions.get(&name).filter(|_| needed.contains(&name)) {
            Some(Ok(found)) if is_shared(found) => continue,
            Some(Ok(found)) => found,
            Some(Err(UnseenFact::Absent)) | None => continue,
            Some(Err(why)) => return unseen("definitions", why),
        };
        compared += 1;
        let annotations = definition.metadata.annotations.as_ref();
        let ours = annotations.and_then(|all| all.get(keys::SCHEMA_HASH)).map(String::as_str);
        if found["metadata"]["annotations"][keys::SCHEMA_HASH].as_str() != ours {
            old.push(name);
        }
    }
    if compared == 0 {
        skipped("there is no definition of ours to compare")
    } else if old.is_empty() {
        ok("the definitions are those of this version")
    } else {
        failed(
            format!("{} are of another version than this program", list(&old)),
            "linchpin crds | kubectl apply --server-side --force-conflicts -f -",
        )
    }
}
