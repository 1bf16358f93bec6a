//! Where things go in a drawing: layers from left to right, few crossings, straight lines.
//!
//! The classic four steps (Sugiyama): turn arrows that close a cycle, put everything one layer left of what it needs,
//! order each layer by the middle of its neighbours, then place it as near to them as the order allows. Connected
//! parts are laid out one by one and stacked. No recursion; work on large pictures is bounded by doing fewer rounds.

mod layer;
mod place;

/// A box to place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub width: f64,
    pub height: f64,
}

/// Where a box or a point is; for boxes the upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub x: f64,
    pub y: f64,
}

/// A finished drawing.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Upper left corner of each box.
    pub boxes: Vec<Point>,
    /// Width of each box: all of a layer are as wide as the widest.
    pub widths: Vec<f64>,
    /// Points of each arrow from its start to its end; between two of them it goes straight inside a layer and in a
    /// curve between layers.
    pub routes: Vec<Vec<Point>>,
    /// Extent of everything.
    pub size: Point,
}

/// Space between layers, for the curves.
pub(crate) const LAYER_GAP: f64 = 64.0;
/// Space between boxes of a layer.
const BOX_GAP: f64 = 18.0;
/// Space between connected parts.
const PART_GAP: f64 = 34.0;
/// Lone boxes fill rows at least this wide.
const ROW_WIDTH: f64 = 900.0;

/// Lays out boxes and the arrows between them.
pub(crate) fn layout(sizes: &[Size], arrows: &[(usize, usize)]) -> Layout {
    let mut layout = Layout {
        boxes: vec![Point::default(); sizes.len()],
        widths: sizes.iter().map(|size| size.width).collect(),
        routes: vec![Vec::new(); arrows.len()],
        size: Point::default(),
    };
    let mut lone = Vec::new();
    for part in parts(sizes.len(), arrows) {
        if part.len() == 1 {
            lone.push(part[0]);
            continue;
        }
        let top = if layout.size.y > 0.0 { layout.size.y + PART_GAP } else { 0.0 };
        place_part(&mut layout, sizes, arrows, &part, top);
    }
    place_lone(&mut layout, sizes, &lone);
    for (at, &(from, to)) in arrows.iter().enumerate() {
        if from != to {
            continue;
        }
        let Point { x, y } = layout.boxes[from];
        let right = x + layout.widths[from];
        layout.routes[at] =
            vec![Point { x: right, y: y + 14.0 }, Point { x: right, y: y + sizes[from].height - 14.0 }];
    }
    layout
}

/// Connected parts, the largest first; members ascending.
fn parts(count: usize, arrows: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut neighbours = vec![Vec::new(); count];
    for &(from, to) in arrows {
        neighbours[from].push(to);
        neighbours[to].push(from);
    }
    let mut seen = vec![false; count];
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for start in 0..count {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let mut part = vec![start];
        let mut at = 0;
        while at < part.len() {
            for &next in &neighbours[part[at]] {
                if !std::mem::replace(&mut seen[next], true) {
                    part.push(next);
                }
            }
            at += 1;
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    parts
}

fn place_part(layout: &mut Layout, sizes: &[Size], arrows: &[(usize, usize)], part: &[usize], top: f64) {
    let inside = |at: usize| part.binary_search(&at).ok();
    let own: Vec<(usize, (usize, usize))> = arrows
        .iter()
        .enumerate()
        .filter(|(_, (from, to))| from != to)
        .filter_map(|(at, &(from, to))| Some((at, (inside(from)?, inside(to)?))))
        .collect();
    let ends: Vec<(usize, usize)> = own.iter().map(|&(_, ends)| ends).collect();
    let local: Vec<Size> = part.iter().map(|&at| sizes[at]).collect();
    let layers = layer::layers(part.len(), &ends);
    let placed = place::place(&layers, &local);
    let shift = |point: Point| Point { x: point.x, y: point.y + top };
    for (local, &at) in part.iter().enumerate() {
        layout.boxes[at] = shift(placed.boxes[local]);
        layout.widths[at] = placed.widths[local];
    }
    for ((at, _), route) in own.into_iter().zip(placed.routes) {
        layout.routes[at] = route.into_iter().map(shift).collect();
    }
    layout.size.x = layout.size.x.max(placed.size.x);
    layout.size.y = top + placed.size.y;
}

/// Things without arrows, in rows below the rest.
fn place_lone(layout: &mut Layout, sizes: &[Size], lone: &[usize]) {
    let limit = layout.size.x.max(ROW_WIDTH);
    let mut y = if layout.size.y > 0.0 { layout.size.y + PART_GAP } else { 0.0 };
    let (mut x, mut row_height) = (0.0_f64, 0.0_f64);
    for &at in lone {
        let size = sizes[at];
        if x > 0.0 && x + size.width > limit {
            (x, y) = (0.0, y + row_height + BOX_GAP);
            row_height = 0.0;
        }
        layout.boxes[at] = Point { x, y };
        layout.size.x = layout.size.x.max(x + size.width);
        x += size.width + BOX_GAP;
        row_height = row_height.max(size.height);
        layout.size.y = layout.size.y.max(y + row_height);
    }
}
