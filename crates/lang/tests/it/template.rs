//! The template language, one file per promise.

mod bodies;
mod corpus;
mod documents;
mod errors;
mod limits;
mod lookup;
mod reads;

use jiff::Timestamp;
use linchpin_lang::template::{RenderClock, RenderError, Rendered, Template};
use serde_json::Value;

/// The time the corpus was rendered at, a little after 15:06 on the fourth of March 2026.
fn clock() -> RenderClock {
    RenderClock::at(Timestamp::from_millisecond(1_772_636_767_089).unwrap_or_default())
}

/// Parses and renders a template that must at least parse.
fn render(source: &str, data: &Value) -> Result<Rendered, RenderError> {
    Template::parse("field", source).unwrap().render(data, &clock())
}

/// The text of a template that must render.
fn text(source: &str, data: &Value) -> String {
    render(source, data).unwrap().text
}
