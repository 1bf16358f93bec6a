//! Waits: probes again and again, slower and slower, and says what has changed.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use linchpin_probe::{LONGEST, Miss, NameResolver, Probe, Rules, run};

use crate::arguments::WaitTarget;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long the first pause stays as it is.
const AT_FIRST: Duration = Duration::from_millis(400);
/// For so long a port that refuses connections is tried often: what starts together is there within seconds, and a refusal
/// costs two packets.
const TOGETHER: Duration = Duration::from_secs(5);
/// How often, with jitter at most every 40 ms.
const OFTEN: Duration = Duration::from_millis(32);

/// Waits for all targets at once; whether all are ready, or may be gone on without. Ends with the first that may not.
pub(crate) fn all(targets: Vec<WaitTarget>, say: fn(&str)) -> bool {
    let alone = targets.len() == 1;
    let (send, ended) = mpsc::channel();
    let mut left = targets.len();
    for target in targets {
        if alone {
            return one(&target, say);
        }
        let send = send.clone();
        let waits = move || send.send(one(&target, say)).unwrap_or_default();
        if thread::Builder::new().stack_size(512 << 10).spawn(waits).is_err() {
            say("no thread could be started to wait in");
            return false;
        }
    }
    while left > 0 && ended.recv() == Ok(true) {
        left -= 1;
    }
    left == 0
}

/// Waits for one target.
fn one(target: &WaitTarget, say: fn(&str)) -> bool {
    let WaitTarget { label, probe, timeout, proceed } = target;
    say(&format!("Waiting for {label} ({timeout})"));
    let begun = Instant::now();
    match until_ready(probe, begun, timeout.length.length(), |miss| say(&format!("{label}: {miss}"))) {
        Ok(()) => {
            let taken = begun.elapsed();
            say(&format!("{label} is ready after {}.{}s", taken.as_secs(), taken.subsec_millis() / 100));
            true
        }
        Err(miss) => {
            let went_on = if *proceed { "; proceeding without it" } else { "" };
            say(&format!("Timed out after {timeout}: {label}: {miss}{went_on}"));
            *proceed
        }
    }
}

/// Probes until it is met; the last cause if it is not in time. `changed` hears every cause that is not the last one.
fn until_ready(
    probe: &Probe,
    begun: Instant,
    timeout: Duration,
    mut changed: impl FnMut(&Miss),
) -> Result<(), Miss> {
    let (rules, names) = (Rules::default(), NameResolver::default());
    let end = begun + timeout;
    let mut cause = None;
    loop {
        let full = Instant::now() + LONGEST;
        let Err(miss) = run(probe, &rules, &names, end.min(full)) else { return Ok(()) };
        let refused = matches!(miss, Miss::Refused);
        // An attempt that our own end cut short says nothing new.
        let cut_short = end < full && matches!(miss, Miss::TimedOut(_)) && cause.is_some();
        if !cut_short && cause.as_ref() != Some(&miss) {
            changed(&miss);
            cause = Some(miss);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(cause.unwrap_or(Miss::Unreachable));
        }
        thread::sleep(jittered(pause_after(begun.elapsed(), refused)).min(left));
    }
}

/// The pause doubles whenever the time that was waited has doubled: what becomes ready is noticed within a twentieth of
/// the time it took, and who waits for long asks rarely. A port that is only not open yet is noticed within 50 ms, as long
/// as the wait is young.
fn pause_after(waited: Duration, refused: bool) -> Duration {
    let doublings = (waited.as_millis() / AT_FIRST.as_millis()).checked_ilog2().unwrap_or(0);
    let longest = if refused && waited < TOGETHER { OFTEN } else { LONGEST_PAUSE };
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(doublings)).min(longest)
}

/// Between three and five quarters of a pause, so that a thousand pods do not ask at the same moment.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 512;
    pause.mul_f64(0.75 + f64::from(u16::try_from(random).unwrap_or_default()) / 1024.0).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_at_most_a_twentieth_of_the_wait_and_never_longer_than_a_second() {
        let pauses: Vec<u128> = [0, 399, 800, 1600, 3200, 6400, 12_800, 25_600, 3_600_000]
            .map(|waited| pause_after(Duration::from_millis(waited), false).as_millis())
            .into();
        assert_eq!(pauses, [20, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        for waited in (400..100_000).step_by(7).map(Duration::from_millis) {
            assert!(pause_after(waited, false) <= waited / 20, "{waited:?}");
        }
        assert_eq!(pause_after(Duration::MAX, false), LONGEST_PAUSE);
    }

    #[test]
    fn a_port_that_is_not_open_yet_is_tried_often_while_the_wait_is_young() {
        let pauses = [0, 800, 4999, 5000, 3_600_000]
            .map(|waited| pause_after(Duration::from_millis(waited), true).as_millis());
        assert_eq!(pauses, [20, 32, 32, 160, 1000]);
    }

    #[test]
    fn pauses_differ_and_stay_near_what_they_are() {
        let pauses: std::collections::BTreeSet<Duration> =
            (0..100).map(|_| jittered(Duration::from_millis(400))).collect();
        assert!(pauses.len() > 50, "{pauses:?}");
        assert!(pauses.first() >= Some(&Duration::from_millis(300)));
        assert!(pauses.last() <= Some(&Duration::from_millis(500)));
        assert!((0..100).all(|_| jittered(LONGEST_PAUSE) <= LONGEST_PAUSE));
    }
}
