//! Three small bounded languages for what people write in specs: Go templates, CEL and kubectl's JSONPath.
//!
//! All of them are pure: no clock, no I/O, no chance; the same text over the same data gives the same result. Every
//! text is checked at compile time, every run is bounded in time, memory and stack, and an error names the field,
//! the position and what was expected, never a value.

pub mod answer;
pub mod cel;
pub mod compare;
pub mod jsonpath;
mod pattern;
mod quote;
pub mod reads;
pub mod template;
mod weight;

pub use weight::weight;
