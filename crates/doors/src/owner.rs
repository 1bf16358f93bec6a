//! What compiling needs to know of the object itself.

use std::collections::BTreeMap;

use kube_core::{Resource, ResourceExt};
use linchpin_words::{GroupKind, ObjectRef, keys};

/// An object of ours, as far as every kind is alike.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub group: String,
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub generation: i64,
    pub annotations: BTreeMap<String, String>,
}

impl Owner {
    pub(crate) fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        Self {
            group: K::group(&()).into_owned(),
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespace: object.namespace().unwrap_or_else(|| "default".to_owned()),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
            generation: object.meta().generation.unwrap_or_default(),
            annotations: object.annotations().clone(),
        }
    }

    pub(crate) fn object_ref(&self) -> ObjectRef {
        ObjectRef::namespaced(GroupKind::new(&self.group, &self.kind), &self.namespace, &self.name)
    }

    /// The field manager of one step.
    pub(crate) fn manager(&self, step: &str) -> String {
        keys::field_manager(&self.kind, &self.namespace, &self.name, step)
    }
}
