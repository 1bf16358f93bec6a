//! The plans that are explored.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use linchpin_engine::{
    contract::Want,
    plan::{Delivery, Drift, Plan, Prune, Recovery, Removal, Rerun, SpecError, Terms},
};

use crate::build::{MANAGER, NAMESPACE, Steps, apply, config_map, delete, exec, plan_with, require, via};

/// A plan, the plan of a second generation, and how much may go wrong.
pub struct Shape {
    pub name: &'static str,
    pub first: Plan,
    pub second: Option<Plan>,
    /// Crashes, failed requests, lost answers and flips back, together.
    pub faults: u8,
    /// How often an hour may pass.
    pub ticks: u8,
    /// How often the spec may become invalid.
    pub slips: u8,
    /// What is wrong with the spec while it is invalid.
    pub invalid: SpecError,
    /// Whether the object may be deleted.
    pub deletion: bool,
    /// Whether what leaves the plan is taken away.
    pub prunes: bool,
    /// Everything that was ever asked for: what the cache may be asked to show.
    pub asked: RefCell<BTreeSet<Want>>,
    /// States from which a good world is known to lead to the end.
    pub good: RefCell<HashSet<u64>>,
}

fn shape(name: &'static str, steps: fn(i64) -> Vec<linchpin_engine::plan::Step>, terms: Terms) -> Shape {
    Shape {
        name,
        first: plan_with(1, steps(1), terms.clone()),
        second: Some(plan_with(2, steps(2), terms)),
        faults: 3,
        ticks: 2,
        slips: 1,
        invalid: SpecError::new("spec", "is invalid"),
        deletion: false,
        prunes: false,
        asked: RefCell::default(),
        good: RefCell::default(),
    }
}

fn changed(mut step: linchpin_engine::plan::Step, generation: i64) -> linchpin_engine::plan::Step {
    if generation == 2 {
        step.definition.push_str("-changed");
    }
    step
}

pub fn all() -> Vec<Shape> {
    let timed = Terms { global_timeout: None, ..Terms::default() };
    let deleting = Terms { removal: Removal::Delete, ..Terms::default() };
    let mut shapes = vec![
        shape("one action", |_| vec![require("a"), apply("x").after(&["a"])], Terms::default()),
        shape(
            "one command",
            |_| vec![require("a"), exec("run", Delivery::AtMostOnce).after(&["a"])],
            Terms::default(),
        ),
        shape(
            "a command after an action",
            |generation| {
                vec![
                    require("a"),
                    changed(apply("x"), generation).after(&["a"]),
                    exec("run", Delivery::AtMostOnce).after(&["a", "x"]),
                ]
            },
            Terms::default(),
        ),
        shape(
            "a command that may repeat",
            |_| vec![require("a"), exec("run", Delivery::AtLeastOnce).after(&["a"])],
            Terms::default(),
        ),
        Shape {
            second: None,
            ..shape(
                "a deletion",
                |_| vec![require("a"), delete("drop", "old").after(&["a"])],
                Terms::default(),
            )
        },
        shape(
            "two tiers",
            |_| vec![require("a"), require("b").after(&["a"]), apply("x").after(&["b"])],
            Terms::default(),
        ),
        shape(
            "a timeout",
            |_| {
                let mut late = require("a");
                late.timeout = Some(Duration::from_secs(60));
                vec![late, apply("x").after(&["a"]), exec("run", Delivery::AtMostOnce).after(&["x"])]
            },
            timed,
        ),
        shape(
            "ready before the next",
            |generation| {
                let wait = require("made-x").asking(|requirement| requirement.floor = Some("x".into()));
                vec![
                    changed(apply("x"), generation),
                    wait.after(&["x"]),
                    exec("run", Delivery::AtMostOnce).after(&["made-x"]),
                ]
            },
            Terms::default(),
        ),
        shape(
            "two in parallel, then one",
            |generation| {
                vec![
                    apply("x"),
                    changed(exec("run", Delivery::AtMostOnce), generation),
                    apply("z").after(&["x"]).after_end(&["run"]),
                ]
            },
            Terms::default(),
        ),
        shape(
            "manual recovery",
            |_| {
                let mut late = require("a");
                late.timeout = Some(Duration::from_secs(60));
                vec![late, apply("x").after(&["a"])]
            },
            Terms { recovery: Recovery::Manual, ..Terms::default() },
        ),
    ];
    // Fewer faults, so that the same number of states reaches further: past a second generation of the write.
    for deep in shapes.iter_mut().filter(|shape| shape.name == "ready before the next") {
        deep.faults = 1;
        deep.ticks = 0;
    }
    let mut removal = shape(
        "two objects, taken away again",
        |_| vec![require("a"), apply("x").tracked().after(&["a"]), apply("y").tracked().after(&["x"])],
        deleting,
    );
    removal.deletion = true;
    removal.second = None;
    shapes.push(removal);
    // Little else happens, so that few states reach past a crash while the spec is invalid.
    let mut slipping = shape(
        "a spec that slips",
        |_| vec![exec("run", Delivery::AtMostOnce), apply("x").after(&["run"])],
        Terms::default(),
    );
    slipping.second = None;
    (slipping.faults, slipping.ticks, slipping.slips) = (1, 0, 2);
    shapes.push(slipping);
    shapes.push(replaced());
    shapes.push(kept());
    shapes
}

/// One object that another one takes the place of. Nothing fails, so that few states reach far.
fn replaced() -> Shape {
    let terms = Terms { removal: Removal::Delete, watch: true, ..Terms::default() };
    let steps = |generation| vec![keep(if generation == 1 { "y" } else { "x" })];
    Shape {
        name: "replaced",
        first: plan_with(1, steps(1), terms.clone()),
        second: Some(plan_with(2, steps(2), terms)),
        faults: 0,
        ticks: 0,
        slips: 1,
        invalid: SpecError::new("spec", "is invalid"),
        deletion: false,
        prunes: true,
        asked: RefCell::default(),
        good: RefCell::default(),
    }
}

/// An action that keeps what it wrote.
fn keep(id: &str) -> linchpin_engine::plan::Step {
    let object = format!("made-{id}");
    apply(id).tracked().with(|action| {
        let object = Drift::object(via(), config_map(), Some(NAMESPACE.to_owned()), object, MANAGER);
        action.rerun = Rerun::OnDrift(Drift { objects: vec![object], ..Drift::default() });
        action.prune = Prune::All;
    })
}

/// Two objects that are kept as they were written; the second generation changes one of them and leaves the other out.
fn kept() -> Shape {
    let terms = Terms { removal: Removal::Delete, watch: true, ..Terms::default() };
    let steps = |generation| {
        let ready = require("made-x").asking(|requirement| requirement.floor = Some("x".into()));
        let mut steps = vec![changed(keep("x"), generation), ready.after(&["x"])];
        if generation == 1 {
            steps.push(keep("y").after(&["made-x"]));
        }
        steps
    };
    Shape {
        name: "kept as written, then pruned",
        first: plan_with(1, steps(1), terms.clone()),
        second: Some(plan_with(2, steps(2), terms)),
        faults: 1,
        ticks: 1,
        slips: 1,
        invalid: SpecError::new("spec", "is invalid"),
        deletion: false,
        prunes: true,
        asked: RefCell::default(),
        good: RefCell::default(),
    }
}
