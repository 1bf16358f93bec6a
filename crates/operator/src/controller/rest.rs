//! The rest of subjects to which nothing happens.

use std::time::{Duration, Instant};

use super::Controller;

/// How long after its last turn a subject rests: its plan is made anew when it is called again, which takes a fraction of a
/// millisecond and would double the memory of what waits for hours.
pub(super) const COOL_AFTER: Duration = Duration::from_secs(10);
/// How many begin to rest before messages are looked at.
const COOLED_AT_ONCE: usize = 32;

impl Controller {
    /// Lets subjects rest to which nothing happens, a few at a time.
    pub(super) fn let_rest(&mut self, at_hand: Instant) {
        for _ in 0..COOLED_AT_ONCE {
            let Some(id) = self.cooling.pop(at_hand) else { return };
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            // What goes on with an evaluation takes another turn.
            let Some(turn) = entry.last_turn.filter(|turn| turn.goes_on.is_none()) else { continue };
            let due = turn.ended + COOL_AFTER;
            if due > at_hand {
                self.cooling.set(id, Some(due));
            } else {
                entry.subject.rest();
            }
        }
    }
}
