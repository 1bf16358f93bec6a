//! What a value weighs: to count what is not an evaluation.

use serde_json::Value;

/// What it takes to copy a value, or to look at all of it; counting ends beyond `limit`.
pub fn weight(value: &Value, limit: u64) -> u64 {
    let mut stack = vec![value];
    let mut weight = 0;
    while let Some(value) = stack.pop() {
        weight += 1;
        match value {
            Value::String(text) => weight += text.len() as u64 / 64,
            Value::Array(items) => stack.extend(items),
            Value::Object(fields) => {
                weight += fields.len() as u64;
                stack.extend(fields.values());
            }
            _ => {}
        }
        if weight > limit {
            break;
        }
    }
    weight
}
