use linchpin_words::probe::{Origin, ProbeRequest, ProbeText};

use super::*;

const A: SubscriberId = SubscriberId(1);
const B: SubscriberId = SubscriberId(2);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn probe(host: &str) -> Probe {
    Probe { place: ProbeTarget::host(host, 80).unwrap(), request: None }
}

fn ask(namespace: &str, probe: Probe, pace: ProbePace) -> Want {
    let via = Via::service_account(namespace, "default");
    Want::new(Question::Probe { via, probe: Shared::new(probe), pace })
}

fn calm(namespace: &str, host: &str) -> Want {
    ask(namespace, probe(host), ProbePace::Calm)
}

fn subscribe(schedule: &mut ProbeSchedule, who: SubscriberId, wants: &[Want], now: Duration) {
    schedule.subscribe(who, wants.iter().cloned().collect(), now);
}

/// Starts everything that may start.
fn start_all(schedule: &mut ProbeSchedule, now: Duration) -> Vec<ProbeJob> {
    std::iter::from_fn(|| schedule.next(now)).collect()
}

/// Whether two lengths of time are the same but for a tenth.
fn about(found: Duration, expected: Duration) -> bool {
    found >= expected * 9 / 10 && found <= expected * 11 / 10
}

/// Lets the one probe fail, or succeed, when it is due; the pauses before each attempt.
fn pauses(schedule: &mut ProbeSchedule, outcomes: &[Result<(), Miss>]) -> Vec<Duration> {
    let mut now = Duration::ZERO;
    let mut pauses = Vec::new();
    for outcome in outcomes {
        let due = schedule.wake_at().unwrap();
        pauses.push(due.saturating_sub(now));
        now = now.max(due);
        let early = now.checked_sub(Duration::from_nanos(1));
        assert_eq!(early.and_then(|early| schedule.next(early)), None, "nothing starts before it is due");
        let job = schedule.next(now).unwrap();
        schedule.ended(job.id, Some(outcome.clone()), now);
    }
    pauses
}

#[test]
fn what_does_not_answer_is_probed_more_and_more_rarely() {
    let mut schedule = ProbeSchedule::default();
    subscribe(&mut schedule, A, &[calm("shop", "db")], Duration::ZERO);
    let found = pauses(&mut schedule, &vec![Err(Miss::Refused); 8]);
    for (found, expected) in found.iter().zip([0, 1, 2, 4, 8, 10, 10, 10].map(seconds)) {
        assert!(about(*found, expected), "{found:?} instead of {expected:?}");
    }
    assert!(found.iter().collect::<BTreeSet<_>>().len() > 6, "no two pauses are quite alike: {found:?}");
}

#[test]
fn somebody_who_is_held_is_not_kept_waiting() {
    let mut schedule = ProbeSchedule::default();
    subscribe(&mut schedule, A, &[ask("shop", probe("db"), ProbePace::Held)], Duration::ZERO);
    let found = pauses(&mut schedule, &vec![Err(Miss::Refused); 5]);
    for (found, expected) in found.iter().zip([0, 1, 2, 2, 2].map(seconds)) {
        assert!(about(*found, expected), "{found:?} instead of {expected:?}");
    }
}

#[test]
fn a_pod_that_is_held_from_now_on_shortens_the_pause_that_is_under_way() {
    let mut schedule = ProbeSchedule::default();
    subscribe(&mut schedule, A, &[calm("shop", "db")], Duration::ZERO);
    pauses(&mut schedule, &vec![Err(Miss::Refused); 6]);
    let now = schedule.wake_at().unwrap().checked_sub(seconds(8)).unwrap();
    subscribe(&mut schedule, B, &[ask("shop", probe("db"), ProbePace::Held)], now);
    assert_eq!(schedule.wake_at(), Some(now + HELD));
    assert_eq!(schedule.len(), 1, "it is the same probe");
}

#[test]
fn what_answers_is_probed_every_half_minute() {
    let mut schedule = ProbeSchedule::default();
    subscribe(&mut schedule, A, &[calm("shop", "db")], Duration::ZERO);
    let found = pauses(&mut schedule, &[Ok(()), Ok(()), Ok(())]);
    assert!(about(found[1], MET) && about(found[2], MET), "{found:?}");
}

#[test]
fn one_failure_of_what_answered_is_looked_at_again_after_a_second() {
    let mut schedule = ProbeSchedule::default();
    let want = calm("shop", "db");
    subscribe(&mut schedule, A, std::slice::from_ref(&want), Duration::ZERO);
    let end = |schedule: &mut ProbeSchedule, outcome| {
        let now = schedule.wake_at().unwrap();
        let job = schedule.next(now).unwrap();
        (now, schedule.ended(job.id, Some(outcome), now))
    };
    assert_eq!(end(&mut schedule, Ok(())).1, [A].into());
    let (now, woken) = end(&mut schedule, Err(Miss::Refused));
    assert!(woken.is_empty() && schedule.read(&want) == Seen::Probe(Ok(())), "once is no proof");
    assert_eq!(schedule.wake_at(), Some(now + SOON));
    assert!(end(&mut schedule, Ok(())).1.is_empty(), "it was only a hiccup");
    end(&mut schedule, Err(Miss::Refused));
    assert_eq!(end(&mut schedule, Err(Miss::Status(503))).1, [A].into(), "twice is");
    assert_eq!(schedule.read(&want), Seen::Probe(Err(Miss::Status(503))));
    assert!(end(&mut schedule, Err(Miss::Status(503))).1.is_empty(), "the same again wakes nobody");
    assert_eq!(end(&mut schedule, Err(Miss::Refused)).1, [A].into(), "another cause does");
    assert_eq!(end(&mut schedule, Ok(())).1, [A].into(), "it counts at once when it is there");
}

#[test]
fn equal_probes_of_all_namespaces_are_one() {
    let mut schedule = ProbeSchedule::default();
    for number in 0..1000 {
        let want = calm(&format!("ns-{number}"), "db.example.com");
        subscribe(&mut schedule, SubscriberId(number), &[want], Duration::ZERO);
    }
    assert_eq!(schedule.len(), 1);
    let job = schedule.next(Duration::ZERO).unwrap();
    assert!(schedule.next(Duration::ZERO).is_none());
    assert_eq!(schedule.ended(job.id, Some(Ok(())), Duration::ZERO).len(), 1000, "everybody hears of it");
    assert!(about(schedule.wake_at().unwrap(), MET));
}

#[test]
fn what_carries_a_secret_is_shared_within_one_identity_only() {
    let secret = |version| {
        let value = ProbeText::read_from(Origin { uid: "u".to_owned(), version }, "token");
        let request = ProbeRequest::get("api", "/").unwrap().header("Authorization", value).unwrap();
        Probe { place: ProbeTarget::host("api", 80).unwrap(), request: Some(request) }
    };
    let mut schedule = ProbeSchedule::default();
    let wants = [
        ask("shop", secret(1), ProbePace::Calm),
        ask("shop", secret(1), ProbePace::Held),
        ask("other", secret(1), ProbePace::Calm),
        ask("shop", secret(2), ProbePace::Calm),
    ];
    subscribe(&mut schedule, A, &wants, Duration::ZERO);
    assert_eq!(schedule.len(), 3, "one for two paces, one for another namespace, one for another version");
}

#[test]
fn b17_b23_a_hundred_dead_targets_of_one_tenant_delay_nobody_else() {
    let mut schedule = ProbeSchedule::default();
    let dead: Vec<Want> = (0..100).map(|number| calm("evil", &format!("dead-{number}"))).collect();
    subscribe(&mut schedule, A, &dead, Duration::ZERO);
    assert_eq!(start_all(&mut schedule, Duration::ZERO).len(), limits::PROBE_NAMESPACE_THREADS);
    subscribe(&mut schedule, B, &[calm("shop", "db")], Duration::ZERO);
    let job = schedule.next(Duration::ZERO).unwrap();
    assert_eq!(job.probe.place.to_string(), "db:80");
}

#[test]
fn namespaces_take_turns_when_all_places_are_taken() {
    let mut schedule = ProbeSchedule::default();
    for number in 0..8 {
        let wants: Vec<Want> =
            (0..50).map(|host| calm(&format!("ns-{number}"), &format!("h-{number}-{host}"))).collect();
        subscribe(&mut schedule, SubscriberId(number), &wants, Duration::ZERO);
    }
    let started = start_all(&mut schedule, Duration::ZERO);
    assert_eq!(started.len(), limits::PROBE_THREADS);
    let served: BTreeSet<String> =
        started.iter().map(|job| job.probe.place.to_string()[..3].to_owned()).collect();
    assert_eq!(served.len(), 8, "two each: {served:?}");
}

#[test]
fn one_place_is_probed_once_at_a_time() {
    let mut schedule = ProbeSchedule::default();
    let paths = ["/a", "/b", "/c"].map(|path| {
        let request = ProbeRequest::get("api", path).unwrap();
        ask(
            "shop",
            Probe { place: ProbeTarget::host("api", 80).unwrap(), request: Some(request) },
            ProbePace::Calm,
        )
    });
    subscribe(&mut schedule, A, &paths, Duration::ZERO);
    let first = schedule.next(Duration::ZERO).unwrap();
    assert!(schedule.next(Duration::ZERO).is_none());
    schedule.ended(first.id, Some(Ok(())), Duration::ZERO);
    assert!(schedule.next(Duration::ZERO).is_some());
}

#[test]
fn a_namespace_has_a_number_of_probes_and_the_rest_wait_in_their_order() {
    let mut schedule = ProbeSchedule::default();
    let wants: Vec<Want> =
        (0..limits::PROBES * 2).map(|number| calm("shop", &format!("h{number}"))).collect();
    for (number, want) in wants.iter().enumerate() {
        subscribe(&mut schedule, SubscriberId(number as u64), std::slice::from_ref(want), Duration::ZERO);
    }
    assert_eq!(schedule.len(), limits::PROBES);
    let over = |schedule: &ProbeSchedule, want: &Want| matches!(schedule.read(want), Seen::Unknown(why) if why.reason == Reason::OverBudget);
    assert!(!over(&schedule, &wants[limits::PROBES - 1]) && over(&schedule, &wants[limits::PROBES]));
    subscribe(&mut schedule, A, &[calm("other", "h")], Duration::ZERO);
    // The one that A asked for before is gone with it: its place is the next one's.
    assert!(!over(&schedule, &wants[limits::PROBES]) && over(&schedule, &wants[limits::PROBES + 1]));
    assert_eq!(schedule.len(), limits::PROBES + 1, "another namespace has its own");
    let same = ask("shop", probe("h2"), ProbePace::Held);
    subscribe(&mut schedule, B, &[wants[2].clone(), same.clone()], Duration::ZERO);
    assert!(!over(&schedule, &same), "a probe that is there already takes no more room");
}

#[test]
fn what_is_denied_is_unknown_and_says_by_what() {
    let mut schedule = ProbeSchedule::default();
    let want = calm("shop", "db");
    subscribe(&mut schedule, A, std::slice::from_ref(&want), Duration::ZERO);
    let job = schedule.next(Duration::ZERO).unwrap();
    schedule.ended(job.id, Some(Err(Miss::DeniedMethod("POST".to_owned()))), Duration::ZERO);
    let Seen::Unknown(why) = schedule.read(&want) else { panic!("{:?}", schedule.read(&want)) };
    assert_eq!((why.reason, why.is_passing()), (Reason::ProbeDenied, false));
    assert!(why.message.contains("--probe-methods"), "{}", why.message);
}

#[test]
fn nothing_is_left_of_what_nobody_asks_for() {
    let mut schedule = ProbeSchedule::default();
    subscribe(&mut schedule, A, &[calm("shop", "a"), calm("shop", "b")], Duration::ZERO);
    let job = schedule.next(Duration::ZERO).unwrap();
    subscribe(&mut schedule, A, &[], Duration::ZERO);
    assert_eq!(schedule.len(), 1, "what is under way ends by itself");
    assert!(schedule.ended(job.id, Some(Ok(())), Duration::ZERO).is_empty());
    assert_eq!(schedule.len(), 0);
    assert!(schedule.wake_at().is_none() && schedule.namespaces.is_empty() && schedule.busy.is_empty());
    assert!(schedule.keys.is_empty() && schedule.topics.is_empty() && schedule.under_way == 0);
}

#[test]
fn a_fresh_look_is_taken_at_once_and_after_the_one_under_way() {
    let mut schedule = ProbeSchedule::default();
    let want = calm("shop", "db");
    subscribe(&mut schedule, A, std::slice::from_ref(&want), Duration::ZERO);
    pauses(&mut schedule, &[Ok(())]);
    schedule.refresh(&want, seconds(3));
    assert_eq!(schedule.wake_at(), Some(seconds(3)));
    let job = schedule.next(seconds(3)).unwrap();
    schedule.refresh(&want, seconds(4));
    schedule.ended(job.id, Some(Ok(())), seconds(5));
    assert_eq!(schedule.wake_at(), Some(seconds(5)), "what began before was asked for does not count");
}

#[test]
fn a_probe_that_could_not_be_carried_out_says_nothing_and_is_tried_again() {
    let mut schedule = ProbeSchedule::default();
    let want = calm("shop", "db");
    subscribe(&mut schedule, A, std::slice::from_ref(&want), Duration::ZERO);
    let job = schedule.next(Duration::ZERO).unwrap();
    assert!(schedule.ended(job.id, None, Duration::ZERO).is_empty());
    assert!(matches!(schedule.read(&want), Seen::Unknown(why) if why.is_passing()));
    assert!(schedule.wake_at().unwrap() > Duration::ZERO);
}
