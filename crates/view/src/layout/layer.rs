//! Which layer everything is in, and in which order.

/// Rounds of ordering for small pictures.
const ROUNDS: usize = 24;
/// Roughly how many neighbours all rounds together may look at.
const ORDER_BUDGET: usize = 4_000_000;
/// How many places long arrows may take in the layers they cross; beyond that they cross in one curve.
const PLACES_BUDGET: usize = 40_000;

/// Boxes, and the places where long arrows cross a layer, by layer and in order.
pub(super) struct Layers {
    /// Places of each layer from top to bottom. Numbers below the count of boxes are boxes.
    pub order: Vec<Vec<usize>>,
    /// The layer of each place.
    pub layer: Vec<usize>,
    /// For each arrow the places it goes through, left to right, its two ends included.
    pub ways: Vec<Vec<usize>>,
    /// Whether an arrow goes from right to left.
    pub turned: Vec<bool>,
    /// Neighbours of each place in the layer to the left.
    pub left: Vec<Vec<usize>>,
    /// Neighbours of each place in the layer to the right.
    pub right: Vec<Vec<usize>>,
}

/// Layers for `count` boxes.
pub(super) fn layers(count: usize, arrows: &[(usize, usize)]) -> Layers {
    let turned = turned(count, arrows);
    let forward: Vec<(usize, usize)> = arrows
        .iter()
        .zip(&turned)
        .map(|(&(from, to), &turned)| if turned { (to, from) } else { (from, to) })
        .collect();
    let mut layer = assign(count, &forward);
    let spans: usize = forward.iter().map(|&(from, to)| layer[to] - layer[from] - 1).sum();
    let mut ways = Vec::with_capacity(forward.len());
    for &(from, to) in &forward {
        let mut way = vec![from];
        if spans <= PLACES_BUDGET {
            for between in layer[from] + 1..layer[to] {
                way.push(layer.len());
                layer.push(between);
            }
        }
        way.push(to);
        ways.push(way);
    }
    let (mut left, mut right) = (vec![Vec::new(); layer.len()], vec![Vec::new(); layer.len()]);
    for pair in ways.iter().flat_map(|way| way.windows(2)) {
        right[pair[0]].push(pair[1]);
        left[pair[1]].push(pair[0]);
    }
    let mut layers = Layers { order: Vec::new(), layer, ways, turned, left, right };
    layers.start_order(count);
    layers.improve();
    layers
}

/// Which arrows close a cycle when walking in the order of the boxes.
fn turned(count: usize, arrows: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut outgoing = vec![Vec::new(); count];
    let mut incoming = vec![0_usize; count];
    for (at, &(from, to)) in arrows.iter().enumerate() {
        outgoing[from].push(at);
        incoming[to] += 1;
    }
    let mut turned = vec![false; arrows.len()];
    let mut marks = vec![Mark::New; count];
    // Beginning where nothing comes in keeps the arrows that people expect to go forward.
    let mut starts: Vec<usize> = (0..count).collect();
    starts.sort_by_key(|&at| incoming[at] > 0);
    for start in starts {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        let mut stack = vec![(start, 0)];
        while let Some(top) = stack.last_mut() {
            let (node, next) = *top;
            top.1 += 1;
            let Some(&arrow) = outgoing[node].get(next) else {
                marks[node] = Mark::Done;
                stack.pop();
                continue;
            };
            let to = arrows[arrow].1;
            match marks[to] {
                Mark::New => {
                    marks[to] = Mark::Open;
                    stack.push((to, 0));
                }
                Mark::Open => turned[arrow] = true,
                Mark::Done => {}
            }
        }
    }
    turned
}

/// The longest way from the left, then everything as far right as what it needs allows, unless that
/// makes more arrows longer than shorter.
fn assign(count: usize, arrows: &[(usize, usize)]) -> Vec<usize> {
    let (mut outgoing, mut incoming) = (vec![Vec::new(); count], vec![0_usize; count]);
    for &(from, to) in arrows {
        outgoing[from].push(to);
        incoming[to] += 1;
    }
    let mut open = incoming.clone();
    let mut order: Vec<usize> = (0..count).filter(|&at| open[at] == 0).collect();
    let mut layer = vec![0; count];
    let mut at = 0;
    while at < order.len() {
        let node = order[at];
        at += 1;
        for &to in &outgoing[node] {
            layer[to] = layer[to].max(layer[node] + 1);
            open[to] -= 1;
            if open[to] == 0 {
                order.push(to);
            }
        }
    }
    for &node in order.iter().rev() {
        let nearest = outgoing[node].iter().map(|&to| layer[to]).min();
        if let Some(nearest) = nearest.filter(|_| outgoing[node].len() >= incoming[node]) {
            layer[node] = layer[node].max(nearest - 1);
        }
    }
    let first = layer.iter().copied().min().unwrap_or(0);
    layer.into_iter().map(|layer| layer - first).collect()
}

impl Layers {
    /// A first order: depth first from the left, so that what hangs together lies together.
    fn start_order(&mut self, count: usize) {
        let layers = self.layer.iter().copied().max().map_or(0, |last| last + 1);
        self.order = vec![Vec::new(); layers];
        let mut seen = vec![false; self.layer.len()];
        let mut starts: Vec<usize> = (0..count).collect();
        starts.sort_by_key(|&at| (!self.left[at].is_empty(), self.layer[at]));
        for start in starts {
            let mut stack = vec![start];
            while let Some(place) = stack.pop() {
                if !std::mem::replace(&mut seen[place], true) {
                    self.order[self.layer[place]].push(place);
                    stack.extend(self.right[place].iter().rev());
                }
            }
        }
    }

    /// Sweeps right and left, ordering by the middle of the neighbours, and keeps the order with the fewest crossings.
    fn improve(&mut self) {
        let cost = self.right.iter().map(Vec::len).sum::<usize>() + self.layer.len();
        let rounds = (ORDER_BUDGET / cost.max(1)).min(ROUNDS);
        let mut best = (self.crossings(), self.order.clone());
        for round in 0..rounds {
            if best.0 == 0 {
                break;
            }
            let last = self.order.len();
            if round % 2 == 0 {
                (1..last).for_each(|layer| self.reorder(layer, true));
            } else {
                (0..last - 1).rev().for_each(|layer| self.reorder(layer, false));
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.order.clone());
            }
        }
        self.order = best.1;
    }

    fn positions(&self) -> Vec<usize> {
        let mut position = vec![0; self.layer.len()];
        for layer in &self.order {
            for (at, &place) in layer.iter().enumerate() {
                position[place] = at;
            }
        }
        position
    }

    #[allow(clippy::cast_precision_loss)]
    fn reorder(&mut self, layer: usize, by_left: bool) {
        let beside = if by_left { &self.order[layer - 1] } else { &self.order[layer + 1] };
        let mut position = std::collections::BTreeMap::new();
        for (at, &place) in beside.iter().enumerate() {
            position.insert(place, at);
        }
        let neighbours = if by_left { &self.left } else { &self.right };
        let middle = |at: usize, place: usize| {
            let known: Vec<usize> =
                neighbours[place].iter().filter_map(|next| position.get(next).copied()).collect();
            if known.is_empty() { at as f64 } else { known.iter().sum::<usize>() as f64 / known.len() as f64 }
        };
        let mut keyed: Vec<(f64, usize)> =
            self.order[layer].iter().enumerate().map(|(at, &place)| (middle(at, place), place)).collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.order[layer] = keyed.into_iter().map(|(_, place)| place).collect();
    }

    /// How often arrows cross between neighbouring layers.
    fn crossings(&self) -> usize {
        let position = self.positions();
        let mut crossings = 0;
        for layer in &self.order {
            let mut ends: Vec<usize> = Vec::new();
            for &place in layer {
                let mut right: Vec<usize> = self.right[place].iter().map(|&to| position[to]).collect();
                right.sort_unstable();
                ends.extend(right);
            }
            crossings += inversions(&ends);
        }
        crossings
    }
}

/// How many pairs are in the wrong order, counted with a Fenwick tree.
fn inversions(values: &[usize]) -> usize {
    let size = values.iter().copied().max().map_or(0, |last| last + 1);
    let mut tree = vec![0_usize; size + 1];
    let mut inversions = 0;
    for (seen, &value) in values.iter().enumerate() {
        let (mut not_larger, mut at) = (0, value + 1);
        while at > 0 {
            not_larger += tree[at];
            at &= at - 1;
        }
        inversions += seen - not_larger;
        at = value + 1;
        while at <= size {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    inversions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inversions_are_crossings() {
        assert_eq!(inversions(&[0, 1, 2]), 0);
        assert_eq!(inversions(&[2, 1, 0]), 3);
        assert_eq!(inversions(&[1, 1, 0, 2]), 2);
    }

    #[test]
    fn two_crossed_pairs_are_untangled() {
        let layers = layers(4, &[(0, 3), (1, 2), (1, 3), (0, 3)]);
        assert_eq!(layers.crossings(), 0);
    }

    #[test]
    fn an_arrow_that_closes_a_cycle_is_turned() {
        let layers = layers(3, &[(0, 1), (1, 2), (2, 0)]);
        assert_eq!(layers.turned, [false, false, true]);
        assert_eq!(layers.ways[2].len(), 3);
    }
}
