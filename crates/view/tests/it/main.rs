//! What is drawn, against committed drawings; run with `LINCHPIN_UPDATE=1` to draw them anew, then look at them.

#![allow(clippy::unwrap_used, clippy::panic)]

mod samples;

use std::collections::BTreeMap;
use std::path::Path;

use linchpin_view::{Picture, PictureSelection, PictureState, dot, json, mermaid, svg, tree};
use proptest::prelude::*;
use samples::{all, hostile, knot, now, object, ours, shop, waits};

/// Holds a text against a committed file.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("LINCHPIN_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == text, "{name} differs; LINCHPIN_UPDATE=1 writes it anew. Now:\n{text}");
}

fn unicode(width: Option<usize>) -> tree::TreeOptions {
    tree::TreeOptions { width, now: Some(now()), ..tree::TreeOptions::default() }
}

#[test]
fn a_tree_shows_needs_states_reasons_and_ages() {
    golden("shop.tree.txt", &tree::render(&shop(), &unicode(None)));
}

#[test]
fn a_tree_fits_the_width_it_is_given() {
    let text = tree::render(&shop(), &unicode(Some(80)));
    golden("shop.tree80.txt", &text);
    assert!(text.lines().take_while(|line| !line.is_empty()).all(|line| line.chars().count() <= 80));
}

#[test]
fn a_reason_that_does_not_fit_has_lines_of_its_own_and_nothing_of_it_is_lost() {
    let long = "0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available, because \
                nothing of a lower priority could be taken away from it";
    let known = |detail: &str| linchpin_view::NodeFacts {
        state: PictureState::Waiting,
        reason: "Waiting".to_owned(),
        detail: detail.to_owned(),
        since: None,
    };
    let graph = samples::graph([waits(&ours("a"), &ours("b")), waits(&ours("b"), &object("Job", "c"))]);
    let known = BTreeMap::from([(ours("a"), known(long)), (ours("b"), known(long))]);
    let picture = Picture::of(&graph, &PictureSelection::All, &known);
    for width in [60, 80, 120, 200] {
        let text = tree::render(&picture, &unicode(Some(width)));
        let bare = text.replace(['│', '\n'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(bare.matches(long).count(), 2, "{width}:\n{text}");
        assert!(!text.contains('…'), "{width}:\n{text}");
    }
    let text = tree::render(&picture, &unicode(None));
    assert_eq!(text.lines().filter(|line| line.ends_with(&format!("{long}, Waiting"))).count(), 2, "{text}");
}

#[test]
fn kinds_are_written_as_kubectl_shortens_them() {
    let short = BTreeMap::from([(ours("a").object.kind.clone(), "rd".to_owned())]);
    let options = tree::TreeOptions { kinds: tree::KindStyle::Short(short), ..unicode(None) };
    golden("shop.tree.short.txt", &tree::render(&shop(), &options));
}

#[test]
fn the_parts_of_an_object_come_in_their_own_order() {
    let part = |name: &str| ours("all").part(name.to_owned());
    let order = |edges: Vec<linchpin_engine::graph::Edge>, written: &[&str]| -> Vec<String> {
        let parts = written.iter().map(|name| part(name)).collect();
        let picture = Picture::of(&samples::graph(edges), &PictureSelection::All, &BTreeMap::new());
        let text = tree::render(&picture, &tree::TreeOptions { parts, ..unicode(None) });
        let rows = text.lines().filter_map(|line| line.strip_prefix("├─ ").or(line.strip_prefix("└─ ")));
        rows.filter_map(|row| Some(row.split_once('[')?.1.split_once(']')?.0.to_owned())).collect()
    };
    let whole = || ["a", "b", "c"].map(|name| waits(&ours("all"), &part(name))).to_vec();
    assert_eq!(order(whole(), &["c", "a", "b"]), ["c", "a", "b"], "as they were written down");
    assert_eq!(order(whole(), &["c"]), ["c", "a", "b"], "others by name");
    let after = |first: &str, then: &str| waits(&part(then), &part(first));
    assert_eq!(order([whole(), vec![after("c", "a")]].concat(), &["a", "b", "c"]), ["b", "c", "a"]);
    let circle = vec![after("a", "b"), after("b", "a")];
    assert_eq!(order([whole(), circle].concat(), &["a", "b", "c"]).len(), 3, "also in a circle");
}

#[test]
fn a_tree_can_be_plain_ascii() {
    let options = tree::TreeOptions { charset: tree::Charset::Ascii, ..unicode(Some(100)) };
    let text = tree::render(&shop(), &options);
    golden("shop.tree.ascii.txt", &text);
    assert!(text.is_ascii());
}

#[test]
fn a_tree_can_leave_out_what_is_met_and_colour_the_rest() {
    let options = tree::TreeOptions { only_unmet: true, color: true, ..unicode(None) };
    golden("shop.tree.unmet.txt", &tree::render(&shop(), &options));
}

#[test]
fn a_tree_marks_cycles_and_spells_them() {
    golden("knot.tree.txt", &tree::render(&knot(), &unicode(None)));
}

#[test]
fn a_tree_of_nothing_says_so() {
    assert_eq!(tree::render(&Picture::default(), &unicode(None)), "nothing to show\n");
    assert_eq!(tree::render(&Picture::default(), &unicode(Some(7))), "nothing\n");
}

#[test]
fn a_tree_starts_where_it_is_told() {
    let graph = samples::shop_graph();
    let roots = vec![samples::publish()];
    let picture = Picture::of(&graph, &PictureSelection::Needs(roots.clone()), &BTreeMap::new());
    golden("publish.tree.txt", &tree::render(&picture, &unicode(None)));
    let picture = Picture::of(&graph, &PictureSelection::NeededBy(roots), &BTreeMap::new());
    let names: Vec<String> = picture.items.iter().map(|item| item.node.to_string()).collect();
    assert_eq!(
        names,
        [
            "ConfigMap shop/endpoints",
            "AppBundle shop/web",
            "Deployment shop/web",
            "ResourceDependency shop/publish"
        ]
    );
}

#[test]
fn dot_is_as_committed() {
    golden("shop.dot", &dot::render(&shop()));
    golden("knot.dot", &dot::render(&knot()));
    golden("hostile.dot", &dot::render(&hostile()));
}

#[test]
fn mermaid_is_as_committed() {
    golden("shop.mmd", &mermaid::render(&shop()));
    golden("knot.mmd", &mermaid::render(&knot()));
    golden("hostile.mmd", &mermaid::render(&hostile()));
}

#[test]
fn json_is_as_committed() {
    golden("shop.json", &json::render(&shop()));
    golden("knot.json", &json::render(&knot()));
}

#[test]
fn svg_is_as_committed_and_well_formed() {
    for (name, picture, title) in [
        ("shop.svg", shop(), Some("Namespace shop".to_owned())),
        ("knot.svg", knot(), None),
        ("hostile.svg", hostile(), Some("</text><script>alert(1)</script>".to_owned())),
    ] {
        let text = svg::render(&picture, &svg::SvgOptions { title, now: Some(now()) });
        well_formed(&text);
        golden(name, &text);
    }
}

#[test]
fn what_users_write_never_becomes_markup() {
    let picture = hostile();
    let drawn = svg::render(&picture, &svg::SvgOptions::default());
    assert!(!drawn.contains("<script") && !drawn.contains("onload=\""), "{drawn}");
    let text = tree::render(&picture, &unicode(None));
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
    let lines = mermaid::render(&picture);
    let starts = ["flowchart", "subgraph", "end", "n", "linkStyle", "classDef"];
    assert!(
        lines.lines().all(|line| starts.iter().any(|start| line.trim_start().starts_with(start))),
        "{lines}"
    );
    assert!(lines.lines().all(|line| line.matches('"').count() % 2 == 0), "{lines}");
}

#[test]
fn what_is_known_wins_over_what_edges_tell_but_not_over_a_cycle() {
    let graph = samples::graph([waits(&ours("a"), &ours("b")), waits(&ours("b"), &ours("b"))]);
    let known = linchpin_view::NodeFacts {
        state: PictureState::Failed,
        reason: "Broken".to_owned(),
        detail: String::new(),
        since: None,
    };
    let known = BTreeMap::from([(ours("a"), known.clone()), (ours("b"), known)]);
    let states: Vec<PictureState> =
        Picture::of(&graph, &PictureSelection::All, &known).items.iter().map(|item| item.state).collect();
    assert_eq!(states, [PictureState::Failed, PictureState::Cycle]);
}

#[test]
fn an_object_that_speaks_for_itself_is_heard_in_every_row() {
    let graph = samples::graph([waits(&ours("a"), &ours("b")), waits(&ours("b"), &ours("c"))]);
    let speaks = linchpin_view::NodeFacts {
        state: PictureState::Waiting,
        reason: "Waiting".to_owned(),
        detail: "waiting for c".to_owned(),
        since: None,
    };
    let known = BTreeMap::from([(ours("b"), speaks)]);
    let picture = Picture::of(&graph, &PictureSelection::All, &known);
    assert!(tree::render(&picture, &unicode(None)).contains("waiting for c"));
}

#[test]
fn a_chain_of_ten_thousand_is_drawn_without_a_deep_stack() {
    let run = || {
        let node = |at: usize| ours(&format!("n{at:05}"));
        let mut graph = linchpin_engine::graph::Graph::new();
        for at in 0..10_000 {
            graph.set(&node(at), vec![waits(&node(at), &node(at + 1))]);
        }
        let picture = all(&graph);
        let text = tree::render(&picture, &unicode(Some(120)));
        assert!(text.contains("… 9980 more"), "{text}");
        assert!(text.len() < 10_000);
        assert!(tree::render(&picture, &unicode(None)).len() < 100_000);
        well_formed(&svg::render(&picture, &svg::SvgOptions::default()));
        assert!(dot::render(&picture).len() > 10_000);
        assert!(mermaid::render(&picture).len() > 10_000);
        assert!(json::render(&picture).len() > 10_000);
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

/// Reads all of a document; fails on anything that is not well-formed.
fn well_formed(text: &str) {
    let mut reader = quick_xml::Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let mut open = 0_usize;
    loop {
        use quick_xml::events::Event;
        match reader.read_event().unwrap_or_else(|error| panic!("{error}: {text}")) {
            Event::Start(tag) => {
                open += 1;
                assert!(
                    tag.attributes().all(|attribute| attribute.is_ok_and(|a| a.unescape_value().is_ok())),
                    "{text}"
                );
            }
            Event::Empty(tag) => {
                assert!(
                    tag.attributes().all(|attribute| attribute.is_ok_and(|a| a.unescape_value().is_ok())),
                    "{text}"
                );
            }
            Event::End(_) => open -= 1,
            Event::Text(content) => assert!(content.decode().is_ok(), "{text}"),
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open, 0, "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_graph_and_any_text_can_be_drawn(
        pairs in prop::collection::vec((0..12_usize, 0..12_usize, any::<bool>()), 0..40),
        text in any::<String>(),
        width in 0..140_usize,
    ) {
        let node = |at: usize| if at == 3 { object("Job", &text) } else { ours(&format!("n{at}")) };
        let picture = all(&samples::graph(pairs.iter().map(|&(from, to, made)| {
            if made { samples::makes(&node(from), &node(to)) } else { samples::waits_with(&node(from), &node(to), &text) }
        })));
        well_formed(&svg::render(&picture, &svg::SvgOptions { title: Some(text.clone()), now: None }));
        let drawn = tree::render(&picture, &unicode(Some(width)));
        let rows: Vec<&str> = drawn.lines().take_while(|line| !line.is_empty()).collect();
        prop_assert!(rows.iter().all(|line| unicode_width::UnicodeWidthStr::width(*line) <= width));
        if !picture.items.is_empty() {
            let full = tree::render(&picture, &tree::TreeOptions::default());
            for item in picture.items.iter().filter(|item| item.node.object.kind.kind != "Job") {
                prop_assert!(full.contains(&item.node.to_string()), "{} is missing in\n{full}", item.node);
            }
        }
        prop_assert_eq!(dot::render(&picture).matches("->").count(), picture.arrows.len() + text_arrows(&picture));
        prop_assert!(mermaid::render(&picture).lines().count() > picture.arrows.len());
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json::render(&picture)).is_ok());
    }
}

/// How often a user's text itself says `->` in the DOT drawing.
fn text_arrows(picture: &Picture) -> usize {
    let mut bare = picture.clone();
    bare.arrows.clear();
    let in_items = dot::render(&bare).matches("->").count();
    let tips: usize = picture
        .arrows
        .iter()
        .map(|arrow| match &arrow.need {
            linchpin_view::ArrowReason::Wait { wait, .. } => {
                linchpin_engine::graph::explain::why(wait).matches("->").count()
            }
            linchpin_view::ArrowReason::MadeBy { .. } => 0,
        })
        .sum();
    in_items + tips
}
