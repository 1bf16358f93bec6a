//! Questions that are asked by many at the same moment: those who ask before one is put share its answer.
//!
//! An answer is never older than the question of who gets it: what was put before may not know of what was written
//! since. So at most two of a kind are there at once, the one that is under way and the one that follows it. Used by the
//! webhook for pods and their templates.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};

type SharedRequest<V> = Shared<BoxFuture<'static, V>>;

/// The last question of a kind.
struct LastRequest<V: Clone> {
    request: SharedRequest<V>,
    /// Whether it was put: who asks from now on needs another one.
    begun: Arc<AtomicBool>,
}

/// Questions by what is asked, as long as somebody waits for their answer.
pub(super) struct SharedRequests<K, V: Clone>(Mutex<BTreeMap<K, Weak<LastRequest<V>>>>);

impl<K, V: Clone> Default for SharedRequests<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Clone + Send + Sync + 'static> SharedRequests<K, V> {
    /// The answer of a question that is put from now on. It ends when nobody waits for it any more.
    pub(super) async fn join<F>(&self, key: K, ask: impl FnOnce() -> F) -> V
    where
        F: Future<Output = V> + Send + 'static,
    {
        let last = {
            let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            requests.retain(|_, request| request.strong_count() > 0);
            let last = requests.get(&key).and_then(Weak::upgrade);
            match last {
                Some(last) if !last.begun.load(Ordering::Acquire) => last,
                last => {
                    let before = last.map(|last| last.request.clone());
                    let next = Arc::new(LastRequest::after(before, ask()));
                    requests.insert(key, Arc::downgrade(&next));
                    next
                }
            }
        };
        last.request.clone().await
    }
}

impl<V: Clone + Send + Sync + 'static> LastRequest<V> {
    /// A question that is put once the one before it was answered.
    fn after(before: Option<SharedRequest<V>>, question: impl Future<Output = V> + Send + 'static) -> Self {
        let begun = Arc::new(AtomicBool::new(false));
        let begins = Arc::clone(&begun);
        let request = async move {
            if let Some(before) = before {
                before.await;
            }
            begins.store(true, Ordering::Release);
            question.await
        };
        Self { request: request.boxed().shared(), begun }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn an_answer_is_never_older_than_the_question_and_a_crowd_shares_one() {
        let requests = SharedRequests::<&str, u32>::default();
        let (world, put, answer) =
            (Arc::new(AtomicU32::new(1)), Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let ask = || {
            let (world, put, answer) = (Arc::clone(&world), Arc::clone(&put), Arc::clone(&answer));
            async move {
                put.fetch_add(1, Ordering::SeqCst);
                let seen = world.load(Ordering::SeqCst);
                answer.notified().await;
                seen
            }
        };
        let mut first = Box::pin(requests.join("a", ask));
        assert!(futures::poll!(&mut first).is_pending());
        world.store(2, Ordering::SeqCst);
        let mut crowd: Vec<_> = (0..9).map(|_| Box::pin(requests.join("a", ask))).collect();
        for one in &mut crowd {
            assert!(futures::poll!(one).is_pending());
        }
        assert_eq!(put.load(Ordering::SeqCst), 1, "the second waits for the first");
        answer.notify_one();
        assert_eq!(first.await, 1);
        answer.notify_one();
        assert!(
            futures::future::join_all(crowd).await.iter().all(|seen| *seen == 2),
            "what was written since"
        );
        assert_eq!(put.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn who_gives_up_takes_the_question_along_and_holds_nobody() {
        let requests = SharedRequests::<&str, u32>::default();
        let mut hangs = Box::pin(requests.join("a", std::future::pending));
        assert!(futures::poll!(&mut hangs).is_pending());
        drop(hangs);
        assert_eq!(requests.join("a", || std::future::ready(2)).await, 2);
    }
}
