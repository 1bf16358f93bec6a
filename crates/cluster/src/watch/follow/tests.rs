//! The loop against a scripted server: what it asks next, and what it reports.

mod bounds;

use super::*;
use crate::{
    call::Resource,
    watch::interest::{Interest, tests::want},
};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use linchpin_engine::contract::ReadSet;
use linchpin_words::Gvk;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

#[test]
fn every_watch_is_renewed_within_five_minutes() {
    let mut pace = WatchPauses::new(3);
    let renewals: Vec<u64> = (0..1000).map(|_| renewal(&mut pace)).collect();
    assert!(renewals.iter().all(|seconds| (235..295).contains(seconds)));
    let spread = renewals.iter().max().unwrap() - renewals.iter().min().unwrap();
    assert!(spread > 50, "they must not come together");
}

#[test]
fn a_name_cannot_widen_its_own_selector() {
    assert_eq!(escape("a,metadata.name!=b"), "a\\,metadata.name!\\=b");
}

/// One answer of the server.
enum Script {
    /// A status code with an error object.
    Refuse(u16),
    /// One object: its name and version.
    Object(&'static str, u64),
    /// A page of a list: its version and the names and versions in it.
    Page(u64, &'static [(&'static str, u64)]),
    /// A watch that sends these lines and ends.
    Ends(Vec<Value>),
    /// A watch that sends these lines and stays.
    Stays(Vec<Value>),
    /// A watch that sends these lines and breaks off in the middle of one.
    Breaks(Vec<Value>),
}

fn object(name: &str, version: u64) -> Value {
    json!({"metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": version.to_string()}})
}

fn event(kind: &str, name: &str, version: u64) -> Value {
    json!({"type": kind, "object": object(name, version)})
}

fn bookmark(version: u64, first_state: bool) -> Value {
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if first_state {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    json!({"type": "BOOKMARK", "object": {"metadata": metadata}})
}

fn expired() -> Value {
    json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}})
}

type Answer = UnsyncBoxBody<Bytes, Infallible>;

impl Script {
    fn answer(self) -> Response<Answer> {
        let lines = |lines: Vec<Value>| {
            let mut texts: Vec<String> = lines.iter().map(Value::to_string).collect();
            texts.push(String::new());
            texts.join("\n")
        };
        let whole = |text: String| Full::new(Bytes::from(text)).boxed_unsync();
        let (status, body) = match self {
            Self::Refuse(code) => {
                (code, whole(json!({"kind": "Status", "code": code, "message": "no"}).to_string()))
            }
            Self::Object(name, version) => (200, whole(object(name, version).to_string())),
            Self::Page(version, items) => {
                let items: Vec<Value> = items.iter().map(|(name, version)| object(name, *version)).collect();
                (
                    200,
                    whole(
                        json!({"metadata": {"resourceVersion": version.to_string()}, "items": items})
                            .to_string(),
                    ),
                )
            }
            Self::Ends(events) => (200, whole(lines(events))),
            Self::Breaks(events) => (200, whole(format!("{}{{\"type\": \"ADD", lines(events)))),
            Self::Stays(events) => {
                let first = futures::stream::iter([Ok(Frame::data(Bytes::from(lines(events))))]);
                let stream = futures::StreamExt::chain(first, futures::stream::pending());
                (200, StreamBody::new(stream).boxed_unsync())
            }
        };
        Response::builder().status(StatusCode::from_u16(status).unwrap()).body(body).unwrap()
    }
}

/// What was asked, reduced to what matters, and what was reported.
#[derive(Default)]
struct Record {
    asked: Mutex<Vec<String>>,
    reports: Mutex<Vec<String>>,
    asks: Mutex<Interest>,
    /// How often everything was said to be read anew.
    looks: AtomicU32,
    /// When the follower asks about this name, more of it is read from then on.
    joins: Mutex<Option<String>>,
}

impl Record {
    fn asks(&self) -> Interest {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn reports(&self) -> Vec<String> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for Record {
    fn is_metadata(&self) -> bool {
        self.asks().wants.is_empty()
    }

    fn interest(&self, name: &str) -> Option<Arc<Interest>> {
        let interest = self.asks();
        // Whatever happens in the meantime happens right after the follower has asked.
        if self.joins.lock().unwrap_or_else(PoisonError::into_inner).take_if(|joins| joins == name).is_some()
        {
            let want = want(ReadSet::dotted(["data"]));
            *self.asks.lock().unwrap_or_else(PoisonError::into_inner) =
                Interest { revision: interest.revision + 1, wants: [want].into_iter().collect() };
        }
        (!name.starts_with("other")).then(|| Arc::new(interest))
    }

    fn report(&self, report: WatchReport) -> SinkReply {
        let text = match report {
            WatchReport::Looking => {
                self.looks.fetch_add(1, Ordering::Relaxed);
                return SinkReply::Noted;
            }
            WatchReport::Read { .. } => return SinkReply::Noted,
            WatchReport::Changed(item) if item.revision < self.asks().revision => return SinkReply::Again,
            WatchReport::Snapshot { items, others, as_of } => {
                let mut names: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
                names.extend(others.iter().map(|name| &**name));
                format!("all [{}] at {as_of}", names.join(" "))
            }
            WatchReport::Passed { name, version } => format!("{name} passed at {version}"),
            WatchReport::Changed(item) => format!("{} at {}", item.name, item.version),
            WatchReport::Gone { name, version } => format!("{name} gone at {version}"),
            WatchReport::Reached(version) => format!("reached {version}"),
            WatchReport::Live => "live".to_owned(),
        };
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        SinkReply::Noted
    }

    fn failed(&self, failure: WatchFailure) {
        let text = match failure {
            WatchFailure::Lost { failures, .. } => format!("lost {failures}"),
            WatchFailure::Forbidden(_) => "forbidden".to_owned(),
        };
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

/// What a request asks for: `stream`, `list`, `check`, or `watch from N`.
fn reduced(request: &Request<Body>) -> String {
    let query = request.uri().query().unwrap_or_default();
    let parameter = |name: &str| {
        query
            .split('&')
            .find_map(|pair| pair.strip_prefix(&format!("{name}=")))
            .unwrap_or_default()
            .to_owned()
    };
    match (parameter("watch").as_str(), parameter("sendInitialEvents").as_str(), parameter("limit").as_str())
    {
        ("true", "true", _) => "stream".to_owned(),
        ("true", _, _) => format!("watch from {}", parameter("resourceVersion")),
        (_, _, "1") => "check".to_owned(),
        _ => "list".to_owned(),
    }
}

/// Lets a follower run through a script, in virtual time, until the script has ended and nothing more happens.
async fn run(select: WatchSelect, script: Vec<Script>) -> Arc<Record> {
    run_with(select, script, Record::default()).await
}

fn follower(
    client: Client,
    features: Arc<Features>,
    group: &str,
    asker: &str,
    select: WatchSelect,
) -> Follower {
    Follower {
        client,
        clock: Arc::default(),
        features,
        counters: Arc::default(),
        watched: WatchTarget {
            resource: Resource::new(Gvk::new(group, "v1", "ConfigMap"), "configmaps", true),
            namespace: Some("shop".into()),
            select,
        },
        asker: asker.into(),
        seed: 1,
    }
}

async fn run_with(select: WatchSelect, script: Vec<Script>, record: Record) -> Arc<Record> {
    run_ordered(select, script, record, async |_keep| std::future::pending().await).await
}

/// The same, while somebody orders fresh looks.
async fn run_ordered(
    select: WatchSelect,
    script: Vec<Script>,
    record: Record,
    orders: impl AsyncFnOnce(watch::Sender<u64>),
) -> Arc<Record> {
    let record = Arc::new(record);
    let script = Arc::new(Mutex::new(VecDeque::from(script)));
    let asked = Arc::clone(&record);
    let service = tower::service_fn(move |request: Request<Body>| {
        let next = script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let asked = Arc::clone(&asked);
        async move {
            let Some(next) = next else { return std::future::pending().await };
            asked.asked.lock().unwrap_or_else(PoisonError::into_inner).push(reduced(&request));
            Ok::<_, Infallible>(next.answer())
        }
    });
    let follower = follower(Client::new(service, "default"), Arc::default(), "", "shop", select);
    let (order, mut restart) = watch::channel(0);
    let all = futures::future::join(follower.run(&*record, &mut restart), orders(order));
    let _ = tokio::time::timeout(Duration::from_mins(2), all).await;
    record
}

fn named() -> WatchSelect {
    WatchSelect::Name("a".into())
}

#[tokio::test(start_paused = true)]
async fn one_object_is_followed_with_a_single_request() {
    let record = run(
        named(),
        vec![Script::Stays(vec![
            event("ADDED", "a", 3),
            bookmark(7, true),
            event("MODIFIED", "a", 8),
            event("DELETED", "a", 9),
            bookmark(12, false),
        ])],
    )
    .await;
    assert_eq!(record.asked(), ["stream"]);
    assert_eq!(record.reports(), ["all [a] at 7", "a at 8", "a gone at 9", "reached 12"]);
}

#[tokio::test(start_paused = true)]
async fn a_first_state_that_breaks_off_is_not_believed() {
    let record = run(
        named(),
        vec![Script::Breaks(vec![event("ADDED", "a", 3)]), Script::Stays(vec![bookmark(7, true)])],
    )
    .await;
    assert_eq!(record.reports(), ["lost 1", "all [] at 7"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_stream_is_listed_and_watched() {
    let record = run(
        named(),
        vec![
            Script::Refuse(422),
            Script::Page(5, &[("a", 3)]),
            Script::Stays(vec![event("MODIFIED", "a", 8)]),
        ],
    )
    .await;
    assert_eq!(record.asked(), ["stream", "list", "watch from 5"]);
    assert_eq!(record.reports(), ["all [a] at 5", "a at 8"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_completes_a_first_state_is_listed_and_watched() {
    let record = run(
        named(),
        vec![
            Script::Stays(vec![event("ADDED", "a", 4)]),
            Script::Page(5, &[("a", 4)]),
            Script::Stays(vec![event("MODIFIED", "a", 6)]),
        ],
    )
    .await;
    assert_eq!(record.reports()[..2], ["all [a] at 5", "a at 6"]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_resumed_where_it_was() {
    let record = run(
        WatchSelect::All,
        vec![
            Script::Page(5, &[("a", 3)]),
            Script::Breaks(vec![event("ADDED", "b", 8)]),
            Script::Page(9, &[]),
            Script::Stays(vec![event("DELETED", "b", 10)]),
        ],
    )
    .await;
    assert_eq!(
        record.asked(),
        ["list", "watch from 5", "check", "watch from 8"],
        "without reading all again"
    );
    assert_eq!(record.reports(), ["all [a] at 5", "b at 8", "lost 1", "b gone at 10", "live"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_has_expired_is_read_anew_wherever_it_is_said() {
    let at_the_start = run(
        WatchSelect::All,
        vec![
            Script::Page(5, &[("a", 3)]),
            Script::Refuse(410),
            Script::Page(20, &[("b", 15)]),
            Script::Stays(vec![]),
        ],
    )
    .await;
    assert_eq!(at_the_start.asked(), ["list", "watch from 5", "list", "watch from 20"]);
    assert_eq!(at_the_start.reports(), ["all [a] at 5", "all [b] at 20"]);
    assert_eq!(at_the_start.looks.load(Ordering::Relaxed), 2, "it is said before it is done");
    let in_the_stream = run(
        WatchSelect::All,
        vec![
            Script::Page(5, &[("a", 3)]),
            Script::Ends(vec![expired()]),
            Script::Page(20, &[]),
            Script::Stays(vec![]),
        ],
    )
    .await;
    assert_eq!(in_the_stream.asked(), ["list", "watch from 5", "list", "watch from 20"]);
    assert_eq!(
        in_the_stream.reports(),
        ["all [a] at 5", "all [] at 20"],
        "the deletion that was missed is seen"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_went_back_is_read_anew() {
    let record = run(
        WatchSelect::All,
        vec![
            Script::Page(50, &[("a", 30)]),
            Script::Breaks(vec![event("ADDED", "b", 80)]),
            Script::Page(60, &[]),
            Script::Page(60, &[("a", 30)]),
            Script::Stays(vec![]),
        ],
    )
    .await;
    assert_eq!(record.asked(), ["list", "watch from 50", "check", "list", "watch from 60"]);
    assert_eq!(record.reports().last().unwrap(), "all [a] at 60");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_said_and_tried_again() {
    // Twice each time: it may not be watched, and not be read either.
    let refused = (0..4).map(|_| Script::Refuse(403));
    let script = refused.chain([Script::Stays(vec![bookmark(7, true)])]).collect();
    let record = run(named(), script).await;
    assert_eq!(record.reports(), ["forbidden", "forbidden", "all [] at 7"]);
    let select = WatchSelect::All;
    let record = run(select, vec![Script::Refuse(403), Script::Refuse(403), Script::Page(7, &[])]).await;
    assert_eq!(
        record.reports(),
        ["forbidden", "forbidden", "all [] at 7"],
        "only one object can be read alone"
    );
}

#[tokio::test(start_paused = true)]
async fn a_value_that_may_be_read_and_not_watched_costs_no_more_than_a_refusal() {
    let script = (0..1000).flat_map(|round| [Script::Refuse(403), Script::Object("a", round + 1)]);
    let record = run(named(), script.collect()).await;
    // In two minutes: after 1, 2, 4, 8, 16 seconds and every half minute, two requests each time.
    let asked = record.asked().len();
    assert!((14..=20).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_value_that_may_be_read_and_not_watched_is_read_again_and_again() {
    let script = vec![
        Script::Refuse(403),
        Script::Object("a", 5),
        Script::Refuse(403),
        Script::Object("a", 6),
        Script::Refuse(403),
        Script::Refuse(404),
        Script::Refuse(403),
        Script::Refuse(403),
    ];
    let record = run(named(), script).await;
    assert_eq!(record.reports(), ["all [a] at 5", "all [a] at 6", "all [] at 0", "forbidden"]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_ends_the_watch() {
    let record = run(named(), vec![Script::Refuse(404)]).await;
    assert_eq!((record.asked().len(), record.reports().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_every_watch_at_once_is_not_hammered() {
    let script = (0..1000).map(|_| Script::Ends(vec![bookmark(7, true)])).collect();
    let record = run(named(), script).await;
    assert!(record.asked().len() < 120, "{} requests in two minutes", record.asked().len());
}

#[tokio::test(start_paused = true)]
async fn objects_of_no_interest_are_said_to_be_there() {
    let record = run(
        WatchSelect::All,
        vec![
            Script::Page(5, &[("a", 3), ("other-1", 4)]),
            Script::Stays(vec![event("ADDED", "other-2", 8), event("DELETED", "other-1", 9)]),
        ],
    )
    .await;
    assert_eq!(record.reports(), ["all [a other-1] at 5", "other-2 passed at 8", "other-1 gone at 9"]);
}

#[tokio::test(start_paused = true)]
async fn a_first_state_that_is_streamed_names_what_it_passed_over() {
    let script =
        vec![event("ADDED", "other", 3), event("ADDED", "other-2", 4), event("DELETED", "other-2", 5)];
    let script = script.into_iter().chain([bookmark(7, true)]).collect();
    let record = run(WatchSelect::Name("other".into()), vec![Script::Stays(script)]).await;
    assert_eq!(record.reports(), ["all [other] at 7"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_which_more_is_read_in_the_meantime_is_read_again() {
    let asks = Interest { revision: 1, wants: [want(ReadSet::dotted(["data"]))].into_iter().collect() };
    let record = Record { asks: asks.into(), joins: Some("b".to_owned()).into(), ..Record::default() };
    let script = vec![Script::Page(5, &[("a", 3)]), Script::Stays(vec![event("ADDED", "b", 8)])];
    let record = run_with(WatchSelect::All, script, record).await;
    assert_eq!(record.asked(), ["list", "watch from 5"]);
    assert_eq!(record.reports(), ["all [a] at 5", "b at 8"], "reported once, with all that is read");
}

#[tokio::test(start_paused = true)]
async fn where_only_metadata_was_asked_for_and_more_is_read_all_is_asked_for_anew() {
    let record = Record { joins: Some("b".to_owned()).into(), ..Record::default() };
    let script = vec![
        Script::Page(5, &[("a", 3)]),
        Script::Stays(vec![event("ADDED", "b", 8)]),
        Script::Page(9, &[("a", 3), ("b", 8)]),
        Script::Stays(vec![]),
    ];
    let record = run_with(WatchSelect::All, script, record).await;
    assert_eq!(record.asked(), ["list", "watch from 5", "list", "watch from 9"]);
    assert_eq!(
        record.reports(),
        ["all [a] at 5", "all [a b] at 9"],
        "metadata alone is never reports as the whole"
    );
}

#[tokio::test(start_paused = true)]
async fn orders_to_look_afresh_are_carried_out_together_and_none_is_forgotten() {
    let looks = || (0..100).map(|number| Script::Stays(vec![bookmark(7 + number, true)])).collect();
    let burst = async |order: watch::Sender<u64>| {
        for _ in 0..200 {
            order.send_modify(|count| *count += 1);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        std::future::pending::<()>().await;
    };
    let record = run_ordered(named(), looks(), Record::default(), burst).await;
    let count = record.asked().len();
    assert!((4..=6).contains(&count), "{count} looks for 200 orders within a second");
    let later = async |order: watch::Sender<u64>| {
        tokio::time::sleep(Duration::from_secs(10)).await;
        order.send_modify(|count| *count += 1);
        std::future::pending::<()>().await;
    };
    let record = run_ordered(named(), looks(), Record::default(), later).await;
    assert_eq!(record.asked(), ["stream", "stream"]);
}
