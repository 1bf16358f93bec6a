//! Acting as somebody else: one header on every request of a client.
//!
//! For a ServiceAccount only the user is sent; the server adds its groups, which is what lets the right to
//! impersonate be given per namespace. Groups are for remote clusters, where the kubeconfig's owner names them.

use http::{HeaderName, HeaderValue, Request};
use std::task::{Context, Poll};
use tower::Service;

pub(super) const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// Whom to act as. Made once, used by any number of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonation {
    user: HeaderValue,
    groups: Vec<HeaderValue>,
}

/// A user or group name that no HTTP header can carry.
#[derive(Debug, thiserror::Error)]
#[error("cannot act as {0:?}: the name is empty or has characters that a request header cannot carry")]
pub struct UnsendableName(String);

impl Impersonation {
    /// Acts as a ServiceAccount.
    pub fn service_account(namespace: &str, name: &str) -> Result<Self, UnsendableName> {
        Self::user(&format!("system:serviceaccount:{namespace}:{name}"), &[])
    }

    /// Acts as any user, with groups.
    pub fn user(user: &str, groups: &[String]) -> Result<Self, UnsendableName> {
        // The server reads an empty name as "no impersonation": such a request would be made as ourselves.
        let sendable = |text: &str| match HeaderValue::from_str(text) {
            Ok(value) if !text.trim().is_empty() => Ok(value),
            _ => Err(UnsendableName(text.to_owned())),
        };
        Ok(Self {
            user: sendable(user)?,
            groups: groups.iter().map(|group| sendable(group)).collect::<Result<_, _>>()?,
        })
    }

    /// Puts the headers on every request of `inner`, instead of those the configuration may have set.
    pub(super) fn layer<S>(&self, inner: S) -> ImpersonateService<S> {
        ImpersonateService { inner, identity: self.clone() }
    }
}

/// A service whose requests are made as somebody else.
#[derive(Clone)]
pub(super) struct ImpersonateService<S> {
    inner: S,
    identity: Impersonation,
}

impl<S, B> Service<Request<B>> for ImpersonateService<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        let headers = request.headers_mut();
        headers.insert(USER, self.identity.user.clone());
        headers.remove(GROUP);
        for group in &self.identity.groups {
            headers.append(GROUP, group.clone());
        }
        self.inner.call(request)
    }
}
