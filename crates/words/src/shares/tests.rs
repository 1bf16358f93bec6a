use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// As the driver has them: twice the limit, of commands twice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Here,
    Elsewhere,
    Command,
}

impl Lane for Way {
    fn places(self, limit: usize) -> usize {
        limit * if self == Self::Command { 4 } else { 2 }
    }
}

fn here() -> Route<Way> {
    Route { lane: Way::Here, backend: None }
}

fn elsewhere(cluster: &str) -> Route<Way> {
    Route { lane: Way::Elsewhere, backend: Some(cluster.to_owned()) }
}

fn command() -> Route<Way> {
    Route { lane: Way::Command, backend: None }
}

/// Starts all that may start; the effects.
fn started(shares: &mut Shares<Way, &'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| shares.pop().map(|(_, effect)| effect)).collect()
}

#[test]
fn a_namespace_alone_has_the_limit_under_way_and_no_more() {
    for (limit, asked, under_way) in [(16, 15, 15), (16, 16, 16), (16, 17, 16), (16, 1600, 16), (1, 100, 1)] {
        let mut shares = Shares::new(limit);
        for _ in 0..asked {
            shares.push("a", here(), 0, "a");
        }
        assert_eq!(started(&mut shares).len(), under_way, "{asked} with limit {limit}");
        assert_eq!(shares.has_waiting(), asked > under_way);
    }
}

#[test]
fn who_comes_later_finds_places_although_nothing_comes_back() {
    let mut shares = Shares::new(16);
    let mut got = Vec::new();
    for namespace in ["a", "b", "c", "d", "e"] {
        for _ in 0..100 {
            shares.push(namespace, here(), 0, namespace);
        }
        got.push(started(&mut shares).len());
    }
    assert_eq!(got, [16, 8, 4, 2, 1]);
}

#[test]
fn a_lane_that_hangs_keeps_no_other_waiting_not_even_for_its_own_namespace() {
    let mut shares = Shares::new(2);
    for _ in 0..100 {
        shares.push("a", elsewhere("x"), 0, "remote");
        shares.push("a", command(), 0, "command");
    }
    assert_eq!(started(&mut shares).len(), 2 + 4);
    shares.push("a", here(), 9, "write");
    shares.push("b", elsewhere("y"), 0, "theirs");
    assert_eq!(started(&mut shares), ["write", "theirs"]);
}

#[test]
fn a_cluster_that_hangs_leaves_places_whoever_writes_to_it() {
    let mut shares = Shares::new(16);
    for namespace in ["a", "b", "c", "d"] {
        for _ in 0..100 {
            shares.push(namespace, elsewhere("hangs"), 0, "hangs");
        }
    }
    assert_eq!(started(&mut shares).len(), 16);
    shares.push("a", elsewhere("answers"), 0, "answers");
    shares.push("e", elsewhere("answers"), 0, "answers");
    assert_eq!(started(&mut shares), ["answers", "answers"]);
}

#[test]
fn namespaces_take_turns_and_priorities_count_within_one() {
    let mut shares = Shares::new(1);
    for (namespace, priority, name) in
        [("a", 9, "late"), ("a", 1, "early"), ("b", 5, "other"), ("a", 1, "early too")]
    {
        shares.push(namespace, here(), priority, name);
    }
    let mut order = Vec::new();
    while let Some((place, name)) = shares.pop() {
        order.push(name);
        shares.end(&place);
    }
    assert_eq!(order, ["early", "other", "early too", "late"]);
}

#[test]
fn what_is_withdrawn_is_not_started_and_holds_nothing_up() {
    let mut shares = Shares::new(1);
    let first = shares.push("a", here(), 0, "first");
    let second = shares.push("a", here(), 0, "second");
    shares.push("b", here(), 0, "other");
    assert_eq!(shares.withdraw(&first), Some("first"));
    assert_eq!(shares.withdraw(&first), None);
    assert_eq!(shares.withdraw(&second), Some("second"));
    assert_eq!(started(&mut shares), ["other"]);
    shares.push("a", here(), 0, "later");
    assert_eq!(started(&mut shares), ["later"], "the namespace has its turn again");
    assert!(!shares.has_waiting());
}

#[derive(Clone, Debug)]
enum Move {
    Push(usize, usize),
    Pop,
    End(usize),
    Withdraw(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let push = (0..5usize, 0..4usize).prop_map(|(namespace, route)| Move::Push(namespace, route));
    let one = prop_oneof![3 => push, 3 => Just(Move::Pop), 2 => (0..64usize).prop_map(Move::End), 1 => (0..64usize).prop_map(Move::Withdraw)];
    prop::collection::vec(one, 0..200)
}

proptest! {
    #[test]
    fn no_story_starts_too_much_loses_anything_or_keeps_a_newcomer_waiting(limit in 1..6usize, moves in moves()) {
        let namespaces = ["a", "b", "c", "d", "e"];
        let routes = [here(), elsewhere("x"), elsewhere("y"), command()];
        let mut shares = Shares::new(limit);
        let (mut pushed, mut popped) = (0, BTreeSet::new());
        let mut held: Vec<Slot<Way>> = Vec::new();
        let mut waiting: Vec<(usize, usize, usize)> = Vec::new();
        let mut tickets = Vec::new();
        for next in moves {
            match next {
                Move::Push(namespace, route) => {
                    tickets.push(shares.push(namespaces[namespace], routes[route].clone(), 0, pushed));
                    waiting.push((pushed, namespace, route));
                    pushed += 1;
                }
                Move::Pop => match shares.pop() {
                    Some((place, effect)) => {
                        prop_assert!(popped.insert(effect), "started twice");
                        waiting.retain(|(number, ..)| *number != effect);
                        held.push(place);
                    }
                    None => for (_, namespace, route) in &waiting {
                        let (namespace, route) = (namespaces[*namespace], &routes[*route]);
                        let lane: Vec<&Slot<Way>> = held.iter().filter(|place| place.route.lane == route.lane).collect();
                        let new = lane.iter().all(|place| place.namespace != namespace
                            && (route.backend.is_none() || place.route.backend != route.backend));
                        prop_assert!(!new || lane.len() >= route.lane.places(limit), "{namespace} waits");
                    },
                },
                Move::End(index) => if !held.is_empty() {
                    let place = held.remove(index % held.len());
                    shares.end(&place);
                },
                Move::Withdraw(index) => if !tickets.is_empty() {
                    let number = index % tickets.len();
                    let waits = waiting.iter().any(|(waiting, ..)| *waiting == number);
                    prop_assert_eq!(shares.withdraw(&tickets[number]), waits.then_some(number));
                    waiting.retain(|(waiting, ..)| *waiting != number);
                },
            }
            for route in &routes {
                let lane: Vec<&Slot<Way>> = held.iter().filter(|place| place.route.lane == route.lane).collect();
                let half = route.lane.places(limit) / 2;
                prop_assert_eq!(shares.under_way(route.lane), lane.len());
                prop_assert!(lane.len() <= half * 2);
                for namespace in namespaces {
                    prop_assert!(lane.iter().filter(|place| place.namespace == namespace).count() <= half);
                }
                if route.backend.is_some() {
                    prop_assert!(lane.iter().filter(|place| place.route == *route).count() <= half);
                }
            }
            prop_assert_eq!(shares.has_waiting(), !waiting.is_empty());
        }
    }
}
