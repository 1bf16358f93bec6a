//! What the webhooks of BootDependency must know to answer without asking: all BootDependencies, and what namespaces say.
//!
//! Followed on every replica. Until everything has been seen once, nothing is concluded from what is missing. A namespace has
//! so much room: more is refused at admission, and what came in while admission was away is left out until there is room.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use linchpin_api::{BootDependency, BootEntry};
use linchpin_cluster::own::{NamespacedName, OperatorRequests, OwnEvent, OwnKind, follow};
use linchpin_words::{Gvk, keys, limits};
use serde_json::Value;
use tokio::sync::Notify;

use super::{boot, label_selector};
use crate::settings::Namespaces;

/// Between two looks for what was left out, when there is room again.
const RESPITE: Duration = Duration::from_secs(1);
/// How long such a look may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Shared by all handlers.
#[derive(Clone, Default)]
pub(super) struct BootMemory(Arc<SharedMemory>);

#[derive(Default)]
struct SharedMemory {
    known: Mutex<KnownObjects>,
    /// Notified when there is room again for what was left out.
    room: Notify,
}

#[derive(Default)]
struct KnownObjects {
    objects: BTreeMap<NamespacedName, WeighedObject>,
    /// What each namespace takes, in bytes.
    taken: BTreeMap<String, usize>,
    /// Those that their namespace has no room for.
    left_out: BTreeSet<NamespacedName>,
    /// Followers that have seen everything once, of how many.
    synced: usize,
    followers: usize,
    /// The waiter's image, where a namespace says another.
    images: BTreeMap<String, String>,
    /// The namespaces that have opted in.
    opted_in: BTreeSet<String>,
}

/// An object, and what it takes.
struct WeighedObject {
    object: Arc<BootDependency>,
    weight: usize,
}

/// What an object takes, in bytes: its texts, and its entries, most of whose fields are empty.
fn weight(object: &BootDependency) -> usize {
    let texts = serde_json::to_string(&object.spec).map_or(0, |text| text.len());
    texts + object.spec.depends_on.len() * size_of::<BootEntry>()
}

impl KnownObjects {
    fn forget(&mut self, place: &NamespacedName) {
        self.left_out.remove(place);
        let Some(kept) = self.objects.remove(place) else { return };
        let namespace = place.0.clone().unwrap_or_default();
        if let Some(taken) = self.taken.get_mut(&namespace) {
            *taken = taken.saturating_sub(kept.weight);
            if *taken == 0 {
                self.taken.remove(&namespace);
            }
        }
    }

    /// Keeps an object if its namespace has room for it.
    fn keep(&mut self, place: NamespacedName, mut object: BootDependency) {
        self.forget(&place);
        // What nobody asks for here.
        object.status = None;
        object.metadata.managed_fields = None;
        let weight = weight(&object);
        let namespace = place.0.clone().unwrap_or_default();
        let taken = self.taken.entry(namespace).or_default();
        if *taken + weight > limits::BOOT_MEMORY {
            let (namespace, name) = &place;
            let from = (namespace.clone(), String::new());
            if self.left_out.range(from..).next().is_none_or(|(other, _)| other != namespace) {
                tracing::warn!(?namespace, name, "{TOO_MANY}: it is left out, and so are others that come");
            }
            self.left_out.insert(place);
            return;
        }
        *taken += weight;
        self.objects.insert(place, WeighedObject { object: Arc::new(object), weight });
    }
}

/// What is said where a namespace has no room.
const TOO_MANY: &str = "the BootDependencies of its namespace take more than webhooks keep of one namespace";

impl BootMemory {
    fn known(&self) -> MutexGuard<'_, KnownObjects> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A memory that has seen everything, and nothing of it was there.
    #[cfg(test)]
    pub(super) fn of_nothing() -> Self {
        let memory = Self::default();
        let mut known = memory.known();
        (known.followers, known.synced) = (1, 1);
        drop(known);
        memory
    }

    /// Whether there is room for an object, in the place of its older version.
    pub(super) fn has_room_for(&self, namespace: &str, object: &BootDependency) -> bool {
        let known = self.known();
        let place = (Some(namespace.to_owned()), object.metadata.name.clone().unwrap_or_default());
        let taken = known.taken.get(namespace).copied().unwrap_or_default();
        let own = known.objects.get(&place).map_or(0, |kept| kept.weight);
        let new = weight(object);
        // One that takes no more than before may always be changed.
        new <= own || taken - own + new <= limits::BOOT_MEMORY
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
        here.map(|(_, kept)| Arc::clone(&kept.object)).collect()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<BootDependency>> {
        self.known().objects.values().map(|kept| Arc::clone(&kept.object)).collect()
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
                    Ok(read) if !object.is_deleting() => known.keep(place, read),
                    // One that goes holds nobody any more; of one that cannot be read nothing is known.
                    _ => known.forget(&place),
                }
            }
            OwnEvent::Gone(place) => known.forget(&place),
            OwnEvent::Synced | OwnEvent::Trouble(_) => return,
        }
        if !known.left_out.is_empty() {
            self.0.room.notify_one();
        }
    }

    /// Looks again for what was left out, in namespaces that may have room again.
    async fn refill(&self, own_requests: &OperatorRequests) {
        loop {
            self.0.room.notified().await;
            tokio::time::sleep(RESPITE).await;
            let roomy: BTreeSet<String> = {
                let known = self.known();
                let places = known.left_out.iter().filter_map(|(namespace, _)| namespace.clone());
                let is_roomy = |namespace: &String| {
                    known.taken.get(namespace).copied().unwrap_or_default() < limits::BOOT_MEMORY / 4 * 3
                };
                places.filter(is_roomy).collect()
            };
            for namespace in roomy {
                let Ok(objects) = own_requests.list(&boot::kind(), &namespace, PATIENCE).await else {
                    continue;
                };
                let mut known = self.known();
                for object in objects {
                    let Ok(read) = serde_json::from_value::<BootDependency>(object) else { continue };
                    let place = (Some(namespace.clone()), read.metadata.name.clone().unwrap_or_default());
                    if known.left_out.contains(&place) && read.metadata.deletion_timestamp.is_none() {
                        known.keep(place, read);
                    }
                }
            }
        }
    }

    /// Whether a namespace is known to have opted in.
    pub(super) fn has_opted_in(&self, namespace: &str) -> bool {
        self.known().opted_in.contains(namespace)
    }

    fn note_namespace(&self, event: OwnEvent, selector: &Value) {
        let mut known = self.known();
        match event {
            OwnEvent::There(object) => {
                let (_, name) = object.place();
                let labels = object.read::<Value>().map(|object| labels(&object)).unwrap_or_default();
                if label_selector::matches(selector, &labels) {
                    known.opted_in.insert(name.clone());
                } else {
                    known.opted_in.remove(&name);
                }
                match object.annotation(keys::WAIT_IMAGE) {
                    Some(image) if !image.is_empty() => drop(known.images.insert(name, image.to_owned())),
                    _ => drop(known.images.remove(&name)),
                }
            }
            OwnEvent::Gone((_, name)) => {
                known.images.remove(&name);
                known.opted_in.remove(&name);
            }
            OwnEvent::Synced | OwnEvent::Trouble(_) => (),
        }
    }

    /// Follows until dropped; `selector` says which namespaces have opted in.
    pub(super) async fn follow(
        &self,
        own_requests: &OperatorRequests,
        namespaces: &Namespaces,
        selector: &Value,
    ) {
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
                let report = |event: OwnEvent| {
                    if matches!(event, OwnEvent::Synced) {
                        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                        self.known().synced += usize::from(!*seen);
                        *seen = true;
                    }
                    self.note(event);
                };
                follow(own_requests.client().watches(), &kind, place.as_deref(), report).await;
            })
            .collect();
        let note = |event| self.note_namespace(event, selector);
        let namespace_kind = namespace_kind();
        let said = follow(own_requests.client().watches(), &namespace_kind, None, note);
        let refill = self.refill(own_requests);
        tokio::join!(said, refill, async { while followers.next().await.is_some() {} });
    }
}

/// The kind of namespaces.
pub(super) fn namespace_kind() -> OwnKind {
    OwnKind::new(&Gvk::new("", "v1", "Namespace"), "namespaces", false)
}

/// The labels of an object.
pub(super) fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, entries: usize, path: &str) -> BootDependency {
        let entry = json!({"host": "db.example.com", "port": 80, "httpPath": path});
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "flood"}, "spec": {"dependsOn": vec![entry; entries]},
        }))
        .unwrap()
    }

    fn place(name: &str) -> NamespacedName {
        (Some("flood".to_owned()), name.to_owned())
    }

    #[test]
    fn a_flood_of_one_namespace_ends_at_its_limit_and_costs_nobody_else_anything() {
        let memory = BootMemory::default();
        let large = "/".repeat(2048);
        let each = weight(&object("x", 64, &large));
        let fit = limits::BOOT_MEMORY / each;
        for number in 0..fit * 2 {
            memory.known().keep(place(&number.to_string()), object(&number.to_string(), 64, &large));
        }
        assert_eq!((memory.all().len(), memory.known().left_out.len()), (fit, fit));
        let newcomer = object("newcomer", 64, &large);
        assert!(!memory.has_room_for("flood", &newcomer));
        assert!(memory.has_room_for("calm", &newcomer), "others have their own room");
        // One that is there may be changed as long as it does not grow, and a small one finds no room either way.
        assert!(memory.has_room_for("flood", &object("0", 64, &large)));
        assert!(memory.has_room_for("flood", &object("0", 1, "/")));
        // What goes makes room; what is unchanged is counted once.
        memory.known().keep(place("1"), object("1", 64, &large));
        memory.known().forget(&place("0"));
        assert!(memory.has_room_for("flood", &newcomer));
        for number in 0..fit * 2 {
            memory.known().forget(&place(&number.to_string()));
        }
        assert!(memory.known().taken.is_empty() && memory.known().left_out.is_empty());
    }

    #[test]
    fn thousands_of_usual_ones_have_room() {
        assert!(weight(&object("web", 3, "/healthz")) * 1_000 < limits::BOOT_MEMORY / 2);
    }
}
