//! Questions that are under way: whoever asks the same meanwhile waits for the same answer.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};

type SharedRequest<V> = Shared<BoxFuture<'static, V>>;

/// Questions by what is asked, as long as somebody waits for their answer.
pub(super) struct SharedRequests<K, V: Clone>(Mutex<BTreeMap<K, Weak<SharedRequest<V>>>>);

impl<K, V: Clone> Default for SharedRequests<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Clone> SharedRequests<K, V> {
    /// The answer of the question that is under way, else of this one. It ends when nobody waits for it any more.
    pub(super) async fn join<F>(&self, key: K, ask: impl FnOnce() -> F) -> V
    where
        F: Future<Output = V> + Send + 'static,
    {
        let request = {
            let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            requests.retain(|_, request| request.strong_count() > 0);
            if let Some(request) = requests.get(&key).and_then(Weak::upgrade) {
                request
            } else {
                let request = Arc::new(ask().boxed().shared());
                requests.insert(key, Arc::downgrade(&request));
                request
            }
        };
        SharedRequest::clone(&request).await
    }
}
