//! From a variant to the objects that come of it: the published revision, its files, what is in them.

use linchpin_engine::{
    contract::Want,
    plan::{Obstacle, SpecError},
};
use linchpin_words::Reason;
use serde_json::Value;

use super::{
    Contained, Looking, contents,
    look::{LiveVariant, PorchLook, Revision},
    missing,
    revision::UpstreamChoice,
};

/// How far a variant has come.
#[derive(Debug)]
pub(in crate::app_bundle) enum Follow {
    /// Not far enough: why, and what could not be looked at, where it is that.
    Blocked(Obstacle, Option<Want>),
    /// A revision of it is published, and these objects are in it.
    Contains {
        /// The name of the revision.
        revision: String,
        /// What is in it.
        objects: Vec<Contained>,
    },
}

impl Follow {
    /// The published revision.
    pub(super) fn revision(&self) -> Option<&str> {
        match self {
            Self::Blocked(..) => None,
            Self::Contains { revision, .. } => Some(revision),
        }
    }

    /// The objects that are waited for.
    pub(in crate::app_bundle) fn objects(&self) -> &[Contained] {
        match self {
            Self::Blocked(..) => &[],
            Self::Contains { objects, .. } => objects,
        }
    }
}

fn held(reason: Reason, message: impl Into<String>) -> Follow {
    Follow::Blocked(Obstacle { reason, message: message.into() }, None)
}

/// Follows a variant as far as it goes now.
pub(super) fn follow(
    looking: &Looking<'_>,
    name: &str,
    repository: &str,
    body: &Value,
    choice: &UpstreamChoice,
    live: &PorchLook<Option<LiveVariant>>,
    revisions: &PorchLook<Vec<Revision>>,
) -> Result<Follow, SpecError> {
    let (PorchLook::Seen(live), PorchLook::Seen(revisions)) = (live, revisions) else {
        let reason = missing(live).or_else(|| missing(revisions));
        return Ok(reason.map_or_else(
            || held(Reason::Waiting, "nothing was seen of it"),
            |(why, want)| Follow::Blocked(why, want),
        ));
    };
    let Some(live) = live else {
        return Ok(held(Reason::NotFound, "it does not exist yet"));
    };
    // What others have added to it is theirs.
    let mut desired = body["spec"]["upstream"].as_object().into_iter().flatten();
    if desired.any(|(key, value)| live.upstream.get(key) != Some(value)) {
        return Ok(held(Reason::StaleGeneration, "it does not ask for this revision yet"));
    }
    let is_ours = |one: &&Revision| one.is_of(repository, name) || live.targets.contains(&one.name);
    let made: Vec<&Revision> = revisions.iter().filter(is_ours).collect();
    let published = made.iter().filter(|one| one.is_published() && choice.is_upstream_of(one));
    let Some(published) = published.max_by_key(|one| one.number) else {
        return Ok(unpublished(looking, repository, &made));
    };
    let place = format!("{}/{}", looking.namespace, published.name);
    let files = looking.resources(&published.name)?;
    let files = match files {
        PorchLook::Seen(Some(files)) => files,
        PorchLook::Seen(None) => {
            let message = format!("PackageRevisionResources {place} does not exist");
            return Ok(held(Reason::NotFound, message));
        }
        other => {
            let why = missing(&other);
            return Ok(
                why.map_or_else(|| held(Reason::Waiting, place), |(why, want)| Follow::Blocked(why, want))
            );
        }
    };
    Ok(match contents::objects(Some(files)) {
        Ok(objects) => Follow::Contains { revision: published.name.clone(), objects },
        Err(why) => Follow::Blocked(why, None),
    })
}

/// No revision that counts is published: what there is instead.
fn unpublished(looking: &Looking<'_>, repository: &str, made: &[&Revision]) -> Follow {
    let on_its_way = made.iter().find(|one| !one.is_published());
    if let Some(one) = on_its_way {
        let lifecycle = if one.lifecycle.is_empty() { "Draft" } else { &one.lifecycle };
        let message = format!(
            "PackageRevision {}/{} is {lifecycle} and must be Published",
            looking.namespace, one.name
        );
        return held(Reason::NotReady, message);
    }
    let Some(one) = made.first() else {
        let message =
            format!("Porch has made no revision of it in Repository {}/{repository} yet", looking.namespace);
        return held(Reason::NotFound, message);
    };
    let message = format!(
        "PackageRevision {}/{} is made of {}; one of what is asked for now must be published",
        looking.namespace,
        one.name,
        one.upstream.as_deref().unwrap_or("another revision")
    );
    held(Reason::NotReady, message)
}
