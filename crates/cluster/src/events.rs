//! Saying something as an Event on one of our own objects.
//!
//! Events are written by the operator itself, to `events.k8s.io/v1`, on transitions only: the caller decides what a
//! transition is. The same words about the same object within ten minutes are counted on the first event (a series)
//! instead of repeated; other words are always a new event, which kube's own recorder would lose. A failure to write
//! is logged and nothing else: events are a courtesy.
//!
//! Needs `create` and `patch` on `events.k8s.io` events.

use crate::{
    call::{self, CallError, Resource},
    identity::OperatorClient,
};
use http::Method;
use linchpin_engine::contract::Notice;
use linchpin_words::{Gvk, Timestamp, limits, text};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Within this time equal words are counted.
const WINDOW: Duration = Duration::from_mins(10);
/// How many different words are remembered.
const REMEMBERED: usize = 4096;
/// Who reports, as events show it.
const CONTROLLER: &str = "linchpin.dev/operator";
/// The same of a `BootDependency`, whose document names its reporter, and of the pods that it holds.
const BOOT_CONTROLLER: &str = "bootdependency-controller";
/// Its group and kind.
const BOOT_DEPENDENCY: (&str, &str) = ("core.bootchain-operator.ruicoelho.dev", "BootDependency");

/// Who reports this.
fn reporter(about: &Regarding, notice: &Notice) -> &'static str {
    let (group, kind) = (about.kind.group.as_str(), about.kind.kind.as_str());
    let is_boot = (group, kind) == BOOT_DEPENDENCY
        || (group, kind) == ("", "Pod") && ["BootWait", "BootReleased"].contains(&notice.reason.as_str());
    if is_boot { BOOT_CONTROLLER } else { CONTROLLER }
}

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Regarding {
    /// Its kind.
    pub kind: Gvk,
    /// Its namespace; none for cluster-scoped kinds, whose events go to `default`.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Which incarnation.
    pub uid: String,
}

/// Writes events. Clones share their memory.
#[derive(Clone)]
pub struct EventRecorder {
    client: OperatorClient,
    instance: Arc<str>,
    said: Arc<Mutex<SentEvents>>,
}

/// What was said lately. Of words only a hash is kept, with keys that nobody outside knows.
#[derive(Default)]
struct SentEvents {
    said: HashMap<u64, Said>,
    keys: RandomState,
    /// When what is too old was last forgotten.
    tidied: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    /// The moment that the event's name ends with.
    begun: Timestamp,
    count: u32,
    last: Instant,
}

/// What to do with words.
#[derive(Debug, PartialEq, Eq)]
enum Write {
    /// They are new.
    New,
    /// They were said before, in the event of that moment; this is their so-manieth time.
    Again(Timestamp, u32),
}

impl SentEvents {
    /// `begun` is the moment of the event, if it is a new one.
    fn decide(&mut self, words: u64, begun: Timestamp, now: Instant) -> Write {
        self.tidy(now);
        let fresh = |said: &Said| now.saturating_duration_since(said.last) < WINDOW;
        if let Some(said) = self.said.get_mut(&words).filter(|said| fresh(said)) {
            said.count = said.count.saturating_add(1);
            said.last = now;
            return Write::Again(said.begun, said.count);
        }
        if self.said.len() >= REMEMBERED {
            let oldest = self.said.iter().min_by_key(|(_, said)| said.last).map(|(words, _)| *words);
            if let Some(oldest) = oldest {
                self.said.remove(&oldest);
            }
        }
        self.said.insert(words, Said { begun, count: 1, last: now });
        Write::New
    }

    /// Forgets what is too old, now and then: walking all of it for each event would cost more than the event.
    fn tidy(&mut self, now: Instant) {
        if self.tidied.is_none_or(|tidied| now.saturating_duration_since(tidied) > WINDOW / 10) {
            self.said.retain(|_, said| now.saturating_duration_since(said.last) < WINDOW);
            self.tidied = Some(now);
        }
    }
}

impl EventRecorder {
    /// A recorder of the operator's own; `instance` distinguishes its replicas.
    pub fn new(client: OperatorClient, instance: &str) -> Self {
        let instance = Arc::from(text::line_of(instance, 128));
        Self { client, instance, said: Arc::default() }
    }

    /// Says something about an object.
    pub async fn record(&self, about: &Regarding, notice: &Notice) {
        let now = Timestamp::from(jiff::Timestamp::now());
        if let Err(error) = self.write(about, notice, now).await {
            tracing::warn!(object = %format!("{} {}", about.kind.kind, about.name), %error, "cannot write event");
        }
    }

    async fn write(&self, about: &Regarding, notice: &Notice, now: Timestamp) -> Result<(), CallError> {
        let note = text::line_of(&notice.message, limits::MESSAGE);
        let memory = || self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let words = memory().keys.hash_one((&about.uid, &notice.reason, &note));
        let decision = memory().decide(words, now, Instant::now());
        let resource = Resource::new(Gvk::new("events.k8s.io", "v1", "Event"), "events", true);
        let namespace = about.namespace.as_deref().unwrap_or("default");
        if let Write::Again(begun, count) = decision {
            let series = json!({"series": {"count": count, "lastObservedTime": micro(now)}});
            let url = resource.object(Some(namespace), &event_name(about, begun));
            let request = call::send_json(Method::PATCH, &url, "application/merge-patch+json", &series)?;
            match call::call(self.client.writes(), request).await {
                // It has expired on the server: said anew.
                Err(error) if error.is_code(404) => {}
                other => return other.map(drop),
            }
        }
        let body = event(about, notice, &note, &self.instance, now);
        let url = resource.collection(Some(namespace));
        let request = call::send_json(Method::POST, &url, "application/json", &body)?;
        let written = call::call(self.client.writes(), request).await;
        if let Some(said) = memory().said.get_mut(&words) {
            said.begun = now;
        }
        written.map(drop)
    }
}

/// A name as client-go makes them: the object's name and the moment in hexadecimal.
fn event_name(about: &Regarding, now: Timestamp) -> String {
    let base: String = about.name.chars().take(200).collect();
    format!("{base}.{:x}", now.as_microsecond())
}

/// The event that says `note`.
fn event(about: &Regarding, notice: &Notice, note: &str, instance: &str, now: Timestamp) -> Value {
    let namespace = about.namespace.as_deref().unwrap_or("default");
    let reason = text::line_of(&notice.reason, 128);
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": event_name(about, now), "namespace": namespace},
        "eventTime": micro(now),
        "reportingController": reporter(about, notice),
        "reportingInstance": instance,
        "action": reason,
        "reason": reason,
        "type": if notice.warning { "Warning" } else { "Normal" },
        "note": note,
        "regarding": {
            "apiVersion": about.kind.api_version(),
            "kind": about.kind.kind,
            "name": about.name,
            "namespace": about.namespace,
            "uid": about.uid,
        },
    })
}

/// A moment as the API's micro time: always six decimals.
fn micro(moment: Timestamp) -> String {
    format!("{:.6}", jiff::Timestamp::from(moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> Regarding {
        let kind = Gvk::new("tools.kubestellar.io", "v1", "ResourceDependency");
        Regarding { kind, namespace: Some("shop".into()), name: "web".into(), uid: "u".into() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second)
    }

    #[test]
    fn a_kind_of_another_group_is_not_taken_for_one_of_ours() {
        let notice = |reason: &str| Notice { reason: reason.into(), message: String::new(), warning: false };
        let of = |group: &str, kind: &str, reason: &str| {
            reporter(&Regarding { kind: Gvk::new(group, "v1", kind), ..about() }, &notice(reason))
        };
        assert_eq!(of("core.bootchain-operator.ruicoelho.dev", "BootDependency", "Ready"), BOOT_CONTROLLER);
        assert_eq!(of("", "Pod", "BootWait"), BOOT_CONTROLLER);
        assert_eq!(of("fourth.example", "BootDependency", "Ready"), CONTROLLER);
        assert_eq!(of("fourth.example", "Pod", "BootWait"), CONTROLLER);
    }

    #[test]
    fn equal_words_are_counted_and_other_words_are_said() {
        let (mut memory, now) = (SentEvents::default(), Instant::now());
        let (a, b) = (1, 2);
        assert_eq!(memory.decide(a, at(1), now), Write::New);
        assert_eq!(memory.decide(a, at(2), now), Write::Again(at(1), 2));
        assert_eq!(memory.decide(b, at(3), now), Write::New);
        assert_eq!(memory.decide(a, at(4), now + WINDOW + Duration::from_secs(1)), Write::New);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut memory, now) = (SentEvents::default(), Instant::now());
        let last = REMEMBERED as u64 * 2 - 1;
        for number in 0..=last {
            memory.decide(number, at(1), now + Duration::from_micros(number));
        }
        assert_eq!(memory.said.len(), REMEMBERED);
        assert!(memory.said.contains_key(&last));
    }

    #[test]
    fn an_event_names_its_object_and_bounds_its_note() {
        let notice = Notice { reason: "Waiting".into(), message: "x\n".repeat(5000), warning: true };
        let note = text::line_of(&notice.message, limits::MESSAGE);
        let event = event(&about(), &notice, &note, "me", Timestamp::EPOCH);
        assert_eq!(event["metadata"]["name"], "web.0");
        assert_eq!(event["regarding"]["uid"], "u");
        assert_eq!(event["type"], "Warning");
        assert_eq!(event["eventTime"], "1970-01-01T00:00:00.000000Z");
        assert!(event["note"].as_str().unwrap().len() <= limits::MESSAGE);
    }
}
