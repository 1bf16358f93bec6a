//! Rendering: from an admitted action to the verbs that carry it out.
//!
//! Happens at admission only, on the world that the action was admitted on. A value that is missing under
//! `.Dependencies` makes the action wait; anything else that goes wrong is the author's to mend. What an action takes is
//! counted: one that finds nothing left of the step's budget is rendered in the next step, one that takes more than all of
//! it has failed.

mod documents;

use std::{cell::Cell, collections::BTreeMap, sync::Arc};

use linchpin_words::Text;
use serde_json::{Map, Value, json};

use super::{
    data::{TooMuch, dependency_data, now_text, values_counted},
    effort::{Effort, Key},
    inventory::same_object,
    judge::{RequirementView, mark, mark_values},
    secret::Secrets,
};
use crate::{
    contract::{EffectTarget, ExecOrder, Force, Propagation, ReadSet, Verb, World},
    journal::Journal,
    plan::{ActionBody, Drift, Plan, PlannedAction, Step, target_of_document},
};

/// What an action turned out to be.
pub(super) struct RenderedAction {
    /// What to do, wave by wave, last wave first: the order in which waves are taken off the end.
    pub waves: Vec<Vec<Verb>>,
    /// The objects it will make or write, as far as they are named.
    pub targets: Vec<EffectTarget>,
    /// Whether something in it stems from a Secret.
    pub discreet: bool,
}

/// What an action is rendered from.
pub(super) struct RenderInput<'a> {
    pub journal: &'a Journal,
    pub views: &'a [RequirementView],
    pub world: &'a World,
    pub effort: &'a Effort,
}

/// Why an action could not be rendered.
pub(super) enum RenderProblem {
    /// Nothing is left of the step's budget: the next step does it.
    Postponed,
    /// A value is not there yet.
    Missing(String),
    /// Somebody has to mend the text.
    Wrong(String),
}

/// Renders an action on the world it was admitted on.
pub(super) fn render(
    plan: &Plan,
    step: &Step,
    action: &PlannedAction,
    basis: &RenderInput<'_>,
) -> Result<RenderedAction, RenderProblem> {
    let RenderInput { journal, views, effort, .. } = *basis;
    if let Some(recreate) = journal.steps.get(&step.id).and_then(|record| record.recreate.as_ref()) {
        let verb = Verb::Delete {
            target: recreate.target.clone(),
            uid: Some(recreate.uid.clone()),
            creator: Some(plan.uid.clone()),
            propagation: Propagation::Background,
        };
        return Ok(RenderedAction { waves: vec![vec![verb]], targets: Vec::new(), discreet: false });
    }
    if let ActionBody::Delete { target, propagation } = &action.body {
        let known = journal.steps.get(&step.id).and_then(|record| record.deletes.clone());
        let view = plan.position(&step.id).map(|position| &views[position]);
        let Some(uid) = known.or_else(|| view?.doomed.clone()) else {
            return Err(RenderProblem::Missing(format!("{target} was not looked at yet")));
        };
        let (target, propagation) = (target.clone(), *propagation);
        let verb = Verb::Delete { target, uid: Some(uid), creator: None, propagation };
        return Ok(RenderedAction { waves: vec![vec![verb]], targets: Vec::new(), discreet: false });
    }
    // What was missing is missing as long as nothing that is read has changed.
    let key = || mark_of(plan, step, action, basis);
    if effort.kept(key).is_some() {
        return Err(RenderProblem::Missing(effort.words(key()).unwrap_or_default().to_string()));
    }
    if !effort.may_render() {
        return Err(RenderProblem::Postponed);
    }
    let (mut spent, mut discreet) = (1, false);
    let rendered = match data(plan, action, basis, &mut spent) {
        Ok(data) => {
            let secrets = Secrets::of_plan(plan, basis.world);
            let (spending, discretion) = (Cell::new(spent), Cell::new(false));
            let context = Context {
                world: basis.world,
                plan,
                step,
                journal,
                data,
                secrets,
                spent: spending,
                discreet: discretion,
            };
            let rendered = context.verbs(action);
            (spent, discreet) = (context.spent.get(), context.discreet.get());
            rendered
        }
        Err(too_much) => Err(RenderProblem::Wrong(format!("{}: {too_much}", step.field))),
    };
    effort.rendered(spent);
    if let Err(RenderProblem::Missing(message)) = &rendered {
        effort.keep(key, 0, spent, &Text::from(message.clone()));
    }
    let verbs = rendered?;
    let targets = verbs.iter().filter_map(|verb| target_of(verb, &action.default_namespace)).collect();
    Ok(RenderedAction { waves: in_waves(verbs), targets, discreet: discreet || action.discreet })
}

/// A number that represents an action's text and all that it reads.
fn mark_of(plan: &Plan, step: &Step, action: &PlannedAction, basis: &RenderInput<'_>) -> u64 {
    let RenderInput { journal, views, world, effort } = *basis;
    let read = plan.steps().iter().enumerate().filter_map(|(position, other)| {
        let requirement = other.requirement()?;
        let read = action.reads.as_ref().is_none_or(|reads| reads.contains_key(&other.id));
        read.then(|| mark(effort, position, &requirement.want, &views[position], world))
    });
    let values = action.reads_values.then(|| mark_values(plan, effort, world));
    let now = now_text(journal.run.now);
    let text =
        Key::default().text(step.id.as_str()).text(&step.definition).text(now.as_str().unwrap_or_default());
    read.chain(values).fold(text, Key::number).get()
}

/// What must be there before the rest of the same action: Namespaces and definitions of kinds.
fn in_waves(verbs: Vec<Verb>) -> Vec<Vec<Verb>> {
    let (first, rest): (Vec<Verb>, Vec<Verb>) = verbs.into_iter().partition(|verb| match verb {
        Verb::Apply { body, .. } | Verb::Create { body, .. } => {
            matches!(body.get("kind").and_then(Value::as_str), Some("Namespace" | "CustomResourceDefinition"))
        }
        _ => false,
    });
    [rest, first].into_iter().filter(|wave| !wave.is_empty()).collect()
}

fn target_of(verb: &Verb, default_namespace: &str) -> Option<EffectTarget> {
    let (Verb::Apply { body, .. } | Verb::Create { body, .. }) = verb else {
        return None;
    };
    target_of_document(body, default_namespace)
}

/// Whether an action may take back what others hold: only one that keeps what it wrote, and not on first contact.
fn force(step: &Step, action: &PlannedAction, journal: &Journal, body: &Value) -> Force {
    if action.drift().is_none() {
        return Force::Never;
    }
    let Some(target) = target_of_document(body, &action.default_namespace) else {
        return Force::IfCreated;
    };
    let place = action.via.cluster.place();
    let written = journal
        .made_by(&step.id)
        .any(|row| row.uid.is_some() && row.place == place && same_object(&row.target, &target));
    if written { Force::Always } else { Force::IfCreated }
}

struct Context<'a> {
    world: &'a World,
    plan: &'a Plan,
    step: &'a Step,
    journal: &'a Journal,
    data: Value,
    secrets: Secrets,
    spent: Cell<u64>,
    /// Whether a Secret's value was read on the way.
    discreet: Cell<bool>,
}

impl Context<'_> {
    fn verbs(&self, action: &PlannedAction) -> Result<Vec<Verb>, RenderProblem> {
        Ok(match &action.body {
            ActionBody::Create { documents, existing } => self
                .documents(documents)?
                .into_iter()
                .map(|body| Verb::Create {
                    body: Arc::new(body),
                    default_namespace: action.default_namespace.clone(),
                    manager: action.manager.clone(),
                    existing: *existing,
                    creator: self.plan.uid.clone(),
                })
                .collect(),
            ActionBody::Apply { documents, existing } => self
                .documents(documents)?
                .into_iter()
                .map(|body| Verb::Apply {
                    force: force(self.step, action, self.journal, &body),
                    yields: action.drift().map(Drift::yields).unwrap_or_default(),
                    body: Arc::new(body),
                    default_namespace: action.default_namespace.clone(),
                    manager: action.manager.clone(),
                    existing: *existing,
                    creator: self.plan.uid.clone(),
                    owner: action.owner.clone(),
                })
                .collect(),
            ActionBody::Patch { target, kind, text, delivery } => {
                let body = self.patch(*kind, text)?;
                vec![Verb::Patch {
                    target: target.clone(),
                    kind: *kind,
                    body: Arc::new(body),
                    manager: action.manager.clone(),
                    once: delivery.is_some(),
                }]
            }
            ActionBody::Delete { .. } | ActionBody::Wait(_) => Vec::new(),
            ActionBody::Exec { target, container, command, .. } => {
                let command: Result<Vec<String>, RenderProblem> =
                    command.iter().map(|word| self.text(word)).collect();
                let record = self.journal.steps.get(&self.step.id);
                vec![Verb::Exec(ExecOrder {
                    namespace: target.namespace.clone().unwrap_or_else(|| action.default_namespace.clone()),
                    pod: target.name.clone(),
                    container: container.clone(),
                    command: command?,
                    token: record.and_then(|record| record.token.clone()).unwrap_or_default(),
                })]
            }
            ActionBody::Notice(notice) => vec![Verb::Notice(notice.clone())],
        })
    }
}

/// The data of one action: only the dependencies it reads, unless that cannot be known.
fn data(
    plan: &Plan,
    action: &PlannedAction,
    basis: &RenderInput<'_>,
    spent: &mut u64,
) -> Result<Value, TooMuch> {
    let RenderInput { journal, views, world, .. } = *basis;
    let mut dependencies: BTreeMap<&str, Option<Value>> = BTreeMap::new();
    let whole = ReadSet::whole();
    for (position, step) in plan.steps().iter().enumerate() {
        let Some(requirement) = step.requirement() else {
            continue;
        };
        let reads = match &action.reads {
            Some(reads) => reads.get(&step.id),
            None => Some(&whole),
        };
        let Some(reads) = reads else { continue };
        let entry = dependency_data(requirement, &views[position], world, reads, spent)?;
        for key in &requirement.keys {
            let twice = dependencies.contains_key(key.as_str());
            dependencies.insert(key, (!twice).then(|| entry.clone()));
        }
    }
    // A key that two dependencies have is left out: reading it is an error that names both.
    let dependencies: Map<String, Value> =
        dependencies.into_iter().filter_map(|(key, entry)| Some((key.to_owned(), entry?))).collect();
    let mut data = json!({"Now": now_text(journal.run.now)});
    for root in plan.roots.0 {
        data[*root] = Value::Object(dependencies.clone());
    }
    if action.reads_values {
        data["Values"] = values_counted(&plan.terms.inputs, &plan.terms.values, world, spent)?;
    }
    Ok(data)
}
