//! Something that is changed.
//!
//! [`PlannedAction::new`] is an action that does its body once and leaves no trace but what it wrote; every further field is a
//! policy that a door may set. Those that keep an object as it was written go together: `rerun: OnDrift` repairs it,
//! `tracked` remembers it in the inventory, `prune` says whether it goes with its step, `owner` lets the API server
//! clean up, `immutable` says what happens when a field cannot be changed in place.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use linchpin_lang::template::{Template, ValueTemplate};
use linchpin_words::{
    Gvk, ObjectRef,
    reference::{KindWord, built_in_kind},
};
use serde_json::Value;

use crate::contract::{
    EffectTarget, Existing, Notice, OwnerReference, PatchKind, Propagation, ReadSet, Right, StepId, Via, Want,
};

/// Something that is changed, once its turn has come.
#[derive(Clone, Debug)]
pub struct PlannedAction {
    /// Where and as whom.
    pub via: Via,
    /// What.
    pub body: ActionBody,
    /// Namespace for objects that name none.
    pub default_namespace: String,
    /// Field manager.
    pub manager: String,
    /// When a finished action runs again.
    pub rerun: Rerun,
    /// Whether what it makes is remembered, to be deleted one day.
    pub tracked: bool,
    /// Which of the objects it made are deleted when the action leaves the plan, or no longer renders them.
    pub prune: Prune,
    /// Whether [long-lived kinds](is_long_lived) that it made are deleted after everything else, whatever the order.
    pub long_lived_last: bool,
    /// What to do when a field cannot be changed in place.
    pub immutable: Immutable,
    /// The owner that what it creates gets, where it lives in the owner's namespace. Taken off again when this is none.
    pub owner: Option<Arc<OwnerReference>>,
    /// Rights it needs, as far as they are known before it is rendered. All of them are asked for before it starts, and
    /// one that is missing holds it.
    pub rights: Vec<Right>,
    /// Rights that are needed only later, to take away what it made, and those that are not worth a question each: listed
    /// by `linchpin rbac`, never asked for.
    pub later_rights: Vec<Right>,
    /// Rights that are not known before it is rendered, in words: listed by `linchpin rbac`.
    pub open_rights: Vec<String>,
    /// What it reads of which dependency; none means that it cannot be known, so everything.
    pub reads: Option<BTreeMap<StepId, ReadSet>>,
    /// Whether it reads `.Values`.
    pub reads_values: bool,
    /// Whether it reads `.Now`.
    pub reads_now: bool,
    /// Of documents that are one text: the objects that can be seen in it before it is rendered.
    pub sketched: Vec<ObjectRef>,
    /// Whether what it writes stems from a Secret, so that what a server says of it is not reported.
    pub discreet: bool,
}

/// Which of the objects that an action made are deleted when the action no longer makes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prune {
    /// None: they stay until the object itself goes.
    #[default]
    Never,
    /// All but those of [long-lived kinds](is_long_lived).
    Usual,
    /// All.
    All,
}

impl Prune {
    /// Whether it includes an object of this kind.
    pub fn includes(self, target: &EffectTarget) -> bool {
        match self {
            Self::Never => false,
            Self::Usual => !is_long_lived(target),
            Self::All => true,
        }
    }
}

/// Whether an object holds data or other objects that would be lost with it: `Namespace`,
/// `CustomResourceDefinition`, `PersistentVolumeClaim`, `PersistentVolume`.
pub fn is_long_lived(target: &EffectTarget) -> bool {
    let kinds = [
        ("", "namespace"),
        ("", "persistentvolumeclaim"),
        ("", "persistentvolume"),
        ("apiextensions.k8s.io", "customresourcedefinition"),
    ];
    let group = target.kind.group.as_deref().unwrap_or_default();
    kinds.iter().any(|(of, kind)| *of == group && target.kind.word.eq_ignore_ascii_case(kind))
}

/// What to do when the API server refuses to change a field in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Immutable {
    /// The action fails.
    #[default]
    Fail,
    /// The object is deleted, waited for to be gone, and made anew; only if we made it. Else the action fails.
    Recreate,
    /// The object stays as it is, and the action counts as done.
    Ignore,
}

/// The kinds of action.
#[derive(Clone, Debug)]
pub enum ActionBody {
    /// Create if missing.
    Create {
        /// What.
        documents: Documents,
        /// What to do with an object that is there.
        existing: Existing,
    },
    /// Server-side apply.
    Apply {
        /// What.
        documents: Documents,
        /// What to do with an object that is there and not ours.
        existing: Existing,
    },
    /// Patch one object.
    Patch {
        /// Which object.
        target: EffectTarget,
        /// How the patch is written.
        kind: PatchKind,
        /// The patch, a template that gives JSON or YAML.
        text: Arc<Template>,
        /// Whether doing it twice differs from doing it once.
        delivery: Option<Delivery>,
    },
    /// Delete one object and wait until it is gone.
    Delete {
        /// Which object.
        target: EffectTarget,
        /// What happens to what it owns.
        propagation: Propagation,
    },
    /// Let time pass.
    Wait(Duration),
    /// Run a command in a container.
    Exec {
        /// The pod.
        target: EffectTarget,
        /// The container.
        container: Option<String>,
        /// Program and arguments, each a template.
        command: Vec<Arc<Template>>,
        /// How long it may take.
        timeout: Duration,
        /// What to do when the outcome cannot be known.
        delivery: Delivery,
    },
    /// Say something.
    Notice(Notice),
}

/// The documents of an action.
#[derive(Clone, Debug)]
pub enum Documents {
    /// A template of one or many YAML documents.
    Text(Arc<Template>),
    /// Objects whose strings may be templates.
    Objects(Vec<Document>),
}

/// One object as written.
#[derive(Clone, Debug)]
pub struct Document {
    /// As written.
    pub value: Arc<Value>,
    /// Its strings as templates; none where they are taken as they are.
    pub template: Option<Arc<ValueTemplate>>,
}

/// What to do when the outcome of an effect cannot be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Say so and leave it.
    #[default]
    AtMostOnce,
    /// Do it again.
    AtLeastOnce,
}

/// When a finished action runs again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rerun {
    /// Never.
    #[default]
    Never,
    /// When what it read has changed.
    OnReads(BTreeMap<StepId, WatchEvents>),
    /// When what it wrote is no longer as it was written.
    OnDrift(Drift),
}

/// How what was written is kept as it was written.
///
/// An object that is absent, or of which a field was taken from our manager, is applied again; fields are then taken
/// back by force, but for those that are left to others ([`Verb::Apply`](crate::contract::Verb::Apply)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// The objects that are looked at, each a want that reads what our manager holds ([`Drift::object`]). An object that
    /// is missing here is written and never looked at again.
    pub objects: Vec<Want>,
    /// Fields that are left to their holders, as the API server writes paths (`.spec.replicas`); the form of a JSON
    /// pointer (`/spec/replicas`) is understood too.
    pub ignore: Vec<String>,
    /// Whether the object runs once: when the requirement that has this action as its floor was met, the object may go
    /// without being made again.
    pub run_once: bool,
}

impl Drift {
    /// The want for one object that a field manager writes.
    pub fn object(
        via: Via,
        kind: Gvk,
        namespace: Option<String>,
        name: impl Into<String>,
        manager: &str,
    ) -> Want {
        Want::object(via, kind, namespace, name, ReadSet::held_by(manager))
    }

    /// The paths of `ignore` as the API server writes them.
    pub(crate) fn yields(&self) -> Arc<[String]> {
        let path = |text: &String| match text.strip_prefix('/') {
            Some(pointer) => {
                let names = pointer.split('/').map(|name| name.replace("~1", "/").replace("~0", "~"));
                names.flat_map(|name| [".".to_owned(), name]).collect()
            }
            None if text.starts_with('.') => text.clone(),
            None => format!(".{text}"),
        };
        self.ignore.iter().map(path).collect()
    }
}

/// Which changes of a dependency count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchEvents {
    /// A new incarnation.
    pub create: bool,
    /// The same incarnation with other values.
    pub update: bool,
    /// Gone.
    pub delete: bool,
}

impl Default for WatchEvents {
    fn default() -> Self {
        Self { create: true, update: true, delete: true }
    }
}

impl PlannedAction {
    /// An action that does this, with no policy beyond it.
    pub fn new(
        via: Via,
        body: ActionBody,
        default_namespace: impl Into<String>,
        manager: impl Into<String>,
    ) -> Self {
        Self {
            via,
            body,
            default_namespace: default_namespace.into(),
            manager: manager.into(),
            rerun: Rerun::Never,
            tracked: false,
            prune: Prune::Never,
            long_lived_last: false,
            immutable: Immutable::Fail,
            owner: None,
            rights: Vec::new(),
            later_rights: Vec::new(),
            open_rights: Vec::new(),
            reads: Some(BTreeMap::new()),
            reads_values: false,
            reads_now: false,
            sketched: Vec::new(),
            discreet: false,
        }
    }

    /// How it keeps what it wrote, where it does.
    pub fn drift(&self) -> Option<&Drift> {
        match &self.rerun {
            Rerun::OnDrift(drift) => Some(drift),
            Rerun::Never | Rerun::OnReads(_) => None,
        }
    }

    /// What to do when it cannot be known whether it took place; none where doing it again does no harm.
    pub fn delivery(&self) -> Option<Delivery> {
        match &self.body {
            ActionBody::Exec { delivery, .. } => Some(*delivery),
            ActionBody::Patch { delivery, .. } => *delivery,
            _ => None,
        }
    }

    /// The one object it is aimed at, where that is known before it is rendered.
    pub fn target(&self) -> Option<EffectTarget> {
        match &self.body {
            ActionBody::Patch { target, .. }
            | ActionBody::Delete { target, .. }
            | ActionBody::Exec { target, .. } => Some(target.clone()),
            _ => None,
        }
    }

    /// What it will write, as far as that is named before it is rendered.
    pub(crate) fn targets(&self) -> Vec<EffectTarget> {
        let (ActionBody::Create { documents, .. } | ActionBody::Apply { documents, .. }) = &self.body else {
            return Vec::new();
        };
        let Documents::Objects(documents) = documents else {
            return Vec::new();
        };
        let named = |target: &EffectTarget| {
            !target.name.contains("{{") && !target.namespace.iter().any(|namespace| namespace.contains("{{"))
        };
        documents
            .iter()
            .filter_map(|document| target_of_document(&document.value, &self.default_namespace))
            .filter(named)
            .collect()
    }

    /// The objects it makes, as far as they are named before it is rendered.
    pub fn makes(&self) -> Vec<ObjectRef> {
        let (ActionBody::Create { documents, .. } | ActionBody::Apply { documents, .. }) = &self.body else {
            return Vec::new();
        };
        let Documents::Objects(documents) = documents else {
            return self.sketched.clone();
        };
        let text = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_str).map(str::to_owned);
        documents
            .iter()
            .filter_map(|Document { value: body, .. }| {
                let kind =
                    Gvk::from_api_version(&text(body, "/apiVersion")?, text(body, "/kind")?).group_kind();
                let namespaced = built_in_kind(&kind.group, &kind.kind).is_none_or(|known| known.namespaced);
                let namespace =
                    text(body, "/metadata/namespace").unwrap_or_else(|| self.default_namespace.clone());
                Some(ObjectRef {
                    kind,
                    namespace: namespaced.then_some(namespace),
                    name: text(body, "/metadata/name")?,
                })
            })
            .filter(|object| !object.name.contains("{{"))
            .collect()
    }
}

/// The object that a document is.
pub(crate) fn target_of_document(body: &Value, default_namespace: &str) -> Option<EffectTarget> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let metadata = body.get("metadata")?;
    Some(EffectTarget {
        kind: KindWord::from_manifest(text(body, "apiVersion").as_deref(), &text(body, "kind")?),
        namespace: Some(text(metadata, "namespace").unwrap_or_else(|| default_namespace.to_owned())),
        name: text(metadata, "name")?,
    })
}
