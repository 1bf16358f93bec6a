//! The picture as SVG: self-contained, readable on light and on dark pages, without scripts.
//!
//! One card for each thing, a coloured edge and a sign for its state, curves to what it needs. Colours are never the
//! only sign. Texts are set in a fixed-width font so that their width is known here; what does not fit is cut, and the
//! whole of it is in the tooltip.

mod style;

use std::fmt::Write as _;

use jiff::Timestamp;
use linchpin_engine::graph::explain;

use crate::layout::{LAYER_GAP, Layout, Point, Size, layout};
use crate::picture::{Arrow, ArrowReason, Picture, PictureItem, PictureState};
use crate::text::{cut, cut_middle, kind, name, why, width, xml};

/// How to draw an SVG.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SvgOptions {
    /// A heading; none for no heading.
    pub title: Option<String>,
    /// The present, for ages; without it, none are shown.
    pub now: Option<Timestamp>,
}

const MARGIN: f64 = 20.0;
const TITLE_HEIGHT: f64 = 34.0;
const LEGEND_HEIGHT: f64 = 40.0;
const PADDING: f64 = 36.0;
const NAME_ADVANCE: f64 = 7.9;
const SMALL_ADVANCE: f64 = 6.5;
const NAME_COLUMNS: usize = 34;
const WHY_COLUMNS: usize = 38;

/// What is written on a card.
struct Card {
    kind: String,
    name: String,
    why: String,
    size: Size,
}

/// The picture as an SVG document.
pub fn render(picture: &Picture, options: &SvgOptions) -> String {
    let cards: Vec<Card> = picture.items.iter().map(|item| card(item, options)).collect();
    let sizes: Vec<Size> = cards.iter().map(|card| card.size).collect();
    let ends: Vec<(usize, usize)> = picture.arrows.iter().map(|arrow| (arrow.from, arrow.to)).collect();
    let layout = layout(&sizes, &ends);
    let top = MARGIN + if options.title.is_some() { TITLE_HEIGHT } else { 0.0 };
    let legend = legend(picture);
    let total_width = (layout.size.x + LAYER_GAP / 2.0).max(legend.1).max(320.0) + 2.0 * MARGIN;
    let total_height = top + layout.size.y + LEGEND_HEIGHT + MARGIN;
    let label = options.title.as_deref().unwrap_or("What waits for what");
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lp\" width=\"{total_width:.0}\" height=\"{total_height:.0}\" \
         viewBox=\"0 0 {total_width:.0} {total_height:.0}\" role=\"img\" aria-label=\"{}\">\n<style>{}</style>\n<defs>{}</defs>\n",
        xml(&explain::plain(label)),
        style::CSS,
        style::DEFS,
    );
    if let Some(title) = &options.title {
        let _ = writeln!(
            out,
            "<text class=\"lp-title\" x=\"{MARGIN}\" y=\"{:.0}\">{}</text>",
            MARGIN + 14.0,
            xml(&explain::plain(title))
        );
    }
    let _ = writeln!(out, "<g transform=\"translate({MARGIN} {top})\">");
    // Arrows that matter are drawn over those that do not.
    let mut order: Vec<usize> = (0..picture.arrows.len()).collect();
    order.sort_by_key(|&at| (picture.arrows[at].cycle, !picture.arrows[at].need.met()));
    for at in order {
        out.push_str(&arrow(picture, at, &layout));
    }
    for (at, (item, card)) in picture.items.iter().zip(&cards).enumerate() {
        out.push_str(&draw(item, card, layout.boxes[at], layout.widths[at]));
    }
    out.push_str("</g>\n");
    let _ = writeln!(
        out,
        "<g transform=\"translate({MARGIN} {:.0})\" class=\"lp-legend\">{}</g>\n</svg>",
        top + layout.size.y + LEGEND_HEIGHT - 10.0,
        legend.0
    );
    out
}

fn card(item: &PictureItem, options: &SvgOptions) -> Card {
    let kind = cut(&kind(&item.node), NAME_COLUMNS, "…");
    let name = cut_middle(&name(&item.node), NAME_COLUMNS, "…");
    let mut why =
        if item.state == PictureState::Ready { String::new() } else { why(&item.reason, &item.detail) };
    if let Some((since, now)) = item.since.zip(options.now).filter(|_| item.state != PictureState::Ready) {
        let age = explain::age(since, now);
        let separator = if why.is_empty() { "for " } else { " · " };
        why = format!("{}{separator}{age}", cut(&why, WHY_COLUMNS - age.len() - 3, "…"));
    }
    let why = cut(&why, WHY_COLUMNS, "…");
    let head = columns(width(&kind) + 2 + item.state.word().len(), SMALL_ADVANCE);
    let text = head.max(columns(width(&name), NAME_ADVANCE)).max(columns(width(&why), SMALL_ADVANCE));
    let height = if why.is_empty() { 46.0 } else { 62.0 };
    Card { kind, name, why, size: Size { width: (text + PADDING + 12.0).max(150.0).round(), height } }
}

#[allow(clippy::cast_precision_loss)]
fn columns(count: usize, advance: f64) -> f64 {
    count as f64 * advance
}

fn draw(item: &PictureItem, card: &Card, Point { x, y }: Point, width: f64) -> String {
    let height = card.size.height;
    let word = item.state.word();
    let mut out =
        format!("<g class=\"lp-node lp-{word}{}\" transform=\"translate({x:.1} {y:.1})\">", ours(item));
    let whole = why(&item.reason, &item.detail);
    let tip = if whole.is_empty() { word.to_owned() } else { format!("{word}: {whole}") };
    let _ = write!(out, "<title>{}\n{}</title>", xml(&explain::clean(&item.node.to_string())), xml(&tip));
    let _ = write!(out, "<rect class=\"lp-card\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"8\"/>");
    let _ = write!(
        out,
        "<path class=\"lp-bar\" d=\"M5 .6A8 8 0 0 0 0 8V{:.0}A8 8 0 0 0 5 {:.1}Z\"/>",
        height - 8.0,
        height - 0.6
    );
    let _ = write!(out, "<use href=\"#lp-{word}\" x=\"16\" y=\"9\" class=\"lp-sign\"/>");
    let _ = write!(out, "<text class=\"lp-kind\" x=\"{PADDING}\" y=\"17\">{}</text>", xml(&card.kind));
    let _ = write!(
        out,
        "<text class=\"lp-state\" x=\"{:.0}\" y=\"17\" text-anchor=\"end\">{word}</text>",
        width - 12.0
    );
    let _ = write!(out, "<text class=\"lp-name\" x=\"{PADDING}\" y=\"35\">{}</text>", xml(&card.name));
    if !card.why.is_empty() {
        let _ = write!(out, "<text class=\"lp-why\" x=\"{PADDING}\" y=\"52\">{}</text>", xml(&card.why));
    }
    out.push_str("</g>\n");
    out
}

fn ours(item: &PictureItem) -> &'static str {
    if item.ours { " lp-ours" } else { "" }
}

fn arrow(picture: &Picture, at: usize, layout: &Layout) -> String {
    let arrow = &picture.arrows[at];
    let (class, marker) = class(arrow);
    let (from, to) = (&picture.items[arrow.from].node, &picture.items[arrow.to].node);
    let tip = match &arrow.need {
        ArrowReason::MadeBy { done: true } => format!("{from} was made by {to}"),
        ArrowReason::MadeBy { done: false } => format!("{from} is to be made by {to}"),
        ArrowReason::Wait { wait, .. } if wait.met() => format!("{from} has {to}"),
        ArrowReason::Wait { wait, .. } => format!("{from} waits for {to}: {}", explain::why(wait)),
    };
    format!(
        "<path class=\"lp-arrow {class}\" marker-end=\"url(#{marker})\" d=\"{}\"><title>{}</title></path>\n",
        curve(&layout.routes[at], arrow.from == arrow.to),
        xml(&explain::clean(&tip))
    )
}

fn class(arrow: &Arrow) -> (&'static str, &'static str) {
    match &arrow.need {
        _ if arrow.cycle => ("lp-in-cycle", "lp-tip-cycle"),
        ArrowReason::MadeBy { .. } => ("lp-made", "lp-tip"),
        ArrowReason::Wait { wait, .. } if wait.met() => ("lp-met", "lp-tip"),
        ArrowReason::Wait { wait, .. } => match crate::picture::seen(wait.state) {
            PictureState::Failed => ("lp-unmet lp-bad", "lp-tip-bad"),
            _ => ("lp-unmet", "lp-tip-unmet"),
        },
    }
}

/// A smooth line through the points of a route: straight where two points share a height, else a curve that leaves
/// and arrives level. It stops short of the end, where the tip of the arrow is.
fn curve(route: &[Point], own: bool) -> String {
    let Some(start) = route.first() else { return String::new() };
    let mut out = format!("M{:.1} {:.1}", start.x, start.y);
    if own {
        let end = route[route.len() - 1];
        let far = start.x + 34.0;
        let _ = write!(out, "C{far:.1} {:.1} {far:.1} {:.1} {:.1} {:.1}", start.y, end.y, end.x + 2.0, end.y);
        return out;
    }
    for (at, pair) in route.windows(2).enumerate() {
        let (from, mut to) = (pair[0], pair[1]);
        let direction = if to.x >= from.x { 1.0 } else { -1.0 };
        if at + 2 == route.len() {
            to.x -= 2.0 * direction;
        }
        if (from.y - to.y).abs() < 0.05 {
            let _ = write!(out, "L{:.1} {:.1}", to.x, to.y);
        } else {
            let reach = (to.x - from.x) * 0.5;
            let (near, far) = (from.x + reach, to.x - reach);
            let _ = write!(out, "C{near:.1} {:.1} {far:.1} {:.1} {:.1} {:.1}", from.y, to.y, to.x, to.y);
        }
    }
    out
}

/// The signs that occur, explained; and how wide that is.
fn legend(picture: &Picture) -> (String, f64) {
    let mut out = String::new();
    let mut x = 0.0;
    for state in PictureState::ALL {
        if picture.items.iter().any(|item| item.state == state) {
            let word = state.word();
            let _ = write!(
                out,
                "<g class=\"lp-{word}\" transform=\"translate({x:.0} 0)\"><use href=\"#lp-{word}\" class=\"lp-sign\" y=\"-10\"/>\
                 <text x=\"18\">{word}</text></g>"
            );
            x += 34.0 + columns(word.len(), SMALL_ADVANCE);
        }
    }
    x += 10.0;
    let kinds =
        [("lp-met", "has"), ("lp-unmet", "waits for"), ("lp-made", "made by"), ("lp-in-cycle", "in a cycle")];
    for (kind, text) in kinds {
        if picture.arrows.iter().any(|arrow| class(arrow).0.starts_with(kind)) {
            let _ = write!(
                out,
                "<g transform=\"translate({x:.0} 0)\"><path class=\"lp-arrow {kind}\" d=\"M0 -4H24\"/><text x=\"31\">{text}</text></g>"
            );
            x += 47.0 + columns(text.len(), SMALL_ADVANCE);
        }
    }
    (out, x)
}
