//! Where a chain of causes goes on beyond our own objects: from a Deployment to its ReplicaSet, to the Pod, to the claim.
//!
//! Statuses end where our graph ends: following other people's pods for every tenant would cost every tenant a watch.
//! `linchpin explain` goes on from there with the rights of the user: it fetches what [`questions`] names for an
//! object, and [`descend`] says what that object lacks and which object to look at next. Both are total functions of
//! values; a kind without a rule of its own is a leaf, with the reason that the readiness table gives.

mod pod;
mod supply;
mod workloads;

use std::collections::BTreeMap;

use jiff::Timestamp;
use linchpin_words::{GroupKind, Gvk, ObjectRef};
use serde::Serialize;
use serde_json::Value;

use crate::readiness::{
    self, ReadinessOptions, Related, RelatedAnswer, RelatedQuery, RelatedSelect, State,
    subject::{at, is_terminating, list, text},
};

/// One thing to be read before it can be said where a chain goes on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DescendQuestion {
    /// Other objects.
    Related(RelatedQuery),
    /// The Events about the object itself.
    Events {
        /// Where they are.
        namespace: String,
        /// The object's uid.
        uid: String,
    },
}

/// What was read for a question.
#[derive(Clone, Debug, PartialEq)]
pub enum DescendAnswer {
    /// These objects; none if there are none.
    Objects(Vec<Value>),
    /// The user may not read them.
    NotVisible,
}

/// What was read, by question.
#[derive(Clone, Debug, Default)]
pub struct DescendAnswers(pub BTreeMap<DescendQuestion, DescendAnswer>);

impl DescendAnswers {
    fn objects(&self, question: &DescendQuestion) -> &[Value] {
        match self.0.get(question) {
            Some(DescendAnswer::Objects(objects)) => objects,
            Some(DescendAnswer::NotVisible) | None => &[],
        }
    }

    fn is_hidden(&self, question: &DescendQuestion) -> bool {
        matches!(self.0.get(question), Some(DescendAnswer::NotVisible))
    }
}

impl Related for DescendAnswers {
    fn get(&self, need: &RelatedQuery) -> RelatedAnswer<'_> {
        let is_about_serving = matches!(need, RelatedQuery::Served { .. });
        match self.0.get(&DescendQuestion::Related(need.clone())) {
            Some(DescendAnswer::Objects(objects)) if is_about_serving => {
                RelatedAnswer::Served(!objects.is_empty())
            }
            Some(DescendAnswer::Objects(objects)) if objects.is_empty() => RelatedAnswer::Absent,
            Some(DescendAnswer::Objects(objects)) => RelatedAnswer::Objects(objects.iter().collect()),
            Some(DescendAnswer::NotVisible) | None => RelatedAnswer::Unknown,
        }
    }
}

/// How one object leads to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DescendRelation {
    /// It made the next one and keeps it as its own.
    Owns,
    /// It runs the next one, a Pod.
    Runs,
    /// It needs the next one.
    Uses,
}

/// An object by its kind at a version, so that it can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectAddress {
    /// Its kind.
    pub kind: Gvk,
    /// Its namespace; none for kinds that have none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectAddress {
    fn of(kind: &Gvk, object: &Value) -> Self {
        let namespace = text(object, &["metadata", "namespace"]);
        Self {
            kind: kind.clone(),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: text(object, &["metadata", "name"]).to_owned(),
        }
    }

    /// The object, whatever the version.
    pub fn object(&self) -> ObjectRef {
        let (kind, name) = (self.kind.group_kind(), self.name.clone());
        ObjectRef { kind, namespace: self.namespace.clone(), name }
    }
}

/// Which object to look at next.
#[derive(Clone, Debug, PartialEq)]
pub struct NextObject {
    /// How it is come to.
    pub relation: DescendRelation,
    /// Which one.
    pub place: ObjectAddress,
}

/// What an object lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// How far it has come.
    pub state: State,
    /// Why, as one CamelCase word.
    pub reason: String,
    /// Why, as a sentence. It may quote texts of others.
    pub message: String,
    /// Since when, as far as the object says so.
    pub since: Option<Timestamp>,
}

/// What was found out about one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Descent {
    /// What it lacks; its state may also be that it lacks nothing.
    pub lack: Lack,
    /// Where the cause lies, if not here.
    pub next: Option<NextObject>,
    /// Whether it may lie in something that the user may not read.
    pub hidden: bool,
}

/// What must be read before [`descend`] can say where the cause lies.
pub fn questions(kind: &GroupKind, object: &Value) -> Vec<DescendQuestion> {
    let related = readiness::row(kind, false).needs(object).into_iter().map(DescendQuestion::Related);
    let mut questions: Vec<DescendQuestion> = related.collect();
    questions.extend(match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => workloads::deployment_questions(object),
        ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet") | ("batch", "Job") => {
            workloads::questions(kind, object)
        }
        ("", "Pod") => pod::questions(object),
        ("", "PersistentVolumeClaim") => supply::claim_questions(object),
        ("", "Service") => supply::service_questions(object),
        _ => Vec::new(),
    });
    questions
}

/// What an object lacks, which may be of a kind of ours, and where to look next.
pub fn descend(kind: &GroupKind, ours: bool, object: &Value, answers: &DescendAnswers) -> Descent {
    let row = readiness::row(kind, ours);
    let verdict = row.verdict(kind, object, &ReadinessOptions::default(), answers);
    let lack = Lack {
        state: verdict.state,
        reason: verdict.reason.into_owned(),
        message: verdict.message.to_string(),
        since: since(object),
    };
    let here = Descent { lack, next: None, hidden: false };
    if kind.group.is_empty() && kind.kind == "Namespace" {
        return supply::namespace(object, here);
    }
    if is_terminating(object) {
        return terminating(object, here);
    }
    if here.lack.state.is_ready() && !(kind.group.is_empty() && kind.kind == "PersistentVolumeClaim") {
        return here;
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => workloads::deployment(object, answers, here),
        ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
            workloads::replicas(kind, object, answers, here)
        }
        ("batch", "Job") => workloads::job(object, answers, here),
        ("", "Pod") => pod::pod(object, answers, here),
        ("", "PersistentVolumeClaim") => supply::claim(object, answers, here),
        ("", "Service") => supply::service(object, answers, here),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => supply::definition(object, here),
        _ => supply::owned(object, here),
    }
}

impl Descent {
    /// The cause is here, and this is it.
    fn because(mut self, reason: impl Into<String>, message: impl Into<String>) -> Self {
        (self.lack.reason, self.lack.message) = (reason.into(), message.into());
        self
    }

    /// The same, and since when.
    fn since(mut self, since: Option<Timestamp>) -> Self {
        self.lack.since = since.or(self.lack.since);
        self
    }

    /// The cause is in another object.
    fn goes_on(mut self, relation: DescendRelation, place: ObjectAddress) -> Self {
        self.next = Some(NextObject { relation, place });
        self
    }

    /// The cause may be in something that cannot be read.
    fn hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }
}

/// What keeps an object that is being deleted: the finalizers of others.
fn terminating(object: &Value, here: Descent) -> Descent {
    let finalizers: Vec<&str> =
        list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str).collect();
    let message = match finalizers.as_slice() {
        [] => "it is being deleted".to_owned(),
        names => format!("it is being deleted and kept by finalizers: {}", names.join(", ")),
    };
    here.because("Terminating", message).since(time(object, &["metadata", "deletionTimestamp"]))
}

/// Since when an object is as it is: when the condition that says so last changed, else when it was made.
fn since(object: &Value) -> Option<Timestamp> {
    const TIMED_CONDITIONS: [&str; 5] = ["Failed", "FailureTarget", "Ready", "Available", "Progressing"];
    let changed_at =
        TIMED_CONDITIONS.iter().find_map(|kind| time(condition(object, kind)?, &["lastTransitionTime"]));
    changed_at.or_else(|| time(object, &["metadata", "creationTimestamp"]))
}

fn time(object: &Value, path: &[&str]) -> Option<Timestamp> {
    text(object, path).parse().ok()
}

/// An entry of `status.conditions`, by its type.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, &["status", "conditions"]).iter().find(|entry| text(entry, &["type"]) == kind)
}

/// A condition, if it has this status.
fn condition_is<'a>(object: &'a Value, kind: &str, status: &str) -> Option<&'a Value> {
    condition(object, kind).filter(|entry| text(entry, &["status"]) == status)
}

/// `reason: message` of a condition or an event.
fn said(entry: &Value) -> (String, String) {
    (text(entry, &["reason"]).to_owned(), text(entry, &["message"]).to_owned())
}

fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"])
}

fn namespace(object: &Value) -> String {
    text(object, &["metadata", "namespace"]).to_owned()
}

/// The Events about an object.
fn events(object: &Value) -> DescendQuestion {
    DescendQuestion::Events { namespace: namespace(object), uid: uid(object).to_owned() }
}

/// The newest event with one of these reasons.
fn newest_event<'a>(object: &Value, answers: &'a DescendAnswers, reasons: &[&str]) -> Option<&'a Value> {
    let listed = answers.objects(&events(object)).iter();
    listed.filter(|event| reasons.contains(&text(event, &["reason"]))).max_by_key(|event| event_time(event))
}

/// When an event was last seen, as comparable text.
fn event_time(event: &Value) -> &str {
    let at = [&["series", "lastObservedTime"][..], &["lastTimestamp"], &["eventTime"]];
    at.iter().map(|path| text(event, path)).find(|time| !time.is_empty()).unwrap_or_default()
}

/// Objects of a kind beside another, by labels.
fn labelled(kind: &Gvk, beside: &Value, labels: Option<&Value>) -> DescendQuestion {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    let namespace = Some(namespace(beside));
    DescendQuestion::Related(RelatedQuery::Objects {
        gvk: kind.clone(),
        namespace,
        select: RelatedSelect::Labels(labels),
    })
}

/// One object, by name.
fn named(kind: &Gvk, namespace: Option<String>, name: &str) -> DescendQuestion {
    let select = RelatedSelect::Name(name.to_owned());
    DescendQuestion::Related(RelatedQuery::Objects { gvk: kind.clone(), namespace, select })
}

/// The labels that an object selects by.
fn selector<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    at(object, path)
}

fn pods() -> Gvk {
    Gvk::new("", "v1", "Pod")
}

/// Whether an object is owned by the one with this uid.
fn is_owned_by(object: &Value, owner: &str) -> bool {
    list(object, &["metadata", "ownerReferences"]).iter().any(|entry| text(entry, &["uid"]) == owner)
}

#[cfg(test)]
mod tests;
