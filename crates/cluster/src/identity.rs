//! Who acts: users' `ServiceAccounts` by impersonation, and the operator itself for its own affairs.
//!
//! Everything that a user directs is done as an [`Identity`], which can only be made from a namespace, a valid name
//! and the observation of a live ServiceAccount of that name; there is no default and no way back to the operator's
//! own rights. The operator's own client is another type ([`OperatorClient`]), used for our kinds, leases, events,
//! access reviews and for the metadata of `CustomResourceDefinitions`, `APIServices`, Namespaces and `ServiceAccounts`.

use crate::transport::{Impersonation, Transport};
use kube::Client;
use linchpin_engine::contract::Observed;
use linchpin_words::{limits, text};
use std::fmt;

/// Which namespaces' objects may act at all.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The operator's own namespace, whose `ServiceAccounts` nobody may borrow.
    pub operator_namespace: Option<String>,
    /// Whether objects in `kube-*` and in the operator's own namespace are served all the same.
    pub allow_system_namespaces: bool,
    /// The ClusterRole that makes a namespace a tenant when it is bound to the operator there.
    pub tenant_role: String,
}

/// Why nobody may act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// A name that no ServiceAccount can have.
    #[error("{0} is no name of a {1}: use lower-case letters, digits and '-'")]
    Name(String, &'static str),
    /// The namespace is not served.
    #[error(
        "objects in namespace {0} are not served: start the operator with --allow-system-namespaces if they should be"
    )]
    Refused(String),
    /// The operator may not act for ServiceAccounts of the namespace.
    #[error("the operator may not act for ServiceAccounts of namespace {namespace}: {remedy}")]
    NotATenant {
        /// The namespace.
        namespace: String,
        /// The command that makes it a tenant.
        remedy: String,
    },
    /// There is no such ServiceAccount.
    #[error(
        "ServiceAccount {namespace}/{name} does not exist: create it or name another one in serviceAccountName"
    )]
    Gone {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// A ServiceAccount that was seen alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    namespace: String,
    name: String,
    impersonation: Impersonation,
}

impl Identity {
    /// Checks the names alone: what can be said before anything was observed.
    pub fn check(namespace: &str, name: &str, policy: &Policy) -> Result<(), IdentityError> {
        if !is_label(namespace) {
            return Err(IdentityError::Name(text::quote(namespace), "namespace"));
        }
        // ServiceAccounts may have dots in their names, but no colon: it would name another namespace's account.
        if name.len() > limits::NAME || !name.split('.').all(is_label) {
            return Err(IdentityError::Name(text::quote(name), "ServiceAccount"));
        }
        let own = policy.operator_namespace.as_deref() == Some(namespace);
        if (own || namespace.starts_with("kube-")) && !policy.allow_system_namespaces {
            return Err(IdentityError::Refused(namespace.to_owned()));
        }
        Ok(())
    }

    /// The identity, given what was observed of the ServiceAccount of that name.
    pub fn resolve(
        namespace: &str,
        name: &str,
        policy: &Policy,
        observed: &Observed,
    ) -> Result<Self, IdentityError> {
        Self::check(namespace, name, policy)?;
        let alive = observed.items.iter().any(|account| {
            account.kind.kind == "ServiceAccount"
                && account.namespace.as_deref() == Some(namespace)
                && account.name == name
                && !account.deleting
        });
        if !alive {
            return Err(IdentityError::Gone { namespace: namespace.to_owned(), name: name.to_owned() });
        }
        let impersonation = Impersonation::service_account(namespace, name)
            .map_err(|_| IdentityError::Name(text::quote(name), "ServiceAccount"))?;
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned(), impersonation })
    }

    /// A client for watches as this identity.
    pub(crate) fn watches(&self, transport: &Transport) -> Client {
        transport.watches(Some(&self.impersonation))
    }

    /// A client for writes as this identity.
    pub(crate) fn writes(&self, transport: &Transport) -> Client {
        transport.writes(Some(&self.impersonation))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceAccount {}/{}", self.namespace, self.name)
    }
}

/// The operator acting for itself.
#[derive(Clone)]
pub struct OperatorClient {
    watches: Client,
    writes: Client,
}

impl OperatorClient {
    /// The operator's own clients over a transport.
    pub fn new(transport: &Transport) -> Self {
        Self { watches: transport.watches(None), writes: transport.writes(None) }
    }

    /// For lists and watches of our own kinds, and of what only the operator may know.
    pub fn watches(&self) -> &Client {
        &self.watches
    }

    /// For status, finalizers, leases, events and access reviews.
    pub fn writes(&self) -> &Client {
        &self.writes
    }
}

/// Whether a text is a DNS label.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= limits::LABEL
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_engine::contract::Projection;
    use linchpin_words::Gvk;
    use serde_json::Value;
    use std::sync::Arc;

    fn account(namespace: &str, name: &str, deleting: bool) -> Observed {
        let projection = Projection {
            kind: Gvk::new("", "v1", "ServiceAccount"),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
            uid: "u".to_owned(),
            generation: 0,
            version: 1,
            deleting,
            content: Value::Null,
        };
        Observed { items: vec![Arc::new(projection)], as_of: 1, live: true, looked: None }
    }

    #[test]
    fn a_live_service_account_is_an_identity() {
        let identity =
            Identity::resolve("shop", "builder", &Policy::default(), &account("shop", "builder", false));
        assert_eq!(identity.unwrap().to_string(), "ServiceAccount shop/builder");
    }

    #[test]
    fn without_a_live_service_account_there_is_no_identity() {
        let policy = Policy::default();
        for observed in
            [Observed::default(), account("shop", "builder", true), account("other", "builder", false)]
        {
            let error = Identity::resolve("shop", "builder", &policy, &observed).unwrap_err();
            assert!(matches!(error, IdentityError::Gone { .. }), "{error}");
        }
    }

    #[test]
    fn a_name_cannot_smuggle_in_another_account() {
        let policy = Policy::default();
        let bad = [
            "",
            " ",
            "system:serviceaccount:kube-system:x",
            "a:b",
            "A",
            "a/b",
            "a\nb",
            "-a",
            "a..b",
            "a\u{e9}",
        ];
        for name in bad {
            assert!(Identity::check("shop", name, &policy).is_err(), "{name:?}");
            assert!(Identity::check(name, "default", &policy).is_err(), "{name:?}");
        }
        assert!(Identity::check("shop", "a.b-c", &policy).is_ok());
        assert!(Identity::check("a.b", "default", &policy).is_err());
    }

    #[test]
    fn system_namespaces_act_only_where_that_is_allowed() {
        let mut policy = Policy { operator_namespace: Some("linchpin".into()), ..Policy::default() };
        for namespace in ["kube-system", "kube-public", "linchpin"] {
            let error = Identity::check(namespace, "default", &policy).unwrap_err();
            assert_eq!(error, IdentityError::Refused(namespace.into()));
        }
        policy.allow_system_namespaces = true;
        assert!(Identity::check("kube-system", "default", &policy).is_ok());
    }
}
