//! What the demo provider knows, as a table for people.

use std::fmt::Write as _;

use linchpin_words::text::line_of;
use serde_json::Value;

use super::{DemoItem, DemoState};

/// The widest text of a cell.
const CELL: usize = 60;

/// Everything, as plain text.
pub(super) fn draw(state: &DemoState) -> String {
    let mut text = String::from("Linchpin demo provider\n\nEMPLOYERS\n");
    let mut rows = vec![["SCOPE", "ID", "REMOTE VIP", "QPS", ""].map(str::to_owned)];
    for (scope, items) in &state.employers {
        for (id, kept) in items {
            rows.push([
                cell(scope),
                cell(id),
                field(kept, "/remoteVIP"),
                field(kept, "/remoteVIPQPS"),
                String::new(),
            ]);
        }
    }
    write_rows(&mut text, &rows);
    text.push_str("\nEMPLOYEES\n");
    let mut rows = vec![["SCOPE", "NAME", "IP", "TRAFFIC", "WEIGHT"].map(str::to_owned)];
    for (scope, items) in &state.employees {
        for (id, kept) in items {
            let on = kept.statuses.pointer("/extraStatus/trafficOn").and_then(Value::as_bool);
            rows.push([
                cell(scope),
                cell(kept.name.as_deref().unwrap_or(id)),
                field(kept, "/ip"),
                on.map_or("-", |on| if on { "on" } else { "off" }).to_owned(),
                field(kept, "/extraStatus/trafficWeight"),
            ]);
        }
    }
    write_rows(&mut text, &rows);
    text.push_str("\nThe same as JSON: /v1/state\n");
    text
}

fn cell(text: &str) -> String {
    line_of(text, CELL)
}

fn field(kept: &DemoItem, path: &str) -> String {
    match kept.statuses.pointer(path) {
        Some(Value::String(text)) if !text.is_empty() => cell(text),
        Some(Value::Number(number)) => number.to_string(),
        _ => "-".to_owned(),
    }
}

fn write_rows(text: &mut String, rows: &[[String; 5]]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..5).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a String cannot fail.
            let _ = write!(line, "{cell:<width$}   ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if rows.len() == 1 {
        text.push_str("(none)\n");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_shows_who_has_traffic_and_no_text_breaks_it() {
        let mut state = DemoState::default();
        assert_eq!(draw(&state).matches("(none)").count(), 2);
        let kept = |statuses| DemoItem { name: Some("web-1".to_owned()), statuses, in_traffic: None };
        let on = json!({"ip": "10.0.0.7", "extraStatus": {"trafficOn": true, "trafficWeight": 100}});
        let items = [("web-1".to_owned(), kept(on)), ("x\n".repeat(99), kept(json!({"ip": 1})))];
        state.employees.insert("Service/shop/web".to_owned(), items.into());
        let text = draw(&state);
        assert!(text.contains("Service/shop/web   web-1   10.0.0.7   on        100\n"), "{text}");
        assert!(text.lines().all(|line| line.len() < 400), "{text}");
    }
}
