//! Our own kinds: following them, and writing their status, finalizers and annotations.
//!
//! The one place where the operator acts as itself on objects. A follower sees every object of a kind in the served
//! namespaces and, after a break, the deletions it missed. A status is written with the resourceVersion it was
//! decided on: whoever wrote in between makes the write fail, and the newer object arrives through the follower.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use futures::{Stream, StreamExt, stream};
use http::{HeaderValue, header};
use kube::{
    Api, Client, Resource,
    api::{DynamicObject, Patch, PatchParams, PostParams, ValidationDirective},
    core::{ApiResource, GroupVersionKind, PartialObjectMeta, Request, Status},
    runtime::watcher::{self, Event},
};
use linchpin_words::Gvk;
use serde_json::{Value, json};

use crate::{
    call::Form,
    identity::OperatorClient,
    watch::{LASTING, Pace, Trouble},
};

/// How long one write may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long a watch lasts before it is renewed: short enough to notice a dead connection soon.
const RENEWAL_SECONDS: u32 = 240;
/// Objects per page of a list: a page is in memory as a whole.
const PAGE: u32 = 100;

/// A kind of ours.
#[derive(Clone, Debug)]
pub struct OwnKind(ApiResource);

impl OwnKind {
    /// A kind by name and plural.
    pub fn new(kind: &Gvk, plural: &str) -> Self {
        let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
        Self(ApiResource::from_gvk_with_plural(&gvk, plural))
    }

    /// The kind as people call it.
    pub fn name(&self) -> &str {
        &self.0.kind
    }

    /// The kind as paths call it.
    pub fn plural(&self) -> &str {
        &self.0.plural
    }
}

/// An object's place: namespace (none for cluster-scoped kinds) and name.
pub type Place = (Option<String>, String);

/// What a follower sees.
#[derive(Debug)]
pub enum OwnEvent {
    /// An object is there, new or changed.
    There(Box<DynamicObject>),
    /// An object is gone.
    Gone(Place),
    /// Everything that is there has been seen at least once.
    Synced,
    /// It cannot be looked at now; it is tried again.
    Trouble(String),
}

/// Follows a kind, in one namespace or in all.
pub fn follow(
    own: &OperatorClient,
    kind: &OwnKind,
    namespace: Option<&str>,
) -> impl Stream<Item = OwnEvent> + Send + use<> {
    let client = own.watches().clone();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &kind.0),
        None => Api::all_with(client, &kind.0),
    };
    let config = watcher::Config::default().timeout(RENEWAL_SECONDS).page_size(PAGE);
    // Spreads the pauses of different followers.
    let seed = kind.plural().bytes().map(u64::from).sum();
    let events =
        stream::unfold((None, Patience::new(seed), Duration::ZERO), move |(current, patience, pause)| {
            let (api, config) = (api.clone(), config.clone());
            async move {
                let (mut current, mut patience) = (current, patience);
                tokio::time::sleep(pause).await;
                let watcher = current.get_or_insert_with(|| watcher::watcher(api, config).boxed());
                let event = watcher.next().await?;
                let code = event.as_ref().err().map(code);
                if code == Some(410) {
                    // At the very start of a watch the watcher does not heal it: a new one begins.
                    current = None;
                }
                let pause = code.map_or(Duration::ZERO, |code| patience.after(code, Instant::now()));
                Some((event, (current, patience, pause)))
            }
        });
    events
        .scan(Known::default(), |known, event| std::future::ready(Some(known.take_in(event))))
        .flat_map(stream::iter)
}

/// The code of an error; 0 where there was no answer.
fn code(error: &watcher::Error) -> u16 {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => 0,
    }
}

/// How long a follower pauses after a failure: as every watch does, and no longer after many breaks in a day.
struct Patience {
    pace: Pace,
    failed: Option<Instant>,
}

impl Patience {
    fn new(seed: u64) -> Self {
        Self { pace: Pace::new(seed), failed: None }
    }

    fn after(&mut self, code: u16, now: Instant) -> Duration {
        // Only what lasted counts as success: a stream that ends at once, again and again, is no better than none.
        if self.failed.is_some_and(|failed| now.saturating_duration_since(failed) > LASTING) {
            self.pace.fine();
        }
        let pause = self.pace.after(match code {
            403 => Trouble::Forbidden,
            410 => Trouble::Expired,
            429 => Trouble::Throttled(None),
            _ => Trouble::Connection,
        });
        self.failed = Some(now + pause);
        pause
    }
}

/// What was seen, so that deletions missed during a break are told.
#[derive(Default)]
struct Known {
    there: BTreeSet<Place>,
    listing: Option<BTreeSet<Place>>,
}

impl Known {
    fn take_in(&mut self, mut event: Result<Event<DynamicObject>, watcher::Error>) -> Vec<OwnEvent> {
        if let Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) = &mut event {
            // Who wrote which field of our own objects is of no interest, and larger than all the rest.
            object.metadata.managed_fields = None;
        }
        match event {
            Ok(Event::Init) => {
                self.listing = Some(BTreeSet::new());
                Vec::new()
            }
            Ok(Event::InitApply(object)) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(place(&object));
                }
                vec![OwnEvent::There(Box::new(object))]
            }
            Ok(Event::InitDone) => {
                let listed = self.listing.take().unwrap_or_default();
                let gone = self.there.difference(&listed).cloned();
                let mut events: Vec<OwnEvent> = gone.map(OwnEvent::Gone).collect();
                self.there = listed;
                events.push(OwnEvent::Synced);
                events
            }
            Ok(Event::Apply(object)) => {
                self.there.insert(place(&object));
                vec![OwnEvent::There(Box::new(object))]
            }
            Ok(Event::Delete(object)) => {
                let place = place(&object);
                self.there.remove(&place);
                vec![OwnEvent::Gone(place)]
            }
            Err(error) => vec![OwnEvent::Trouble(error.to_string())],
        }
    }
}

fn place(object: &DynamicObject) -> Place {
    (object.metadata.namespace.clone(), object.metadata.name.clone().unwrap_or_default())
}

/// Why a write to an object of ours did not take place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnWriteError {
    /// The object has changed since.
    #[error("the object has changed since it was read")]
    Conflict,
    /// The object is gone.
    #[error("the object is gone")]
    Gone,
    /// The server refuses it: nothing will change that but another status or another right.
    #[error("{0}")]
    Refused(String),
    /// A fault that may pass.
    #[error("{0}")]
    Passing(String),
}

impl From<kube::Error> for OwnWriteError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from_status(&status),
            other => Self::Passing(other.to_string()),
        }
    }
}

impl OwnWriteError {
    fn from_status(status: &Status) -> Self {
        match status.code {
            409 => Self::Conflict,
            404 => Self::Gone,
            429 | 500..=599 => Self::Passing(status.message.clone()),
            _ => Self::Refused(status.message.clone()),
        }
    }
}

fn api(client: &Client, kind: &OwnKind, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind.0),
        None => Api::all_with(client.clone(), &kind.0),
    }
}

async fn within_deadline<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, OwnWriteError> {
    match tokio::time::timeout(DEADLINE, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(OwnWriteError::Passing(format!("no answer within {} s", DEADLINE.as_secs()))),
    }
}

/// Writes a whole status, if the object is still at `version`. Returns its new version.
pub async fn write_status(
    own: &OperatorClient,
    kind: &OwnKind,
    place: &Place,
    version: &str,
    status: Value,
) -> Result<String, OwnWriteError> {
    let mut object = DynamicObject::new(&place.1, &kind.0);
    object.metadata.namespace.clone_from(&place.0);
    object.metadata.resource_version = Some(version.to_owned());
    object.data = json!({ "status": status });
    let body = serde_json::to_vec(&object).map_err(|error| OwnWriteError::Refused(error.to_string()))?;
    let path = DynamicObject::url_path(&kind.0, place.0.as_deref());
    let request = Request::new(path).replace_subresource("status", &place.1, &PostParams::default(), body);
    let mut request = request.map_err(|error| OwnWriteError::Refused(error.to_string()))?;
    // Of the answer only the version is read: sending back all the rest would cost as much as the status.
    let accept = HeaderValue::from_static(Form::Metadata.accept());
    request.headers_mut().insert(header::ACCEPT, accept);
    let written = within_deadline(own.writes().request::<PartialObjectMeta<DynamicObject>>(request)).await?;
    Ok(written.metadata.resource_version.unwrap_or_default())
}

/// What is to be written of an object's metadata. What it does not name stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnMetadata {
    /// All finalizers.
    pub finalizers: Option<Vec<String>>,
    /// Annotations; none for one that goes.
    pub annotations: BTreeMap<&'static str, Option<String>>,
}

/// Writes metadata of an object, if it is still at `version`. Returns its new version, or none where it is gone now.
pub async fn write_metadata(
    own: &OperatorClient,
    kind: &OwnKind,
    place: &Place,
    version: &str,
    metadata: &OwnMetadata,
) -> Result<String, OwnWriteError> {
    let mut patch = json!({"metadata": {"resourceVersion": version}});
    if let Some(finalizers) = &metadata.finalizers {
        patch["metadata"]["finalizers"] = json!(finalizers);
    }
    if !metadata.annotations.is_empty() {
        patch["metadata"]["annotations"] = json!(metadata.annotations);
    }
    let api = api(own.writes(), kind, place.0.as_deref());
    // The kind is ours: looking for fields that it does not have would be in vain.
    let parameters =
        PatchParams { field_validation: Some(ValidationDirective::Ignore), ..PatchParams::default() };
    let patch = Patch::Merge(&patch);
    let written = within_deadline(api.patch_metadata(&place.1, &parameters, &patch)).await?;
    Ok(written.metadata.resource_version.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_expired_is_read_anew_at_once_but_not_again_and_again() {
        let mut patience = Patience::new(1);
        let now = Instant::now();
        assert_eq!(patience.after(410, now), Duration::ZERO);
        assert!(patience.after(410, now) >= Duration::from_millis(50));
        let later = now + Duration::from_secs(5);
        assert_eq!(patience.after(410, later), Duration::ZERO, "it went well in between");
    }

    #[test]
    fn a_server_that_begins_is_asked_again_soon_and_one_that_stays_away_within_two_seconds() {
        let mut patience = Patience::new(1);
        let mut now = Instant::now();
        assert!(patience.after(429, now) < Duration::from_millis(300));
        for _ in 0..100 {
            let pause = patience.after(0, now);
            assert!(pause <= Duration::from_secs(2), "{pause:?}");
            now += pause + Duration::from_millis(5);
        }
    }
}
