//! An adapter as the controller sees it: types erased, all four lists at once or nothing at all.
//!
//! What is expected is asked first, of the employer and of the employees at the same time, and then what there is. Any
//! error, and any answer that cannot be matched, makes the whole answer unknown ([`LookFailed`]): unknown is not absent.

use std::{future::Future, marker::PhantomData, pin::Pin, sync::Arc};

use futures::future::join;
use linchpin_words::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    adapter::{Adapter, AdapterKinds, Batch, EmployeeSelection, Employment, ObservedEmployee, Trouble},
    answer::{Mismatch, ProviderAnswer, Side, pair},
    options::AdapterOptions,
    pod::PodView,
    state::{EmployeeState, EmployerState},
};

/// A future that somebody else polls.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One employer and its employees, as they were observed.
#[derive(Clone, Debug)]
pub struct ObservedEmployer {
    /// The employer.
    pub employer: Arc<Value>,
    /// Its kind, namespace and name.
    pub key: (String, String, String),
    /// The employees that it selects.
    pub employees: Vec<Arc<Value>>,
    /// Whether the employment ends.
    pub leaving: bool,
    /// When this is asked.
    pub now: Timestamp,
}

/// Which question a provider did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Getter {
    /// `GetExpectedEmployer`.
    ExpectedEmployer,
    /// `GetCurrentEmployer`.
    CurrentEmployer,
    /// `GetExpectedEmployee`.
    ExpectedEmployees,
    /// `GetCurrentEmployee`.
    CurrentEmployees,
}

impl Getter {
    /// The reason of the event that reports it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::ExpectedEmployer => "GetExpectedEmployerFailed",
            Self::CurrentEmployer => "GetCurrentEmployerFailed",
            Self::ExpectedEmployees => "GetExpectedEmployeesFailed",
            Self::CurrentEmployees => "GetCurrentEmployeesFailed",
        }
    }
}

/// The provider did not answer, or not with something that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{trouble}")]
pub struct LookFailed {
    /// Which question.
    pub getter: Getter,
    /// Why.
    pub trouble: Trouble,
    /// The questions that failed beside it.
    pub beside: Vec<(Getter, Trouble)>,
}

impl LookFailed {
    /// One question failed.
    pub fn new(getter: Getter, trouble: Trouble) -> Self {
        Self { getter, trouble, beside: Vec::new() }
    }

    /// Every question that failed, and why.
    pub fn all(&self) -> impl Iterator<Item = (Getter, &Trouble)> {
        let beside = self.beside.iter().map(|(getter, trouble)| (*getter, trouble));
        std::iter::once((self.getter, &self.trouble)).chain(beside)
    }

    /// The same, with every text changed.
    #[must_use]
    pub fn in_words(mut self, change: impl Fn(&str) -> String) -> Self {
        for trouble in std::iter::once(&mut self.trouble).chain(self.beside.iter_mut().map(|(_, why)| why)) {
            trouble.0 = change(&trouble.0);
        }
        self
    }
}

/// A call to the provider, in the order in which calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// `CreateEmployer`.
    CreateEmployer,
    /// `UpdateEmployer`.
    UpdateEmployer,
    /// `DeleteEmployer`.
    DeleteEmployer,
    /// `CreateEmployees`.
    CreateEmployees,
    /// `UpdateEmployees`.
    UpdateEmployees,
    /// `DeleteEmployees`.
    DeleteEmployees,
}

impl Call {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [
        Self::CreateEmployer,
        Self::UpdateEmployer,
        Self::DeleteEmployer,
        Self::CreateEmployees,
        Self::UpdateEmployees,
        Self::DeleteEmployees,
    ];

    /// The document's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateEmployer => "CreateEmployer",
            Self::UpdateEmployer => "UpdateEmployer",
            Self::DeleteEmployer => "DeleteEmployer",
            Self::CreateEmployees => "CreateEmployees",
            Self::UpdateEmployees => "UpdateEmployees",
            Self::DeleteEmployees => "DeleteEmployees",
        }
    }

    /// Whether it is about employees.
    pub fn is_of_employees(self) -> bool {
        matches!(self, Self::CreateEmployees | Self::UpdateEmployees | Self::DeleteEmployees)
    }

    /// Reason and text of the event that reports its failure.
    pub fn failure(self, trouble: &str) -> (&'static str, String) {
        let (reason, what) = if self.is_of_employees() {
            ("SyncEmployeesFailed", "employees")
        } else {
            ("SyncEmployerFailed", "employer")
        };
        let part = match self {
            Self::CreateEmployer | Self::CreateEmployees => "syncCreate",
            Self::UpdateEmployer | Self::UpdateEmployees => "syncUpdate",
            Self::DeleteEmployer | Self::DeleteEmployees => "syncDelete",
        };
        (reason, format!("sync {what} failed: {part} failed, err: {trouble}"))
    }
}

/// An adapter with its types erased.
pub trait Port: Send + Sync {
    /// The name of the controller.
    fn controller_name(&self) -> &str;
    /// How its employers are served.
    fn options(&self) -> AdapterOptions;
    /// The kinds of employers and employees.
    fn kinds(&self) -> AdapterKinds;
    /// Which employees an employer selects.
    fn employs(&self, employer: &Value) -> EmployeeSelection;
    /// All four lists.
    fn look<'a>(&'a self, about: &'a ObservedEmployer) -> Pending<'a, Result<ProviderAnswer, LookFailed>>;
    /// One call.
    fn call<'a>(
        &'a self,
        about: &'a ObservedEmployer,
        call: Call,
        items: Vec<Value>,
    ) -> Pending<'a, Result<Batch, Trouble>>;
}

/// An adapter as a port.
pub fn port<A, Employer, Employee>(adapter: A) -> Arc<dyn Port>
where
    A: Adapter<Employer, Employee>,
    Employer: DeserializeOwned + Send + Sync + 'static,
    Employee: DeserializeOwned + Send + Sync + 'static,
{
    Arc::new(Erased { adapter, types: PhantomData::<fn() -> (Employer, Employee)> })
}

struct Erased<A, Employer, Employee> {
    adapter: A,
    types: PhantomData<fn() -> (Employer, Employee)>,
}

/// The objects as the adapter's types.
fn employment<Employer, Employee>(about: &ObservedEmployer) -> Result<Employment<Employer, Employee>, Trouble>
where
    Employer: DeserializeOwned,
    Employee: DeserializeOwned,
{
    let unreadable = |what: &str| Trouble(format!("{what} has not the shape that its kind asks for"));
    let employer = Employer::deserialize(&*about.employer).map_err(|_| unreadable("the employer"))?;
    let read = |object: &Arc<Value>| {
        let view = PodView::of(object);
        let typed = Employee::deserialize(&**object).map_err(|_| unreadable(&view.name))?;
        Ok(ObservedEmployee { object: typed, view })
    };
    let employees = about.employees.iter().map(read).collect::<Result<_, Trouble>>()?;
    Ok(Employment { employer, key: about.key.clone(), employees, leaving: about.leaving, now: about.now })
}

fn state<S: Serialize>(state: &S) -> Result<Value, Trouble> {
    serde_json::to_value(state).map_err(|_| Trouble::new("the adapter's state cannot be written as JSON"))
}

fn items<S: DeserializeOwned>(items: Vec<Value>) -> Result<Vec<S>, Trouble> {
    let read = |item| serde_json::from_value(item);
    let read: Result<_, _> = items.into_iter().map(read).collect();
    read.map_err(|_| Trouble::new("the adapter's state cannot be read back from JSON"))
}

fn employer_sides<S: EmployerState>(list: &[S]) -> Result<Vec<Side>, Trouble> {
    let side = |item: &S| {
        Ok(Side {
            id: item.id().to_owned(),
            name: String::new(),
            state: state(item)?,
            ready: None,
            in_traffic: None,
        })
    };
    list.iter().map(side).collect()
}

fn employee_sides<S: EmployeeState>(list: &[S]) -> Result<Vec<Side>, Trouble> {
    let side = |item: &S| {
        Ok(Side {
            id: item.id().to_owned(),
            name: item.name().to_owned(),
            state: state(item)?,
            ready: item.lifecycle_ready(),
            in_traffic: item.in_traffic(),
        })
    };
    list.iter().map(side).collect()
}

/// Which of two getters a mismatch is to be blamed on.
fn blamed(expected: Getter, current: Getter) -> impl Fn(Mismatch) -> LookFailed {
    move |mismatch| match mismatch {
        Mismatch::Expected(trouble) => LookFailed::new(expected, trouble),
        Mismatch::Current(trouble) => LookFailed::new(current, trouble),
    }
}

/// What two getters answered, or which of them did not.
fn both<A, B>(
    (of_one, one): (Getter, Result<A, Trouble>),
    (of_other, other): (Getter, Result<B, Trouble>),
) -> Result<(A, B), LookFailed> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(trouble), Ok(_)) => Err(LookFailed::new(of_one, trouble)),
        (Ok(_), Err(trouble)) => Err(LookFailed::new(of_other, trouble)),
        (Err(trouble), Err(beside)) => {
            Err(LookFailed { getter: of_one, trouble, beside: vec![(of_other, beside)] })
        }
    }
}

impl<A, Employer, Employee> Port for Erased<A, Employer, Employee>
where
    A: Adapter<Employer, Employee>,
    Employer: DeserializeOwned + Send + Sync + 'static,
    Employee: DeserializeOwned + Send + Sync + 'static,
{
    fn controller_name(&self) -> &str {
        self.adapter.controller_name()
    }

    fn options(&self) -> AdapterOptions {
        self.adapter.options()
    }

    fn kinds(&self) -> AdapterKinds {
        self.adapter.kinds()
    }

    fn employs(&self, employer: &Value) -> EmployeeSelection {
        self.adapter.employs(employer)
    }

    fn look<'a>(&'a self, about: &'a ObservedEmployer) -> Pending<'a, Result<ProviderAnswer, LookFailed>> {
        use Getter::{CurrentEmployees, CurrentEmployer, ExpectedEmployees, ExpectedEmployer};
        let failed = |getter: Getter| move |trouble: Trouble| LookFailed::new(getter, trouble);
        let adapter = &self.adapter;
        Box::pin(async move {
            let on = employment(about).map_err(failed(ExpectedEmployer))?;
            let (mut expected, mut recheck) = (Vec::new(), None);
            let mut wanted = Vec::new();
            if !on.leaving {
                let (of_employer, of_employees) =
                    join(adapter.expected_employer(&on), adapter.expected_employees(&on)).await;
                let (of_employer, of_employees) =
                    both((ExpectedEmployer, of_employer), (ExpectedEmployees, of_employees))?;
                expected = of_employer;
                (wanted, recheck) = (of_employees.items, of_employees.recheck);
            }
            let (of_employer, of_employees) =
                join(adapter.current_employer(&on), adapter.current_employees(&on)).await;
            let (current, there) = both((CurrentEmployer, of_employer), (CurrentEmployees, of_employees))?;
            let employer = pair(
                employer_sides(&expected).map_err(failed(ExpectedEmployer))?,
                employer_sides(&current).map_err(failed(CurrentEmployer))?,
                |one, other| expected[one].same(&current[other]),
            )
            .map_err(blamed(ExpectedEmployer, CurrentEmployer))?;
            let employees = pair(
                employee_sides(&wanted).map_err(failed(ExpectedEmployees))?,
                employee_sides(&there).map_err(failed(CurrentEmployees))?,
                |one, other| wanted[one].same(&there[other]),
            )
            .map_err(blamed(ExpectedEmployees, CurrentEmployees))?;
            Ok(ProviderAnswer { employer, employees, recheck })
        })
    }

    fn call<'a>(
        &'a self,
        about: &'a ObservedEmployer,
        call: Call,
        list: Vec<Value>,
    ) -> Pending<'a, Result<Batch, Trouble>> {
        Box::pin(async move {
            let on = employment(about)?;
            match call {
                Call::CreateEmployer => self.adapter.create_employer(&on, items(list)?).await,
                Call::UpdateEmployer => self.adapter.update_employer(&on, items(list)?).await,
                Call::DeleteEmployer => self.adapter.delete_employer(&on, items(list)?).await,
                Call::CreateEmployees => self.adapter.create_employees(&on, items(list)?).await,
                Call::UpdateEmployees => self.adapter.update_employees(&on, items(list)?).await,
                Call::DeleteEmployees => self.adapter.delete_employees(&on, items(list)?).await,
            }
        })
    }
}
