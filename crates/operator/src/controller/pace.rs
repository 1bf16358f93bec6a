//! How fast the controller does things, and how long it waits: the numbers, each with the measurement behind it. Figures of
//! hops and bundles are those of `docs/benchmarks.md` and of the commits that brought the number.
//!
//! Turns (`throttle`, `idle_plans`, and the loop itself):
//!
//! | what | number | measured, or why |
//! |---|---|---|
//! | [`TURNS_FOR`] | 2 ms | up to sixty-four turns were taken before an answer was looked at, and fifty bundles of forty objects took 25 s; 13 to 17 s with this number, rests, and finalizers written once |
//! | [`BEAT`] | 5 s | chosen: a loop that has not turned for 30 s is reported as stuck |
//! | [`SHORTEST_REST`] | 5 ms | chosen: a shorter rest saves nothing |
//! | [`REST_TIMES`] | 5 × | part of the measurement of [`TURNS_FOR`]; other numbers were not measured |
//! | [`OWED_REST`] | 25 ms | the turn that a neighbour calls for just before an object becomes ready kept the next one waiting five times as long as it took; the number is chosen: turns of 5 ms |
//! | [`LONGEST_REST`] | 50 ms | chosen: nobody notices it |
//! | [`REST_TIMES_BESIDE_EFFECTS`], [`LONGEST_REST_BESIDE_EFFECTS`] | 12 ×, 200 ms | half of all turns with 50 bundles were taken for what an object had written itself, beside the effects of others |
//! | [`UNFINISHED_TIMES`] | 4 × | chosen: what does not fit one turn takes a fifth of the time for all objects of a namespace |
//! | [`IDLE_TURNS`] | 30, one more in 100 ms | chosen: ten turns a second cost next to nothing |
//! | [`FRESH_LOOKS_EVERY`] | 5 s | chosen: who may annotate one object must not make the API server read everything anew with each write |
//! | [`COOL_AFTER`] | 10 s | an object that waits takes 4 KB without its plan and 12.6 KB with it; the number is chosen: what has happened once happens again soon |
//! | [`WARM`] | 64 | all plans of 1,000 objects that arrive at once were 40 MB for a moment; with 64 the memory that is not the program's fell from 33 to 23 MB |
//! | [`WARM_WHILE_BUSY`], [`COOLED_AT_ONCE`] | 128, 32 | chosen: turns and effects come first, and no message waits for more statuses than that to be drawn |
//!
//! Effects (`driver`, `precedence`):
//!
//! | what | number | measured, or why |
//! |---|---|---|
//! | [`LULL`] | 5 ms | part of the measurement of [`YIELD`]: the event that an effect causes arrives at about the time of its answer, before or after it |
//! | [`EFFECT_KEEPS_BUSY`] | 100 ms | chosen: a write is answered long before, a command may take minutes |
//! | [`EARLIER_EFFECTS_FIRST`] | 1 s | chosen: a write is answered long before |
//!
//! Statuses, journals and finalizers (`saving`, `backlog`):
//!
//! | what | number | measured, or why |
//! |---|---|---|
//! | [`YIELD`] | 1 s | statuses and events beside effects made a hop 2.6 times a bare client's, yielding 1.1 times; no longer, because a person watches |
//! | [`WRITES_WHILE_BUSY`], [`WRITES_WHILE_QUIET`] | 1, 4 | part of the same measurement; more at a time were not measured |
//! | [`WRITES_OF_ONE_NAMESPACE`] | 2 | nobody holds more places than are left free: four statuses at once keep both cores of a small API server from another namespace's hop for 20 ms |
//! | [`WRITE_REST_TIMES`] | 19 × | beside effects statuses take a twentieth of the time: a status of 40 components costs the API server 23 ms |
//! | [`LONGEST_WRITE_REST`] | 1 s | chosen: a server that answers late must not make statuses old |
//! | [`CROWD`] | 4 | finalizer and journal cost 16 and 23 ms for 40 components, in one write 20 ms (decision 8); four are more than a person applies at once |
//! | [`PROGRESS_EVERY`] | 1 s | chosen: a person reads no faster |
//! | [`PHASES_AT_ONCE`], [`FLAPPING_EVERY`] | 8, one more in 10 s; 5 s | chosen: a rollout shows fewer phases, and a user who makes one flap pays with writes of their own |
//! | [`AWAITED_IN_A_ROW`] | 8 | behind all statuses of a crowd, one that others wait for took a chain of 200 Syncs 38 s for one level; the number is chosen: what changes all the time must not keep the others from being written |
//! | [`FIRST_WRITE_RETRY`], [`LONGEST_WRITE_RETRY`] | twice 100 ms, doubling to 30 s | chosen, as everywhere after failures |
//! | [`OWN_ECHO`] | 10 s | chosen: the deadline of a write; a store that went back in time shows older objects for longer |
//! | [`FENCED`] | 100 ms | chosen: a term that seemed over may turn out to go on |
//!
//! Events and records (`notices`, `records`), for which nothing waits:
//!
//! | what | number | measured, or why |
//! |---|---|---|
//! | [`EVENTS_KEPT`] | 2,000 | chosen: two for each of a thousand objects |
//! | [`EVENTS_AT_THE_END`], [`EVENTS_END_AFTER`] | 4, 1 s | chosen: as many as while nothing else is written, within the 3 s that the end of a term has |
//! | [`RECORD_RETRY`], [`RECORD_DEADLINE`] | 30 s | chosen: nobody waits for a record |
//! | [`RECORDS_REMEMBERED`] | 256 | chosen: more than an object keeps revisions; beyond, only what is still asked for is remembered |
//!
//! The reporter of causes (`causes::reporter`), whose every look may come between two objects:
//!
//! | what | number | measured, or why |
//! |---|---|---|
//! | [`LOOKS_EVERY`], [`OBJECTS_A_LOOK`], [`STATUSES_A_LOOK`] | 1 s, 64, 16 | chosen: root causes are for people, and a chain of 1,000 must not cost its statuses at once |
//! | [`LOOK_SLICE`] | 1 ms | 64 objects in one go came between a hop's status and the effect that depends on it; the p99 of a hop between two Syncs (3.2 times) did not change with slices |
//! | [`LOOKS_YIELD`] | 5 s | chosen: effects of somebody that never end must not keep everybody's causes from being shown |
//! | [`LOOKS_PUT_OFF`] | 1 s | chosen: so must messages that never end |
//! | [`BUSY_ASKED_EVERY`] | 50 ms | chosen: twenty questions a second whether effects are under way cost nothing |

use std::time::Duration;

use super::allowance::Rate;

/// How long turns are taken before new messages are looked at: whatever came back makes room for the next effect.
pub(super) const TURNS_FOR: Duration = Duration::from_millis(2);
/// How often we look up although nobody calls, to show that we live.
pub(super) const BEAT: Duration = Duration::from_secs(5);

/// A rest of an object that is no longer than this saves nothing.
pub(super) const SHORTEST_REST: Duration = Duration::from_millis(5);
/// How many times as long as its turns an object rests.
pub(super) const REST_TIMES: u32 = 5;
/// So much rest may be owed before it is taken: turns of 5 ms.
pub(super) const OWED_REST: Duration = Duration::from_millis(25);
/// The longest rest between two turns.
pub(super) const LONGEST_REST: Duration = Duration::from_millis(50);
/// How many times as long beside effects, for each object that rests.
pub(super) const REST_TIMES_BESIDE_EFFECTS: u32 = 12;
/// The longest rest between two turns beside effects.
pub(super) const LONGEST_REST_BESIDE_EFFECTS: Duration = Duration::from_millis(200);
/// How many times as long as a turn that left something over the namespace's next such turn waits.
pub(super) const UNFINISHED_TIMES: u32 = 4;
/// How many turns in which nothing is to be done an object takes at once.
pub(super) const IDLE_TURNS: Rate = Rate { burst: 30, every: Duration::from_millis(100) };
/// How often orders make everything be read again.
pub(super) const FRESH_LOOKS_EVERY: Duration = Duration::from_secs(5);

/// How long after its last turn a subject rests: its plan is made anew when it is called again, which takes a fraction of a
/// millisecond and would double the memory of what waits for hours.
pub(super) const COOL_AFTER: Duration = Duration::from_secs(10);
/// How many subjects keep their plans until then, the latest ones: memory is made for what happens now and then to some,
/// not for what once happens to all of them, as at a restart.
pub(super) const WARM: usize = 64;
/// How many keep them while something else is to be done, as long as it lasts.
pub(super) const WARM_WHILE_BUSY: usize = 2 * WARM;
/// How many begin to rest before messages are looked at.
pub(super) const COOLED_AT_ONCE: usize = 32;

/// How long after an effect came back the next one, which may depend on it, is waited for before anything else is
/// done; and how long after a message more of what it is about may come.
pub(super) const LULL: Duration = Duration::from_millis(5);
/// How long an effect under way keeps others waiting.
pub(super) const EFFECT_KEEPS_BUSY: Duration = Duration::from_millis(100);
/// How long an effect lets those before it go first.
pub(super) const EARLIER_EFFECTS_FIRST: Duration = Duration::from_secs(1);

/// How long statuses and events yield to effects.
pub(super) const YIELD: Duration = Duration::from_secs(1);
/// How many statuses and events are written at a time beside effects.
pub(super) const WRITES_WHILE_BUSY: usize = 1;
/// How many are written at a time while nothing else is.
pub(super) const WRITES_WHILE_QUIET: usize = 4;
/// How many of these one namespace may have under way.
pub(super) const WRITES_OF_ONE_NAMESPACE: usize = 2;
/// After one that was written beside effects there is a rest so many times as long.
pub(super) const WRITE_REST_TIMES: u32 = 19;
/// The longest such rest.
pub(super) const LONGEST_WRITE_REST: Duration = Duration::from_secs(1);
/// From so many objects with something to write on, the first journal goes with the finalizer: one write instead of two
/// before the first effect. Where there are fewer the status comes before the effects, and shows what is about to happen.
pub(super) const CROWD: usize = 4;
/// How often progress is written.
pub(super) const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// How many changes of the phase are reported in an event and written at once. A user who makes a phase flap pays with
/// their own writes, not with ours.
pub(super) const PHASES_AT_ONCE: Rate = Rate { burst: 8, every: Duration::from_secs(10) };
/// How often the status of an object is written whose phase flaps.
pub(super) const FLAPPING_EVERY: Duration = Duration::from_secs(5);
/// After so many awaited ones in a row comes one of the others, so that what changes all the time keeps nothing from being
/// written at all.
pub(super) const AWAITED_IN_A_ROW: u32 = 8;
/// Half of the first pause after a failed write.
pub(super) const FIRST_WRITE_RETRY: Duration = Duration::from_millis(100);
/// The longest pause after a failed write.
pub(super) const LONGEST_WRITE_RETRY: Duration = Duration::from_secs(30);
/// How long an object that arrives may be older than what we have written ourselves.
pub(super) const OWN_ECHO: Duration = Duration::from_secs(10);
/// How soon to look again while nothing may be written: a term that seemed over may turn out to go on.
pub(super) const FENCED: Duration = Duration::from_millis(100);

/// How many events of one namespace may wait.
pub(super) const EVENTS_KEPT: usize = 2_000;
/// How many events are written at a time at the end of a term.
pub(super) const EVENTS_AT_THE_END: usize = 4;
/// How long what is left of them may take then.
pub(super) const EVENTS_END_AFTER: Duration = Duration::from_secs(1);
/// How long after a failure a record is tried again.
pub(super) const RECORD_RETRY: Duration = Duration::from_secs(30);
/// How long one request for a record may take.
pub(super) const RECORD_DEADLINE: Duration = Duration::from_secs(30);
/// How many records are remembered as sent: what is not asked for any more may be forgotten.
pub(super) const RECORDS_REMEMBERED: usize = 256;

/// The pause between two looks for causes.
pub(super) const LOOKS_EVERY: Duration = Duration::from_secs(1);
/// Objects looked at a time.
pub(super) const OBJECTS_A_LOOK: usize = 64;
/// Statuses drawn anew a time.
pub(super) const STATUSES_A_LOOK: usize = 16;
/// How long a look goes on before messages are taken in.
pub(super) const LOOK_SLICE: Duration = Duration::from_millis(1);
/// How long looks yield to effects.
pub(super) const LOOKS_YIELD: Duration = Duration::from_secs(5);
/// For how long messages put off a look that is due.
pub(super) const LOOKS_PUT_OFF: Duration = Duration::from_secs(1);
/// While effects are under way it is not asked more often than this whether they still are.
pub(super) const BUSY_ASKED_EVERY: Duration = Duration::from_millis(50);
