//! Calls: arguments evaluated and checked as Go does it, then the function itself.

use super::{Evaluated, Evaluator};
use crate::template::error::Cause;
use crate::template::functions::{Function, FunctionAction, Parameter, failure};
use crate::template::moment;
use crate::template::node::{Number, Operand, OperandKind};
use crate::template::value::Value;

impl<'d> Evaluator<'d> {
    /// Only a time has something that takes arguments: `(now).Format "2006"`.
    pub(super) fn method(
        &mut self,
        dot: &Value<'d>,
        words: &'d [Operand],
        last: Option<Value<'d>>,
    ) -> Evaluated<'d> {
        let refused = || Cause::Type("only a function takes arguments, this is a value".to_owned());
        let (receiver, fields) = match &words[0].kind {
            OperandKind::Field(fields) => (dot.clone(), fields),
            OperandKind::Variable(name, fields) => (self.variable(name)?, fields),
            OperandKind::Chain(base, fields) => (self.operand(dot, base)?, fields),
            _ => return Err(refused()),
        };
        let Some((name, path)) = fields.split_last() else {
            return Err(refused());
        };
        let Value::Moment(moment) = self.fields(receiver, path)? else {
            return Err(refused());
        };
        let mut arguments = Vec::new();
        for word in &words[1..] {
            arguments.push(self.operand(dot, word)?);
        }
        arguments.extend(last);
        match (&**name, arguments.as_slice()) {
            ("Format", [Value::Text(layout)]) => self.store.text(moment::format(moment, layout)),
            _ => Err(refused()),
        }
    }

    pub(super) fn call(
        &mut self,
        dot: &Value<'d>,
        function: &'static Function,
        words: &'d [Operand],
        last: Option<Value<'d>>,
    ) -> Evaluated<'d> {
        let place = self.at;
        let count = words.len() + usize::from(last.is_some());
        if !function.accepts(count) {
            let bound = if function.variadic.is_some() { "at least " } else { "" };
            let wanted = function.parameters.len();
            return failure(
                function.name,
                format!("wrong number of arguments: wants {bound}{wanted}, got {count}"),
            );
        }
        if matches!(function.action, FunctionAction::And | FunctionAction::Or) {
            return self.short_circuit(dot, matches!(function.action, FunctionAction::Or), words, last);
        }
        let mut arguments = Vec::with_capacity(count);
        for (position, word) in words.iter().enumerate() {
            let value = self.argument(dot, word, function, position)?;
            arguments.push(value);
        }
        if let Some(value) = last {
            arguments.push(self.checked(value, function, words.len())?);
        }
        for argument in &arguments {
            if let Value::Text(text) = argument {
                self.store.step(text.len() as u64 / 256)?;
            }
        }
        self.at = place;
        match function.action {
            FunctionAction::Call(body) => body(&mut self.store, &arguments),
            _ => refuse(words, arguments),
        }
    }

    fn short_circuit(
        &mut self,
        dot: &Value<'d>,
        stops_at: bool,
        words: &'d [Operand],
        last: Option<Value<'d>>,
    ) -> Evaluated<'d> {
        let mut value = Value::NIL;
        for word in words {
            value = self.operand(dot, word)?;
            if self.store.is_true(&value) == stops_at {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    fn argument(
        &mut self,
        dot: &Value<'d>,
        word: &'d Operand,
        function: &'static Function,
        position: usize,
    ) -> Evaluated<'d> {
        let parameter = function.parameter(position);
        self.at = word.offset;
        match (&word.kind, parameter) {
            (OperandKind::Number(Number { integer: Some(integer), .. }), Parameter::Int) => {
                Ok(Value::Int(*integer))
            }
            (OperandKind::Number(number), Parameter::Float) => Ok(Value::Float(number.float)),
            (OperandKind::Nil, Parameter::Any | Parameter::Dict) => Ok(Value::NIL),
            _ => {
                let value = self.operand(dot, word)?;
                self.at = word.offset;
                if value.is_nil()
                    && parameter == Parameter::Dict
                    && matches!(word.kind, OperandKind::Field(_) | OperandKind::Chain(..))
                {
                    return self.mismatch(&value, function, parameter);
                }
                self.checked(value, function, position)
            }
        }
    }

    /// Checks an argument as Go does: no conversions, not even between `int` and `int64`.
    fn checked(&self, value: Value<'d>, function: &'static Function, position: usize) -> Evaluated<'d> {
        let parameter = function.parameter(position);
        let fits = match parameter {
            Parameter::Any => true,
            Parameter::Text => matches!(value, Value::Text(_)),
            Parameter::Int => matches!(value, Value::Int(_)),
            Parameter::Bool => matches!(value, Value::Bool(_)),
            Parameter::Float => matches!(value, Value::Float(_)),
            Parameter::Moment => matches!(value, Value::Moment(_)),
            Parameter::Dict => {
                value.is_nil() || self.store.type_name(&value).0 == Parameter::Dict.type_name()
            }
        };
        if fits { Ok(value) } else { self.mismatch(&value, function, parameter) }
    }

    /// A null of the data where something is needed counts as missing: it may still come.
    fn mismatch(
        &self,
        value: &Value<'d>,
        function: &'static Function,
        parameter: Parameter,
    ) -> Evaluated<'d> {
        if let Value::Nil(path) = value
            && let Some(missing) = self.store.missing(*path)
        {
            return Err(missing);
        }
        failure(
            function.name,
            format!(
                "wrong type for an argument: expected {}, got {}",
                parameter.type_name(),
                self.store.type_name(value)
            ),
        )
    }
}

/// `fail` and `required`: the message is shown only as the template spells it, because a computed one may hold
/// anything.
fn refuse<'d>(words: &'d [Operand], mut arguments: Vec<Value<'d>>) -> Evaluated<'d> {
    if arguments.len() > 1 {
        let value = arguments.swap_remove(1);
        let empty = value.is_nil() || matches!(&value, Value::Text(text) if text.is_empty());
        if !empty {
            return Ok(value);
        }
    }
    let message = match words.first().map(|word| &word.kind) {
        Some(OperandKind::Text(text)) => text.to_string(),
        _ => "(its message is computed and therefore not shown)".to_owned(),
    };
    Err(Cause::Refused { message })
}
