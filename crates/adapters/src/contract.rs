//! `demo` and `http`: adapters for any server of the provider contract.
//!
//! `demo` is the document's example: `DemoServiceStatus` and `DemoPodStatus`, Service and Pod. `http` is the same for any
//! kinds: what is not a Service or a Pod is described by its `spec`. The scope of an employer at the provider is the
//! document's key, `<Kind>/<namespace>/<name>`:
//!
//! ```text
//! GET    /v1/employers/Service/shop/web          200 {"items":[{"id":"web","statuses":{…}}]}
//! PUT    /v1/employers/Service/shop/web/web      {"statuses":{…}}
//! DELETE /v1/employers/Service/shop/web/web      2xx or 404
//! GET    /v1/employees/Service/shop/web          200 {"items":[{"id":"web-1","name":"web-1","statuses":{…},"inTraffic":true}]}
//! PUT    /v1/employees/Service/shop/web/web-1    {"name":"web-1","statuses":{…}}     202: accepted, not yet so
//! DELETE /v1/employees/Service/shop/web/web-1    2xx or 404
//! ```

use futures::{StreamExt as _, stream};
use http::{Method, StatusCode};
use linchpin_consist::{
    Adapter, AdapterKinds, AdapterOptions, Batch, EmployeeSelection, Employment, Expected, Item, PodStatuses,
    Trouble, adapter::ObservedEmployee,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    client::{ProviderClient, ProviderRequest, Reply, segment},
    wire::{self, Loose},
};

/// How many items of one call are sent at a time.
const AT_A_TIME: usize = 8;

/// What the document's demo expects of a Service: `DemoServiceDetails`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct ServiceDetails {
    #[serde(rename = "remoteVIP")]
    remote_vip: String,
    #[serde(rename = "remoteVIPQPS")]
    remote_vip_qps: i64,
}

/// What the document's demo knows of a pod beyond its addresses: `PodExtraStatus`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodExtra {
    traffic_on: bool,
    traffic_weight: i64,
}

/// An adapter for a server of the provider contract.
#[derive(Debug)]
pub struct ContractAdapter {
    /// The name of the controller.
    pub controller_name: &'static str,
    /// How its employers are served.
    pub options: AdapterOptions,
    /// The kinds of employers and employees.
    pub kinds: AdapterKinds,
    /// Where an employer's selector is: a JSON pointer.
    pub selector: String,
    /// The provider.
    pub client: ProviderClient,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Employer,
    Employees,
}

impl Of {
    fn path(self) -> &'static str {
        match self {
            Self::Employer => "/v1/employers",
            Self::Employees => "/v1/employees",
        }
    }
}

/// One look's subject: objects of any kind.
type On = Employment<Value, Value>;

impl ContractAdapter {
    fn employs_services(&self) -> bool {
        self.kinds.employer == AdapterKinds::default().employer
    }

    /// Where things are, each part of the name as a segment of its own.
    fn place(of: Of, on: &On, id: Option<&str>) -> String {
        let (kind, namespace, name) = &on.key;
        let mut path = of.path().to_owned();
        for part in [kind, namespace, name].into_iter().map(String::as_str).chain(id) {
            path.push('/');
            path.push_str(&segment(part));
        }
        path
    }

    async fn current(&self, of: Of, on: &On) -> Result<Vec<Item<Loose>>, Trouble> {
        let path = Self::place(of, on, None);
        let reply = self.client.ask(ProviderRequest::new(Method::GET, &path, None)).await?;
        let described = |trouble: &str| Trouble(format!("GET {path}: {trouble}"));
        if reply.status != StatusCode::OK {
            return Err(described(&reply.refused()));
        }
        wire::items(&reply.body, |statuses| self.known(of, statuses)).map_err(|trouble| described(&trouble.0))
    }

    /// The part of statuses that the contract speaks of: what a provider keeps beside it is its own business.
    fn known(&self, of: Of, statuses: Value) -> Result<Loose, Trouble> {
        let unreadable = || Trouble::new("an item's statuses have not the agreed shape");
        let statuses = wire::without_nulls(statuses);
        let pods = self.kinds.employs_pods();
        let known = match of {
            Of::Employer if self.employs_services() => serde_json::from_value::<ServiceDetails>(statuses)
                .and_then(serde_json::to_value)
                .map_err(|_| unreadable())?,
            Of::Employees if pods => serde_json::from_value::<PodStatuses<PodExtra>>(statuses)
                .and_then(serde_json::to_value)
                .map_err(|_| unreadable())?,
            _ => json!({"spec": statuses.get("spec").cloned().unwrap_or_default()}),
        };
        Ok(Loose(known))
    }

    fn expected_statuses(&self, employee: &ObservedEmployee<Value>) -> Result<Value, Trouble> {
        if !self.kinds.employs_pods() {
            return Ok(json!({"spec": employee.object.get("spec").cloned().unwrap_or_default()}));
        }
        let on = employee.view.is_lifecycle_ready();
        let extra = PodExtra { traffic_on: on, traffic_weight: if on { 100 } else { 0 } };
        serde_json::to_value(PodStatuses::of(&employee.view, extra))
            .map_err(|_| Trouble::new("the pod's statuses cannot be written as JSON"))
    }

    /// Sends every item. One that the provider refuses does not keep the others from being sent.
    async fn send(&self, method: Method, of: Of, on: &On, items: Vec<Item<Loose>>) -> Result<Batch, Trouble> {
        let sent = stream::iter(items).map(|item| {
            let method = method.clone();
            async move {
                let path = Self::place(of, on, Some(&item.id));
                let body = match (&method, of) {
                    (&Method::DELETE, _) => None,
                    (_, Of::Employer) => Some(json!({"statuses": item.statuses})),
                    (_, Of::Employees) => Some(json!({"name": item.name, "statuses": item.statuses})),
                };
                let described = |why: String| Trouble(format!("{method} {path}: {why}"));
                let reply = self.client.ask(ProviderRequest::new(method.clone(), &path, body.as_ref())).await;
                (item.id, reply.and_then(|reply| taken(&method, &reply).map_err(described)))
            }
        });
        let results: Vec<_> = sent.buffered(AT_A_TIME).collect().await;
        let mut batch = Batch::default();
        for (id, result) in results {
            match result? {
                Taken::Done => batch.done.push(id),
                Taken::Accepted => {
                    batch.pending.push((id, "the provider accepted it and is not done yet".to_owned()));
                }
            }
        }
        Ok(batch)
    }
}

enum Taken {
    Done,
    Accepted,
}

fn taken(method: &Method, reply: &Reply) -> Result<Taken, String> {
    let gone = *method == Method::DELETE && reply.status == StatusCode::NOT_FOUND;
    if reply.status == StatusCode::ACCEPTED {
        Ok(Taken::Accepted)
    } else if reply.status.is_success() || gone {
        Ok(Taken::Done)
    } else {
        Err(reply.refused())
    }
}

impl Adapter<Value, Value> for ContractAdapter {
    type EmployerState = Item<Loose>;
    type EmployeeState = Item<Loose>;

    fn controller_name(&self) -> &str {
        self.controller_name
    }

    fn options(&self) -> AdapterOptions {
        self.options.clone()
    }

    fn kinds(&self) -> AdapterKinds {
        self.kinds.clone()
    }

    fn employs(&self, employer: &Value) -> EmployeeSelection {
        EmployeeSelection::labels_at(employer, &self.selector)
    }

    async fn expected_employer(&self, on: &On) -> Result<Vec<Item<Loose>>, Trouble> {
        let statuses = if self.employs_services() {
            let details = ServiceDetails { remote_vip: "demo-remote-VIP".to_owned(), remote_vip_qps: 100 };
            serde_json::to_value(details)
                .map_err(|_| Trouble::new("the employer's statuses cannot be written as JSON"))?
        } else {
            json!({"spec": on.employer.get("spec").cloned().unwrap_or_default()})
        };
        Ok(vec![Item::employer(on.name(), Loose(statuses))])
    }

    async fn current_employer(&self, on: &On) -> Result<Vec<Item<Loose>>, Trouble> {
        self.current(Of::Employer, on).await
    }

    async fn create_employer(&self, on: &On, items: Vec<Item<Loose>>) -> Result<Batch, Trouble> {
        self.send(Method::PUT, Of::Employer, on, items).await
    }

    async fn update_employer(&self, on: &On, items: Vec<Item<Loose>>) -> Result<Batch, Trouble> {
        self.send(Method::PUT, Of::Employer, on, items).await
    }

    async fn delete_employer(&self, on: &On, items: Vec<Item<Loose>>) -> Result<Batch, Trouble> {
        self.send(Method::DELETE, Of::Employer, on, items).await
    }

    async fn expected_employees(&self, on: &On) -> Result<Expected<Item<Loose>>, Trouble> {
        let serving = on.employees.iter().filter(|employee| !employee.view.is_terminating());
        let item = |employee: &ObservedEmployee<Value>| {
            Ok(Item::employee(employee.view.name.clone(), Loose(self.expected_statuses(employee)?)))
        };
        Ok(serving.map(item).collect::<Result<Vec<_>, Trouble>>()?.into())
    }

    async fn current_employees(&self, on: &On) -> Result<Vec<Item<Loose>>, Trouble> {
        self.current(Of::Employees, on).await
    }

    async fn create_employees(&self, on: &On, items: Vec<Item<Loose>>) -> Result<Batch, Trouble> {
        self.send(Method::PUT, Of::Employees, on, items).await
    }

    async fn update_employees(&self, on: &On, items: Vec<Item<Loose>>) -> Result<Batch, Trouble> {
        self.send(Method::PUT, Of::Employees, on, items).await
    }

    async fn delete_employees(&self, on: &On, items: Vec<Item<Loose>>) -> Result<Batch, Trouble> {
        self.send(Method::DELETE, Of::Employees, on, items).await
    }
}
