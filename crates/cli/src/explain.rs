//! `linchpin explain KIND/NAME`: why an object of ours does not go on, or who waits for an object of others.
//!
//! The first line is the whole answer; the chain to each root cause follows, a step a line, with how long it has been
//! so. Where rights are missing, it says what to run. Exit code 0 when there was an answer, also a bad one; 1 when
//! there is no such object.

use std::{collections::BTreeSet, fmt::Write as _, process::ExitCode};

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use linchpin_api::{Common, Trouble};
use linchpin_doors::{Registry, registry::View};
use linchpin_engine::graph::{Graph, Node, explain};
use linchpin_view::{Known, State};
use linchpin_words::{
    ObjectRef, Reason,
    reference::{Reference, built_in},
};

use crate::{
    cli::Usage,
    live::{Asked, Connection, Live, standing},
    operator::block_on,
    rbac::kinds::plural_of,
};

/// Say in one line why something waits, then the chain to the root cause.
#[derive(Debug, Args)]
pub(crate) struct ExplainCommand {
    /// rd/NAME (ResourceDependency), dg/NAME (DependencyGroup), ab/NAME (AppBundle), or any object such as
    /// configmap/NAME: who waits for it?
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
pub(crate) fn run(command: &ExplainCommand, reference: &Reference, kinds: &Registry) -> Result<ExitCode> {
    let (live, namespace) = block_on(async {
        let (client, default) = command.connection.open().await?;
        let namespace = command.namespace.clone().unwrap_or(default);
        anyhow::Ok((Live::read(&client, &namespace, kinds).await?, namespace))
    })??;
    let name = reference.name.clone().unwrap_or_default();
    let now = Timestamp::now();
    let graph = live.graph();
    let told = match kinds.called(&reference.word).map(|kind| kind.names().gvk.group_kind()) {
        Some(kind) => {
            let node = Node::here(ObjectRef::namespaced(kind.clone(), &namespace, &name));
            match (live.find(&node), live.lacks(&kind)) {
                (Some(object), _) => about_ours(&graph, &node, object, now),
                (None, Some(why)) => bail!("{why}"),
                (None, None) => bail!("there is no {} {name} in namespace {namespace}", kind.kind),
            }
        }
        None => match about_others(&graph, reference, &namespace, now) {
            Some(told) => told,
            None => {
                bail!("no object of ours waits for {} in namespace {namespace}, or makes it", command.object)
            }
        },
    };
    print!("{told}");
    if let Some(gaps) = live.gaps(Asked::Here) {
        eprintln!("linchpin: {gaps}");
    }
    Ok(ExitCode::SUCCESS)
}

fn about_ours(graph: &Graph, node: &Node, object: &dyn View, now: Timestamp) -> String {
    let Known { state, detail, since, .. } = standing(object.said());
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
    let troubles = object.troubles();
    if !troubles.is_empty() {
        told.push('\n');
    }
    for Trouble { what, state, reason, message, since } in troubles {
        let age =
            since.map_or_else(String::new, |since| format!(", for {}", explain::age(since.into(), now)));
        let _ = writeln!(told, "{what}: {state}, {reason}: {}{age}", explain::plain(message));
    }
    let missing = [Reason::Forbidden.as_str(), Reason::MissingRights.as_str()];
    if object.reasons().iter().any(|reason| missing.contains(reason)) {
        told.push_str(&advice(node, object.common()));
    }
    told
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
    let ours: BTreeSet<&Node> = graph.owners().into_iter().collect();
    let waiting: Vec<String> = impact
        .iter()
        .filter(|dependent| {
            dependent.held && dependent.node.batch == 0 && ours.contains(&dependent.node.whole())
        })
        .map(|dependent| match dependent.distance {
            1 => dependent.node.to_string(),
            _ => format!("{} (through others)", dependent.node),
        })
        .collect();
    let causes = graph.root_causes(&node, &|_| true);
    let mut told = match (waiting.as_slice(), causes.chains.is_empty()) {
        ([], true) => format!("nothing waits for {node} now\n"),
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
