//! What somebody writes to get a customised controller: `ReconcileAdapter` of the document.
//!
//! | document | here |
//! |---|---|
//! | `GetControllerName` | [`Adapter::controller_name`] |
//! | `GetSelectedEmployeeNames` | [`Adapter::employs`] |
//! | `GetExpectedEmployer`, `GetCurrentEmployer` | [`Adapter::expected_employer`], [`Adapter::current_employer`] |
//! | `CreateEmployer`, `UpdateEmployer`, `DeleteEmployer` | `create_employer`, `update_employer`, `delete_employer` |
//! | `GetExpectedEmployee`, `GetCurrentEmployee` | [`Adapter::expected_employees`], [`Adapter::current_employees`] |
//! | `CreateEmployees`, `UpdateEmployees`, `DeleteEmployees` | `create_employees`, `update_employees`, `delete_employees` |
//! | `ReconcileOptions`, `ReconcileWatchOptions`, `ReconcileLifecycleOptions` | [`Adapter::options`], [`Adapter::kinds`] |
//! | three results (succeeded, failed, err) | `Result<`[`Batch`]`, `[`Trouble`]`>` |
//!
//! A call may be repeated after a crash, so every one must be idempotent. What a call *claims* changes nothing on a pod:
//! only what a later look observes does.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    time::Duration,
};

use k8s_openapi::api::core::v1::{Pod, Service};
use linchpin_words::{Gvk, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    options::AdapterOptions,
    pod::PodView,
    state::{EmployeeState, EmployerState},
};

/// Why the provider did not do, or did not say, what it was asked. For people; never a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Trouble(pub String);

impl Trouble {
    /// Trouble in these words.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

/// What is asked and changed at a time: one employer and its employees, as they were observed.
#[derive(Debug)]
pub struct Employment<Employer = Service, Employee = Pod> {
    /// The employer.
    pub employer: Employer,
    /// Its name in full: kind, namespace, name.
    pub key: (String, String, String),
    /// The employees that it selects; an adapter lists nothing itself.
    pub employees: Vec<ObservedEmployee<Employee>>,
    /// Whether the employment ends: the employer is being deleted, or lost its label. Nothing is expected then.
    pub leaving: bool,
    /// When this was asked.
    pub now: Timestamp,
}

impl<Employer, Employee> Employment<Employer, Employee> {
    /// The employer's kind.
    pub fn kind(&self) -> &str {
        &self.key.0
    }

    /// The employer's namespace.
    pub fn namespace(&self) -> &str {
        &self.key.1
    }

    /// The employer's name.
    pub fn name(&self) -> &str {
        &self.key.2
    }

    /// Where the employer's things are at a provider that has no better place: the document's key, `Kind/namespace/name`.
    pub fn scope(&self) -> String {
        crate::marks::key(&self.key.0, &self.key.1, &self.key.2)
    }
}

/// One employee.
#[derive(Debug)]
pub struct ObservedEmployee<Employee = Pod> {
    /// The object.
    pub object: Employee,
    /// What decides about it, where it is a pod; of other objects the metadata is right.
    pub view: PodView,
}

/// Which employees an employer selects. Data, so that it can be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmployeeSelection {
    /// Those with all of these labels; none at all where no label is asked for.
    Labels(BTreeMap<String, String>),
    /// Those with these names.
    Names(BTreeSet<String>),
    /// None.
    Nothing,
}

impl EmployeeSelection {
    /// Whether it selects an object of this name with these labels.
    pub fn selects(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Labels(wanted) => {
                !wanted.is_empty() && wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
            }
            Self::Names(names) => names.contains(name),
            Self::Nothing => false,
        }
    }

    /// The labels at a path of an employer, such as `/spec/selector`; nothing where there are none.
    pub fn labels_at(employer: &Value, path: &str) -> Self {
        let labels = crate::pod::texts(employer, path);
        if labels.is_empty() { Self::Nothing } else { Self::Labels(labels) }
    }
}

/// The kinds of an adapter's employers and employees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterKinds {
    /// The employers' kind.
    pub employer: Gvk,
    /// The employees' kind.
    pub employee: Gvk,
}

impl Default for AdapterKinds {
    fn default() -> Self {
        Self { employer: Gvk::new("", "v1", "Service"), employee: Gvk::new("", "v1", "Pod") }
    }
}

impl AdapterKinds {
    /// Whether employees are pods.
    pub fn employs_pods(&self) -> bool {
        self.employee.group.is_empty() && self.employee.kind == "Pod"
    }
}

/// What is expected of the employees.
#[derive(Debug)]
pub struct Expected<S> {
    /// Their states.
    pub items: Vec<S>,
    /// When to look again although nothing changed, where that is sooner than usual.
    pub recheck: Option<Duration>,
}

impl<S> From<Vec<S>> for Expected<S> {
    fn from(items: Vec<S>) -> Self {
        Self { items, recheck: None }
    }
}

/// How a call went, item by item. Every item is in one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Ids that the provider took.
    pub done: Vec<String>,
    /// Ids that are not so yet, each with why.
    pub pending: Vec<(String, String)>,
}

impl Batch {
    /// Everything is done.
    pub fn done<S: HasId>(items: &[S]) -> Self {
        Self { done: items.iter().map(|item| item.item_id().to_owned()).collect(), pending: Vec::new() }
    }

    /// Nothing is done yet, for this reason.
    pub fn pending<S: HasId>(items: &[S], why: &str) -> Self {
        let pending = items.iter().map(|item| (item.item_id().to_owned(), why.to_owned())).collect();
        Self { done: Vec::new(), pending }
    }
}

/// What has an id: the states of either side.
pub trait HasId {
    /// The id.
    fn item_id(&self) -> &str;
}

impl<S> HasId for crate::state::Item<S> {
    fn item_id(&self) -> &str {
        &self.id
    }
}

/// A customised controller. Service and Pod are the employer and the employee unless it says otherwise.
pub trait Adapter<Employer = Service, Employee = Pod>: Send + Sync + 'static
where
    Employer: DeserializeOwned + Send + Sync,
    Employee: DeserializeOwned + Send + Sync,
{
    /// What an employer is at the provider.
    type EmployerState: EmployerState;
    /// What an employee is at the provider.
    type EmployeeState: EmployeeState;

    /// The name of the controller.
    fn controller_name(&self) -> &str;

    /// The document's optional interfaces; the defaults are the document's.
    fn options(&self) -> AdapterOptions {
        AdapterOptions::default()
    }

    /// The kinds of employers and employees, where they are not Service and Pod.
    fn kinds(&self) -> AdapterKinds {
        AdapterKinds::default()
    }

    /// Which employees an employer selects: by default the labels at `.spec.selector`, none where there are none.
    fn employs(&self, employer: &Value) -> EmployeeSelection {
        EmployeeSelection::labels_at(employer, "/spec/selector")
    }

    /// What the employer is to be at the provider.
    fn expected_employer(
        &self,
        _on: &Employment<Employer, Employee>,
    ) -> impl Future<Output = Result<Vec<Self::EmployerState>, Trouble>> + Send {
        async { Ok(Vec::new()) }
    }

    /// What the employer is at the provider.
    fn current_employer(
        &self,
        _on: &Employment<Employer, Employee>,
    ) -> impl Future<Output = Result<Vec<Self::EmployerState>, Trouble>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Makes what is missing of the employer.
    fn create_employer(
        &self,
        _on: &Employment<Employer, Employee>,
        items: Vec<Self::EmployerState>,
    ) -> impl Future<Output = Result<Batch, Trouble>> + Send {
        async move { Ok(untouched(&items)) }
    }

    /// Changes what is different of the employer.
    fn update_employer(
        &self,
        _on: &Employment<Employer, Employee>,
        items: Vec<Self::EmployerState>,
    ) -> impl Future<Output = Result<Batch, Trouble>> + Send {
        async move { Ok(untouched(&items)) }
    }

    /// Removes what is too much of the employer.
    fn delete_employer(
        &self,
        _on: &Employment<Employer, Employee>,
        items: Vec<Self::EmployerState>,
    ) -> impl Future<Output = Result<Batch, Trouble>> + Send {
        async move { Ok(untouched(&items)) }
    }

    /// What the employees are to be at the provider.
    fn expected_employees(
        &self,
        on: &Employment<Employer, Employee>,
    ) -> impl Future<Output = Result<Expected<Self::EmployeeState>, Trouble>> + Send;

    /// What the employees are at the provider.
    fn current_employees(
        &self,
        on: &Employment<Employer, Employee>,
    ) -> impl Future<Output = Result<Vec<Self::EmployeeState>, Trouble>> + Send;

    /// Adds employees.
    fn create_employees(
        &self,
        on: &Employment<Employer, Employee>,
        items: Vec<Self::EmployeeState>,
    ) -> impl Future<Output = Result<Batch, Trouble>> + Send;

    /// Changes employees.
    fn update_employees(
        &self,
        on: &Employment<Employer, Employee>,
        items: Vec<Self::EmployeeState>,
    ) -> impl Future<Output = Result<Batch, Trouble>> + Send;

    /// Takes employees away.
    fn delete_employees(
        &self,
        on: &Employment<Employer, Employee>,
        items: Vec<Self::EmployeeState>,
    ) -> impl Future<Output = Result<Batch, Trouble>> + Send;
}

/// What an adapter without an employer side says of calls that it never gets.
fn untouched<S: EmployerState>(items: &[S]) -> Batch {
    Batch { done: items.iter().map(|item| item.id().to_owned()).collect(), pending: Vec::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn get_selected_employee_names_follows_the_selector_and_an_empty_one_selects_nothing() {
        let service = |selector: Value| {
            EmployeeSelection::labels_at(&json!({"spec": {"selector": selector}}), "/spec/selector")
        };
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned()), ("x".to_owned(), "y".to_owned())]);
        assert!(service(json!({"app": "web"})).selects("web-1", &labels));
        assert!(!service(json!({"app": "web", "z": "1"})).selects("web-1", &labels));
        for empty in [json!({}), json!(null), json!("web"), json!([1])] {
            assert_eq!(service(empty), EmployeeSelection::Nothing);
        }
        assert!(!EmployeeSelection::Labels(BTreeMap::new()).selects("web-1", &labels));
        assert!(
            EmployeeSelection::Names(BTreeSet::from(["web-1".to_owned()])).selects("web-1", &BTreeMap::new())
        );
    }

    #[test]
    fn new_employer_and_new_employee_are_service_and_pod_unless_said_otherwise() {
        let kinds = AdapterKinds::default();
        assert_eq!((kinds.employer.kind.as_str(), kinds.employee.kind.as_str()), ("Service", "Pod"));
        assert!(kinds.employs_pods());
    }
}
