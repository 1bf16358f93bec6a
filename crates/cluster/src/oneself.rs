//! Who we are, as the API server knows us (`SelfSubjectReview`, which everybody may ask).
//!
//! A ServiceAccount owns what is written beside it for the process alone, the Lease and the Secret of the webhooks: when an
//! installation is taken away, the garbage collector takes these with it, and no right is needed for that.

use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use serde_json::{Value, json};

use crate::call::{self, ApiUrl, CallError};

/// Who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Oneself {
    /// The name of the user.
    pub(crate) user: String,
    uid: String,
}

/// Asks the API server.
pub(crate) async fn ask(client: &Client) -> Result<Oneself, CallError> {
    let url = ApiUrl::new("/apis/authentication.k8s.io/v1/selfsubjectreviews");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let request = call::send_json(Method::POST, &url, "application/json", &review)?;
    let answer: Value = call::call(client, request).await?.read()?;
    let text = |path: &str| answer.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Oneself { user: text("/status/userInfo/username"), uid: text("/status/userInfo/uid") })
}

/// The owner of what is ours alone in a namespace: our ServiceAccount, if it is there and the server says so.
pub async fn owner_in(client: &Client, namespace: &str) -> Option<OwnerReference> {
    ask(client).await.ok()?.owner_in(namespace)
}

impl Oneself {
    fn owner_in(&self, namespace: &str) -> Option<OwnerReference> {
        let (place, name) = self.user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
        (place == namespace && !self.uid.is_empty()).then(|| OwnerReference {
            api_version: "v1".to_owned(),
            kind: "ServiceAccount".to_owned(),
            name: name.to_owned(),
            uid: self.uid.clone(),
            block_owner_deletion: Some(false),
            controller: None,
        })
    }
}

/// The owners of an object with this one among them, in the place of an account of that name that is gone.
pub(crate) fn owned(
    before: Option<Vec<OwnerReference>>,
    owner: Option<&OwnerReference>,
) -> Option<Vec<OwnerReference>> {
    let Some(owner) = owner else { return before };
    let mut all = before.unwrap_or_default();
    all.retain(|one| (&one.kind, &one.name) != (&owner.kind, &owner.name));
    all.push(owner.clone());
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(user: &str, uid: &str, namespace: &str) -> Option<OwnerReference> {
        Oneself { user: user.to_owned(), uid: uid.to_owned() }.owner_in(namespace)
    }

    #[test]
    fn a_service_account_owns_what_is_beside_it_and_nobody_else_does() {
        let account = "system:serviceaccount:linchpin-system:linchpin";
        let owner_here = owner(account, "u1", "linchpin-system").unwrap();
        assert_eq!((owner_here.name.as_str(), owner_here.uid.as_str()), ("linchpin", "u1"));
        assert_eq!(owner(account, "u1", "elsewhere"), None, "an owner must be in the same namespace");
        assert_eq!(owner(account, "", "linchpin-system"), None);
        assert_eq!(owner("ann", "u1", "linchpin-system"), None);
    }

    #[test]
    fn an_account_takes_the_place_of_one_of_its_name_that_is_gone() {
        let of = |uid: &str, name: &str| OwnerReference {
            kind: "ServiceAccount".to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        };
        let before = Some(vec![of("1", "linchpin"), of("2", "other")]);
        assert_eq!(
            owned(before.clone(), Some(&of("3", "linchpin"))),
            Some(vec![of("2", "other"), of("3", "linchpin")])
        );
        assert_eq!(owned(before.clone(), None), before);
    }
}
