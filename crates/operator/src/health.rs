//! Is the process alive, and is it of use: two questions with different answers.
//!
//! **Live** means that our own loops turn; each loop keeps a [`Pulse`] and beats it. An API server that does not
//! answer is no reason to be restarted. **Ready** means leading, or on standby with everything needed to take over;
//! each part that can be unready has a check that says why in one line.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// What a check says: fine, and how; or not, and why.
pub type CheckResult = Result<String, String>;
type Check = Box<dyn Fn() -> CheckResult + Send + Sync>;

/// All checks of the process. Clones share them.
#[derive(Clone, Default)]
pub struct Health {
    checks: Arc<Mutex<Checks>>,
}

#[derive(Default)]
struct Checks {
    live: BTreeMap<&'static str, Check>,
    ready: BTreeMap<&'static str, Check>,
}

/// The answer to one of the two questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthReport {
    /// True if every check is fine.
    pub good: bool,
    /// One line per check.
    pub text: String,
}

impl Health {
    /// Registers a loop that will beat at least every `limit`, as long as it keeps the pulse: a loop that has ended, with
    /// its term say, is not stuck.
    pub fn pulse(&self, name: &'static str, limit: Duration) -> Pulse {
        let pulse = Pulse { last: Arc::new(Mutex::new(Instant::now())) };
        let seen = Arc::downgrade(&pulse.last);
        self.checks().live.insert(
            name,
            Box::new(move || {
                let Some(last) = seen.upgrade() else { return Ok("at rest".to_owned()) };
                let age = last.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
                let seconds = age.as_secs();
                if age <= limit {
                    Ok(format!("turned {seconds}s ago"))
                } else {
                    Err(format!("stuck for {seconds}s"))
                }
            }),
        );
        pulse
    }

    /// Registers something that is not ready until it says so.
    pub fn gate(&self, name: &'static str) -> HealthGate {
        let gate = HealthGate { verdict: Arc::new(Mutex::new(Err("starting".to_owned()))) };
        let seen = gate.clone();
        self.require(name, move || seen.verdict.lock().unwrap_or_else(PoisonError::into_inner).clone());
        gate
    }

    /// Registers a check that is evaluated whenever readiness is asked for.
    pub fn require(&self, name: &'static str, check: impl Fn() -> CheckResult + Send + Sync + 'static) {
        self.checks().ready.insert(name, Box::new(check));
    }

    /// Do our loops turn?
    pub fn live(&self) -> HealthReport {
        report(&self.checks().live)
    }

    /// Are we of use?
    pub fn ready(&self) -> HealthReport {
        report(&self.checks().ready)
    }

    fn checks(&self) -> MutexGuard<'_, Checks> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn report(checks: &BTreeMap<&'static str, Check>) -> HealthReport {
    let mut report = HealthReport { good: true, text: String::new() };
    for (name, check) in checks {
        let (sign, words) = match check() {
            Ok(words) => ('+', words),
            Err(words) => {
                report.good = false;
                ('-', words)
            }
        };
        let _ = writeln!(report.text, "[{sign}] {name}: {words}");
    }
    report
}

/// The heartbeat of one loop.
#[derive(Clone)]
pub struct Pulse {
    last: Arc<Mutex<Instant>>,
}

impl Pulse {
    /// The loop turned.
    pub fn beat(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// Something that says itself whether it is ready.
#[derive(Clone)]
pub struct HealthGate {
    verdict: Arc<Mutex<CheckResult>>,
}

impl HealthGate {
    /// Says whether, and how or why not.
    pub fn set(&self, verdict: CheckResult) {
        *self.verdict.lock().unwrap_or_else(PoisonError::into_inner) = verdict;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_stops_turning_is_not_alive() {
        let health = Health::default();
        let pulse = health.pulse("engine", Duration::from_millis(30));
        assert!(health.live().good);
        std::thread::sleep(Duration::from_millis(40));
        let report = health.live();
        assert!(!report.good && report.text.starts_with("[-] engine: stuck"), "{}", report.text);
        pulse.beat();
        assert!(health.live().good);
        std::thread::sleep(Duration::from_millis(40));
        drop(pulse);
        assert!(health.live().good, "a loop that has ended does not have to turn: {}", health.live().text);
    }

    #[test]
    fn readiness_says_why_not_and_needs_every_part() {
        let health = Health::default();
        let caches = health.gate("caches");
        health.require("leadership", || Ok("leading".into()));
        assert_eq!(health.ready().text, "[-] caches: starting\n[+] leadership: leading\n");
        assert!(!health.ready().good);
        caches.set(Ok("synced".into()));
        assert!(health.ready().good);
        assert!(health.live().good, "being unready is no reason to be restarted");
    }
}
