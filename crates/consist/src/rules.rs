//! PodTransitionRule: whether pods may pass a check, judged over all pods that a rule object selects in its own namespace.
//!
//! `availablePolicy` bounds how many may be unavailable at a time; `labelCheck` asks for labels. What is not served here
//! (`webhook`, `expFunc`) is refused when the rule is admitted.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::pod_transition_rule as api;
use linchpin_words::keys::consist as keys;
use serde_json::Value;

use crate::{lifecycle::Prefix, pod::PodView};

/// The two checks of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Before anything happens to the pod.
    #[default]
    PreCheck,
    /// After the operation.
    PostCheck,
}

impl Stage {
    /// The document's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::PreCheck => "PreCheck",
            Self::PostCheck => "PostCheck",
        }
    }

    /// The labels of a pod that is in this check.
    fn prefix(self) -> Prefix {
        match self {
            Self::PreCheck => Prefix::PreCheck,
            Self::PostCheck => Prefix::PostCheck,
        }
    }
}

/// How many pods: a number, or a share of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number.
    Number(u32),
    /// A share in percent.
    Percent(u32),
}

impl Amount {
    /// Reads `3`, `"3"` or `"25%"`.
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(Self::Number(u32::try_from(number.as_u64()?).ok()?)),
            Value::String(text) => match text.strip_suffix('%') {
                Some(percent) => percent.parse().ok().map(Self::Percent),
                None => text.parse().ok().map(Self::Number),
            },
            _ => None,
        }
    }

    /// Of so many; `up` says how a fraction is rounded.
    fn of(self, all: usize, up: bool) -> usize {
        match self {
            Self::Number(number) => number as usize,
            Self::Percent(percent) => {
                let hundredths = all.saturating_mul(percent as usize);
                if up { hundredths.div_ceil(100) } else { hundredths / 100 }
            }
        }
    }
}

/// What a rule asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleDemand {
    /// `availablePolicy`.
    Available {
        /// `maxUnavailableValue`: rounded up.
        max_unavailable: Option<Amount>,
        /// `minAvailableValue`: rounded down.
        min_available: Option<Amount>,
    },
    /// `labelCheck.requires`: labels that the pod must have.
    Labels(Labelled),
}

/// A label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labelled {
    /// Labels with these values.
    pub labels: BTreeMap<String, String>,
    /// Tests on labels.
    pub tests: Vec<(String, LabelDemand)>,
}

/// A test on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelDemand {
    /// It is there, with one of these values.
    In(Vec<String>),
    /// It is not there, or with none of these values.
    NotIn(Vec<String>),
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
}

impl Labelled {
    /// The selector as it is written; none where an operator is not known.
    pub fn of(written: &api::LabelTest) -> Option<Self> {
        let test = |one: &api::LabelExpression| {
            let test = match one.operator.as_str() {
                "In" => LabelDemand::In(one.values.clone()),
                "NotIn" => LabelDemand::NotIn(one.values.clone()),
                "Exists" => LabelDemand::Exists,
                "DoesNotExist" => LabelDemand::DoesNotExist,
                _ => return None,
            };
            Some((one.key.clone(), test))
        };
        let tests = written.match_expressions.iter().map(test).collect::<Option<_>>()?;
        Some(Self { labels: written.match_labels.clone(), tests })
    }

    /// Whether all of it holds.
    pub fn admits(&self, labels: &BTreeMap<String, String>) -> bool {
        self.lacking(labels).is_none()
    }

    /// The first thing that does not hold, for people.
    fn lacking(&self, labels: &BTreeMap<String, String>) -> Option<String> {
        let missing = self.labels.iter().find(|(key, value)| labels.get(*key) != Some(value));
        if let Some((key, value)) = missing {
            return Some(format!("{key}={value}"));
        }
        self.tests.iter().find_map(|(key, test)| {
            let value = labels.get(key);
            let among = |values: &[String]| value.is_some_and(|value| values.contains(value));
            let (holds, word) = match test {
                LabelDemand::In(values) => (among(values), format!("{key} in ({})", values.join(","))),
                LabelDemand::NotIn(values) => (!among(values), format!("{key} notin ({})", values.join(","))),
                LabelDemand::Exists => (value.is_some(), key.clone()),
                LabelDemand::DoesNotExist => (value.is_none(), format!("!{key}")),
            };
            (!holds).then_some(word)
        })
    }
}

/// The rules that a rule object asks for, and which pods it is about; none where it selects none or cannot be understood.
pub fn read(spec: &api::PodTransitionRuleSpec) -> Option<(Labelled, Vec<Rule>)> {
    let selector = Labelled::of(&spec.selector)?;
    let mut rules = Vec::new();
    for written in &spec.rules {
        let filter = written.filter.as_ref().and_then(|filter| filter.label_selector.as_ref());
        let filter = match filter {
            Some(filter) => Labelled::of(filter)?,
            None => Labelled::default(),
        };
        let stage =
            if written.stage.as_deref() == Some("PostCheck") { Stage::PostCheck } else { Stage::PreCheck };
        let rule = |ask: RuleDemand| Rule {
            name: written.name.clone(),
            disabled: written.disabled,
            stage,
            conditions: written.conditions.clone(),
            filter: filter.clone(),
            ask,
        };
        if let Some(policy) = &written.available_policy {
            // A bound that cannot be understood is not none.
            let amount =
                |value: &Option<Value>| value.as_ref().map_or(Some(None), |one| Amount::read(one).map(Some));
            rules.push(rule(RuleDemand::Available {
                max_unavailable: amount(&policy.max_unavailable_value)?,
                min_available: amount(&policy.min_available_value)?,
            }));
        }
        if let Some(check) = &written.label_check {
            rules.push(rule(RuleDemand::Labels(Labelled::of(&check.requires)?)));
        }
    }
    Some((selector, rules))
}

/// One rule of a rule object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// Whether it is asked at all.
    pub disabled: bool,
    /// The check it belongs to.
    pub stage: Stage,
    /// The types of operations that it is about; all, where none is given.
    pub conditions: Vec<String>,
    /// Which of the selected pods it is asked about.
    pub filter: Labelled,
    /// What it asks for.
    pub ask: RuleDemand,
}

/// What a rule object says of one pod in a check: `detail.podtransitionrule.kusionstack.io/<rule>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The pod.
    pub pod: String,
    /// The check.
    pub stage: Stage,
    /// Rules that it passed.
    pub passed: Vec<String>,
    /// Rules that it did not pass, each with why.
    pub rejected: Vec<(String, String)>,
}

impl Detail {
    /// Whether it passed all of them.
    pub fn is_passed(&self) -> bool {
        self.rejected.is_empty()
    }

    /// The annotation's text.
    pub fn text(&self) -> String {
        let reject =
            |(rule, reason): &(String, String)| serde_json::json!({"ruleName": rule, "reason": reason});
        let rejected: Vec<Value> = self.rejected.iter().map(reject).collect();
        let detail = if rejected.is_empty() {
            serde_json::json!({"stage": self.stage.word(), "passed": true})
        } else {
            serde_json::json!({"stage": self.stage.word(), "passed": false, "rejectInfo": rejected})
        };
        detail.to_string()
    }
}

/// Judges the pods that a rule object selects. Rules that only look at the pod come before those that count, so that a pod
/// which is refused anyway takes nobody's place. Pods are taken in the order of their names.
pub fn judge(rules: &[Rule], pods: &[&PodView]) -> Vec<Detail> {
    let mut details = Vec::new();
    for stage in [Stage::PreCheck, Stage::PostCheck] {
        let mut pods: Vec<&PodView> = pods.to_vec();
        pods.sort_by(|one, other| one.name.cmp(&other.name));
        let asked: Vec<&PodView> = pods.iter().copied().filter(|pod| is_in(pod, stage)).collect();
        let mut found: Vec<Detail> = asked
            .iter()
            .map(|pod| Detail { pod: pod.name.clone(), stage, passed: Vec::new(), rejected: Vec::new() })
            .collect();
        let mut rules: Vec<&Rule> =
            rules.iter().filter(|rule| !rule.disabled && rule.stage == stage).collect();
        rules.sort_by_key(|rule| matches!(rule.ask, RuleDemand::Available { .. }));
        for rule in rules {
            apply(rule, &pods, &asked, &mut found);
        }
        details.extend(found);
    }
    details
}

fn is_in(pod: &PodView, stage: Stage) -> bool {
    !pod.is_terminating() && pod.labels.keys().any(|key| stage.prefix().has(key))
}

/// Whether a rule is asked about a pod. After an operation its type is said by another label than before.
fn concerns(rule: &Rule, pod: &PodView) -> bool {
    let typed = match rule.stage {
        Stage::PreCheck => Prefix::OperationType,
        Stage::PostCheck => Prefix::DoneType,
    };
    let of_type = |wanted: &String| pod.labels.iter().any(|(key, value)| typed.has(key) && value == wanted);
    let meant = rule.conditions.is_empty() || rule.conditions.iter().any(of_type);
    meant && rule.filter.admits(&pod.labels) && !skipped(pod).contains(&rule.name)
}

/// The rules that are not asked about a pod.
fn skipped(pod: &PodView) -> BTreeSet<String> {
    let read = |text: &String| serde_json::from_str::<Value>(text).ok();
    let skip = pod.annotations.get(keys::SKIP_RULES).and_then(read);
    let names = skip.as_ref().and_then(|skip| skip.get("skipRules")?.as_array());
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn apply(rule: &Rule, pods: &[&PodView], asked: &[&PodView], found: &mut [Detail]) {
    match &rule.ask {
        RuleDemand::Labels(required) => {
            for (pod, detail) in asked.iter().zip(found) {
                match required.lacking(&pod.labels).filter(|_| concerns(rule, pod)) {
                    None => detail.passed.push(rule.name.clone()),
                    Some(lacking) => {
                        detail.rejected.push((rule.name.clone(), format!("label {lacking} is required")));
                    }
                }
            }
        }
        RuleDemand::Available { max_unavailable, min_available } => {
            // Whatever happens to them, and whether the rule is asked about them: they are, or are not, available.
            let counted: Vec<&&PodView> = pods.iter().filter(|pod| rule.filter.admits(&pod.labels)).collect();
            let all = counted.len();
            let by_max = max_unavailable.map(|amount| amount.of(all, true));
            let by_min = min_available.map(|amount| all.saturating_sub(amount.of(all, false)));
            let quota = by_max.into_iter().chain(by_min).min().unwrap_or(all);
            let mut unavailable = counted.iter().filter(|pod| takes_a_place(pod)).count();
            for (pod, detail) in asked.iter().zip(found) {
                let free = !concerns(rule, pod) || takes_a_place(pod);
                if free || (detail.is_passed() && unavailable < quota) {
                    unavailable += usize::from(!free);
                    detail.passed.push(rule.name.clone());
                } else if detail.is_passed() {
                    let reason = format!("{unavailable} of {all} pods are unavailable, {quota} may be");
                    detail.rejected.push((rule.name.clone(), reason));
                }
            }
        }
    }
}

/// Whether a pod is unavailable, or was allowed to be: it keeps its place until it is service-available again.
fn takes_a_place(pod: &PodView) -> bool {
    let passed = pod.labels.keys().any(|key| Prefix::PreChecked.has(key));
    passed || !pod.labels.contains_key(keys::SERVICE_AVAILABLE)
}
