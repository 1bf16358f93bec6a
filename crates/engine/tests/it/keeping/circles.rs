//! S2: a circle with a soft arc is admitted, and a hard one stops nobody else; and two mistakes about that which must be caught.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_engine::graph::{Edge, Graph, Node, Wait, WaitState};
use linchpin_words::{GroupKind, ObjectRef};
use proptest::prelude::*;

use super::seeded::runner;

/// How many Syncs are tied together.
const MANY: usize = 6;

/// Who waits for whom: from, to, and of a soft arc how old it is.
type Arc = (usize, usize, Option<i64>);

fn arcs() -> impl Strategy<Value = Vec<Arc>> {
    let age = prop_oneof![2 => Just(None), 1 => (0..4_i64).prop_map(Some)];
    prop::collection::vec((0..MANY, 0..MANY, age), 0..12)
}

/// What is done about circles.
#[derive(Clone, Copy, Debug)]
enum Breaks {
    AsTold,
    Nothing,
    EveryArc,
}

fn sync(number: usize) -> Node {
    let kind = GroupKind::new("linchpin.dev", "Sync");
    Node::here(ObjectRef::namespaced(kind, "shop", format!("s{number}")))
}

/// All that is reached over arcs.
fn reached(from: usize, arcs: &[Arc], goes: impl Fn(&Arc) -> bool) -> BTreeSet<usize> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        for (_, to, _) in arcs.iter().filter(|arc| arc.0 == next && goes(arc)) {
            if seen.insert(*to) {
                open.push(*to);
            }
        }
    }
    seen
}

/// Admits whoever may be admitted at once, and says what is wrong with that.
fn circles(arcs: &[Arc], breaks: Breaks) -> Result<(), String> {
    let mut once = BTreeMap::new();
    for (from, to, age) in arcs.iter().filter(|(from, to, _)| from != to) {
        once.entry((*from, *to)).or_insert(*age);
    }
    let arcs: Vec<Arc> = once.into_iter().map(|((from, to), age)| (from, to, age)).collect();
    let mut graph = Graph::new();
    for number in 0..MANY {
        let of = arcs.iter().filter(|arc| arc.0 == number).map(|(from, to, age)| {
            let wait = Wait { soft: *age, ..Wait::new(WaitState::InProgress, "NotReady") };
            Edge::waits(sync(*from), sync(*to), wait)
        });
        graph.set(&sync(number), of.collect::<Vec<_>>());
    }
    let is_broken = |from: usize, to: usize| match breaks {
        Breaks::AsTold => graph.broken_of_owner(&sync(from)).contains(&sync(to)),
        Breaks::Nothing => false,
        Breaks::EveryArc => true,
    };
    let mut admitted: BTreeSet<usize> = BTreeSet::new();
    for _ in 0..MANY {
        for number in 0..MANY {
            let mut waits = arcs.iter().filter(|arc| arc.0 == number);
            if waits.all(|(_, to, _)| admitted.contains(to) || is_broken(number, *to)) {
                admitted.insert(number);
            }
        }
    }
    let hard = |arc: &Arc| arc.2.is_none();
    let round: BTreeSet<usize> =
        (0..MANY).filter(|number| reached(*number, &arcs, hard).contains(number)).collect();
    for number in 0..MANY {
        let stuck = round.contains(&number);
        if stuck && admitted.contains(&number) {
            return Err(format!("S2: s{number} waits for itself and is admitted"));
        }
        if graph.cycle_of_owner(&sync(number)).is_some() != stuck {
            return Err(format!("S2: the circle is not told of its members alone: s{number}"));
        }
        let behind =
            reached(number, &arcs, |arc| !graph.broken_of_owner(&sync(arc.0)).contains(&sync(arc.1)));
        if !stuck && behind.is_disjoint(&round) && !admitted.contains(&number) {
            return Err(format!("S2: s{number} is held although no hard circle is behind it"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn s2_a_circle_with_a_soft_arc_is_admitted_and_a_hard_one_stops_nobody_else(arcs in arcs()) {
        circles(&arcs, Breaks::AsTold).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn breaking_no_arc_or_every_arc_is_caught_by_it() {
    for wrong in [Breaks::Nothing, Breaks::EveryArc] {
        let caught = runner().run(&arcs(), |arcs| circles(&arcs, wrong).map_err(TestCaseError::fail));
        assert!(caught.is_err(), "{wrong:?} is not caught");
    }
}
