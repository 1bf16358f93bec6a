//! Which kind a word means.
//!
//! Kubernetes' own kinds are known without asking. All others are asked for: an answer that is missing, or "not
//! served", leaves the question open, and several answers are the author's to choose from. What a bare word was
//! resolved to is pinned in the journal, so that a definition that comes later does not change its meaning.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use linchpin_engine::{
    contract::{Question, Seen, Served, Via, Want, World},
    plan::{Profile, SpecError},
    rights,
};
use linchpin_words::{GroupKind, Gvk, KindWord, limits, reference::built_in};

use crate::{door::CompileInput, errors::at, registry::Registry};

/// A kind, with what requests need to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedKind {
    pub gvk: Gvk,
    pub plural: String,
    pub namespaced: bool,
    pub reports_status: Option<bool>,
}

impl ResolvedKind {
    /// As RBAC names it.
    pub(crate) fn resource(&self) -> rights::RightResource {
        rights::RightResource {
            group: self.gvk.group.clone(),
            plural: self.plural.clone(),
            namespaced: self.namespaced,
        }
    }

    /// The namespace of an object of this kind.
    pub(crate) fn place(&self, namespace: &str) -> Option<String> {
        self.namespaced.then(|| namespace.to_owned())
    }

    /// The word that means this kind and no other.
    pub(crate) fn word(&self) -> KindWord {
        KindWord::from_manifest(Some(&self.gvk.api_version()), &self.gvk.kind)
    }
}

/// What is known of the kind that a word means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KindMeaning {
    /// This kind.
    Known(ResolvedKind),
    /// Nothing yet: this is the question that is open.
    Open(Want),
}

/// Words that were looked up, with the questions they raised and what is to be remembered.
pub(crate) struct KindLookup<'a> {
    compile_input: CompileInput<'a>,
    asked: RefCell<BTreeSet<Want>>,
    pins: RefCell<BTreeMap<String, Gvk>>,
    /// The profiles that were looked up, by kind.
    taught: RefCell<BTreeMap<GroupKind, Option<Arc<Profile>>>>,
    /// What compiling took so far.
    spent: Cell<u64>,
}

impl<'a> KindLookup<'a> {
    pub(crate) fn new(compile_input: CompileInput<'a>) -> Self {
        Self {
            compile_input,
            asked: RefCell::default(),
            pins: RefCell::default(),
            taught: RefCell::default(),
            spent: Cell::new(0),
        }
    }

    /// The kinds there are.
    pub(crate) fn registry(&self) -> &Registry {
        self.compile_input.registry
    }

    /// Takes what a part of compiling took. An object is compiled as a whole, so all of it must fit one turn.
    pub(crate) fn pay(&self, steps: u64, field: &str, what: &str) -> Result<(), SpecError> {
        self.spent.set(self.spent.get().saturating_add(steps));
        if self.spent.get() <= limits::TURN_STEPS {
            return Ok(());
        }
        let most = limits::TURN_STEPS;
        Err(at(
            field,
            format!(
                "reading the spec takes more than {most} steps, and {what} here: use fewer, or split the object"
            ),
        ))
    }

    /// What a word means; the error says what to write instead.
    pub(crate) fn resolve(&self, via: &Via, word: &KindWord) -> Result<KindMeaning, String> {
        if let Some(known) = built_in(word) {
            return Ok(KindMeaning::Known(ResolvedKind {
                gvk: known.gvk(),
                plural: known.plural.to_owned(),
                namespaced: known.namespaced,
                reports_status: None,
            }));
        }
        if let Some(problem) = word.problem() {
            return Err(problem.to_owned());
        }
        let pin = pin(via, word);
        let pinned = self.compile_input.kinds.get(&pin).filter(|_| word.group.is_none());
        let question = match pinned {
            Some(gvk) => KindWord {
                word: gvk.kind.to_ascii_lowercase(),
                group: Some(gvk.group.clone()),
                version: word.version.clone(),
            },
            None => word.clone(),
        };
        let want = Want::new(Question::Kind { via: via.clone(), word: question });
        self.asked.borrow_mut().insert(want.clone());
        let Some(Seen::Kind(served)) = self.compile_input.facts.get(&want) else {
            return Ok(KindMeaning::Open(want));
        };
        match &**served {
            Served::No => Ok(KindMeaning::Open(want)),
            Served::Yes { kind, plural, namespaced, reports_status } => {
                if word.group.is_none() {
                    self.pins.borrow_mut().insert(pin, kind.clone());
                }
                Ok(KindMeaning::Known(ResolvedKind {
                    gvk: kind.clone(),
                    plural: plural.clone(),
                    namespaced: *namespaced,
                    reports_status: *reports_status,
                }))
            }
            Served::Several(kinds) => {
                let names: Vec<String> = kinds.iter().map(|kind| kind.group_kind().to_string()).collect();
                Err(format!(
                    "{word:?} names several kinds: {}; write the group too",
                    names.join(", "),
                    word = word.word
                ))
            }
        }
    }

    /// The profile of a kind, looked up once.
    pub(crate) fn taught(
        &self,
        kind: &GroupKind,
        look_up: impl FnOnce() -> Option<Arc<Profile>>,
    ) -> Option<Arc<Profile>> {
        self.taught.borrow_mut().entry(kind.clone()).or_insert_with(look_up).clone()
    }

    /// What has been observed.
    pub(crate) fn facts(&self) -> &'a World {
        self.compile_input.facts
    }

    /// Records a further question.
    pub(crate) fn ask(&self, want: Want) -> Option<&'a Seen> {
        let seen = self.compile_input.facts.get(&want);
        self.asked.borrow_mut().insert(want);
        seen
    }

    /// The questions that were raised, and what is to be remembered.
    pub(crate) fn into_parts(self) -> (BTreeSet<Want>, BTreeMap<String, Gvk>) {
        (self.asked.into_inner(), self.pins.into_inner())
    }
}

/// What a word is remembered under: the same word may mean another kind in another cluster.
fn pin(via: &Via, word: &KindWord) -> String {
    if via.cluster.is_here() { word.to_string() } else { format!("{word}@{}", via.cluster) }
}
