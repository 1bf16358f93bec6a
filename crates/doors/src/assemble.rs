//! From dependencies and actions to a plan: what every kind does the same way.
//!
//! A kind is one or more [`Part`]s, each with dependencies and actions. [`drafts`] reads them all, resolves kinds and
//! collects who reads what of whom; the kind puts them in order; [`Frame::plan`] adds what is not a step.

use std::{cell::RefCell, collections::BTreeMap};

use kube_core::Resource;
use linchpin_api::{
    Action, Common, Dependency,
    common::{OnFailure, OnFailureType, Recovery as RecoveryWord},
};
use linchpin_engine::{
    contract::{Authority, Notice, ReadSet, StepId, Via},
    plan::{
        self, ActionBody, Input, Plan, PlanLane, Readings, Recovery, Removal, Roots, SpecError, Step,
        StepKind, Terms, WatchEvents, definition,
    },
};
use linchpin_lang::template::StaticReads;
use linchpin_words::{limits, similar, text};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    action, dependency,
    door::{CompileInput, Compiled},
    errors::{at, bounded, duration},
    kinds::KindLookup,
    names::{self, NamedStep},
    overrides,
    owner::Owner,
    requirement::RequirementDraft,
    values,
};

/// What is the same for all entries of one object.
pub(crate) struct Frame<'a> {
    pub owner: Owner,
    pub common: &'a Common,
    /// This cluster, as the object's own identity.
    pub via: Via,
    pub kinds: KindLookup<'a>,
    pub inputs: Vec<Input>,
    /// Whether what is made is remembered, to be deleted one day.
    pub tracked: bool,
    /// What becomes of what was made, when the object goes.
    pub removal: Removal,
    /// What people should know of the spec although it can be carried out.
    remarks: RefCell<Vec<String>>,
}

/// Some dependencies and the actions that come after them.
pub(crate) struct Part<'a> {
    /// Its name, where an object has several.
    pub name: Option<&'a str>,
    /// Where it is in the spec.
    pub field: String,
    pub dependencies: &'a [Dependency],
    pub actions: &'a [Action],
}

/// The entries of all parts, read.
pub(crate) struct Drafts {
    pub dependencies: Vec<dependency::DependencyDraft>,
    pub actions: Vec<action::ActionDraft>,
    pub named_dependencies: Vec<NamedStep>,
    pub named_actions: Vec<NamedStep>,
}

/// What dependencies are called in templates and expressions.
pub(crate) struct Keys {
    roots: Roots,
    steps: BTreeMap<String, Vec<StepId>>,
    fields: BTreeMap<StepId, String>,
}

impl Keys {
    pub(crate) fn of<'d>(roots: Roots, requirements: impl IntoIterator<Item = &'d RequirementDraft>) -> Self {
        let mut steps: BTreeMap<String, Vec<StepId>> = BTreeMap::new();
        let mut fields = BTreeMap::new();
        for draft in requirements {
            fields.insert(draft.id.clone(), draft.field.clone());
            for key in &draft.keys {
                steps.entry(key.clone()).or_default().push(draft.id.clone());
            }
        }
        Self { roots, steps, fields }
    }

    /// By which names templates read them.
    pub(crate) fn roots(&self) -> Roots {
        self.roots
    }

    /// The dependencies that each key may mean.
    pub(crate) fn steps(&self) -> &BTreeMap<String, Vec<StepId>> {
        &self.steps
    }

    /// Refuses to read a key that no dependency has, or that two have.
    pub(crate) fn check(&self, reads: &StaticReads, field: &str) -> Result<(), SpecError> {
        for path in &reads.paths {
            let [root, key, ..] = path.segments() else { continue };
            if !self.roots.contain(root) {
                continue;
            }
            let what = if root == "Dependencies" { "dependency" } else { "component" };
            match self.steps.get(key).map_or(&[][..], Vec::as_slice) {
                [_] => {}
                [] => {
                    let known: Vec<&str> = self.steps.keys().take(10).map(String::as_str).collect();
                    let meant = similar::did_you_mean(key, self.steps.keys().map(String::as_str));
                    let problem =
                        format!("no {what} has the key {key:?}; there are {}{meant}", known.join(", "));
                    return Err(at(field, problem));
                }
                several => {
                    let owners: Vec<&str> =
                        several.iter().filter_map(|id| self.fields.get(id)).map(String::as_str).collect();
                    let problem =
                        format!("{key:?} is the key of each of {}; give them names", owners.join(", "));
                    return Err(at(field, problem));
                }
            }
        }
        Ok(())
    }
}

/// Reads the entries of all parts.
pub(crate) fn drafts(frame: &Frame<'_>, parts: &[Part<'_>]) -> Result<Drafts, SpecError> {
    let all_names: Vec<names::StepNames> =
        parts.iter().map(|part| names::of_part(part.name, part.dependencies, part.actions)).collect();
    let mut dependencies = Vec::new();
    for (part, names) in parts.iter().zip(&all_names) {
        let list = format!("{}.dependencies", part.field);
        bounded(part.dependencies.len(), limits::DEPENDENCIES, &list, "dependencies")?;
        unique(part.dependencies.iter().map(|entry| entry.name.as_deref()), &list)?;
        for (index, (entry, named)) in part.dependencies.iter().zip(&names.dependencies).enumerate() {
            dependencies.push(dependency::DependencyDraft::new(
                frame,
                entry,
                named,
                &format!("{list}[{index}]"),
                part.name,
            )?);
        }
    }
    let keys = Keys::of(Roots::default(), dependencies.iter().map(|draft| &draft.requirement));
    let mut actions = Vec::new();
    for (part, names) in parts.iter().zip(&all_names) {
        let list = format!("{}.actions", part.field);
        bounded(part.actions.len(), limits::ACTIONS, &list, "actions")?;
        unique(part.actions.iter().map(|entry| entry.name.as_deref()), &list)?;
        for (index, (entry, named)) in part.actions.iter().zip(&names.actions).enumerate() {
            let field = format!("{list}[{index}]");
            actions.push(action::ActionDraft::new(
                frame,
                entry,
                named,
                &field,
                part.name,
                &mut dependencies,
                &keys,
            )?);
        }
    }
    let readings: Vec<&Readings> = actions.iter().map(|action| &action.readings).collect();
    share_readings(dependencies.iter_mut().map(|draft| &mut draft.requirement), &readings);
    let (mut named_dependencies, mut named_actions) = (Vec::new(), Vec::new());
    for names in all_names {
        named_dependencies.extend(names.dependencies);
        named_actions.extend(names.actions);
    }
    Ok(Drafts { dependencies, actions, named_dependencies, named_actions })
}

/// Sets for each requirement what is read of it.
pub(crate) fn share_readings<'d>(
    requirements: impl IntoIterator<Item = &'d mut RequirementDraft>,
    readings: &[&Readings],
) {
    let whole = ReadSet::whole();
    for draft in requirements {
        for reading in readings {
            match &reading.dependencies {
                None => draft.also_read(&whole),
                Some(read) => {
                    if let Some(read) = read.get(&draft.id) {
                        draft.also_read(read);
                    }
                }
            }
        }
    }
}

/// Refuses two entries of one name.
fn unique<'n>(names: impl Iterator<Item = Option<&'n str>>, list: &str) -> Result<(), SpecError> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, name) in names.enumerate() {
        let Some(name) = name else { continue };
        if let Some(first) = seen.insert(name, index) {
            let problem = format!("{name:?} is the name of {list}[{first}] too; names must differ");
            return Err(at(format!("{list}[{index}].name"), problem));
        }
    }
    Ok(())
}

impl Drafts {
    /// Every dependency with the events of it that count.
    pub(crate) fn watched(&self) -> BTreeMap<StepId, WatchEvents> {
        self.dependencies.iter().map(|draft| (draft.requirement.id.clone(), draft.watch)).collect()
    }
}

impl<'a> Frame<'a> {
    /// What all entries of an object have in common.
    pub(crate) fn new<K: Resource<DynamicType = (), Scope: 'static>>(
        object: &K,
        common: &'a Common,
        compile_input: &CompileInput<'a>,
        removal: Removal,
    ) -> Result<Self, SpecError> {
        let owner = Owner::of(object);
        let account = common.service_account_name.as_deref().unwrap_or(compile_input.default_service_account);
        let via = Via::service_account(&owner.namespace, account);
        let inputs = values::inputs(common, &via, &owner.namespace)?;
        let tracked = removal == Removal::Delete;
        let kinds = KindLookup::new(*compile_input);
        Ok(Self { owner, common, via, kinds, inputs, tracked, removal, remarks: RefCell::default() })
    }

    /// The user's text of an entry, with the cluster it inherits.
    pub(crate) fn fragment(&self, entry: &impl Serialize, has_cluster: bool) -> Value {
        let mut fragment = json!(entry);
        if let (false, Some(cluster), Some(fields)) =
            (has_cluster, &self.common.cluster, fragment.as_object_mut())
        {
            fields.insert("cluster".to_owned(), json!(cluster));
        }
        fragment
    }

    /// Notes what people should know of a field although it can be carried out.
    pub(crate) fn remark(&self, field: &str, what: &str) {
        self.remarks.borrow_mut().push(format!("{field}: {what}"));
    }

    /// The plan of these steps, and what was looked at to make it.
    pub(crate) fn plan(
        self,
        mut steps: Vec<Step>,
        dependencies: &[NamedStep],
        actions: &[NamedStep],
        watch: bool,
    ) -> Result<Compiled, SpecError> {
        steps.extend(self.notices());
        let global_timeout = duration(self.common.global_timeout.as_ref(), "spec.globalTimeout")?;
        let recovery = match self.common.recovery {
            None | Some(RecoveryWord::Automatic) => Recovery::Automatic,
            Some(RecoveryWord::Manual) => Recovery::Manual,
        };
        let mut orders = overrides::on_object(&self.owner, dependencies, actions);
        orders.problems.extend(self.remarks.into_inner());
        let (wants, kinds) = self.kinds.into_parts();
        let terms = Terms {
            inputs: self.inputs,
            values: values::own(self.common),
            global_timeout,
            suspended: self.common.suspend,
            recovery,
            watch,
            removal: self.removal,
            orders,
            kinds,
            authority: Authority { actor: self.via.actor, clusters: Vec::new() },
        };
        let plan = Plan::new(self.owner.object_ref(), &self.owner.uid, self.owner.generation, steps, terms)?;
        Ok(Compiled { plan, wants })
    }

    /// What is said when the plan fails.
    fn notices(&self) -> Vec<Step> {
        let events = self.common.on_failure.iter().enumerate();
        events
            .filter(|(_, entry)| entry.kind == OnFailureType::Event)
            .map(|(index, entry)| self.notice(index, entry))
            .collect()
    }

    fn notice(&self, index: usize, entry: &OnFailure) -> Step {
        let id = StepId::new(format!("onFailure#{}", index + 1));
        let message = text::line(entry.message.as_deref().unwrap_or("it has failed"));
        let notice = Notice { reason: "Failed".to_owned(), message, warning: true };
        let (via, manager) = (self.via.clone(), self.owner.manager(id.as_str()));
        let action =
            plan::PlannedAction::new(via, ActionBody::Notice(notice), &self.owner.namespace, manager);
        let (field, text) = (format!("spec.onFailure[{index}]"), definition(&json!(entry), &Value::Null));
        Step { lane: PlanLane::OnFailure, ..Step::new(id, field, text, StepKind::Act(Box::new(action))) }
    }
}
