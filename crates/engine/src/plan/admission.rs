//! One transition, admitted as a whole.
//!
//! A plan may say that all it applies is one [`Edition`], and which requirements are its *gates*. The edition is admitted
//! once, when all gates are seen to hold together; from then on its gates are *spent*: they hold nothing up, fail nothing
//! and count for nothing, whatever becomes of them. Until then no action of the plan starts, but for repairs of what an
//! earlier edition wrote and this one does not change. Plans without an admission know nothing of all this.
//!
//! That an edition was admitted is saved before anything of it happens. The first one may be saved while it still
//! waits: a *pledge* says that nothing of it was written so far, and is saved; from then on what our field manager is
//! seen to hold proves as surely as a journal that the pledged edition was admitted. So the first admission costs no
//! write of its own, and no crash takes it back.

use std::collections::BTreeMap;

use linchpin_words::Shared;
use serde::{Deserialize, Serialize};

use super::{Plan, same_definition};
use crate::{contract::StepId, journal::Journal};

/// All that is to be applied, as one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edition {
    /// A definition over the definitions of all actions: another one is another transition.
    pub id: String,
    /// What the source calls it. Several revisions may be one edition.
    pub revision: String,
    /// Its version, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Edition {
    /// Whether both apply the same, as far as that can be compared.
    pub fn is(&self, other: &Self) -> bool {
        same_definition(&self.id, &other.id)
    }
}

/// What must hold for an edition to be admitted.
#[derive(Clone, Debug)]
pub struct Admission {
    /// The edition.
    pub edition: Shared<Edition>,
    /// The requirements that must hold together, each with the transitions that it gates.
    pub gates: BTreeMap<StepId, Gates>,
}

/// The transitions that a requirement gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gates {
    /// The first one: nothing was ever admitted.
    Create,
    /// All but the first.
    Update,
    /// Every one.
    Both,
}

/// What became of editions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Editions {
    /// The one that was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Shared<Edition>>,
    /// The one that waited when nothing of any was written: whatever is found written while none is admitted is of this
    /// one, and proves that it was admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pledged: Option<Shared<Edition>>,
    /// The one that was admitted last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted: Option<Shared<Edition>>,
    /// The one whose actions were all done last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Shared<Edition>>,
    /// The one that was as a whole ready last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Shared<Edition>>,
}

impl Editions {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Calls an edition that is known already by its latest names.
    pub(crate) fn rename(&mut self, edition: &Shared<Edition>) {
        let editions =
            [&mut self.seen, &mut self.pledged, &mut self.admitted, &mut self.applied, &mut self.ready];
        for known in editions {
            if let Some(known) = known.as_mut().filter(|known| known.is(edition) && ***known != **edition) {
                *known = edition.clone();
            }
        }
    }
}

impl Plan {
    /// The same plan as one transition.
    #[must_use]
    pub fn with_admission(mut self, admission: Admission) -> Self {
        self.gates = self.steps.iter().map(|step| admission.gates.get(&step.id).copied()).collect();
        self.admission = Some(admission);
        self
    }

    /// The transitions that the step at `position` gates, if it is a gate.
    pub(crate) fn gates(&self, position: usize) -> Option<Gates> {
        self.gates.get(position).copied().flatten()
    }
}

impl Journal {
    /// Whether nothing of a plan may start because it has not been admitted.
    pub fn is_held(&self, plan: &Plan) -> bool {
        let Some(admission) = &plan.admission else { return false };
        !self.editions.admitted.as_ref().is_some_and(|admitted| admitted.is(&admission.edition))
    }

    /// Whether the step at `position` is a gate, and holds nothing up: what it gates has been admitted, or it does not
    /// gate this transition.
    pub(crate) fn is_spent(&self, plan: &Plan, position: usize) -> bool {
        let Some(gates) = plan.gates(position) else { return false };
        let first = self.editions.admitted.is_none();
        let concerned = match gates {
            Gates::Create => first,
            Gates::Update => !first,
            Gates::Both => true,
        };
        !concerned || !self.is_held(plan)
    }
}
