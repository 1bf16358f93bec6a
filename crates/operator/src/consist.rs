//! The consist process: adapters at work, and PodOpsLifecycle.
//!
//! The frame is the operator's ([`crate::run`]): Lease, health, metrics, signals. Inside it everything is seen on every
//! replica (`sight`), and a `desk` decides while this process leads; `linchpin_consist` has the decisions. Writes are
//! the process's own, with fixed keys on employers and pods, never anything under `spec`; providers are called by their
//! adapters. A customised controller is [`enable`] with an adapter.

mod acts;
mod binding;
mod counts;
mod crew;
mod desk;
pub mod flags;
mod settings;
mod sight;
mod webhooks;

use std::{process::ExitCode, sync::Arc, time::Duration};

use clap::Parser;
use futures::future::{BoxFuture, FutureExt as _, select_all};
use linchpin_cluster::{
    events::Recorder,
    identity::OperatorClient,
    own::{Errands, OwnWriteError},
};
use linchpin_consist::{Adapter, Trouble, port};
use linchpin_words::{Gvk, reference::built_in_kind};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use self::{
    acts::{DEADLINE, Hands},
    counts::Counts,
    crew::{Crew, Worker},
    desk::{Desk, Office},
    sight::{Followed, Kinds, Shared},
};
pub use self::{
    crew::{Enabled, Overrides},
    settings::{Engine, Lifecycle},
};
use crate::{
    health::Gate,
    run::{self, Context},
};

/// The pause between two attempts to find out what a kind is called.
const AGAIN: Duration = Duration::from_secs(2);

/// Opens the adapters; what is waited for meanwhile is said at the gate.
pub type Opening = Box<dyn FnOnce(Gate) -> BoxFuture<'static, Result<Vec<Enabled>, String>> + Send>;

/// What is to be done inside the frame.
pub struct Consist {
    /// The adapters.
    pub adapters: Opening,
    /// PodOpsLifecycle.
    pub lifecycle: Lifecycle,
    /// Whether employers are served, or left.
    pub mode: Mode,
}

/// What is done for employers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They are served.
    Serve,
    /// Everything that was made for them is taken away, and the work ends.
    Leave {
        /// Whether what the provider has is left there.
        without_provider: bool,
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
        process: flags::ProcessFlags,
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
    let enabled = Enabled { name, port, overrides: flags.adapter.overrides(), until_changed: None };
    let lifecycle = flags.lifecycle.lifecycle();
    let adapters: Opening = Box::new(move |_| async move { Ok(vec![enabled]) }.boxed());
    // Fails only if a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match run::run(settings, move |context| work(context, Consist { adapters, lifecycle, mode: Mode::Serve }))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Everything that the process does inside its frame.
pub async fn work(context: Context, consist: Consist) -> Result<(), String> {
    let errands = Errands::new(&context.transport);
    let gate = context.health.gate("consist");
    let (kinds, crew, changes) = tokio::select! {
        () = context.stop.requested() => return Ok(()),
        staffed = async {
            let mut adapters = (consist.adapters)(gate.clone()).await?;
            let changes: Vec<_> = adapters.iter_mut().filter_map(|one| one.until_changed.take()).collect();
            let (kinds, crew) = staff(&errands, adapters, &gate).await?;
            Ok::<_, String>((kinds, crew, changes))
        } => staffed?,
    };
    let shared = Shared::default();
    gate.set(Ok("its kinds are served".to_owned()));
    let seen = shared.clone();
    context.health.require("kinds", move || match seen.look().lacks() {
        None => Ok("all are seen".to_owned()),
        Some(why) => Err(why),
    });
    let counts = Counts::default();
    context.metrics.register(|registry| counts.register(registry));
    let office = Office {
        recorder: Recorder::new(OperatorClient::new(&context.transport), &context.identity),
        context: context.clone(),
        shared: shared.clone(),
        crew: Arc::new(crew),
        kinds: kinds.clone(),
        lifecycle: consist.lifecycle,
        mode: consist.mode,
        left: Arc::new(Notify::new()),
        counts,
    };
    let answers = webhooks::PodWebhooks::new(
        shared.clone(),
        Arc::clone(&office.crew),
        consist.lifecycle,
        errands.clone(),
        &kinds,
        office.counts.clone(),
    );
    let answering = {
        let (context, serves) = (context.clone(), consist.mode == Mode::Serve);
        let said = answers.content(context.settings.watch_namespaces.clone());
        tokio::spawn(async move {
            if serves {
                Box::pin(crate::webhooks::serve_consist(&context, answers.handlers(), said)).await
            } else {
                Ok(())
            }
        })
    };
    let failed = async {
        match answering.await {
            // Switched off.
            Ok(Ok(())) => futures::future::pending().await,
            Ok(Err(error)) => format!("cannot listen for webhooks: {error}"),
            Err(error) => format!("the webhooks failed: {error}"),
        }
    };
    let following = {
        let (errands, namespaces) = (errands.clone(), context.settings.watch_namespaces.clone());
        tokio::spawn(async move { shared.follow(&errands, &kinds, &namespaces).await })
    };
    let leading = context.while_leading(|fence| {
        let hands = Hands { errands: errands.clone(), fence };
        Desk::work(office.clone(), hands)
    });
    let ended = tokio::select! {
        () = leading => Ok(()),
        () = office.left.notified() => Ok(()),
        trouble = any(changes) => Err(trouble.to_string()),
        error = failed => Err(error),
    };
    following.abort();
    ended
}

/// The first of several that comes to an end; never, where there are none.
async fn any(changes: Vec<BoxFuture<'static, Trouble>>) -> Trouble {
    if changes.is_empty() {
        return futures::future::pending().await;
    }
    select_all(changes).await.0
}

/// The kinds that are followed, and the adapters with the numbers of theirs. Waits until the API server serves them.
async fn staff(errands: &Errands, adapters: Vec<Enabled>, gate: &Gate) -> Result<(Kinds, Crew), String> {
    let pods = Followed::new("", "v1", "Pod", "pods", true);
    let mut kinds = Kinds {
        employers: Vec::new(),
        employees: vec![pods],
        bindings: Followed::new("linchpin.dev", "v1alpha1", "ConsistBinding", "consistbindings", true),
        rules: Followed::new(
            "apps.kusionstack.io",
            "v1alpha1",
            "PodTransitionRule",
            "podtransitionrules",
            true,
        ),
    };
    let mut crew = Vec::new();
    for adapter in adapters {
        let of = adapter.port.kinds();
        let numbers = [
            number(errands, &mut kinds.employers, &of.employer, gate).await?,
            number(errands, &mut kinds.employees, &of.employee, gate).await?,
        ];
        tracing::info!(
            adapter = adapter.name,
            controller = adapter.port.controller_name(),
            employer = of.employer.kind,
            employee = of.employee.kind,
            "enabled"
        );
        crew.push(Worker::new(adapter, numbers));
    }
    Ok((kinds, Crew(crew)))
}

/// The number of a kind in a list, into which it is put if it is new.
async fn number(
    errands: &Errands,
    list: &mut Vec<Followed>,
    gvk: &Gvk,
    gate: &Gate,
) -> Result<usize, String> {
    if let Some(known) = list.iter().position(|known| known.gvk == *gvk) {
        return Ok(known);
    }
    let followed = match built_in_kind(&gvk.group, &gvk.kind) {
        Some(known) => Followed::new(known.group, known.version, known.kind, known.plural, known.namespaced),
        None => found(errands, gvk, gate).await?,
    };
    list.push(Followed { gvk: gvk.clone(), ..followed });
    Ok(list.len() - 1)
}

/// A kind as the API server calls it, as soon as it serves it.
async fn found(errands: &Errands, gvk: &Gvk, gate: &Gate) -> Result<Followed, String> {
    loop {
        let why = match errands.kind(gvk, DEADLINE).await {
            Ok(Some((own, true))) => return Ok(Followed { gvk: gvk.clone(), own }),
            Ok(Some((_, false))) => {
                return Err(format!("{} has no namespaces: employers and employees must", gvk.kind));
            }
            Ok(None) => format!("the API server does not serve {} of {}", gvk.kind, gvk.api_version()),
            Err(OwnWriteError::Refused(error) | OwnWriteError::Passing(error)) => error,
            Err(error) => error.to_string(),
        };
        gate.set(Err(why));
        tokio::time::sleep(AGAIN).await;
    }
}
