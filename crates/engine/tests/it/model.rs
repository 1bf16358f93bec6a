//! Model checking: every way a small plan can go.
//!
//! The explorer is our own and not stateright's: the transition of interest is the real `step` (judge, advance and
//! render together), whose states are plain values that hash; and liveness here is not "eventually on every path"
//! but "from every state that can be reached, a good world leads to the end", which is a second, deterministic walk
//! from each state. Both are a page of code; a framework would add forty-five crates and neither of the two.
//!
//! `cargo test` explores at least 10^5 states over all shapes, on two threads; `make model` at least 10^6. Both print the
//! counts.

mod bug;
mod explore;
mod rules;
mod shape;
mod state;

use bug::Bug;
use explore::explore;
use shape::Shape;

/// States that every run explores at least, over all shapes.
const EVERY_RUN: usize = 100_000;
/// States that the full run explores at least.
const FULL_RUN: usize = 1_000_000;

/// States that are searched for one seeded bug at most.
const PER_BUG: usize = 20_000;

#[test]
fn no_way_a_small_plan_can_go_breaks_a_law() {
    let full = std::env::var("LINCHPIN_MODEL").is_ok_and(|word| word == "full");
    let goal = if full { FULL_RUN } else { EVERY_RUN };
    let mut shapes = shape::all();
    // Where little goes wrong there may be fewer states than asked for: what is left over goes to the others.
    shapes.sort_by_key(|shape| shape.faults);
    let mut halves = [Vec::new(), Vec::new()];
    for (index, shape) in shapes.into_iter().enumerate() {
        halves[index % 2].push(shape);
    }
    let total: usize = std::thread::scope(|scope| {
        let walks = halves.map(|shapes| scope.spawn(move || walk(&shapes, goal.div_ceil(2))));
        walks.map(|walk| walk.join().expect("no violation")).iter().sum()
    });
    println!("model: {total} distinct states, no violation");
    assert!(total >= goal, "only {total} states were explored; {goal} are asked for");
}

/// Explores so many states of some shapes together. What a small shape leaves over, the later ones may use.
fn walk(shapes: &[Shape], goal: usize) -> usize {
    let mut total = 0;
    for (index, shape) in shapes.iter().enumerate() {
        let limit = (goal - total).div_ceil(shapes.len() - index);
        let explored = explore(shape, None, limit);
        if let Some(violation) = explored.violation {
            panic!("{}: {violation}", shape.name);
        }
        let all = if explored.whole { " (all)" } else { "" };
        println!("model: {:<28} {:>8} states{all}", shape.name, explored.states);
        total = goal.min(total + explored.states);
    }
    total
}

#[test]
fn the_checker_catches_every_seeded_bug() {
    let shapes = shape::all();
    for bug in Bug::ALL {
        let shape = shapes.iter().find(|shape| shape.name == bug.shows_in()).expect("a shape of that name");
        let explored = explore(shape, Some(*bug), PER_BUG);
        let Some(violation) = explored.violation else {
            panic!("the bug {bug:?} was not caught in {} states of {}", explored.states, shape.name);
        };
        let first = violation.lines().next().unwrap_or_default();
        println!("bug {bug:?}: caught in {} after {} states: {first}", shape.name, explored.states);
    }
}
