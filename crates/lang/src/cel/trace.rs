//! Which paths an expression can read, found by following its selections from each variable.

use std::collections::BTreeMap;

use super::node::{CelNode, CelNodeKind, Walk};
use crate::reads::Reads;

/// Where a value comes from: a variable and the fields selected from it.
#[derive(Clone)]
struct Origin {
    variable: usize,
    path: Vec<String>,
    /// The path ends at a list or an unknown key: what is selected below cannot be named any more.
    sealed: bool,
}

/// What `root` reads of each variable that it names.
pub(super) fn reads(root: &CelNode, variables: &[&str]) -> BTreeMap<String, Reads> {
    let mut tracer = Tracer { locals: Vec::new(), reads: BTreeMap::new() };
    tracer.trace(root);
    tracer
        .reads
        .into_iter()
        .filter_map(|(variable, reads)| Some(((*variables.get(variable)?).to_owned(), reads)))
        .collect()
}

struct Tracer {
    locals: Vec<Option<Origin>>,
    reads: BTreeMap<usize, Reads>,
}

impl Tracer {
    /// Notes what evaluating `node` may look at.
    fn trace(&mut self, node: &CelNode) {
        if let Some(origin) = self.origin(node) {
            self.reads.entry(origin.variable).or_default().add(origin.path);
            return;
        }
        let CelNodeKind::Each(each) = &node.kind else {
            node.kind.for_each_child(&mut |child| self.trace(child));
            return;
        };
        self.trace(&each.range);
        let element = self.origin(&each.range).map(|origin| Origin { sealed: true, ..origin });
        self.locals.push(element);
        match &each.walk {
            Walk::All(test) | Walk::Exists(test) | Walk::ExistsOne(test) => self.trace(test),
            Walk::Map(filter, made) => filter.iter().chain([made]).for_each(|part| self.trace(part)),
        }
        self.locals.pop();
    }

    /// Where the value of `node` comes from, if it is a selection; notes what its indexes read on the way.
    fn origin(&mut self, node: &CelNode) -> Option<Origin> {
        match &node.kind {
            CelNodeKind::Variable(variable, _) => {
                Some(Origin { variable: *variable, path: Vec::new(), sealed: false })
            }
            CelNodeKind::Local(local, _) => self.locals.get(*local).cloned().flatten(),
            CelNodeKind::Field(of, name)
            | CelNodeKind::Has(of, name)
            | CelNodeKind::OptionalField(of, name) => self.origin(of).map(|origin| origin.select(name)),
            CelNodeKind::Index(of, index) | CelNodeKind::OptionalIndex(of, index) => {
                let origin = self.origin(of)?;
                if let CelNodeKind::String(name) = &index.kind {
                    return Some(origin.select(name));
                }
                self.trace(index);
                Some(Origin { sealed: true, ..origin })
            }
            _ => None,
        }
    }
}

impl Origin {
    fn select(mut self, name: &str) -> Self {
        if !self.sealed {
            self.path.push(name.to_owned());
        }
        self
    }
}
