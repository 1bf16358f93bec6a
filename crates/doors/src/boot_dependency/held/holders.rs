//! Which BootDependencies hold a pod: all that select it now, whether or not they were there when it was created.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::common::LabelSelector;
use linchpin_engine::contract::Projection;

use super::owners;
use crate::boot_dependency::{
    chain::OwnerChain, label_selector_matches, selection::WorkloadName, survey::target_of,
};

/// The BootDependencies of a namespace by what they select, without reading all of each.
#[derive(Default)]
pub(super) struct Selecting<'b> {
    /// By the name of their workload.
    workloads: BTreeMap<String, Vec<(WorkloadName, &'b str)>>,
    labels: Vec<(LabelSelector, &'b str)>,
    all: BTreeSet<&'b str>,
}

impl<'b> Selecting<'b> {
    pub(super) fn of(boots: impl Iterator<Item = &'b Projection>) -> Self {
        let mut selecting = Self::default();
        for boot in boots {
            let name = boot.name.as_str();
            selecting.all.insert(name);
            if let Some(workload) = target_of(boot) {
                selecting.workloads.entry(workload.name.clone()).or_default().push((workload, name));
            } else if let Ok(labels) = serde_json::from_value(boot.content["spec"]["selector"].clone()) {
                selecting.labels.push((labels, name));
            }
        }
        selecting
    }

    /// Who holds a pod. While the chain of its controllers is not known, its holder so far still holds it.
    pub(super) fn holders(&self, pod: &Projection, chain: &OwnerChain) -> BTreeSet<&'b str> {
        if !chain.complete {
            let named = owners(pod).into_iter();
            return named.filter_map(|owner| self.all.get(owner).copied()).collect();
        }
        let labels = &pod.content["metadata"]["labels"];
        let by_labels = self.labels.iter().filter(|(selector, _)| label_selector_matches(selector, labels));
        let by_chain = chain.owners.iter().flat_map(|owner| {
            let named = self.workloads.get(&owner.name).into_iter().flatten();
            named.filter(|(workload, _)| workload.is(owner)).map(|(_, name)| *name)
        });
        by_labels.map(|(_, name)| *name).chain(by_chain).collect()
    }
}
