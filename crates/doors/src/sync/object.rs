//! One object of a Sync: what it is, and what its annotations say of how it is applied.

use linchpin_api::{Sync, action::Adopt, app_bundle::component::Immutable as ImmutableWord};
use linchpin_engine::{
    contract::{StepId, Via},
    plan::{Immutable, SpecError},
};
use linchpin_words::{GroupKind, Reason, keys, limits, reference::built_in_kind};
use serde_json::Value;

use super::{
    depends_on::{self, DependsOnReference},
    source::{SourceReading, refused},
};
use crate::{
    apply::{ApplyDraft, ApplyPolicy, ApplySpec, Marks, Object},
    assemble::Frame,
};

/// An object on its way to become an act and a requirement.
#[derive(Debug)]
pub(super) struct SyncObject {
    pub apply: ApplyDraft,
    /// Whether it counts for Ready and as a gate.
    pub counts: bool,
    pub depends_on: Vec<DependsOnReference>,
    pub wave: Option<i64>,
}

impl SyncObject {
    /// What it is.
    pub(super) fn object(&self) -> &Object {
        &self.apply.objects[0]
    }

    /// Whether it is called so.
    pub(super) fn is(&self, kind: &GroupKind, namespace: Option<&str>, name: &str) -> bool {
        let object = self.object();
        object.gvk.group_kind() == *kind
            && object.name == name
            && (object.namespace.is_none() || object.namespace.as_deref() == namespace)
    }
}

/// Reads all objects of a source.
pub(super) fn read_all(
    frame: &Frame<'_>,
    object: &Sync,
    via: &Via,
    reading: &SourceReading,
) -> Result<Vec<SyncObject>, SpecError> {
    let marks = Marks { labels: vec![(keys::SYNC, frame.owner.name.clone())], annotations: Vec::new() };
    let mut found: Vec<SyncObject> = Vec::with_capacity(reading.bodies.len());
    let defined = defined_scopes(&reading.bodies);
    for (place, body) in &reading.bodies {
        let invalid = |error: SpecError| {
            let problem = format!("{place}: {}", error.message);
            SpecError { reason: Some(Reason::ManifestInvalid), message: problem, ..error }
        };
        let annotations = Annotations::read(body).map_err(|problem| {
            refused(Reason::ManifestInvalid, "spec.source", format!("{place}: {problem}"))
        })?;
        let mut apply = ApplyDraft::read(
            frame,
            ApplySpec {
                id: StepId::new(place),
                field: "spec.source",
                part: None,
                via: via.clone(),
                cluster: None,
                bodies: vec![(place.clone(), body.clone())],
                marks: &marks,
                templating: false,
                raw: true,
                policy: annotations.policy(object),
            },
        )
        .map_err(invalid)?;
        place_object(&mut apply.objects[0], &defined);
        apply.id = step_id(&apply.objects[0]);
        if let Some(version) = &reading.secret {
            apply.stems_from_secret(version.clone());
        }
        if let Some(first) = found.iter().find(|other| other.apply.id == apply.id) {
            let label = apply.objects[0].label();
            let problem = format!("{label} is given twice: in {} and in {place}", first.object().field);
            return Err(refused(Reason::ManifestInvalid, "spec.source", problem));
        }
        found.push(SyncObject {
            apply,
            counts: !annotations.ignored,
            depends_on: annotations.depends_on,
            wave: annotations.wave,
        });
    }
    Ok(found)
}

/// Kinds without namespaces that the source itself defines.
fn defined_scopes(bodies: &[(String, Value)]) -> Vec<GroupKind> {
    let text =
        |body: &Value, path: &str| body.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let cluster_scoped = bodies.iter().filter(|(_, body)| {
        text(body, "/kind") == "CustomResourceDefinition" && text(body, "/spec/scope") == "Cluster"
    });
    cluster_scoped
        .map(|(_, body)| GroupKind::new(text(body, "/spec/group"), text(body, "/spec/names/kind")))
        .collect()
}

/// Takes the namespace off an object of a kind that has none but is not served yet.
fn place_object(object: &mut Object, defined: &[GroupKind]) {
    if object.kind.is_err() && defined.contains(&object.gvk.group_kind()) {
        object.namespace = None;
    }
}

/// What the act of an object is called: `Deployment.apps/shop/web`.
fn step_id(object: &Object) -> StepId {
    let kind = object.gvk.group_kind();
    StepId::new(match &object.namespace {
        Some(namespace) => format!("{kind}/{namespace}/{}", object.name),
        None => format!("{kind}/{}", object.name),
    })
}

/// As URLs name a kind; a guess where nobody has said it.
pub(super) fn plural(object: &Object) -> String {
    if let Ok(kind) = &object.kind {
        return kind.plural.clone();
    }
    let known = built_in_kind(&object.gvk.group, &object.gvk.kind).map(|known| known.plural.to_owned());
    known.unwrap_or_else(|| format!("{}s", object.gvk.kind.to_ascii_lowercase()))
}

/// What an object says of how it is applied.
#[derive(Debug, Default)]
struct Annotations {
    prune: Option<bool>,
    adopt: Option<Adopt>,
    immutable: Option<Immutable>,
    run_once: Option<bool>,
    ignore_fields: Vec<String>,
    ignored: bool,
    depends_on: Vec<DependsOnReference>,
    wave: Option<i64>,
}

impl Annotations {
    fn read(body: &Value) -> Result<Self, String> {
        let text = |key: &str| {
            let annotations = body.pointer("/metadata/annotations")?;
            annotations.get(key).and_then(Value::as_str)
        };
        let flag = |key: &str| match text(key) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(format!("annotation {key} is \"true\" or \"false\"")),
        };
        let mut found =
            Self { prune: flag(keys::PRUNE)?, run_once: flag(keys::RUN_ONCE)?, ..Self::default() };
        found.adopt = match text(keys::ADOPT) {
            None => None,
            Some("Never") => Some(Adopt::Never),
            Some("Adopt") => Some(Adopt::Adopt),
            Some(_) => return Err(format!("annotation {} is Never or Adopt", keys::ADOPT)),
        };
        found.immutable = match text(keys::IMMUTABLE) {
            None => None,
            Some("Fail") => Some(Immutable::Fail),
            Some("Recreate") => Some(Immutable::Recreate),
            Some("Ignore") => Some(Immutable::Ignore),
            Some(_) => return Err(format!("annotation {} is Fail, Recreate or Ignore", keys::IMMUTABLE)),
        };
        found.ignored = match text(keys::READY) {
            None => false,
            Some("ignore") => true,
            Some(_) => return Err(format!("annotation {} can only be ignore", keys::READY)),
        };
        if let Some(fields) = text(keys::IGNORE_FIELDS) {
            for field in fields.split(',').map(str::trim).filter(|field| !field.is_empty()) {
                if !field.starts_with('/') || field.len() > limits::JSON_PATH {
                    let key = keys::IGNORE_FIELDS;
                    return Err(format!(
                        "annotation {key} is a list of JSON pointers such as /spec/replicas"
                    ));
                }
                found.ignore_fields.push(field.to_owned());
            }
            if found.ignore_fields.len() > limits::IGNORE_FIELDS {
                let (key, most) = (keys::IGNORE_FIELDS, limits::IGNORE_FIELDS);
                return Err(format!("annotation {key} may name {most} fields"));
            }
        }
        if let Some(named) = text(keys::DEPENDS_ON) {
            found.depends_on = depends_on::parse(named)
                .map_err(|problem| format!("annotation {}: {problem}", keys::DEPENDS_ON))?;
        }
        if let Some(wave) = text(keys::SYNC_WAVE) {
            let number = wave.trim().parse::<i32>();
            let number = number.map_err(|_| format!("annotation {} is a whole number", keys::SYNC_WAVE))?;
            found.wave = Some(i64::from(number));
        }
        Ok(found)
    }

    fn policy(&self, object: &Sync) -> ApplyPolicy {
        let spec = &object.spec;
        ApplyPolicy {
            adopt: self.adopt.or(spec.adopt),
            kept: false,
            // That a whole Sync is pruned does not include what others live in: only the object itself says that.
            prune: self.prune.or(spec.prune.filter(|prune| !prune)),
            immutable: self.immutable.unwrap_or(match spec.immutable.unwrap_or_default() {
                ImmutableWord::Fail => Immutable::Fail,
                ImmutableWord::Recreate => Immutable::Recreate,
                ImmutableWord::Ignore => Immutable::Ignore,
            }),
            ignore_fields: self.ignore_fields.clone(),
            run_once: self.run_once,
        }
    }
}
