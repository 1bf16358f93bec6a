//! Visitors: a kind that is not ours (Service), decided by a function of its own, without plan, journal and status.
//!
//! A Service with the annotation `fourth.example/visitors: NAME` gets a ConfigMap of that name. What survives a crash is
//! the ConfigMap itself.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use linchpin_doors::{
    DoorKind,
    registry::KindNames,
    subject::{Arrival, Asks, Decision, Subject, SubjectInput, SubjectKey},
};
use linchpin_engine::contract::{Effect, Existing, ReadSet, Seen, StepId, Ticket, Verb, Via, Want};
use linchpin_words::{Gvk, Timestamp};
use serde::Deserialize;
use serde_json::json;

const ANNOTATION: &str = "fourth.example/visitors";
const DEADLINE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);

/// The kind.
pub(crate) struct Visitors;

impl DoorKind for Visitors {
    fn names(&self) -> KindNames {
        KindNames {
            gvk: Gvk::new("", "v1", "Service"),
            plural: "services".to_owned(),
            short: Vec::new(),
            namespaced: true,
        }
    }

    fn subject(&self, text: &str, _: &Arc<str>) -> Result<Box<dyn Subject>, serde_json::Error> {
        let read: Service = serde_json::from_str(text)?;
        let key = SubjectKey {
            kind: self.names().gvk,
            namespace: Some(read.metadata.namespace.clone()),
            name: read.metadata.name.clone(),
            uid: read.metadata.uid.clone(),
        };
        Ok(Box::new(Visited { key, service: read, attempts: 0, in_flight: false, retry_at: None }))
    }
}

#[derive(Deserialize)]
struct Service {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
    deletion_timestamp: Option<serde::de::IgnoredAny>,
}

/// One Service, and what was ordered for it.
struct Visited {
    key: SubjectKey,
    service: Service,
    attempts: u32,
    in_flight: bool,
    retry_at: Option<Timestamp>,
}

impl Subject for Visited {
    fn key(&self) -> &SubjectKey {
        &self.key
    }

    fn is_deleting(&self) -> bool {
        self.service.metadata.deletion_timestamp.is_some()
    }

    fn arrived(&mut self, text: &str, _: bool) -> Result<Arrival, serde_json::Error> {
        self.service = serde_json::from_str(text)?;
        Ok(Arrival::default())
    }

    fn decide(&mut self, look: &SubjectInput<'_>) -> Result<Decision, Asks> {
        let mut decision = Decision::default();
        let Some(name) = self.service.metadata.annotations.get(ANNOTATION) else { return Ok(decision) };
        let namespace = &self.service.metadata.namespace;
        let via = Via::service_account(namespace, "default");
        let kind = Gvk::new("", "v1", "ConfigMap");
        let want = Want::object(via.clone(), kind, Some(namespace.clone()), name, ReadSet::nothing());
        decision.wants = BTreeSet::from([want.clone()]);
        for outcome in look.outcomes {
            self.in_flight = false;
            self.retry_at = outcome.result.is_err().then(|| look.now.plus_duration(PAUSE));
        }
        decision.wake_at = self.retry_at.filter(|at| *at > look.now);
        let absent = matches!(look.world.get(&want), Some(Seen::Objects(seen)) if seen.items.is_empty());
        if absent && !self.in_flight && decision.wake_at.is_none() && !self.is_deleting() {
            self.in_flight = true;
            self.attempts += 1;
            let step = StepId::new("visitors");
            decision.effects.push(Effect {
                ticket: Ticket { step, run: 1, attempt: self.attempts, part: 0 },
                via,
                verb: Verb::Create {
                    body: Arc::new(
                        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}),
                    ),
                    default_namespace: namespace.clone(),
                    manager: "fourth-door".to_owned(),
                    existing: Existing::Skip,
                    creator: self.key.uid.clone(),
                },
                discreet: false,
                deadline: DEADLINE,
                rank: 0,
            });
        }
        Ok(decision)
    }
}
