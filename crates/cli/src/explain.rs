//! `linchpin explain KIND/NAME`: why an object of ours does not go on, or who waits for an object of others.
//!
//! The first line is the whole answer; the chain to each root cause follows, a step a line, with how long it has been
//! so. Where rights are missing, it says what to run. Exit code 0 when there was an answer, also a bad one; 1 when
//! there is no such object.

use std::{fmt::Write as _, process::ExitCode};

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use linchpin_api::{
    Common, Status,
    status::{ActionStatus, DependencyStatus},
};
use linchpin_engine::graph::{Graph, Node, explain};
use linchpin_view::{Known, State};
use linchpin_words::{
    GroupKind, KindWord, ObjectRef, Reason,
    reference::{Reference, built_in},
};

use crate::{
    cli::Usage,
    live::{Connection, Live, standing},
    operator::block_on,
    rbac::kinds::plural_of,
};

const GROUP: &str = "tools.kubestellar.io";

/// Say in one line why something waits, then the chain to the root cause.
#[derive(Debug, Args)]
pub(crate) struct ExplainCommand {
    /// rd/NAME (ResourceDependency), dg/NAME (DependencyGroup), or any object such as configmap/NAME: who waits for it?
    #[arg(value_name = "KIND/NAME")]
    object: String,
    /// Its namespace [default: the context's].
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// Checks that the object is written as objects are.
pub(crate) fn reference(command: &ExplainCommand) -> Result<Reference, Usage> {
    Reference::parse(&command.object).map_err(|error| Usage(error.to_string()))
}

/// Answers.
pub(crate) fn run(command: &ExplainCommand, reference: &Reference) -> Result<ExitCode> {
    let (live, namespace) = block_on(async {
        let (client, default) = command.connection.open().await?;
        let namespace = command.namespace.clone().unwrap_or(default);
        anyhow::Ok((Live::read(&client, &namespace).await?, namespace))
    })??;
    let name = reference.name.clone().unwrap_or_default();
    let now = Timestamp::now();
    let told = match ours(&reference.word) {
        Some(kind) => {
            let node = Node::here(ObjectRef::namespaced(GroupKind::new(GROUP, kind), &namespace, &name));
            match subject(&live, kind, &namespace, &name) {
                Some(subject) => about_ours(&live.graph(), &node, &subject, now),
                None => bail!("there is no {kind} {name} in namespace {namespace}"),
            }
        }
        None => match about_others(&live.graph(), reference, &namespace, now) {
            Some(told) => told,
            None => {
                bail!("no object of ours waits for {} in namespace {namespace}, or makes it", command.object)
            }
        },
    };
    print!("{told}");
    Ok(ExitCode::SUCCESS)
}

/// The kind of ours that a word means.
fn ours(word: &KindWord) -> Option<&'static str> {
    if word.group.as_deref().is_some_and(|group| group != GROUP) {
        return None;
    }
    match word.word.as_str() {
        "rd" | "resdep" | "resourcedependency" | "resourcedependencies" => Some("ResourceDependency"),
        "dg" | "depgroup" | "dependencygroup" | "dependencygroups" => Some("DependencyGroup"),
        _ => None,
    }
}

/// What is looked at of an object of ours.
struct Subject<'a> {
    common: &'a Common,
    status: Option<&'a Status>,
}

fn subject<'a>(live: &'a Live, kind: &str, namespace: &str, name: &str) -> Option<Subject<'a>> {
    let place = (namespace.to_owned(), name.to_owned());
    if kind == "ResourceDependency" {
        let object = live.resource_dependencies.get(&place)?;
        Some(Subject { common: &object.spec.common, status: object.status.as_ref() })
    } else {
        let object = live.dependency_groups.get(&place)?;
        Some(Subject { common: &object.spec.common, status: object.status.as_ref() })
    }
}

fn about_ours(graph: &Graph, node: &Node, subject: &Subject<'_>, now: Timestamp) -> String {
    let Known { state, detail, since, .. } = standing(subject.status);
    let detail = explain::plain(&detail);
    let for_so_long = since.map_or_else(String::new, |since| format!(", for {}", explain::age(since, now)));
    if state == State::Ready {
        return format!("{node} is ready: {detail}{for_so_long}\n");
    }
    let causes = graph.root_causes(node, &|_| true);
    let mut told = if causes.chains.is_empty() {
        format!("{node}: {detail}{for_so_long}\n")
    } else {
        format!("{}\n", explain::answer(node, &causes))
    };
    for chain in &causes.chains {
        told.push('\n');
        for line in explain::lines(chain, Some(now)) {
            let _ = writeln!(told, "{line}");
        }
    }
    if causes.more > 0 {
        let _ = writeln!(told, "\nand {} more causes", causes.more);
    }
    let bad: Vec<&ActionStatus> = actions(subject.status)
        .filter(|action| ["Failed", "Unknown", "Running"].contains(&action.state.as_str()))
        .collect();
    if !bad.is_empty() {
        told.push('\n');
    }
    for action in bad {
        let age = explain::age(action.since.into(), now);
        let ActionStatus { name, state, reason, message, .. } = action;
        let _ = writeln!(told, "action {name}: {state}, {reason}: {}, for {age}", explain::plain(message));
    }
    if lacks_rights(subject.status) {
        told.push_str(&advice(node, subject.common));
    }
    told
}

fn actions(status: Option<&Status>) -> impl Iterator<Item = &ActionStatus> {
    let groups = status.into_iter().flat_map(|status| &status.groups).flat_map(|group| &group.actions);
    status.into_iter().flat_map(|status| &status.actions).chain(groups)
}

fn dependencies(status: Option<&Status>) -> impl Iterator<Item = &DependencyStatus> {
    let groups = status.into_iter().flat_map(|status| &status.groups).flat_map(|group| &group.dependencies);
    status.into_iter().flat_map(|status| &status.dependencies).chain(groups)
}

fn lacks_rights(status: Option<&Status>) -> bool {
    let blockers = status.into_iter().flat_map(|status| &status.blocked_by).map(|blocker| &blocker.reason);
    let entries = actions(status).map(|action| &action.reason);
    let waits = dependencies(status).filter(|entry| !entry.met).map(|entry| &entry.reason);
    let conditions = status.into_iter().flat_map(|status| &status.conditions).map(|one| &one.reason);
    let missing = [Reason::Forbidden.as_str(), Reason::MissingRights.as_str()];
    blockers.chain(entries).chain(waits).chain(conditions).any(|reason| missing.contains(&reason.as_str()))
}

/// What to run when rights are missing. The object itself is asked for, so that no file has to be found.
fn advice(node: &Node, common: &Common) -> String {
    let account = common.service_account_name.as_deref().unwrap_or("default");
    let namespace = node.object.namespace.as_deref().unwrap_or_default();
    let (kind, name) = (node.object.kind.kind.to_ascii_lowercase(), &node.object.name);
    format!(
        "\nServiceAccount {namespace}/{account} lacks rights. This gives it what {kind}/{name} needs, and no more:\n\n  \
         kubectl get {kind} {name} -n {namespace} -o yaml | linchpin rbac -f - | kubectl apply -f -\n\n\
         With the manifest at hand: linchpin rbac -f FILE | kubectl apply -f -\n"
    )
}

/// Who waits for an object that is none of ours, and what becomes of it.
fn about_others(graph: &Graph, reference: &Reference, namespace: &str, now: Timestamp) -> Option<String> {
    let node = graph.nodes().find(|node| is_meant(node, reference, namespace))?.clone();
    let impact = graph.impact(&node);
    let waiting: Vec<String> = impact
        .iter()
        .filter(|dependent| dependent.held && dependent.node.object.kind.group == GROUP)
        .map(|dependent| match dependent.distance {
            1 => dependent.node.to_string(),
            _ => format!("{} (through others)", dependent.node),
        })
        .collect();
    let causes = graph.root_causes(&node, &|_| true);
    let mut told = match (waiting.as_slice(), causes.chains.is_empty()) {
        ([], _) => format!("nothing waits for {node} now\n"),
        ([one], true) => format!("{one} waits for {node}\n"),
        (several, true) => format!("{} objects wait for {node}\n", several.len()),
        (_, false) => format!("{}\n", explain::answer(&node, &causes)),
    };
    for chain in &causes.chains {
        told.push('\n');
        for line in explain::lines(chain, Some(now)) {
            let _ = writeln!(told, "{line}");
        }
    }
    let said_already = causes.chains.is_empty() && waiting.len() == 1;
    if !waiting.is_empty() && !said_already {
        let _ = writeln!(told, "\nheld up by it:");
        for one in &waiting {
            let _ = writeln!(told, "  {one}");
        }
    }
    Some(told)
}

fn is_meant(node: &Node, reference: &Reference, namespace: &str) -> bool {
    let ObjectRef { kind, namespace: place, name } = &*node.object;
    let word = &reference.word;
    let same_kind = if let Some(known) = built_in(word) {
        known.gvk().group_kind() == *kind
    } else {
        let kind_word = kind.kind.to_ascii_lowercase();
        word.group.as_ref().is_none_or(|group| *group == kind.group)
            && (word.word == kind_word || word.word == plural_of(&kind_word))
    };
    same_kind
        && node.part.is_none()
        && reference.name.as_ref() == Some(name)
        && place.as_deref().is_none_or(|place| place == namespace)
}
