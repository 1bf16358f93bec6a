//! Revisions of a bundle: what changed, when, and how that went; and going back to one.
//!
//! A revision is taken whenever the spec differs from the newest one, but for `suspend` and `rollback`, which are no
//! part of what is deployed. The last ten are kept. They are the operator's own ([`SideRecords::history`]): written as itself,
//! beside the plan, so that nothing waits for them, and when there is nothing better to do. While `spec.rollback` is
//! set the plan is made from that revision and no new one is taken.
//!
//! A user who may write revisions may write anything into them. So a revision counts only if this very object is its
//! owner; of its snapshot only what is to be applied is taken, never as whom; and one that was changed since it was
//! taken is refused. The data of Secrets that are written into a bundle is not copied: a snapshot has a digest in its
//! place ([`secrets`]).
//!
//! [`SideRecords::history`]: crate::SideRecords::history

mod secrets;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube_core::Resource as _;
use linchpin_api::{
    AppBundle, AppBundleSpec, BundleRevision, BundleRevisionSpec, Dependency, common::Cluster,
};
use linchpin_engine::{
    contract::{
        Actor, ClusterRef, EffectTarget, Existing, Force, Notice, PatchKind, Projection, Propagation,
        ReadSet, Seen, StepId, Verb, Via, Want, World,
    },
    plan::{SpecError, definition},
    step::Phase,
};
use linchpin_words::{Gvk, KindWord, Reason, keys, limits, text};
use serde_json::{Map, Value, json};

use crate::{
    door::{CompileInput, HistoryInput, HistoryRecord, HistoryStep, SideWrite, StatusInput},
    errors::{at, not_yet},
    names,
    owner::Owner,
    registry::KindNames,
};

/// The fields that say what is deployed. As whom it is, and where, is never gone back to.
const DEPLOYED_FIELDS: [&str; 6] = ["groups", "requires", "strict", "templating", "values", "valuesFrom"];
const DEPLOYING: &str = "Deploying";
const DEPLOYED: &str = "Deployed";
const FAILED: &str = "Failed";
const SUPERSEDED: &str = "Superseded";

fn kind() -> Gvk {
    Gvk::new("app.example.com", "v1alpha1", "BundleRevision")
}

/// Our own kind is read and written as ourselves.
fn via() -> Via {
    Via { cluster: ClusterRef::Here, actor: Actor::Operator }
}

/// What revisions are called.
pub(super) fn kind_names() -> KindNames {
    KindNames {
        gvk: kind(),
        plural: BundleRevision::plural(&()).into_owned(),
        short: Vec::new(),
        namespaced: true,
    }
}

/// The question what a revision recorded of each part.
fn parts_want(owner: &Owner, revision: &KnownRevision<'_>) -> Want {
    let reads = ReadSet::dotted(["metadata.ownerReferences", "spec.parts"]);
    Want::object(via(), kind(), Some(owner.namespace.clone()), &revision.kept.name, reads)
}

/// The spec that is deployed: the one that is written, or that of an earlier revision; and what was looked at for it.
pub(super) fn chosen<'o>(
    object: &'o AppBundle,
    compile_input: &CompileInput<'_>,
) -> Result<(Cow<'o, AppBundleSpec>, BTreeSet<Want>), SpecError> {
    let field = "spec.rollback";
    let Some(number) = object.spec.rollback else {
        return Ok((Cow::Borrowed(&object.spec), BTreeSet::new()));
    };
    let owner = Owner::of(object);
    let reads = ReadSet::dotted(["metadata.ownerReferences", "spec"]);
    let want = Want::object(via(), kind(), Some(owner.namespace.clone()), name(&owner.name, number), reads);
    let asks = BTreeSet::from([want.clone()]);
    let found = match compile_input.facts.get(&want) {
        None => return Err(not_yet(field).asking(asks)),
        Some(Seen::Unknown(why)) if why.is_passing() => return Err(not_yet(field).asking(asks)),
        Some(Seen::Objects(observed)) => observed.items.first(),
        Some(_) => None,
    };
    let found = found.filter(|item| is_owned(item, &owner));
    let refused = |problem: String| at(field, problem).asking(asks.clone());
    let Some(revision) = found.and_then(|item| item.content.get("spec")) else {
        return Err(refused(format!(
            "there is no revision {number} of this bundle; see its BundleRevisions"
        )));
    };
    let snapshot = revision.get("snapshot").cloned().unwrap_or_default();
    if revision.get("digest").and_then(Value::as_str) != Some(&definition(&snapshot, &Value::Null)) {
        let problem =
            format!("revision {number} is not what was written down: somebody has changed it since");
        return Err(refused(problem));
    }
    let spec: Result<AppBundleSpec, _> = serde_json::from_value(snapshot);
    let mut then = spec.map_err(|_| refused(format!("revision {number} cannot be read")))?;
    if let Err(component) = secrets::put_back(&mut then, &object.spec) {
        return Err(refused(format!(
            "component {component} of revision {number} has a Secret whose data was another one, and revisions keep no \
             data of Secrets; write it into spec.groups instead, and leave out spec.rollback"
        )));
    }
    Ok((Cow::Owned(going_back(&object.spec, then)), asks))
}

/// The spec with what an earlier revision applied: as whom, where and how is what it is now.
fn going_back(now: &AppBundleSpec, then: AppBundleSpec) -> AppBundleSpec {
    let mut spec = AppBundleSpec {
        rollback: None,
        groups: then.groups,
        requires: then.requires,
        strict: then.strict,
        templating: then.templating,
        ..now.clone()
    };
    spec.common.values = then.common.values;
    spec.common.values_from = then.common.values_from;
    let known: Vec<&Cluster> = clusters(now).collect();
    let impersonate = |cluster: &mut Cluster| {
        let same = known.iter().find(|known| {
            known.control_plane_ref == cluster.control_plane_ref
                && known.kubeconfig_secret_ref == cluster.kubeconfig_secret_ref
        });
        cluster.impersonate = same.and_then(|known| known.impersonate.clone());
    };
    let requires = |entries: &mut Vec<Dependency>| {
        entries.iter_mut().filter_map(|entry| entry.object.cluster.as_mut()).for_each(impersonate);
    };
    requires(&mut spec.requires);
    for group in &mut spec.groups {
        requires(&mut group.requires);
        for component in &mut group.components {
            requires(&mut component.requires);
            component.cluster.iter_mut().for_each(impersonate);
        }
    }
    spec
}

/// All clusters that a spec names.
fn clusters(spec: &AppBundleSpec) -> impl Iterator<Item = &Cluster> {
    let components = spec.groups.iter().flat_map(|group| &group.components);
    let requires = spec.requires.iter().chain(spec.groups.iter().flat_map(|group| &group.requires));
    let requires = requires.chain(components.clone().flat_map(|component| &component.requires));
    let own = spec.common.cluster.iter().chain(components.filter_map(|component| component.cluster.as_ref()));
    own.chain(requires.filter_map(|entry| entry.object.cluster.as_ref()))
}

/// Whether a revision is one of this very object.
fn is_owned(item: &Projection, owner: &Owner) -> bool {
    let owners = item.content.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|reference| {
        let text = |key: &str| reference.get(key).and_then(Value::as_str);
        text("uid") == Some(&owner.uid)
            && text("kind") == Some(&owner.kind)
            && text("apiVersion") == Some(&owner.api_version)
            && reference.get("controller").and_then(Value::as_bool) == Some(true)
    })
}

/// How the history of a bundle goes on.
pub(super) fn next(
    object: &AppBundle,
    input: &HistoryInput,
    kept: &[HistoryRecord],
    world: &World,
) -> HistoryStep {
    let mut step = HistoryStep::default();
    if object.spec.rollback.is_some() {
        return step;
    }
    let owner = Owner::of(object);
    let mut known: Vec<KnownRevision<'_>> =
        kept.iter().filter_map(|kept| KnownRevision::of(kept, &owner)).collect();
    known.sort_by_key(|revision| revision.number);
    let settled = |newest: &KnownRevision<'_>| {
        newest.is_of(&owner) && [DEPLOYED, result(input)].contains(&newest.result)
    };
    if known.len() <= limits::REVISIONS && known.last().is_some_and(settled) {
        // By far the most frequent case, known without a look at the spec, which may be large.
        return step;
    }
    let snapshot = snapshot(&object.spec);
    let digest = definition(&Value::Object(snapshot.clone()), &Value::Null);
    let mut count = known.len();
    match known.last() {
        Some(newest) if newest.digest == digest => {
            let result = result(input);
            if newest.result != DEPLOYED && newest.result != result {
                step.writes.push(newest.ends(&owner, result, input));
            }
        }
        newest => {
            let before = match newest.map(|newest| parts_of(newest, &owner, world)) {
                Some(Err(want)) => {
                    step.wants.insert(want);
                    return step;
                }
                Some(Ok(parts)) => Some(parts),
                None => None,
            };
            if let Some(open) = newest.filter(|newest| newest.result == DEPLOYING) {
                step.writes.push(open.ends(&owner, SUPERSEDED, input));
            }
            let number = newest.map_or(1, |newest| newest.number.saturating_add(1));
            step.writes.push(taken(&owner, number, before.as_ref(), snapshot, digest, input));
            count += 1;
        }
    }
    let old = known.iter().take(count.saturating_sub(limits::REVISIONS));
    step.writes.extend(old.map(|old| old.goes(&owner)));
    step
}

/// What a revision recorded of each part; or the question for it, where it was not looked at yet.
fn parts_of(
    revision: &KnownRevision<'_>,
    owner: &Owner,
    world: &World,
) -> Result<BTreeMap<String, String>, Want> {
    let want = parts_want(owner, revision);
    match world.get(&want) {
        None => Err(want),
        Some(Seen::Unknown(why)) if why.is_passing() => Err(want),
        Some(Seen::Objects(observed)) => {
            let found = observed.items.first().filter(|item| is_owned(item, owner));
            let parts = found.and_then(|item| item.content.pointer("/spec/parts").cloned());
            Ok(parts.and_then(|parts| serde_json::from_value(parts).ok()).unwrap_or_default())
        }
        Some(_) => Ok(BTreeMap::new()),
    }
}

/// The result of the current revision.
fn result(history_input: &HistoryInput) -> &'static str {
    match history_input.phase {
        Phase::Completed => DEPLOYED,
        Phase::Failed => FAILED,
        _ => DEPLOYING,
    }
}

/// A revision that is there, as its metadata says. A user who may write revisions may write that too: it costs them the
/// history of their own bundle, and nothing is ever done by it but keeping revisions.
struct KnownRevision<'a> {
    kept: &'a HistoryRecord,
    number: i64,
    generation: i64,
    result: &'a str,
    digest: &'a str,
}

impl<'a> KnownRevision<'a> {
    fn of(kept: &'a HistoryRecord, owner: &Owner) -> Option<Self> {
        let text = |key: &str| kept.annotations.get(key).map(String::as_str);
        // One that was written before revisions said so in their metadata is known by its name.
        let number = kept.name.strip_prefix(&owner.name)?.strip_prefix('-')?;
        let number = text(keys::HISTORY_NUMBER).unwrap_or(number);
        Some(Self {
            kept,
            // Nobody gets that far by changing a spec: such a number was not written by us.
            number: number.parse().ok().filter(|number| (1..i64::MAX).contains(number))?,
            generation: text(keys::HISTORY_GENERATION).and_then(|text| text.parse().ok()).unwrap_or_default(),
            result: text(keys::HISTORY_RESULT).unwrap_or_default(),
            digest: text(keys::HISTORY_DIGEST).unwrap_or_default(),
        })
    }

    /// Whether it was taken of the object as it is now.
    fn is_of(&self, owner: &Owner) -> bool {
        self.generation == owner.generation
    }

    fn target(&self, owner: &Owner) -> EffectTarget {
        EffectTarget {
            kind: KindWord::from_manifest(Some(&kind().api_version()), &kind().kind),
            namespace: Some(owner.namespace.clone()),
            name: self.kept.name.clone(),
        }
    }

    /// Its result is written down.
    fn ends(&self, owner: &Owner, result: &str, history_input: &HistoryInput) -> SideWrite {
        let message = (result == FAILED).then(|| text::line(&history_input.message));
        let verb = Verb::Patch {
            target: self.target(owner),
            kind: PatchKind::Merge,
            body: Arc::new(json!({"metadata": {"annotations": {keys::HISTORY_RESULT: result}},
                "spec": {"result": result, "message": message}})),
            manager: manager(owner),
            once: false,
        };
        SideWrite { name: StepId::new(&self.kept.name), via: via(), verb }
    }

    /// It is too old to be kept.
    fn goes(&self, owner: &Owner) -> SideWrite {
        let verb = Verb::Delete {
            target: self.target(owner),
            uid: Some(self.kept.uid.clone()),
            creator: None,
            propagation: Propagation::Background,
        };
        SideWrite { name: StepId::new(&self.kept.name), via: via(), verb }
    }
}

/// A new revision.
fn taken(
    owner: &Owner,
    number: i64,
    before: Option<&BTreeMap<String, String>>,
    snapshot: Map<String, Value>,
    digest: String,
    history_input: &HistoryInput,
) -> SideWrite {
    let parts = parts(&snapshot);
    let annotations = json!({keys::HISTORY_NUMBER: number.to_string(), keys::HISTORY_DIGEST: digest,
        keys::HISTORY_GENERATION: owner.generation.to_string(), keys::HISTORY_RESULT: result(history_input)});
    let spec = BundleRevisionSpec {
        bundle: owner.name.clone(),
        revision: number,
        generation: owner.generation,
        changed_at: history_input.begun,
        changes: before.map_or_else(|| vec!["created".to_owned()], |before| changes(before, &parts)),
        result: result(history_input).to_owned(),
        message: None,
        digest,
        parts,
        snapshot,
    };
    let mut body = json!(BundleRevision::new(&name(&owner.name, number), spec));
    body["metadata"]["namespace"] = json!(owner.namespace);
    body["metadata"]["labels"] = json!({keys::APP_BUNDLE: owner.name});
    body["metadata"]["annotations"] = annotations;
    body["metadata"]["ownerReferences"] = json!([{"apiVersion": owner.api_version, "kind": owner.kind,
        "name": owner.name, "uid": owner.uid, "controller": true, "blockOwnerDeletion": false}]);
    let verb = Verb::Apply {
        body: Arc::new(body),
        default_namespace: owner.namespace.clone(),
        manager: manager(owner),
        force: Force::Always,
        yields: Arc::new([]),
        existing: Existing::Adopt,
        creator: owner.uid.clone(),
        owner: None,
    };
    SideWrite { name: StepId::new(name(&owner.name, number)), via: via(), verb }
}

/// The event that an earlier revision is deployed, until the status says it.
pub(super) fn rolled_back(object: &AppBundle, status_input: &StatusInput<'_>) -> Option<SideWrite> {
    let reported = object.status.as_ref().is_some_and(super::status::says_rolled_back);
    let message = super::status::rolled_back(object).filter(|_| status_input.report.ready && !reported)?;
    let reason = Reason::RolledBack.as_str().to_owned();
    let verb = Verb::Notice(Notice { reason, message, warning: true });
    Some(SideWrite { name: StepId::new("rolled-back"), via: via(), verb })
}

fn manager(owner: &Owner) -> String {
    owner.manager("history")
}

/// What a revision is called.
fn name(bundle: &str, number: i64) -> String {
    format!("{bundle}-{number}")
}

/// What is deployed of a spec: what may be gone back to, without the data of Secrets.
fn snapshot(spec: &AppBundleSpec) -> Map<String, Value> {
    let mut spec = spec.clone();
    secrets::take_out(&mut spec);
    let mut whole = json!(spec).as_object().cloned().unwrap_or_default();
    whole.retain(|key, _| DEPLOYED_FIELDS.contains(&key.as_str()));
    whole
}

/// A fingerprint of each component, and of each other field.
fn parts(snapshot: &Map<String, Value>) -> BTreeMap<String, String> {
    let print = |value: &Value| definition(value, &Value::Null);
    let mut parts = BTreeMap::new();
    let named = |value: &Value| value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (key, value) in snapshot {
        if key != "groups" {
            parts.insert(format!("spec.{key}"), print(value));
            continue;
        }
        for group in value.as_array().into_iter().flatten() {
            let components = group.get("components").and_then(Value::as_array);
            for component in components.into_iter().flatten() {
                let wave =
                    json!([group.get("order"), group.get("dependsOn"), group.get("requires"), component]);
                parts.insert(names::component(&named(group), &named(component)), print(&wave));
            }
        }
    }
    parts
}

/// What is different, one line each.
fn changes(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let mut changes = Vec::new();
    for (part, print) in now {
        match before.get(part) {
            None => changes.push(format!("added {part}")),
            Some(old) if old != print => changes.push(format!("changed {part}")),
            Some(_) => {}
        }
    }
    changes
        .extend(before.keys().filter(|part| !now.contains_key(*part)).map(|part| format!("removed {part}")));
    if changes.len() > limits::CHANGES {
        let more = changes.len() + 1 - limits::CHANGES;
        changes.truncate(limits::CHANGES - 1);
        changes.push(format!("and {more} more"));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> AppBundleSpec {
        serde_saphyr::from_str(text).expect("a spec")
    }

    #[test]
    fn what_changed_is_told_by_component_and_field() {
        let old = spec(
            "{values: {a: 1}, groups: [{name: g, components: [{name: x, template: {a: 1}}, {name: gone}]}]}",
        );
        let new = spec(
            "{values: {a: 2}, groups: [{name: g, components: [{name: x, template: {a: 2}}, {name: new}]}]}",
        );
        let changes = changes(&parts(&snapshot(&old)), &parts(&snapshot(&new)));
        assert_eq!(changes, ["added g/new", "changed g/x", "changed spec.values", "removed g/gone"]);
    }

    #[test]
    fn suspending_and_going_back_are_no_part_of_a_revision() {
        let plain = spec("{groups: [{name: g, components: [{name: x}]}]}");
        let held = spec("{suspend: true, rollback: 2, groups: [{name: g, components: [{name: x}]}]}");
        assert_eq!(snapshot(&plain), snapshot(&held));
    }

    #[test]
    fn a_number_that_nobody_gets_to_is_not_counted_on_from() {
        let owner = Owner::of(&AppBundle::new("shop", AppBundleSpec::default()));
        let number = |written: &str| {
            let annotations = BTreeMap::from([(keys::HISTORY_NUMBER.to_owned(), written.to_owned())]);
            let kept = HistoryRecord { name: "shop-1".to_owned(), uid: "u".to_owned(), annotations };
            KnownRevision::of(&kept, &owner).map(|known| known.number)
        };
        let last = i64::MAX.to_string();
        for forged in [last.as_str(), "9223372036854775808", "0", "-1", "x", ""] {
            assert_eq!(number(forged), None, "{forged}");
        }
        assert_eq!(number("9223372036854775806"), Some(i64::MAX - 1), "one more can be counted");
    }

    #[test]
    fn going_back_changes_what_is_applied_and_never_as_whom() {
        let now = spec(
            "{serviceAccountName: mine, deletionPolicy: Retain, cluster: {kubeconfigSecretRef: {name: edge}},
              groups: [{name: g, components: [{name: x}]}]}",
        );
        let then = spec(
            "{serviceAccountName: admin, deletionPolicy: Delete, strict: true, values: {a: 1},
              cluster: {kubeconfigSecretRef: {name: other}},
              groups: [{name: old, components: [{name: x, cluster: {kubeconfigSecretRef: {name: edge}, impersonate: {user: root}}}]}]}",
        );
        let spec = going_back(&now, then);
        assert_eq!(spec.common.service_account_name.as_deref(), Some("mine"));
        assert_eq!(
            (&spec.common.cluster, spec.common.deletion_policy),
            (&now.common.cluster, now.common.deletion_policy)
        );
        assert_eq!((spec.groups[0].name.as_str(), spec.strict), ("old", true));
        assert!(spec.common.values.is_some());
        let cluster = spec.groups[0].components[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.impersonate, None, "nobody is impersonated whom the present spec does not name");
        assert!(!json!(snapshot(&now)).to_string().contains("mine"));
    }
}
