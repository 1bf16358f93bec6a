use linchpin_source::{archive::Manifest, digest::Digest};
use linchpin_words::source::{FluxSourceKind, Locator};

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn asks(namespace: &str, path: &str, interval: Duration, pinned: bool) -> Want {
    let digest = pinned.then(|| "sha256:00".to_owned());
    let locator = Locator::Http { url: format!("https://releases.example/{path}"), digest };
    let source = Shared::new(Source { locator, paths: Vec::new(), strip_components: 0, secret: None });
    let via = Via::service_account(namespace, "default");
    Want::new(Question::Artifact { via, source, interval, timeout: seconds(60) })
}

type Outcome = Result<Option<Fetched>, Problem>;

#[allow(clippy::unnecessary_wraps, reason = "beside `failed`")]
fn fetched(text: &str) -> Outcome {
    let digest = Digest::of(text.as_bytes());
    let mut known = EarlierFetch::default();
    known.revision = digest.to_string();
    let manifests = vec![Manifest { path: String::new(), text: text.to_owned() }];
    Ok(Some(Fetched { known, digest, size: text.len(), manifests }))
}

fn failed(reason: Reason) -> Outcome {
    Err(Problem::new(reason, "why"))
}

fn ended(schedule: &mut SourceSchedule, job: &FetchJob, outcome: Outcome, now: Duration) -> usize {
    schedule.ended(job.id, Some(outcome), now, Timestamp::from_second(0)).len()
}

fn seen(schedule: &SourceSchedule, want: &Want) -> (Option<String>, Option<(Reason, bool)>) {
    let Seen::Artifact(artifact) = schedule.read(want) else { panic!("{:?}", schedule.read(want)) };
    let text = artifact.content.as_ref().map(|content| content.files[0].1.clone());
    (text, artifact.fault.as_ref().map(|fault| (fault.reason, fault.refused)))
}

#[test]
fn equal_sources_are_fetched_once_and_as_often_as_the_most_eager_asks() {
    let mut schedule = SourceSchedule::default();
    let (slow, fast) = (asks("a", "x", MINUTE * 5, false), asks("b", "x", MINUTE, false));
    schedule.subscribe(SubscriberId(1), [slow.clone()].into(), Duration::ZERO);
    schedule.subscribe(SubscriberId(2), [fast.clone()].into(), Duration::ZERO);
    assert!(matches!(schedule.read(&slow), Seen::Unknown(why) if why.is_passing()));
    let job = schedule.next(Duration::ZERO).unwrap();
    assert!(schedule.next(Duration::ZERO).is_none(), "one fetch answers both");
    assert_eq!(ended(&mut schedule, &job, fetched("a: 1"), Duration::ZERO), 2, "both are notified");
    assert_eq!(seen(&schedule, &slow), (Some("a: 1".to_owned()), None));
    assert!(schedule.next(seconds(59)).is_none());
    let job = schedule.next(MINUTE).unwrap();
    assert!(job.known.is_some(), "it is asked whether anything is new");
    assert_eq!(ended(&mut schedule, &job, Ok(None), MINUTE), 0, "nothing new notifies nobody");
    schedule.subscribe(SubscriberId(2), BTreeSet::new(), MINUTE);
    let job = schedule.next(MINUTE * 2).unwrap();
    assert_eq!(ended(&mut schedule, &job, fetched("a: 2"), MINUTE * 2), 1);
    assert!(schedule.next(MINUTE * 4).is_none(), "the eager one has left");
    assert!(schedule.next(MINUTE * 7).is_some());
}

#[test]
fn what_names_its_content_is_fetched_once() {
    let mut schedule = SourceSchedule::default();
    let want = asks("a", "x", MINUTE, true);
    schedule.subscribe(SubscriberId(1), [want.clone()].into(), Duration::ZERO);
    let job = schedule.next(Duration::ZERO).unwrap();
    ended(&mut schedule, &job, failed(Reason::FetchFailed), Duration::ZERO);
    let job = schedule.next(seconds(1)).unwrap();
    ended(&mut schedule, &job, fetched("a: 1"), seconds(1));
    schedule.refresh(&want, seconds(2));
    assert!(schedule.next(MINUTE * 1000).is_none() && schedule.wake_at().is_none());
}

#[test]
fn a_look_that_fails_changes_nothing_of_what_was_read_and_comes_again_more_and_more_rarely() {
    let mut schedule = SourceSchedule::default();
    let want = asks("a", "x", seconds(3), false);
    schedule.subscribe(SubscriberId(1), [want.clone()].into(), Duration::ZERO);
    let job = schedule.next(Duration::ZERO).unwrap();
    ended(&mut schedule, &job, fetched("a: 1"), Duration::ZERO);
    let mut now = seconds(3);
    for pause in [1, 2, 3, 3] {
        let job = schedule.next(now).unwrap();
        ended(&mut schedule, &job, failed(Reason::FetchFailed), now);
        assert_eq!(seen(&schedule, &want), (Some("a: 1".to_owned()), Some((Reason::FetchFailed, false))));
        assert!(schedule.next(now + seconds(pause).mul_f32(0.9)).is_none());
        now += seconds(pause);
    }
    let job = schedule.next(now).unwrap();
    let asked = Problem { retry_after: Some(600), ..Problem::new(Reason::FetchFailed, "why") };
    ended(&mut schedule, &job, Err(asked), now);
    assert!(schedule.next(now + seconds(599)).is_none(), "the server asked for patience");
    let job = schedule.next(now + seconds(600)).unwrap();
    assert_eq!(ended(&mut schedule, &job, failed(Reason::ArchiveUnsafe), now + seconds(600)), 1);
    assert_eq!(
        seen(&schedule, &want),
        (Some("a: 1".to_owned()), Some((Reason::ArchiveUnsafe, true))),
        "it was read, and is refused"
    );
}

#[test]
fn a_namespace_has_one_fetch_at_a_time_and_nobody_waits_behind_it() {
    let mut schedule = SourceSchedule::default();
    let greedy: BTreeSet<Want> = (0..50).map(|n| asks("greedy", &n.to_string(), MINUTE, false)).collect();
    schedule.subscribe(SubscriberId(1), greedy, Duration::ZERO);
    let held = schedule.next(Duration::ZERO).unwrap();
    assert!(schedule.next(Duration::ZERO).is_none(), "one of a namespace");
    for (reader, name) in [(2, "b"), (3, "c"), (4, "d"), (5, "e")] {
        let want = asks(name, "y", MINUTE, false);
        let want = if name == "e" { asks(name, "z", MINUTE, false) } else { want };
        schedule.subscribe(SubscriberId(reader), [want].into(), Duration::ZERO);
    }
    let shared = schedule.next(Duration::ZERO).unwrap();
    let other = schedule.next(Duration::ZERO).unwrap();
    assert!(schedule.next(Duration::ZERO).is_none(), "b, c and d share one");
    for job in [shared, other] {
        ended(&mut schedule, &job, fetched("a: 1"), Duration::ZERO);
    }
    schedule.ended(held.id, None, Duration::ZERO, Timestamp::from_second(0));
    assert!(schedule.next(Duration::ZERO).is_some(), "its place is given back, however it ended");
}

#[test]
fn a_namespace_keeps_no_more_than_its_budget() {
    let mut schedule = SourceSchedule::default();
    let wants: Vec<Want> = (0..9).map(|n| asks("a", &n.to_string(), MINUTE, false)).collect();
    schedule.subscribe(SubscriberId(1), wants.iter().cloned().collect(), Duration::ZERO);
    let text = "x".repeat(8 << 20);
    while let Some(job) = schedule.next(Duration::ZERO) {
        ended(&mut schedule, &job, fetched(&text), Duration::ZERO);
    }
    let faults: Vec<_> = wants.iter().filter_map(|want| seen(&schedule, want).1).collect();
    assert_eq!(faults, [(Reason::OverBudget, false)], "eight of eight megabytes fit");
    let kept = wants.iter().find(|want| seen(&schedule, want).1.is_none()).unwrap().clone();
    let rest: BTreeSet<Want> = wants.iter().filter(|want| **want != kept).cloned().collect();
    schedule.subscribe(SubscriberId(1), rest, seconds(1));
    let job = schedule.next(seconds(1)).unwrap();
    ended(&mut schedule, &job, fetched(&text), seconds(1));
    assert!(wants.iter().filter(|want| **want != kept).all(|want| seen(&schedule, want).1.is_none()));
}

#[test]
fn nothing_is_left_of_what_nobody_asks_for() {
    let mut schedule = SourceSchedule::default();
    let want = asks("a", "x", MINUTE, false);
    schedule.subscribe(SubscriberId(1), [want.clone()].into(), Duration::ZERO);
    let job = schedule.next(Duration::ZERO).unwrap();
    schedule.subscribe(SubscriberId(1), BTreeSet::new(), Duration::ZERO);
    assert_eq!(ended(&mut schedule, &job, fetched("a: 1"), Duration::ZERO), 0);
    let SourceSchedule { asked, ids, entries, due, busy, served, .. } = &schedule;
    assert!(asked.is_empty() && ids.is_empty() && entries.is_empty());
    assert!(due.is_empty() && busy.is_empty() && served.is_empty());
}

#[test]
fn an_order_to_look_again_is_carried_out_at_once_also_while_a_fetch_is_under_way() {
    let mut schedule = SourceSchedule::default();
    let want = asks("a", "x", MINUTE, false);
    schedule.subscribe(SubscriberId(1), [want.clone()].into(), Duration::ZERO);
    let job = schedule.next(Duration::ZERO).unwrap();
    schedule.refresh(&want, Duration::ZERO);
    ended(&mut schedule, &job, fetched("a: 1"), Duration::ZERO);
    let job = schedule.next(Duration::ZERO).unwrap();
    ended(&mut schedule, &job, fetched("a: 1"), Duration::ZERO);
    assert!(schedule.next(seconds(1)).is_none());
    schedule.refresh(&want, seconds(1));
    assert!(schedule.next(seconds(1)).is_some());
}

/// A question about what Flux has fetched.
fn asks_flux(account: &str, revision: &str) -> Want {
    let locator = Locator::Flux {
        kind: FluxSourceKind::GitRepository,
        namespace: "shop".to_owned(),
        name: "repo".to_owned(),
        url: format!("http://source-controller/{revision}.tar.gz"),
        revision: revision.to_owned(),
        digest: "sha256:00".to_owned(),
    };
    let source = Shared::new(Source { locator, paths: Vec::new(), strip_components: 0, secret: None });
    let via = Via::service_account("shop", account);
    Want::new(Question::Artifact { via, source, interval: MINUTE, timeout: seconds(60) })
}

#[test]
fn whoever_has_read_a_source_keeps_what_was_read_until_its_newer_artifact_is_there_and_nobody_else_gets_it() {
    let mut schedule = SourceSchedule::default();
    let (old, new) = (asks_flux("web", "main@1"), asks_flux("web", "main@2"));
    let first = SubscriberId(1);
    schedule.subscribe(first, [old.clone()].into(), Duration::ZERO);
    let job = schedule.next(Duration::ZERO).unwrap();
    ended(&mut schedule, &job, fetched("a: 1"), Duration::ZERO);
    schedule.subscribe(first, [old.clone(), new.clone()].into(), MINUTE);
    schedule.subscribe(first, [new.clone()].into(), MINUTE);
    assert_eq!(seen(&schedule, &new), (Some("a: 1".to_owned()), None), "the old one has been let go");
    let other = asks_flux("other", "main@2");
    schedule.subscribe(SubscriberId(2), [other.clone()].into(), MINUTE);
    assert!(matches!(schedule.read(&other), Seen::Unknown(why) if why.is_passing()));
    let job = schedule.next(MINUTE).unwrap();
    assert_eq!(ended(&mut schedule, &job, failed(Reason::FetchFailed), MINUTE), 2);
    assert_eq!(seen(&schedule, &new), (Some("a: 1".to_owned()), Some((Reason::FetchFailed, false))));
    assert_eq!(seen(&schedule, &other), (None, Some((Reason::FetchFailed, false))));
    // A third one comes before the second was ever read.
    let newest = asks_flux("web", "main@3");
    schedule.subscribe(first, [newest.clone()].into(), MINUTE);
    assert_eq!(seen(&schedule, &newest).0, Some("a: 1".to_owned()));
    let job = schedule.next(MINUTE).unwrap();
    assert_eq!(ended(&mut schedule, &job, fetched("a: 3"), MINUTE), 1);
    assert_eq!(seen(&schedule, &newest), (Some("a: 3".to_owned()), None));
    let elsewhere = asks("shop", "x", MINUTE, false);
    schedule.subscribe(first, [newest, elsewhere.clone()].into(), MINUTE);
    assert!(matches!(schedule.read(&elsewhere), Seen::Unknown(_)), "another source is another source");
}
