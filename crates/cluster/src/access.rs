//! What an identity may do, asked of the server as that identity (`SelfSubjectAccessReview`).
//!
//! Called by the hub for [`Question::Right`](linchpin_engine::contract::Question) and before it widens a watch. The
//! answer is the server's; nothing is concluded from roles or names, but that an identity that may do something to all
//! objects of a kind may do it to one. So a thousand plans that each need a right to one object cost a few requests
//! ([`Reviewer`]), and not as many connections at once.

use crate::call::{self, ApiUrl, CallError};
use http::Method;
use kube::Client;
use linchpin_engine::contract::Right;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Instant};
use tokio::sync::{Mutex, Semaphore};

/// Rights to single objects that are asked for at a time.
const AT_A_TIME: usize = 4;

/// Asks for the rights of one identity.
pub(crate) struct Reviewer {
    /// What it may do to all objects of a kind, and when that was asked for.
    all: Mutex<BTreeMap<Right, (Instant, bool)>>,
    turns: Semaphore,
}

impl Default for Reviewer {
    fn default() -> Self {
        Self { all: Mutex::default(), turns: Semaphore::new(AT_A_TIME) }
    }
}

impl Reviewer {
    /// Whether the identity of `client` has the right. Answers to questions that were asked before `since` do not count.
    pub(crate) async fn may(
        &self,
        client: &Client,
        right: &Right,
        since: Instant,
    ) -> Result<bool, CallError> {
        if right.name.is_some() && self.may_all(client, right, since).await? {
            return Ok(true);
        }
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await.ok();
        may(client, right).await
    }

    async fn may_all(&self, client: &Client, right: &Right, since: Instant) -> Result<bool, CallError> {
        let right = Right { name: None, ..right.clone() };
        // Held while it is asked: a caller that comes meanwhile gets the same answer.
        let mut known = self.all.lock().await;
        if let Some((_, allowed)) = known.get(&right).filter(|(asked, _)| *asked >= since) {
            return Ok(*allowed);
        }
        let asked = Instant::now();
        let allowed = may(client, &right).await?;
        known.insert(right, (asked, allowed));
        Ok(allowed)
    }
}

/// Whether the identity of `client` has the right.
pub(crate) async fn may(client: &Client, right: &Right) -> Result<bool, CallError> {
    let url = ApiUrl::new("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
    let request = call::send_json(Method::POST, &url, "application/json", &review(right))?;
    let answer: Value = call::call(client, request).await?.read()?;
    Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
}

fn review(right: &Right) -> Value {
    let mut attributes = json!({"verb": right.verb, "group": right.group, "resource": right.resource});
    for (key, value) in
        [("subresource", &right.subresource), ("namespace", &right.namespace), ("name", &right.name)]
    {
        if let Some(value) = value {
            attributes[key] = json!(value);
        }
    }
    json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_asks_for_no_more_than_the_right() {
        let right = Right {
            verb: "create".into(),
            group: String::new(),
            resource: "pods".into(),
            subresource: Some("exec".into()),
            namespace: Some("shop".into()),
            name: None,
        };
        assert_eq!(
            review(&right)["spec"]["resourceAttributes"],
            json!({"verb": "create", "group": "", "resource": "pods", "subresource": "exec", "namespace": "shop"})
        );
    }
}
