//! Objects whose strings are templates.
//!
//! A `create` body, a patch, an AppBundle component: any JSON value in which every string may be a template. A
//! string that is nothing but one `{{ … }}` keeps the type of its value (`replicas: "{{ .Values.replicas }}"` is a
//! number), except where Kubernetes wants text: under any `metadata` and under the object's own `data` and
//! `stringData`. Keys are not templates. Strings without `{{` cost nothing.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::error::{ParseError, RenderError, TemplatePosition};
use super::limits;
use super::path::DataPath;
use super::reads::StaticReads;
use super::store::Budget;
use super::{RenderClock, Template};

/// A JSON value with templates in it, parsed.
#[derive(Debug, Clone)]
pub struct ValueTemplate {
    root: Piece,
}

#[derive(Debug, Clone)]
enum Piece {
    Plain(Json),
    Text(Box<Template>),
    Typed(Box<Template>),
    List(Vec<Piece>),
    Object(Vec<(String, Piece)>),
}

/// A rendered value and what was read for it.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedValue {
    /// The value with all templates rendered.
    pub value: Json,
    /// The paths whose values were used.
    pub reads: BTreeSet<DataPath>,
    /// The paths of which only keys or length were used.
    pub shapes: BTreeSet<DataPath>,
}

impl ValueTemplate {
    /// Parses every string of a value; `field` is the path of the value in its own object.
    pub fn parse(field: &str, value: &Json) -> Result<Self, ParseError> {
        Ok(Self { root: piece(field, value, false, 0)? })
    }

    /// Whether there is no template in it at all.
    pub fn is_plain(&self) -> bool {
        matches!(self.root, Piece::Plain(_))
    }

    /// What all templates read together, as far as their sources show.
    pub fn reads(&self) -> StaticReads {
        let mut reads = StaticReads::default();
        collect(&self.root, &mut reads);
        reads
    }

    /// Renders every template; the limits hold for all of them together.
    pub fn render(&self, data: &Json, clock: &RenderClock) -> Result<RenderedValue, RenderError> {
        self.render_counted(data, clock, &mut 0)
    }

    /// Renders every template, and adds the steps that this took to `spent`.
    pub fn render_counted(
        &self,
        data: &Json,
        clock: &RenderClock,
        spent: &mut u64,
    ) -> Result<RenderedValue, RenderError> {
        let mut run = Run {
            data,
            clock,
            budget: Budget::full(),
            output: 0,
            reads: BTreeSet::new(),
            shapes: BTreeSet::new(),
        };
        let value = run.piece(&self.root);
        *spent = spent.saturating_add(run.budget.spent());
        Ok(RenderedValue { value: value?, reads: run.reads, shapes: run.shapes })
    }
}

fn piece(field: &str, value: &Json, text_only: bool, depth: usize) -> Result<Piece, ParseError> {
    if depth > limits::VALUE_DEPTH {
        return Err(ParseError::new(
            TemplatePosition::find(field, "", 0),
            format!("a value may be nested at most {} deep", limits::VALUE_DEPTH),
        ));
    }
    match value {
        Json::String(text) if text.contains("{{") => {
            let template = Box::new(Template::parse(field, text)?);
            Ok(if !text_only && template.single().is_some() {
                Piece::Typed(template)
            } else {
                Piece::Text(template)
            })
        }
        Json::Array(items) => {
            let pieces: Result<Vec<Piece>, ParseError> = items
                .iter()
                .enumerate()
                .map(|(index, item)| match item {
                    Json::String(text) if !text.contains("{{") => Ok(Piece::Plain(item.clone())),
                    _ => piece(&format!("{field}[{index}]"), item, text_only, depth + 1),
                })
                .collect();
            let pieces = pieces?;
            let plain = pieces.iter().all(|piece| matches!(piece, Piece::Plain(_)));
            Ok(if plain { Piece::Plain(value.clone()) } else { Piece::List(pieces) })
        }
        Json::Object(entries) => {
            let mut pieces = Vec::with_capacity(entries.len());
            for (key, item) in entries {
                let text_only =
                    text_only || key == "metadata" || (depth == 0 && (key == "data" || key == "stringData"));
                let inner = match item {
                    Json::String(text) if !text.contains("{{") => Piece::Plain(item.clone()),
                    Json::Null | Json::Bool(_) | Json::Number(_) => Piece::Plain(item.clone()),
                    _ => piece(&format!("{field}.{key}"), item, text_only, depth + 1)?,
                };
                pieces.push((key.clone(), inner));
            }
            let plain = pieces.iter().all(|(_, piece)| matches!(piece, Piece::Plain(_)));
            Ok(if plain { Piece::Plain(value.clone()) } else { Piece::Object(pieces) })
        }
        _ => Ok(Piece::Plain(value.clone())),
    }
}

fn collect(piece: &Piece, reads: &mut StaticReads) {
    match piece {
        Piece::Plain(_) => {}
        Piece::Text(template) | Piece::Typed(template) => {
            let more = template.reads();
            reads.paths.extend(more.paths);
            reads.dynamic |= more.dynamic;
        }
        Piece::List(pieces) => pieces.iter().for_each(|piece| collect(piece, reads)),
        Piece::Object(pieces) => pieces.iter().for_each(|(_, piece)| collect(piece, reads)),
    }
}

struct Run<'r> {
    data: &'r Json,
    clock: &'r RenderClock,
    budget: Budget,
    output: usize,
    reads: BTreeSet<DataPath>,
    shapes: BTreeSet<DataPath>,
}

impl Run<'_> {
    fn piece(&mut self, piece: &Piece) -> Result<Json, RenderError> {
        Ok(match piece {
            Piece::Plain(value) => value.clone(),
            Piece::Text(template) => self.template(template, false)?,
            Piece::Typed(template) => self.template(template, true)?,
            Piece::List(pieces) => {
                Json::Array(pieces.iter().map(|piece| self.piece(piece)).collect::<Result<_, _>>()?)
            }
            Piece::Object(pieces) => {
                let mut object = Map::new();
                for (key, piece) in pieces {
                    object.insert(key.clone(), self.piece(piece)?);
                }
                Json::Object(object)
            }
        })
    }

    fn template(&mut self, template: &Template, typed: bool) -> Result<Json, RenderError> {
        let budget = std::mem::replace(&mut self.budget, Budget::full());
        let run = template.run(self.data, self.clock, budget, typed, self.output);
        let (result, budget) = (run.result, run.budget);
        self.budget = budget;
        let (value, reads, shapes) = result.map_err(|error| error.with_reads(&self.reads, &self.shapes))?;
        self.output += value.as_str().map_or(0, str::len);
        self.reads.extend(reads);
        self.shapes.extend(shapes);
        Ok(value)
    }
}
