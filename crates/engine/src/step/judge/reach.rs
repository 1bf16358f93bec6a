//! Whether the other cluster that an action acts in can be reached: until then the action waits, and is woken when it can.

use linchpin_words::Reason;

use super::{RequirementView, fresh_world::FreshWorld};
use crate::{
    contract::{Question, Seen, Want},
    plan::PlannedAction,
    step::fact::Fact,
};

/// Holds an action that has not begun while its cluster is out of reach. A question that is only refused there says
/// nothing about the action.
pub(super) fn judge_reach(
    action: &PlannedAction,
    fresh_world: &FreshWorld<'_>,
    fact: &mut Fact,
    found: &mut RequirementView,
) {
    if action.via.cluster.is_here() {
        return;
    }
    let (reason, message) = match fresh_world.ask(Want::new(Question::Version { via: action.via.clone() })) {
        Some(Seen::Unknown(why)) if why.reason == Reason::Forbidden => return,
        Some(Seen::Unknown(why)) => (why.reason, why.message.clone()),
        None => (Reason::Unsynced, format!("{} has not answered yet", action.via.cluster)),
        Some(_) => return,
    };
    fact.supplied = false;
    found.reason = reason.as_str().into();
    found.message = message.into();
}
