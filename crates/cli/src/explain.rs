//! `linchpin explain KIND/NAME`: why an object does not go on, and who waits for it.
//!
//! The first line is the whole answer; the chain to each root cause follows, a step a line, with how long it has been
//! so, then the newest Events of the last object and a command to run next. Chains begin with what statuses say and go
//! on beyond our own objects with the rights of the user ([`linchpin_engine::descend`]). Exit code 0 when there was
//! an answer, also a bad one; 1 when there is no such object.

mod beyond;
mod consist;
mod document;
mod hints;
mod operators;

use std::{collections::BTreeSet, fmt::Write as _, process::ExitCode};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use linchpin_api::FailedPart;
use linchpin_doors::{Registry, registry::ObjectView};
use linchpin_engine::{
    descend::DescendAnswer,
    graph::{Causes, Chain, ChainEnd, ChainLink, Graph, Node, Relation, explain},
};
use linchpin_view::{NodeFacts, PictureState};
use linchpin_words::{ObjectRef, Reason};
use serde_json::Value;

use self::{beyond::LongChain, document::EventEntry, hints::Hint};
use crate::{
    asked::{self, ObjectArgument, RequestedObject as AskedObject},
    cli::UsageError,
    cluster_reader::{ClusterReader, LookResult},
    live::{Connection, LiveObjects, RequestedScope, reported_state},
    operator::awaited,
    output, progress,
};

/// Say in one line why something waits, then the chain to the root cause.
#[derive(Debug, Args)]
pub(crate) struct ExplainCommand {
    #[command(flatten)]
    object: ObjectArgument,
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Form,
    /// How many links a chain may go beyond our own objects.
    #[arg(long, default_value_t = 12, value_name = "LINKS")]
    depth: usize,
    /// Leave out the Events of the last object.
    #[arg(long)]
    no_events: bool,
    #[command(flatten)]
    connection: Connection,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Checks that the object is written as objects are.
pub(crate) fn reference(command: &ExplainCommand) -> Result<AskedObject, UsageError> {
    command.object.read()
}

/// All that is said about an object.
struct Explanation {
    node: Node,
    state: PictureState,
    answer: String,
    chains: Vec<LongChain>,
    /// How many causes are left out.
    more: usize,
    /// Further paragraphs: what did not come to a good end, what is gone, who waits.
    remarks: Vec<String>,
    events: Vec<EventEntry>,
    /// What to run next.
    hint: Option<Hint>,
}

impl Explanation {
    fn new(node: Node, state: PictureState, answer: String) -> Self {
        Self {
            node,
            state,
            answer,
            chains: Vec::new(),
            more: 0,
            remarks: Vec::new(),
            events: Vec::new(),
            hint: None,
        }
    }

    /// Its causes as the graph phrases them.
    fn causes(&self) -> Causes {
        Causes { chains: self.chains.iter().map(|long| long.chain.clone()).collect(), more: self.more }
    }

    fn text(&self, now: Timestamp) -> String {
        let mut report = format!("{}\n", self.answer);
        // The first line says it.
        for long in self.chains.iter().filter(|long| !is_own_lack(&long.chain)) {
            report.push('\n');
            for line in explain::lines(&long.chain, Some(now)) {
                let _ = writeln!(report, "{line}");
            }
        }
        if self.more > 0 {
            let _ = writeln!(report, "\nand {} more causes", self.more);
        }
        for remark in &self.remarks {
            let _ = writeln!(report, "\n{}", remark.trim_end());
        }
        if let Some(first) = self.events.first() {
            let _ = writeln!(report, "\nevents of {}:", first.id);
            for EventEntry { kind, reason, message, at, count, .. } in &self.events {
                let age = at
                    .parse::<Timestamp>()
                    .map_or_else(|_| String::new(), |at| format!("{} ago ", explain::age(at, now)));
                let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
                let _ = writeln!(report, "  {age}{kind} {reason}: {}{times}", explain::plain(message));
            }
        }
        if let Some(Hint { text, command }) = &self.hint {
            let _ = writeln!(report, "\ntry: {text}\n\n  {command}");
        }
        report
    }
}

/// Answers.
pub(crate) fn run(command: &ExplainCommand, asked: &AskedObject, kinds: &Registry) -> Result<ExitCode> {
    let now = Timestamp::now();
    let (explanation, gaps) = awaited(progress::shown("looking at the cluster", async {
        let (client, default) = command.connection.open().await?;
        let namespace = asked.namespace.clone().unwrap_or(default);
        let live = LiveObjects::read(&client, &namespace, kinds).await?;
        let gaps = live.gaps(RequestedScope::Here);
        let mut reader = ClusterReader::new(client);
        let view = Scene { graph: live.graph(), live: &live, kinds, depth: command.depth, now };
        let mut explanation = match kinds.called(&asked.reference.word).map(|kind| kind.names()) {
            Some(names) => {
                let kind = names.gvk.group_kind();
                let object = if names.namespaced {
                    ObjectRef::namespaced(kind.clone(), &namespace, asked.name())
                } else {
                    ObjectRef::cluster_scoped(kind.clone(), asked.name())
                };
                let node = Node::here(object);
                match (live.find(&node), live.lacks(&kind)) {
                    (Some(_), _) if asked.part.is_some() => {
                        let part = asked.part.as_deref().unwrap_or_default();
                        view.part(&live.part(&node, part)?, &mut reader).await
                    }
                    (Some(object), _) => view.ours(&node, object, &mut reader).await,
                    (None, Some(why)) => bail!("{why}"),
                    (None, None) => bail!("{}", reader.explain_missing(&live, &node).await),
                }
            }
            None => view.others(asked, &namespace, &mut reader).await?,
        };
        if !command.no_events {
            explanation.events = events(&explanation, &mut reader).await;
        }
        anyhow::Ok((explanation, gaps))
    }))??;
    print!(
        "{}",
        match command.output {
            Form::Text => output::harmless(&explanation.text(now)),
            Form::Json => document::render(&explanation),
        }
    );
    if let Some(gaps) = gaps {
        output::note_of_program(&gaps);
    }
    Ok(ExitCode::SUCCESS)
}

/// The Events of the last object of the first chain; where there is no chain, of the object itself unless it is ready.
async fn events(explanation: &Explanation, reader: &mut ClusterReader) -> Vec<EventEntry> {
    let uid_of = |object: &Value| object.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
    let (node, uid) = match explanation.chains.first() {
        Some(long) => (long.last(), long.leaf.as_ref().and_then(uid_of)),
        None if explanation.state == PictureState::Ready || explanation.node.part.is_some() => {
            return Vec::new();
        }
        None => {
            let ObjectRef { kind, namespace, name } = &*explanation.node.object;
            let uid = match reader.object(kind, namespace.as_deref(), name).await {
                LookResult::Found(object) => uid_of(&object),
                _ => None,
            };
            (&explanation.node, uid)
        }
    };
    let Some(uid) = uid else { return Vec::new() };
    match reader.events(node.object.namespace.as_deref().unwrap_or_default(), &uid).await {
        DescendAnswer::Objects(events) => document::newest(node, &events),
        DescendAnswer::NotVisible => Vec::new(),
    }
}

/// What is known of our own objects.
struct Scene<'a> {
    graph: Graph,
    live: &'a LiveObjects,
    kinds: &'a Registry,
    depth: usize,
    now: Timestamp,
}

impl Scene<'_> {
    /// The chains of causes behind an object, continued.
    async fn chains(&self, node: &Node, reader: &mut ClusterReader) -> (Vec<LongChain>, usize) {
        let causes = self.graph.root_causes(node, &|_| true);
        let chains = causes.chains.into_iter().map(|chain| LongChain::new(self.up_to_suspended(chain)));
        let mut chains: Vec<LongChain> = chains.collect();
        for long in &mut chains {
            long.go_on(reader, self.kinds, self.depth).await;
        }
        (chains, causes.more)
    }

    /// A chain as far as an object that is suspended: what that one waits for besides lets nothing go on.
    fn up_to_suspended(&self, mut chain: Chain) -> Chain {
        let is_suspended = |link: &ChainLink| {
            self.live.find(&link.node).is_some_and(|object| says(object, Reason::Suspended))
        };
        if let Some(at) = chain.links.iter().position(is_suspended) {
            chain.links.truncate(at + 1);
            chain.end = ChainEnd::Leaf;
        }
        chain
    }

    async fn ours(&self, node: &Node, object: &dyn ObjectView, reader: &mut ClusterReader) -> Explanation {
        let NodeFacts { state, detail, since, reason } = reported_state(object.said());
        let detail = explain::plain(&detail);
        let age = since.map_or_else(String::new, |since| format!(", for {}", explain::age(since, self.now)));
        let common = object.common();
        if state == PictureState::Unknown {
            let answer = format!("{node}: {}", operators::describe(reader, node).await);
            return Explanation::new(node.clone(), state, answer);
        }
        if state == PictureState::Ready {
            let mut ready = Explanation::new(node.clone(), state, format!("{node} is ready: {detail}{age}"));
            ready.hint = hints::of_ours(node, common, &reason, false);
            self.add_gone(&mut ready, node, reader).await;
            return ready;
        }
        let (chains, more) =
            if says(object, Reason::Suspended) { (Vec::new(), 0) } else { self.chains(node, reader).await };
        let mut explanation =
            Explanation { chains, more, ..Explanation::new(node.clone(), state, String::new()) };
        let failed = state == PictureState::Failed;
        explanation.answer = match (explanation.chains.is_empty(), failed) {
            (true, true) => format!("{node} has failed because {detail}{age}"),
            (true, false) => format!("{node}: {detail}{age}"),
            (false, true) => explain::failure(node, &explanation.causes()),
            (false, false) => explain::answer(node, &explanation.causes()),
        };
        let troubles: Vec<String> = object
            .troubles()
            .into_iter()
            .map(|FailedPart { what, state, reason, message, since }| {
                let age = since.map_or_else(String::new, |since| {
                    format!(", for {}", explain::age(since.into(), self.now))
                });
                format!("{what}: {state}, {reason}: {}{age}", explain::plain(message))
            })
            .collect();
        if !troubles.is_empty() {
            explanation.remarks.push(troubles.join("\n"));
        }
        explanation.hint = to_do(node, object, &reason, failed).or_else(|| self.at_leaf(&explanation.chains));
        explanation
    }

    /// Why a part of an object of ours waits.
    async fn part(&self, node: &Node, reader: &mut ClusterReader) -> Explanation {
        let facts = self.live.known().remove(node);
        let (state, detail) =
            facts.map_or((PictureState::Unknown, String::new()), |facts| (facts.state, facts.detail));
        let mut explanation = Explanation::new(node.clone(), state, String::new());
        if state != PictureState::Ready {
            (explanation.chains, explanation.more) = self.chains(node, reader).await;
        }
        explanation.answer = match (state, explanation.chains.is_empty()) {
            (PictureState::Ready, _) => format!("{node} is ready"),
            (_, true) => format!("{node}: {}", explain::plain(&detail)),
            (PictureState::Failed, false) => explain::failure(node, &explanation.causes()),
            (_, false) => explain::answer(node, &explanation.causes()),
        };
        explanation.hint = self.at_leaf(&explanation.chains);
        explanation
    }

    /// What to run where the first chain ends: where an object of ours keeps all others waiting, what lets it go.
    fn at_leaf(&self, chains: &[LongChain]) -> Option<Hint> {
        let long = chains.first().filter(|long| long.chain.end == ChainEnd::Leaf)?;
        let of_ours = self.live.find(long.last()).and_then(|object| {
            let NodeFacts { state, reason, .. } = reported_state(object.said());
            to_do(long.last(), object, &reason, state == PictureState::Failed)
        });
        let reason = || long.last_wait().map(|wait| wait.reason.to_string()).unwrap_or_default();
        of_ours.or_else(|| hints::at_leaf(long.last(), &reason(), self.kinds))
    }

    /// What it made and somebody deleted: that is right for what only acts once, and must be said.
    async fn add_gone(&self, explanation: &mut Explanation, node: &Node, reader: &mut ClusterReader) {
        let mut gone = Vec::new();
        for edge in self.graph.edges_from(node) {
            let Relation::Produces { done: true } = edge.relation else { continue };
            if edge.to.cluster.is_some() {
                continue;
            }
            let object = &edge.to.object;
            if reader.object(&object.kind, object.namespace.as_deref(), &object.name).await
                == LookResult::Absent
            {
                gone.push(format!("{}, which it made, is gone", edge.to));
            }
        }
        if !gone.is_empty() {
            explanation.remarks.push(gone.join("\n"));
            explanation.hint.get_or_insert_with(|| hints::rerun(node));
        }
    }

    /// Who waits for an object that is none of ours, and why it is not ready.
    async fn others(
        &self,
        asked: &AskedObject,
        namespace: &str,
        reader: &mut ClusterReader,
    ) -> Result<Explanation> {
        let word = &asked.reference.word;
        let served = reader.meaning(word).await?;
        let (node, look) = if let Some(resource) = &served {
            let namespace = Some(namespace.to_owned()).filter(|_| resource.namespaced);
            let kind = resource.gvk.group_kind();
            let look = reader.object(&kind, namespace.as_deref(), asked.name()).await;
            (Node::here(ObjectRef { kind, namespace, name: asked.name().to_owned() }), look)
        } else if let Some(node) = self.unserved(asked, namespace) {
            (node, LookResult::NotServed)
        } else {
            bail!("the cluster serves no kind {}{}", word, asked::kind_meant(word, self.kinds));
        };
        let namespace = node.object.namespace.clone();
        let known = self.graph.contains(&node);
        match (&look, &namespace) {
            (LookResult::NoNamespace, Some(namespace)) if !known => {
                bail!("namespace {namespace} does not exist")
            }
            (LookResult::Absent | LookResult::NoNamespace, _) if !known => {
                bail!("there is no {node}, and no object of ours waits for it or makes it")
            }
            _ => {}
        }
        let impact = self.graph.impact(&node);
        let ours: BTreeSet<&Node> = self.graph.owners().into_iter().collect();
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
        let (mut chains, more) = self.chains(&node, reader).await;
        if chains.is_empty() && matches!(look, LookResult::Found(_)) {
            chains.extend(descended(&node, reader, self.kinds, self.depth).await);
        }
        let mut explanation = Explanation {
            chains,
            more,
            ..Explanation::new(node.clone(), PictureState::Waiting, String::new())
        };
        explanation.answer = match (waiting.as_slice(), explanation.chains.first()) {
            (_, Some(_)) => answer(&node, &explanation),
            ([], None) if matches!(look, LookResult::Found(_)) => {
                explanation.state = PictureState::Ready;
                format!("{node} is ready, and nothing waits for it")
            }
            ([], None) => format!("nothing waits for {node} now"),
            ([one], None) => format!("{one} waits for {node}"),
            (several, None) => format!("{} objects wait for {node}", several.len()),
        };
        if look == LookResult::NotServed {
            explanation.remarks.push(format!(
                "the cluster serves no kind {word} now{}",
                asked::kind_meant(word, self.kinds)
            ));
        }
        let said_already = explanation.chains.is_empty() && waiting.len() == 1;
        if !waiting.is_empty() && !said_already {
            let lines: Vec<String> = waiting.iter().map(|one| format!("  {one}")).collect();
            explanation.remarks.push(format!("held up by it:\n{}", lines.join("\n")));
        }
        explanation.hint = self.at_leaf(&explanation.chains);
        self.add_consist(&mut explanation, &node, &look, reader).await;
        Ok(explanation)
    }

    /// An object that something waits for, though nobody serves its kind.
    fn unserved(&self, asked: &AskedObject, namespace: &str) -> Option<Node> {
        let word = &asked.reference.word;
        let is_meant = |node: &&Node| {
            let ObjectRef { kind, namespace: place, name } = &*node.object;
            let is_whole = node.cluster.is_none() && node.part.is_none();
            is_whole
                && name == asked.name()
                && kind.kind.eq_ignore_ascii_case(&word.word)
                && word.group.as_ref().is_none_or(|group| *group == kind.group)
                && place.as_deref().is_none_or(|place| place == namespace)
        };
        self.graph.nodes().find(is_meant).cloned()
    }

    /// What `linchpin consist` says of an employer or a pod comes first.
    async fn add_consist(
        &self,
        explanation: &mut Explanation,
        node: &Node,
        look: &LookResult,
        reader: &ClusterReader,
    ) {
        let (LookResult::Found(object), Some(namespace)) = (look, &node.object.namespace) else { return };
        let bindings = reader.bindings(namespace).await;
        let name = &node.object.name;
        let said = if node.object.kind.kind == "Pod" && node.object.kind.group.is_empty() {
            consist::of_pod(object, &bindings, self.now)
        } else {
            consist::of_employer(&node.object.kind.kind, name, &bindings, self.now)
        };
        let Some(consist::ConsistLine { line, waits }) = said else { return };
        let before = std::mem::replace(&mut explanation.answer, line);
        if waits || explanation.state == PictureState::Ready {
            explanation.state = if waits { PictureState::Waiting } else { PictureState::Ready };
        }
        if !explanation.chains.is_empty() {
            explanation.remarks.insert(0, before);
        }
    }
}

/// The chain from an object of others itself; none if it lacks nothing.
async fn descended(
    node: &Node,
    reader: &mut ClusterReader,
    kinds: &Registry,
    depth: usize,
) -> Option<LongChain> {
    use linchpin_engine::graph::{Hop, Wait, WaitState};
    // As if somebody waited for it: its own lack is then reported like that of any other link.
    let link = ChainLink { hop: Hop::WaitsFor(Wait::new(WaitState::Unknown, "")), node: node.clone() };
    let chain = Chain { start: node.clone(), links: vec![link], skipped: 0, end: ChainEnd::Leaf };
    let mut long = LongChain::new(chain);
    long.go_on(reader, kinds, depth).await;
    if long.chain.links.len() > 1 {
        // What it waits for is the rest.
        long.chain.links.remove(0);
        long.kinds.remove(0);
        return Some(long);
    }
    long.last_wait().is_some_and(|wait| !wait.reason.is_empty()).then_some(long)
}

/// Whether a chain says what its own object lacks, and nothing behind it.
fn is_own_lack(chain: &Chain) -> bool {
    let is_own = chain.links.len() == 1 && chain.links[0].node == chain.start;
    is_own && matches!(chain.end, ChainEnd::Leaf | ChainEnd::Unread)
}

/// The one line about an object of others.
fn answer(node: &Node, explanation: &Explanation) -> String {
    let causes = explanation.causes();
    match causes.chains.first() {
        Some(chain) if is_own_lack(chain) => {
            let why = explanation.chains[0].last_wait().map(explain::why).unwrap_or_default();
            let more = if chain.end == ChainEnd::Unread { " (not visible to you)" } else { "" };
            format!("{node} is not ready: {why}{more}")
        }
        _ => explain::answer(node, &causes),
    }
}

/// Whether this is why an object of ours is not ready.
fn says(object: &dyn ObjectView, reason: Reason) -> bool {
    reported_state(object.said()).reason == reason.as_str()
}

/// What an object of ours itself says can be done: let the operator act for it, make its account, give that rights, or let
/// it go on.
fn to_do(node: &Node, object: &dyn ObjectView, reason: &str, failed: bool) -> Option<Hint> {
    let lacks = |missing: Reason| object.reasons().contains(&missing.as_str());
    let common = object.common();
    let message = object.said().and_then(|said| said.message.as_deref()).unwrap_or_default();
    let tenant = lacks(Reason::NotATenant).then(|| hints::tenant(message)).flatten();
    let account = lacks(Reason::IdentityGone).then(|| hints::account(node, common));
    let rights =
        (lacks(Reason::Forbidden) || lacks(Reason::MissingRights)).then(|| hints::rights(node, common));
    tenant.or(account).or(rights).or_else(|| hints::of_ours(node, common, reason, failed))
}

#[cfg(test)]
mod tests;
