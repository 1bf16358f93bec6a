//! What an identity may do, asked of the server as that identity (`SelfSubjectAccessReview`).
//!
//! Called by the hub for [`Question::Right`](linchpin_engine::contract::Question) and before it widens a watch. The
//! answer is the server's; nothing is concluded from roles or names.

use crate::call::{self, CallError, Url};
use http::Method;
use kube::Client;
use linchpin_engine::contract::Right;
use serde_json::{Value, json};

/// Whether whoever `client` acts as has the right.
pub(crate) async fn may(client: &Client, right: &Right) -> Result<bool, CallError> {
    let url = Url::new("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
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
