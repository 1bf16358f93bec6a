//! The picture as an indented tree, for terminals.
//!
//! Each thing is followed by what it needs, one level deeper, with its state, for how long, and why. What was spelled
//! out above is named again but not repeated; a way that comes back to itself ends there. Lines never exceed the
//! width asked for: a reason that does not fit beside its object has lines of its own below it, and nothing of it is cut
//! off. The order never depends on the states, so that a tree can be watched; the parts of an object are in their own.

mod parts;
mod rows;

use std::collections::BTreeMap;

use jiff::Timestamp;
use linchpin_engine::graph::{Node, explain};
use linchpin_words::{GroupKind, reference::built_in_kind};

use crate::picture::{Picture, PictureState};
use crate::text::{cut, cut_middle, width, wrap};
use rows::TreeRow;

/// Which characters the tree is drawn with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// Lines and marks as terminals show them today.
    #[default]
    Unicode,
    /// Nothing beyond ASCII, except in names and texts of others.
    Ascii,
}

/// How kinds are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KindStyle {
    /// `ResourceDependency shop/web`.
    #[default]
    Full,
    /// `rd shop/web`: as kubectl shortens Kubernetes' own kinds, and as given here for others.
    Short(BTreeMap<GroupKind, String>),
}

impl KindStyle {
    /// An object as it is written.
    fn shown(&self, node: &Node) -> String {
        let full = node.to_string();
        let Self::Short(short_names) = self else { return explain::clean(&full) };
        let kind = &node.object.kind;
        let known = || built_in_kind(&kind.group, &kind.kind)?.short.first().map(|&short| short.to_owned());
        let short = short_names.get(kind).cloned().or_else(known).unwrap_or_else(|| kind.kind.to_lowercase());
        explain::clean(&format!("{short}{}", full.get(kind.kind.len()..).unwrap_or_default()))
    }
}

/// How to draw a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeOptions {
    /// Characters to draw with.
    pub charset: Charset,
    /// Columns a line may take; none for as many as it needs.
    pub width: Option<usize>,
    /// The present, for ages; without it, times are shown as they are.
    pub now: Option<Timestamp>,
    /// Colour marks and states for a terminal.
    pub color: bool,
    /// Leave out waits that are over.
    pub only_unmet: bool,
    /// How kinds are written.
    pub kinds: KindStyle,
    /// The parts of objects in the order in which they were written down; those that it does not name follow by name.
    pub parts: Vec<Node>,
}

const STATE_WIDTH: usize = 7;
const GAP: &str = "  ";
/// What names leave of a line to the reasons beside them.
const LEAST_WHY: usize = 16;
/// How much room words need below a tree.
const LEAST_WORDS: usize = 12;

/// The picture as a tree: a heading, the rows, the cycles, and a line that counts.
pub fn render(picture: &Picture, options: &TreeOptions) -> String {
    if picture.items.is_empty() {
        return format!("{}\n", cut_plain(options, "nothing to show"));
    }
    let rows = rows::rows(picture, options);
    let columns = Columns::fit(&rows, options);
    let mut out = columns.line(options, "NEEDS", None, "FOR", "WHY");
    for row in &rows {
        let beside = columns.has_room_for(&row.why);
        out.push_str(&columns.line(
            options,
            &row.tree(),
            row.state,
            &row.age,
            if beside { &row.why } else { "" },
        ));
        if !beside {
            out.push_str(&own_lines(options, row));
        }
    }
    let arrow = if options.charset == Charset::Unicode { " → " } else { " -> " };
    for (at, cycle) in picture.cycles.iter().enumerate() {
        let mut names: Vec<String> = cycle.0.iter().map(|node| options.kinds.shown(node)).collect();
        names.extend(names.first().cloned());
        let text = format!("cycle: {}\n", names.join(arrow));
        out.push_str(if at == 0 { "\n" } else { "" });
        out.push_str(&paint(options, PictureState::Cycle, &text));
    }
    out.push('\n');
    out.push_str(&count(picture));
    out.push('\n');
    out
}

/// A reason that does not fit beside its object, below it.
fn own_lines(options: &TreeOptions, row: &TreeRow) -> String {
    let limit = options.width.unwrap_or(usize::MAX);
    // A tree that leaves no room is left out, so that the words are still there.
    let below = if width(&row.below) + LEAST_WORDS <= limit { row.below.as_str() } else { "" };
    let lines = wrap(&row.why, limit.saturating_sub(width(below)));
    lines.iter().fold(String::new(), |out, line| out + &cut_plain(options, &format!("{below}{line}")) + "\n")
}

/// How wide each column is.
struct Columns {
    tree: usize,
    age: usize,
    why: usize,
}

impl Columns {
    fn fit(rows: &[TreeRow], options: &TreeOptions) -> Self {
        let widest =
            |of: &dyn Fn(&TreeRow) -> usize, least: usize| rows.iter().map(of).max().unwrap_or(0).max(least);
        let mut columns = Self {
            tree: widest(&|row| width(&row.tree()), 5),
            age: widest(&|row| width(&row.age), 3),
            why: widest(&|row| width(&row.why), 3),
        };
        if let Some(limit) = options.width {
            let fixed = STATE_WIDTH + columns.age + 3 * GAP.len();
            let room = limit.saturating_sub(fixed);
            // Names give way only where they would take all the room: a reason has lines of its own to go to.
            columns.tree = columns.tree.min(room.saturating_sub(LEAST_WHY.min(room / 3)));
            columns.why = columns.why.min(room - columns.tree);
        }
        columns
    }

    fn has_room_for(&self, why: &str) -> bool {
        width(why) <= self.why
    }

    fn line(
        &self,
        options: &TreeOptions,
        tree: &str,
        state: Option<PictureState>,
        age: &str,
        why: &str,
    ) -> String {
        let mark = if options.charset == Charset::Unicode { "…" } else { "~" };
        let heading = why == "WHY" && state.is_none() && tree == "NEEDS";
        let word = match state {
            Some(state) => state.word(),
            None if heading => "STATE",
            None => "",
        };
        let tree = cut_middle(tree, self.tree, mark);
        let why = cut(why, self.why, mark);
        let pad = |text: &str, columns: usize| " ".repeat(columns.saturating_sub(width(text)));
        let tree_pad = pad(&tree, self.tree);
        let (word_pad, age_pad) = (pad(word, STATE_WIDTH), pad(age, self.age));
        let (tree, word) = match state {
            Some(state) => (paint_mark(options, state, &tree), paint(options, state, word)),
            None => (tree, word.to_owned()),
        };
        let line = format!("{tree}{tree_pad}{GAP}{word}{word_pad}{GAP}{age}{age_pad}{GAP}{why}");
        let line = cut_plain(options, line.trim_end());
        format!("{line}\n")
    }
}

/// A terminal narrower than the fixed columns gets the beginning of each line.
fn cut_plain(options: &TreeOptions, line: &str) -> String {
    match options.width {
        Some(limit) if !options.color => cut(line, limit, ""),
        _ => line.to_owned(),
    }
}

/// "6 things: 2 ready, 3 waiting, 1 failed".
fn count(picture: &Picture) -> String {
    let counted: Vec<String> = PictureState::ALL
        .iter()
        .map(|&state| (picture.items.iter().filter(|item| item.state == state).count(), state))
        .filter(|&(count, _)| count > 0)
        .map(|(count, state)| format!("{count} {}", state.word()))
        .collect();
    let total = picture.items.len();
    format!("{total} {}: {}", if total == 1 { "object" } else { "objects" }, counted.join(", "))
}

/// The sign of a state in front of a name.
fn mark(charset: Charset, state: PictureState) -> char {
    let (unicode, ascii) = match state {
        PictureState::Ready => ('✓', '+'),
        PictureState::Running => ('◐', '*'),
        PictureState::Waiting => ('◌', 'o'),
        PictureState::Missing => ('○', '-'),
        PictureState::Unknown => ('?', '?'),
        PictureState::Failed => ('✗', 'x'),
        PictureState::Cycle => ('↻', '@'),
    };
    if charset == Charset::Unicode { unicode } else { ascii }
}

fn paint(options: &TreeOptions, state: PictureState, text: &str) -> String {
    let code = match state {
        PictureState::Ready => 32,
        PictureState::Running => 34,
        PictureState::Waiting => 33,
        PictureState::Missing => 90,
        PictureState::Unknown => 35,
        PictureState::Failed | PictureState::Cycle => 31,
    };
    if options.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Colours the first mark of the state in a line, if it was not cut away.
fn paint_mark(options: &TreeOptions, state: PictureState, tree: &str) -> String {
    let mark = mark(options.charset, state);
    match tree.find(mark) {
        Some(at) if options.color => {
            let (before, rest) = tree.split_at(at);
            let (mark, after) = rest.split_at(mark.len_utf8());
            format!("{before}{}{after}", paint(options, state, mark))
        }
        _ => tree.to_owned(),
    }
}
