//! The sentences people read.

use jiff::Timestamp;

use super::*;
use linchpin_words::limits;

use crate::graph::explain::{age, answer, lines, one_line, why};

fn bundle() -> Node {
    Node::here(ObjectRef::namespaced(GroupKind::new("app.example.com", "AppBundle"), "shop", "web"))
}

fn boot() -> Node {
    let kind = GroupKind::new("core.bootchain-operator.ruicoelho.dev", "BootDependency");
    Node::here(ObjectRef::namespaced(kind, "shop", "web"))
}

fn job() -> Node {
    Node::here(ObjectRef::namespaced(GroupKind::new("batch", "Job"), "db", "migrate"))
}

fn failing() -> Graph {
    let failed = Wait::new(WaitState::Failed, "BackoffLimitExceeded").detail("failed");
    let failed = failed.since("2026-01-02T03:00:00Z".parse::<Timestamp>().unwrap());
    graph([waits(&bundle(), &boot()), Edge::waits(boot(), job(), failed)])
}

fn sentence(graph: &Graph, node: &Node) -> String {
    answer(node, &graph.root_causes(node, &|_| true))
}

#[test]
fn the_one_line_names_the_chain_and_the_cause() {
    assert_eq!(
        sentence(&failing(), &bundle()),
        "AppBundle shop/web waits for BootDependency shop/web, which waits for Job db/migrate: \
         failed, BackoffLimitExceeded"
    );
}

#[test]
fn the_chain_below_has_one_step_a_line() {
    let graph = failing();
    let causes = graph.root_causes(&bundle(), &|_| true);
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    assert_eq!(
        lines(&causes.chains[0], Some(now)),
        [
            "AppBundle shop/web",
            "└─ waits for BootDependency shop/web: NotReady",
            "   └─ waits for Job db/migrate: failed, BackoffLimitExceeded, for 4m5s",
        ]
    );
}

#[test]
fn what_waits_for_nothing_says_so() {
    assert_eq!(sentence(&failing(), &job()), "Job db/migrate waits for nothing");
    assert_eq!(sentence(&failing(), &ours("unknown")), "ResourceDependency shop/unknown waits for nothing");
}

#[test]
fn the_worst_cause_comes_first_and_the_others_are_counted() {
    let mut graph = failing();
    let settings = plain("ConfigMap", "settings");
    let absent = Wait::new(WaitState::Absent, "NotFound");
    graph.set(&bundle(), vec![waits(&bundle(), &boot()), Edge::waits(bundle(), settings, absent)]);
    let text = sentence(&graph, &bundle());
    assert!(text.ends_with("failed, BackoffLimitExceeded (and 1 more)"), "{text}");
}

#[test]
fn a_producer_is_named_with_what_it_waits_for() {
    let settings = plain("ConfigMap", "settings");
    let absent = Wait::new(WaitState::Absent, "NotFound");
    let mut graph = graph([
        Edge::waits(bundle(), settings.clone(), absent),
        makes(&ours("publish"), &settings),
        waits(&ours("publish"), &job()),
    ]);
    assert_eq!(
        sentence(&graph, &bundle()),
        "AppBundle shop/web waits for ConfigMap shop/settings, to be made by ResourceDependency shop/publish, \
         which waits for Job db/migrate: NotReady"
    );
    graph.set(&ours("publish"), vec![makes(&ours("publish"), &settings)]);
    assert_eq!(
        sentence(&graph, &bundle()),
        "AppBundle shop/web waits for ConfigMap shop/settings (NotFound), to be made by \
         ResourceDependency shop/publish"
    );
}

#[test]
fn a_cycle_is_spelled_out_at_the_end() {
    let [a, b, c] = ["a", "b", "c"].map(ours);
    let graph = graph([waits(&c, &a), waits(&a, &b), waits(&b, &a)]);
    let cycle = "ResourceDependency shop/a → ResourceDependency shop/b → ResourceDependency shop/a";
    assert_eq!(
        sentence(&graph, &c),
        format!(
            "ResourceDependency shop/c waits for ResourceDependency shop/a, which waits for itself: {cycle}"
        )
    );
    assert_eq!(sentence(&graph, &b), format!("ResourceDependency shop/b waits for itself: {cycle}"));
}

#[test]
fn a_member_of_a_cycle_has_its_own_causes_besides() {
    let [a, b] = ["a", "b"].map(ours);
    let graph = graph([waits(&a, &b), waits(&b, &a), waits(&a, &job())]);
    let causes = graph.root_causes(&a, &|_| true);
    assert_eq!(causes.chains.len(), 2);
    assert!(one_line(&causes.chains[1]).ends_with("shop/a waits for Job db/migrate: NotReady"));
}

#[test]
fn the_chain_stops_at_what_may_not_be_seen() {
    let graph = failing();
    let see = |hidden: Node| answer(&bundle(), &graph.root_causes(&bundle(), &move |node| *node != hidden));
    assert_eq!(
        see(job()),
        "AppBundle shop/web waits for BootDependency shop/web, which waits for (not visible)"
    );
    assert_eq!(see(boot()), "AppBundle shop/web waits for BootDependency shop/web: NotReady (not visible)");
}

#[test]
fn a_cycle_with_a_hidden_member_is_not_spelled() {
    let [a, b, c] = ["a", "b", "c"].map(ours);
    let graph = graph([waits(&c, &a), waits(&a, &b), waits(&b, &a)]);
    let text = answer(&c, &graph.root_causes(&c, &|node| *node != b));
    assert!(text.ends_with("which waits for itself: the cycle is (not visible)"), "{text}");
    assert!(!text.contains("shop/b"), "{text}");
}

#[test]
fn a_long_chain_keeps_its_two_ends() {
    let node = |at: usize| ours(&format!("n{at:02}"));
    let graph = graph((0..30).map(|at| waits(&node(at), &node(at + 1))));
    let chain = &graph.root_causes(&node(0), &|_| true).chains[0];
    let text = one_line(chain);
    assert!(text.contains("shop/n08, … (14 more) …, which waits for ResourceDependency shop/n23"), "{text}");
    assert!(text.ends_with("shop/n30: NotReady"), "{text}");
    assert_eq!(lines(chain, None).len(), 1 + 16 + 1);
}

#[test]
fn one_chain_for_each_cause_and_no_more_than_a_person_reads() {
    let edges: Vec<Edge> = (0..40).map(|at| waits(&ours("all"), &ours(&format!("n{at:02}")))).collect();
    let graph = graph(edges);
    let causes = graph.root_causes(&ours("all"), &|_| true);
    assert_eq!((causes.chains.len(), causes.more), (16, 24));
    assert!(answer(&ours("all"), &causes).ends_with("(and 39 more)"));
}

#[test]
fn a_users_text_stays_on_one_line() {
    let wait = Wait::new(WaitState::Failed, "Failed").detail("first\n\tsecond \u{1b}[31mred\u{202e} end");
    assert_eq!(why(&wait), "first second [31mred end, Failed");
    // What a status may say is not cut, and nothing is longer than that.
    let of = |length: usize| Wait::new(WaitState::Failed, "").detail("x".repeat(length));
    assert_eq!(why(&of(limits::MESSAGE)).len(), limits::MESSAGE);
    assert_eq!(why(&of(100 * limits::MESSAGE)).chars().count(), limits::MESSAGE + 1);
    assert_eq!(why(&Wait::new(WaitState::Absent, "NotFound").detail("NotFound: gone")), "NotFound: gone");
}

#[test]
fn ages_read_as_kubectl_writes_them() {
    let start: Timestamp = "2026-01-02T03:00:00Z".parse().unwrap();
    let after = |seconds: i64| age(start, Timestamp::from_second(start.as_second() + seconds).unwrap());
    let table = [
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (192, "3m12s"),
        (3_600, "60m"),
        (11_100, "3h5m"),
        (100_000, "27h"),
        (270_000, "3d3h"),
        (900_000, "10d"),
    ];
    for (seconds, text) in table {
        assert_eq!(after(seconds), text);
    }
}
