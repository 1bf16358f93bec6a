//! From text to a checked tree: refuses everything that can be refused before there is data.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators,
};
use cel::parser::Parser;
use linchpin_words::limits;
use regex::RegexBuilder;

use super::functions::{self, Function};
use super::node::{Binary, Each, Item, Kind, Node, Walk};
use super::{
    CompileProblem, MAX_DEPTH, MAX_LIST_NESTED, MAX_LIST_SINGLE, MAX_NESTED_LOOPS, MAX_SOURCE_BYTES,
};

/// The most operators, dots and brackets a text may have. The parser builds its tree by recursion, one or more
/// frames for each of them; this keeps it far from the end of a 2 MiB stack.
const MAX_JOINTS: usize = 256;
/// The names of types, as `type(x) == string` compares them.
const TYPES: [&str; 10] = [
    "bool",
    "double",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

/// A refusal, and the character it is about.
pub(super) struct Refusal {
    pub(super) at: Option<usize>,
    pub(super) problem: CompileProblem,
}

impl From<CompileProblem> for Refusal {
    fn from(problem: CompileProblem) -> Self {
        Refusal { at: None, problem }
    }
}

/// Compiles a text that may use `variables`.
pub(super) fn compile(source: &str, variables: &[&str]) -> Result<Node, Refusal> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(CompileProblem::TooLong { bytes: source.len() }.into());
    }
    // Counted over the raw text, strings and comments included: crude, but it cannot be tricked.
    if source
        .bytes()
        .filter(|byte| b".[({!-+*/%?&|<>=".contains(byte))
        .count()
        > MAX_JOINTS
    {
        return Err(CompileProblem::TooDeep.into());
    }
    let (tree, info) = Parser::new()
        .enable_optional_syntax(true)
        .enable_ident_escape_syntax(true)
        .parse_with_source_info(source)
        .map_err(|errors| syntax(source, &errors))?;
    Lowering {
        source,
        info,
        variables,
        locals: Vec::new(),
        deepest_loop: 0,
    }
    .node(&tree, 1)
}

fn syntax(source: &str, errors: &cel::ParseErrors) -> Refusal {
    let Some(error) = errors.errors.first() else {
        return CompileProblem::Syntax("unreadable".to_owned()).into();
    };
    let (line, column) = (
        usize::try_from(error.pos.0).ok(),
        usize::try_from(error.pos.1).ok(),
    );
    let at = line
        .zip(column)
        .filter(|&(line, _)| line > 0)
        .map(|(line, column)| {
            source
                .split_inclusive('\n')
                .take(line - 1)
                .map(|line| line.chars().count())
                .sum::<usize>()
                + column.saturating_sub(1)
        });
    let first_line = error.msg.lines().next().unwrap_or_default();
    let message = first_line.strip_prefix("Syntax error: ").unwrap_or(first_line);
    Refusal {
        at,
        problem: CompileProblem::Syntax(message.chars().take(200).collect()),
    }
}

struct Lowering<'s> {
    source: &'s str,
    info: SourceInfo,
    variables: &'s [&'s str],
    /// The variables of the loops around the current node.
    locals: Vec<String>,
    /// The deepest nesting of loops seen since this was last reset.
    deepest_loop: usize,
}

impl Lowering<'_> {
    fn refuse(at: usize, problem: CompileProblem) -> Refusal {
        Refusal {
            at: Some(at),
            problem,
        }
    }

    fn boxed(&mut self, expression: &IdedExpr, depth: usize) -> Result<Box<Node>, Refusal> {
        self.node(expression, depth).map(Box::new)
    }

    fn node(&mut self, expression: &IdedExpr, depth: usize) -> Result<Node, Refusal> {
        let at = self
            .info
            .offset_for(expression.id)
            .map_or(0, |(start, _)| start as usize);
        if depth > MAX_DEPTH {
            return Err(Self::refuse(at, CompileProblem::TooDeep));
        }
        let below = depth + 1;
        let kind = match &expression.expr {
            Expr::Literal(literal) => constant(literal)
                .ok_or_else(|| Self::refuse(at, CompileProblem::Unsupported("byte strings")))?,
            Expr::Ident(name) => self.name(name, at)?,
            Expr::Select(select) => {
                let of = self.boxed(&select.operand, below)?;
                let name = select.field.clone();
                if select.test {
                    Kind::Has(of, name)
                } else {
                    Kind::Field(of, name)
                }
            }
            Expr::Call(call) => self.call(call, at, below)?,
            Expr::List(list) => Kind::List(
                list.elements
                    .iter()
                    .enumerate()
                    .map(|(index, element)| {
                        let optional = list.optional_indices.contains(&index);
                        Ok(Item {
                            node: self.node(element, below)?,
                            optional,
                        })
                    })
                    .collect::<Result<_, Refusal>>()?,
            ),
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return Err(Self::refuse(at, CompileProblem::Unsupported("messages")));
                    };
                    let key = self.node(&entry.key, below)?;
                    entries.push((
                        key,
                        Item {
                            node: self.node(&entry.value, below)?,
                            optional: entry.optional,
                        },
                    ));
                }
                Kind::Map(entries)
            }
            Expr::Comprehension(comprehension) => self.each(comprehension, at, below)?,
            Expr::Struct(_) => return Err(Self::refuse(at, CompileProblem::Unsupported("messages"))),
            Expr::Unspecified => return Err(CompileProblem::Syntax("an empty part".to_owned()).into()),
        };
        Ok(Node { at, kind })
    }

    fn name(&self, name: &str, at: usize) -> Result<Kind, Refusal> {
        let plain = name.strip_prefix('.').unwrap_or(name);
        if let Some(index) = self.locals.iter().rposition(|local| local == plain) {
            return Ok(Kind::Local(index, plain.to_owned()));
        }
        if let Some(index) = self.variables.iter().position(|&variable| variable == plain) {
            return Ok(Kind::Variable(index, plain.to_owned()));
        }
        if let Some(name) = TYPES.iter().find(|&&known| known == plain) {
            return Ok(Kind::Type(name));
        }
        let mut known: Vec<&str> = self.variables.to_vec();
        known.extend(self.locals.iter().map(String::as_str));
        let after_dash = at > 0 && self.source.chars().nth(at - 1) == Some('-');
        Err(Self::refuse(
            at,
            CompileProblem::UnknownName {
                name: plain.chars().take(64).collect(),
                known: known.join(", "),
                hint: if after_dash {
                    " (a name with a dash is written in brackets: x['a-b'])"
                } else {
                    ""
                },
            },
        ))
    }

    fn call(&mut self, call: &CallExpr, at: usize, depth: usize) -> Result<Kind, Refusal> {
        if call.target.is_none() {
            if let [only] = call.args.as_slice() {
                match call.func_name.as_str() {
                    operators::LOGICAL_NOT => return Ok(Kind::Not(self.boxed(only, depth)?)),
                    operators::NEGATE => return Ok(Kind::Negate(self.boxed(only, depth)?)),
                    _ => {}
                }
            }
            if let [left, right] = call.args.as_slice()
                && let Some(kind) = self.binary(&call.func_name, left, right, depth)?
            {
                return Ok(kind);
            }
            if let [test, yes, no] = call.args.as_slice()
                && call.func_name == operators::CONDITIONAL
            {
                let test = self.boxed(test, depth)?;
                return Ok(Kind::Conditional(
                    test,
                    self.boxed(yes, depth)?,
                    self.boxed(no, depth)?,
                ));
            }
        }
        self.function(call, at, depth)
    }

    fn binary(
        &mut self,
        operator: &str,
        left: &IdedExpr,
        right: &IdedExpr,
        depth: usize,
    ) -> Result<Option<Kind>, Refusal> {
        let binary = match operator {
            operators::LOGICAL_AND => {
                return Ok(Some(Kind::And(
                    self.boxed(left, depth)?,
                    self.boxed(right, depth)?,
                )));
            }
            operators::LOGICAL_OR => {
                return Ok(Some(Kind::Or(
                    self.boxed(left, depth)?,
                    self.boxed(right, depth)?,
                )));
            }
            operators::INDEX => {
                return Ok(Some(Kind::Index(
                    self.boxed(left, depth)?,
                    self.boxed(right, depth)?,
                )));
            }
            operators::OPT_INDEX => {
                return Ok(Some(Kind::OptionalIndex(
                    self.boxed(left, depth)?,
                    self.boxed(right, depth)?,
                )));
            }
            operators::OPT_SELECT => {
                let Expr::Literal(LiteralValue::String(name)) = &right.expr else {
                    return Err(CompileProblem::Syntax("a field name must follow .?".to_owned()).into());
                };
                return Ok(Some(Kind::OptionalField(
                    self.boxed(left, depth)?,
                    name.inner().to_owned(),
                )));
            }
            operators::EQUALS => Binary::Equal,
            operators::NOT_EQUALS => Binary::NotEqual,
            operators::LESS => Binary::Less,
            operators::LESS_EQUALS => Binary::LessOrEqual,
            operators::GREATER => Binary::Greater,
            operators::GREATER_EQUALS => Binary::GreaterOrEqual,
            operators::IN => Binary::In,
            operators::ADD => Binary::Add,
            operators::SUBSTRACT => Binary::Subtract,
            operators::MULTIPLY => Binary::Multiply,
            operators::DIVIDE => Binary::Divide,
            operators::MODULO => Binary::Remainder,
            _ => return Ok(None),
        };
        Ok(Some(Kind::Binary(
            binary,
            self.boxed(left, depth)?,
            self.boxed(right, depth)?,
        )))
    }

    fn function(&mut self, call: &CallExpr, at: usize, depth: usize) -> Result<Kind, Refusal> {
        let mut name = call.func_name.clone();
        let mut target = call.target.as_deref();
        if let Some(IdedExpr {
            expr: Expr::Ident(namespace),
            ..
        }) = target
            && namespace == "optional"
            && !self.variables.contains(&"optional")
        {
            name = format!("optional.{name}");
            target = None;
        }
        let arguments: Vec<&IdedExpr> = target.into_iter().chain(&call.args).collect();
        let Some(function) = functions::find(&name, target.is_some(), arguments.len()) else {
            return Err(Self::refuse(
                at,
                unknown_function(&name, target.is_some(), call.args.len()),
            ));
        };
        if function == Function::Matches {
            let pattern = match arguments.get(1).map(|argument| &argument.expr) {
                Some(Expr::Literal(LiteralValue::String(pattern))) => pattern.inner(),
                _ => {
                    return Err(Self::refuse(
                        at,
                        CompileProblem::Pattern("this one is computed".to_owned()),
                    ));
                }
            };
            let pattern = RegexBuilder::new(pattern)
                .size_limit(limits::PATTERN_COMPILED)
                .dfa_size_limit(limits::PATTERN_COMPILED)
                .build()
                .map_err(|error| Self::refuse(at, CompileProblem::Pattern(one_line(&error))))?;
            return Ok(Kind::Matches(self.boxed(arguments[0], depth)?, Box::new(pattern)));
        }
        let arguments = arguments
            .into_iter()
            .map(|argument| self.node(argument, depth))
            .collect::<Result<_, _>>()?;
        Ok(Kind::Call(function, arguments))
    }

    /// Recognises the loop that each macro of the parser expands to; there is no other way to write one.
    fn each(&mut self, loop_: &ComprehensionExpr, at: usize, depth: usize) -> Result<Kind, Refusal> {
        let range = self.node(&loop_.iter_range, depth)?;
        let step = match &loop_.loop_step.expr {
            Expr::Call(step) if loop_.iter_var2.is_none() => step,
            _ => {
                return Err(Self::refuse(
                    at,
                    CompileProblem::Unsupported("loops of this form"),
                ));
            }
        };
        self.locals.push(loop_.iter_var.clone());
        let outer = std::mem::replace(&mut self.deepest_loop, self.locals.len());
        let walk = match (step.func_name.as_str(), step.args.as_slice()) {
            (operators::LOGICAL_AND, [_, test]) => Walk::All(self.node(test, depth)?),
            (operators::LOGICAL_OR, [_, test]) => Walk::Exists(self.node(test, depth)?),
            (operators::ADD, [_, made]) => Walk::Map(None, self.node(only_element(made, at)?, depth)?),
            (
                operators::CONDITIONAL,
                [
                    test,
                    IdedExpr {
                        expr: Expr::Call(add),
                        ..
                    },
                    _,
                ],
            ) => match add.args.as_slice() {
                [
                    _,
                    IdedExpr {
                        expr: Expr::Literal(_),
                        ..
                    },
                ] => Walk::ExistsOne(self.node(test, depth)?),
                [_, made] => {
                    let test = self.node(test, depth)?;
                    Walk::Map(Some(test), self.node(only_element(made, at)?, depth)?)
                }
                _ => {
                    return Err(Self::refuse(
                        at,
                        CompileProblem::Unsupported("loops of this form"),
                    ));
                }
            },
            _ => {
                return Err(Self::refuse(
                    at,
                    CompileProblem::Unsupported("loops of this form"),
                ));
            }
        };
        self.locals.pop();
        let nested = self.deepest_loop;
        self.deepest_loop = nested.max(outer);
        if nested > MAX_NESTED_LOOPS {
            return Err(Self::refuse(at, CompileProblem::TooManyLoops));
        }
        let limit = if nested == 1 {
            MAX_LIST_SINGLE
        } else {
            MAX_LIST_NESTED
        };
        Ok(Kind::Each(Box::new(Each { range, limit, walk })))
    }
}

fn only_element(list: &IdedExpr, at: usize) -> Result<&IdedExpr, Refusal> {
    match &list.expr {
        Expr::List(list) if list.elements.len() == 1 => Ok(&list.elements[0]),
        _ => Err(Refusal {
            at: Some(at),
            problem: CompileProblem::Unsupported("loops of this form"),
        }),
    }
}

fn constant(literal: &LiteralValue) -> Option<Kind> {
    Some(match literal {
        LiteralValue::Boolean(value) => Kind::Bool(*value.inner()),
        LiteralValue::Bytes(_) => return None,
        LiteralValue::Double(value) => Kind::Double(*value.inner()),
        LiteralValue::Int(value) => Kind::Int(*value.inner()),
        LiteralValue::Null => Kind::Null,
        LiteralValue::String(value) => Kind::String(value.inner().to_owned()),
        LiteralValue::UInt(value) => Kind::Uint(*value.inner()),
    })
}

fn unknown_function(name: &str, member: bool, arguments: usize) -> CompileProblem {
    let forms = functions::forms(name);
    let hint = if !forms.is_empty() {
        format!("; use {}", forms.join(" or "))
    } else if name == "now" {
        "; there is no clock in conditions: use a timeout".to_owned()
    } else {
        format!("; there are {}", functions::names().join(", "))
    };
    let dot = if member { "." } else { "" };
    let name: String = name.chars().take(64).collect();
    let plural = if arguments == 1 { "" } else { "s" };
    CompileProblem::UnknownFunction {
        call: format!("{dot}{name}() with {arguments} argument{plural}"),
        hint,
    }
}

/// The last line of a regex error says what is wrong; the ones before draw the pattern.
fn one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ")
        .unwrap_or(last)
        .chars()
        .take(200)
        .collect()
}
