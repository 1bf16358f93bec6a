//! Who comes after whom, as edges.

use super::*;

/// Groups from `name order: component order [dependsOn]` in few words.
fn groups(text: &str) -> Vec<BundleGroup> {
    serde_saphyr::from_str(text).expect("groups")
}

/// Who comes directly after whom, as text.
fn edges(text: &str, strict: bool) -> Vec<String> {
    let groups = groups(text);
    let order = order(&groups, strict, &[]).expect("an order");
    let places = Graph::new(&groups).places;
    let name = |position: usize| {
        let (group, component) = places[position];
        format!("{}/{}", groups[group].name, groups[group].components[component].name)
    };
    (0..places.len())
        .map(|position| {
            let before: Vec<String> = order.before(position).iter().map(|one| name(*one)).collect();
            format!("{} < {}", before.join(" "), name(position))
        })
        .collect()
}

const TWO: &str = "
    - {name: a, order: 0, components: [{name: x, order: 0}, {name: y, order: 0}, {name: z, order: 1}]}
    - {name: b, order: 1, components: [{name: w}]}";

#[test]
fn equal_orders_run_side_by_side_and_lower_ones_come_first() {
    assert_eq!(edges(TWO, false), [" < a/x", " < a/y", "a/x a/y < a/z", "a/z < b/w"]);
}

#[test]
fn strict_makes_every_list_a_line() {
    assert_eq!(edges(TWO, true), [" < a/x", "a/x < a/y", "a/y < a/z", "a/z < b/w"]);
}

#[test]
fn without_any_order_the_list_is_the_order() {
    let text = "
        - {name: a, components: [{name: x}, {name: y}]}
        - {name: b, components: [{name: z}]}";
    assert_eq!(edges(text, false), [" < a/x", "a/x < a/y", "a/y < b/z"]);
}

#[test]
fn a_missing_order_among_given_ones_is_zero() {
    let text = "[{name: a, components: [{name: x, order: 1}, {name: y}, {name: z, order: 0}]}]";
    assert_eq!(edges(text, false), ["a/y a/z < a/x", " < a/y", " < a/z"]);
}

#[test]
fn depends_on_of_a_component_replaces_the_edges_inside_its_group_only() {
    let text = "
        - {name: a, order: 0, components: [{name: x}]}
        - {name: b, order: 1, components: [{name: y, order: 0}, {name: z, order: 1, dependsOn: []}]}";
    assert_eq!(edges(text, false), [" < a/x", "a/x < b/y", "a/x < b/z"]);
}

#[test]
fn depends_on_of_a_group_replaces_the_edges_between_groups() {
    let text = "
        - {name: a, order: 0, components: [{name: x}]}
        - {name: b, order: 1, dependsOn: [], components: [{name: y}]}
        - {name: c, order: 2, dependsOn: [a], components: [{name: z, dependsOn: [b/y]}]}";
    assert_eq!(edges(text, false), [" < a/x", " < b/y", "a/x b/y < c/z"]);
    let order = order(&groups(text), false, &[]).expect("an order");
    assert_eq!(order.before_group(2), [0]);
}

#[test]
fn what_is_no_gate_is_passed_over_but_not_what_is_before_it() {
    let text = "
        - {name: a, order: 0, components: [{name: x}]}
        - {name: b, order: 1, components: [{name: y, gate: false}]}
        - {name: c, order: 2, components: [{name: z}]}
        - {name: d, order: 3, dependsOn: [b/y], components: [{name: w}]}";
    assert_eq!(edges(text, false), [" < a/x", "a/x < b/y", "a/x < c/z", "b/y < d/w"]);
}

#[test]
fn a_circle_is_spelled_out() {
    let text = "
        - {name: a, dependsOn: [b], components: [{name: x}]}
        - {name: b, dependsOn: [a], components: [{name: y}]}";
    let error = order(&groups(text), false, &[]).map(|_| ()).expect_err("a circle");
    assert_eq!(
        error.to_string(),
        "spec.groups[0].components[0]: components wait for each other: a/x → b/y → a/x"
    );
}

#[test]
fn names_that_are_not_there_are_told_with_those_that_are() {
    for (text, expected) in [
        (
            "[{name: a, dependsOn: [c], components: [{name: x}]}]",
            "spec.groups[0].dependsOn[0]: there is no group \"c\"; there are a",
        ),
        (
            "[{name: a, components: [{name: x, dependsOn: [y]}]}]",
            "spec.groups[0].components[0].dependsOn[0]: there is no component \"y\" in group \"a\", and no other \
             group of that name; there are x",
        ),
        (
            "[{name: a, components: [{name: x, dependsOn: [a/y]}]}]",
            "spec.groups[0].components[0].dependsOn[0]: there is no component \"y\" in group \"a\"; there are x",
        ),
        (
            "[{name: a, components: [{name: x, dependsOn: [x]}]}]",
            "spec.groups[0].components[0].dependsOn[0]: a component cannot depend on itself",
        ),
        (
            "[{name: a, dependsOn: [a], components: [{name: x}]}]",
            "spec.groups[0].dependsOn[0]: a group cannot depend on itself",
        ),
    ] {
        let error = order(&groups(text), false, &[]).map(|_| ()).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn who_reads_a_component_comes_after_it() {
    let groups = groups("[{name: a, components: [{name: x, order: 0}, {name: y, order: 0}]}]");
    let order = order(&groups, false, &[(0, 1)]).expect("an order");
    assert_eq!((order.before(0), order.before(1)), (&[1][..], &[][..]));
}

#[test]
fn a_circle_that_a_missing_order_closes_says_so() {
    for (text, expected) in [
        (
            "[{name: a, dependsOn: [b], components: [{name: x}]}, {name: b, order: 1, components: [{name: y}]}]",
            "spec.groups[0].components[0]: components wait for each other: a/x → b/y → a/x; group \"a\" has no order, \
             which counts as 0 beside those that have one",
        ),
        (
            "[{name: a, components: [{name: x, dependsOn: [y]}, {name: y, order: 1}]}]",
            "spec.groups[0].components[0]: components wait for each other: a/x → a/y → a/x; component \"x\" has no \
             order, which counts as 0 beside those that have one",
        ),
    ] {
        let error = order(&groups(text), false, &[]).map(|_| ()).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
}
