//! Conditions as every Kubernetes object reports them.
//!
//! [`set`] follows the rules of Kubernetes' own `SetStatusCondition`: one entry per type, and the transition time
//! moves only when the status does. Messages are bounded and on one line. Used by everything that writes a status; foreign
//! objects' conditions are judged by the engine's readiness rules, not here.

use serde::{Deserialize, Serialize};

use crate::{
    reason::{ConditionType, Reason},
    text,
    time::Timestamp,
};

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known.
    Unknown,
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// One entry of `status.conditions`.
///
/// Type and reason are text so that a status written by a newer version still reads; [`Condition::new`] takes the
/// words of [`crate::reason`], and nothing else makes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about, for example `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one CamelCase word.
    pub reason: String,
    /// Why, for people.
    #[serde(default)]
    pub message: String,
    /// The generation of the object this was judged for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Since when the status is what it is.
    pub last_transition_time: Timestamp,
}

impl Condition {
    /// A condition judged now for one generation of the object; the message is made one bounded line.
    pub fn new(
        kind: ConditionType,
        status: impl Into<ConditionStatus>,
        reason: Reason,
        message: &str,
        generation: i64,
        now: Timestamp,
    ) -> Self {
        Self {
            kind: kind.as_str().to_owned(),
            status: status.into(),
            reason: reason.as_str().to_owned(),
            message: text::line(message),
            observed_generation: Some(generation),
            last_transition_time: now,
        }
    }
}

/// Puts `new` among `conditions`; says whether anything changed. The time of the last transition is kept while the
/// status stays the same.
pub fn set(conditions: &mut Vec<Condition>, new: Condition) -> bool {
    let Some(old) = conditions.iter_mut().find(|old| old.kind == new.kind) else {
        conditions.push(new);
        return true;
    };
    let kept = if old.status == new.status { old.last_transition_time } else { new.last_transition_time };
    let new = Condition { last_transition_time: kept, ..new };
    let changed = *old != new;
    *old = new;
    changed
}

/// Takes the condition of that type away; says whether there was one.
pub fn remove(conditions: &mut Vec<Condition>, kind: ConditionType) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.kind != kind.as_str());
    conditions.len() < before
}

/// The condition of that type.
pub fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.kind == kind.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    fn ready(status: bool, message: &str, generation: i64, second: i64) -> Condition {
        let reason = if status { Reason::Completed } else { Reason::Waiting };
        Condition::new(
            ConditionType::Ready,
            status,
            reason,
            message,
            generation,
            Timestamp::from_second(second),
        )
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, ready(false, "one", 1, 10)));
        assert!(set(&mut conditions, ready(false, "two", 2, 20)));
        assert_eq!(conditions[0].last_transition_time, Timestamp::from_second(10));
        assert_eq!((conditions[0].message.as_str(), conditions[0].observed_generation), ("two", Some(2)));
        assert!(set(&mut conditions, ready(true, "two", 2, 30)));
        assert_eq!(conditions[0].last_transition_time, Timestamp::from_second(30));
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn saying_the_same_again_changes_nothing() {
        let mut conditions = vec![ready(false, "one", 1, 10)];
        assert!(!set(&mut conditions, ready(false, "one", 1, 99)));
        assert_eq!(conditions, vec![ready(false, "one", 1, 10)]);
    }

    #[test]
    fn a_removed_condition_is_gone_and_others_stay() {
        let mut conditions = vec![ready(true, "", 1, 1)];
        assert!(!remove(&mut conditions, ConditionType::Stalled));
        assert!(find(&conditions, ConditionType::Ready).is_some());
        assert!(remove(&mut conditions, ConditionType::Ready));
        assert!(conditions.is_empty());
    }

    #[test]
    fn a_message_is_one_bounded_line() {
        let condition = ready(false, &"é\n".repeat(2000), 1, 1);
        assert!(condition.message.len() <= limits::MESSAGE);
        assert!(!condition.message.contains('\n'));
    }

    #[test]
    fn conditions_have_the_shape_kubernetes_knows() {
        let value = serde_json::to_value(ready(true, "all there", 3, 0)).unwrap();
        assert_eq!(
            value,
            serde_json::json!({"type": "Ready", "status": "True", "reason": "Completed", "message": "all there",
                "observedGeneration": 3, "lastTransitionTime": "1970-01-01T00:00:00Z"})
        );
    }
}
