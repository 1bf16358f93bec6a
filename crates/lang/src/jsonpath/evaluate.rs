//! Walks the steps of a path over a value: a frontier of values, moved one step at a time. The data is never
//! recursed over, only filters inside filters are, and those are few.

use std::cmp::Ordering;

use serde_json::Value as Json;

use super::{Comparison, Filter, MAX_RESULTS, MAX_VISITS, Operand, PathTooLarge, Step};
use crate::compare::same_number;

/// All values that `steps` lead to; how many were looked at is added to `spent`.
pub(super) fn find<'v>(
    steps: &[Step],
    root: &'v Json,
    spent: &mut u64,
) -> Result<Vec<&'v Json>, PathTooLarge> {
    let mut walker = Walker { root, visits: MAX_VISITS };
    let found = walker.walk(steps, root);
    *spent = spent.saturating_add((MAX_VISITS - walker.visits) as u64);
    found
}

struct Walker<'v> {
    root: &'v Json,
    visits: usize,
}

impl<'v> Walker<'v> {
    fn visit(&mut self, values: usize) -> Result<(), PathTooLarge> {
        self.visits = self.visits.checked_sub(values).ok_or(PathTooLarge)?;
        Ok(())
    }

    fn walk(&mut self, steps: &[Step], from: &'v Json) -> Result<Vec<&'v Json>, PathTooLarge> {
        let mut frontier = vec![from];
        for step in steps {
            let mut next = Vec::new();
            for value in frontier {
                self.step(step, value, &mut next)?;
                if next.len() > MAX_RESULTS {
                    return Err(PathTooLarge);
                }
            }
            frontier = next;
        }
        Ok(frontier)
    }

    fn step(&mut self, step: &Step, value: &'v Json, found: &mut Vec<&'v Json>) -> Result<(), PathTooLarge> {
        self.visit(1)?;
        match (step, value) {
            (Step::Field(name), Json::Object(fields)) => found.extend(fields.get(name)),
            (Step::Index(index), Json::Array(items)) => {
                found.extend(place(*index, items.len()).and_then(|place| items.get(place)));
            }
            (Step::Slice { start, end, every }, Json::Array(items)) => {
                let start = start.map_or(0, |start| clamp(start, items.len()));
                let end = end.map_or(items.len(), |end| clamp(end, items.len()));
                self.visit(end.saturating_sub(start) / every)?;
                found.extend(items.get(start..end).unwrap_or_default().iter().step_by(*every));
            }
            (Step::Wildcard, Json::Array(items)) => {
                self.visit(items.len())?;
                found.extend(items);
            }
            (Step::Wildcard, Json::Object(fields)) => {
                self.visit(fields.len())?;
                found.extend(fields.values());
            }
            (Step::Union(entries), _) => {
                for entry in entries {
                    self.step(entry, value, found)?;
                }
            }
            (Step::Descend, _) => self.descend(value, found)?,
            (Step::Filter(filter), Json::Array(items)) => {
                for item in items {
                    self.visit(1)?;
                    if self.passes(filter, item)? {
                        found.push(item);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The value and everything below it, parents first. What cannot have anything selected from it is left out, so
    /// that the bound on results counts only what matters.
    fn descend(&mut self, value: &'v Json, found: &mut Vec<&'v Json>) -> Result<(), PathTooLarge> {
        let mut stack = vec![value];
        while let Some(value) = stack.pop() {
            self.visit(1)?;
            match value {
                Json::Array(items) => stack.extend(items.iter().rev()),
                Json::Object(fields) => stack.extend(fields.values().rev()),
                _ => continue,
            }
            found.push(value);
            if found.len() > MAX_RESULTS || stack.len() > MAX_VISITS {
                return Err(PathTooLarge);
            }
        }
        Ok(())
    }

    fn passes(&mut self, filter: &Filter, element: &'v Json) -> Result<bool, PathTooLarge> {
        let left = self.operand(&filter.left, element)?;
        let Some((comparison, right)) = &filter.comparison else {
            return Ok(!left.is_empty());
        };
        let right = self.operand(right, element)?;
        // As in kubectl: the first value found on each side, and nothing found passes nothing.
        let (Some(left), Some(right)) = (left.first(), right.first()) else {
            return Ok(false);
        };
        Ok(compare(left, *comparison, right))
    }

    fn operand<'o>(&mut self, operand: &'o Operand, element: &'v Json) -> Result<Vec<&'o Json>, PathTooLarge>
    where
        'v: 'o,
    {
        match operand {
            Operand::Literal(literal) => Ok(vec![literal]),
            Operand::Element(steps) => self.walk(steps, element),
            Operand::Root(steps) => self.walk(steps, self.root),
        }
    }
}

/// Scalars of one type compare; anything else differs and has no order.
fn compare(left: &Json, comparison: Comparison, right: &Json) -> bool {
    let ordering = match (left, right) {
        (Json::Number(left), Json::Number(right)) => same_number(left, right),
        (Json::String(left), Json::String(right)) => Some(left.cmp(right)),
        (Json::Bool(left), Json::Bool(right)) => Some(left.cmp(right)),
        (Json::Null, Json::Null) => Some(Ordering::Equal),
        _ => None,
    };
    match comparison {
        Comparison::Equal => ordering == Some(Ordering::Equal),
        Comparison::NotEqual => ordering != Some(Ordering::Equal),
        Comparison::Less => ordering == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => ordering == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// The place an index means, counted from the end when it is negative.
fn place(index: i64, length: usize) -> Option<usize> {
    let distance = usize::try_from(index.unsigned_abs()).ok()?;
    if index < 0 { length.checked_sub(distance) } else { Some(distance) }
}

fn clamp(bound: i64, length: usize) -> usize {
    place(bound, length).unwrap_or(0).min(length)
}
