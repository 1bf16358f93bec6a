//! From a Sync to a plan: gates, then an act and a requirement for each object, as one edition.

use std::{collections::BTreeMap, time::Duration};

use linchpin_api::{Ours, Sync, app_bundle::status::ResourceRef, common::Target, sync::status::SourceStatus};
use linchpin_engine::{
    contract::{StepId, Via},
    plan::{
        ActionBody, Admission, After, Edition, Gates, Notes, PlannedAction, SpecError, Step, StepKind,
        definition,
    },
    readiness::Wanted,
};
use linchpin_words::{Gvk, KindWord, ObjectRef, Reason, Shared, limits};
use serde_json::{Value, json};

use super::{
    backing,
    dependency::{self, DependencyContext, DraftedDependency, exports, shown},
    depends_on::DependsOnReference,
    global,
    object::{self, SyncObject},
    order::{self, AwaitedState, ObjectCircle, ObjectOrder, OrderedObject},
    outline::{ExportOutline, ObjectOutline, SyncOutline},
    source::{self, refused},
    weight,
};
use crate::{
    apply::{Object, ReadyTerms},
    assemble::Frame,
    cluster,
    door::{self, CompileInput, Compiled},
    errors::{at, bounded, duration},
    names::{self, NamedStep},
    readiness_profile,
    requirement::{RequiredObjects, RequiredThing, RequirementDraft, RequirementSpec},
};

/// How long those of a higher wave wait for an object that is neither ready nor failed.
const WAVE_PATIENCE: Duration = Duration::from_mins(5);

pub(super) fn compile(object: &Sync, input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
    let frame = Frame::new(object, &object.spec.common, input, door::removal(object.deletion_policy()))?;
    match Built::of(&frame, object, input) {
        Ok(built) => {
            // A dependency that was met once and for all is opened again by the order that runs actions again.
            let latches = |named: &&NamedStep| {
                let mut outlines = built.outline.dependencies.iter();
                outlines.any(|outline| outline.step == named.id && outline.latches)
            };
            let again = built.dependencies.iter().filter(latches).chain(&built.actions);
            let again: Vec<NamedStep> = again.cloned().collect();
            let mut compiled = frame.plan(built.steps, &built.dependencies, &again, true)?;
            compiled.plan.keeps = object.spec.prune == Some(false);
            weight::check(&compiled.plan, &built.objects)
                .map_err(|error| error.asking(compiled.wants.clone()))?;
            compiled.plan.notes = Notes::new(built.outline);
            let admission = Admission { edition: built.edition, gates: built.gates };
            compiled.plan = compiled.plan.with_admission(admission);
            let created = object.metadata.creation_timestamp.as_ref();
            compiled.plan.created = created.map_or(0, |time| time.0.as_second());
            Ok(compiled)
        }
        // What was looked at may change, and with it the answer.
        Err(error) => {
            let (asks, _) = frame.kinds.into_parts();
            Err(error.asking(asks))
        }
    }
}

/// All that a plan is made of.
struct Built {
    steps: Vec<Step>,
    gates: BTreeMap<StepId, Gates>,
    dependencies: Vec<NamedStep>,
    actions: Vec<NamedStep>,
    objects: Vec<SyncObject>,
    outline: SyncOutline,
    edition: Shared<Edition>,
}

impl Built {
    fn of(frame: &Frame<'_>, object: &Sync, input: &CompileInput<'_>) -> Result<Self, SpecError> {
        let spec = &object.spec;
        let common = &spec.common;
        let via = cluster::via(&frame.via, &frame.owner.namespace, None, common.cluster.as_ref(), "spec")?;
        let reading = source::read(frame, object)?;
        let objects = object::read_all(frame, object, &via, &reading)?;
        bounded(spec.dependencies.len(), limits::SYNC_DEPENDENCIES, "spec.dependencies", "dependencies")?;
        let around = DependencyContext {
            frame,
            via: &via,
            revision: Some(&reading.revision),
            source: Some(&spec.source),
            objects: &objects,
            myself: myself(object, &reading.revision),
            explicit: false,
        };
        let mut dependencies = Vec::with_capacity(spec.dependencies.len());
        for (index, entry) in spec.dependencies.iter().enumerate() {
            let field = format!("spec.dependencies[{index}]");
            if spec.dependencies[..index].iter().any(|other| other.name == entry.name) {
                return Err(at(
                    format!("{field}.name"),
                    "two dependencies have this name; names must differ",
                ));
            }
            dependencies.push(dependency::read(&around, entry, &field)?);
        }
        let imposed = global::read(frame, object, &objects, input)?;
        let order = ordered(&objects, &dependencies)?;
        let mut built = Self {
            steps: Vec::new(),
            gates: BTreeMap::new(),
            dependencies: Vec::new(),
            actions: Vec::new(),
            objects: Vec::new(),
            outline: SyncOutline {
                source: SourceStatus {
                    revision: reading.revision.clone(),
                    digest: reading.digest.clone(),
                    size: reading.size,
                    fetched_at: reading.fetched,
                },
                stale: reading.stale.clone(),
                ..SyncOutline::default()
            },
            edition: Shared::default(),
        };
        let mut everywhere = Vec::new();
        for one in &dependencies {
            let named = NamedStep { id: one.outline.step.clone(), words: vec![one.outline.name.clone()] };
            built.outline.dependencies.push(one.outline.clone());
            built.dependencies.push(named);
            if let Some(position) = one.own {
                built.steps.push(one.own_step(&objects[position].apply.id));
                continue;
            }
            built.gates.extend(one.gates.admission.map(|gates| (one.outline.step.clone(), gates)));
            let steps = one.steps();
            everywhere.extend(steps[1..].iter().map(|step| After::success(step.id.clone())));
            built.steps.extend(steps);
        }
        for one in imposed {
            built.gates.extend(one.gates.admission.map(|gates| (one.outline.step.clone(), gates)));
            built.outline.globals.push(one.outline);
            built.steps.push(one.step);
        }
        let first: Vec<After> = built.gates.keys().cloned().map(After::success).collect();
        let timeout = duration(spec.timeout.as_ref(), "spec.timeout")?;
        let builder = Builder { frame, via: &via, objects: &objects, order: &order, timeout };
        builder.waves(&mut built)?;
        for position in 0..objects.len() {
            builder.object(position, &dependencies, &first, &everywhere, &mut built)?;
        }
        builder.exports(object, &mut built)?;
        built.edition = edition(&built.steps, &reading);
        built.objects = objects;
        Ok(built)
    }
}

/// What `self` is in expressions: this Sync as far as it is not its own status.
pub(super) fn myself(object: &Sync, revision: &str) -> Value {
    let mut spec = serde_json::to_value(&object.spec).unwrap_or_default();
    if let Some(source) = spec.get_mut("source").and_then(Value::as_object_mut) {
        source.remove("objects");
    }
    let meta = &object.metadata;
    let metadata = json!({
        "name": meta.name,
        "namespace": meta.namespace,
        "labels": meta.labels,
        "annotations": meta.annotations,
        "generation": meta.generation,
    });
    json!({"metadata": metadata, "spec": spec, "revision": revision})
}

/// All that is applied, as one.
fn edition(steps: &[Step], reading: &source::SourceReading) -> Shared<Edition> {
    let acts = steps
        .iter()
        .filter(|step| step.action().is_some_and(|action| matches!(action.body, ActionBody::Apply { .. })));
    let mut pairs: Vec<(&str, &str)> =
        acts.map(|step| (step.id.as_str(), step.definition.as_str())).collect();
    pairs.sort_unstable();
    Shared::new(Edition {
        id: definition(&json!(pairs), &Value::Null),
        revision: reading.revision.clone(),
        version: reading.version.clone(),
    })
}

/// Which objects come after which.
fn ordered(objects: &[SyncObject], dependencies: &[DraftedDependency]) -> Result<ObjectOrder, SpecError> {
    let items: Vec<OrderedObject<'_>> = objects
        .iter()
        .map(|one| {
            let object = one.object();
            OrderedObject {
                gvk: &object.gvk,
                plural: object::plural(object),
                namespace: object.namespace.as_deref(),
                name: &object.name,
                body: &object.body,
                depends_on: one.depends_on.clone(),
                wave: one.wave,
                label: object.label(),
            }
        })
        .collect();
    let first: Vec<usize> = dependencies.iter().filter_map(|one| one.own).collect();
    order::order(&items, &first).map_err(|ObjectCircle(round)| {
        let mut names: Vec<&str> = round.iter().map(|position| items[*position].label.as_str()).collect();
        names.extend(names.first().copied());
        let problem = format!("objects of the source wait for each other: {}", names.join(" → "));
        refused(Reason::Cycle, "spec.source", problem)
    })
}

/// Makes the steps of objects.
struct Builder<'a> {
    frame: &'a Frame<'a>,
    via: &'a Via,
    objects: &'a [SyncObject],
    order: &'a ObjectOrder,
    timeout: Option<Duration>,
}

impl Builder<'_> {
    /// The act of an object, what it waits for outside, and that it is ready.
    fn object(
        &self,
        position: usize,
        dependencies: &[DraftedDependency],
        first: &[After],
        everywhere: &[After],
        built: &mut Built,
    ) -> Result<(), SpecError> {
        let one = &self.objects[position];
        let mut after = self.after(position, dependencies);
        for reference in &self.order.outside[position] {
            let step = self.outside(reference)?;
            after.push(After::success(step.id.clone()));
            if !built.steps.iter().any(|known| known.id == step.id) {
                built.steps.push(step);
            }
        }
        if after.is_empty() {
            after.extend_from_slice(first);
        }
        after.extend_from_slice(everywhere);
        built.actions.push(NamedStep { id: one.apply.id.clone(), words: vec![one.object().label()] });
        built.steps.push(one.apply.act(self.frame, after, &[]));
        let mut ready = None;
        if one.counts {
            let step = self.ready(position, &names::ready(one.apply.id.as_str(), None))?;
            ready = Some(step.id.clone());
            built.steps.push(step);
        }
        let object = one.object();
        let (kind, namespace) = (object.gvk.group_kind(), object.namespace.clone());
        let named = ObjectRef { kind, namespace, name: object.name.clone() };
        backing::note(&mut built.outline.backing, &named, &object.body);
        built.outline.objects.push(ObjectOutline {
            reference: reference(one.object()),
            act: one.apply.id.clone(),
            ready,
            layer: self.order.layers[position],
        });
        Ok(())
    }

    /// The steps that an object comes after.
    fn after(&self, position: usize, dependencies: &[DraftedDependency]) -> Vec<After> {
        let mut after = Vec::new();
        for (earlier, awaits) in &self.order.before[position] {
            let other = &self.objects[*earlier];
            let named: Vec<&DraftedDependency> =
                dependencies.iter().filter(|dependency| dependency.own == Some(*earlier)).collect();
            after.push(match awaits {
                AwaitedState::Ready if other.counts && named.is_empty() => {
                    After::success(names::ready(other.apply.id.as_str(), None))
                }
                AwaitedState::Ready => After::success(other.apply.id.clone()),
                AwaitedState::Written => After::settled(other.apply.id.clone()),
            });
            after.extend(named.iter().map(|dependency| After::success(dependency.outline.step.clone())));
        }
        for wave in self.order.waves.iter().filter(|wave| wave.later.contains(&position)) {
            after.push(After::success(wave_id(wave.number)));
        }
        after
    }

    /// That an object is ready.
    fn ready(&self, position: usize, id: &StepId) -> Result<Step, SpecError> {
        let one = &self.objects[position];
        let object = one.object();
        let draft = RequirementDraft::new(self.frame, one.apply.ready(id.clone(), object))?;
        let terms = ReadyTerms {
            timeout: self.timeout,
            latch: false,
            gate_by_existence: !self.order.strict.contains(&position),
        };
        Ok(one.apply.ready_step(draft, &object.gvk, &terms))
    }

    /// Between two waves: those of the lower one are ready, have failed, or were waited for long enough.
    fn waves(&self, built: &mut Built) -> Result<(), SpecError> {
        for wave in &self.order.waves {
            let mut after = Vec::new();
            let mut texts = Vec::new();
            for position in &wave.earlier {
                let one = &self.objects[*position];
                let act = &one.apply.id;
                texts.push(json!([act.as_str(), one.object().body]));
                if !one.counts {
                    after.push(After::settled(act.clone()));
                    continue;
                }
                let id = StepId::new(format!("{act}:wave"));
                let mut step = self.ready(*position, &id)?;
                step.after = vec![After::settled(act.clone())];
                step.timeout = None;
                step.patience = Some(WAVE_PATIENCE);
                after.push(After::success(id));
                built.steps.push(step);
            }
            let id = wave_id(wave.number);
            let manager = self.frame.owner.manager(id.as_str());
            let body = ActionBody::Wait(Duration::ZERO);
            let action = PlannedAction::new(self.via.clone(), body, &self.frame.owner.namespace, manager);
            let text = definition(&json!(texts), &Value::Null);
            let mut step = Step::new(id, "spec.source", text, StepKind::Act(Box::new(action)));
            step.after = after;
            built.steps.push(step);
        }
        Ok(())
    }

    /// An object outside of the Sync that one of its objects depends on.
    fn outside(&self, reference: &DependsOnReference) -> Result<Step, SpecError> {
        let DependsOnReference { kind, namespace, name } = reference;
        let place =
            namespace.as_ref().map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"));
        let gvk = Gvk::new(&kind.group, "", &kind.kind);
        let word = KindWord { group: Some(kind.group.clone()), ..KindWord::new(&kind.kind) };
        let spec = RequirementSpec {
            about: RequiredThing::Objects {
                word,
                namespace: namespace.clone(),
                which: RequiredObjects::Name(name.clone()),
            },
            ..RequirementSpec::on_object(
                StepId::new(format!("depends-on:{kind}/{place}")),
                "spec.source",
                self.via.clone(),
                &gvk,
                namespace.as_deref(),
                name,
            )
        };
        let mut draft = RequirementDraft::new(self.frame, spec)?;
        let label = shown(draft.target());
        draft.is_called(label);
        Ok(draft.finish(Vec::new(), None))
    }

    /// What others may depend on by name.
    fn exports(&self, object: &Sync, built: &mut Built) -> Result<(), SpecError> {
        let entries = &object.spec.exports;
        bounded(entries.len(), limits::SYNC_EXPORTS, "spec.exports", "exports")?;
        for (index, entry) in entries.iter().enumerate() {
            let field = format!("spec.exports[{index}]");
            let found =
                self.objects.iter().find(|one| exports(&entry.object, &self.frame.owner.namespace, one));
            let mut outline = ExportOutline {
                name: entry.name.clone(),
                object: found.map_or_else(|| target(&entry.object), |one| reference(one.object())),
                step: None,
                act: None,
            };
            if let Some(one) = found {
                let id = StepId::new(format!("export:{}", entry.name));
                let mut draft = RequirementDraft::new(self.frame, one.apply.ready(id.clone(), one.object()))?;
                if let Some(test) = &entry.ready_when {
                    let field = format!("{field}.readyWhen");
                    let clauses = readiness_profile::clauses(test.cel.as_deref(), &test.conditions, &field)?;
                    readiness_profile::pay(&self.frame.kinds, &clauses, &field)?;
                    draft.is_taught(std::sync::Arc::new(linchpin_engine::plan::Profile {
                        ready_when: clauses,
                        ..linchpin_engine::plan::Profile::default()
                    }));
                }
                draft.look_for(&Wanted::Ready);
                let terms = ReadyTerms { timeout: None, latch: false, gate_by_existence: false };
                let mut step = one.apply.ready_step(draft, &one.object().gvk, &terms);
                step.optional = true;
                outline.act = Some(one.apply.id.clone());
                outline.step = Some(id);
                built.steps.push(step);
            }
            built.outline.exports.push(outline);
        }
        Ok(())
    }
}

fn wave_id(number: i64) -> StepId {
    StepId::new(format!("wave:{number}"))
}

fn reference(object: &Object) -> ResourceRef {
    ResourceRef {
        api_version: object.gvk.api_version(),
        kind: object.gvk.kind.clone(),
        name: object.name.clone(),
        namespace: object.namespace.clone(),
    }
}

fn target(target: &Target) -> ResourceRef {
    ResourceRef {
        api_version: target.api_version.clone().unwrap_or_default(),
        kind: target.kind.clone(),
        name: target.name.clone(),
        namespace: target.namespace.clone(),
    }
}
