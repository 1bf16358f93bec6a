//! The story that is shown: a shop opens, one dependency after another.
//!
//! It is `examples/quickstart`, shown live: objects that wait are applied, what they wait for is released file by file,
//! and after each release the tree shows what has become of it. Nothing but the operator carries out actions.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use linchpin_doors::{Registry, registry::ObjectView};
use linchpin_words::{ConditionStatus, ConditionType, condition};

use super::{client::DemoClient, say};
use crate::{live::LiveObjects, tree};

const RIGHTS: &str = include_str!("../../../../examples/quickstart/rbac.yaml");
const SHOP: &str = include_str!("../../../../examples/quickstart/shop.yaml");
const CREDENTIALS: &str = include_str!("../../../../examples/quickstart/release/1-credentials.yaml");
const MIGRATED: &str = include_str!("../../../../examples/quickstart/release/2-migrated.status.yaml");
const PAYMENT_KIND: &str = include_str!("../../../../examples/quickstart/release/3-payment-kind.yaml");
const PAYMENT: &str = include_str!("../../../../examples/quickstart/release/4-payment.yaml");
const HELD_POD: &str = include_str!("../../../../examples/bootdependency/held-pod.yaml");
const COUNTED: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: till-counted, namespace: shop}}";
const PAID: &str = include_str!("../../../../examples/quickstart/release/5-payment.status.yaml");

/// How long the operator may take for a step; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// When nothing has changed for so long, nothing more will by itself.
const SETTLED: Duration = Duration::from_millis(1_200);
const PAUSE: Duration = Duration::from_millis(50);

/// Prints it from the first line to the last.
pub(super) async fn run(client: &mut DemoClient, kinds: &Registry, has_webhooks: bool) -> Result<()> {
    client.apply(RIGHTS).await?;
    client.apply(SHOP).await?;
    say("Applied examples/quickstart/shop.yaml: four objects that wait for what is not there yet.\n");
    until(client, kinds, "all four wait", |live| live.count() == 4 && live.all_have_a_phase()).await?;
    show(client, kinds).await?;

    say("1. Somebody gives the shop its password: Secret db-credentials.");
    client.apply(CREDENTIALS).await?;
    until(client, kinds, "database is done", |live| live.is_ready("database")).await?;
    say("   → database has written ConfigMap db-config and started Job migrate.\n");
    show(client, kinds).await?;

    say("2. The migration finishes: Job migrate is Complete.");
    client.play(MIGRATED).await?;
    until(client, kinds, "migrate is done", |live| live.is_ready("migrate")).await?;
    say("   → migrate has noted the schema. The storefront waits for a kind that nobody serves:\n");
    show(client, kinds).await?;

    say("3. The payment operator is installed: kind Payment is served from now on.");
    client.apply(PAYMENT_KIND).await?;
    let payment = |state: &'static str| {
        move |live: &Shop<'_>| live.dependency("storefront", "payment") == Some(state.to_owned())
    };
    until(client, kinds, "the kind is noticed", payment("NotFound")).await?;
    say("   → noticed, without asking again and again.\n");

    say("4. A Payment is asked for …");
    client.apply(PAYMENT).await?;
    until(client, kinds, "the Payment is seen", payment("NotReady")).await?;
    show(client, kinds).await?;

    say("5. … and is ready.");
    client.play(PAID).await?;
    until(client, kinds, "the shop is open", |live| live.is_ready("storefront") && live.is_ready("shop"))
        .await?;
    say("   → storefront is connected, and the last action has run.\n");
    show(client, kinds).await?;

    if client.read("ConfigMap", "shop-open", "/data/open").await?.as_deref() != Some("yes") {
        bail!("the shop should be open, but ConfigMap shop-open does not say so");
    }
    say("The shop is open: ConfigMap shop-open says so.\n");
    if has_webhooks { hold_a_pod(client).await } else { Ok(()) }
}

/// A pod that must not start yet, and then may.
async fn hold_a_pod(client: &mut DemoClient) -> Result<()> {
    say("6. Pods wait too: applied examples/bootdependency/held-pod.yaml, Pod till and what it waits for.");
    let begun = Instant::now();
    client.apply(HELD_POD).await?;
    // The API server calls the webhooks once it has read that there are some.
    while gate(client).await?.is_none() {
        if begun.elapsed() > PATIENCE {
            bail!("not within {PATIENCE:?}: Pod till is held");
        }
        client.delete("Pod", "till").await?;
        tokio::time::sleep(PAUSE).await;
        client.apply(HELD_POD).await?;
    }
    say("   → Pod till is held until ConfigMap till-counted is there: kubectl says SchedulingGated.\n");
    say("7. Somebody counts the till: ConfigMap till-counted.");
    client.apply(COUNTED).await?;
    let counted = Instant::now();
    while gate(client).await?.is_some() {
        if counted.elapsed() > PATIENCE {
            bail!("not within {PATIENCE:?}: Pod till is released");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let taken = counted.elapsed().as_millis();
    say(&format!("   → Pod till is released after {taken} ms: a node may take it now.\n"));
    Ok(())
}

/// What holds Pod till, if anything does.
async fn gate(client: &DemoClient) -> Result<Option<String>> {
    client.read("Pod", "till", "/spec/schedulingGates/0/name").await
}

/// What there is to see, once it has settled: progress is written to statuses once a second at most.
async fn show(client: &DemoClient, kinds: &Registry) -> Result<()> {
    let begun = Instant::now();
    let (mut last, mut since) = (None, Instant::now());
    let live = loop {
        let live = LiveObjects::read(client.client(), &client.namespace, kinds).await?;
        let seen =
            Some(live.of_namespace(&client.namespace).map(|(_, one)| one.status()).collect::<Vec<_>>());
        if seen != last {
            (last, since) = (seen, Instant::now());
        }
        if since.elapsed() > SETTLED || begun.elapsed() > PATIENCE {
            break live;
        }
        tokio::time::sleep(PAUSE).await;
    };
    say(&tree::of_namespace(client.client(), &live, &client.namespace).await);
    Ok(())
}

/// Waits until the statuses say something. The story asks; the operator watches.
async fn until(
    client: &DemoClient,
    kinds: &Registry,
    what: &str,
    holds: impl Fn(&Shop<'_>) -> bool,
) -> Result<()> {
    let begun = Instant::now();
    loop {
        let live = LiveObjects::read(client.client(), &client.namespace, kinds).await?;
        if holds(&Shop { live: &live, namespace: &client.namespace }) {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            show(client, kinds).await?;
            bail!("not within {PATIENCE:?}: {what}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The objects of the story.
struct Shop<'a> {
    live: &'a LiveObjects,
    namespace: &'a str,
}

impl Shop<'_> {
    fn objects(&self) -> impl Iterator<Item = (&str, &dyn ObjectView)> {
        self.live.of_namespace(self.namespace)
    }

    fn find(&self, name: &str) -> Option<&dyn ObjectView> {
        self.objects().find(|(other, _)| *other == name).map(|(_, object)| object)
    }

    fn count(&self) -> usize {
        self.objects().count()
    }

    fn all_have_a_phase(&self) -> bool {
        self.objects().all(|(_, object)| object.said().is_some_and(|said| said.phase.is_some()))
    }

    fn is_ready(&self, name: &str) -> bool {
        let said = self.find(name).and_then(ObjectView::said);
        said.and_then(|said| condition::find(&said.conditions, ConditionType::Ready))
            .is_some_and(|ready| ready.status == ConditionStatus::True)
    }

    /// The state of a dependency of an object.
    fn dependency(&self, name: &str, dependency: &str) -> Option<String> {
        let status = self.find(name)?.status()?;
        let entries = status.get("dependencies")?.as_array()?;
        let entry = entries.iter().find(|entry| entry["name"] == dependency)?;
        Some(entry.get("state")?.as_str()?.to_owned())
    }
}
