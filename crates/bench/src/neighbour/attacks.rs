//! What a namespace can do to its neighbours: one function for each attack. Each sets itself up and returns what goes on
//! from then on.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::{future::Future, pin::Pin, time::Duration};

use crate::{
    arena::{Arena, config_map},
    foreign,
    operator::OperatorProcess,
};

/// All of them, by name.
pub(super) const ALL: [&str; 5] = ["cel", "hanging", "endless", "budget", "flapping"];

/// Between two rounds of an attack that goes on.
const ROUND: Duration = Duration::from_millis(50);
/// Objects that a selector of an attack matches.
const CROWD: usize = 1_000;
/// Effects that hang: more than may be under way.
const HANGING: usize = 40;

/// What goes on while the hops are measured; ends when it is dropped.
pub(super) type Attack = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// Nothing at all.
pub(super) fn none() -> Attack {
    Box::pin(std::future::pending())
}

/// Begins the attack of this name in a namespace.
pub(super) async fn begin(
    arena: &Arena,
    operator: &OperatorProcess,
    name: &str,
    namespace: &str,
) -> Result<Attack> {
    match name {
        "cel" => cel(arena, namespace).await,
        "hanging" => hanging(arena, operator, namespace).await,
        "endless" => endless(arena, namespace).await,
        "budget" => budget(arena, namespace).await,
        _ => flapping(arena, namespace).await,
    }
}

fn plan(namespace: &str, name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["serviceAccountName"] = json!("builder");
    json!({"apiVersion": "tools.kubestellar.io/v1", "kind": "ResourceDependency",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

/// A thousand ConfigMaps with a label and a few kilobytes each.
async fn crowd(arena: &Arena, namespace: &str) -> Result<()> {
    let bodies: Vec<Value> = (0..CROWD)
        .map(|number| {
            let mut body = config_map(&format!("crowd-{number}"));
            body["metadata"]["labels"] = json!({"crowd": "yes"});
            body["data"] = json!({"value": "x".repeat(2_000), "number": number.to_string()});
            body
        })
        .collect();
    arena.apply_all(namespace, &bodies).await
}

/// Changes one ConfigMap of the crowd again and again, so that every subject that selects it is called.
fn stir(arena: &Arena, namespace: &str) -> Attack {
    let api = arena.config_maps(namespace);
    Box::pin(async move {
        for round in 0_u64.. {
            let patch = json!({"data": {"round": round.to_string()}});
            api.patch("crowd-0", &PatchParams::default(), &Patch::Merge(&patch)).await?;
            tokio::time::sleep(ROUND).await;
        }
        Ok(())
    })
}

/// Costly CEL over a thousand objects, in twenty plans.
async fn cel(arena: &Arena, namespace: &str) -> Result<Attack> {
    crowd(arena, namespace).await?;
    let cel = "self.data.value.split('x').map(p, p + 'y').filter(p, p.size() > 1).size() > 5000";
    let bodies: Vec<Value> = (0..20)
        .map(|number| {
            let select = json!({"matchLabels": {"crowd": "yes"}});
            let dependency = json!({"name": "all", "resource": "configmap", "selector": select, "cel": cel,
                "expect": {"all": true}});
            plan(namespace, &format!("cel-{number}"), json!({"dependencies": [dependency]}))
        })
        .collect();
    arena.waits_of(namespace, &bodies).await?;
    Ok(stir(arena, namespace))
}

/// Writes and commands in a cluster that stops answering.
async fn hanging(arena: &Arena, operator: &OperatorProcess, namespace: &str) -> Result<Attack> {
    let way = foreign::FreezableProxy::open(&arena.kubeconfig(), &arena.server())?;
    arena.secret(namespace, "edge", &way.kubeconfig).await?;
    let cluster = json!({"kubeconfigSecretRef": {"name": "edge", "key": "kubeconfig"}});
    let gate = json!([{"name": "gate", "resource": "configmap/gate"}]);
    let mut bodies = Vec::new();
    for number in 0..HANGING {
        let resource = config_map(&format!("hang-{number}"));
        let create = json!({"name": "make", "type": "create", "cluster": cluster, "resource": resource});
        let command =
            json!({"target": {"kind": "Pod", "name": "none"}, "command": ["sleep"], "timeout": "1h"});
        let exec = json!({"name": "run", "type": "exec", "cluster": cluster, "exec": command});
        for (kind, action) in [("create", create), ("exec", exec)] {
            let spec = json!({"dependencies": gate, "actions": [action]});
            bodies.push(plan(namespace, &format!("{kind}-{number}"), spec));
        }
    }
    arena.waits_of(namespace, &bodies).await?;
    operator.settle("Waiting", bodies.len()).await?;
    way.freeze();
    arena.write(namespace, "gate").await?;
    // It answers again when the attack is over.
    Ok(Box::pin(async move {
        let _way = way;
        std::future::pending().await
    }))
}

/// Clusters whose answers never end.
async fn endless(arena: &Arena, namespace: &str) -> Result<Attack> {
    let kubeconfig = foreign::endless()?;
    let mut bodies = Vec::new();
    for number in 0..4 {
        let secret = format!("edge-{number}");
        arena.secret(namespace, &secret, &kubeconfig).await?;
        let cluster = json!({"kubeconfigSecretRef": {"name": secret, "key": "kubeconfig"}});
        let spec = json!({"cluster": cluster, "dependencies": [{"name": "it", "resource": "configmap/it"}]});
        bodies.push(plan(namespace, &format!("endless-{number}"), spec));
    }
    arena.waits_of(namespace, &bodies).await?;
    Ok(none())
}

/// Forty selections of the same thousand objects, each of them a watch of its own, and hundreds of names.
async fn budget(arena: &Arena, namespace: &str) -> Result<Attack> {
    crowd(arena, namespace).await?;
    let mut bodies = Vec::new();
    for number in 0..40 {
        let expressions = json!([{"key": format!("not-{number}"), "operator": "DoesNotExist"}]);
        let select = json!({"matchLabels": {"crowd": "yes"}, "matchExpressions": expressions});
        let mut dependencies = vec![json!({"name": "all", "resource": "configmap", "selector": select,
            "cel": "self.data.value != ''", "expect": {"all": true}})];
        // More of them in one object take the API server seconds to check.
        for name in 0..20 {
            let resource = format!("configmap/none-{number}-{name}");
            dependencies.push(json!({"name": format!("n{name}"), "resource": resource}));
        }
        bodies.push(plan(namespace, &format!("budget-{number}"), json!({"dependencies": dependencies})));
    }
    arena.waits_of(namespace, &bodies).await?;
    Ok(stir(arena, namespace))
}

/// Phases and annotations that change all the time.
async fn flapping(arena: &Arena, namespace: &str) -> Result<Attack> {
    crowd(arena, namespace).await?;
    let bodies: Vec<Value> = (0..100)
        .map(|number| {
            let condition = json!([{"jsonPath": ".data.round", "operator": "eq", "value": "even"}]);
            let dependency = json!({"name": "it", "resource": "configmap/crowd-0", "conditions": condition});
            let spec = json!({"watchMode": true, "dependencies": [dependency]});
            plan(namespace, &format!("flap-{number}"), spec)
        })
        .collect();
    arena.waits_of(namespace, &bodies).await?;
    let (maps, waits) = (arena.config_maps(namespace), arena.waits(namespace));
    Ok(Box::pin(async move {
        for round in 0_usize.. {
            let value = if round.is_multiple_of(2) { "even" } else { "odd" };
            let patch = json!({"data": {"round": value}});
            maps.patch("crowd-0", &PatchParams::default(), &Patch::Merge(&patch)).await?;
            let name = format!("flap-{}", round % 100);
            let annotations = json!({"linchpin.dev/nothing": round.to_string(), "linchpin.dev/requested-at": round.to_string()});
            let patch = json!({"metadata": {"annotations": annotations}});
            waits.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
            tokio::time::sleep(ROUND).await;
        }
        Ok(())
    }))
}
