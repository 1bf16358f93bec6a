//! The rest of subjects to which nothing happens.

use std::time::{Duration, Instant};

use super::Controller;

/// How long after its last turn a subject rests: its plan is made anew when it is called again, which takes a fraction of a
/// millisecond and would double the memory of what waits for hours.
pub(super) const COOL_AFTER: Duration = Duration::from_secs(10);
/// How many subjects keep their plans until then, the latest ones: memory is made for what happens now and then to some,
/// not for what once happens to all of them, as at a restart.
pub(super) const WARM: usize = 64;
/// How many keep them while something else is to be done, as long as it lasts.
const WARM_WHILE_BUSY: usize = 2 * WARM;
/// How many begin to rest before messages are looked at.
const COOLED_AT_ONCE: usize = 32;

impl Controller {
    /// Lets subjects rest to which nothing happens, and those of a crowd to which nothing happened for the longest time; a
    /// few at a time. Their statuses are drawn for that: turns and effects come first.
    pub(super) fn drop_idle_plans(&mut self, at_hand: Instant) {
        let busy = self.queue.len() > 0 || self.driver.is_busy(at_hand);
        if busy && self.cooling.len() <= WARM_WHILE_BUSY {
            return;
        }
        for _ in 0..COOLED_AT_ONCE {
            let crowded = self.cooling.len() > WARM;
            if !crowded && self.cooling.next().is_none_or(|due| due > at_hand) {
                return;
            }
            let Some((due, id)) = self.cooling.pop_first() else { return };
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            // What goes on with an evaluation takes another turn.
            let Some(turn) = entry.last_turn.filter(|turn| turn.goes_on.is_none()) else { continue };
            if turn.ended + COOL_AFTER > due {
                // It took turns since.
                self.cooling.set(id, Some(turn.ended + COOL_AFTER));
            } else {
                entry.subject.rest(&entry.causes);
                self.note_claims(id);
            }
        }
    }

    /// When the next ones begin to rest.
    pub(super) fn next_rest(&self, at_hand: Instant) -> Option<Instant> {
        let due = if self.cooling.len() > WARM { at_hand } else { self.cooling.next()? };
        Some(self.driver.quiet_from().map_or(due, |quiet| due.max(quiet)))
    }
}
