//! Model checking: every way a small plan can go.
//!
//! The explorer is our own and not stateright's: the transition of interest is the real `step` (judge, advance and
//! render together), whose states are plain values that hash; and liveness here is not "eventually on every path"
//! but "from every state that can be reached, a good world leads to the end", which is a second, deterministic walk
//! from each state. Both are a page of code; a framework would add forty-five crates and neither of the two.
//!
//! `cargo test` explores at least 10^5 states over all shapes; `make model` at least 10^6. Both print the counts.

mod bug;
mod explore;
mod rules;
mod shape;
mod state;

use bug::Bug;
use explore::explore;

/// States that every run explores at least, over all shapes.
const EVERY_RUN: usize = 100_000;
/// States that the full run explores at least.
const FULL_RUN: usize = 1_000_000;

#[test]
fn no_way_a_small_plan_can_go_breaks_a_law() {
    let full = std::env::var("LINCHPIN_MODEL").is_ok_and(|word| word == "full");
    let goal = if full { FULL_RUN } else { EVERY_RUN };
    let shapes = shape::all();
    let each = goal.div_ceil(shapes.len());
    let mut total = 0;
    let mut spare = 0;
    for (index, shape) in shapes.iter().enumerate() {
        // What a small shape leaves over, the later ones may use.
        let limit =
            if index + 1 == shapes.len() { goal.saturating_sub(total).max(each) } else { each + spare };
        let explored = explore(shape, None, limit);
        if let Some(violation) = explored.violation {
            panic!("{}: {violation}", shape.name);
        }
        println!(
            "model: {:<28} {:>8} states{}",
            shape.name,
            explored.states,
            if explored.whole { " (all)" } else { "" }
        );
        total += explored.states;
        spare = limit.saturating_sub(explored.states);
    }
    println!("model: {total} distinct states, no violation");
    assert!(total >= goal, "only {total} states were explored; {goal} are asked for");
}

#[test]
fn the_checker_catches_every_seeded_bug() {
    let shapes = shape::all();
    for bug in Bug::ALL {
        let caught = shapes.iter().find_map(|shape| {
            let explored = explore(shape, Some(*bug), 20_000);
            explored.violation.map(|violation| (shape.name, explored.states, violation))
        });
        match caught {
            Some((shape, states, violation)) => {
                println!(
                    "bug {bug:?}: caught in {shape} after {states} states: {}",
                    violation.lines().next().unwrap_or_default()
                );
            }
            None => panic!("the bug {bug:?} was not caught"),
        }
    }
}
