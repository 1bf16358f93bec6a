//! Rules (`PodTransitionRule`): what they say of the pods of their namespace, and where that is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use linchpin_api::{
    PodTransitionRuleStatus,
    pod_transition_rule::{RejectInfo, TransitionDetail},
};
use linchpin_cluster::own::{self, MarkPatch, OwnTarget};
use linchpin_consist::{
    PodView,
    rules::{Detail, Stage, judge},
};
use linchpin_words::{Timestamp, keys::consist as keys, text};
use serde_json::{Value, json};

use super::{Desk, DeskMessage, Wake};
use crate::consist::{
    acts::DEADLINE,
    cluster_view::{ClusterView, Name, PODS, RuleObject},
};

/// How often the status of a rule is written at most.
const PROGRESS: Duration = Duration::from_secs(1);
/// The most pods that a status names.
const LISTED: usize = 200;
/// The most bytes of a message.
const MESSAGE: usize = 1024;

/// What the rules of each namespace say.
#[derive(Default)]
pub(super) struct RuleBook {
    /// By namespace and name of the rule object.
    pages: BTreeMap<Name, Page>,
}

#[derive(Default)]
struct Page {
    /// What is said of pods in a check, by the pod's name.
    details: BTreeMap<String, Detail>,
    writing: bool,
    write_from: Option<Timestamp>,
    /// The version that the last write relied on.
    relied_on: Option<String>,
    /// The annotations that were sent, by pod, at the pod's version.
    sent: BTreeMap<String, u64>,
}

impl RuleBook {
    /// Whether a namespace has rules.
    pub(super) fn has(&self, namespace: &str) -> bool {
        self.of(namespace).next().is_some()
    }

    fn of(&self, namespace: &str) -> impl Iterator<Item = (&Name, &Page)> {
        let from = (namespace.to_owned(), String::new());
        self.pages.range(from..).take_while(move |((place, _), _)| place == namespace)
    }

    /// Whether a pod passes its two checks: all rules that are about it let it.
    pub(super) fn verdict(&self, cluster_view: &ClusterView, namespace: &str, pod: &PodView) -> (bool, bool) {
        let from = (namespace.to_owned(), String::new());
        let here = cluster_view.rules.range(from..).take_while(|((place, _), _)| place == namespace);
        let (mut pre, mut post) = (true, true);
        for (name, rule) in here.filter(|(_, rule)| !rule.deleting) {
            let Some((selector, rules)) = &rule.asks else {
                // It cannot be understood: nobody knows whom it is about.
                (pre, post) = (false, false);
                continue;
            };
            if !selector.admits(&pod.labels) {
                continue;
            }
            let asks = |stage: Stage| rules.iter().any(|rule| rule.stage == stage && !rule.disabled);
            let detail = self.pages.get(name).and_then(|page| page.details.get(&pod.name));
            let passes = |stage: Stage| {
                !asks(stage) || detail.is_some_and(|detail| detail.stage == stage && detail.is_passed())
            };
            pre &= passes(Stage::PreCheck);
            post &= passes(Stage::PostCheck);
        }
        (pre, post)
    }

    /// The status of a rule was written, or not: then it is tried again, however long nothing else changes.
    pub(super) fn written(&mut self, name: &Name, succeeded: bool) {
        if let Some(page) = self.pages.get_mut(name) {
            page.writing = false;
            if !succeeded {
                page.relied_on = None;
            }
        }
    }
}

impl Desk {
    /// Judges the pods of a namespace anew.
    pub(super) fn rules_turn(&mut self, namespace: &str, time: Timestamp) {
        let shared = self.parts.shared.clone();
        let cluster_view = shared.look();
        if cluster_view.lacks().is_some() || !self.is_own_engine(&cluster_view) {
            return;
        }
        let known: BTreeSet<Name> = self.rules.of(namespace).map(|(name, _)| name.clone()).collect();
        for gone in known.iter().filter(|name| !cluster_view.rules.contains_key(*name)) {
            if let Some(page) = self.rules.pages.remove(gone) {
                let pods = page.details.into_keys().map(|pod| (namespace.to_owned(), pod));
                self.dirty_pods.extend(pods);
            }
        }
        let pods: Vec<Arc<PodView>> = cluster_view
            .of_namespace(PODS, namespace)
            .filter(|pod| pod.is_controlled())
            .map(|pod| {
                let name = (namespace.to_owned(), pod.name.clone());
                self.pods.get(&name).map_or_else(|| Arc::clone(pod), |case| case.ahead(pod))
            })
            .collect();
        let from = (namespace.to_owned(), String::new());
        let here = cluster_view.rules.range(from..).take_while(|((place, _), _)| place == namespace);
        let here: Vec<(Name, Arc<RuleObject>)> =
            here.map(|(name, rule)| (name.clone(), Arc::clone(rule))).collect();
        drop(cluster_view);
        for pod in &pods {
            self.forget_details(namespace, pod, &here);
        }
        for (name, rule) in here {
            self.judge_rule(&name, &rule, &pods, time);
        }
    }

    fn judge_rule(&mut self, name: &Name, rule: &RuleObject, pods: &[Arc<PodView>], time: Timestamp) {
        let Some((selector, rules)) = &rule.asks else { return };
        let selected: Vec<&PodView> =
            pods.iter().map(|pod| &**pod).filter(|pod| selector.admits(&pod.labels)).collect();
        let details = judge(rules, &selected);
        let targets: Vec<String> = selected.iter().map(|pod| pod.name.clone()).take(LISTED).collect();
        let details: BTreeMap<String, Detail> =
            details.into_iter().map(|detail| (detail.pod.clone(), detail)).collect();
        let page = self.rules.pages.entry(name.clone()).or_default();
        let names: BTreeSet<&String> = page.details.keys().chain(details.keys()).collect();
        for pod in names.into_iter().filter(|pod| page.details.get(*pod) != details.get(*pod)) {
            self.dirty_pods.insert((name.0.clone(), pod.clone()));
        }
        page.details = details;
        let key = format!("{}/{}", keys::RULE_DETAIL_PREFIX, name.1);
        let mut writes = Vec::new();
        for detail in page.details.values() {
            let Some(pod) = pods.iter().find(|pod| pod.name == detail.pod) else { continue };
            let text = detail.text();
            if pod.annotations.get(&key) != Some(&text) && page.sent.get(&pod.uid) != Some(&pod.version) {
                page.sent.insert(pod.uid.clone(), pod.version);
                writes.push((Arc::clone(pod), Value::from(text)));
            }
        }
        let there: BTreeSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
        page.sent.retain(|uid, _| there.contains(uid.as_str()));
        for (pod, text) in writes {
            self.annotate(&name.0, &pod, &key, &text);
        }
        self.write_rule(name, rule, targets, time);
    }

    /// Takes off a pod what a rule said of it that is gone, or that is not asked about it any more.
    fn forget_details(&mut self, namespace: &str, pod: &Arc<PodView>, rules: &[(Name, Arc<RuleObject>)]) {
        for key in pod.annotations.keys() {
            let rest = key.strip_prefix(keys::RULE_DETAIL_PREFIX).and_then(|rest| rest.strip_prefix('/'));
            let Some(rule) = rest else { continue };
            let about = rules.iter().any(|((_, name), object)| {
                let selects = object.asks.as_ref().is_some_and(|(selector, _)| selector.admits(&pod.labels));
                name == rule && selects && !object.deleting
            });
            let checked = pod.labels.keys().any(|label| {
                linchpin_consist::lifecycle::Prefix::ALL.into_iter().any(|prefix| prefix.has(label))
            });
            if !(about && checked) {
                self.annotate(namespace, pod, key, &Value::Null);
            }
        }
    }

    /// Writes what a rule says of a pod, if the pod is as it was looked at.
    fn annotate(&self, namespace: &str, pod: &Arc<PodView>, key: &str, text: &Value) {
        let body = json!({"metadata": {"uid": pod.uid, "annotations": {key: text}}});
        let (write_context, requests) = (self.write_context.clone(), Arc::clone(&self.requests));
        let (kind, namespace, pod) =
            (self.parts.kinds.employees[PODS].clone(), namespace.to_owned(), Arc::clone(pod));
        tokio::spawn(async move {
            let _turn = requests.acquire().await.ok();
            if write_context.fence.check().is_ok() {
                let place = OwnTarget { kind: &kind.own, namespace: Some(&namespace), name: &pod.name };
                let written =
                    write_context.own_requests.change(place, None, MarkPatch::Merge, &body, DEADLINE).await;
                if let Err(error) = written {
                    tracing::debug!(namespace, pod = pod.name, "cannot write what a rule says: {error}");
                }
            }
        });
    }

    fn write_rule(&mut self, name: &Name, rule: &RuleObject, targets: Vec<String>, time: Timestamp) {
        let Some(page) = self.rules.pages.get_mut(name) else { return };
        let details: Vec<TransitionDetail> = page.details.values().take(LISTED).map(shown).collect();
        let stored = &rule.status;
        let same = stored.targets == targets
            && stored.details == details
            && stored.observed_generation == rule.generation;
        if same || page.writing || page.relied_on.as_ref() == Some(&rule.version) || rule.deleting {
            return;
        }
        if let Some(from) = page.write_from.filter(|from| *from > time) {
            self.timers.set(Wake::Rules(name.0.clone()), Some(from));
            return;
        }
        let status = PodTransitionRuleStatus {
            observed_generation: rule.generation,
            update_time: Some(Timestamp::from_second(time.as_second())),
            targets,
            details,
        };
        page.writing = true;
        page.write_from = Some(time.plus_duration(PROGRESS));
        page.relied_on = Some(rule.version.clone());
        let (write_context, back, requests) =
            (self.write_context.clone(), self.back.clone(), Arc::clone(&self.requests));
        let (kind, name, version) = (self.parts.kinds.rules.clone(), name.clone(), rule.version.clone());
        tokio::spawn(async move {
            let _turn = requests.acquire().await.ok();
            let mut succeeded = false;
            if write_context.fence.check().is_ok() {
                let place = (Some(name.0.clone()), name.1.clone());
                let client = write_context.own_requests.client();
                let written = own::write_status(client, &kind.own, &place, &version, json!(status)).await;
                succeeded = written.is_ok();
                if let Err(error) = written {
                    tracing::debug!(namespace = name.0, rule = name.1, "cannot write its status: {error}");
                }
            }
            let _ = back.send(DeskMessage::Rule { name, succeeded });
        });
    }
}

fn shown(detail: &Detail) -> TransitionDetail {
    let reject = |(rule, reason): &(String, String)| RejectInfo {
        rule_name: rule.clone(),
        reason: text::line_of(reason, MESSAGE),
    };
    TransitionDetail {
        name: detail.pod.clone(),
        stage: detail.stage.word().to_owned(),
        passed: detail.is_passed(),
        passed_rules: detail.passed.clone(),
        reject_info: detail.rejected.iter().map(reject).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_of_a_rule_that_was_not_written_is_tried_again_at_the_same_version() {
        let name = ("shop".to_owned(), "slowly".to_owned());
        for (succeeded, relies_on) in [(true, Some("7".to_owned())), (false, None)] {
            let page = Page { writing: true, relied_on: Some("7".to_owned()), ..Page::default() };
            let mut book = RuleBook { pages: BTreeMap::from([(name.clone(), page)]) };
            book.written(&name, succeeded);
            assert!(!book.pages[&name].writing);
            assert_eq!(book.pages[&name].relied_on, relies_on, "{succeeded}");
        }
    }
}
