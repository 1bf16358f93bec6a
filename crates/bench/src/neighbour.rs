//! Noisy neighbours: what one namespace's hops cost while another one does its worst.
//!
//! Namespace `b` runs hops, first alone and then beside each attack of a namespace `a`. Told are the hops' p50 and p99
//! against those of the quiet time, the operator's memory, and whether `/livez` stayed green. The attacks use the same
//! API server and the same two cores, so a part of the ratio is theirs.

use anyhow::{Result, bail};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use crate::{
    Sizes,
    arena::{Arena, Plan, config_map},
    foreign, hop,
    operator::Operator,
    say,
    table::{Table, percentile},
};

/// How often `/livez` is asked.
const PULSE: Duration = Duration::from_millis(250);
/// Between two rounds of an attack that goes on.
const ROUND: Duration = Duration::from_millis(50);
/// Objects that a selector of an attack matches.
const CROWD: usize = 1_000;
/// Effects that hang: more than may be under way.
const HANGING: usize = 40;

/// What goes on while the hops are measured; ends when it is dropped.
type Goes = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

pub(crate) async fn measure(arena: &Arena, program: &str, sizes: Sizes, table: &mut Table) -> Result<()> {
    let mut operator = Operator::start_with(arena, program, &["--allow-loopback-clusters"]).await?;
    say("a namespace's hops, alone …");
    let mut alone = beside(arena, &operator, sizes, "quiet", Box::pin(std::future::pending())).await?;
    let quiet = [percentile(&mut alone.hops, 50), percentile(&mut alone.hops, 99)];
    for attack in ["cel", "hanging", "endless", "budget", "flapping"] {
        say(&format!("the same while a neighbour does its worst: {attack} …"));
        let noisy = format!("noisy-{attack}");
        arena.namespace(&noisy).await?;
        let goes = match attack {
            "cel" => cel(arena, &noisy).await?,
            "hanging" => hanging(arena, &operator, &noisy).await?,
            "endless" => endless(arena, &noisy).await?,
            "budget" => budget(arena, &noisy).await?,
            _ => flapping(arena, &noisy).await?,
        };
        let mut seen = beside(arena, &operator, sizes, attack, goes).await?;
        for ((name, hundredths), quiet) in [("p50", 50), ("p99", 99)].into_iter().zip(quiet) {
            let ours = percentile(&mut seen.hops, hundredths);
            table.ratio(
                &format!("hop beside a neighbour, {attack}, {name}, to the quiet one"),
                quiet,
                ours,
                3.0,
            );
        }
        let health = if seen.failed == 0 {
            "green".to_owned()
        } else {
            format!("{} of {} failed", seen.failed, seen.asked)
        };
        table.plain(
            &format!("{attack}: most memory, /livez"),
            &format!("{:.0} MB, {health}", seen.memory),
            "green",
        );
        arena.remove_plans(&noisy).await?;
    }
    operator.stop().await
}

/// What was seen while something went on.
struct Beside {
    hops: Vec<Duration>,
    memory: f64,
    asked: usize,
    failed: usize,
}

/// Measures hops in a namespace of their own while something goes on.
async fn beside(arena: &Arena, operator: &Operator, sizes: Sizes, name: &str, goes: Goes) -> Result<Beside> {
    let namespace = format!("neighbour-{name}");
    arena.namespace(&namespace).await?;
    let plans: Vec<Plan> = (0..sizes.hops)
        .map(|number| Plan {
            name: format!("hop-{number}"),
            waits_for: format!("cause-{number}"),
            creates: format!("effect-{number}"),
            on_content: false,
        })
        .collect();
    arena.plans(&namespace, &plans).await?;
    let (asked, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut memory: f64 = 0.0;
    let watch = async {
        loop {
            asked.fetch_add(1, Ordering::Relaxed);
            if !operator.is_alive().await {
                failed.fetch_add(1, Ordering::Relaxed);
            }
            memory = memory.max(operator.memory()?.0);
            tokio::time::sleep(PULSE).await;
        }
    };
    let hops = async {
        // What a start costs is told elsewhere.
        tokio::time::sleep(Duration::from_secs(3)).await;
        hop::hops(arena, &namespace, sizes.hops).await
    };
    let hops = tokio::select! {
        hops = hops => hops?,
        ended = watch => return ended,
        ended = goes => bail!("the neighbour stopped: {:?}", ended.err()),
    };
    arena.remove_plans(&namespace).await?;
    Ok(Beside { hops, memory, asked: asked.into_inner(), failed: failed.into_inner() })
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

/// Changes one ConfigMap of the crowd again and again, so that whoever selects it is called.
fn stir(arena: &Arena, namespace: &str) -> Goes {
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
async fn cel(arena: &Arena, namespace: &str) -> Result<Goes> {
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
async fn hanging(arena: &Arena, operator: &Operator, namespace: &str) -> Result<Goes> {
    let way = foreign::Frozen::open(&arena.kubeconfig(), &arena.server())?;
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
    // The way lives on in its threads.
    Ok(Box::pin(std::future::pending()))
}

/// Clusters whose answers never end.
async fn endless(arena: &Arena, namespace: &str) -> Result<Goes> {
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
    Ok(Box::pin(std::future::pending()))
}

/// Forty selections of the same thousand objects, each of them a watch of its own, and hundreds of names.
async fn budget(arena: &Arena, namespace: &str) -> Result<Goes> {
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
async fn flapping(arena: &Arena, namespace: &str) -> Result<Goes> {
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
