//! Something that is changed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use linchpin_lang::template::{Template, ValueTemplate};
use linchpin_words::{Gvk, ObjectRef, reference::built_in_kind};
use serde_json::Value;

use crate::contract::{Existing, Notice, PatchKind, Propagation, ReadSet, Right, StepId, Target, Via};

/// Something that is changed, once its turn has come.
#[derive(Clone, Debug)]
pub struct Action {
    /// Where and as whom.
    pub via: Via,
    /// What.
    pub body: Body,
    /// Namespace for objects that name none.
    pub default_namespace: String,
    /// Field manager.
    pub manager: String,
    /// When a finished action runs again.
    pub rerun: Rerun,
    /// Whether what it makes is remembered, to be deleted one day.
    pub tracked: bool,
    /// Whether what it made is deleted when the action leaves the plan.
    pub prune: bool,
    /// Rights it needs, as far as they are known before it is rendered.
    pub rights: Vec<Right>,
    /// What it reads of which dependency; none means that it cannot be known, so everything.
    pub reads: Option<BTreeMap<StepId, ReadSet>>,
    /// Whether it reads `.Values`.
    pub reads_values: bool,
    /// Whether it reads `.Now`.
    pub reads_now: bool,
}

/// The kinds of action.
#[derive(Clone, Debug)]
pub enum Body {
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
        target: Target,
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
        target: Target,
        /// What happens to what it owns.
        propagation: Propagation,
    },
    /// Let time pass.
    Wait(Duration),
    /// Run a command in a container.
    Exec {
        /// The pod.
        target: Target,
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
    OnDrift,
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

impl Action {
    /// What to do when it cannot be known whether it took place; none where doing it again does no harm.
    pub fn delivery(&self) -> Option<Delivery> {
        match &self.body {
            Body::Exec { delivery, .. } => Some(*delivery),
            Body::Patch { delivery, .. } => *delivery,
            _ => None,
        }
    }

    /// The one object it is aimed at, where that is known before it is rendered.
    pub fn target(&self) -> Option<Target> {
        match &self.body {
            Body::Patch { target, .. } | Body::Delete { target, .. } | Body::Exec { target, .. } => {
                Some(target.clone())
            }
            _ => None,
        }
    }

    /// The objects it makes, as far as they are named before it is rendered.
    pub fn makes(&self) -> Vec<ObjectRef> {
        let (Body::Create { documents, .. } | Body::Apply { documents, .. }) = &self.body else {
            return Vec::new();
        };
        let Documents::Objects(documents) = documents else {
            return Vec::new();
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
