//! The picture for Mermaid, as Markdown pages show it.

use std::fmt::Write as _;

use crate::dot::color;
use crate::picture::{ArrowReason, Picture, PictureItem, PictureState};
use crate::text::{kind, mermaid, name, why};

/// The picture as a Mermaid flowchart, from left to right: what needs, then what is needed.
pub fn render(picture: &Picture) -> String {
    let mut out = String::from("flowchart LR\n");
    let mut grouped = vec![false; picture.items.len()];
    for (number, group) in picture.groups.iter().enumerate() {
        let _ = writeln!(out, "  subgraph g{number}[\"{}\"]", mermaid(&group.label));
        for &at in &group.members {
            grouped[at] = true;
            let _ = writeln!(out, "    {}", item(at, &picture.items[at]));
        }
        out.push_str("  end\n");
    }
    for (at, one) in picture.items.iter().enumerate().filter(|(at, _)| !grouped[*at]) {
        let _ = writeln!(out, "  {}", item(at, one));
    }
    let mut cyclic = Vec::new();
    for (number, arrow) in picture.arrows.iter().enumerate() {
        let link = match &arrow.need {
            ArrowReason::MadeBy { .. } => "-.->|made by|".to_owned(),
            ArrowReason::Wait { wait, .. } if wait.met() => "-->".to_owned(),
            ArrowReason::Wait { wait, .. } if wait.reason.is_empty() => "-.->".to_owned(),
            ArrowReason::Wait { wait, .. } => format!("-.->|\"{}\"|", mermaid(&wait.reason)),
        };
        let _ = writeln!(out, "  n{} {link} n{}", arrow.from, arrow.to);
        if arrow.cycle {
            cyclic.push(number.to_string());
        }
    }
    if !cyclic.is_empty() {
        let _ = writeln!(
            out,
            "  linkStyle {} stroke:{},stroke-width:2px",
            cyclic.join(","),
            color(PictureState::Cycle)
        );
    }
    for state in PictureState::ALL {
        if picture.items.iter().any(|item| item.state == state) {
            let _ = writeln!(out, "  classDef {} stroke:{},stroke-width:2px", class(state), color(state));
        }
    }
    out
}

fn item(at: usize, item: &PictureItem) -> String {
    let mut label = format!(
        "{}<br/>{}<br/>{}",
        mermaid(&kind(&item.node)),
        mermaid(&name(&item.node)),
        item.state.word()
    );
    let why = why(&item.reason, &item.detail);
    if item.state != PictureState::Ready && !why.is_empty() {
        let _ = write!(label, ": {}", mermaid(&why));
    }
    let (open, close) = if item.ours { ("([", "])") } else { ("[", "]") };
    format!("n{at}{open}\"{label}\"{close}:::{}", class(item.state))
}

/// A class name; prefixed, for words such as `end` and `default` mean something to Mermaid.
fn class(state: PictureState) -> String {
    format!("is-{}", state.word())
}
