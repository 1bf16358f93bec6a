//! The laws of the engine, one test each and more where a law has more sides than one.

mod acting;
mod deleting;
mod failing;
mod going;
mod invalid;
mod observing;
mod restarting;
mod waiting;

use linchpin_engine::contract::Seen;
use serde_json::json;

use crate::build::{observed, projection};

fn there(name: &str) -> Seen {
    observed(Some(projection(name, &format!("uid-{name}"), 1, json!({"metadata": {"name": name}}))), 1)
}

fn absent() -> Seen {
    observed(None, 1)
}
