//! `linchpin rbac --check`: which of the rights that manifests need are there, as the API server says.
//!
//! Asked for each account as a `SubjectAccessReview`; without the right to create those, as the account itself. Nothing is
//! concluded from roles.

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::{Context as _, Result, bail};
use http::Request;
use kube::Client;
use linchpin_doors::Registry;
use linchpin_engine::contract::Right;
use linchpin_operator::rights::{NAME, NAMESPACE};
use serde_json::{Value, json};

use super::{AccountName, NeededRight, Output, print_roles, roles::Grants};
use crate::{live::Connection, output, progress};

/// Asks, prints, and fails if a right is missing.
pub(super) async fn run(
    connection: &Connection,
    needs: &[NeededRight],
    output: Output,
    kinds: &Registry,
) -> Result<ExitCode> {
    let (client, _) = connection.open().await?;
    let mut asker = Asker { client, as_account: false };
    let answers = progress::shown("asking the cluster", asker.answers(needs)).await?;
    let accounts: BTreeSet<&AccountName> = needs.iter().map(|need| &need.account).collect();
    let mut unusable = 0;
    let mut grants = Grants::default();
    for account in accounts {
        let AccountState { there, usable } = asker.report(account).await?;
        unusable += usize::from(!usable);
        if there {
            grants.is_there(account.clone());
        }
    }
    for (need, there) in &answers {
        if *there {
            grants.has(&need.owner, &need.account, &need.right);
            continue;
        }
        grants.used_by(&need.account, &need.owner);
        grants.add(&need.owner, &need.account, &need.right);
    }
    if output == Output::Text {
        for (need, there) in &answers {
            let word = if *there { "ok     " } else { "missing" };
            let (namespace, name) = &need.account;
            let line =
                format!("{word}  ServiceAccount {namespace}/{name}  {}  for {}", need.right, need.owner);
            println!("{}", output::harmless(&line));
        }
    } else if !grants.is_empty() {
        print_roles(&grants.yaml(&[], kinds), output)?;
    }
    let missing = answers.iter().filter(|(_, there)| !there).count();
    match (unusable, missing) {
        (0, 0) => Ok(ExitCode::SUCCESS),
        (0, missing) => bail!("rights that are missing: {missing}"),
        (accounts, 0) => bail!("ServiceAccounts that cannot be used: {accounts}"),
        (accounts, missing) => {
            bail!("ServiceAccounts that cannot be used: {accounts}, rights that are missing: {missing}")
        }
    }
}

/// What is known of an account.
struct AccountState {
    /// Whether it was seen.
    there: bool,
    /// Whether nothing is known that keeps it from being used.
    usable: bool,
}

struct Asker {
    client: Client,
    /// Whether we ask as the accounts themselves, because we may not ask about them.
    as_account: bool,
}

impl Asker {
    /// Whether each right is there.
    async fn answers<'n>(&mut self, needs: &'n [NeededRight]) -> Result<Vec<(&'n NeededRight, bool)>> {
        let mut answers = Vec::new();
        for need in needs {
            answers.push((need, self.may(&need.account, &need.right).await?));
        }
        Ok(answers)
    }

    async fn may(&mut self, account: &AccountName, right: &Right) -> Result<bool> {
        if !self.as_account {
            let spec = subject(&user(account), &account.0, right);
            match self.review("SubjectAccessReview", "subjectaccessreviews", None, spec).await {
                Err(kube::Error::Api(status)) if status.code == 403 => self.as_account = true,
                answer => {
                    return answer.with_context(|| format!("asking whether {} may {right}", user(account)));
                }
            }
        }
        let spec = json!({"resourceAttributes": attributes(right)});
        let user = user(account);
        match self.review("SelfSubjectAccessReview", "selfsubjectaccessreviews", Some(&user), spec).await {
            Err(kube::Error::Api(status)) if status.code == 403 => bail!(
                "what {user} may do cannot be asked: you may neither create subjectaccessreviews.authorization.k8s.io \
                 nor impersonate it"
            ),
            answer => answer.with_context(|| format!("asking whether {user} may {right}")),
        }
    }

    async fn review(&self, kind: &str, plural: &str, actor: Option<&str>, spec: Value) -> kube::Result<bool> {
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
        let mut request = Request::post(format!("/apis/authorization.k8s.io/v1/{plural}"))
            .header("content-type", "application/json");
        if let Some(actor) = actor {
            request = request.header("impersonate-user", actor);
        }
        let request = request.body(body.to_string().into_bytes()).map_err(kube::Error::HttpError)?;
        let answer: Value = self.client.request(request).await?;
        Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
    }

    /// Says on standard error what else keeps the account from being used.
    async fn report(&self, account: &AccountName) -> Result<AccountState> {
        let (namespace, name) = account;
        let mut state = AccountState { there: false, usable: true };
        match self.account(namespace, name).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                output::note(&format!(
                    "ServiceAccount {namespace}/{name} does not exist: kubectl create serviceaccount {} -n {}",
                    output::shell_word(name),
                    output::shell_word(namespace)
                ));
                state.usable = false;
            }
            Err(kube::Error::Api(status)) if status.code == 403 => {
                output::note(&format!(
                    "whether ServiceAccount {namespace}/{name} exists is not known: you may not get it"
                ));
            }
            answer => {
                drop(answer.with_context(|| format!("reading ServiceAccount {namespace}/{name}"))?);
                state.there = true;
            }
        }
        let operator = (NAMESPACE.to_owned(), NAME.to_owned());
        let unknown = || output::note(&format!("whether namespace {namespace} is a tenant is not known"));
        if self.as_account || self.account(NAMESPACE, NAME).await.is_err() {
            unknown();
            return Ok(state);
        }
        let right = Right {
            verb: "impersonate".to_owned(),
            group: String::new(),
            resource: "serviceaccounts".to_owned(),
            subresource: None,
            namespace: Some(namespace.clone()),
            name: None,
        };
        let spec = subject(&user(&operator), NAMESPACE, &right);
        match self.review("SubjectAccessReview", "subjectaccessreviews", None, spec).await {
            Ok(true) => {}
            Ok(false) => {
                output::note(&format!(
                    "namespace {namespace} is not a tenant (NotATenant): {}",
                    tenant_line(namespace, NAME, NAMESPACE, NAME)
                ));
                state.usable = false;
            }
            Err(_) => unknown(),
        }
        Ok(state)
    }

    async fn account(&self, namespace: &str, name: &str) -> kube::Result<Value> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}");
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }
}

/// The command that makes a namespace a tenant of an installation: by its name, its namespace and its ServiceAccount.
pub(crate) fn tenant_line(namespace: &str, installation: &str, home: &str, account: &str) -> String {
    format!(
        "kubectl create rolebinding {installation}-tenant -n {} --clusterrole={installation}-tenant \
         --serviceaccount={home}:{account}",
        output::shell_word(namespace)
    )
}

fn user((namespace, name): &AccountName) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

fn subject(user: &str, namespace: &str, right: &Right) -> Value {
    let own = format!("system:serviceaccounts:{namespace}");
    json!({"user": user, "groups": ["system:serviceaccounts", own, "system:authenticated"],
        "resourceAttributes": attributes(right)})
}

fn attributes(right: &Right) -> Value {
    let mut found = json!({"verb": right.verb, "group": right.group, "resource": right.resource});
    for (field, value) in
        [("subresource", &right.subresource), ("namespace", &right.namespace), ("name", &right.name)]
    {
        if let Some(value) = value {
            found[field] = json!(value);
        }
    }
    found
}
