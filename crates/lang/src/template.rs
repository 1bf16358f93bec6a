//! Go's `text/template` in Rust, bounded and curious about what it reads.
//!
//! Parses and renders the templates users write in actions and bodies: Go's syntax, semantics and number
//! formatting, with the part of sprig that manifests use. A corpus of cases rendered by real Go and real sprig
//! keeps it honest. What is different, on purpose:
//!
//! - A missing key is always an error, [`Cause::Missing`] with its path, and so is a field of a null; the engine
//!   waits for the path. `index` of a missing key stays nil, as in Go.
//! - `.Status.Endpoint` finds `status.endpoint`: exact key, small first letter, the only key equal but for case.
//! - Every rendering has limits ([`limits`]); no input panics, hangs or exhausts memory or stack.
//! - No function reads the environment, files, network, a random source or a clock; `now` and `.Now` are the
//!   caller's [`RenderClock`].
//! - Errors hold the place and source of the template, types and paths, never a value of the data.
//! - Texts are UTF-8; complex numbers, `%p` and `%x` of floating-point numbers are refused.
//! - The rendering reports the paths it used, for re-runs and explanations.
//!
//! Called by the engine's render step, by the doors (static reads, early parse errors) and by the linter.

mod body;
mod builtins;
mod compare;
mod documents;
mod error;
mod evaluate;
mod float;
mod format;
mod functions;
mod json;
mod lexer;
pub mod limits;
mod literal;
mod lookup;
mod moment;
mod node;
mod parser;
mod path;
mod pattern;
mod printf;
mod quote;
mod reads;
mod sprig;
mod store;
mod trail;
mod value;
mod yaml;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value as Json;

pub use body::{RenderedValue, ValueTemplate};
pub use documents::{DocumentError, parse_documents};
pub use error::{Cause, ParseError, RenderError};
pub use path::DataPath;
pub use reads::StaticReads;

use error::TemplatePosition;
use evaluate::Evaluator;
use node::{NodeKind, Pipeline, Tree};
use store::{Budget, Store};

/// The time a rendering takes for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderClock(Timestamp);

impl RenderClock {
    /// A clock that always shows this time.
    pub fn at(now: Timestamp) -> Self {
        Self(now)
    }

    /// The time it shows.
    pub fn now(&self) -> Timestamp {
        self.0
    }
}

/// A parsed template.
#[derive(Debug, Clone)]
pub struct Template {
    field: String,
    source: String,
    tree: Tree,
}

/// A rendered template and what was read for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// The paths whose values were used, with the keys the data has; paths that were looked for in vain too.
    pub reads: BTreeSet<DataPath>,
    /// The paths of which only the keys or the length were used.
    pub shapes: BTreeSet<DataPath>,
}

/// What one rendering gave, and what it left of its budget.
pub(crate) struct RenderOutcome {
    pub(crate) result: Result<(Json, BTreeSet<DataPath>, BTreeSet<DataPath>), RenderError>,
    pub(crate) budget: Budget,
}

impl Template {
    /// Parses a source; `field` is its name in errors, usually its path in the spec (`actions[2].template`).
    pub fn parse(field: &str, source: &str) -> Result<Self, ParseError> {
        match parser::parse(source) {
            Ok(tree) => Ok(Self { field: field.to_owned(), source: source.to_owned(), tree }),
            Err(problem) => {
                Err(ParseError::new(TemplatePosition::find(field, source, problem.offset), problem.message))
            }
        }
    }

    /// The name it was parsed under.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Its source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What it reads, as far as its source shows.
    pub fn reads(&self) -> StaticReads {
        reads::of(&self.tree)
    }

    /// Renders it with this data.
    pub fn render(&self, data: &Json, clock: &RenderClock) -> Result<Rendered, RenderError> {
        self.render_counted(data, clock, &mut 0)
    }

    /// Renders it with this data, and adds the steps that this took to `spent`.
    pub fn render_counted(
        &self,
        data: &Json,
        clock: &RenderClock,
        spent: &mut u64,
    ) -> Result<Rendered, RenderError> {
        let run = self.run(data, clock, Budget::full(), false, 0);
        *spent = spent.saturating_add(run.budget.spent());
        let (value, reads, shapes) = run.result?;
        let text = match value {
            Json::String(text) => text,
            _ => String::new(),
        };
        Ok(Rendered { text, reads, shapes })
    }

    /// The pipeline of a template that is nothing but one action with a value.
    pub(crate) fn single(&self) -> Option<&Pipeline> {
        match self.tree.main.as_slice() {
            [node] => match &node.kind {
                NodeKind::Action(pipeline) if pipeline.variables.is_empty() => Some(pipeline),
                _ => None,
            },
            _ => None,
        }
    }

    /// Renders within a budget; `typed` asks for the value of the single action instead of its text, `written` is
    /// how many bytes of output are spent already.
    pub(crate) fn run(
        &self,
        data: &Json,
        clock: &RenderClock,
        budget: Budget,
        typed: bool,
        written: usize,
    ) -> RenderOutcome {
        let mut evaluator = Evaluator::new(&self.tree, data, Store::new(clock.0, budget), self.source.len());
        let result = match self.single().filter(|_| typed) {
            Some(pipeline) => {
                evaluator.run_pipeline(pipeline).and_then(|value| json::to_json(&evaluator.store, &value, 0))
            }
            None => evaluator.run().map(|()| Json::String(std::mem::take(&mut evaluator.output))),
        };
        let result = result.and_then(|value| {
            let length = value.as_str().map_or(0, str::len);
            if written + length > limits::OUTPUT_BYTES {
                return Err(Cause::Limit { what: "bytes of output", limit: limits::OUTPUT_BYTES });
            }
            Ok(value)
        });
        let (reads, shapes) = evaluator.store.all_reads();
        let result = match result {
            Ok(value) => Ok((value, reads, shapes)),
            Err(cause) => {
                let place = TemplatePosition::find(&self.field, &self.source, evaluator.at);
                Err(RenderError::new(place, cause, reads, shapes))
            }
        };
        RenderOutcome { result, budget: evaluator.store.into_budget() }
    }
}
