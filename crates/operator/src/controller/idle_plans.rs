//! The rest of subjects to which nothing happens.

use std::time::Instant;

use super::{
    Controller,
    pace::{COOL_AFTER, COOLED_AT_ONCE, WARM, WARM_WHILE_BUSY},
};

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
