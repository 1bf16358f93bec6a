//! `linchpin tree`: the live wait-for graph of all objects of ours, drawn.
//!
//! Reads the cluster as the user and draws what the statuses say: a tree of text, or DOT, Mermaid, SVG or JSON. With
//! `--watch` it draws again whenever something has changed. A namespace is drawn with all it needs, also from others; one
//! object with what is under it. Statuses remember what was made: whether it is still there is looked at, with the user's
//! rights, so that nothing that is gone is shown as good.

mod follow;
mod gone;

use std::{
    collections::BTreeSet,
    env,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use kube::Client;
use linchpin_doors::Registry;
use linchpin_engine::graph::Node;
use linchpin_operator::webhooks::label_selector;
use linchpin_view::{Picture, PictureSelection, dot, json, mermaid, svg, tree};
use linchpin_words::ObjectRef;
use serde_json::Value;

use crate::{
    asked::{self, RequestedObject as AskedObject},
    cli::UsageError,
    cluster_reader::ClusterReader,
    live::{Connection, LiveObjects, RequestedScope},
    operator::awaited,
    output::{self, Color},
    progress,
};
use follow::follow;
use gone::gone;

/// As wide as a terminal that does not say how wide it is may be drawn to.
const WIDTH: usize = 120;

/// Which objects are drawn.
#[derive(Debug, Args)]
pub(crate) struct DrawingFlags {
    /// Only these objects and what is under them: kind/name or kind/namespace/name [default: all of the namespace].
    #[arg(value_name = "KIND/NAME", conflicts_with = "all_namespaces")]
    objects: Vec<String>,
    /// Draw who needs these objects, instead of what they need.
    #[arg(long, requires = "objects")]
    needed_by: bool,
    /// The namespace whose objects are drawn, with all they need [default: the context's].
    #[arg(short, long, conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Draw the objects of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only objects of ours with these labels, and what they need: a=b,c!=d,e in (f,g),h,!i.
    #[arg(short = 'l', long, value_parser = label_selector::parse, conflicts_with = "objects")]
    selector: Option<Value>,
    /// Draw again whenever something changes, until Ctrl-C.
    #[arg(short, long)]
    watch: bool,
    /// Leave out waits that are over.
    #[arg(long)]
    unmet: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Draw what waits for what.
#[derive(Debug, Args)]
pub(crate) struct TreeCommand {
    #[command(flatten)]
    drawing: DrawingFlags,
    /// What is drawn.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Form,
}

/// Draw what waits for what, as a picture.
#[derive(Debug, Args)]
pub(crate) struct GraphCommand {
    #[command(flatten)]
    drawing: DrawingFlags,
    /// What is drawn.
    #[arg(short, long, value_enum, default_value = "dot")]
    output: GraphForm,
}

impl From<GraphCommand> for TreeCommand {
    fn from(GraphCommand { drawing, output }: GraphCommand) -> Self {
        let output = match output {
            GraphForm::Dot => Form::Dot,
            GraphForm::Mermaid => Form::Mermaid,
            GraphForm::Svg => Form::Svg,
            GraphForm::Json => Form::Json,
        };
        Self { drawing, output }
    }
}

/// A way to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// An indented tree.
    Text,
    /// The same with whole names of kinds.
    Wide,
    /// For programs.
    Json,
    /// The objects alone, a line each, as kubectl and explain take them.
    Name,
    /// For Graphviz.
    Dot,
    /// For Markdown.
    Mermaid,
    /// For browsers.
    Svg,
}

/// A way to draw a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GraphForm {
    /// For Graphviz.
    Dot,
    /// For Markdown.
    Mermaid,
    /// For browsers.
    Svg,
    /// For programs.
    Json,
}

/// Checks that objects are written as objects are.
pub(crate) fn references(command: &TreeCommand) -> Result<Vec<AskedObject>, UsageError> {
    let drawing = &command.drawing;
    let read = |object: &String| AskedObject::read(object, drawing.namespace.as_deref());
    drawing.objects.iter().map(read).collect()
}

/// Draws once, or until Ctrl-C.
pub(crate) fn run(
    command: &TreeCommand,
    asked: &[AskedObject],
    color: Color,
    kinds: &Registry,
) -> Result<ExitCode> {
    awaited(async {
        let (client, default) = command.drawing.connection.open().await?;
        let namespace = command.drawing.namespace.clone().unwrap_or(default);
        let live =
            progress::shown("looking at the cluster", LiveObjects::read(&client, &namespace, kinds)).await?;
        let roots = match asked {
            [] => None,
            asked => Some(found(asked, &live, &namespace, &client, kinds).await?),
        };
        let scene = Scene { command, namespace, roots, color };
        if command.drawing.watch {
            return follow(&scene, &client, live).await;
        }
        print!("{}", scene.draw(&client, &live).await.text);
        if let Some(gaps) = scene.gaps(&live) {
            output::note_of_program(&gaps);
        }
        Ok(ExitCode::SUCCESS)
    })?
}

/// The objects that were asked for, as they are in the graph.
async fn found(
    asked: &[AskedObject],
    live: &LiveObjects,
    namespace: &str,
    client: &Client,
    kinds: &Registry,
) -> Result<Vec<Node>> {
    let reader = ClusterReader::new(client.clone());
    let graph = live.drawn_graph();
    let mut nodes = Vec::new();
    for one in asked {
        let namespace = one.namespace.as_deref().unwrap_or(namespace);
        let word = &one.reference.word;
        let ours = kinds.called(word).map(|kind| kind.names());
        let (kind, namespaced) = if let Some(names) = &ours {
            (names.gvk.group_kind(), names.namespaced)
        } else if let Some(resource) = reader.meaning(word).await? {
            (resource.gvk.group_kind(), resource.namespaced)
        } else {
            bail!("the cluster serves no kind {word}{}", asked::kind_meant(word, kinds));
        };
        let object = ObjectRef {
            kind: kind.clone(),
            namespace: namespaced.then(|| namespace.to_owned()),
            name: one.name().to_owned(),
        };
        let node = Node::here(object);
        if let Some(part) = &one.part {
            nodes.push(live.part(&node, part)?);
            continue;
        }
        match (ours.is_some(), live.lacks(&kind)) {
            (true, Some(why)) => bail!("{why}"),
            (true, None) if live.find(&node).is_none() => {
                bail!("{}", reader.explain_missing(live, &node).await)
            }
            (false, _) if !graph.contains(&node) => {
                bail!("no object of ours waits for {node} or makes it")
            }
            _ => nodes.push(node),
        }
    }
    Ok(nodes)
}

/// What is drawn, and how.
struct Scene<'a> {
    command: &'a TreeCommand,
    namespace: String,
    /// The objects that were asked for; none for all.
    roots: Option<Vec<Node>>,
    color: Color,
}

impl Scene<'_> {
    /// What is not in the picture, in one line.
    fn gaps(&self, live: &LiveObjects) -> Option<String> {
        let everywhere = self.command.drawing.all_namespaces;
        live.gaps(if everywhere {
            RequestedScope::Everywhere { instead: &self.namespace }
        } else {
            RequestedScope::Here
        })
    }

    /// The picture in the form asked for.
    async fn draw(&self, client: &Client, live: &LiveObjects) -> Drawn {
        let drawing = &self.command.drawing;
        let namespace = (!drawing.all_namespaces).then_some(self.namespace.as_str());
        let chosen = || {
            let mut nodes = live.nodes(namespace);
            if let Some(selector) = &drawing.selector {
                nodes.retain(|node| label_selector::matches(selector, live.labels(node)));
            }
            nodes
        };
        let roots = self.roots.clone().unwrap_or_else(chosen);
        let needed_by = drawing.needed_by;
        let selection =
            if needed_by { PictureSelection::NeededBy(roots) } else { PictureSelection::Needs(roots) };
        let (picture, gone) = picture(client, live, &selection).await;
        let (unmet, now) = (drawing.unmet, Some(jiff::Timestamp::now()));
        let color = self.color.is_on();
        let text = match self.command.output {
            Form::Text => text(&picture, live, tree::KindStyle::Short(live.short_kinds()), unmet, color),
            Form::Wide => text(&picture, live, tree::KindStyle::Full, unmet, color),
            Form::Name => names(&picture, &self.namespace),
            Form::Dot => dot::render(&picture),
            Form::Mermaid => mermaid::render(&picture),
            Form::Svg => svg::render(&picture, &svg::SvgOptions { title: None, now }),
            Form::Json => json::render(&picture),
        };
        Drawn { text, gone }
    }
}

/// What was drawn.
struct Drawn {
    text: String,
    /// What was made, and is there no longer.
    gone: BTreeSet<Node>,
}

/// The objects of a namespace with all they need, as a tree.
pub(crate) async fn of_namespace(client: &Client, live: &LiveObjects, namespace: &str) -> String {
    let selection = PictureSelection::Needs(live.nodes(Some(namespace)));
    let (picture, _) = picture(client, live, &selection).await;
    text(&picture, live, tree::KindStyle::Short(live.short_kinds()), false, Color::Auto.is_on())
}

/// What there is to see of a selection, and what of it was made and is there no longer.
async fn picture(
    client: &Client,
    live: &LiveObjects,
    selection: &PictureSelection,
) -> (Picture, BTreeSet<Node>) {
    let graph = live.drawn_graph();
    let mut known = live.known();
    let drawn = Picture::of(&graph, selection, &known);
    let gone = gone(client, &drawn).await;
    let nodes: BTreeSet<Node> = gone.keys().cloned().collect();
    if nodes.is_empty() {
        return (drawn, nodes);
    }
    known.extend(gone);
    (Picture::of(&graph, selection, &known), nodes)
}

/// A picture as a tree, fit for where standard output goes: as wide as a terminal and coloured on one, whole elsewhere.
fn text(
    picture: &Picture,
    live: &LiveObjects,
    kinds: tree::KindStyle,
    only_unmet: bool,
    color: bool,
) -> String {
    let terminal = io::stdout().is_terminal();
    let options = tree::TreeOptions {
        width: terminal.then(columns),
        now: Some(jiff::Timestamp::now()),
        color,
        only_unmet,
        kinds,
        parts: live.parts(),
        ..tree::TreeOptions::default()
    };
    tree::render(picture, &options)
}

/// The objects of a picture as they are written on command lines: with their namespace where it is another one.
fn names(picture: &Picture, namespace: &str) -> String {
    let here = picture.items.iter().map(|item| &item.node).filter(|node| node.cluster.is_none());
    let written = here.map(|node| {
        let ObjectRef { kind, namespace: of, name } = &*node.object;
        let dot = if kind.group.is_empty() { "" } else { "." };
        let kind = format!("{}{dot}{}", kind.kind.to_lowercase(), kind.group);
        match of.as_deref().filter(|of| *of != namespace) {
            Some(of) => format!("{kind}/{of}/{name}\n"),
            None => format!("{kind}/{name}\n"),
        }
    });
    written.collect::<BTreeSet<String>>().into_iter().collect()
}

/// How wide the terminal is: what `COLUMNS` says, else what it says itself.
fn columns() -> usize {
    let configured = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let asked = || {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    };
    configured.or_else(asked).unwrap_or(WIDTH)
}

/// The reader may have left; there is nobody to report it to.
fn print(text: &str) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}
