//! Writing whole documents: server-side apply and create.
//!
//! # Who created it
//!
//! The mark may only go onto what was not there. Unless an open watch shows the object, it is therefore applied with the
//! mark and a resourceVersion that no object has ([`WriteScope::IfAbsent`]): the server ignores that version where it
//! creates, and answers 409 without having changed anything where the object is there. So the common case takes one
//! request and no look, and nobody can come in between. Only after a 409 the object is looked at, by a GET as the
//! identity. Present: it is applied with its uid, so that the request cannot create or hit a successor; with the mark
//! if the mark is ours, else without.
//!
//! A server that ignores versions answers 200: then the object's own record of who wrote at its creation says
//! whose it is, and in doubt the mark is taken off again: losing the right to delete is safe, gaining it is not.
//!
//! `create` needs no look either: POST fails if the object is there. Only then is it looked at, and if it carries our
//! mark it was our own earlier request whose answer was lost.

use super::{
    Job,
    classify::AttemptedRequest,
    field_conflicts::{Conflict, REPLICAS, has_replicas, is_scaled, leave_out},
    object::{WritableDocument, WriteScope},
    stamp::stamp,
    written,
};
use crate::{
    call::{self, CallError, Form, Resource},
    hub::answers::CachedObject,
};
use http::{Method, StatusCode};
use linchpin_engine::contract::{Done, Existing, Failure, Force, OwnerReference};
use linchpin_words::keys;
use serde_json::Value;

/// How a document is to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteOptions<'a> {
    pub(super) manager: &'a str,
    pub(super) creator: &'a str,
    pub(super) existing: Existing,
    pub(super) force: Force,
    pub(super) yields: &'a [String],
    pub(super) owner: Option<&'a OwnerReference>,
    pub(super) discreet: bool,
}

/// A document with its place.
struct Placed<'a> {
    document: &'a WritableDocument,
    resource: &'a Resource,
    namespace: Option<&'a str>,
    order: &'a WriteOptions<'a>,
}

impl Placed<'_> {
    fn attempt(&self, verb: &'static str) -> AttemptedRequest<'_> {
        AttemptedRequest {
            verb,
            resource: self.resource,
            subresource: None,
            namespace: self.namespace,
            name: &self.document.name,
            discreet: self.order.discreet,
        }
    }

    fn done(&self, returned: &Value, created: bool) -> Done {
        Done {
            target: Some(written(self.resource, self.namespace, &self.document.name)),
            created,
            owned: created && self.owner().is_some_and(|owner| has_owner(returned, owner)),
            stamp: stamp(returned, Some(self.order.manager)),
            ..Done::default()
        }
    }

    /// The owner that the object may have: one of its own namespace.
    fn owner(&self) -> Option<&OwnerReference> {
        self.order.owner.filter(|owner| self.namespace == Some(owner.namespace.as_str()))
    }
}

fn has_owner(object: &Value, owner: &OwnerReference) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let mut owners = owners.into_iter().flatten();
    owners.any(|reference| reference.get("uid").and_then(Value::as_str) == Some(&owner.uid))
}

/// How a server-side apply was answered.
struct Applied {
    code: StatusCode,
    returned: Value,
    yielded: Vec<String>,
    taken_back: Vec<String>,
}

impl Job<'_> {
    pub(super) async fn apply(
        &self,
        body: &Value,
        namespace: &str,
        order: &WriteOptions<'_>,
    ) -> Result<Done, Failure> {
        let mut document = WritableDocument::read(body, &self.via.actor)?;
        let resource = self.resource(&document.kind).await?;
        let namespace = document.place(&resource, namespace);
        let placed =
            Placed { document: &document, resource: &resource, namespace: namespace.as_deref(), order };
        let seen = self.hub.cached_object(self.via, &resource, namespace.as_deref(), &document.name);
        let cached_object = seen.unwrap_or(CachedObject::Absent);
        match (self.apply_to(&placed, &cached_object).await, &cached_object) {
            // What was seen is not what is there: once more, on a fresh look.
            (Err(Failure::StalePrecondition(_)), _)
            | (Err(Failure::FieldConflict(_)), CachedObject::Absent) => {
                let fresh = self.look(&placed).await?;
                self.apply_to(&placed, &fresh).await
            }
            (result, _) => result,
        }
    }

    pub(super) async fn create(
        &self,
        body: &Value,
        namespace: &str,
        order: &WriteOptions<'_>,
    ) -> Result<Done, Failure> {
        let mut document = WritableDocument::read(body, &self.via.actor)?;
        let resource = self.resource(&document.kind).await?;
        let namespace = document.place(&resource, namespace);
        let placed =
            Placed { document: &document, resource: &resource, namespace: namespace.as_deref(), order };
        let body = document.body(Some(order.creator), None, WriteScope::Whatever);
        // What the server does not know it would drop without a word.
        let url = resource.collection(namespace.as_deref()).with("fieldManager", order.manager);
        let url = url.with("fieldValidation", "Strict");
        self.check()?;
        let request = call::send_json(Method::POST, &url, "application/json", &body);
        let answer = match request {
            Ok(request) => call::call(&self.reach.writes, request).await,
            Err(error) => Err(error),
        };
        let attempt = placed.attempt("create");
        match answer.and_then(|answer| answer.read::<Value>()) {
            Ok(returned) => Ok(placed.done(&returned, true)),
            Err(error) => match attempt.failure(&error) {
                Failure::AlreadyExists(_) => self.exists(&placed).await,
                failure => Err(failure),
            },
        }
    }

    /// A create met an object of that name.
    async fn exists(&self, placed: &Placed<'_>) -> Result<Done, Failure> {
        let attempt = placed.attempt("get");
        let Some(found) = self.get(placed.resource, placed.namespace, &placed.document.name).await? else {
            return Err(Failure::Transient(format!("{} came and went", attempt.what())));
        };
        let created_by = found.pointer("/metadata/annotations").and_then(|all| all.get(keys::CREATED_BY));
        if created_by.and_then(Value::as_str) == Some(placed.order.creator) {
            return Ok(placed.done(&found, true));
        }
        match placed.order.existing {
            Existing::Skip => {
                let target = Some(written(placed.resource, placed.namespace, &placed.document.name));
                Ok(Done { target, skipped: true, stamp: stamp(&found, None), ..Done::default() })
            }
            Existing::Fail => Err(Failure::AlreadyExists(attempt.what())),
            Existing::Adopt | Existing::Apply => self.apply_to(placed, &cached_object(&found)).await,
        }
    }

    async fn apply_to(&self, placed: &Placed<'_>, cached_object: &CachedObject) -> Result<Done, Failure> {
        let order = placed.order;
        let what = placed.attempt("patch").what();
        let (mark, only) = match cached_object {
            CachedObject::Absent => (Some(order.creator), WriteScope::IfAbsent),
            CachedObject::Present { deleting: true, .. } => {
                return Err(Failure::Terminating(format!("{what} is being deleted")));
            }
            CachedObject::Present { uid, created_by: Some(by), .. } if by == order.creator => {
                (Some(order.creator), WriteScope::Incarnation(uid))
            }
            CachedObject::Present { uid, .. } => match order.existing {
                Existing::Skip => {
                    let target = Some(written(placed.resource, placed.namespace, &placed.document.name));
                    return Ok(Done { target, skipped: true, ..Done::default() });
                }
                Existing::Fail => return Err(Failure::AlreadyExists(what)),
                Existing::Adopt | Existing::Apply => (None, WriteScope::Incarnation(uid)),
            },
        };
        let applied = self.server_side_apply(placed, mark, only).await?;
        let created = match cached_object {
            _ if applied.code == StatusCode::CREATED => true,
            CachedObject::Present { .. } => mark.is_some(),
            CachedObject::Absent if was_created_by_us(&applied.returned) => true,
            CachedObject::Absent => {
                let uid =
                    applied.returned.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
                let applied = self.server_side_apply(placed, None, WriteScope::Incarnation(uid)).await?;
                if order.existing == Existing::Fail {
                    return Err(Failure::AlreadyExists(what));
                }
                let Applied { returned, yielded, taken_back, .. } = applied;
                return Ok(Done { yielded, taken_back, ..placed.done(&returned, false) });
            }
        };
        let Applied { returned, yielded, taken_back, .. } = applied;
        Ok(Done { yielded, taken_back, ..placed.done(&returned, created) })
    }

    /// Applies the document; where fields that others hold may be taken back, once more with all but those that are left
    /// to them.
    async fn server_side_apply(
        &self,
        placed: &Placed<'_>,
        mark: Option<&str>,
        only: WriteScope<'_>,
    ) -> Result<Applied, Failure> {
        let owner = placed.owner().filter(|_| mark.is_some());
        let mut body = placed.document.body(mark, owner, only);
        let takes_back = matches!(only, WriteScope::Incarnation(_))
            && match placed.order.force {
                Force::Never => false,
                Force::IfCreated => mark.is_some(),
                Force::Always => true,
            };
        let attempt = placed.attempt("patch");
        let (mut yielded, mut reclaimed) = (Vec::new(), Vec::new());
        if takes_back && self.is_scaled(placed, &body).await? {
            leave_out(&mut body, REPLICAS);
            yielded.push("spec.replicas is left to who scaled it".to_owned());
        }
        self.check()?;
        let answer = match self.send_apply(placed, &body, false).await {
            Err(CallError::Refused(refused))
                if may_go_on(&Conflict::all(&refused), takes_back, placed.order) =>
            {
                let conflicts = Conflict::all(&refused);
                let (drifted, takes_back) = (takes_back, takes_back || takes_over(&conflicts, placed.order));
                for conflict in conflicts {
                    if conflict.is_yielded(placed.order.yields, placed.order.manager) {
                        leave_out(&mut body, &conflict.field);
                        yielded.push(conflict.message());
                    } else {
                        reclaimed.push(if drifted { conflict.taken_back() } else { conflict.taken_over() });
                    }
                }
                self.check()?;
                self.send_apply(placed, &body, takes_back).await
            }
            answer => answer,
        };
        let (code, returned) = answer.map_err(|error| attempt.failure(&error))?;
        Ok(Applied { code, returned, yielded, taken_back: reclaimed })
    }

    /// Whether somebody set the replicas of a workload through its scale, of whom the server does not name.
    async fn is_scaled(&self, placed: &Placed<'_>, body: &Value) -> Result<bool, Failure> {
        let declared = body.pointer("/spec/replicas");
        let Some(declared) = declared.filter(|_| has_replicas(&placed.resource.kind.group_kind())) else {
            return Ok(false);
        };
        let live = self.read(placed.resource, placed.namespace, &placed.document.name, Form::Full).await?;
        Ok(live.is_some_and(|live| is_scaled(&live, declared, placed.order.manager)))
    }

    async fn send_apply(
        &self,
        placed: &Placed<'_>,
        body: &Value,
        force: bool,
    ) -> Result<(StatusCode, Value), CallError> {
        let url = placed
            .resource
            .object(placed.namespace, &placed.document.name)
            .with("fieldManager", placed.order.manager)
            .with("force", if force { "true" } else { "false" })
            // Fields that the kind does not have are refused by the merge itself. All that this would add is a second
            // look for keys that are there twice, and there are none: it would be a sixteenth of the server's work.
            .with("fieldValidation", "Ignore");
        let request = call::send_json(Method::PATCH, &url, "application/apply-patch+yaml", body)?;
        let answer = call::call(&self.reach.writes, request).await?;
        Ok((answer.code, answer.read::<Value>()?))
    }

    /// Looks at an object as the identity.
    async fn look(&self, placed: &Placed<'_>) -> Result<CachedObject, Failure> {
        let found = self.get(placed.resource, placed.namespace, &placed.document.name).await?;
        Ok(found.as_ref().map_or(CachedObject::Absent, cached_object))
    }

    /// The metadata of an object, as the identity sees it; none if it is not there.
    pub(super) async fn get(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, Failure> {
        self.read(resource, namespace, name, Form::Metadata).await
    }

    async fn read(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        form: Form,
    ) -> Result<Option<Value>, Failure> {
        let attempt = self.attempt("get", resource, namespace, name);
        let answer = async {
            let request = call::get(&resource.object(namespace, name), form)?;
            call::call(&self.reach.writes, request).await?.read::<Value>()
        };
        match answer.await {
            Ok(found) => Ok(Some(found)),
            Err(error) => match attempt.failure(&error) {
                Failure::Gone(_) => Ok(None),
                failure => Err(failure),
            },
        }
    }
}

/// Whether conflicts can be dealt with: by taking fields back, or because all of them are to be left to others anyway.
fn may_go_on(conflicts: &[Conflict], takes_back: bool, order: &WriteOptions<'_>) -> bool {
    let named = || conflicts.iter().all(|conflict| conflict.is_named(order.yields));
    !conflicts.is_empty() && (takes_back || named() || takes_over(conflicts, order))
}

/// Whether an object that is adopted is taken over field by field: from people, who applied it with kubectl before.
fn takes_over(conflicts: &[Conflict], order: &WriteOptions<'_>) -> bool {
    let left = |conflict: &Conflict| conflict.is_yielded(order.yields, order.manager);
    order.existing == Existing::Adopt
        && conflicts.iter().all(|conflict| conflict.is_kubectls() || left(conflict))
}

fn cached_object(found: &Value) -> CachedObject {
    let metadata = found.get("metadata");
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    CachedObject::Present {
        uid: text(metadata.and_then(|metadata| metadata.get("uid"))).unwrap_or_default(),
        created_by: text(found.pointer("/metadata/annotations").and_then(|all| all.get(keys::CREATED_BY))),
        deleting: metadata.is_some_and(|metadata| metadata.get("deletionTimestamp").is_some()),
    }
}

/// Whether nobody but us wrote an object at the moment of its creation.
fn was_created_by_us(returned: &Value) -> bool {
    let created = returned.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
    let entries = returned.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut managers = entries.into_iter().flatten().filter(|entry| {
        created.is_some()
            && entry.get("time").and_then(Value::as_str) == created
            && entry.get("subresource").is_none()
    });
    let ours =
        |entry: &Value| entry.get("manager").and_then(Value::as_str).is_some_and(keys::is_our_field_manager);
    managers.next().is_some_and(|first| ours(first) && managers.all(ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn in_doubt_somebody_else_created_it() {
        let object =
            |entries: Value| json!({"metadata": {"creationTimestamp": "T", "managedFields": entries}});
        let ours = json!({"manager": "linchpin:A:b/c:d", "time": "T"});
        let theirs = json!({"manager": "kubectl", "time": "T"});
        let later = json!({"manager": "kubectl", "time": "T2"});
        let status = json!({"manager": "controller", "time": "T", "subresource": "status"});
        assert!(was_created_by_us(&object(json!([ours.clone()]))));
        assert!(was_created_by_us(&object(json!([ours.clone(), later.clone(), status]))));
        assert!(!was_created_by_us(&object(json!([ours, theirs]))));
        assert!(!was_created_by_us(&object(json!([later]))));
        assert!(!was_created_by_us(&object(json!([]))));
        assert!(!was_created_by_us(&json!({"metadata": {}})));
    }
}
