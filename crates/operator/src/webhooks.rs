//! Admission webhooks: a TLS server on every replica, its certificates, and the configurations that name it.
//!
//! Nobody's work depends on it: every configuration says `failurePolicy: Ignore`, what cannot be answered is allowed
//! unchanged, and the controller repairs what was missed. `server` takes requests within limits of size, depth, time and
//! number; `review` reads and writes AdmissionReviews; `keeper` looks after certificates and configurations; `boot` has
//! the three webhooks of BootDependency, with `memory` of what they must know. A further kind adds handlers to
//! `boot::handlers` and rows to `configuration`.

mod boot;
pub(crate) mod configuration;
mod counts;
pub(crate) mod keeper;
pub mod label_selector;
mod material;
mod memory;
mod owners;
pub(crate) mod review;
pub(crate) mod server;
mod settings;
mod shared_requests;
mod webhook_reads;

use std::sync::Arc;

use linchpin_cluster::own::OperatorRequests;
use tokio::net::TcpListener;

use self::{
    boot::BootWebhooks,
    counts::WebhookCounts,
    keeper::{Content, KeptWebhooks, WebhookKeeper},
    memory::BootMemory,
    server::{Certificate, Handlers},
};
use crate::{
    boot::{cluster_domain, own_namespace},
    run::{Context, RunError, listen},
};

pub(crate) use self::configuration::SYSTEM as SYSTEM_NAMESPACES;
pub use self::settings::{ReachedError, WebhookAddress, WebhookSettings};
pub use crate::certificates::{CertificateFault, inspect};

/// The webhook that refuses BootDependencies that wait for each other.
pub const BOOT_WEBHOOK: &str = boot::BOOT_DEPENDENCIES.0;
/// The Secret with the operator's certificate.
pub const SECRET: &str = "linchpin-webhook-tls";
/// The Secret with the certificate of `linchpin consist`.
pub const CONSIST_SECRET: &str = "linchpin-consist-webhook-tls";

/// Serves until the process stops. Returns at once where webhooks are switched off.
pub(crate) async fn serve(context: &Context) -> Result<(), RunError> {
    let Some(settings) = context.settings.webhooks.clone() else {
        return Ok(());
    };
    let Some(listener) = listen(settings.address, "webhooks").await? else {
        return Ok(());
    };
    let settings = Arc::new(settings);
    let own_requests = OperatorRequests::new(&context.transport);
    let memory = BootMemory::default();
    let webhooks = BootWebhooks::new(
        own_requests.clone(),
        memory.clone(),
        Arc::clone(&settings),
        context.settings.default_service_account.clone(),
        cluster_domain(&context.settings),
        context.tallies.clone(),
        context.settings.watch_namespaces.clone(),
    );
    let charge = KeptWebhooks {
        secret: SECRET,
        content: Arc::new(|which, ingredients| Some(configuration::whole(which, ingredients))),
        whole: false,
        untouched: own_namespace(context).unwrap_or_default(),
    };
    tokio::join!(
        memory.follow(&own_requests, &context.settings.watch_namespaces, &settings.namespaces),
        answer(context, &settings, listener, charge, boot::handlers(webhooks)),
    );
    Ok(())
}

/// Serves the webhooks of the consist process until it stops. Returns at once where webhooks are switched off.
pub(crate) async fn serve_consist(
    context: &Context,
    handlers: Handlers,
    says: Content,
) -> Result<(), RunError> {
    let Some(settings) = context.settings.webhooks.clone() else {
        tracing::info!("webhooks are off: new pods are marked late, and deletions are not held");
        return Ok(());
    };
    let Some(listener) = listen(settings.address, "webhooks").await? else {
        return Ok(());
    };
    let untouched = own_namespace(context).unwrap_or_default();
    let charge = KeptWebhooks { secret: CONSIST_SECRET, content: says, whole: true, untouched };
    Box::pin(answer(context, &Arc::new(settings), listener, charge, handlers)).await;
    Ok(())
}

/// Answers reviews with these handlers, and keeps the certificate and the configurations for it.
async fn answer(
    context: &Context,
    settings: &Arc<WebhookSettings>,
    listener: TcpListener,
    charge: KeptWebhooks,
    handlers: Handlers,
) {
    let counts = WebhookCounts::default();
    let certificate = Certificate::default();
    context.metrics.register(|registry| {
        counts.register(registry);
        certificate.register(registry);
    });
    let keeper = WebhookKeeper::new(
        OperatorRequests::new(&context.transport),
        charge,
        Arc::clone(settings),
        settings.reached.names(&cluster_domain(&context.settings)),
        context.namespace.clone(),
        context.leadership.clone(),
        certificate.clone(),
    );
    tokio::join!(keeper.run(), server::serve(listener, certificate, handlers, counts));
}
