//! The operator process: what surrounds the controller.
//!
//! [`run`] is the frame: it finds the cluster, serves health and metrics, takes part in leader election, starts the
//! work and stops everything in order. The work is handed in as a function of a [`run::Context`], so the frame knows
//! no kind and no engine. [`flags`] are those that every process has, [`settings`] is everything
//! a user can choose, already parsed. [`rights`] is all that the
//! operator may do as itself. [`answers`] is who answers what subjects want to see.

pub mod answers;
pub mod consist;
pub mod controller;
pub mod flags;
pub mod health;
pub mod logging;
pub mod metrics;
pub mod probes;
pub mod rights;
pub mod run;
pub mod settings;
pub mod sources;
pub mod tallies;
pub mod webhooks;

mod boot;
mod certificates;
mod election;
mod process;
mod server;
mod shutdown;
mod subscriptions;
mod workplace;

use linchpin_doors::Registry;
use run::Context;
use tokio::task::JoinSet;

/// Everything that the process does inside its frame, for these kinds: the controller while it leads, the webhooks always.
pub async fn work(context: Context, kinds: Registry) -> Result<(), String> {
    let kinds = boot::with_held_pods(kinds, &context);
    let serving = context.clone();
    // A task of its own, which ends with this function.
    let mut webhooks = JoinSet::new();
    webhooks.spawn(async move { Box::pin(webhooks::serve(&serving)).await });
    let failed = async {
        match webhooks.join_next().await {
            // Switched off.
            None | Some(Ok(Ok(()))) => futures::future::pending().await,
            Some(Ok(Err(error))) => Err(error.to_string()),
            Some(Err(error)) => Err(format!("the webhooks failed: {error}")),
        }
    };
    tokio::select! {
        ended = controller::work(context, kinds) => ended,
        ended = failed => ended,
    }
}
