//! Adapters that keep a provider (a load balancer, a registry) consistent with what a cluster says, and
//! PodOpsLifecycle: pods leave traffic before anything happens to them, and come back after.
//!
//! An **employer** (a Service) selects **employees** (pods); both have counterparts in a **provider**. A customised
//! controller is an [`Adapter`]: it answers what is expected and what is there, and creates, updates and deletes the
//! difference. Everything else is here, as functions of values, and the consist process of the operator carries it out:
//!
//! * [`settle`]: what is to be done for one employer now. Clean finalizer, entries, provider, protection finalizers.
//! * [`lifecycle`]: what is to be written on one pod now. The stages of an operation, the readiness gate.
//! * [`rules`]: whether a pod may pass a check (`PodTransitionRule`).
//! * [`admission`]: what is answered when a pod is created, deleted or evicted.
//!
//! Nothing in here has a clock, a connection or a thread. What survives a crash lies on the objects themselves, so memory
//! may be lost after any effect; `tests/it/model.rs` loses it after every one.

pub mod adapter;
pub mod admission;
pub mod answer;
pub mod lifecycle;
pub mod marks;
pub mod options;
pub mod pod;
pub mod port;
pub mod rules;
pub mod settle;
pub mod state;

pub use self::{
    adapter::{Adapter, AdapterKinds, Batch, EmployeeSelection, Employment, Expected, Trouble},
    answer::{ItemPair, ProviderAnswer},
    options::{AdapterOptions, Bucket, FinalizerRule, Predicate, RateLimit},
    pod::PodView,
    port::{Call, Getter, LookFailed, ObservedEmployer, Port, port},
    state::{EmployeeState, EmployerState, Item, PodStatuses},
};
