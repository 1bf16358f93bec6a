//! Coordinates for layers that are in order.

use super::layer::Layers;
use super::{BOX_GAP, LAYER_GAP, Layout, Point, Size};

/// Sweeps that look one way, left and right in turn.
const SWEEPS: usize = 8;
/// Sweeps after those that look both ways and pull long arrows straight.
const LAST_SWEEPS: usize = 12;
/// Height of the place where a long arrow crosses a layer.
const LANE: f64 = 10.0;
/// How much more a crossing arrow insists on its place than a box: bends in long lines are what the eye minds.
const LANE_WEIGHT: f64 = 6.0;
/// How far ends of arrows stay away from the corners of a box.
const CORNER: f64 = 12.0;

/// Coordinates of boxes and arrows.
pub(super) fn place(layers: &Layers, sizes: &[Size]) -> Layout {
    let height = |place: usize| sizes.get(place).map_or(LANE, |size| size.height);
    let centres = centres(layers, sizes.len(), &height);
    let mut lefts = Vec::new();
    let mut x = 0.0;
    for order in &layers.order {
        let widest =
            order.iter().filter_map(|&place| sizes.get(place)).map(|size| size.width).fold(0.0, f64::max);
        lefts.push((x, widest));
        x += widest + LAYER_GAP;
    }
    let boxes: Vec<Point> = sizes
        .iter()
        .enumerate()
        .map(|(at, size)| Point { x: lefts[layers.layer[at]].0, y: centres[at] - size.height / 2.0 })
        .collect();
    let widths: Vec<f64> = (0..sizes.len()).map(|at| lefts[layers.layer[at]].1).collect();
    let routes = routes(layers, sizes, &centres, &lefts);
    let bottom =
        (0..layers.layer.len()).map(|place| centres[place] + height(place) / 2.0).fold(0.0, f64::max);
    Layout { boxes, widths, routes, size: Point { x: (x - LAYER_GAP).max(0.0), y: bottom } }
}

/// The vertical middle of each place: as near to its neighbours as order and distances allow.
fn centres(layers: &Layers, boxes: usize, height: &dyn Fn(usize) -> f64) -> Vec<f64> {
    let mut centres = vec![0.0; layers.layer.len()];
    let apart = |a: usize, b: usize| {
        let gap = if a < boxes && b < boxes { BOX_GAP } else { BOX_GAP / 2.0 };
        f64::midpoint(height(a), height(b)) + gap
    };
    for order in &layers.order {
        for pair in order.windows(2) {
            centres[pair[1]] = centres[pair[0]] + apart(pair[0], pair[1]);
        }
    }
    let mut way_of = vec![None; layers.layer.len()];
    for way in &layers.ways {
        let inner = &way[1..way.len() - 1];
        for &lane in inner {
            way_of[lane] = Some(inner);
        }
    }
    let last = layers.order.len();
    for sweep in 0..SWEEPS + LAST_SWEEPS {
        let (to_right, both) = (sweep % 2 == 0, sweep >= SWEEPS);
        for step in 0..last {
            let order = &layers.order[if to_right { step } else { last - 1 - step }];
            let wish = |place: usize| {
                let left = layers.left[place].iter().filter(|_| to_right || both);
                let right = layers.right[place].iter().filter(|_| !to_right || both);
                let near = match way_of[place] {
                    Some(way) if both => mean(way.iter().map(|&lane| centres[lane])),
                    _ => mean(left.chain(right).map(|&next| centres[next])),
                };
                near.unwrap_or(centres[place])
            };
            let weight = |place: usize| if place < boxes { 1.0 } else { LANE_WEIGHT };
            let wishes: Vec<(f64, f64)> = order.iter().map(|&place| (wish(place), weight(place))).collect();
            let gaps: Vec<f64> = order.windows(2).map(|pair| apart(pair[0], pair[1])).collect();
            for (&place, centre) in order.iter().zip(spread(&wishes, &gaps)) {
                centres[place] = centre;
            }
        }
    }
    let top =
        (0..centres.len()).map(|place| centres[place] - height(place) / 2.0).fold(f64::INFINITY, f64::min);
    for centre in &mut centres {
        *centre = (*centre - top).round();
    }
    centres
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// Positions nearest to the wishes (position, weight) that keep the order and the gaps: isotonic regression, by
/// joining neighbours that want to overlap until none do.
fn spread(wishes: &[(f64, f64)], gaps: &[f64]) -> Vec<f64> {
    struct Block {
        sum: f64,
        weight: f64,
        count: usize,
    }
    let mut offsets = vec![0.0];
    for gap in gaps {
        offsets.push(offsets[offsets.len() - 1] + gap);
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (&(wish, weight), offset) in wishes.iter().zip(&offsets) {
        let mut block = Block { sum: (wish - offset) * weight, weight, count: 1 };
        while let Some(before) = blocks.pop_if(|before| before.sum / before.weight > block.sum / block.weight)
        {
            block.sum += before.sum;
            block.weight += before.weight;
            block.count += before.count;
        }
        blocks.push(block);
    }
    let starts = blocks.iter().flat_map(|block| std::iter::repeat_n(block.sum / block.weight, block.count));
    starts.zip(&offsets).map(|(start, offset)| start + offset).collect()
}

fn routes(layers: &Layers, sizes: &[Size], centres: &[f64], columns: &[(f64, f64)]) -> Vec<Vec<Point>> {
    let exits = ports(layers, sizes, centres, true);
    let entries = ports(layers, sizes, centres, false);
    let edges = |place: usize| {
        let (left, width) = columns[layers.layer[place]];
        (left, left + width)
    };
    let routes = layers.ways.iter().enumerate().map(|(at, way)| {
        let mut route = vec![Point { x: edges(way[0]).1, y: exits[at] }];
        for &place in &way[1..way.len() - 1] {
            let ((left, right), y) = (edges(place), centres[place]);
            route.extend([Point { x: left, y }, Point { x: right, y }]);
        }
        route.push(Point { x: edges(way[way.len() - 1]).0, y: entries[at] });
        if layers.turned[at] {
            route.reverse();
        }
        route
    });
    routes.collect()
}

/// Where each arrow leaves (or enters) its box: spread over the side, in the order of what is at the other end.
#[allow(clippy::cast_precision_loss)]
fn ports(layers: &Layers, sizes: &[Size], centres: &[f64], exit: bool) -> Vec<f64> {
    let mut at_box: Vec<Vec<usize>> = vec![Vec::new(); sizes.len()];
    let end = |way: &[usize]| if exit { (way[0], way[1]) } else { (way[way.len() - 1], way[way.len() - 2]) };
    for (at, way) in layers.ways.iter().enumerate() {
        at_box[end(way).0].push(at);
    }
    let mut ports = vec![0.0; layers.ways.len()];
    for (here, mut list) in at_box.into_iter().enumerate() {
        list.sort_by(|&a, &b| centres[end(&layers.ways[a]).1].total_cmp(&centres[end(&layers.ways[b]).1]));
        let room = (sizes[here].height - 2.0 * CORNER).max(0.0);
        let step = (room / (list.len().max(2) - 1) as f64).min(9.0);
        let top = centres[here] - step * (list.len().max(1) - 1) as f64 / 2.0;
        for (number, at) in list.into_iter().enumerate() {
            ports[at] = top + step * number as f64;
        }
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_that_fit_come_true_and_others_share_the_difference() {
        let gaps = [10.0, 10.0];
        assert_eq!(spread(&[(0.0, 1.0), (50.0, 1.0), (90.0, 1.0)], &gaps), [0.0, 50.0, 90.0]);
        assert_eq!(spread(&[(20.0, 1.0), (20.0, 1.0), (20.0, 1.0)], &gaps), [10.0, 20.0, 30.0]);
        assert!(spread(&[], &[]).is_empty());
    }
}
