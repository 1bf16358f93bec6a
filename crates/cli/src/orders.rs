//! Orders to objects of ours: run again, let a gate pass, look again, suspend, resume, roll back.
//!
//! Each is one merge patch, made with the user's own rights, and printed as the kubectl line that does the same:
//! nothing here can do what kubectl could not. What is ordered is checked against the object first, so that a misspelt
//! step or gate is reported at once.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use kube::{
    Client,
    api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use linchpin_doors::Registry;
use linchpin_words::{keys, similar};
use serde_json::{Value, json};

use crate::{
    asked::{AddressableKind, ObjectArgument, RequestedObject},
    cli::UsageError,
    live::Connection,
    operator::awaited,
    output::{harmless, shell_quoted},
};

/// What every order has.
#[derive(Debug, Args)]
pub(crate) struct OrderCommand {
    #[command(flatten)]
    object: ObjectArgument,
    /// Print the kubectl line and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Run the actions of an object again.
#[derive(Debug, Args)]
pub(crate) struct RerunCommand {
    /// One action, by its name in status; all if left out.
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
    #[command(flatten)]
    order: OrderCommand,
}

/// Let a gate pass by hand, for this generation of the object.
#[derive(Debug, Args)]
pub(crate) struct ProceedCommand {
    /// A dependency, by its name in status; may be repeated. Needed where several are not met.
    #[arg(long, value_name = "NAME")]
    gate: Vec<String>,
    #[command(flatten)]
    order: OrderCommand,
}

/// Go back to an earlier revision of an AppBundle, or to its spec again.
#[derive(Debug, Args)]
pub(crate) struct RollbackCommand {
    /// The revision to deploy.
    #[arg(long, value_name = "REVISION", required_unless_present = "undo", conflicts_with = "undo",
          value_parser = clap::value_parser!(i64).range(1..))]
    to: Option<i64>,
    /// Deploy the spec again.
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    order: OrderCommand,
}

/// An order.
pub(crate) enum ManualOrder<'a> {
    /// Run again.
    Rerun(&'a RerunCommand),
    /// Let gates pass.
    Proceed(&'a ProceedCommand),
    /// Look again.
    Refresh(&'a OrderCommand),
    /// Start nothing.
    Suspend(&'a OrderCommand),
    /// Go on.
    Resume(&'a OrderCommand),
    /// Deploy another revision.
    Rollback(&'a RollbackCommand),
}

impl ManualOrder<'_> {
    fn common(&self) -> &OrderCommand {
        match self {
            Self::Rerun(RerunCommand { order, .. })
            | Self::Proceed(ProceedCommand { order, .. })
            | Self::Rollback(RollbackCommand { order, .. }) => order,
            Self::Refresh(order) | Self::Suspend(order) | Self::Resume(order) => order,
        }
    }

    /// The object and its kind, or why the command line makes no sense.
    pub(crate) fn object(&self, kinds: &Registry) -> Result<(RequestedObject, AddressableKind), UsageError> {
        let asked = self.common().object.read()?;
        if let Some(part) = &asked.part {
            return Err(UsageError(format!("orders are given to whole objects, not to part {part} of one")));
        }
        let kind = asked.must_be_ours(kinds)?;
        if matches!(self, Self::Rollback(_)) && !kind.rolls_back {
            return Err(UsageError(format!("a {} has no revisions to go back to", kind.gvk.kind)));
        }
        if matches!(self, Self::Suspend(_) | Self::Resume(_)) && !kind.suspends {
            return Err(UsageError(format!("a {} cannot be suspended", kind.gvk.kind)));
        }
        Ok((asked, kind))
    }

    /// What is patched, and what that comes to.
    fn change(&self, object: &Value, now: &str) -> Result<Change> {
        let said = |text: &str| text.to_owned();
        Ok(match self {
            Self::Rerun(RerunCommand { step, .. }) => {
                let names = names(object, &ACTIONS);
                let step = match step {
                    Some(step) => known(step, &names, "action")?,
                    None => "all",
                };
                let what = if step == "all" {
                    said("runs all its actions again")
                } else {
                    format!("runs {step} again")
                };
                Change::Annotation(keys::RERUN, format!("{step}@{now}"), what)
            }
            Self::Proceed(ProceedCommand { gate, .. }) => {
                let gates = gates(object, gate)?;
                let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
                let value: Vec<String> = gates.iter().map(|gate| format!("{gate}@{generation}")).collect();
                let value = value.join(",");
                let what = if object["metadata"]["annotations"][keys::PROCEED] == value.as_str() {
                    format!(
                        "has this order already; if an earlier revision used it up, take it away first, with {}-",
                        keys::PROCEED
                    )
                } else {
                    format!("goes on without {} (generation {generation})", gates.join(", "))
                };
                Change::Annotation(keys::PROCEED, value, what)
            }
            Self::Refresh(_) => {
                Change::Annotation(keys::REQUESTED_AT, now.to_owned(), said("is looked at afresh"))
            }
            Self::Suspend(_) => Change::Spec("suspend", json!(true), said("is suspended: nothing starts")),
            Self::Resume(_) => Change::Spec("suspend", Value::Null, said("goes on")),
            Self::Rollback(RollbackCommand { to: Some(revision), .. }) => {
                let what = format!("goes back to revision {revision}; its spec is not deployed until --undo");
                Change::Spec("rollback", json!(revision), what)
            }
            Self::Rollback(_) => Change::Spec("rollback", Value::Null, said("deploys its spec again")),
        })
    }
}

/// One change of one object.
#[derive(Debug, PartialEq)]
enum Change {
    /// An annotation, its value, and what that comes to.
    Annotation(&'static str, String, String),
    /// A field of the spec, its value (null takes it away), and what that comes to.
    Spec(&'static str, Value, String),
}

impl Change {
    fn patch(&self) -> Value {
        match self {
            Self::Annotation(key, value, _) => json!({"metadata": {"annotations": {*key: value}}}),
            Self::Spec(field, value, _) => json!({"spec": {*field: value}}),
        }
    }

    fn what(&self) -> &str {
        match self {
            Self::Annotation(_, _, what) | Self::Spec(_, _, what) => what,
        }
    }

    /// The same as a line to paste.
    fn kubectl(&self, kind: &AddressableKind, namespace: &str, name: &str) -> String {
        let place = if kind.namespaced { format!(" -n {namespace}") } else { String::new() };
        let place = format!("{} {name}{place}", kind.word());
        match self {
            Self::Annotation(key, value, _) => {
                let order = format!("{key}={value}");
                format!("kubectl annotate {place} --overwrite {}", shell_quoted(&order))
            }
            Self::Spec(..) => {
                format!("kubectl patch {place} --type merge -p {}", shell_quoted(&self.patch().to_string()))
            }
        }
    }
}

/// Gives the order.
pub(crate) fn run(
    order: &ManualOrder<'_>,
    asked: &RequestedObject,
    kind: &AddressableKind,
) -> Result<ExitCode> {
    let common = order.common();
    awaited(async {
        let (client, default) = common.connection.open().await?;
        let namespace = asked.namespace.clone().unwrap_or(default);
        let api = api(client.clone(), kind, &namespace);
        let name = asked.name();
        let place = if kind.namespaced { format!("{namespace}/") } else { String::new() };
        let what = format!("{} {place}{name}", kind.gvk.kind);
        let object = match api.get(name).await {
            Ok(object) => serde_json::to_value(object)?,
            Err(error) => return Err(error).with_context(|| format!("reading {what}")),
        };
        if let ManualOrder::Rollback(RollbackCommand { to: Some(revision), .. }) = order {
            is_kept(client, &namespace, name, *revision).await?;
        }
        let change = order.change(&object, &jiff::Timestamp::now().to_string());
        let change = change.with_context(|| what.clone())?;
        let line = change.kubectl(kind, &namespace, name);
        if common.dry_run {
            println!("{}", harmless(&line));
            return Ok(ExitCode::SUCCESS);
        }
        let parameters =
            PatchParams { field_manager: Some("linchpin-cli".to_owned()), ..PatchParams::default() };
        if let Err(error) = api.patch(name, &parameters, &Patch::Merge(change.patch())).await {
            return Err(error).with_context(|| format!("changing {what}"));
        }
        println!("{}", harmless(&format!("{what} {}\n  {line}", change.what())));
        Ok(ExitCode::SUCCESS)
    })?
}

fn api(client: Client, kind: &AddressableKind, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: kind.gvk.group.clone(),
        version: kind.gvk.version.clone(),
        api_version: kind.gvk.api_version(),
        kind: kind.gvk.kind.clone(),
        plural: kind.plural.clone(),
    };
    if kind.namespaced {
        Api::namespaced_with(client, namespace, &resource)
    } else {
        Api::all_with(client, &resource)
    }
}

/// Fails if a revision of a bundle is surely not there; a user who may not look finds out from the bundle's status.
async fn is_kept(client: Client, namespace: &str, bundle: &str, revision: i64) -> Result<()> {
    let kind = GroupVersionKind::gvk("app.example.com", "v1alpha1", "BundleRevision");
    let resource = ApiResource::from_gvk_with_plural(&kind, "bundlerevisions");
    let kept: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
    match kept.get_opt(&format!("{bundle}-{revision}")).await {
        Ok(None) => bail!(
            "AppBundle {namespace}/{bundle} has no revision {revision}: kubectl get bundlerevisions -n {namespace} lists those \
             that are kept"
        ),
        Ok(Some(_)) | Err(_) => Ok(()),
    }
}

/// Where statuses list what runs, and what is waited for: lists of entries with a `name`, below groups too.
const ACTIONS: [&[&str]; 3] = [&["actions"], &["groups", "actions"], &["groupStatuses", "componentStatuses"]];
const DEPENDENCIES: [&[&str]; 5] = [
    &["dependencies"],
    &["requires"],
    &["groups", "dependencies"],
    &["groupStatuses", "requires"],
    &["groupStatuses", "componentStatuses", "requires"],
];

/// An entry of a status with the name that orders call it by.
struct NamedEntry<'a> {
    name: String,
    value: &'a Value,
}

/// All entries of these lists; what is below a group is called `group/name`.
fn entries<'a>(object: &'a Value, lists: &[&[&str]]) -> Vec<NamedEntry<'a>> {
    let mut found = Vec::new();
    for path in lists {
        let mut level = vec![(String::new(), &object["status"])];
        for (depth, list) in path.iter().enumerate() {
            let last = depth + 1 == path.len();
            level = level
                .into_iter()
                .flat_map(|(prefix, parent)| {
                    let children = parent[*list].as_array().into_iter().flatten();
                    children.map(move |child| {
                        let name = child["name"].as_str().unwrap_or_default();
                        let slash = if prefix.is_empty() { "" } else { "/" };
                        (format!("{prefix}{slash}{name}"), child)
                    })
                })
                .collect();
            if last {
                found.extend(level.drain(..).map(|(name, value)| NamedEntry { name, value }));
            }
        }
    }
    found
}

fn names(object: &Value, lists: &[&[&str]]) -> Vec<String> {
    entries(object, lists).into_iter().map(|entry| entry.name).collect()
}

/// A name that the status knows, or which ones it does know.
fn known<'a>(word: &'a str, names: &[String], what: &str) -> Result<&'a str> {
    // A status that was not written yet knows nothing.
    if names.is_empty() || names.iter().any(|name| name == word) {
        return Ok(word);
    }
    let meant = similar::did_you_mean(word, names.iter().map(String::as_str));
    bail!("it has no {what} {word}{meant} (there are: {})", names.join(", "))
}

/// The gates that are to be passed.
fn gates(object: &Value, wanted: &[String]) -> Result<Vec<String>> {
    let all = entries(object, &DEPENDENCIES);
    let names: Vec<String> = all.iter().map(|entry| entry.name.clone()).collect();
    if !wanted.is_empty() {
        return wanted.iter().map(|gate| known(gate, &names, "dependency").map(str::to_owned)).collect();
    }
    let unmet: Vec<String> =
        all.into_iter().filter(|entry| entry.value["met"] == false).map(|entry| entry.name).collect();
    match unmet.as_slice() {
        [one] => Ok(vec![one.clone()]),
        [] => bail!("it waits for no dependency: there is no gate to pass"),
        several => bail!("it waits for several; say which with --gate: {}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({"metadata": {"generation": 4}, "status": {
            "dependencies": [{"name": "db", "met": false}, {"name": "cache", "met": true}],
            "actions": [{"name": "seed"}, {"name": "create:ConfigMap/x"}]}})
    }

    fn bundle() -> Value {
        json!({"metadata": {"generation": 1}, "status": {"requires": [{"name": "secret/key", "met": false}],
            "groupStatuses": [{"name": "app", "requires": [{"name": "g", "met": false}],
                "componentStatuses": [{"name": "web", "requires": [{"name": "c", "met": false}]}]}]}})
    }

    #[test]
    fn names_are_those_of_the_status() {
        assert_eq!(names(&object(), &ACTIONS), ["seed", "create:ConfigMap/x"]);
        assert_eq!(names(&bundle(), &ACTIONS), ["app/web"]);
        assert_eq!(names(&bundle(), &DEPENDENCIES), ["secret/key", "app/g", "app/web/c"]);
    }

    #[test]
    fn a_misspelt_step_is_told_what_there_is() {
        let names = names(&object(), &ACTIONS);
        assert_eq!(known("seed", &names, "action").unwrap(), "seed");
        assert_eq!(
            known("sede", &names, "action").unwrap_err().to_string(),
            "it has no action sede; did you mean seed? (there are: seed, create:ConfigMap/x)"
        );
        assert!(known("anything", &[], "action").is_ok(), "nobody has looked at it yet");
    }

    #[test]
    fn the_only_gate_needs_no_name() {
        assert_eq!(gates(&object(), &[]).unwrap(), ["db"]);
        assert_eq!(gates(&object(), &["cache".to_owned()]).unwrap(), ["cache"]);
        let several = gates(&bundle(), &[]).unwrap_err().to_string();
        assert_eq!(several, "it waits for several; say which with --gate: secret/key, app/g, app/web/c");
        let none = gates(&json!({}), &[]).unwrap_err().to_string();
        assert_eq!(none, "it waits for no dependency: there is no gate to pass");
    }
}
