//! `linchpin tree`: the live wait-for graph of all objects of ours, drawn.
//!
//! Reads the cluster as the user and draws what the statuses say: a tree of text, or DOT, Mermaid, SVG or JSON. With
//! `--watch` it draws again whenever something has changed. A namespace is drawn with all it needs, also from others.

use std::{
    collections::BTreeMap,
    env,
    io::{self, IsTerminal, Write},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use kube::{
    Client,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};
use linchpin_api::{DependencyGroup, ResourceDependency};
use linchpin_view::{Picture, Selection, dot, json, mermaid, svg, tree};

use crate::{
    live::{self, Connection, Live, Place, place},
    operator::block_on,
};

/// How long nothing may change before it is drawn again: one change rarely comes alone.
const QUIET: Duration = Duration::from_millis(100);

/// As wide as a terminal that does not say how wide it is may be drawn to.
const WIDTH: usize = 120;

/// Draw what waits for what.
#[derive(Debug, Args)]
pub(crate) struct TreeCommand {
    /// The namespace whose objects are drawn, with all they need [default: the context's].
    #[arg(short, long, conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Draw the objects of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Draw again whenever something changes, until Ctrl-C.
    #[arg(short, long)]
    watch: bool,
    /// What is drawn.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Form,
    /// Leave out waits that are over.
    #[arg(long)]
    unmet: bool,
    #[command(flatten)]
    connection: Connection,
}

/// A way to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// An indented tree.
    Text,
    /// For Graphviz.
    Dot,
    /// For Markdown.
    Mermaid,
    /// For browsers.
    Svg,
    /// For programs.
    Json,
}

/// Draws once, or until Ctrl-C.
pub(crate) fn run(command: &TreeCommand) -> Result<ExitCode> {
    block_on(async {
        let (client, default) = command.connection.open().await?;
        let namespace = command.namespace.clone().unwrap_or(default);
        let chosen = (!command.all_namespaces).then_some(namespace.as_str());
        if command.watch {
            return follow(command, &client, &namespace, chosen).await;
        }
        let live = Live::read(&client, &namespace).await?;
        print(&draw(command, &live, chosen));
        Ok(ExitCode::SUCCESS)
    })?
}

/// The picture of one namespace, or of all, in the form asked for.
fn draw(command: &TreeCommand, live: &Live, namespace: Option<&str>) -> String {
    let picture = picture(live, namespace);
    match command.output {
        Form::Text => text(&picture, command.unmet),
        Form::Dot => dot::render(&picture),
        Form::Mermaid => mermaid::render(&picture),
        Form::Svg => svg::render(&picture, &svg::Options { title: None, now: Some(jiff::Timestamp::now()) }),
        Form::Json => json::render(&picture),
    }
}

/// What there is to see in one namespace, or in all.
pub(crate) fn picture(live: &Live, namespace: Option<&str>) -> Picture {
    let selection = Selection::Needs(live.nodes(namespace));
    Picture::of(&live.graph(), &selection, &live.known())
}

/// A picture as a tree, fit for where standard output goes.
pub(crate) fn text(picture: &Picture, only_unmet: bool) -> String {
    let terminal = io::stdout().is_terminal();
    drawn(picture, terminal.then(columns), only_unmet)
}

/// A picture as a tree of this width, coloured on a terminal.
pub(crate) fn drawn(picture: &Picture, width: Option<usize>, only_unmet: bool) -> String {
    let options = tree::Options {
        width,
        now: Some(jiff::Timestamp::now()),
        color: io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none(),
        only_unmet,
        ..tree::Options::default()
    };
    tree::render(picture, &options)
}

/// How wide the terminal is, if it was told.
pub(crate) fn columns() -> usize {
    env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(WIDTH)
}

/// Whoever listened may have left; there is nobody to tell about it.
fn print(text: &str) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// What a watch brings.
enum Change {
    Dependency(Event<ResourceDependency>),
    Group(Event<DependencyGroup>),
}

async fn follow(
    command: &TreeCommand,
    client: &Client,
    namespace: &str,
    chosen: Option<&str>,
) -> Result<ExitCode> {
    let here = live::narrowed(client, namespace).await?;
    let dependencies = watcher(live::api::<ResourceDependency>(client, here), watcher::Config::default());
    let groups = watcher(live::api::<DependencyGroup>(client, here), watcher::Config::default());
    let mut changes = stream::select(
        dependencies.default_backoff().map_ok(Change::Dependency).boxed(),
        groups.default_backoff().map_ok(Change::Group).boxed(),
    );
    let mut live = Live::default();
    let (mut shown, mut complete) = (String::new(), Complete::default());
    loop {
        if !next(&mut changes, &mut live, &mut complete).await? {
            bail!("the watch has ended");
        }
        while let Ok(more) = tokio::time::timeout(QUIET, next(&mut changes, &mut live, &mut complete)).await {
            more?;
        }
        let drawn = draw(command, &live, chosen);
        if complete.all() && drawn != shown {
            if !print(&frame(command, &drawn, shown.is_empty())) {
                return Ok(ExitCode::SUCCESS);
            }
            shown = drawn;
        }
    }
}

/// Which lists have been read to their end.
#[derive(Default)]
struct Complete {
    dependencies: bool,
    groups: bool,
}

impl Complete {
    fn all(&self) -> bool {
        self.dependencies && self.groups
    }
}

/// Takes in the next change; false when there will be none.
async fn next(
    changes: &mut (impl Stream<Item = Result<Change, watcher::Error>> + Unpin),
    live: &mut Live,
    complete: &mut Complete,
) -> Result<bool> {
    let Some(change) = changes.next().await else { return Ok(false) };
    match change {
        // The API server will be back, and the watcher goes on by itself; what cannot be cured is told.
        Err(watcher::Error::InitialListFailed(kube::Error::Api(status))) if status.code == 403 => {
            bail!("{}", status.message);
        }
        Err(_) => {}
        Ok(Change::Dependency(event)) => {
            take_in(&mut live.resource_dependencies, event, &mut complete.dependencies);
        }
        Ok(Change::Group(event)) => take_in(&mut live.dependency_groups, event, &mut complete.groups),
    }
    Ok(true)
}

fn take_in<K: kube::ResourceExt>(objects: &mut BTreeMap<Place, K>, event: Event<K>, complete: &mut bool) {
    match event {
        Event::Init => {
            objects.clear();
            *complete = false;
        }
        Event::InitDone => *complete = true,
        Event::InitApply(object) | Event::Apply(object) => {
            objects.insert(place(&object), object);
        }
        Event::Delete(object) => {
            objects.remove(&place(&object));
        }
    }
}

/// On a terminal each drawing takes the place of the one before; elsewhere they follow each other.
fn frame(command: &TreeCommand, drawn: &str, first: bool) -> String {
    if command.output == Form::Text && io::stdout().is_terminal() {
        format!("\u{1b}[H\u{1b}[2J{drawn}")
    } else if first || command.output == Form::Json {
        drawn.to_owned()
    } else {
        format!("\n{drawn}")
    }
}
