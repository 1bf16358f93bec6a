//! The checked form of an expression: names resolved, functions known, patterns compiled, loops bounded. Only what
//! can be evaluated has a shape here.

use super::functions::CelFunction;
use crate::pattern::PricedPattern;

/// One part of an expression, and its position in the source (a character offset).
#[derive(Debug)]
pub(super) struct CelNode {
    pub(super) at: usize,
    /// Its start and end, as far as somebody may want to quote it: sides of `&&`, `||` and comparisons.
    pub(super) span: (usize, usize),
    /// How many nodes are on the longest way down, this one included.
    pub(super) height: usize,
    pub(super) kind: CelNodeKind,
}

#[derive(Debug)]
pub(super) enum CelNodeKind {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Type(&'static str),
    /// A declared variable, by its place among the declared ones.
    Variable(usize, String),
    /// The variable of an enclosing loop, by its place from the outermost.
    Local(usize, String),
    Field(Box<CelNode>, String),
    Has(Box<CelNode>, String),
    OptionalField(Box<CelNode>, String),
    Index(Box<CelNode>, Box<CelNode>),
    OptionalIndex(Box<CelNode>, Box<CelNode>),
    Not(Box<CelNode>),
    Negate(Box<CelNode>),
    And(Box<CelNode>, Box<CelNode>),
    Or(Box<CelNode>, Box<CelNode>),
    Conditional(Box<CelNode>, Box<CelNode>, Box<CelNode>),
    Binary(Binary, Box<CelNode>, Box<CelNode>),
    /// Items; one marked optional is left out when it is `optional.none()`.
    List(Vec<LiteralEntry>),
    /// Keys and values; a value marked optional is left out when it is `optional.none()`.
    Map(Vec<(CelNode, LiteralEntry)>),
    Each(Box<Each>),
    Call(CelFunction, Vec<CelNode>),
    Matches(Box<CelNode>, Box<PricedPattern>),
}

/// One entry of a list or map literal.
#[derive(Debug)]
pub(super) struct LiteralEntry {
    pub(super) node: CelNode,
    pub(super) optional: bool,
}

/// A macro that walks a list, or the keys of a map.
#[derive(Debug)]
pub(super) struct Each {
    pub(super) range: CelNode,
    /// The most elements the range may have.
    pub(super) limit: usize,
    pub(super) walk: Walk,
}

#[derive(Debug)]
pub(super) enum Walk {
    All(CelNode),
    Exists(CelNode),
    ExistsOne(CelNode),
    /// An optional filter and what becomes of each element; `filter` is a map to the element itself.
    Map(Option<CelNode>, CelNode),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Binary::Equal => "==",
            Binary::NotEqual => "!=",
            Binary::Less => "<",
            Binary::LessOrEqual => "<=",
            Binary::Greater => ">",
            Binary::GreaterOrEqual => ">=",
            Binary::In => "in",
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Remainder => "%",
        }
    }
}

impl CelNodeKind {
    /// Shows every direct part to `visit`, in the order of the text.
    pub(super) fn for_each_child<'n>(&'n self, visit: &mut dyn FnMut(&'n CelNode)) {
        match self {
            CelNodeKind::Null
            | CelNodeKind::Bool(_)
            | CelNodeKind::Int(_)
            | CelNodeKind::Uint(_)
            | CelNodeKind::Double(_)
            | CelNodeKind::String(_)
            | CelNodeKind::Type(_)
            | CelNodeKind::Variable(..)
            | CelNodeKind::Local(..) => {}
            CelNodeKind::Field(of, _)
            | CelNodeKind::Has(of, _)
            | CelNodeKind::OptionalField(of, _)
            | CelNodeKind::Not(of)
            | CelNodeKind::Negate(of)
            | CelNodeKind::Matches(of, _) => visit(of),
            CelNodeKind::Index(left, right)
            | CelNodeKind::OptionalIndex(left, right)
            | CelNodeKind::And(left, right)
            | CelNodeKind::Or(left, right)
            | CelNodeKind::Binary(_, left, right) => {
                visit(left);
                visit(right);
            }
            CelNodeKind::Conditional(test, yes, no) => {
                for part in [test, yes, no] {
                    visit(part);
                }
            }
            CelNodeKind::List(items) => items.iter().for_each(|item| visit(&item.node)),
            CelNodeKind::Map(entries) => {
                for (key, item) in entries {
                    visit(key);
                    visit(&item.node);
                }
            }
            CelNodeKind::Call(_, arguments) => arguments.iter().for_each(visit),
            CelNodeKind::Each(each) => {
                visit(&each.range);
                match &each.walk {
                    Walk::All(test) | Walk::Exists(test) | Walk::ExistsOne(test) => visit(test),
                    Walk::Map(filter, made) => filter.iter().chain([made]).for_each(visit),
                }
            }
        }
    }
}

impl CelNode {
    /// The path this part spells, in the words of the expression: what a missing value is called.
    pub(super) fn spell(&self) -> String {
        match &self.kind {
            CelNodeKind::Variable(_, name) | CelNodeKind::Local(_, name) => name.clone(),
            CelNodeKind::Field(of, name) | CelNodeKind::Has(of, name) => format!("{}.{name}", of.spell()),
            CelNodeKind::OptionalField(of, name) => format!("{}.?{name}", of.spell()),
            CelNodeKind::Index(of, index) => format!("{}[{}]", of.spell(), index.spell()),
            CelNodeKind::OptionalIndex(of, index) => format!("{}[?{}]", of.spell(), index.spell()),
            CelNodeKind::Int(value) => value.to_string(),
            CelNodeKind::String(value) => format!("'{value}'"),
            _ => "(…)".to_owned(),
        }
    }
}
