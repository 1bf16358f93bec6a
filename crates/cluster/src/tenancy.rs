//! Which command makes a namespace a tenant: the one line that people run when the operator may not act there.
//!
//! The operator asks the API server once who it is, so that the line is right for a ServiceAccount in a Pod and for a user
//! with a kubeconfig. Called by the hub's sessions.

use crate::oneself::{self, Oneself};
use kube::Client;
use tokio::sync::OnceCell;

/// Who the operator is in one cluster.
pub(crate) struct Tenancy {
    client: Client,
    oneself: OnceCell<Oneself>,
}

impl Tenancy {
    /// Nothing is asked yet.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, oneself: OnceCell::new() }
    }

    /// The command that lets the operator act for ServiceAccounts of `namespace`.
    pub(crate) async fn remedy(&self, namespace: &str, role: &str) -> String {
        let oneself = self.oneself.get_or_try_init(|| oneself::ask(&self.client)).await;
        binding(namespace, role, oneself.ok().map(|oneself| oneself.user.as_str()))
    }
}

/// The whole command; who is bound stays open where the server did not say who we are.
fn binding(namespace: &str, role: &str, user: Option<&str>) -> String {
    let account = user.and_then(|user| user.strip_prefix("system:serviceaccount:"));
    let subject = match (account, user) {
        (Some(account), _) => format!("--serviceaccount={account}"),
        (None, Some(user)) if !user.is_empty() => format!("--user={user}"),
        _ => "--serviceaccount=<namespace>:<name of the operator>".to_owned(),
    };
    format!("kubectl create rolebinding {role} -n {namespace} --clusterrole={role} {subject}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_operator_as_the_server_knows_it() {
        let line = |user| binding("shop", "linchpin-tenant", user);
        assert_eq!(
            line(Some("system:serviceaccount:linchpin-system:linchpin")),
            "kubectl create rolebinding linchpin-tenant -n shop --clusterrole=linchpin-tenant \
             --serviceaccount=linchpin-system:linchpin"
        );
        assert!(line(Some("ann")).ends_with(" --user=ann"));
        assert!(line(None).ends_with("<name of the operator>"));
    }
}
