//! From an AppBundle to a plan.

use std::{collections::BTreeMap, ops::Range};

use linchpin_api::{AppBundle, AppBundleSpec, Dependency, Ours, app_bundle::status::ResourceRef};
use linchpin_engine::{
    contract::StepId,
    plan::{After, Notes, Roots, SpecError, Step},
};
use linchpin_words::{Gvk, limits};

use super::{
    component, history,
    order::{self, ComponentReading},
    outline::{BundleOutline, ComponentOutline, GroupOutline, PackageOutline},
};
use crate::{
    apply::Object,
    assemble::{self, Frame, Keys},
    dependency,
    door::{self, CompileInput, Compiled},
    edges,
    errors::{at, bounded},
    names::{self, NamedStep},
    requirement::RequirementDraft,
};

/// What a bundle made itself is read like what it waits for, by a name of its own.
const ROOTS: Roots = Roots(&["Dependencies", "Components"]);

pub(super) fn compile(object: &AppBundle, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
    let (spec, looked_at) = history::chosen(object, compile_input)?;
    let frame = Frame::new(object, &spec.common, compile_input, door::removal(object.deletion_policy()))?;
    let read = Parts::read(&frame, &spec).and_then(|parts| {
        let outline = parts.outline(&spec);
        Ok((parts.steps(&frame, &spec)?, outline))
    });
    match read {
        Ok(((steps, dependencies, actions), outline)) => {
            let mut compiled = frame.plan(steps, &dependencies, &actions, true)?;
            compiled.plan.notes = Notes::new(outline);
            compiled.plan.roots = ROOTS;
            compiled.wants.extend(looked_at);
            Ok(compiled)
        }
        // What was looked at may change, and with it the answer.
        Err(error) => {
            let (mut asks, _) = frame.kinds.into_parts();
            asks.extend(looked_at);
            Err(error.asking(asks))
        }
    }
}

/// Steps, and the names that people may call requirements and components by.
type Steps = (Vec<Step>, Vec<NamedStep>, Vec<NamedStep>);

/// Everything that is waited for, and the components, read.
struct Parts {
    /// All requirements: those of the bundle, of groups, of components, and that each object is ready.
    drafts: Vec<RequirementDraft>,
    names: Vec<NamedStep>,
    bundle: Range<usize>,
    groups: Vec<Range<usize>>,
    components: Vec<component::ComponentDraft>,
}

impl Parts {
    fn read(frame: &Frame<'_>, spec: &AppBundleSpec) -> Result<Self, SpecError> {
        bounded(spec.groups.len(), limits::GROUPS, "spec.groups", "groups")?;
        let mut parts = Self {
            drafts: Vec::new(),
            names: Vec::new(),
            bundle: 0..0,
            groups: Vec::new(),
            components: Vec::new(),
        };
        let mut unready = None;
        parts.bundle = parts.requires(frame, &spec.requires, None, "spec.requires", None, None)?;
        for (index, group) in spec.groups.iter().enumerate() {
            let field = format!("spec.groups[{index}]");
            unique(spec.groups.iter().map(|group| &group.name), index, &field)?;
            bounded(
                group.components.len(),
                limits::COMPONENTS,
                &format!("{field}.components"),
                "components",
            )?;
            let of = Some(group.name.as_str());
            let range = parts.requires(frame, &group.requires, of, &format!("{field}.requires"), of, None)?;
            parts.groups.push(range);
            for (inner, entry) in group.components.iter().enumerate() {
                let field = format!("{field}.components[{inner}]");
                unique(group.components.iter().map(|component| &component.name), inner, &field)?;
                let about =
                    |error: SpecError| error.about(&format!("group {} component {}", group.name, entry.name));
                let path = names::component(&group.name, &entry.name);
                let whom = component::on_behalf_of(&entry.name);
                let list = format!("{field}.requires");
                let own = parts
                    .requires(frame, &entry.requires, Some(&path), &list, of, Some(&whom))
                    .map_err(about)?;
                let mut draft = match component::ComponentDraft::read(frame, spec, (index, inner), &field)
                    .map_err(about)
                {
                    // What the others must look at is asked for in the same breath.
                    Err(error) if error.unready => {
                        unready = Some(error);
                        continue;
                    }
                    read => read?,
                };
                if let Some((prior, named)) = draft.prior(frame).map_err(about)? {
                    parts.drafts.push(prior);
                    parts.names.push(named);
                }
                let own = own.start..parts.drafts.len();
                let start = parts.drafts.len();
                for (draft, named) in draft.requirements(frame).map_err(about)? {
                    parts.drafts.push(draft);
                    parts.names.push(named);
                }
                draft.own = own;
                draft.ready = start..parts.drafts.len();
                parts.components.push(draft);
            }
        }
        if let Some(error) = unready {
            return Err(error);
        }
        let count = |component: &component::ComponentDraft| {
            component.apply.objects.len() + component.contained().len()
        };
        let objects = parts.components.iter().map(count).sum();
        bounded(objects, limits::BUNDLE_OBJECTS, "spec.groups", "objects")?;
        parts.apart()?;
        parts.share(spec)?;
        Ok(parts)
    }

    /// Reads a list of requirements of the bundle, a group or a component.
    fn requires(
        &mut self,
        frame: &Frame<'_>,
        entries: &[Dependency],
        of: Option<&str>,
        field: &str,
        part: Option<&str>,
        on_behalf_of: Option<&str>,
    ) -> Result<Range<usize>, SpecError> {
        bounded(entries.len(), limits::DEPENDENCIES, field, "entries")?;
        let start = self.drafts.len();
        for (index, (entry, named)) in entries.iter().zip(names::required(of, entries)).enumerate() {
            let field = format!("{field}[{index}]");
            self.drafts.push(dependency::read(frame, entry, &named, &field, part, on_behalf_of)?);
            self.names.push(named);
        }
        Ok(start..self.drafts.len())
    }

    /// Refuses two components that name one object: they would fight for it.
    fn apart(&self) -> Result<(), SpecError> {
        let mut seen: BTreeMap<String, (&component::ComponentDraft, &Object)> = BTreeMap::new();
        for component in &self.components {
            for object in &component.apply.objects {
                let place =
                    format!("{} {}.{}", component.apply.via.cluster, object.label(), object.gvk.group);
                if let Some((first, earlier)) = seen.insert(place, (component, object)) {
                    let problem = format!(
                        "{} is the object of component {} too ({}); an object belongs to one component",
                        object.label(),
                        first.path,
                        earlier.field
                    );
                    return Err(at(&object.field, problem).about(&format!("component {}", component.path)));
                }
            }
        }
        Ok(())
    }

    /// What the status is drawn from.
    fn outline(&self, spec: &AppBundleSpec) -> BundleOutline {
        let mut outline = BundleOutline::default();
        for group in &spec.groups {
            outline.groups.push(GroupOutline { name: group.name.clone(), components: Vec::new() });
        }
        for component in &self.components {
            let (group, inner) = component.place;
            let drafts = &self.drafts[component.ready.clone()];
            let mut ready: Vec<(StepId, ResourceRef)> = component
                .named_objects()
                .zip(drafts)
                .map(|(named, draft)| (draft.id.clone(), reference(draft.object().unwrap_or(named))))
                .collect();
            ready.sort_by(|one, other| one.0.cmp(&other.0));
            outline.groups[group].components.push(ComponentOutline {
                name: spec.groups[group].components[inner].name.clone(),
                act: component.apply.id.clone(),
                source: names::source(&component.path),
                ready,
                package: component.package.as_ref().map(|package| PackageOutline {
                    status: package.status.clone(),
                    objects: component.contained().len(),
                }),
            });
            if let Some(package) = &component.package {
                outline.add(package.repository.clone());
            }
        }
        outline
    }

    /// Finds out who reads what of whom.
    fn share(&mut self, spec: &AppBundleSpec) -> Result<(), SpecError> {
        let keys = Keys::of(ROOTS, &self.drafts);
        for component in &mut self.components {
            let (group, inner) = component.place;
            let group = &spec.groups[group];
            component.apply.note(&keys).map_err(|error| {
                error.about(&format!("group {} component {}", group.name, group.components[inner].name))
            })?;
        }
        let readings: Vec<_> = self.components.iter().map(|component| &component.apply.readings).collect();
        assemble::share_readings(&mut self.drafts, &readings);
        Ok(())
    }

    /// Who reads which other component, by position.
    fn readings(&self) -> Vec<ComponentReading> {
        let mut readings = Vec::new();
        for (reader, component) in self.components.iter().enumerate() {
            for id in component.apply.readings.dependencies.iter().flat_map(BTreeMap::keys) {
                let read = self
                    .components
                    .iter()
                    .position(|other| self.drafts[other.ready.clone()].iter().any(|draft| draft.id == *id));
                readings.extend(read.filter(|read| *read != reader).map(|read| (reader, read)));
            }
        }
        readings
    }

    /// The steps in order.
    fn steps(self, frame: &Frame<'_>, spec: &AppBundleSpec) -> Result<Steps, SpecError> {
        let order = order::order(&spec.groups, spec.strict, &self.readings())?;
        let ids: Vec<StepId> = self.drafts.iter().map(|draft| draft.id.clone()).collect();
        let gates = |range: &Range<usize>| edges::gate(&ids[range.clone()]);
        let passed = |positions: &[usize]| -> Vec<After> {
            positions.iter().flat_map(|position| gates(&self.components[*position].ready)).collect()
        };
        let mut drafts: Vec<Option<RequirementDraft>> = self.drafts.into_iter().map(Some).collect();
        let mut take = |range: &Range<usize>| -> Vec<RequirementDraft> {
            drafts[range.clone()].iter_mut().filter_map(Option::take).collect()
        };
        let mut steps: Vec<Step> =
            take(&self.bundle).into_iter().map(|draft| draft.finish(Vec::new(), None)).collect();
        let whole = gates(&self.bundle);
        for (index, range) in self.groups.iter().enumerate() {
            let before = after(&passed(order.before_group(index)), &whole);
            steps.extend(take(range).into_iter().map(|draft| draft.finish(before.clone(), None)));
        }
        let mut actions = Vec::new();
        for (position, component) in self.components.iter().enumerate() {
            let before = [passed(order.before(position)), gates(&self.groups[component.place.0])].concat();
            let before = after(&before, &whole);
            steps.extend(take(&component.own).into_iter().map(|draft| draft.finish(before.clone(), None)));
            let before = [before, gates(&component.own)].concat();
            actions.push(component.named());
            steps.extend(component.steps(frame, before, take(&component.ready)));
        }
        Ok((steps, self.names, actions))
    }
}

/// These edges, or those to what the whole bundle requires where there are none.
fn after(edges: &[After], whole: &[After]) -> Vec<After> {
    if edges.is_empty() { whole.to_vec() } else { edges.to_vec() }
}

fn reference((gvk, namespace, name): (&Gvk, Option<&String>, &String)) -> ResourceRef {
    ResourceRef {
        api_version: gvk.api_version(),
        kind: gvk.kind.clone(),
        name: name.clone(),
        namespace: namespace.cloned(),
    }
}

/// Refuses a name that was given before.
fn unique<'n>(names: impl Iterator<Item = &'n String>, index: usize, field: &str) -> Result<(), SpecError> {
    let names: Vec<&String> = names.collect();
    if names[..index].contains(&names[index]) {
        return Err(at(
            format!("{field}.name"),
            format!("{:?} is given twice; names must differ", names[index]),
        ));
    }
    Ok(())
}
