//! Commands in real containers on a real node: they run once, whatever dies meanwhile. Skipped, with the reason, where
//! there can be no node and none is promised.

use crate::{eventually, operator::Operator, seconds};
use linchpin_local::{Cluster, ClusterOptions, Component, check_node_support, is_node_promised};
use linchpin_testkit::{Api, Dice, OPERATOR, Scenario, audit::Audit, entry, grant_operator};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::{io::Write, sync::OnceLock, thread, time::Duration};

/// The cluster with a real node, if there can be one. Each test has a namespace and an operator of its own in it.
fn with_node() -> Option<&'static (Cluster, Api)> {
    static CLUSTER: OnceLock<Option<(Cluster, Api)>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| {
        if let Err(reason) = check_node_support() {
            assert!(!is_node_promised(), "a node is promised here, and there can be none: {reason}");
            // Not through the print macros: a skipped test must be seen also when it passes.
            let _ = writeln!(std::io::stderr(), "SKIPPED: a test of the real node: {reason}");
            return None;
        }
        let cluster = Cluster::start(&ClusterOptions { node: true, ..ClusterOptions::default() })
            .expect("a local Kubernetes");
        let api = Api::connect(&cluster.kubeconfig());
        grant_operator(&api);
        Some((cluster, api))
    });
    cluster.as_ref()
}

/// A namespace with a Pod `web` in it that keeps what is appended to `/shared/log`.
struct Stage {
    cluster: &'static Cluster,
    scenario: Scenario,
    operator: Operator,
}

impl Stage {
    fn begin(name: &str) -> Option<Self> {
        let (cluster, api) = with_node()?;
        let scenario = Scenario::begin(api, Audit::from_now(&cluster.audit_log()), name);
        scenario.allow("exec", "[{apiGroups: [''], resources: [pods/exec], verbs: [create, get]}]");
        let operator = Self::operator(cluster, name);
        Some(Self { cluster, scenario, operator })
    }

    fn operator(cluster: &Cluster, namespace: &str) -> Operator {
        let only = format!("--watch-namespaces={namespace}");
        let kubeconfig = cluster.kubeconfig_for(OPERATOR, None).unwrap();
        Operator::start(namespace, &kubeconfig, &["--leader-elect=false", &only])
    }

    fn replace_operator(&mut self) {
        self.operator.signal(Signal::SIGKILL);
        self.operator = Self::operator(self.cluster, &self.scenario.namespace);
    }

    fn pod(&self) {
        self.scenario.apply(
            "
            apiVersion: v1
            kind: Pod
            metadata: {name: web}
            spec:
              serviceAccountName: actor
              dnsPolicy: Default
              automountServiceAccountToken: false
              terminationGracePeriodSeconds: 1
              volumes: [{name: shared, emptyDir: {}}]
              containers:
              - name: main
                image: localhost/workload:1
                imagePullPolicy: Never
                args: [serve, '8080']
                readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
                volumeMounts: [{name: shared, mountPath: /shared}]
            ",
        );
    }

    fn pod_is_ready(&self) {
        let ready = |object: &Value| object["status"]["containerStatuses"][0]["ready"] == true;
        self.scenario.until("is ready", "Pod", "web", ready);
    }

    /// A ResourceDependency that runs `append FILE text` once its gate is there, and then makes a ConfigMap.
    fn appends(&self, name: &str, delivery: &str) {
        self.scenario.resource_dependency(
            name,
            &format!(
                "
                dependencies: [{{name: gate, resource: configmap/{name}-gate}}, {{resource: pod/web, state: Ready}}]
                actions:
                - {{name: run, priority: 1, type: exec, exec: {{target: {{kind: Pod, name: web}}, container: main, delivery: {delivery},
                    command: [/workload, append, /shared/{name}, '{{{{ .Dependencies.gate.Name }}}}']}}}}
                - {{name: after, priority: 2, type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}-after}}}}}}
                "
            ),
        );
    }

    /// How often the command really ran: the lines in its file, none if there is no file. What kubectl itself cannot do is
    /// no answer.
    fn ran(&self, name: &str) -> usize {
        let file = format!("/shared/{name}");
        let command =
            ["exec", "-n", &self.scenario.namespace, "web", "-c", "main", "--", "/workload", "cat", &file];
        let mut count = None;
        eventually("the file is read", seconds(20), || {
            let output = self.cluster.kubectl().args(command).output().unwrap();
            let lines =
                String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.is_empty()).count();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let no_file = said.contains("command terminated with exit code");
            if !no_file && lines == 0 {
                eprintln!("kubectl exec: {} {said}", output.status);
            }
            count = (no_file || output.status.success() && lines > 0).then_some(lines);
            count.is_some()
        });
        count.unwrap_or_default()
    }

    /// Waits until the command's end is known, or known not to be knowable.
    fn ended(&self, name: &str) -> Value {
        self.scenario.until("has ended", "ResourceDependency", name, |object| {
            let actions = object["status"]["actions"].as_array();
            let run = actions.and_then(|all| all.iter().find(|action| action["name"] == "run"));
            run.is_some_and(|run| {
                ["Completed", "Failed", "Unknown"].iter().any(|state| run["state"] == *state)
            })
        })
    }
}

#[test]
fn a_command_waits_for_its_pod_runs_once_and_again_only_when_asked() {
    let Some(stage) = Stage::begin("exec") else { return };
    let scenario = &stage.scenario;
    scenario.resource_dependency(
        "early",
        "
        actions:
        - {name: run, type: exec, exec: {target: {kind: Pod, name: web, namespace: exec}, command: [/workload, append, /shared/early, once], timeout: 1m}}
        ",
    );
    scenario.blocked("early", "NotFound");
    stage.pod();
    stage.pod_is_ready();
    scenario.completed("early");
    assert_eq!(stage.ran("early"), 1);
    scenario.resource_dependency(
        "bad",
        "
        actions:
        - {name: run, priority: 1, failFast: true, type: exec, exec: {target: {kind: Pod, name: web}, command: [/workload, exit, '42', hunter2]}}
        - {name: next, priority: 2, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: next}}}
        ",
    );
    let failed = scenario.phase("ResourceDependency", "bad", "Failed");
    let message = entry(&failed, "actions", "run")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("42") && !message.contains("hunter2"), "{message}");
    assert!(!scenario.has("next"));

    stage.appends("hand", "AtMostOnce");
    scenario.config_map("hand-gate", "");
    scenario.completed("hand");
    // Neither a fresh look nor another version of the rest is a reason to run it again.
    scenario.annotate("ResourceDependency", "hand", "linchpin.dev/requested-at", "1");
    scenario.merge("ResourceDependency", "hand", &serde_json::json!({"spec": {"globalTimeout": "1h"}}));
    scenario.completed("hand");
    thread::sleep(seconds(1));
    assert_eq!(stage.ran("hand"), 1);
    scenario.annotate("ResourceDependency", "hand", "linchpin.dev/rerun", "run@1");
    eventually("it ran again", seconds(20), || stage.ran("hand") == 2);
    thread::sleep(seconds(1));
    assert_eq!(stage.ran("hand"), 2);
    assert_eq!(scenario.audit.overreach(), []);
}

#[test]
fn killed_at_random_points_no_command_runs_twice_and_what_cannot_be_known_is_said() {
    let Some(mut stage) = Stage::begin("exec-killed") else { return };
    stage.pod();
    stage.pod_is_ready();
    let mut completed = 0;
    for seed in 0..12_u64 {
        let mut dice = Dice::new(seed + 100);
        let name = format!("rd-{seed}");
        stage.appends(&name, "AtMostOnce");
        stage.scenario.blocked(&name, "NotFound");
        stage.scenario.config_map(&format!("{name}-gate"), "");
        // Later and later, so that on any machine some are killed before, some while and some after it runs.
        let moment = dice.below(60) + 60 * usize::try_from(seed).unwrap();
        thread::sleep(Duration::from_millis(u64::try_from(moment).unwrap()));
        stage.replace_operator();
        let ended = stage.ended(&name);
        let word = entry(&ended, "actions", "run")["state"].as_str().unwrap().to_owned();
        let ran = stage.ran(&name);
        match word.as_str() {
            "Completed" => {
                assert_eq!(ran, 1, "seed {seed}");
                stage.scenario.completed(&name);
                stage.scenario.appears(&format!("{name}-after"));
                completed += 1;
            }
            "Unknown" => {
                assert!(ran <= 1, "seed {seed}: it ran {ran} times");
                assert_eq!(entry(&ended, "actions", "run")["reason"], "OutcomeUnknown");
            }
            other => panic!("seed {seed}: {other}: {:#}", ended["status"]),
        }
    }
    assert!(completed >= 1, "none of 12 ended well");
}

/// No chance decides here: the operator is killed when the API server has begun to carry the command's output.
#[test]
fn killed_while_a_command_runs_it_says_that_the_end_is_not_known_and_does_not_run_it_again() {
    let Some(mut stage) = Stage::begin("exec-midway") else { return };
    stage.pod();
    stage.pod_is_ready();
    stage.scenario.resource_dependency(
        "rd",
        "
        actions:
        - {name: run, priority: 1, failFast: true, type: exec, exec: {target: {kind: Pod, name: web}, container: main, command: [/workload, sleep, 20s]}}
        - {name: after, priority: 2, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: after}}}
        ",
    );
    let runs = |stage: &Stage| {
        let mut events = stage.scenario.audit.events();
        events.retain(|event| {
            event.is_by_operator()
                && event.namespace == stage.scenario.namespace
                && event.subresource == "exec"
                && event.stage == "ResponseStarted"
        });
        events.len()
    };
    eventually("the command runs", seconds(60), || runs(&stage) == 1);
    stage.replace_operator();
    let ended = stage.ended("rd");
    assert_eq!(entry(&ended, "actions", "run")["state"], "Unknown", "{:#}", ended["status"]);
    assert_eq!(entry(&ended, "actions", "run")["reason"], "OutcomeUnknown");
    stage.scenario.passes("meanwhile");
    assert_eq!(runs(&stage), 1);
    assert!(!stage.scenario.has("after"));
}

#[test]
fn at_least_once_is_run_until_its_end_is_known_also_through_an_outage() {
    let Some(mut stage) = Stage::begin("exec-again") else { return };
    stage.pod();
    stage.pod_is_ready();
    for (seed, lost) in [None, None, None, Some(Component::ApiServer)].into_iter().enumerate() {
        let mut dice = Dice::new(u64::try_from(seed).unwrap());
        let name = format!("rd-{seed}");
        stage.appends(&name, "AtLeastOnce");
        stage.scenario.blocked(&name, "NotFound");
        stage.scenario.config_map(&format!("{name}-gate"), "");
        thread::sleep(Duration::from_millis(u64::try_from(dice.below(120)).unwrap()));
        match lost {
            None => stage.replace_operator(),
            Some(component) => stage.cluster.restart(component).unwrap(),
        }
        stage.scenario.completed(&name);
        assert!(stage.ran(&name) >= 1, "seed {seed}");
        stage.scenario.appears(&format!("{name}-after"));
    }
}
