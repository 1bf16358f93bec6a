//! `.Values` while an object is compiled: to know names, and to notice when a source of values has changed.
//!
//! A source that was not looked at yet makes compiling wait; one that is not there is left to the engine, which holds
//! the actions that read it and says so.

use std::cell::OnceCell;

use linchpin_engine::{
    contract::Seen,
    plan::SpecError,
    step::{self, Secrets},
};
use linchpin_lang::weight;
use linchpin_words::limits;
use serde_json::{Value, json};

use crate::{assemble::Frame, errors::not_yet, values};

/// The values of one object.
pub(crate) struct Values<'f> {
    frame: &'f Frame<'f>,
    data: OnceCell<Value>,
}

impl<'f> Values<'f> {
    pub(crate) fn new(frame: &'f Frame<'f>) -> Self {
        Self { frame, data: OnceCell::new() }
    }

    /// All values as templates see them, as far as their sources are there.
    pub(crate) fn data(&self) -> Result<&Value, SpecError> {
        self.look()?;
        if let Some(data) = self.data.get() {
            return Ok(data);
        }
        let own = values::own(self.frame.common);
        let data = json!({"Values": step::values(&self.frame.inputs, &own, self.frame.kinds.facts())});
        self.pay(weight(&data, limits::TURN_STEPS), "spec.values")?;
        Ok(self.data.get_or_init(|| data))
    }

    /// Takes what reading them took.
    pub(crate) fn pay(&self, steps: u64, field: &str) -> Result<(), SpecError> {
        self.frame.kinds.pay(steps, field, "there is a template")
    }

    /// Which of them are a Secret's.
    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::of_values(&self.frame.inputs, &values::own(self.frame.common), self.frame.kinds.facts())
    }

    /// Which version of each source was seen; none where one is not there that must be. A Secret is known by its version
    /// and never by its content.
    pub(crate) fn sources(&self) -> Result<Option<Value>, SpecError> {
        self.look()?;
        let mut found = Vec::new();
        for input in &self.frame.inputs {
            let Some(Seen::Objects(observed)) = self.frame.kinds.facts().get(&input.want) else {
                return Ok(None);
            };
            match observed.items.first() {
                None if input.optional => found.push(Value::Null),
                None => return Ok(None),
                Some(item) if item.kind.kind == "Secret" => found.push(json!([item.uid, item.version])),
                Some(item) => found.push(item.content.get("data").cloned().unwrap_or_default()),
            }
        }
        Ok(Some(Value::Array(found)))
    }

    /// Asks for every source, and waits for the first look at it.
    fn look(&self) -> Result<(), SpecError> {
        for input in &self.frame.inputs {
            match self.frame.kinds.ask(input.want.clone()) {
                None => return Err(not_yet("spec.valuesFrom")),
                Some(Seen::Unknown(why)) if why.is_passing() => return Err(not_yet("spec.valuesFrom")),
                Some(_) => {}
            }
        }
        Ok(())
    }
}
