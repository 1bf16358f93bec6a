//! An employer with pods, and an adapter that is asked about them as the controller asks.

use std::{collections::BTreeMap, sync::Arc};

use linchpin_adapters::{AdapterConfig, Opened, open};
use linchpin_consist::{Batch, Call, ItemPair, LookFailed, ObservedEmployer, Port, ProviderAnswer, Trouble};
use linchpin_words::Timestamp;
use serde_json::{Value, json};

/// A Service and its pods, as they are observed.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) employer: Value,
    pub(crate) pods: Vec<Value>,
    pub(crate) leaving: bool,
    pub(crate) now: i64,
}

pub(crate) fn pod(name: &str, ip: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}]},
        "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

/// The pod, not ready.
pub(crate) fn unready(mut pod: Value) -> Value {
    pod["status"]["conditions"][0]["status"] = json!("False");
    pod
}

impl Stage {
    pub(crate) fn new(pods: Vec<Value>) -> Self {
        let employer = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop", "labels": {"kusionstack.io/control": "true"}},
            "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}});
        Self { employer, pods, leaving: false, now: 1_700_000_000 }
    }

    pub(crate) fn annotated(mut self, key: &str, value: &str) -> Self {
        self.employer["metadata"]["annotations"][key] = json!(value);
        self
    }

    pub(crate) fn about(&self) -> ObservedEmployer {
        let text = |path: &str| self.employer.pointer(path).unwrap().as_str().unwrap().to_owned();
        ObservedEmployer {
            key: (text("/kind"), text("/metadata/namespace"), text("/metadata/name")),
            employer: Arc::new(self.employer.clone()),
            employees: self.pods.iter().cloned().map(Arc::new).collect(),
            leaving: self.leaving,
            now: Timestamp::from_second(self.now),
        }
    }

    pub(crate) async fn look(&self, port: &dyn Port) -> Result<ProviderAnswer, LookFailed> {
        port.look(&self.about()).await
    }

    /// What is asked of the provider for one item: the call that an item of the answer needs.
    fn needed(pair: &ItemPair, of_employees: bool) -> Option<Call> {
        let [create, update, delete] = if of_employees {
            [Call::CreateEmployees, Call::UpdateEmployees, Call::DeleteEmployees]
        } else {
            [Call::CreateEmployer, Call::UpdateEmployer, Call::DeleteEmployer]
        };
        match (&pair.expected, &pair.current) {
            (Some(_), None) => Some(create),
            (Some(_), Some(_)) if !pair.same => Some(update),
            (None, Some(_)) => Some(delete),
            _ => None,
        }
    }

    /// Makes the calls that an answer asks for, each once, in the document's order.
    pub(crate) async fn act(
        &self,
        port: &dyn Port,
        answer: &ProviderAnswer,
    ) -> Result<Vec<(Call, Batch)>, Trouble> {
        let mut calls: BTreeMap<Call, Vec<Value>> = BTreeMap::new();
        for (pairs, of_employees) in [(&answer.employer, false), (&answer.employees, true)] {
            for pair in pairs {
                if let Some(call) = Self::needed(pair, of_employees) {
                    let state = pair.expected.as_ref().or(pair.current.as_ref()).unwrap();
                    calls.entry(call).or_default().push((**state).clone());
                }
            }
        }
        let mut made = Vec::new();
        for (call, items) in calls {
            made.push((call, port.call(&self.about(), call, items).await?));
        }
        Ok(made)
    }

    /// Looks and acts until nothing is to be done, and says what there is then.
    pub(crate) async fn settle(&self, port: &dyn Port) -> ProviderAnswer {
        for _ in 0..10 {
            let answer = self.look(port).await.unwrap();
            let made = self.act(port, &answer).await.unwrap();
            if made.is_empty() {
                return answer;
            }
        }
        panic!("it never settles: {:?}", self.look(port).await);
    }
}

/// What an answer says of the employee of a name.
pub(crate) fn of<'a>(answer: &'a ProviderAnswer, name: &str) -> &'a ItemPair {
    answer.employees.iter().find(|pair| pair.name == name).unwrap_or_else(|| panic!("no {name}: {answer:?}"))
}

pub(crate) async fn opened(config: Value) -> Opened {
    let config: AdapterConfig = serde_json::from_value(config).unwrap();
    open(&config).await.unwrap()
}

pub(crate) async fn adapter(config: Value) -> Arc<dyn Port> {
    opened(config).await.port
}
