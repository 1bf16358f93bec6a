//! Orders carried out: one request each, nothing repeated, and never anything under `spec` of an object that is not ours.

use std::{sync::Arc, time::Duration};

use linchpin_cluster::{
    lease::Fence,
    own::{MarkPatch, OperatorRequests, OwnTarget, OwnWriteError},
};
use linchpin_consist::{
    Call, Getter, LookFailed, ObservedEmployer, Port, ProviderAnswer, Trouble,
    marks::protects,
    settle::{Act, CompletedAct, EmployerView, PodRef},
};
use linchpin_words::{Timestamp, keys::consist as keys};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::cluster_view::Followed;
use crate::controller::{FAILED, caught};

/// How long one request may take.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// How many answers one look or call may wait for one after another: each has its own time, so a provider that is slow and
/// answers is not taken for one that does not.
const ANSWERS: u32 = 4;

/// What every write is made with.
#[derive(Clone)]
pub(super) struct WriteContext {
    pub(super) own_requests: OperatorRequests,
    pub(super) fence: Fence,
}

/// Where an order leads.
#[derive(Clone)]
pub(super) struct OrderTarget {
    pub(super) employer: Arc<EmployerView>,
    pub(super) employer_kind: Followed,
    pub(super) pods: Followed,
    pub(super) bindings: Followed,
    pub(super) binding_name: String,
    /// The binding as it is to be made.
    pub(super) binding: Value,
}

impl WriteContext {
    /// Whether a write may be sent now.
    fn check(&self) -> Result<(), String> {
        self.fence.check().map_err(|_| "this process does not lead any more".to_owned())
    }

    /// Carries out an order that is no call to the provider.
    pub(super) async fn carry_out(&self, act: &Act, aim: &OrderTarget) -> Result<CompletedAct, String> {
        self.check()?;
        let namespace = aim.employer.namespace.as_str();
        let version = match act {
            Act::Claim => {
                let made = self.own_requests.make(&aim.bindings.own, namespace, &aim.binding, DEADLINE).await;
                made.map(|()| None)
            }
            Act::Unclaim { uid } => {
                let place = OwnTarget {
                    kind: &aim.bindings.own,
                    namespace: Some(namespace),
                    name: &aim.binding_name,
                };
                self.own_requests.remove(place, uid, DEADLINE).await.map(|()| None)
            }
            Act::AddClean { finalizer } => self.finalizers(aim, std::slice::from_ref(finalizer), true).await,
            Act::RemoveClean { finalizers } => self.finalizers(aim, finalizers, false).await,
            Act::Record { annotations } => {
                let body = json!({"metadata": {"resourceVersion": aim.employer.version.to_string(), "annotations": annotations}});
                self.own_requests.change(of_employer(aim), None, MarkPatch::Merge, &body, DEADLINE).await
            }
            Act::WriteEntries { pod, text } => {
                let body = json!({"metadata": {"resourceVersion": pod.version.to_string(),
                    "annotations": {keys::AVAILABLE_CONDITIONS: text}}});
                self.own_requests
                    .change(of_pod(aim, namespace, pod), None, MarkPatch::Merge, &body, DEADLINE)
                    .await
            }
            Act::Protect { pod, finalizer } => {
                let body = one_entry(&pod.uid, std::slice::from_ref(finalizer), true);
                self.own_requests
                    .change(of_pod(aim, namespace, pod), None, MarkPatch::Strategic, &body, DEADLINE)
                    .await
            }
            Act::Release { pod, finalizers } => {
                debug_assert!(finalizers.iter().all(|finalizer| protects(finalizer)));
                let body = one_entry(&pod.uid, finalizers, false);
                self.own_requests
                    .change(of_pod(aim, namespace, pod), None, MarkPatch::Strategic, &body, DEADLINE)
                    .await
            }
            Act::Call { .. } => return Err("a call is no write".to_owned()),
        };
        version.map(|version| CompletedAct { version, batch: None }).map_err(|error| error.to_string())
    }

    /// Puts finalizers on an employer or takes them off, and nothing else.
    async fn finalizers(
        &self,
        aim: &OrderTarget,
        finalizers: &[String],
        present: bool,
    ) -> Result<Option<u64>, OwnWriteError> {
        let employer = &aim.employer;
        // Kinds that Kubernetes itself knows merge the list by its entries.
        if linchpin_words::reference::built_in_kind(&employer.kind.group, &employer.kind.kind).is_some() {
            let body = one_entry(&employer.uid, finalizers, present);
            return self
                .own_requests
                .change(of_employer(aim), None, MarkPatch::Strategic, &body, DEADLINE)
                .await;
        }
        let mut all: Vec<&String> =
            employer.finalizers.iter().filter(|one| !finalizers.contains(one)).collect();
        if present {
            all.extend(finalizers);
        }
        let body = json!({"metadata": {"resourceVersion": employer.version.to_string(), "finalizers": all}});
        self.own_requests.change(of_employer(aim), None, MarkPatch::Merge, &body, DEADLINE).await
    }
}

fn of_employer(aim: &OrderTarget) -> OwnTarget<'_> {
    OwnTarget {
        kind: &aim.employer_kind.own,
        namespace: Some(&aim.employer.namespace),
        name: &aim.employer.name,
    }
}

fn of_pod<'a>(aim: &'a OrderTarget, namespace: &'a str, pod: &'a PodRef) -> OwnTarget<'a> {
    OwnTarget { kind: &aim.pods.own, namespace: Some(namespace), name: &pod.name }
}

/// The patch that puts entries into the list of finalizers, or takes them out, of one incarnation.
fn one_entry(uid: &str, finalizers: &[String], present: bool) -> Value {
    let list = if present { "finalizers" } else { "$deleteFromPrimitiveList/finalizers" };
    json!({"metadata": {"uid": uid, list: finalizers}})
}

/// A provider, and who may be in its hands.
#[derive(Clone)]
pub(super) struct Provider {
    pub(super) port: Arc<dyn Port>,
    pub(super) seats: Arc<Semaphore>,
    pub(super) timeout: Duration,
}

impl Provider {
    /// One look. Returns when it began, and what came of it.
    pub(super) async fn look(
        &self,
        mut about: ObservedEmployer,
        clock: fn() -> Timestamp,
    ) -> (Timestamp, Result<ProviderAnswer, LookFailed>) {
        // The semaphore is never closed.
        let _seat = self.seats.acquire().await.ok();
        let began = clock();
        about.now = began;
        let failed = |words: String| LookFailed::new(Getter::CurrentEmployees, Trouble::new(words));
        let patience = self.patience();
        let look = tokio::time::timeout(patience, caught(self.port.look(&about))).await;
        let result = match look {
            Ok(Some(result)) => result,
            Ok(None) => Err(failed(FAILED.to_owned())),
            Err(_) => Err(failed(late(patience))),
        };
        (began, result)
    }

    /// One call, unless the term ended while it waited for its turn.
    pub(super) async fn call(
        &self,
        write_context: &WriteContext,
        about: ObservedEmployer,
        call: Call,
        items: Vec<Value>,
    ) -> Result<CompletedAct, String> {
        let _seat = self.seats.acquire().await.ok();
        write_context.check()?;
        let patience = self.patience();
        let called = tokio::time::timeout(patience, caught(self.port.call(&about, call, items))).await;
        match called {
            Ok(Some(Ok(batch))) => Ok(CompletedAct { version: None, batch: Some(batch) }),
            Ok(Some(Err(trouble))) => Err(trouble.to_string()),
            Ok(None) => Err(FAILED.to_owned()),
            Err(_) => Err(late(patience)),
        }
    }

    fn patience(&self) -> Duration {
        self.timeout.saturating_mul(ANSWERS)
    }
}

fn late(timeout: Duration) -> String {
    format!("no answer within {}", linchpin_words::Period::new(timeout).brief())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use linchpin_cluster::{lease::Leadership, transport};
    use linchpin_consist::{AdapterKinds, AdapterOptions, Batch, EmployeeSelection, port::Pending};
    use tokio::sync::watch;

    use super::*;
    use crate::controller::now;

    /// A provider that takes a moment, and counts how many are in its hands.
    #[derive(Default)]
    struct Slow {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Slow {
        async fn held(&self) {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(3)).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
        }
    }

    impl Port for Slow {
        fn controller_name(&self) -> &'static str {
            "slow-controller"
        }

        fn options(&self) -> AdapterOptions {
            AdapterOptions::default()
        }

        fn kinds(&self) -> AdapterKinds {
            AdapterKinds::default()
        }

        fn employs(&self, _: &Value) -> EmployeeSelection {
            EmployeeSelection::Nothing
        }

        fn look<'a>(&'a self, _: &'a ObservedEmployer) -> Pending<'a, Result<ProviderAnswer, LookFailed>> {
            Box::pin(async {
                self.held().await;
                Ok(ProviderAnswer::default())
            })
        }

        fn call<'a>(
            &'a self,
            _: &'a ObservedEmployer,
            _: Call,
            _: Vec<Value>,
        ) -> Pending<'a, Result<Batch, Trouble>> {
            Box::pin(async {
                self.held().await;
                Ok(Batch::default())
            })
        }
    }

    fn about() -> ObservedEmployer {
        let key = ("Service".to_owned(), "shop".to_owned(), "web".to_owned());
        ObservedEmployer { employer: Arc::default(), key, employees: Vec::new(), leaving: false, now: now() }
    }

    /// Hands of a process that leads until somebody says otherwise.
    fn write_context() -> (WriteContext, watch::Sender<Leadership>) {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let transport = transport::Transport::new(&config, &transport::TransportOptions::default()).unwrap();
        let (sender, leadership) = watch::channel(Leadership::ALONE);
        let fence = Fence::current(&leadership).unwrap();
        (WriteContext { own_requests: OperatorRequests::new(&transport), fence }, sender)
    }

    /// A provider of so many seats, and what it counts.
    fn provider(seats: usize, timeout: Duration) -> (Provider, Arc<Slow>) {
        let slow = Arc::new(Slow::default());
        let port: Arc<dyn Port> = slow.clone();
        (Provider { port, seats: Arc::new(Semaphore::new(seats)), timeout }, slow)
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_employers_and_no_more_are_in_the_providers_hands_at_a_time() {
        let ((provider, slow), (write_context, _leads)) =
            (provider(2, Duration::from_secs(5)), write_context());
        let looks = (0..5).map(|_| provider.look(about(), now));
        let calls = (0..5).map(|_| provider.call(&write_context, about(), Call::CreateEmployees, Vec::new()));
        let (looks, calls) = tokio::join!(futures::future::join_all(looks), futures::future::join_all(calls));
        assert!(looks.iter().all(|(_, look)| look.is_ok()) && calls.iter().all(Result::is_ok));
        assert_eq!(slow.most.load(Ordering::SeqCst), 2, "looks and calls alike");
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_has_its_own_time_and_a_look_takes_four_of_them() {
        let (patient, _) = provider(1, Duration::from_secs(1));
        assert!(patient.look(about(), now).await.1.is_ok(), "three seconds for four answers of one");
        let (hasty, _) = provider(1, Duration::from_millis(500));
        let failed = hasty.look(about(), now).await.1.unwrap_err();
        assert_eq!(failed.to_string(), "no answer within 2s");
        let called = hasty.call(&write_context().0, about(), Call::CreateEmployees, Vec::new()).await;
        assert_eq!(called.unwrap_err(), "no answer within 2s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_waited_for_its_turn_is_not_made_in_a_term_that_ended() {
        let ((provider, _), (write_context, leadership)) =
            (provider(1, Duration::from_secs(5)), write_context());
        let call = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            provider.call(&write_context, about(), Call::CreateEmployees, Vec::new()).await
        };
        let ends = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            leadership.send_replace(Leadership::Standby { leader: None });
        };
        let ((_, look), called, ()) = tokio::join!(provider.look(about(), now), call, ends);
        assert!(look.is_ok());
        assert_eq!(called.unwrap_err(), "this process does not lead any more");
    }

    #[test]
    fn a_finalizer_is_one_entry_of_one_incarnation() {
        let names = ["x".to_owned()];
        assert_eq!(one_entry("u", &names, true), json!({"metadata": {"uid": "u", "finalizers": ["x"]}}));
        assert_eq!(
            one_entry("u", &names, false),
            json!({"metadata": {"uid": "u", "$deleteFromPrimitiveList/finalizers": ["x"]}})
        );
    }
}
