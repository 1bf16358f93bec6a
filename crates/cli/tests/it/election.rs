//! Several operators on one Lease.

use crate::{
    boot_dependency::free_address, eventually, history::History, operator::Operator, seconds, shared,
    with_definitions_in,
};
use linchpin_local::{ClusterOptions, Component};
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// Two operators of which the first leads.
fn pair(lease: &str, flags: &[&str]) -> (Operator, Operator) {
    let name = format!("--lease-name={lease}");
    let flags: Vec<&str> = flags.iter().copied().chain([name.as_str()]).collect();
    let kubeconfig = shared().kubeconfig();
    let first = Operator::start("first", &kubeconfig, &flags);
    eventually("the first leads and is ready", seconds(20), || first.leads() && first.is_ready());
    let second = Operator::start("second", &kubeconfig, &flags);
    eventually("the second stands by and is ready", seconds(20), || second.is_ready());
    (first, second)
}

#[test]
fn exactly_one_leads_and_a_terminated_leader_hands_over_at_once() {
    let (mut first, second) = pair("handover", &[]);
    let history = watched("handover");
    let (ready, text) = second.readiness();
    assert!(ready && text.contains("on standby, first_"), "{text}");
    for _ in 0..20 {
        assert!(first.leads() && !second.leads());
    }

    let asked = Instant::now();
    first.signal(Signal::SIGTERM);
    eventually("the second leads", seconds(2), || second.leads());
    println!("handed over after {:?}", asked.elapsed());
    assert_eq!(first.ended_within(seconds(5)).code(), Some(0));
    assert!(first.log().contains("lease released"), "{}", first.log());
    assert_eq!(second.term(), Some(1));
    assert!(history.entries().iter().any(|entry| entry.holder.is_none()), "the lease was released");
    history.check(seconds(15));
}

#[test]
fn a_killed_leader_is_replaced_within_twenty_seconds() {
    let (first, second) = pair("killed", &[]);
    let history = watched("killed");
    first.signal(Signal::SIGKILL);
    let took = eventually("the second leads", seconds(20), || second.leads());
    println!("replaced after {took:?}");
    history.check(seconds(15));
}

#[test]
fn a_stopped_leader_finds_its_fence_closed_when_it_wakes_up() {
    let timing = ["--lease-duration=4s", "--renew-deadline=2500ms", "--retry-period=500ms"];
    let (first, second) = pair("stopped", &timing);
    let history = watched("stopped");
    stop_and_wake(&first, &second, seconds(6));
    stop_and_wake(&second, &first, seconds(6));
    history.check(seconds(4));
    let terms: Vec<_> = history.entries().iter().map(|entry| entry.transitions).collect();
    assert_eq!(terms.last(), Some(&2), "{terms:?}");
    let last = history.entries().pop().unwrap().holder.unwrap();
    assert!(first.is(&last), "{last} holds the lease");
}

#[test]
fn a_leader_stopped_for_a_minute_never_leads_beside_its_successor() {
    let (first, second) = pair("minute", &[]);
    let history = watched("minute");
    stop_and_wake(&first, &second, seconds(60));
    history.check(seconds(15));
    let last = history.entries().pop().unwrap().holder.unwrap();
    assert!(second.is(&last), "{last} holds the lease");
}

/// Stops the leader for so long, and watches both after it woke up: only one of them may write at any time.
fn stop_and_wake(leader: &Operator, other: &Operator, long: Duration) {
    let term = leader.term().expect("it leads");
    leader.signal(Signal::SIGSTOP);
    let stopped = Instant::now();
    eventually("the other leads", seconds(25), || other.leads());
    std::thread::sleep(long.saturating_sub(stopped.elapsed()));
    leader.signal(Signal::SIGCONT);
    let awake = Instant::now();
    let mut looks = 0;
    while awake.elapsed() < seconds(3) {
        let before = leader.term();
        assert_ne!(before, Some(term), "woke up and believes that its old term goes on");
        let meanwhile = other.term();
        if before.is_some() && before == leader.term() {
            assert_eq!(meanwhile, None, "two may write at once");
        }
        looks += 1;
    }
    assert!(looks > 10, "looked only {looks} times");
    assert!(other.leads() && !leader.leads(), "the new leader stays");
    eventually("the old one stands by", seconds(10), || leader.is_ready());
}

/// What happens to a Lease from now on.
fn watched(lease: &str) -> History {
    let history = History::of(&shared().kubeconfig(), lease);
    eventually("the lease is watched", seconds(10), || !history.entries().is_empty());
    history
}

#[test]
fn without_leader_election_an_operator_acts_alone() {
    let operator = Operator::start("alone", &shared().kubeconfig(), &["--leader-elect=false"]);
    eventually("it leads and is ready", seconds(20), || operator.is_ready() && operator.leads());
    assert_eq!(operator.term(), Some(0));
}

#[test]
fn health_and_metrics_say_what_is_running() {
    let operator = Operator::start("pages", &shared().kubeconfig(), &["--lease-name=pages"]);
    eventually("it leads and is ready", seconds(20), || operator.is_ready());
    assert!(operator.is_live());
    assert_eq!(operator.page("/nowhere").0, 404);
    let metrics = operator.metrics();
    for name in
        ["linchpin_build_info{", "linchpin_leader 1", "linchpin_api_reachable 1", "process_cpu_seconds_total"]
    {
        assert!(metrics.contains(name), "{name} is missing in\n{metrics}");
    }
    let memory =
        metrics.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes ")).unwrap();
    let memory = Duration::from_secs(memory.parse().unwrap()).as_secs() / 1_000_000;
    println!("{memory} MB resident");
}

/// Nothing of an installation stays but the definitions: whoever takes away the ServiceAccount takes these with it.
#[test]
fn lease_and_certificate_go_with_the_service_account_that_made_them() {
    let cluster = with_definitions_in(&ClusterOptions::default().without(Component::Scheduler));
    let kubectl = |line: &str| {
        let output = cluster.kubectl().args(line.split(' ')).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    kubectl("create namespace home");
    kubectl("create serviceaccount own -n home");
    kubectl("create clusterrolebinding own --clusterrole=cluster-admin --serviceaccount=home:own");
    let token = kubectl("create token own -n home");
    let kubeconfig = cluster.kubeconfig().with_file_name("own");
    std::fs::copy(cluster.kubeconfig(), &kubeconfig).unwrap();
    let config = format!("--kubeconfig={} config", kubeconfig.display());
    let name = kubectl(&format!("{config} view -o jsonpath={{.clusters[0].name}}"));
    kubectl(&format!("{config} set-credentials own --token={}", token.trim()));
    kubectl(&format!("{config} set-context own --cluster={name} --user=own --namespace=home"));
    kubectl(&format!("{config} use-context own"));
    let bind = format!("--webhook-bind-address={}", free_address());
    let flags =
        ["--lease-namespace=home", bind.as_str(), "--webhook-service=home/webhook", "--wait-image=w:1"];
    let operator = Operator::start("own", &kubeconfig, &flags);
    for object in ["lease/linchpin", "secret/linchpin-webhook-tls"] {
        let owner = format!(
            "get {object} -n home --ignore-not-found -o jsonpath={{.metadata.ownerReferences[*].name}}"
        );
        eventually(&format!("{object} is owned"), seconds(30), || kubectl(&owner) == "own");
    }
    drop(operator);
    kubectl("delete serviceaccount own -n home");
    eventually("both are gone", seconds(60), || {
        !kubectl("get lease,secret -n home -o name").contains("linchpin")
    });
}
