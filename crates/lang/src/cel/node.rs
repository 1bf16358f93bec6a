//! The checked form of an expression: names resolved, functions known, patterns compiled, loops bounded. Only what
//! can be evaluated has a shape here.

use super::functions::Function;
use crate::pattern::Pattern;

/// One part of an expression, and where it stands in the source (a character offset).
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: usize,
    /// From where to where it stands, as far as somebody may want to quote it: sides of `&&`, `||` and comparisons.
    pub(super) span: (usize, usize),
    /// How many nodes stand on the longest way down, this one included.
    pub(super) height: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
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
    Field(Box<Node>, String),
    Has(Box<Node>, String),
    OptionalField(Box<Node>, String),
    Index(Box<Node>, Box<Node>),
    OptionalIndex(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Conditional(Box<Node>, Box<Node>, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    /// Items; one marked optional is left out when it is `optional.none()`.
    List(Vec<Item>),
    /// Keys and values; a value marked optional is left out when it is `optional.none()`.
    Map(Vec<(Node, Item)>),
    Each(Box<Each>),
    Call(Function, Vec<Node>),
    Matches(Box<Node>, Box<Pattern>),
}

/// One entry of a list or map literal.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) node: Node,
    pub(super) optional: bool,
}

/// A macro that walks a list, or the keys of a map.
#[derive(Debug)]
pub(super) struct Each {
    pub(super) range: Node,
    /// The most elements the range may have.
    pub(super) limit: usize,
    pub(super) walk: Walk,
}

#[derive(Debug)]
pub(super) enum Walk {
    All(Node),
    Exists(Node),
    ExistsOne(Node),
    /// An optional filter and what becomes of each element; `filter` is a map to the element itself.
    Map(Option<Node>, Node),
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

impl Kind {
    /// Shows every direct part to `visit`, in the order of the text.
    pub(super) fn for_each_child<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        match self {
            Kind::Null
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Double(_)
            | Kind::String(_)
            | Kind::Type(_)
            | Kind::Variable(..)
            | Kind::Local(..) => {}
            Kind::Field(of, _)
            | Kind::Has(of, _)
            | Kind::OptionalField(of, _)
            | Kind::Not(of)
            | Kind::Negate(of)
            | Kind::Matches(of, _) => visit(of),
            Kind::Index(left, right)
            | Kind::OptionalIndex(left, right)
            | Kind::And(left, right)
            | Kind::Or(left, right)
            | Kind::Binary(_, left, right) => {
                visit(left);
                visit(right);
            }
            Kind::Conditional(test, yes, no) => [test, yes, no].into_iter().for_each(|part| visit(part)),
            Kind::List(items) => items.iter().for_each(|item| visit(&item.node)),
            Kind::Map(entries) => {
                for (key, item) in entries {
                    visit(key);
                    visit(&item.node);
                }
            }
            Kind::Call(_, arguments) => arguments.iter().for_each(visit),
            Kind::Each(each) => {
                visit(&each.range);
                match &each.walk {
                    Walk::All(test) | Walk::Exists(test) | Walk::ExistsOne(test) => visit(test),
                    Walk::Map(filter, made) => filter.iter().chain([made]).for_each(visit),
                }
            }
        }
    }
}

impl Node {
    /// The path this part spells, in the words of the expression: what a missing value is called.
    pub(super) fn spell(&self) -> String {
        match &self.kind {
            Kind::Variable(_, name) | Kind::Local(_, name) => name.clone(),
            Kind::Field(of, name) | Kind::Has(of, name) => format!("{}.{name}", of.spell()),
            Kind::OptionalField(of, name) => format!("{}.?{name}", of.spell()),
            Kind::Index(of, index) => format!("{}[{}]", of.spell(), index.spell()),
            Kind::OptionalIndex(of, index) => format!("{}[?{}]", of.spell(), index.spell()),
            Kind::Int(value) => value.to_string(),
            Kind::String(value) => format!("'{value}'"),
            _ => "(…)".to_owned(),
        }
    }
}
