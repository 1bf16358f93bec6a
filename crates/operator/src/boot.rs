//! What serving BootDependency takes beside its door: the settings of holding pods, and the held pods of each namespace.

use std::sync::Arc;

use linchpin_api::common::{LabelSelector, SelectorOperator};
use linchpin_doors::{
    Registry,
    boot_dependency::{BootDependencies, BootSettings, HeldPods, WaiterSettings},
};

use crate::{
    run::Context,
    settings::{DoorName, Namespaces, Settings},
    webhooks::SYSTEM_NAMESPACES,
};

/// The domain of Services, as this process is configured or finds it.
pub(crate) fn cluster_domain(settings: &Settings) -> String {
    let resolv_conf = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    settings.probes.domain(&resolv_conf)
}

/// The namespace of the operator's own pods; none where it runs elsewhere.
pub(crate) fn own_namespace(context: &Context) -> Option<String> {
    context.settings.is_in_cluster().then(|| context.namespace.clone())
}

/// The kinds that are served, with held pods where BootDependencies are.
pub(crate) fn with_held_pods(kinds: Registry, context: &Context) -> Registry {
    if !context.settings.doors.has(DoorName::BootDependency) {
        return kinds;
    }
    let settings = Arc::new(settings(context));
    let boots = kinds.with(Arc::new(BootDependencies(Arc::clone(&settings))));
    boots.with(Arc::new(HeldPods(settings)))
}

fn settings(context: &Context) -> BootSettings {
    let settings = &context.settings;
    let namespaces: LabelSelector =
        serde_json::from_value(settings.boot_namespaces.clone()).unwrap_or_default();
    let equal = namespaces.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
    let listed = namespaces.match_expressions.iter().filter_map(|one| match one.operator {
        SelectorOperator::In => Some(format!("{}={}", one.key, one.values.first()?)),
        SelectorOperator::Exists => Some(format!("{}=", one.key)),
        SelectorOperator::NotIn | SelectorOperator::DoesNotExist => None,
    });
    let remedy: Vec<String> = equal.chain(listed).collect();
    let system = SYSTEM_NAMESPACES.iter().map(|&name| name.to_owned());
    BootSettings {
        remedy: remedy.join(" "),
        cluster_domain: Some(Arc::from(cluster_domain(settings))),
        namespaces,
        never: system.chain(own_namespace(context)).collect(),
        only: match &settings.watch_namespaces {
            Namespaces::All => None,
            Namespaces::Only(names) => Some(names.iter().cloned().collect()),
        },
        waiter: settings.webhooks.as_ref().map(|webhooks| WaiterSettings {
            image: webhooks.wait_image.clone(),
            cluster_domain: cluster_domain(settings),
            after: webhooks.boot_after.clone(),
        }),
    }
}
