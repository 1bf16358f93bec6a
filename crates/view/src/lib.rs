//! The wait-for graph drawn.
//!
//! [`Picture`] is what there is to see: things with their states, and arrows from each to what must come first. It is
//! taken from the engine's graph once and then drawn as a text [`tree`], as [`dot`], [`mermaid`] or [`svg`], or
//! written as [`json`]. The command line and the page show the same picture. Pure: the same picture and options give
//! the same bytes, and whatever a user wrote into a name or a message comes out as text, never as markup.

pub mod dot;
pub mod json;
mod layout;
pub mod mermaid;
mod picture;
pub mod svg;
mod text;
pub mod tree;

pub use picture::{
    Arrow, ArrowReason, NodeFacts, Picture, PictureGroup, PictureItem, PictureSelection, PictureState,
};
