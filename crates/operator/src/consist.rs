//! The consist process: adapters at work, and PodOpsLifecycle.
//!
//! The frame is the operator's ([`crate::run`]): Lease, health, metrics, signals. Inside it everything is seen on every
//! replica (`cluster_view`), and a `desk` decides while this process leads; `linchpin_consist` has the decisions. Writes are
//! the process's own, with fixed keys on employers and pods, never anything under `spec`; providers are called by their
//! adapters. A customised controller is [`enable`] with an adapter.

mod acts;
mod binding;
mod cluster_view;
mod counts;
mod crew;
mod desk;
pub mod flags;
mod roster;
mod settings;
mod webhooks;

use std::{process::ExitCode, sync::Arc};

use clap::Parser;
use futures::future::{BoxFuture, FutureExt as _, select_all};
use linchpin_cluster::{events::EventRecorder, identity::OperatorClient, own::OperatorRequests};
use linchpin_consist::{Adapter, Trouble, port};
use serde::de::DeserializeOwned;
use tokio::{
    sync::Notify,
    task::{JoinHandle, JoinSet},
};

use self::{
    acts::WriteContext,
    cluster_view::{SharedClusterView, ToFollow},
    counts::ConsistCounts,
    desk::{Desk, DeskParts},
    roster::{OpenAdapter, Roster},
};
pub use self::{
    crew::{Enabled, Overrides},
    roster::{Opening, Waiting},
    settings::{Engine, Lifecycle},
};
use crate::run::{self, Context, RunError};

/// What is to be done inside the frame.
pub struct Consist {
    /// The adapters.
    pub adapters: Vec<Opening>,
    /// PodOpsLifecycle.
    pub lifecycle: Lifecycle,
    /// Whether employers are served, or left.
    pub mode: ConsistMode,
}

/// What is done for employers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsistMode {
    /// They are served.
    Serve,
    /// Everything that was made for them is taken away, and the work ends.
    Leave {
        /// Whether what the provider has is left there.
        without_provider: bool,
        /// What the webhook configurations begin with that are deleted; none: they stay.
        configurations: Option<String>,
        /// The Deployment, by namespace and name, whose processes served until now: it is scaled to none first.
        scale_down: Option<(String, String)>,
    },
}

/// A customised controller: runs an adapter with the flags of the command line, until it is asked to stop.
pub fn enable<A, Employer, Employee>(adapter: A) -> ExitCode
where
    A: Adapter<Employer, Employee>,
    Employer: DeserializeOwned + Send + Sync + 'static,
    Employee: DeserializeOwned + Send + Sync + 'static,
{
    #[derive(Parser)]
    #[command(about = "A controller of linchpin consist")]
    struct Flags {
        #[command(flatten)]
        process: flags::ConsistFlags,
        #[command(flatten)]
        lifecycle: flags::LifecycleFlags,
        #[command(flatten)]
        adapter: flags::AdapterFlags,
    }
    let flags = Flags::parse();
    let settings = match flags.process.settings(None) {
        Ok(settings) => settings,
        Err(reason) => {
            eprintln!("{reason} (see --help)");
            return ExitCode::from(2);
        }
    };
    let port = port(adapter);
    let name = port.controller_name().to_owned();
    let overrides = flags.adapter.overrides();
    let enabled = Enabled { name: name.clone(), port, overrides, until_changed: None };
    let lifecycle = flags.lifecycle.lifecycle();
    let adapters = vec![Opening { name, open: Box::new(move |_| async move { Ok(enabled) }.boxed()) }];
    // Fails only if a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match run::run(settings, move |context| {
        work(context, Consist { adapters, lifecycle, mode: ConsistMode::Serve })
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Everything that the process does inside its frame.
pub async fn work(context: Context, consist: Consist) -> Result<(), String> {
    let own_requests = OperatorRequests::new(&context.transport);
    if let ConsistMode::Leave { scale_down: Some((namespace, name)), .. } = &consist.mode {
        desk::scale_down(&own_requests, namespace, name).await?;
    }
    let roster = Roster::new(context.health.gate("consist"));
    let mut arrivals = roster.open(&own_requests, consist.adapters);
    let first = tokio::select! {
        () = context.stop.requested() => return Ok(()),
        first = Roster::first(&mut arrivals) => first?,
    };
    let shared = SharedClusterView::default();
    let seen = shared.clone();
    context.health.require("kinds", move || match seen.look().lacks() {
        None => Ok("all are seen".to_owned()),
        Some(why) => Err(why),
    });
    let mut team = RunningAdapters {
        roster: roster.clone(),
        shared: shared.clone(),
        own_requests: own_requests.clone(),
        context: context.clone(),
        following: JoinSet::new(),
        changes: Vec::new(),
    };
    let watched = shared.expect(roster.staff().kinds.all(), &context.settings.watch_namespaces);
    team.follow(watched);
    for arrived in first {
        team.join(arrived);
    }
    let counts = ConsistCounts::default();
    context.metrics.register(|registry| counts.register(registry));
    let staff = roster.staff();
    let parts = DeskParts {
        recorder: EventRecorder::new(OperatorClient::new(&context.transport), &context.identity),
        context: context.clone(),
        shared: shared.clone(),
        crew: staff.crew,
        kinds: staff.kinds,
        roster: roster.clone(),
        lifecycle: consist.lifecycle,
        mode: consist.mode.clone(),
        left: Arc::new(Notify::new()),
        counts,
    };
    let answers = webhooks::PodWebhooks::new(
        shared,
        roster,
        consist.lifecycle,
        own_requests.clone(),
        parts.counts.clone(),
    );
    let serves = consist.mode == ConsistMode::Serve;
    let answering = tokio::spawn(answer(context.clone(), answers, serves));
    let mut failed = Box::pin(failed(answering));
    let mut leading = Box::pin(context.while_leading(|fence| {
        let write_context = WriteContext { own_requests: own_requests.clone(), fence };
        Desk::work(parts.clone(), write_context)
    }));
    loop {
        tokio::select! {
            () = &mut leading => return Ok(()),
            () = parts.left.notified() => return Ok(()),
            error = &mut failed => return Err(error),
            trouble = any(&mut team.changes) => return Err(trouble.to_string()),
            Some(arrived) = arrivals.recv() => team.join(arrived?),
        }
    }
}

/// The adapters at work, and what is followed for them.
struct RunningAdapters {
    roster: Roster,
    shared: SharedClusterView,
    own_requests: OperatorRequests,
    context: Context,
    /// Ends with this.
    following: JoinSet<()>,
    /// Each comes to an end when an adapter has become another one.
    changes: Vec<BoxFuture<'static, Trouble>>,
}

impl RunningAdapters {
    /// One adapter more is at work.
    fn join(&mut self, mut arrived: OpenAdapter) {
        self.changes.extend(arrived.until_changed());
        let new = self.roster.add(arrived);
        // The deciding part knows the new kinds, and that they are missing, before anything is seen of them.
        let watched = self.shared.expect(new, &self.context.settings.watch_namespaces);
        self.shared.employ(self.roster.staff().crew);
        self.shared.notify_all();
        self.follow(watched);
    }

    fn follow(&mut self, watched: Vec<ToFollow>) {
        let (shared, own_requests) = (self.shared.clone(), self.own_requests.clone());
        self.following.spawn(async move { shared.follow(&own_requests, watched).await });
    }
}

/// Answers the API server until the process ends.
async fn answer(context: Context, answers: webhooks::PodWebhooks, serves: bool) -> Result<(), RunError> {
    let said = answers.content(context.settings.watch_namespaces.clone());
    if serves {
        Box::pin(crate::webhooks::serve_consist(&context, answers.handlers(), said)).await
    } else {
        Ok(())
    }
}

/// Why the API server is not answered any more; never, where that is switched off.
async fn failed(answering: JoinHandle<Result<(), RunError>>) -> String {
    match answering.await {
        Ok(Ok(())) => futures::future::pending().await,
        Ok(Err(error)) => error.to_string(),
        Err(error) => format!("the webhooks failed: {error}"),
    }
}

/// The first of several that comes to an end; never, where there are none.
async fn any(changes: &mut Vec<BoxFuture<'static, Trouble>>) -> Trouble {
    if changes.is_empty() {
        return futures::future::pending().await;
    }
    select_all(changes.iter_mut()).await.0
}
