//! The three conditions that every tool knows: Ready, Reconciling, Stalled.
//!
//! Exactly one of them is true, but for a finished object whose dependency was lost: it is not ready, nothing goes on,
//! and nobody has to do anything. Each carries the generation it was judged for.

use linchpin_engine::step::{Phase, Report};
use linchpin_words::{Condition, ConditionType, Reason, Timestamp, condition};

/// The conditions for a report. Times of transition are kept from the conditions that are there.
pub(crate) fn draw(
    current: &[Condition],
    report: &Report,
    generation: i64,
    now: Timestamp,
) -> Vec<Condition> {
    let reason = report.reason.unwrap_or(Reason::Progressing);
    let stalled = report.phase == Phase::Failed;
    let reconciling = !report.ready && !stalled && report.phase != Phase::Completed;
    let mut conditions = current.to_vec();
    for (kind, holds) in [
        (ConditionType::Ready, report.ready),
        (ConditionType::Reconciling, reconciling),
        (ConditionType::Stalled, stalled),
    ] {
        let new = Condition::new(kind, holds, reason, &report.message, generation, now);
        condition::set(&mut conditions, new);
    }
    conditions
}
