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
    collections::BTreeMap,
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

/// Who reports this.
fn reporter(about: &Regarding, notice: &Notice) -> &'static str {
    let is_boot = about.kind.kind == "BootDependency"
        || about.kind.kind == "Pod" && ["BootWait", "BootReleased"].contains(&notice.reason.as_str());
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
    said: Arc<Mutex<Memory>>,
}

type Words = (String, String, String);

#[derive(Default)]
struct Memory {
    said: BTreeMap<Words, Said>,
    /// When what is too old was last forgotten.
    tidied: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    event: String,
    count: u32,
    last: Instant,
}

/// What to do with words.
#[derive(Debug, PartialEq, Eq)]
enum Write {
    /// They are new.
    New,
    /// They were said in that event before; this is their so-manieth time.
    Again(String, u32),
}

impl Memory {
    fn decide(&mut self, words: &Words, event: &str, now: Instant) -> Write {
        self.tidy(now);
        let fresh = |said: &Said| now.saturating_duration_since(said.last) < WINDOW;
        if let Some(said) = self.said.get_mut(words).filter(|said| fresh(said)) {
            said.count = said.count.saturating_add(1);
            said.last = now;
            return Write::Again(said.event.clone(), said.count);
        }
        if self.said.len() >= REMEMBERED {
            let oldest = self.said.iter().min_by_key(|(_, said)| said.last).map(|(words, _)| words.clone());
            if let Some(oldest) = oldest {
                self.said.remove(&oldest);
            }
        }
        self.said.insert(words.clone(), Said { event: event.to_owned(), count: 1, last: now });
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
        let words = (about.uid.clone(), notice.reason.clone(), note.clone());
        let name = event_name(about, now);
        let decision = {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            said.decide(&words, &name, Instant::now())
        };
        let resource = Resource::new(Gvk::new("events.k8s.io", "v1", "Event"), "events", true);
        let namespace = about.namespace.as_deref().unwrap_or("default");
        if let Write::Again(event, count) = decision {
            let series = json!({"series": {"count": count, "lastObservedTime": micro(now)}});
            let url = resource.object(Some(namespace), &event);
            let request = call::send_json(Method::PATCH, &url, "application/merge-patch+json", &series)?;
            match call::call(self.client.writes(), request).await {
                // It has expired on the server: said anew.
                Err(error) if error.is_code(404) => {}
                other => return other.map(drop),
            }
        }
        let body = event(about, notice, &note, &name, &self.instance, now);
        let url = resource.collection(Some(namespace));
        let request = call::send_json(Method::POST, &url, "application/json", &body)?;
        let written = call::call(self.client.writes(), request).await;
        if let Some(said) = self.said.lock().unwrap_or_else(PoisonError::into_inner).said.get_mut(&words) {
            said.event.clone_from(&name);
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
fn event(
    about: &Regarding,
    notice: &Notice,
    note: &str,
    name: &str,
    instance: &str,
    now: Timestamp,
) -> Value {
    let namespace = about.namespace.as_deref().unwrap_or("default");
    let reason = text::line_of(&notice.reason, 128);
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
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

    fn words(note: &str) -> Words {
        ("u".into(), "Waiting".into(), note.into())
    }

    #[test]
    fn equal_words_are_counted_and_other_words_are_said() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        assert_eq!(memory.decide(&words("for A"), "e1", now), Write::New);
        assert_eq!(memory.decide(&words("for A"), "e2", now), Write::Again("e1".into(), 2));
        assert_eq!(memory.decide(&words("for B"), "e3", now), Write::New);
        assert_eq!(memory.decide(&words("for A"), "e4", now + WINDOW + Duration::from_secs(1)), Write::New);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        for number in 0..REMEMBERED * 2 {
            memory.decide(&words(&number.to_string()), "e", now + Duration::from_micros(number as u64));
        }
        assert_eq!(memory.said.len(), REMEMBERED);
        assert!(memory.said.contains_key(&words(&(REMEMBERED * 2 - 1).to_string())));
    }

    #[test]
    fn an_event_names_its_object_and_bounds_its_note() {
        let notice = Notice { reason: "Waiting".into(), message: "x\n".repeat(5000), warning: true };
        let note = text::line_of(&notice.message, limits::MESSAGE);
        let event = event(&about(), &notice, &note, "web.1", "me", Timestamp::EPOCH);
        assert_eq!(event["regarding"]["uid"], "u");
        assert_eq!(event["type"], "Warning");
        assert_eq!(event["eventTime"], "1970-01-01T00:00:00.000000Z");
        assert!(event["note"].as_str().unwrap().len() <= limits::MESSAGE);
    }
}
