//! Who carries an effect out: said by its verb. API servers are written to by [`Executor`], everything else is reached
//! through the [`Ports`] that the process was started with. The router decides nothing else, and what holds for every
//! effect holds here too: nothing starts for an operator that does not lead, and nothing lasts beyond its deadline.

use std::{pin::Pin, sync::Arc};

use linchpin_cluster::{
    apply::{Executor, MayWrite, trail},
    events::Regarding,
};
use linchpin_engine::contract::{Done, Effect, ExternalOrder, Failure, Verb};
use tokio::time::Instant;

/// What comes of an effect, when it does.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Done, Failure>> + Send + 'a>>;

/// Answers what is no API server's to answer.
///
/// A port answers with [`Done::answer`]. Calls may be repeated after a crash or a lost answer, so each must be idempotent;
/// one that is not done by the effect's deadline is dropped, and reported as [`Failure::Transient`].
pub trait Ports: Send + Sync {
    /// Carries an order out.
    fn call<'a>(&'a self, order: &'a ExternalOrder) -> Answering<'a>;
}

/// No port at all.
pub struct NoPorts;

impl Ports for NoPorts {
    fn call<'a>(&'a self, order: &'a ExternalOrder) -> Answering<'a> {
        let message = format!("there is no adapter {} in this process", order.port);
        Box::pin(async { Err(Failure::NotServed(message)) })
    }
}

/// Carries effects out.
#[derive(Clone)]
pub(super) struct Router {
    executor: Executor,
    ports: Arc<dyn Ports>,
    may_write: MayWrite,
}

impl Router {
    pub(super) fn new(executor: Executor, ports: Arc<dyn Ports>, may_write: MayWrite) -> Self {
        Self { executor, ports, may_write }
    }

    /// Makes one effect happen before its deadline. `about` is the object that ordered it.
    pub(super) async fn execute(&self, effect: &Effect, about: &Regarding) -> Result<Done, Failure> {
        match &effect.verb {
            Verb::External(order) => {
                let begun = Instant::now();
                let result = outside(&*self.ports, &self.may_write, effect, order).await;
                trail::leave(effect, about, &result, begun.elapsed());
                result
            }
            Verb::Apply { .. }
            | Verb::Create { .. }
            | Verb::Patch { .. }
            | Verb::Delete { .. }
            | Verb::Disown { .. }
            | Verb::Exec(_)
            | Verb::Notice(_) => self.executor.execute(effect, about).await,
        }
    }
}

/// An order to a port, while we may write and until its deadline.
async fn outside(
    ports: &dyn Ports,
    may_write: &MayWrite,
    effect: &Effect,
    order: &ExternalOrder,
) -> Result<Done, Failure> {
    if !may_write() {
        return Err(Failure::NotStarted);
    }
    let late = |_| Err(Failure::Transient(format!("no answer within {} s", effect.deadline.as_secs())));
    tokio::time::timeout(effect.deadline, ports.call(order)).await.unwrap_or_else(late)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linchpin_engine::contract::{Actor, ClusterRef, Payload, StepId, Ticket, Via};

    use super::*;

    /// Doubles a number; never answers to zero.
    struct Doubling;

    impl Ports for Doubling {
        fn call<'a>(&'a self, order: &'a ExternalOrder) -> Answering<'a> {
            Box::pin(async {
                let Some(number) = order.order.get::<u32>() else {
                    return Err(Failure::Invalid("no number".to_owned()));
                };
                if *number == 0 {
                    return futures::future::pending().await;
                }
                Ok(Done { answer: Some(Payload::new(number * 2)), ..Done::default() })
            })
        }
    }

    async fn ask(ports: &dyn Ports, leads: bool, payload: Payload) -> Result<Done, Failure> {
        let order =
            ExternalOrder { port: "double".into(), call: "look", about: "a number".into(), order: payload };
        let effect = Effect {
            ticket: Ticket { step: StepId::new("a"), run: 1, attempt: 1, part: 0 },
            via: Via { cluster: ClusterRef::Here, actor: Actor::Operator },
            verb: Verb::External(order.clone()),
            discreet: false,
            deadline: Duration::from_secs(5),
            rank: 0,
        };
        let may_write: MayWrite = Arc::new(move || leads);
        outside(ports, &may_write, &effect, &order).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_port_gets_what_was_ordered_and_answers_in_its_own_type() {
        let done = ask(&Doubling, true, Payload::new(21_u32)).await.unwrap();
        assert_eq!(done.answer.unwrap().get::<u32>(), Some(&42));
        let other = ask(&Doubling, true, Payload::new("21")).await.unwrap_err();
        assert_eq!(other, Failure::Invalid("no number".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_called_without_leading_or_waited_for_beyond_the_deadline() {
        let unled = ask(&Doubling, false, Payload::new(21_u32)).await.unwrap_err();
        assert_eq!(unled, Failure::NotStarted);
        let late = ask(&Doubling, true, Payload::new(0_u32)).await.unwrap_err();
        assert_eq!(late, Failure::Transient("no answer within 5 s".to_owned()));
        let nobody = ask(&NoPorts, true, Payload::new(21_u32)).await.unwrap_err();
        assert_eq!(nobody, Failure::NotServed("there is no adapter double in this process".to_owned()));
    }
}
