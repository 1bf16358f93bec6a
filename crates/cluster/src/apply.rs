//! Effects: the changes that plans order, made as the right identity and reported as they turned out.
//!
//! [`Executor::execute`] makes one request, or as few as certainty needs, and never repeats one. What it promises:
//!
//! * **Whose object is it.** What was not there is written with the mark `linchpin.dev/created-by`; what was there and
//!   does not carry our mark is never marked, and is left, refused or written to without it as the effect says.
//! * **Only that incarnation.** A write to what was seen names its uid, so that it cannot hit a successor; a deletion
//!   names the uid it was ordered for, and of what we made also the version at which it carried our mark.
//! * **No guessing.** A request that may or may not have happened is [`Failure::Unknowable`] where doing it twice
//!   matters (exec, patches that must not happen twice), and [`Failure::Transient`] where it does not.
//! * **No leaks.** What the server says about a body is reduced to reason and field (`apply/classify.rs`).
//!
//! The fence is asked just before each request: an operator that no longer leads writes nothing.

mod classify;
mod disown;
mod exec;
mod field_conflicts;
mod object;
mod patch;
mod remove;
mod stamp;
mod trail;
mod write;

use self::classify::AttemptedRequest;
use crate::{
    call::Resource,
    discovery::index::{KindIndex, WordMeaning},
    events::{EventRecorder, Regarding},
    hub::{ActorClient, Hub},
};
use linchpin_engine::contract::{Done, Effect, EffectTarget, Failure, Force, Verb, Via};
use linchpin_words::{Gvk, KindWord};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Whether we may still write; asked just before each request.
pub type MayWrite = Arc<dyn Fn() -> bool + Send + Sync>;

/// How long a kind that the index does not know is waited for: a definition is there before its kind is served.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a session that opens is waited for: an effect that has not begun must not hold its place for longer.
const OPENING: Duration = Duration::from_secs(10);

/// Makes effects happen.
#[derive(Clone)]
pub struct Executor {
    hub: Hub,
    recorder: EventRecorder,
    may_write: MayWrite,
}

/// One effect under way.
struct Job<'a> {
    hub: &'a Hub,
    via: &'a Via,
    reach: Arc<ActorClient>,
    may_write: &'a MayWrite,
    /// Whether what the server says about the body is not to be shown.
    discreet: bool,
    deadline: Instant,
}

impl Executor {
    /// An executor that writes while `may_write` says so, and says things through `recorder`.
    pub fn new(hub: Hub, recorder: EventRecorder, may_write: MayWrite) -> Self {
        Self { hub, recorder, may_write }
    }

    /// Makes one effect happen before its deadline, and leaves one line about it in the log. `about` is our own object,
    /// on which notices are put.
    pub async fn execute(&self, effect: &Effect, about: &Regarding) -> Result<Done, Failure> {
        let begun = Instant::now();
        let result = self.in_time(effect, about).await;
        trail::leave(effect, about, &result, begun.elapsed());
        result
    }

    async fn in_time(&self, effect: &Effect, about: &Regarding) -> Result<Done, Failure> {
        if !(self.may_write)() {
            return Err(Failure::NotStarted);
        }
        let deadline = Instant::now() + effect.deadline;
        let late = |_| {
            let message = format!("no answer within {} s", effect.deadline.as_secs());
            Err(match &effect.verb {
                Verb::Exec(_) | Verb::Patch { once: true, .. } => Failure::Unknowable(message),
                _ => Failure::Transient(message),
            })
        };
        tokio::time::timeout_at(deadline, self.run(effect, about, deadline)).await.unwrap_or_else(late)
    }

    async fn run(&self, effect: &Effect, about: &Regarding, deadline: Instant) -> Result<Done, Failure> {
        if let Verb::Notice(notice) = &effect.verb {
            self.recorder.record(about, notice).await;
            return Ok(Done::default());
        }
        let reach = self.hub.reach(&effect.via, effect.deadline.min(OPENING)).await?;
        let (via, may_write, discreet) = (&effect.via, &self.may_write, effect.discreet);
        let job = Job { hub: &self.hub, via, reach, may_write, discreet, deadline };
        let done = match &effect.verb {
            Verb::Apply { body, default_namespace, manager, force, yields, existing, creator, owner } => {
                let owner = owner.as_deref();
                let (existing, force) = (*existing, *force);
                let order =
                    write::WriteOptions { manager, creator, existing, force, yields, owner, discreet };
                job.apply(body, default_namespace, &order).await
            }
            Verb::Create { body, default_namespace, manager, existing, creator } => {
                let (existing, force) = (*existing, Force::Never);
                let order = write::WriteOptions {
                    manager,
                    creator,
                    existing,
                    force,
                    yields: &[],
                    owner: None,
                    discreet,
                };
                job.create(body, default_namespace, &order).await
            }
            Verb::Disown { target, uid, owner } => job.disown(target, uid, owner).await,
            Verb::Patch { target, kind, body, manager, once } => {
                job.patch(target, *kind, body, manager, *once).await
            }
            Verb::Delete { target, uid, creator, propagation } => {
                job.delete(target, uid.as_deref(), creator.as_deref(), *propagation).await
            }
            Verb::Exec(order) => job.exec(order).await,
            Verb::Notice(_) => Ok(Done::default()),
        };
        done.map(|done| Done { place: effect.via.cluster.place(), ..done })
    }
}

impl Job<'_> {
    /// A request about an object.
    fn attempt<'a>(
        &self,
        verb: &'static str,
        resource: &'a Resource,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> AttemptedRequest<'a> {
        AttemptedRequest { verb, resource, subresource: None, namespace, name, discreet: self.discreet }
    }

    /// Asks the fence. Every request is preceded by this.
    fn check(&self) -> Result<(), Failure> {
        if (self.may_write)() { Ok(()) } else { Err(Failure::NotStarted) }
    }

    /// The resource of a kind at exactly that version.
    async fn resource(&self, kind: &Gvk) -> Result<Resource, Failure> {
        let found = self.look_up(&kind.group, |index| index.resource(kind)).await;
        found.ok_or_else(|| {
            Failure::NotServed(format!(
                "the API server does not serve {} {} now",
                kind.api_version(),
                kind.kind
            ))
        })
    }

    /// The resource that a word means.
    async fn meaning(&self, word: &KindWord) -> Result<Resource, Failure> {
        let group = word.group.clone().unwrap_or_default();
        let found = self
            .look_up(&group, |index| match index.meaning(word) {
                WordMeaning::None => None,
                meaning => Some(meaning),
            })
            .await;
        match found {
            Some(WordMeaning::One(resource)) => Ok(resource),
            Some(WordMeaning::Several(kinds)) => {
                let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
                Err(Failure::Invalid(format!(
                    "{word} means several kinds, write its group: {}",
                    kinds.join("; ")
                )))
            }
            Some(WordMeaning::None) | None => {
                Err(Failure::NotServed(format!("the API server does not serve {word} now")))
            }
        }
    }

    /// Looks into the index; if it does not have what is looked for, once more after asking for the group.
    async fn look_up<T>(&self, group: &str, find: impl Fn(&KindIndex) -> Option<T>) -> Option<T> {
        let discovery = &self.reach.place.discovery;
        let mut newest = discovery.subscribe();
        let until = self.deadline.min(Instant::now() + PATIENCE);
        let mut asked = false;
        loop {
            let index = newest.borrow_and_update().clone();
            if let Some(index) = index {
                if let Some(found) = find(&index) {
                    return Some(found);
                }
                if !asked {
                    discovery.invalidate(group);
                    asked = true;
                }
            }
            match tokio::time::timeout_at(until, newest.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return None,
            }
        }
    }
}

/// The object that was written, as outcomes name it.
fn written(resource: &Resource, namespace: Option<&str>, name: &str) -> EffectTarget {
    EffectTarget {
        kind: KindWord::from_manifest(Some(&resource.kind.api_version()), &resource.kind.kind),
        namespace: namespace.filter(|_| resource.namespaced).map(str::to_owned),
        name: name.to_owned(),
    }
}
