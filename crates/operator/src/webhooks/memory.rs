//! What the webhooks of BootDependency must know to answer without asking: all BootDependencies, and what namespaces say.
//!
//! Followed on every replica. Until everything has been seen once, nothing is concluded from what is missing.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::{StreamExt, stream::FuturesUnordered};
use linchpin_api::BootDependency;
use linchpin_cluster::own::{Errands, NamespacedName, OwnEvent, OwnKind, follow};
use linchpin_words::{Gvk, keys};

use super::boot;
use crate::settings::Namespaces;

/// Shared by all handlers.
#[derive(Clone, Default)]
pub(super) struct BootMemory(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    objects: BTreeMap<NamespacedName, Arc<BootDependency>>,
    /// Followers that have seen everything once, of how many.
    synced: usize,
    followers: usize,
    /// The waiter's image, where a namespace says another.
    images: BTreeMap<String, String>,
}

impl BootMemory {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether everything that is there has been seen.
    pub(super) fn is_complete(&self) -> bool {
        let known = self.known();
        known.followers > 0 && known.synced >= known.followers
    }

    /// The BootDependencies of a namespace that are not being deleted.
    pub(super) fn of_namespace(&self, namespace: &str) -> Vec<Arc<BootDependency>> {
        let known = self.known();
        let from = (Some(namespace.to_owned()), String::new());
        let here =
            known.objects.range(from..).take_while(|((place, _), _)| place.as_deref() == Some(namespace));
        here.map(|(_, object)| Arc::clone(object)).collect()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<BootDependency>> {
        self.known().objects.values().cloned().collect()
    }

    /// The waiter's image in a namespace, if it says one.
    pub(super) fn image(&self, namespace: &str) -> Option<String> {
        self.known().images.get(namespace).cloned()
    }

    /// Takes down what a follower of BootDependencies saw.
    fn note(&self, event: OwnEvent) {
        let mut known = self.known();
        match event {
            OwnEvent::There(object) => {
                let place = object.place();
                match object.read::<BootDependency>() {
                    Ok(read) if !object.is_deleting() => drop(known.objects.insert(place, Arc::new(read))),
                    // One that goes holds nobody any more; of one that cannot be read nothing is known.
                    _ => drop(known.objects.remove(&place)),
                }
            }
            OwnEvent::Gone(place) => drop(known.objects.remove(&place)),
            OwnEvent::Synced | OwnEvent::Trouble(_) => (),
        }
    }

    fn note_namespace(&self, event: OwnEvent) {
        let mut known = self.known();
        match event {
            OwnEvent::There(object) => {
                let (_, name) = object.place();
                match object.annotation(keys::WAIT_IMAGE) {
                    Some(image) if !image.is_empty() => drop(known.images.insert(name, image.to_owned())),
                    _ => drop(known.images.remove(&name)),
                }
            }
            OwnEvent::Gone((_, name)) => drop(known.images.remove(&name)),
            OwnEvent::Synced | OwnEvent::Trouble(_) => (),
        }
    }

    /// Follows until dropped.
    pub(super) async fn follow(&self, errands: &Errands, namespaces: &Namespaces) {
        let kind = boot::kind();
        let places: Vec<Option<String>> = match namespaces {
            Namespaces::All => vec![None],
            Namespaces::Only(names) => names.iter().cloned().map(Some).collect(),
        };
        self.known().followers = places.len();
        let mut followers: FuturesUnordered<_> = places
            .iter()
            .map(|place| async {
                let seen = Mutex::new(false);
                let tell = |event: OwnEvent| {
                    if matches!(event, OwnEvent::Synced) {
                        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                        self.known().synced += usize::from(!*seen);
                        *seen = true;
                    }
                    self.note(event);
                };
                follow(errands.client().watches(), &kind, place.as_deref(), tell).await;
            })
            .collect();
        let namespace_kind = OwnKind::new(&Gvk::new("", "v1", "Namespace"), "namespaces", false);
        let images =
            follow(errands.client().watches(), &namespace_kind, None, |event| self.note_namespace(event));
        tokio::join!(images, async { while followers.next().await.is_some() {} });
    }
}
