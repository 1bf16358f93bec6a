//! Looking at what Porch has: kinds, the shape of its definition, revisions, variants, contents.
//!
//! A look that was not taken yet stops compiling for the moment it takes. One that cannot be taken (no right, no
//! connection, no such kind) is an answer too: what depends on it says so and waits.

use linchpin_engine::{
    contract::{Observed, Question, ReadSet, Scope, Seen, Served, Via, Want},
    plan::{Obstacle, SpecError},
};
use linchpin_words::{Gvk, KindWord, Reason};
use serde_json::Value;

use super::{
    CONFIG, Looking, PACKAGES,
    revision::{UpstreamShape, number},
    variant,
};
use crate::{
    errors::{at, not_yet},
    kinds::KindMeaning,
};

/// What came of a look.
#[derive(Debug)]
pub(super) enum PorchLook<T> {
    /// This was seen.
    Seen(T),
    /// It could not be looked, for now: why, and the question that is open.
    Unknown(Obstacle, Want),
    /// There is no such kind.
    Unserved(Obstacle),
}

impl<T> PorchLook<T> {
    pub(super) fn seen(&self) -> Option<&T> {
        match self {
            Self::Seen(seen) => Some(seen),
            Self::Unknown(..) | Self::Unserved(_) => None,
        }
    }

    /// Why nothing was seen.
    pub(super) fn obstacle(&self) -> Option<&Obstacle> {
        match self {
            Self::Seen(_) => None,
            Self::Unknown(held, _) | Self::Unserved(held) => Some(held),
        }
    }

    fn map<U>(self, change: impl FnOnce(T) -> U) -> PorchLook<U> {
        match self {
            Self::Seen(seen) => PorchLook::Seen(change(seen)),
            Self::Unknown(held, want) => PorchLook::Unknown(held, want),
            Self::Unserved(held) => PorchLook::Unserved(held),
        }
    }
}

/// A PackageRevision, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Revision {
    pub name: String,
    pub repository: String,
    pub package: String,
    pub workspace: String,
    /// Its number, where it has one: branches and drafts have none.
    pub number: Option<u64>,
    /// Its revision as Porch writes it.
    pub text: String,
    pub lifecycle: String,
    /// What it was made of, as a reference of Git.
    pub upstream: Option<String>,
}

impl Revision {
    fn of(name: &str, content: &Value) -> Self {
        let text = |path: &str| match content.pointer(path) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let revision = text("/spec/revision");
        Self {
            name: name.to_owned(),
            repository: text("/spec/repository"),
            package: text("/spec/packageName"),
            workspace: text("/spec/workspaceName"),
            number: number(&revision),
            text: revision,
            lifecycle: text("/spec/lifecycle"),
            upstream: Some(text("/status/upstreamLock/git/ref")).filter(|text| !text.is_empty()),
        }
    }

    pub(super) fn is_of(&self, repository: &str, package: &str) -> bool {
        self.repository == repository && self.package == package
    }

    pub(super) fn is_published(&self) -> bool {
        self.lifecycle == "Published"
    }
}

/// A PackageVariant as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LiveVariant {
    pub upstream: Value,
    /// The revisions that Porch says it has made of it.
    pub targets: Vec<String>,
}

impl LiveVariant {
    /// The number of the revision it asks for.
    pub(super) fn number(&self) -> Option<u64> {
        match self.upstream.get("revision")? {
            Value::String(text) => number(text),
            value => value.as_u64(),
        }
    }

    /// The workspace it asks for.
    pub(super) fn workspace(&self) -> Option<String> {
        self.upstream.get("workspaceName").and_then(Value::as_str).map(str::to_owned)
    }
}

/// A Repository as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Registered {
    pub ready: bool,
    pub message: String,
}

impl<'l> Looking<'l> {
    /// The PackageVariant that is served; none where Porch is not installed.
    pub(super) fn is_installed(&self) -> Result<Option<Gvk>, SpecError> {
        Ok(match self.kind(&variant::kind())? {
            PorchLook::Seen(kind) => Some(kind),
            PorchLook::Unknown(..) => Some(variant::kind()),
            PorchLook::Unserved(_) => None,
        })
    }

    /// The shape that the installed definition asks for; none where that cannot be seen.
    pub(super) fn shape(&self, version: &str) -> Result<Option<UpstreamShape>, SpecError> {
        let kind = Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let scope = Scope::Name { namespace: None, name: format!("packagevariants.{CONFIG}") };
        let seen = self.ask(self.definitions(), kind, scope, &["spec.versions"])?;
        let of = |observed: &&Observed| {
            observed
                .items
                .first()
                .map_or_else(UpstreamShape::default, |item| UpstreamShape::of(&item.content, version))
        };
        Ok(seen.seen().map(of))
    }

    /// All revisions of all packages in the namespace.
    pub(super) fn revisions(&self) -> Result<PorchLook<Vec<Revision>>, SpecError> {
        let reads = [
            "spec.repository",
            "spec.packageName",
            "spec.workspaceName",
            "spec.revision",
            "spec.lifecycle",
            "status.upstreamLock.git.ref",
        ];
        let seen = self.look(PACKAGES, "PackageRevision", self.everything(), &reads)?;
        let read = |observed: &'l Observed| -> Vec<Revision> {
            let alive = observed.items.iter().filter(|item| !item.deleting);
            alive.map(|item| Revision::of(&item.name, &item.content)).collect()
        };
        Ok(seen.map(read))
    }

    /// The variant, if it is there.
    pub(super) fn variant(&self, name: &str) -> Result<PorchLook<Option<LiveVariant>>, SpecError> {
        let reads = ["spec.upstream", "status.downstreamTargets"];
        let seen = self.look(CONFIG, "PackageVariant", self.named(name), &reads)?;
        let read = |observed: &'l Observed| -> Option<LiveVariant> {
            let content = &observed.items.first()?.content;
            let targets = content.pointer("/status/downstreamTargets").and_then(Value::as_array);
            let names = targets.into_iter().flatten().filter_map(|target| target.get("name")?.as_str());
            Some(LiveVariant {
                upstream: content.pointer("/spec/upstream").cloned().unwrap_or_default(),
                targets: names.map(str::to_owned).collect(),
            })
        };
        Ok(seen.map(read))
    }

    /// The files of a revision, if it is there.
    pub(super) fn resources(&self, name: &str) -> Result<PorchLook<Option<&'l Value>>, SpecError> {
        let seen = self.look(PACKAGES, "PackageRevisionResources", self.named(name), &["spec.resources"])?;
        let read = |observed: &'l Observed| observed.items.first()?.content.pointer("/spec/resources");
        Ok(seen.map(read))
    }

    /// The Repository, if it is there.
    pub(super) fn repository(&self, name: &str) -> Result<PorchLook<Option<Registered>>, SpecError> {
        let seen = self.look(CONFIG, "Repository", self.named(name), &["status.conditions"])?;
        let read = |observed: &'l Observed| -> Option<Registered> {
            let content = &observed.items.first()?.content;
            let conditions = content.pointer("/status/conditions").and_then(Value::as_array);
            let ready = conditions.into_iter().flatten().find(|one| one["type"] == "Ready");
            let text = |key: &str| ready.and_then(|one| one.get(key)).and_then(Value::as_str);
            let is_ready = text("status") == Some("True");
            let message = text("message").unwrap_or("Porch has not looked at it yet");
            Some(Registered {
                ready: is_ready,
                message: if is_ready { String::new() } else { message.to_owned() },
            })
        };
        Ok(seen.map(read))
    }

    fn look(
        &self,
        group: &str,
        kind: &str,
        scope: Scope,
        reads: &[&'static str],
    ) -> Result<PorchLook<&'l Observed>, SpecError> {
        match self.kind(&Gvk::new(group, "v1alpha1", kind))? {
            PorchLook::Seen(kind) => self.ask(self.via.clone(), kind, scope, reads),
            PorchLook::Unknown(held, want) => Ok(PorchLook::Unknown(held, want)),
            PorchLook::Unserved(held) => Ok(PorchLook::Unserved(held)),
        }
    }

    /// A kind of Porch's as it is served.
    fn kind(&self, kind: &Gvk) -> Result<PorchLook<Gvk>, SpecError> {
        let word = KindWord::from_manifest(Some(&kind.api_version()), &kind.kind);
        let meaning = self.frame.kinds.resolve(self.via, &word).map_err(|problem| at(self.field, problem))?;
        let want = match meaning {
            KindMeaning::Known(kind) => return Ok(PorchLook::Seen(kind.gvk)),
            KindMeaning::Open(want) => want,
        };
        match self.frame.kinds.facts().get(&want) {
            Some(Seen::Kind(served)) if **served == Served::No => {
                let message = format!("the API server does not serve {} ({})", kind.kind, kind.group);
                Ok(PorchLook::Unserved(Obstacle { reason: Reason::KindNotServed, message }))
            }
            seen => self.unseen(seen, want, &kind.kind),
        }
    }

    fn ask(
        &self,
        via: Via,
        kind: Gvk,
        scope: Scope,
        reads: &[&'static str],
    ) -> Result<PorchLook<&'l Observed>, SpecError> {
        let name = kind.kind.clone();
        let reads = ReadSet::dotted(reads.iter().copied());
        let want = Want::new(Question::Objects { via, kind, scope, reads });
        match self.frame.kinds.ask(want.clone()) {
            Some(Seen::Objects(observed)) => Ok(PorchLook::Seen(observed)),
            seen => self.unseen(seen, want, &name),
        }
    }

    /// Nothing was seen: a first look is waited for, everything else is reported.
    fn unseen<T>(&self, seen: Option<&Seen>, want: Want, kind: &str) -> Result<PorchLook<T>, SpecError> {
        match seen {
            Some(Seen::Unknown(why)) if why.reason != Reason::Unsynced => {
                let message = format!("{kind}: {}", why.message);
                Ok(PorchLook::Unknown(Obstacle { reason: why.reason, message }, want))
            }
            _ => Err(not_yet(self.field)),
        }
    }
}
