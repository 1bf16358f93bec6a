//! Every case of every row.

use std::collections::BTreeSet;

use super::fixtures::{Case, file_of, load, rows, state};

#[test]
fn every_case_gets_the_verdict_it_expects() {
    let mut wrong = Vec::new();
    for case in load().into_values().flatten() {
        let found = case.verdict();
        let expected = &case.expect;
        let right = found.state == state(&expected.state)
            && found.reason == expected.reason
            && expected.message.as_ref().is_none_or(|message| *message == found.message);
        if !right {
            let wanted = format!("{} {} {:?}", expected.state, expected.reason, expected.message);
            wrong.push(format!(
                "{}\n  expected {wanted}\n  found    {:?} {} {:?}",
                case.name, found.state, found.reason, found.message
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_shows_every_case_that_it_claims() {
    let cases = load();
    let mut missing = Vec::new();
    for row in rows() {
        let shown: BTreeSet<_> = cases[row.name].iter().map(Case::column).collect();
        let claimed = [
            ("ready", true),
            ("in progress", !row.in_progress.is_empty()),
            ("failed", !row.failed.is_empty()),
            ("older generation", row.observes),
        ];
        for (column, claims) in claimed {
            if claims && !shown.contains(column) {
                missing.push(format!("{} ({}.yaml): no case shows {column}", row.name, file_of(row)));
            }
            if !claims && shown.contains(column) && column != "older generation" {
                missing.push(format!("{}: a case shows {column}, which the row does not claim", row.name));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_fixture_is_judged_by_the_row_it_stands_for() {
    for case in load().into_values().flatten() {
        assert_eq!(case.rule().name, case.row, "{}", case.name);
    }
}
