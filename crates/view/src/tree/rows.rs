//! The rows of a tree, found by a walk that needs no deep stack.

use std::collections::BTreeSet;

use linchpin_engine::graph::explain::{age, why as wait_why};

use linchpin_words::Reason;

use super::{Charset, TreeOptions, mark, parts};
use crate::picture::{Arrow, ArrowReason, Picture, PictureItem, PictureState, seen};
use crate::text::why;

/// Indentation of one level, in columns.
const INDENT: usize = 3;
/// How deep a tree goes when nothing says how wide it may be.
const DEEPEST: usize = 64;

/// One line of a tree.
pub(super) struct TreeRow {
    /// The lines that lead to it.
    lead: String,
    /// Mark and name.
    label: String,
    /// The state to show; none for lines that are not things.
    pub state: Option<PictureState>,
    /// Why it is in that state.
    pub why: String,
    /// Since when, as an age.
    pub age: String,
    /// What leads past it to the rows below.
    pub below: String,
}

impl TreeRow {
    /// Everything in the first column.
    pub(super) fn tree(&self) -> String {
        format!("{}{}", self.lead, self.label)
    }
}

/// What is still to be written: an item and how it was reached.
struct Visit {
    item: usize,
    /// The arrow to it, or to its maker; none for a root.
    arrow: Option<usize>,
    /// Whether it is shown as a product of its parent, not as a need.
    product: bool,
    depth: usize,
    lead: String,
    last: bool,
}

struct Walk<'a> {
    picture: &'a Picture,
    options: &'a TreeOptions,
    /// Arrows to what each item needs.
    needs: Vec<Vec<usize>>,
    /// Arrows from what each item makes.
    makes: Vec<Vec<usize>>,
    /// For each item how many waits are not met, and how many there are.
    waits: Vec<(usize, usize)>,
    /// Whether an item was spelled out.
    expanded: Vec<bool>,
    /// Whether what an item makes was spelled out below it as a product.
    unfolded: Vec<bool>,
    /// Whether an item has a row.
    shown: Vec<bool>,
    /// Items counted as left out below the deepest level.
    counted: BTreeSet<usize>,
    /// The items between the root and the present row.
    way: Vec<usize>,
    rows: Vec<TreeRow>,
}

/// All rows of a picture.
pub(super) fn rows(picture: &Picture, options: &TreeOptions) -> Vec<TreeRow> {
    let shown = |arrow: &Arrow| !(options.only_unmet && arrow.need.met());
    let mut needs = picture.outgoing();
    for list in &mut needs {
        list.retain(|&at| shown(&picture.arrows[at]));
    }
    parts::sort(picture, &options.parts, &mut needs);
    let mut makes = vec![Vec::new(); picture.items.len()];
    for (at, arrow) in picture.arrows.iter().enumerate() {
        if matches!(arrow.need, ArrowReason::MadeBy { .. }) && shown(arrow) {
            makes[arrow.to].push(at);
        }
    }
    let none = vec![false; picture.items.len()];
    let mut walk = Walk {
        picture,
        options,
        needs,
        makes,
        waits: waits(picture),
        expanded: none.clone(),
        unfolded: none.clone(),
        shown: none,
        counted: BTreeSet::new(),
        way: Vec::new(),
        rows: Vec::new(),
    };
    // What only a cycle leads to has no root: then begin with the smallest that is left.
    for item in roots(picture).into_iter().chain(0..picture.items.len()) {
        let waits =
            walk.needs[item].iter().any(|&at| matches!(picture.arrows[at].need, ArrowReason::Wait { .. }));
        let dull = options.only_unmet && picture.items[item].state == PictureState::Ready;
        if !dull && !walk.expanded[item] && !walk.counted.contains(&item) && (waits || !walk.shown[item]) {
            walk.from(item);
        }
    }
    walk.rows
}

fn waits(picture: &Picture) -> Vec<(usize, usize)> {
    let mut waits = vec![(0, 0); picture.items.len()];
    for arrow in picture.arrows.iter().filter(|arrow| matches!(arrow.need, ArrowReason::Wait { .. })) {
        let (unmet, all) = &mut waits[arrow.from];
        *unmet += usize::from(!arrow.need.met());
        *all += 1;
    }
    waits
}

/// Things that nobody waits for, but not mere products: those are shown below their makers.
fn roots(picture: &Picture) -> Vec<usize> {
    let mut root = vec![true; picture.items.len()];
    for arrow in &picture.arrows {
        match arrow.need {
            ArrowReason::Wait { .. } => root[arrow.to] = false,
            ArrowReason::MadeBy { .. } => root[arrow.from] = false,
        }
    }
    (0..root.len()).filter(|&at| root[at]).collect()
}

impl Walk<'_> {
    fn from(&mut self, root: usize) {
        let mut stack = vec![Visit {
            item: root,
            arrow: None,
            product: false,
            depth: 0,
            lead: String::new(),
            last: true,
        }];
        while let Some(visit) = stack.pop() {
            self.way.truncate(visit.depth);
            let children = self.children(&visit);
            let returns = self.way.contains(&visit.item);
            let done = self.expanded[visit.item] || (visit.product && self.unfolded[visit.item]);
            let again = done && !children.is_empty();
            let goes_on = !returns && !again && !children.is_empty();
            self.row(&visit, returns, again, goes_on);
            if returns || again {
                continue;
            }
            if visit.product {
                self.unfolded[visit.item] = true;
            } else {
                self.expanded[visit.item] = true;
            }
            let below = self.lead_below(&visit);
            if visit.depth >= self.deepest() && !children.is_empty() {
                self.leave_out(visit.item, &below);
                continue;
            }
            self.way.push(visit.item);
            let count = children.len();
            for (at, (item, arrow, product)) in children.into_iter().enumerate().rev() {
                let (depth, lead, last) = (visit.depth + 1, below.clone(), at + 1 == count);
                stack.push(Visit { item, arrow: Some(arrow), product, depth, lead, last });
            }
        }
    }

    /// What goes below an item: its needs, then what it makes. Below a product only what it makes itself.
    fn children(&self, visit: &Visit) -> Vec<(usize, usize, bool)> {
        let arrows = &self.picture.arrows;
        let makes = self.makes[visit.item].iter().map(|&at| (arrows[at].from, at, true));
        if visit.product {
            return makes.collect();
        }
        // Below what it is to make, a maker need not say so again.
        let parent = visit.arrow.map(|at| arrows[at].from);
        let needs = self.needs[visit.item].iter().map(|&at| (arrows[at].to, at, false));
        needs.chain(makes.filter(|&(made, ..)| Some(made) != parent)).collect()
    }

    fn row(&mut self, visit: &Visit, returns: bool, again: bool, goes_on: bool) {
        let item = &self.picture.items[visit.item];
        let arrow = visit.arrow.map(|at| &self.picture.arrows[at]);
        let (mut state, mut why, mut since) = (item.state, why(&item.reason, &item.detail), item.since);
        let mut role = "";
        match arrow.map(|arrow| &arrow.need) {
            Some(ArrowReason::Wait { wait, own }) => {
                state = state_of(item, seen(wait.state));
                if !item.speaks {
                    (why, since) = (wait_why(wait), wait.since.or(since));
                }
                role = if *own { "its own " } else { "" };
            }
            Some(ArrowReason::MadeBy { .. }) if visit.product => role = "makes ",
            Some(ArrowReason::MadeBy { .. }) => role = "made by ",
            None => {}
        }
        if why.is_empty() && state == PictureState::Waiting {
            why = self.unmet(visit.item);
        }
        // What is good needs no words, unless it is good in another way than was meant.
        if state == PictureState::Ready && item.reason != Reason::RolledBack.as_str() {
            (why, since) = (String::new(), None);
        }
        let reference = match (returns, again) {
            (true, _) => " (back to itself)",
            (false, true) => " (above)",
            (false, false) => "",
        };
        let branch = self.branch(visit);
        self.shown[visit.item] = true;
        self.rows.push(TreeRow {
            lead: format!("{}{branch}", visit.lead),
            label: format!("{} {role}{}{reference}", mark(self.options.charset, state), self.shown(item)),
            state: Some(state),
            why,
            below: self.lead_below(visit)
                + match (goes_on, self.options.charset) {
                    (true, Charset::Unicode) => "│  ",
                    (true, Charset::Ascii) => "|  ",
                    (false, _) => "   ",
                },
            age: match (since, self.options.now) {
                (Some(since), Some(now)) => age(since, now),
                (Some(since), None) => since.to_string(),
                (None, _) => String::new(),
            },
        });
    }

    fn shown(&self, item: &PictureItem) -> String {
        self.options.kinds.shown(&item.node)
    }

    /// How much of what an item waits for it does not have.
    fn unmet(&self, item: usize) -> String {
        match self.waits[item] {
            (0, _) => String::new(),
            (unmet, all) => format!("{unmet} of {all} not met"),
        }
    }

    fn branch(&self, visit: &Visit) -> &'static str {
        match (self.options.charset, visit.depth, visit.last) {
            (_, 0, _) => "",
            (Charset::Unicode, _, false) => "├─ ",
            (Charset::Unicode, _, true) => "└─ ",
            (Charset::Ascii, _, false) => "|- ",
            (Charset::Ascii, _, true) => "`- ",
        }
    }

    fn lead_below(&self, visit: &Visit) -> String {
        let more = match (self.options.charset, visit.depth, visit.last) {
            (_, 0, _) => "",
            (Charset::Unicode, _, false) => "│  ",
            (Charset::Ascii, _, false) => "|  ",
            (_, _, true) => "   ",
        };
        format!("{}{more}", visit.lead)
    }

    fn deepest(&self) -> usize {
        self.options.width.map_or(DEEPEST, |width| (width / 2 / INDENT).clamp(4, DEEPEST))
    }

    /// Says how much is below the deepest level.
    fn leave_out(&mut self, item: usize, lead: &str) {
        let before = self.counted.len();
        let mut queue = vec![item];
        while let Some(item) = queue.pop() {
            for &at in &self.needs[item] {
                let next = self.picture.arrows[at].to;
                if !self.expanded[next] && self.counted.insert(next) {
                    queue.push(next);
                }
            }
        }
        let (branch, dots) =
            if self.options.charset == Charset::Unicode { ("└─ ", "…") } else { ("`- ", "...") };
        let label = match self.counted.len() - before {
            0 => format!("{dots} more, above"),
            count => format!("{dots} {count} more"),
        };
        self.rows.push(TreeRow {
            lead: format!("{lead}{branch}"),
            label,
            state: None,
            why: format!("see the tree of {}", self.shown(&self.picture.items[item])),
            age: String::new(),
            below: format!("{lead}   "),
        });
    }
}

/// What the one who waits sees, unless the thing itself has more to say.
fn state_of(item: &PictureItem, seen: PictureState) -> PictureState {
    match (item.state, seen) {
        (PictureState::Cycle, seen) if seen != PictureState::Ready => PictureState::Cycle,
        (PictureState::Waiting, PictureState::Running) => PictureState::Waiting,
        // What waited for it saw it; somebody has looked since.
        (PictureState::Missing, PictureState::Ready) if item.speaks => PictureState::Missing,
        (_, seen) => seen,
    }
}
