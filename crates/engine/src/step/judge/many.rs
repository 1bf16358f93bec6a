//! Judging what a selector finds: many objects, counted.
//!
//! Each object is judged by the table in every step, which costs little; what users say about objects is evaluated within
//! the budget of the step, and what is left over is neither for nor against: the count may be decided without it.

use linchpin_words::{Reason, limits};

use super::{
    RequirementView,
    clauses::ClauseSet,
    requirement::{JudgeContext, judge_one, unknown, view},
};
use crate::{
    contract::{Observed, Projection},
    plan::{ExpectedCount, Test, share},
    readiness::{Judgement, Wanted},
    step::fact::{Fact, Holds},
};

pub(super) fn judge_many(
    test: &Test,
    wanted: &Wanted,
    observed: &Observed,
    around: &JudgeContext<'_>,
) -> (Fact, RequirementView) {
    let effort = around.fresh_world.effort;
    let items: Vec<&Projection> =
        observed.items.iter().map(AsRef::as_ref).filter(|item| !item.deleting).collect();
    if !effort.looks_at(items.len()) {
        let message = format!(
            "{} objects match; the selectors of one object may find {} in all",
            items.len(),
            limits::TURN_OBJECTS
        );
        return (unknown(false, observed.live), view("Unknown", Reason::OverBudget.as_str(), message, false));
    }
    // None is one that was postponed.
    let judged: Vec<Option<Judgement>> =
        items.iter().map(|item| judge_one(test, wanted, Some(item), true, around)).collect();
    let each = || judged.iter().flatten();
    let met = each().filter(|one| one.met).count() as u64;
    let matching = items.len() as u64;
    let open = judged.iter().filter(|one| one.is_none()).count() as u64;
    let expect = test.expect.unwrap_or(ExpectedCount::AtLeast(1));
    let counts = |met: u64| match (expect, wanted) {
        (_, Wanted::Absent) => observed.items.is_empty(),
        (ExpectedCount::AtLeast(count), _) => met >= count,
        (ExpectedCount::Exactly(count), _) => met == count && matching == count,
        (ExpectedCount::All, _) => matching > 0 && met == matching,
    };
    let (holds, may_hold) = (counts(met), counts(met + open));
    let hopeless = each().any(|one| one.failed) && matches!(expect, ExpectedCount::All);
    let fact = Fact {
        holds: if holds {
            Holds::Met
        } else if hopeless {
            Holds::Failed
        } else if open > 0 && may_hold {
            Holds::Unknown { passing: true }
        } else {
            Holds::Unmet
        },
        live: observed.live && (open == 0 || !may_hold),
        progress: each().fold(matching, |mark, one| mark.rotate_left(7) ^ one.verdict.progress),
        ..Fact::default()
    };
    let undecided = matches!(fact.holds, Holds::Unknown { .. });
    let message = if undecided {
        let done = matching - open;
        format!(
            "{done} of {matching} matching objects are evaluated, {met} of them are {wanted}; the rest follows"
        )
    } else {
        let worst = judged
            .iter()
            .zip(&items)
            .find_map(|(one, item)| one.as_ref().filter(|one| !one.met).map(|one| (one, *item)));
        let detail = worst.map_or_else(String::new, |(one, item)| detail(test, one, item, around));
        format!("{met} of {matching} matching objects are {wanted}, {} wanted{detail}", in_words(expect))
    };
    let state = match fact.holds {
        Holds::Met => "Ready",
        Holds::Failed => "Failed",
        Holds::Unknown { .. } => "Unknown",
        Holds::Unmet if matching == 0 => "NotFound",
        Holds::Unmet => "NotReady",
    };
    let reason = match fact.holds {
        Holds::Met => Reason::Met,
        Holds::Unknown { .. } => Reason::Evaluating,
        Holds::Unmet | Holds::Failed => Reason::CountNotMet,
    };
    // What is being deleted is neither there nor gone.
    let going = matching < observed.items.len() as u64;
    let settled = open == 0 && !going && each().all(|one| one.settled);
    let mut found = view(state, reason.as_str(), message, settled);
    found.selected = Some(share(items.iter().map(|item| item.object_ref())));
    (fact, found)
}

fn in_words(expect: ExpectedCount) -> String {
    match expect {
        ExpectedCount::AtLeast(count) => format!("at least {count}"),
        ExpectedCount::Exactly(count) => format!("exactly {count}"),
        ExpectedCount::All => "all".to_owned(),
    }
}

/// Why the first object that does not do is not as it should be. Of many objects that is found out when it is reported.
fn detail(test: &Test, one: &Judgement, item: &Projection, around: &JudgeContext<'_>) -> String {
    let effort = around.fresh_world.effort;
    let asked = ClauseSet::by_test(test);
    let mut message = one.verdict.message.clone();
    if message.is_empty() {
        message = asked.why(item, effort).unwrap_or_default();
    }
    if !message.is_empty() {
        effort.keep_words(asked.key(item), &message);
    }
    format!("; {}: {message}", item.name)
}
