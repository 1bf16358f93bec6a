//! What is inside an action: pipelines, their commands and the words of a command.

use super::{ParseProblem, Parsed, Parser, problem};
use crate::template::functions;
use crate::template::lexer::TokenKind;
use crate::template::limits;
use crate::template::literal;
use crate::template::node::{Number, Operand, OperandKind, Pipeline};

impl Parser<'_> {
    pub(super) fn pipeline(&mut self, context: &str, end: TokenKind) -> Parsed<Pipeline> {
        self.skip_space();
        let offset = self.peek().offset;
        let mut pipeline = Pipeline { offset, variables: Vec::new(), assigns: false, commands: Vec::new() };
        self.declarations(context, &mut pipeline)?;
        loop {
            let token = self.take_word();
            match token.kind {
                _ if token.kind == end => break,
                TokenKind::Bool
                | TokenKind::Character
                | TokenKind::Dot
                | TokenKind::Field
                | TokenKind::Identifier
                | TokenKind::Number
                | TokenKind::Nil
                | TokenKind::RawText
                | TokenKind::Quoted
                | TokenKind::Variable
                | TokenKind::LeftParenthesis => {
                    self.next -= 1;
                    let command = self.command()?;
                    pipeline.commands.push(command);
                }
                _ => return Self::unexpected(token, context),
            }
        }
        if pipeline.commands.is_empty() {
            return problem(offset, format!("a value is missing in {context}"));
        }
        for command in &pipeline.commands[1..] {
            let first = &command[0];
            if matches!(
                first.kind,
                OperandKind::Bool(_)
                    | OperandKind::Dot
                    | OperandKind::Nil
                    | OperandKind::Number(_)
                    | OperandKind::Text(_)
            ) {
                return problem(first.offset, "only a function can follow a |");
            }
        }
        Ok(pipeline)
    }

    fn declarations(&mut self, context: &str, pipeline: &mut Pipeline) -> Parsed<()> {
        loop {
            self.skip_space();
            let variable = self.peek();
            if variable.kind != TokenKind::Variable {
                return Ok(());
            }
            let start = self.next;
            self.take();
            self.skip_space();
            let next = self.peek();
            match next.kind {
                TokenKind::Assign | TokenKind::Declare => {
                    pipeline.assigns = next.kind == TokenKind::Assign;
                    self.take();
                    pipeline.variables.push(variable.text.into());
                    self.variables.push(variable.text.into());
                    return Ok(());
                }
                TokenKind::Comma => {
                    self.take();
                    pipeline.variables.push(variable.text.into());
                    self.variables.push(variable.text.into());
                    if context != "range" || pipeline.variables.len() > 1 {
                        return problem(next.offset, format!("too many variables are declared in {context}"));
                    }
                    self.skip_space();
                    if self.peek().kind != TokenKind::Variable {
                        return problem(next.offset, "a range declares variables only");
                    }
                }
                _ => {
                    self.next = start;
                    return Ok(());
                }
            }
        }
    }

    fn command(&mut self) -> Parsed<Vec<Operand>> {
        let mut words = Vec::new();
        loop {
            self.skip_space();
            if let Some(operand) = self.operand()? {
                words.push(operand);
            }
            let token = self.peek();
            match token.kind {
                TokenKind::Space => continue,
                TokenKind::RightDelimiter | TokenKind::RightParenthesis => {}
                TokenKind::Pipe => {
                    self.take();
                }
                _ => return Self::unexpected(token, "a command"),
            }
            if words.is_empty() {
                return problem(token.offset, "this command is empty");
            }
            return Ok(words);
        }
    }

    fn operand(&mut self) -> Parsed<Option<Operand>> {
        let Some(mut operand) = self.term()? else {
            return Ok(None);
        };
        let first = usize::from(matches!(operand.kind, OperandKind::Field(_)));
        let mut fields: Vec<Box<str>> = Vec::new();
        while self.peek().kind == TokenKind::Field {
            let field = self.take();
            if first + fields.len() >= limits::FIELDS {
                return problem(field.offset, format!("a chain may have at most {} fields", limits::FIELDS));
            }
            fields.push(field.text[1..].into());
        }
        if fields.is_empty() {
            return Ok(Some(operand));
        }
        operand.kind = match operand.kind {
            OperandKind::Field(mut names) => {
                names.append(&mut fields);
                OperandKind::Field(names)
            }
            OperandKind::Variable(name, mut names) => {
                names.append(&mut fields);
                OperandKind::Variable(name, names)
            }
            OperandKind::Bool(_)
            | OperandKind::Text(_)
            | OperandKind::Number(_)
            | OperandKind::Nil
            | OperandKind::Dot => return problem(operand.offset, "a field cannot follow this value"),
            kind => OperandKind::Chain(Box::new(Operand { offset: operand.offset, kind }), fields),
        };
        Ok(Some(operand))
    }

    fn term(&mut self) -> Parsed<Option<Operand>> {
        let token = self.peek();
        let offset = token.offset;
        let literal_problem = |message: &'static str| ParseProblem { offset, message: message.to_owned() };
        let kind = match token.kind {
            TokenKind::Identifier => match functions::find(token.text) {
                Ok(function) => OperandKind::Function(function),
                Err(message) => return problem(offset, message),
            },
            TokenKind::Dot => OperandKind::Dot,
            TokenKind::Nil => OperandKind::Nil,
            TokenKind::Variable => {
                if !self.variables.iter().any(|name| **name == *token.text) {
                    return problem(offset, format!("the variable {} is not declared", token.text));
                }
                OperandKind::Variable(token.text.into(), Vec::new())
            }
            TokenKind::Field => OperandKind::Field(vec![token.text[1..].into()]),
            TokenKind::Bool => OperandKind::Bool(token.text == "true"),
            TokenKind::Character => {
                let value = literal::character(token.text).map_err(literal_problem)?;
                OperandKind::Number(Number {
                    integer: Some(i64::from(value)),
                    float: f64::from(value),
                    looks_like_float: false,
                })
            }
            TokenKind::Number => OperandKind::Number(number(token.text).map_err(literal_problem)?),
            TokenKind::Quoted | TokenKind::RawText => {
                OperandKind::Text(literal::text(token.text).map_err(literal_problem)?.into())
            }
            TokenKind::LeftParenthesis => {
                self.take();
                let inner = self
                    .nested(offset, |parser| parser.pipeline("parentheses", TokenKind::RightParenthesis))?;
                return Ok(Some(Operand { offset, kind: OperandKind::Pipeline(Box::new(inner)) }));
            }
            _ => return Ok(None),
        };
        self.take();
        Ok(Some(Operand { offset, kind }))
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::float_cmp)]
fn number(text: &str) -> Result<Number, &'static str> {
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let looks_like_float =
        if hexadecimal { text.contains(['p', 'P']) } else { text.contains(['.', 'e', 'E', 'p', 'P']) };
    if let Some(integer) = literal::integer(text) {
        return Ok(Number { integer: Some(integer), float: integer as f64, looks_like_float });
    }
    let float = literal::float(text).ok_or("this is not a number")?;
    if !looks_like_float {
        return Err("this integer is too large");
    }
    let integer = (float as i64 as f64 == float).then_some(float as i64);
    Ok(Number { integer, float, looks_like_float })
}
