//! One copy of what several watches see alike.
//!
//! The same object comes through a watch of each identity that asks for it. What is kept of it is compared, not
//! assumed: only where all of it is the same is it the same copy. The pool itself keeps nothing alive.

use linchpin_engine::contract::Projection;
use linchpin_words::hash::Fnv;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// Copies are looked through for those that nobody keeps any more from so many on.
const FEWEST: usize = 1024;

/// Copies, by uid and version. Where two share a number, the later one stays.
#[derive(Debug, Default)]
pub(super) struct ProjectionPool(Mutex<Copies>);

#[derive(Debug, Default)]
struct Copies {
    known: HashMap<u64, Weak<Projection>>,
    /// From how many copies on they are looked through.
    tidy_at: usize,
}

impl ProjectionPool {
    /// The copy that is kept already, if there is one that is the same.
    pub(super) fn share(&self, fresh: Arc<Projection>) -> Arc<Projection> {
        let number = Fnv::of(fresh.uid.as_bytes()) ^ fresh.version.rotate_left(32);
        let copies = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = copies.known.get(&number).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| *known == fresh) {
            return known;
        }
        if copies.known.len() >= copies.tidy_at.max(FEWEST) {
            copies.known.retain(|_, copy| copy.strong_count() > 0);
            copies.tidy_at = copies.known.len() * 2;
        }
        copies.known.insert(number, Arc::downgrade(&fresh));
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_words::Gvk;
    use serde_json::json;

    fn copy(uid: &str, version: u64, value: &str) -> Arc<Projection> {
        Arc::new(Projection {
            kind: Gvk::new("", "v1", "ConfigMap"),
            namespace: Some("shop".into()),
            name: "a".into(),
            uid: uid.into(),
            generation: 1,
            version,
            deleting: false,
            content: json!({"data": {"value": value}}),
        })
    }

    #[test]
    fn only_what_is_the_same_in_every_byte_is_one_copy() {
        let pool = ProjectionPool::default();
        let first = pool.share(copy("u", 1, "x"));
        assert!(Arc::ptr_eq(&first, &pool.share(copy("u", 1, "x"))));
        for other in [copy("u", 1, "y"), copy("u", 2, "x"), copy("v", 1, "x")] {
            assert_eq!(pool.share(Arc::clone(&other)), other);
            assert!(!Arc::ptr_eq(&first, &other));
        }
    }

    #[test]
    fn the_pool_forgets_what_nobody_keeps() {
        let pool = ProjectionPool::default();
        for version in 0..100_000 {
            drop(pool.share(copy("u", version, "x")));
        }
        assert!(pool.0.lock().unwrap().known.len() <= FEWEST);
    }
}
