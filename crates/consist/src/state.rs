//! The states that adapters compare: `IEmployer` and `IEmployee` of the document, and the struct that most need.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::pod::PodView;

/// What an employer is, or is to be, at the provider: `IEmployer`.
pub trait EmployerState: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// `GetEmployerId`: what expected and current are matched by.
    fn id(&self) -> &str;
    /// `EmployerEqual`: whether nothing is to be done where `current` is there and this is expected.
    fn same(&self, current: &Self) -> bool;
}

/// What an employee is, or is to be, at the provider: `IEmployee`.
pub trait EmployeeState: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// `GetEmployeeId`: what expected and current are matched by.
    fn id(&self) -> &str;
    /// `GetEmployeeName`: the pod's name where PodOpsLifecycle is followed.
    fn name(&self) -> &str;
    /// `EmployeeEqual`: whether nothing is to be done where `current` is there and this is expected.
    fn same(&self, current: &Self) -> bool;
    /// Whether the pod may have traffic, where the employee is a pod whose lifecycle is followed.
    fn lifecycle_ready(&self) -> Option<bool>;
    /// Of a current state: whether the provider still sends traffic to it. None where the provider does not say; then a
    /// state that is equal to the expected one counts as settled.
    fn in_traffic(&self) -> Option<bool> {
        None
    }
}

/// `PodEmployeeStatuses`: what every provider wants to know of a pod, and what this one knows beyond that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatuses<X: Default> {
    /// The pod's address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// Its first IPv6 address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ipv6: String,
    /// Whether it may have traffic.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lifecycle_ready: bool,
    /// What this provider knows beyond that.
    pub extra_status: X,
}

impl<X: Default> PodStatuses<X> {
    /// `SetCommonPodEmployeeStatus`: the common part from the pod.
    pub fn of(pod: &PodView, extra_status: X) -> Self {
        Self {
            ip: pod.ip.clone(),
            ipv6: pod.ipv6.clone(),
            lifecycle_ready: pod.is_lifecycle_ready(),
            extra_status,
        }
    }
}

/// Statuses that know whether their pod may have traffic.
pub trait Statuses: Serialize + DeserializeOwned + PartialEq + Send + Sync + 'static {
    /// Whether the pod may have traffic; none where these are not the statuses of a pod.
    fn lifecycle_ready(&self) -> Option<bool> {
        None
    }
}

impl<X> Statuses for PodStatuses<X>
where
    X: Default + Serialize + DeserializeOwned + PartialEq + Send + Sync + 'static,
{
    fn lifecycle_ready(&self) -> Option<bool> {
        Some(self.lifecycle_ready)
    }
}

/// A state made of an id, a name and statuses: equal where the statuses are. Most adapters need no other type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item<S> {
    /// The id.
    pub id: String,
    /// The name; empty for employers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What is compared.
    pub statuses: S,
    /// Whether the provider still sends traffic to it, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_traffic: Option<bool>,
}

impl<S> Item<S> {
    /// An employer's state.
    pub fn employer(id: impl Into<String>, statuses: S) -> Self {
        Self { id: id.into(), name: String::new(), statuses, in_traffic: None }
    }

    /// An employee's state, with its name as its id.
    pub fn employee(name: impl Into<String>, statuses: S) -> Self {
        let name = name.into();
        Self { id: name.clone(), name, statuses, in_traffic: None }
    }
}

impl<S> EmployerState for Item<S>
where
    S: Serialize + DeserializeOwned + PartialEq + Send + Sync + 'static,
{
    fn id(&self) -> &str {
        &self.id
    }

    fn same(&self, current: &Self) -> bool {
        self.statuses == current.statuses
    }
}

impl<S: Statuses> EmployeeState for Item<S> {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn same(&self, current: &Self) -> bool {
        self.statuses == current.statuses
    }

    fn lifecycle_ready(&self) -> Option<bool> {
        self.statuses.lifecycle_ready()
    }

    fn in_traffic(&self) -> Option<bool> {
        self.in_traffic
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pod_employee_statuses_have_the_documents_names() {
        let statuses = PodStatuses {
            ip: "10.0.0.7".to_owned(),
            ipv6: "fd00::7".to_owned(),
            lifecycle_ready: true,
            extra_status: 1,
        };
        let written = json!({"ip": "10.0.0.7", "ipv6": "fd00::7", "lifecycleReady": true, "extraStatus": 1});
        assert_eq!(serde_json::to_value(&statuses).unwrap(), written);
        assert_eq!(serde_json::from_value::<PodStatuses<i32>>(written).unwrap(), statuses);
        assert_eq!(serde_json::from_value::<PodStatuses<i32>>(json!({})).unwrap(), PodStatuses::default());
    }

    #[test]
    fn iemployee_and_iemployer_are_matched_by_id_and_compared_by_statuses() {
        let item = |id: &str, weight| {
            Item::employee(id, PodStatuses { extra_status: weight, ..PodStatuses::default() })
        };
        let one = item("web-1", 100);
        assert_eq!((EmployeeState::id(&one), one.name()), ("web-1", "web-1"));
        assert!(EmployeeState::same(&one, &Item { in_traffic: Some(true), ..item("web-1", 100) }));
        assert!(!EmployeeState::same(&one, &item("web-1", 0)));
        let employer = Item::employer("web", 100);
        assert_eq!(EmployerState::id(&employer), "web");
        assert!(EmployerState::same(&employer, &Item::employer("web", 100)));
        assert!(!EmployerState::same(&employer, &Item::employer("web", 1)));
    }
}
