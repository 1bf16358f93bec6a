//! The picture for Graphviz.

use std::fmt::Write as _;

use crate::picture::{Arrow, ArrowReason, Picture, PictureItem, PictureState};
use crate::text::{dot, kind, name, why};

/// The picture in the DOT language, from left to right: what needs, then what is needed.
pub fn render(picture: &Picture) -> String {
    let mut out = String::from(
        "digraph linchpin {\n  rankdir=LR;\n  bgcolor=\"transparent\";\n  \
         node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", fontname=\"sans-serif\", fontsize=11];\n  \
         edge [color=\"#7d8590\", arrowsize=0.7];\n",
    );
    let mut grouped = vec![false; picture.items.len()];
    for (number, group) in picture.groups.iter().enumerate() {
        let _ = writeln!(
            out,
            "  subgraph cluster_{number} {{\n    label=\"{}\"; color=\"#7d8590\"; fontcolor=\"#7d8590\"; style=\"rounded,dashed\";",
            dot(&group.label)
        );
        for &at in &group.members {
            grouped[at] = true;
            let _ = writeln!(out, "    {}", item(at, &picture.items[at]));
        }
        out.push_str("  }\n");
    }
    for (at, one) in picture.items.iter().enumerate().filter(|(at, _)| !grouped[*at]) {
        let _ = writeln!(out, "  {}", item(at, one));
    }
    for one in &picture.arrows {
        let _ = writeln!(out, "  n{} -> n{}{};", one.from, one.to, style(one));
    }
    out.push_str("}\n");
    out
}

fn item(at: usize, item: &PictureItem) -> String {
    let mut label =
        format!("{}\\n{}\\n{}", dot(&kind(&item.node)), dot(&name(&item.node)), item.state.word());
    let why = why(&item.reason, &item.detail);
    if item.state != PictureState::Ready && !why.is_empty() {
        let _ = write!(label, ": {}", dot(&why));
    }
    let width = if item.ours { ", penwidth=1.8" } else { "" };
    format!("n{at} [label=\"{label}\", color=\"{}\"{width}];", color(item.state))
}

fn style(arrow: &Arrow) -> String {
    let mut parts = Vec::new();
    match &arrow.need {
        ArrowReason::MadeBy { .. } => {
            parts.push("style=dotted, arrowhead=empty, label=\"made by\", fontsize=9".to_owned());
        }
        ArrowReason::Wait { wait, .. } if !wait.met() => {
            parts.push("style=dashed, color=\"#bf8700\"".to_owned());
            let why = why(&wait.reason, &wait.detail);
            parts.push(format!("tooltip=\"{}\"", dot(&why)));
        }
        ArrowReason::Wait { .. } => {}
    }
    if arrow.cycle {
        parts.push("color=\"#cf222e\", penwidth=2".to_owned());
    }
    if parts.is_empty() { String::new() } else { format!(" [{}]", parts.join(", ")) }
}

/// The colour of a state; readable on light and on dark.
pub(crate) fn color(state: PictureState) -> &'static str {
    match state {
        PictureState::Ready => "#2da44e",
        PictureState::Running => "#218bff",
        PictureState::Waiting => "#bf8700",
        PictureState::Missing => "#7d8590",
        PictureState::Unknown => "#a475f9",
        PictureState::Failed | PictureState::Cycle => "#cf222e",
    }
}
