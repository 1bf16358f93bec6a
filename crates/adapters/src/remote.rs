//! `remote`: an adapter that somebody else wrote, in any language, as a program of its own.
//!
//! It answers the document's methods over HTTP, one `POST /v1/<Method>` each, and needs neither rights in the cluster
//! nor code that lists: what it is asked about comes with the question. `GET /v1/adapter` says what it is; that is
//! asked when it is opened and again each `resync`, and an adapter that changes its kinds is another one: the process
//! that serves it must begin anew ([`Remote::until_changed`]).

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode};
use linchpin_consist::{
    Adapter, AdapterKinds, AdapterOptions, Batch, EmployeeSelection, Employment, Expected, Item, PodStatuses,
    Trouble,
    adapter::{HasId as _, ObservedEmployee},
};
use linchpin_words::{Gvk, reference::built_in_kind, text};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    client::{ProviderClient, ProviderRequest},
    wire::{self, Exact},
};

/// The contract that is spoken here.
const CONTRACT: &str = "linchpin.dev/consist/v1";

/// What an adapter says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name of the controller.
    pub controller_name: String,
    /// The kinds of employers and employees.
    pub kinds: AdapterKinds,
    /// Where an employer's selector is: a JSON pointer.
    pub selector: String,
    /// Whether pods are marked and held.
    pub follow_pod_ops_lifecycle: Option<bool>,
    /// Whether the names of marked pods are written on the employer.
    pub need_record_employees: Option<bool>,
    /// How many employers may be in its hands at a time.
    pub max_concurrent_reconciles: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    contract: String,
    controller_name: String,
    employer: Option<KindName>,
    employee: Option<KindName>,
    selector_path: Option<String>,
    follow_pod_ops_lifecycle: Option<bool>,
    need_record_employees: Option<bool>,
    max_concurrent_reconciles: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KindName {
    api_version: String,
    kind: String,
}

impl Description {
    fn read(body: Value) -> Result<Self, String> {
        let read = serde_json::from_value::<Described>(body);
        let read = read.map_err(|_| "the answer has not the shape of an adapter's description".to_owned())?;
        if read.contract != CONTRACT {
            return Err(format!("it speaks the contract {}, not {CONTRACT}", text::quote(&read.contract)));
        }
        let name = read.controller_name;
        if name.is_empty() || name.len() > 63 || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("controllerName must have 1 to 63 visible characters".to_owned());
        }
        if read.max_concurrent_reconciles.is_some_and(|most| !(1..=1000).contains(&most)) {
            return Err("maxConcurrentReconciles must be 1 to 1000".to_owned());
        }
        let usual = AdapterKinds::default();
        let kind = |name: Option<KindName>, usual: Gvk| match name {
            None => Ok(usual),
            Some(name) => kind_of(&format!("{}/{}", name.api_version, name.kind)),
        };
        Ok(Self {
            controller_name: name,
            kinds: AdapterKinds {
                employer: kind(read.employer, usual.employer)?,
                employee: kind(read.employee, usual.employee)?,
            },
            selector: pointer(read.selector_path.as_deref().unwrap_or(".spec.selector"))?,
            follow_pod_ops_lifecycle: read.follow_pod_ops_lifecycle,
            need_record_employees: read.need_record_employees,
            max_concurrent_reconciles: read.max_concurrent_reconciles,
        })
    }
}

/// A kind from `v1/Service` or `apps/v1/Deployment`.
pub(crate) fn kind_of(text: &str) -> Result<Gvk, String> {
    let kind = text.rsplit_once('/').map(|(version, kind)| Gvk::from_api_version(version, kind));
    let kind = kind.filter(|kind| kind.problem().is_none()).ok_or_else(|| {
        format!("{} is no kind; write for example v1/Service or apps/v1/Deployment", text::quote(text))
    })?;
    if built_in_kind(&kind.group, &kind.kind).is_some_and(|known| !known.namespaced) {
        return Err(format!("{} has no namespaces: employers and employees must", kind.kind));
    }
    Ok(kind)
}

/// A JSON pointer from `.spec.selector`.
pub(crate) fn pointer(path: &str) -> Result<String, String> {
    let plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let parts = path.strip_prefix('.').unwrap_or(path);
    if path.len() > 256 || !parts.split('.').all(plain) {
        return Err(format!(
            "{} is no path of a selector; write for example .spec.selector",
            text::quote(path)
        ));
    }
    Ok(format!("/{}", parts.replace('.', "/")))
}

/// An adapter in another process.
#[derive(Clone, Debug)]
pub struct Remote {
    client: Arc<ProviderClient>,
    description: Description,
    options: AdapterOptions,
}

type On = Employment<Value, Value>;

impl Remote {
    /// Asks an adapter what it is.
    pub async fn describe(client: &ProviderClient) -> Result<Description, Trouble> {
        let path = "/v1/adapter";
        let trouble = |why: &str| Trouble(format!("GET {path}: {why}"));
        let reply = client.ask(ProviderRequest::new(Method::GET, path, None)).await?;
        if reply.status != StatusCode::OK {
            return Err(trouble(&reply.refused()));
        }
        Description::read(reply.body).map_err(|why| trouble(&why))
    }

    /// An adapter that said what it is.
    pub fn new(client: Arc<ProviderClient>, description: Description, options: AdapterOptions) -> Self {
        Self { client, description, options }
    }

    /// Asks again and again, and returns when the adapter has become another one. One that does not answer has not.
    pub async fn until_changed(self) -> Trouble {
        loop {
            tokio::time::sleep(self.options.resync).await;
            let Ok(now) = Self::describe(&self.client).await else { continue };
            if now.kinds != self.description.kinds || now.selector != self.description.selector {
                let was = &self.description.controller_name;
                return Trouble(format!("the remote adapter {was} changed its kinds or its selector's path"));
            }
        }
    }

    /// One method. None where the adapter does not have it.
    async fn post(&self, method: &str, on: &On, body: &Value) -> Result<Option<Value>, Trouble> {
        let path = format!("/v1/{method}");
        let trouble = |why: &str| Trouble(format!("POST {path}: {why}"));
        let mut request = ProviderRequest::new(Method::POST, &path, Some(body));
        let scope =
            HeaderValue::from_str(&on.scope()).map_err(|_| trouble("the employer's name cannot be sent"))?;
        request.headers.insert("x-linchpin-employer", scope);
        let reply = self.client.ask(request).await?;
        match reply.status {
            StatusCode::OK => Ok(Some(reply.body)),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(trouble(&reply.refused())),
        }
    }

    fn missing(method: &str) -> Trouble {
        Trouble(format!("POST /v1/{method}: answers 404, but an adapter must have this method"))
    }

    async fn employer_list(&self, method: &str, on: &On) -> Result<Vec<Item<Exact>>, Trouble> {
        match self.post(method, on, &json!({"employer": on.employer})).await? {
            Some(body) => read(method, &body),
            None => Ok(Vec::new()),
        }
    }

    async fn employee_list(&self, method: &str, on: &On) -> Result<(Vec<Item<Exact>>, Value), Trouble> {
        let employees: Vec<Value> = on.employees.iter().map(described).collect();
        let body = json!({"employer": on.employer, "employees": employees});
        let body = self.post(method, on, &body).await?.ok_or_else(|| Self::missing(method))?;
        Ok((read(method, &body)?, body))
    }

    async fn change(
        &self,
        method: &str,
        on: &On,
        items: Vec<Item<Exact>>,
        must: bool,
    ) -> Result<Batch, Trouble> {
        match self.post(method, on, &json!({"employer": on.employer, "items": items})).await? {
            Some(body) => results(&items, &body).map_err(|why| Trouble(format!("POST /v1/{method}: {why}"))),
            None if must => Err(Self::missing(method)),
            None => Ok(Batch::done(&items)),
        }
    }
}

/// An employee as it is sent: the object, and what the document's `SetCommonPodEmployeeStatus` says of it, each of the three
/// also where there is nothing to say.
fn described(employee: &ObservedEmployee<Value>) -> Value {
    let PodStatuses { ip, ipv6, lifecycle_ready, .. } = PodStatuses::of(&employee.view, ());
    json!({"object": employee.object, "common": {"ip": ip, "ipv6": ipv6, "lifecycleReady": lifecycle_ready}})
}

fn read(method: &str, body: &Value) -> Result<Vec<Item<Exact>>, Trouble> {
    let items = wire::items(body, |statuses| Ok(Exact(statuses)));
    items.map_err(|trouble| Trouble(format!("POST /v1/{method}: {trouble}")))
}

/// What came of each item. One that is in neither list has failed.
fn results(items: &[Item<Exact>], body: &Value) -> Result<Batch, &'static str> {
    let list = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => Ok(list.iter().collect()),
        Some(_) => Err("succeeded and failed must be lists"),
    };
    if !body.is_object() {
        return Err("the answer is not JSON with the lists succeeded and failed");
    }
    let succeeded: Vec<&str> = list("succeeded")?.into_iter().filter_map(Value::as_str).collect();
    let failed = list("failed")?;
    let mut batch = Batch::default();
    for item in items {
        let id = item.item_id();
        let failure = failed.iter().find(|failure| failure.get("id").and_then(Value::as_str) == Some(id));
        match failure {
            Some(failure) => {
                let message = failure.get("message").and_then(Value::as_str).unwrap_or("it failed");
                batch.pending.push((id.to_owned(), text::line(message)));
            }
            None if succeeded.contains(&id) => batch.done.push(id.to_owned()),
            None => {
                batch.pending.push((id.to_owned(), "the adapter does not say what came of it".to_owned()));
            }
        }
    }
    Ok(batch)
}

impl Adapter<Value, Value> for Remote {
    type EmployerState = Item<Exact>;
    type EmployeeState = Item<Exact>;

    fn controller_name(&self) -> &str {
        &self.description.controller_name
    }

    fn options(&self) -> AdapterOptions {
        self.options.clone()
    }

    fn kinds(&self) -> AdapterKinds {
        self.description.kinds.clone()
    }

    fn employs(&self, employer: &Value) -> EmployeeSelection {
        EmployeeSelection::labels_at(employer, &self.description.selector)
    }

    async fn expected_employer(&self, on: &On) -> Result<Vec<Item<Exact>>, Trouble> {
        self.employer_list("GetExpectedEmployer", on).await
    }

    async fn current_employer(&self, on: &On) -> Result<Vec<Item<Exact>>, Trouble> {
        self.employer_list("GetCurrentEmployer", on).await
    }

    async fn create_employer(&self, on: &On, items: Vec<Item<Exact>>) -> Result<Batch, Trouble> {
        self.change("CreateEmployer", on, items, false).await
    }

    async fn update_employer(&self, on: &On, items: Vec<Item<Exact>>) -> Result<Batch, Trouble> {
        self.change("UpdateEmployer", on, items, false).await
    }

    async fn delete_employer(&self, on: &On, items: Vec<Item<Exact>>) -> Result<Batch, Trouble> {
        self.change("DeleteEmployer", on, items, false).await
    }

    async fn expected_employees(&self, on: &On) -> Result<Expected<Item<Exact>>, Trouble> {
        let (items, body) = self.employee_list("GetExpectedEmployee", on).await?;
        let recheck = body.get("recheckSeconds").and_then(Value::as_f64);
        let recheck = recheck.filter(|seconds| (0.1..=86_400.0).contains(seconds));
        Ok(Expected { items, recheck: recheck.map(std::time::Duration::from_secs_f64) })
    }

    async fn current_employees(&self, on: &On) -> Result<Vec<Item<Exact>>, Trouble> {
        Ok(self.employee_list("GetCurrentEmployee", on).await?.0)
    }

    async fn create_employees(&self, on: &On, items: Vec<Item<Exact>>) -> Result<Batch, Trouble> {
        self.change("CreateEmployees", on, items, true).await
    }

    async fn update_employees(&self, on: &On, items: Vec<Item<Exact>>) -> Result<Batch, Trouble> {
        self.change("UpdateEmployees", on, items, true).await
    }

    async fn delete_employees(&self, on: &On, items: Vec<Item<Exact>>) -> Result<Batch, Trouble> {
        self.change("DeleteEmployees", on, items, true).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Description, String> {
        Description::read(body)
    }

    #[test]
    fn an_adapter_says_what_it_is_and_the_rest_is_the_documents_default() {
        let short = read(json!({"contract": CONTRACT, "controllerName": "directory-controller"})).unwrap();
        assert_eq!((short.kinds, short.selector.as_str()), (AdapterKinds::default(), "/spec/selector"));
        assert_eq!((short.follow_pod_ops_lifecycle, short.max_concurrent_reconciles), (None, None));
        let long = read(json!({"contract": CONTRACT, "controllerName": "c",
            "employer": {"apiVersion": "example.com/v1", "kind": "Gateway"}, "employee": {"apiVersion": "v1", "kind": "Pod"},
            "selectorPath": ".spec.backends.selector", "followPodOpsLifecycle": false, "needRecordEmployees": true,
            "maxConcurrentReconciles": 2}));
        let long = long.unwrap();
        assert_eq!(long.kinds.employer, Gvk::new("example.com", "v1", "Gateway"));
        assert_eq!(long.selector, "/spec/backends/selector");
        assert_eq!((long.follow_pod_ops_lifecycle, long.need_record_employees), (Some(false), Some(true)));
    }

    #[test]
    fn what_is_not_this_contract_is_no_adapter() {
        for wrong in [
            json!(null),
            json!({"controllerName": "c"}),
            json!({"contract": "linchpin.dev/consist/v2", "controllerName": "c"}),
            json!({"contract": CONTRACT, "controllerName": ""}),
            json!({"contract": CONTRACT, "controllerName": "a\nb"}),
            json!({"contract": CONTRACT, "controllerName": "c", "maxConcurrentReconciles": 0}),
            json!({"contract": CONTRACT, "controllerName": "c", "employer": {"apiVersion": "", "kind": "X"}}),
            json!({"contract": CONTRACT, "controllerName": "c", "selectorPath": ".spec[0]"}),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_id_that_is_in_neither_list_has_failed() {
        let items = ["a", "b", "c"].map(|id| Item::employee(id, Exact(Value::Null)));
        let body = json!({"succeeded": ["a", "x"], "failed": [{"id": "b", "message": "3 sessions\nleft"}]});
        let batch = results(&items, &body).unwrap();
        assert_eq!(batch.done, ["a"]);
        assert_eq!(batch.pending[0], ("b".to_owned(), "3 sessions\\nleft".to_owned()));
        assert_eq!(batch.pending[1].0, "c");
        for wrong in [json!(null), json!([]), json!({"succeeded": {}}), json!({"failed": 1})] {
            assert!(results(&items, &wrong).is_err(), "{wrong}");
        }
        // Who is in both has failed.
        let both = results(&items, &json!({"succeeded": ["a", "b", "c"], "failed": [{"id": "a"}]})).unwrap();
        assert_eq!((both.done.len(), both.pending.len()), (2, 1));
    }
}
