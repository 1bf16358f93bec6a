//! How long conditions take to judge.
#![allow(missing_docs)]

use divan::{Bencher, black_box};
use linchpin_lang::cel::{Bindings, Expression};
use linchpin_lang::compare::FieldCondition;
use linchpin_lang::jsonpath::JsonPath;
use serde_json::{Value as Json, json};

fn main() {
    divan::main();
}

fn object() -> Json {
    json!({
        "metadata": {"name": "db", "generation": 3},
        "spec": {"replicas": 3},
        "status": {
            "phase": "Running", "readyReplicas": 3, "observedGeneration": 3, "list": (0..10_000).collect::<Vec<_>>(),
            "short": (0..200).collect::<Vec<_>>(),
            "conditions": [
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
                {"type": "Ready", "status": "True", "reason": "Ready"}
            ]
        }
    })
}

const EXPRESSIONS: &[&str] = &[
    "self.status.phase == 'Running'",
    "self.status.readyReplicas == self.spec.replicas && self.metadata.generation <= self.status.observedGeneration",
    "self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
    "self.?status.?missing.orValue('') == ''",
    "self.status.missing == 1",
    "self.status.list.all(x, x < 10000)",
    "self.status.short.all(x, self.status.short.exists(y, y == x))",
    "['aaaaaaaaaaaaaaaa'].map(x,x+x).map(x,x+x).map(x,x+x).map(x,x+x).map(x,x+x).map(x,x+x).map(x,x+x).map(x,x+x) == []",
];

#[divan::bench(args = EXPRESSIONS)]
fn cel(bencher: Bencher<'_, '_>, source: &str) {
    let object = object();
    let Ok(expression) = Expression::compile("f", source, &["self"]) else { return };
    let bindings = Bindings::from([("self", &object)]);
    bencher.bench_local(|| expression.evaluate(black_box(&bindings)));
}

#[divan::bench(args = EXPRESSIONS)]
fn cel_compile(source: &str) -> bool {
    Expression::compile("f", black_box(source), &["self"]).is_ok()
}

#[divan::bench(args = [".status.phase", "{.status.conditions[?(@.type==\"Ready\")].status}", ".status.list[*]", "..reason"])]
fn jsonpath(bencher: Bencher<'_, '_>, source: &str) {
    let object = object();
    let Ok(path) = JsonPath::compile("f", source) else { return };
    bencher.bench_local(|| path.find(black_box(&object)).map(|found| found.len()));
}

#[divan::bench]
fn condition(bencher: Bencher<'_, '_>) {
    let object = object();
    let Ok(condition) = FieldCondition::compile("f", ".status.readyReplicas", Some("gte"), Some(&json!("3")))
    else {
        return;
    };
    bencher.bench_local(|| condition.evaluate(black_box(&object)));
}
