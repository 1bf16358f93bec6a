//! BootDependency: pods start when what they need is there.
//!
//! Two halves. As a door it is a plan of requirements: each entry of `dependsOn` is one, and the status tells how far
//! they are. For pods it is a set of entries that they carry or are held for: `selection` says whose pods, `division`
//! which entries go into containers and which a scheduling gate stands for, [`inject()`] makes the patch that brings a
//! pod or a pod template to that set. The two webhooks and the controller's repair call the same function, so they
//! agree. `cycles` is the courtesy of the validating webhook. Everything is a function of values.

mod address;
mod container;
mod cycles;
mod division;
mod inject;
mod names;
mod patch;
mod selection;

use self::address::step_names;
pub use self::{
    address::entry_name,
    container::WaiterSettings,
    cycles::{Circle, Circles, circles},
    division::{BootSet, CarriedEntry, Division, GatedEntry, Usable, divide},
    inject::{Gate, Injection, Place, inject, keep_old_part},
    patch::PatchOperation,
    selection::{OwnerName, WorkloadName, is_skipped, label_selector_matches, selects},
};
