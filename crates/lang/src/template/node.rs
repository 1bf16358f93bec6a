//! The parsed template: a tree of plain data that evaluation walks and never changes.

use std::collections::BTreeMap;

use super::functions::Function;

/// Nodes one after another.
pub(crate) type NodeList = Vec<TemplateNode>;

/// One piece of a template.
#[derive(Debug, Clone)]
pub(crate) struct TemplateNode {
    pub(crate) offset: usize,
    pub(crate) kind: NodeKind,
}

/// What a piece of a template does.
#[derive(Debug, Clone)]
pub(crate) enum NodeKind {
    Text(Box<str>),
    Action(Pipeline),
    If(Branches),
    With(Branches),
    Range { over: Pipeline, body: NodeList, otherwise: NodeList },
    Template { name: Box<str>, argument: Option<Pipeline> },
    Break,
    Continue,
}

/// `if … else if … else`: kept flat, so that a long chain is no deep tree.
#[derive(Debug, Clone)]
pub(crate) struct Branches {
    pub(crate) tests: Vec<(Pipeline, NodeList)>,
    pub(crate) otherwise: NodeList,
}

/// Commands that feed each other, and the variables their result goes to.
#[derive(Debug, Clone)]
pub(crate) struct Pipeline {
    pub(crate) offset: usize,
    pub(crate) variables: Vec<Box<str>>,
    pub(crate) assigns: bool,
    pub(crate) commands: Vec<Vec<Operand>>,
}

/// One word of a command.
#[derive(Debug, Clone)]
pub(crate) struct Operand {
    pub(crate) offset: usize,
    pub(crate) kind: OperandKind,
}

/// What a word means.
#[derive(Debug, Clone)]
pub(crate) enum OperandKind {
    Bool(bool),
    Number(Number),
    Text(Box<str>),
    Nil,
    Dot,
    Field(Vec<Box<str>>),
    Variable(Box<str>, Vec<Box<str>>),
    Function(&'static Function),
    Pipeline(Box<Pipeline>),
    Chain(Box<Operand>, Vec<Box<str>>),
}

/// A number as written: Go gives it the type that the place it is used in asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    pub(crate) integer: Option<i64>,
    pub(crate) float: f64,
    pub(crate) looks_like_float: bool,
}

/// The templates of one source by name; the whole source is the main one.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) main: NodeList,
    pub(crate) named: BTreeMap<Box<str>, NodeList>,
}
