//! What compiling needs to know of the object itself.

use std::{any::TypeId, collections::BTreeMap};

use k8s_openapi::ClusterResourceScope;

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
    /// Whether its kind has no namespaces; the namespace is then one that means none.
    pub cluster_scoped: bool,
}

impl Owner {
    pub(crate) fn of<K: Resource<DynamicType = (), Scope: 'static>>(object: &K) -> Self {
        Self {
            group: K::group(&()).into_owned(),
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespace: object.namespace().unwrap_or_else(|| "default".to_owned()),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
            generation: object.meta().generation.unwrap_or_default(),
            annotations: object.annotations().clone(),
            cluster_scoped: TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>(),
        }
    }

    pub(crate) fn object_ref(&self) -> ObjectRef {
        let kind = GroupKind::new(&self.group, &self.kind);
        if self.cluster_scoped {
            return ObjectRef::cluster_scoped(kind, &self.name);
        }
        ObjectRef::namespaced(kind, &self.namespace, &self.name)
    }

    /// The field manager of one step.
    pub(crate) fn manager(&self, step: &str) -> String {
        keys::field_manager(&self.kind, &self.namespace, &self.name, step)
    }
}
