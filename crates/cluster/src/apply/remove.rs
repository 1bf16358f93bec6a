//! Deleting one object, and only the one that was meant.
//!
//! What an object of ours made is deleted only if it is the incarnation that was made *and* carries our mark, both as read
//! just before; the request names the uid and the version that were read, so that nobody can change that in between.
//! A user who takes the mark off takes the object back: our owner reference comes off too, or the API server would
//! delete it with our object.

use super::{Job, disown::is_owned_by, stamp::stamp, written};
use crate::call;
use http::Method;
use linchpin_engine::contract::{Done, EffectTarget, Failure, Propagation};
use linchpin_words::keys;
use serde_json::{Value, json};

impl Job<'_> {
    pub(super) async fn delete(
        &self,
        target: &EffectTarget,
        uid: Option<&str>,
        creator: Option<&str>,
        propagation: Propagation,
    ) -> Result<Done, Failure> {
        let resource = self.meaning(&target.kind).await?;
        let namespace = target.namespace.as_deref().filter(|_| resource.namespaced);
        let attempt = self.attempt("delete", &resource, namespace, &target.name);
        let policy = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let done = Done { target: Some(written(&resource, namespace, &target.name)), ..Done::default() };
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        if let Some(creator) = creator {
            let Some(found) = self.get(&resource, namespace, &target.name).await? else {
                return Ok(Done { gone: true, ..done });
            };
            let what = attempt.what();
            match whose(&found, uid, creator) {
                Ownership::Ours => {}
                Ownership::Another => return Ok(Done { gone: true, ..done }),
                Ownership::AnotherOfOurs => {
                    let message = format!("{what} is another one than was made, so it is not deleted");
                    return Err(Failure::NotOurs(message));
                }
                Ownership::TakenBack => {
                    self.take_owner_off(&attempt, &found, creator).await?;
                    let message = format!("{what} does not carry our mark any more, so it is not deleted");
                    return Err(Failure::NotOurs(message));
                }
            }
            let text = |path: &str| found.pointer(path).and_then(Value::as_str).unwrap_or_default();
            options["preconditions"] =
                json!({"uid": text("/metadata/uid"), "resourceVersion": text("/metadata/resourceVersion")});
        } else if let Some(uid) = uid {
            options["preconditions"] = json!({"uid": uid});
        }
        self.check()?;
        let answer = async {
            let url = resource.object(namespace, &target.name);
            let request = call::send_json(Method::DELETE, &url, "application/json", &options)?;
            call::call(&self.reach.writes, request).await?.read::<Value>()
        };
        match answer.await {
            // An object that answers is still there, waiting for its finalizers; a status says that it is gone.
            Ok(returned) => {
                let gone = returned.get("kind").and_then(Value::as_str) == Some("Status");
                Ok(Done { gone, stamp: if gone { None } else { stamp(&returned, None) }, ..done })
            }
            Err(error) => match attempt.failure(&error) {
                Failure::Gone(_) => Ok(Done { gone: true, ..done }),
                // Somebody wrote in between: what is there now must be read again.
                Failure::StalePrecondition(message) if creator.is_some() => Err(Failure::Transient(message)),
                failure => Err(failure),
            },
        }
    }
}

/// Whose an object is that is to be deleted.
#[derive(Debug, PartialEq, Eq)]
enum Ownership {
    /// It is the one that was made, and carries our mark.
    Ours,
    /// What was made is gone, or never was there; this is somebody else's.
    Another,
    /// It carries our mark, but is another one than was made.
    AnotherOfOurs,
    /// It is the one that was made, and somebody took our mark off.
    TakenBack,
}

/// Whose it is, by the uid that was remembered, if any, and by its mark.
fn whose(found: &Value, uid: Option<&str>, creator: &str) -> Ownership {
    let mark = found.pointer("/metadata/annotations").and_then(|all| all.get(keys::CREATED_BY));
    let marked = mark.and_then(Value::as_str) == Some(creator);
    let same = uid.map(|uid| found.pointer("/metadata/uid").and_then(Value::as_str) == Some(uid));
    match (marked, same) {
        (true, None | Some(true)) => Ownership::Ours,
        (true, Some(false)) => Ownership::AnotherOfOurs,
        (false, Some(true)) => Ownership::TakenBack,
        (false, None) if is_owned_by(found, creator) => Ownership::TakenBack,
        (false, None | Some(false)) => Ownership::Another,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_and_still_carries_our_mark_is_ours() {
        let object = |uid: &str, mark: &str| json!({"metadata": {"uid": uid, "annotations": {"linchpin.dev/created-by": mark}}});
        let judged = |uid, mark, wanted| whose(&object(uid, mark), wanted, "us");
        assert_eq!(judged("a", "us", Some("a")), Ownership::Ours);
        assert_eq!(judged("a", "us", None), Ownership::Ours);
        assert_eq!(judged("b", "us", Some("a")), Ownership::AnotherOfOurs);
        assert_eq!(judged("a", "them", Some("a")), Ownership::TakenBack);
        assert_eq!(judged("b", "them", Some("a")), Ownership::Another);
        assert_eq!(judged("b", "them", None), Ownership::Another);
        let owned = json!({"metadata": {"uid": "a", "ownerReferences": [{"uid": "us"}]}});
        assert_eq!(whose(&owned, None, "us"), Ownership::TakenBack);
    }
}
