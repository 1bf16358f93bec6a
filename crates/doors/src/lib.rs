//! The front doors: each kind of ours compiled to a plan, and its status drawn from what the engine says.
//!
//! The one controller serves a [`Subject`](subject::Subject); [`registry`](registry()) lists the kinds that make some. A [`Door`] is
//! what a kind adds to what all have. `compile` turns an object into a
//! [`Plan`](linchpin_engine::plan::Plan) with the help of what has been observed so far, or says which field is wrong;
//! `status` draws the object's status from the engine's report and journal. Both are pure: same inputs, same outputs,
//! no clock, no I/O. Nothing else in the house knows a kind.
//!
//! Read in this order: [`Door`], `assemble` (from dependencies and actions to steps), `requirement`, `dependency`,
//! `action`, `apply` (from bodies to steps), `edges`,
//! then a kind: [`resource_dependency`], [`dependency_group`], [`app_bundle`], [`sync`]. `entries` and `conditions` make up every status.

mod action;
mod apply;
mod assemble;
mod cluster;
mod conditions;
mod dependency;
mod edges;
mod entries;
mod errors;
mod guard;
mod kinds;
mod names;
mod overrides;
mod owner;
mod requirement;
mod shown;
mod sketch;
pub mod status_edges;
mod values;

pub mod app_bundle;
pub mod boot_dependency;
pub mod capability;
pub mod dependency_group;
mod door;
pub mod global_dependency;
pub mod journal;
pub mod json_patch;
pub mod readiness_profile;
pub mod registry;
pub mod resource_dependency;
pub mod subject;
pub mod sync;

pub use app_bundle::AppBundleDoor;
pub use boot_dependency::BootDependencyDoor;
pub use capability::CapabilityDoor;
pub use dependency_group::DependencyGroupDoor;
pub use door::{
    Backing, CLUSTER_DOMAIN, Claim, CompileInput, Compiled, Door, GraphTies, HistoryInput, HistoryRecord,
    HistoryStep, Hold, HoldInput, ImposedOn, Insight, LabelMap, OwnWords, SideRecords, SideWrite,
    StatusInput, StatusOf, Tally, VisibleCauses,
};
pub use global_dependency::GlobalDependencyDoor;
pub use readiness_profile::ReadinessProfileDoor;
pub use registry::{DoorKind, Registry, registry};
pub use resource_dependency::ResourceDependencyDoor;
pub use shown::ShownObject;
pub use sync::{SyncDoor, kind_that_is_defined};
