//! What is said of held pods: events on a pod that is held for longer than a moment and on its release, on its
//! BootDependency when it has waited for too long; and how long releases take.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use linchpin_api::{BootDependency, Ours as _};
use linchpin_engine::contract::{Effect, Notice, Projection, StepId, Ticket, Verb};
use linchpin_words::{Gvk, Timestamp, text};

use super::judge::{HoldDecision, JudgedDependency, created};
use crate::subject::{Decision, News, SubjectInput, SubjectKey};

/// A pod that is held no longer is not worth an event.
const WORTH_REPORTING: Duration = Duration::from_secs(1);
/// A pod that is older when it is seen first was reported by the leader before.
const REPORTED_BEFORE: Duration = Duration::from_mins(1);

/// What was said of which pod.
#[derive(Default)]
pub(super) struct PodMessages {
    pods: BTreeMap<String, ReportedPod>,
    /// Releases under way.
    flights: BTreeMap<Ticket, String>,
}

struct ReportedPod {
    pod: SubjectKey,
    /// Whether it was said that it is held.
    held: bool,
    /// Since when it may start.
    due: Option<Timestamp>,
    /// The entries of which was said that it has waited for them too long.
    late: BTreeSet<(String, StepId)>,
}

impl PodMessages {
    /// Forgets pods that are not held any more, but for those whose release is under way.
    pub(super) fn keep_only(&mut self, held: &[&Projection]) {
        let there: BTreeSet<&str> = held.iter().map(|pod| pod.uid.as_str()).collect();
        let flying: BTreeSet<&String> = self.flights.values().collect();
        self.pods.retain(|uid, _| there.contains(uid.as_str()) || flying.contains(uid));
    }

    /// Says what a verdict is worth.
    pub(super) fn judged(
        &mut self,
        pod: &Projection,
        verdict: &HoldDecision,
        judged: &BTreeMap<&str, JudgedDependency>,
        now: Timestamp,
        decision: &mut Decision,
    ) {
        let begun = created(pod).unwrap_or(now);
        let reported = self.pods.entry(pod.uid.clone()).or_insert_with(|| ReportedPod {
            pod: SubjectKey {
                kind: Gvk::new("", "v1", "Pod"),
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                uid: pod.uid.clone(),
            },
            held: now.since(begun).length() > REPORTED_BEFORE,
            due: None,
            late: BTreeSet::new(),
        });
        let HoldDecision::Hold(held) = verdict else {
            reported.due.get_or_insert(now);
            return;
        };
        reported.due = None;
        let report_at = begun.plus_duration(WORTH_REPORTING);
        if !reported.held && !held.entries.is_empty() {
            if report_at <= now {
                reported.held = true;
                let names: Vec<&str> = held.entries.iter().map(|(_, entry)| entry.as_str()).collect();
                let owners: BTreeSet<&str> = held.entries.iter().map(|(owner, _)| owner.as_str()).collect();
                let owners: Vec<&str> = owners.into_iter().collect();
                let message =
                    format!("held until {}; BootDependency {}", names.join(", "), owners.join(", "));
                decision
                    .report
                    .about_others
                    .push((reported.pod.clone(), notice("BootWait", &message, false)));
            } else {
                decision.wake_at = Some(decision.wake_at.map_or(report_at, |at| at.min(report_at)));
            }
        }
        for late in &held.late {
            if !reported.late.insert((late.owner.clone(), late.entry.clone())) {
                continue;
            }
            let object = judged.get(late.owner.as_str()).and_then(|one| one.object.as_ref());
            let Some(about) = object.map(boot_key) else { continue };
            let message = late.text(&reported.pod.name);
            decision.report.about_others.push((about, notice("WaitTimedOut", &message, true)));
        }
    }

    /// Remembers which release is for which pod.
    pub(super) fn ordered(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Verb::Patch { body, .. } = &effect.verb
                && let Some(uid) = body["metadata"]["uid"].as_str()
            {
                self.flights.insert(effect.ticket.clone(), uid.to_owned());
            }
        }
    }

    /// Takes down what came back.
    pub(super) fn came_back(&mut self, look: &SubjectInput<'_>, news: &mut News) {
        for outcome in look.outcomes {
            let Some(uid) = self.flights.remove(&outcome.ticket) else { continue };
            let Some(reported) = self.pods.get(&uid).filter(|_| outcome.result.is_ok()) else { continue };
            if let Some(due) = reported.due {
                news.releases.push(outcome.at.since(due).length());
            }
            if reported.held {
                let message = "it waits no longer: the scheduling gate linchpin.dev/boot is taken off";
                news.about_others.push((reported.pod.clone(), notice("BootReleased", message, false)));
            }
        }
    }
}

fn notice(reason: &str, message: &str, warning: bool) -> Notice {
    Notice { reason: reason.to_owned(), message: text::line(message), warning }
}

fn boot_key(object: &BootDependency) -> SubjectKey {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    SubjectKey {
        kind: BootDependency::gvk(),
        namespace: object.metadata.namespace.clone(),
        name: text(&object.metadata.name),
        uid: text(&object.metadata.uid),
    }
}
