//! A small world in which one object of ours lives: answers its questions, carries out its effects, tells the time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use linchpin_doors::{
    CLUSTER_DOMAIN, Claim, CompileInput, Compiled, Door, Hold, HoldInput, StatusInput, StatusOf,
    VisibleCauses, journal,
};
use linchpin_engine::{
    contract::{
        Done, Effect, EffectTarget, Existing, Failure, Observed, Outcome, Question, Scope, Seen, Served,
        Stamp, Verb, Want, Why, World,
    },
    journal::Memory,
    plan::SpecError,
    step::{Goal, StepDecision, step},
};
use linchpin_words::{Gvk, KindWord, Reason, Timestamp, reference::built_in};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::things::{is_kind, key, matches, project, shown};

/// A custom kind that the stage serves.
#[derive(Clone)]
pub(crate) struct Custom {
    pub(crate) kind: Gvk,
    pub(crate) plural: &'static str,
    pub(crate) namespaced: bool,
}

pub(crate) struct Stage<D: Door> {
    pub(crate) object: D::Object,
    pub(crate) memory: Memory,
    pub(crate) now: Timestamp,
    pub(crate) customs: Vec<Custom>,
    pub(crate) version: Value,
    /// Rights that are not there, as text.
    pub(crate) denied: Vec<String>,
    /// Names of objects that may not be looked at.
    pub(crate) hidden: Vec<String>,
    /// Names of objects of which nothing is seen yet.
    pub(crate) unsynced: Vec<String>,
    /// Whether the connection is down: what was seen is known, and nothing new is.
    pub(crate) cut_off: bool,
    /// Fields of what is written that others hold.
    pub(crate) held_by_others: Vec<String>,
    /// What was done, one line each.
    pub(crate) log: Vec<String>,
    /// The bodies of what was written, in the same order.
    pub(crate) bodies: Vec<Value>,
    pub(crate) decision: Option<StepDecision>,
    pub(crate) wrong: Option<SpecError>,
    objects: BTreeMap<(String, String, String, String), Value>,
    version_counter: u64,
    compiled: Option<Compiled>,
    /// Everything that was ever asked: a world does not forget.
    wants: BTreeSet<Want>,
}

/// Reads a manifest; objects get a uid and a generation.
pub(crate) fn read<T: DeserializeOwned>(manifest: &str) -> T {
    let mut value: Value = serde_saphyr::from_str(manifest).expect("YAML");
    value["metadata"]["uid"] = json!("uid-1");
    value["metadata"]["generation"] = json!(1);
    if value["metadata"].get("namespace").is_none() {
        value["metadata"]["namespace"] = json!("own");
    }
    serde_json::from_value(value).expect("an object")
}

/// Compiles with nothing known.
pub(crate) fn compile<D: Door>(object: &D::Object) -> Result<Compiled, SpecError> {
    let (facts, kinds) = (World::new(), BTreeMap::new());
    D::compile(
        object,
        &CompileInput {
            registry: &linchpin_doors::registry(),
            facts: &facts,
            kinds: &kinds,
            default_service_account: "default",
            cluster_domain: CLUSTER_DOMAIN,
            exempt: &[],
            makers: &[],
        },
    )
}

impl<D: Door> Stage<D> {
    pub(crate) fn new(manifest: &str) -> Self
    where
        D::Object: DeserializeOwned,
    {
        let now = Timestamp::from_second(1_000);
        Self {
            object: read(manifest),
            memory: Memory::fresh("uid-1", 1, now),
            now,
            customs: Vec::new(),
            version: json!({"major": "1", "minor": "34", "gitVersion": "v1.34.2"}),
            denied: Vec::new(),
            hidden: Vec::new(),
            unsynced: Vec::new(),
            cut_off: false,
            held_by_others: Vec::new(),
            log: Vec::new(),
            bodies: Vec::new(),
            decision: None,
            wrong: None,
            objects: BTreeMap::new(),
            version_counter: 100,
            compiled: None,
            wants: BTreeSet::new(),
        }
    }

    /// The document's custom kinds.
    pub(crate) fn with_kubestellar(mut self) -> Self {
        for (group, version, kind, plural, namespaced) in [
            ("kubeflex.kubestellar.io", "v1", "ControlPlane", "controlplanes", false),
            ("kubestellar.io", "v1alpha1", "ITSWDSBinding", "itswdsbindings", true),
            ("tools.kubestellar.io", "v1", "DependencyGroup", "dependencygroups", true),
        ] {
            self.customs.push(Custom { kind: Gvk::new(group, version, kind), plural, namespaced });
        }
        self
    }

    /// Puts an object into the world, or changes it.
    pub(crate) fn put(&mut self, object: Value) -> &mut Self {
        self.version_counter += 1;
        let key = key(&object);
        let uid = self.objects.get(&key).map_or_else(
            || json!(format!("uid-{}", self.version_counter)),
            |old| old["metadata"]["uid"].clone(),
        );
        let mut object = object;
        object["metadata"]["uid"] = uid;
        object["metadata"]["resourceVersion"] = json!(self.version_counter.to_string());
        if object["metadata"].get("generation").is_none() {
            object["metadata"]["generation"] = json!(1);
        }
        self.objects.insert(key, object);
        self
    }

    /// Takes an object away.
    pub(crate) fn take(&mut self, object: &Value) -> &mut Self {
        self.version_counter += 1;
        self.objects.remove(&key(object));
        self
    }

    pub(crate) fn pass(&mut self, seconds: u64) -> &mut Self {
        self.now = self.now.plus_duration(Duration::from_secs(seconds));
        self
    }

    /// Changes the spec, as a new generation.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Value)) -> &mut Self
    where
        D::Object: DeserializeOwned,
    {
        let mut value = serde_json::to_value(&self.object).expect("an object");
        change(&mut value);
        let generation = value["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        value["metadata"]["generation"] = json!(generation);
        self.object = serde_json::from_value(value).expect("an object");
        self
    }

    pub(crate) fn annotate(&mut self, key: &str, text: &str) -> &mut Self
    where
        D::Object: DeserializeOwned,
    {
        let mut value = serde_json::to_value(&self.object).expect("an object");
        value["metadata"]["annotations"][key] = json!(text);
        self.object = serde_json::from_value(value).expect("an object");
        self
    }

    /// Lets everything happen that happens now.
    pub(crate) fn settle(&mut self) -> &mut Self {
        let mut wants = std::mem::take(&mut self.wants);
        let mut outcomes: Vec<Outcome> = Vec::new();
        for _ in 0..60 {
            let world: World = wants.iter().map(|want: &Want| (want.clone(), self.answer(want))).collect();
            let registry = linchpin_doors::registry();
            let given = CompileInput {
                registry: &registry,
                facts: &world,
                kinds: &self.memory.journal.kinds,
                default_service_account: "default",
                cluster_domain: CLUSTER_DOMAIN,
                exempt: &[],
                makers: &[],
            };
            self.wrong = None;
            let decision = match D::compile(&self.object, &given) {
                Ok(compiled) => {
                    let goal = Goal::Converge(&compiled.plan);
                    let decision = step(self.memory.clone(), goal, &world, &outcomes, None, self.now);
                    wants.extend(compiled.wants.clone());
                    self.compiled = Some(compiled);
                    decision
                }
                Err(error) if error.unready => {
                    wants.extend(error.asks);
                    continue;
                }
                Err(error) => {
                    wants.extend(error.asks.clone());
                    let goal = Goal::Invalid(&error);
                    let decision = step(self.memory.clone(), goal, &world, &outcomes, None, self.now);
                    self.compiled = None;
                    self.wrong = Some(error);
                    decision
                }
            };
            wants.extend(decision.wants.iter().cloned());
            let quiet = decision.effects.is_empty() && decision.memory.journal == self.memory.journal;
            self.memory = decision.memory.clone();
            self.memory.mark_saved(self.memory.critical);
            outcomes = decision.effects.iter().map(|effect| self.carry_out(effect)).collect();
            self.decision = Some(decision);
            if quiet && wants.iter().all(|want| world.get(want).is_some()) {
                self.wants = wants;
                return self;
            }
        }
        panic!("it never comes to rest");
    }

    /// The operator starts anew with what the status holds, and has looked at nothing yet.
    pub(crate) fn start_anew(&mut self) -> &mut Self {
        let journal = journal::of(&self.object).expect("readable").expect("a journal");
        let world = World::new();
        let registry = linchpin_doors::registry();
        let given = CompileInput {
            registry: &registry,
            facts: &world,
            kinds: &journal.kinds,
            default_service_account: "default",
            cluster_domain: CLUSTER_DOMAIN,
            exempt: &[],
            makers: &[],
        };
        let compiled = D::compile(&self.object, &given).expect("a plan");
        let memory = Memory::recovered(journal.clone());
        let decision = step(memory, Goal::Converge(&compiled.plan), &world, &[], None, self.now);
        assert!(decision.effects.is_empty(), "nothing is done before anything was looked at");
        self.memory = decision.memory.clone();
        self.decision = Some(decision);
        self.compiled = Some(compiled);
        self
    }

    /// Why the object stays although it is deleted, with all that it asks for answered.
    pub(crate) fn hold(&mut self, claims: &[Claim]) -> Option<Hold> {
        for _ in 0..10 {
            let world: World =
                self.wants.iter().map(|want: &Want| (want.clone(), self.answer(want))).collect();
            let registry = linchpin_doors::registry();
            let compile = CompileInput {
                registry: &registry,
                facts: &world,
                kinds: &self.memory.journal.kinds,
                default_service_account: "default",
                cluster_domain: CLUSTER_DOMAIN,
                exempt: &[],
                makers: &[],
            };
            let input = HoldInput { claims, compile, journal: &self.memory.journal, now: self.now };
            let hold = D::ties()?.hold(&self.object, &input)?;
            if hold.wants.is_subset(&self.wants) {
                return Some(hold);
            }
            self.wants.extend(hold.wants);
        }
        panic!("it always asks for more");
    }

    /// The status as it would be written now; it is written.
    pub(crate) fn status(&mut self) -> StatusOf<D>
    where
        D::Object: DeserializeOwned,
    {
        let decision = self.decision.as_ref().expect("settled before");
        let plan = self.compiled.as_ref().map(|compiled| &compiled.plan);
        let told = StatusInput {
            plan,
            journal: &decision.memory.journal,
            report: &decision.report,
            causes: &VisibleCauses::new(),
            now: self.now,
        };
        let status = D::status(&self.object, &told);
        let mut value = serde_json::to_value(&self.object).expect("an object");
        value["status"] = serde_json::to_value(&status).expect("a status");
        self.object = serde_json::from_value(value).expect("an object");
        status
    }

    pub(crate) fn report(&self) -> &linchpin_engine::step::Report {
        &self.decision.as_ref().expect("settled before").report
    }

    pub(crate) fn plan(&self) -> &linchpin_engine::plan::Plan {
        &self.compiled.as_ref().expect("a plan").plan
    }

    /// What was done since the last time somebody asked.
    pub(crate) fn done(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn answer(&self, want: &Want) -> Seen {
        match want.question() {
            Question::Version { .. } => Seen::Version(Arc::new(self.version.clone())),
            Question::Right { right, .. } => Seen::Right(!self.denied.contains(&right.to_string())),
            Question::Kind { word, .. } => Seen::Kind(Arc::new(self.served(word))),
            Question::Probe { .. } => Seen::Probe(Ok(())),
            Question::Artifact { .. } => Seen::Unknown(Why::new(Reason::Unsynced, "not fetched yet")),
            Question::Objects { kind, scope, reads, .. } => {
                let known = self.customs.iter().any(|custom| custom.kind == *kind);
                let word = KindWord::from_manifest(Some(&kind.api_version()), &kind.kind);
                if !known && built_in(&word).is_none() && kind.kind != "ReadinessProfile" {
                    return Seen::Unknown(Why::new(Reason::KindNotServed, "not served"));
                }
                if matches!(scope, Scope::Name { name, .. } if self.hidden.contains(name)) {
                    return Seen::Unknown(Why::new(Reason::Forbidden, "not allowed to get it"));
                }
                if matches!(scope, Scope::Name { name, .. } if self.unsynced.contains(name)) {
                    return Seen::Unknown(Why::new(Reason::Unsynced, "not looked at yet"));
                }
                let items = self
                    .objects
                    .values()
                    .filter(|object| is_kind(object, kind) && matches(object, scope))
                    .map(|object| Arc::new(project(object, kind, reads.project(object))))
                    .collect();
                Seen::Objects(Arc::new(Observed {
                    items,
                    as_of: self.version_counter,
                    live: !self.cut_off,
                    looked: None,
                }))
            }
        }
    }

    fn served(&self, word: &KindWord) -> Served {
        if let Some(known) = built_in(word) {
            return Served::Yes {
                kind: known.gvk(),
                plural: known.plural.to_owned(),
                namespaced: known.namespaced,
                reports_status: None,
            };
        }
        let found: Vec<&Custom> = self
            .customs
            .iter()
            .filter(|custom| {
                (custom.kind.kind.eq_ignore_ascii_case(&word.word) || custom.plural == word.word)
                    && word.group.as_ref().is_none_or(|group| *group == custom.kind.group)
            })
            .collect();
        match found.as_slice() {
            [] => Served::No,
            [one] => Served::Yes {
                kind: one.kind.clone(),
                plural: one.plural.to_owned(),
                namespaced: one.namespaced,
                reports_status: None,
            },
            several => Served::Several(several.iter().map(|custom| custom.kind.clone()).collect()),
        }
    }

    fn carry_out(&mut self, effect: &Effect) -> Outcome {
        let result = match &effect.verb {
            Verb::Create { body, default_namespace, existing, .. } => {
                Ok(self.write("create", body, default_namespace, *existing == Existing::Skip))
            }
            Verb::Apply { body, default_namespace, .. } => {
                Ok(self.write("apply", body, default_namespace, false))
            }
            Verb::Patch { target, kind, body, .. } => {
                self.log.push(format!("patch {} {kind:?}", shown(target)));
                self.bodies.push((**body).clone());
                Ok(Done { target: Some(target.clone()), ..Done::default() })
            }
            Verb::Delete { target, .. } => {
                self.log.push(format!("delete {}", shown(target)));
                Ok(Done { gone: true, ..Done::default() })
            }
            Verb::Disown { target, .. } => {
                self.log.push(format!("disown {}", shown(target)));
                Ok(Done { disowned: true, ..Done::default() })
            }
            Verb::Exec(order) => {
                self.log.push(format!("exec {}/{}: {}", order.namespace, order.pod, order.command.join(" ")));
                Ok(Done { exit: Some(0), ..Done::default() })
            }
            Verb::Notice(notice) => {
                self.log.push(format!("notice {}", notice.message));
                Ok(Done::default())
            }
        };
        let result: Result<Done, Failure> = result;
        Outcome { ticket: effect.ticket.clone(), at: self.now, result }
    }

    fn write(&mut self, word: &str, body: &Value, default_namespace: &str, keep: bool) -> Done {
        let kind = Gvk::from_api_version(
            body["apiVersion"].as_str().unwrap_or_default(),
            body["kind"].as_str().unwrap_or_default(),
        );
        let custom = self.customs.iter().find(|custom| custom.kind.group_kind() == kind.group_kind());
        let word_of_kind = KindWord::from_manifest(Some(&kind.api_version()), &kind.kind);
        let namespaced = built_in(&word_of_kind)
            .map_or_else(|| custom.is_none_or(|custom| custom.namespaced), |known| known.namespaced);
        let mut body = body.clone();
        if namespaced && body["metadata"].get("namespace").is_none() {
            body["metadata"]["namespace"] = json!(default_namespace);
        }
        let place = key(&body);
        let existed = self.objects.contains_key(&place);
        self.log.push(format!(
            "{word} {} {}{}",
            kind.kind,
            if namespaced { format!("{}/", place.2) } else { String::new() },
            place.3
        ));
        self.bodies.push(body.clone());
        if !(existed && keep) {
            self.put(body);
        }
        let stored = &self.objects[&place];
        let stamp = Stamp {
            uid: stored["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            generation: 1,
            version: stored["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse().unwrap_or(0),
            fingerprint: String::new(),
        };
        let target = EffectTarget {
            kind: word_of_kind,
            namespace: namespaced.then(|| place.2.clone()),
            name: place.3.clone(),
        };
        Done {
            target: Some(target),
            created: !existed,
            skipped: existed && keep,
            yielded: self.held_by_others.clone(),
            stamp: Some(stamp),
            ..Done::default()
        }
    }
}
