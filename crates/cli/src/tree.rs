//! `linchpin tree`: the live wait-for graph of all objects of ours, drawn.
//!
//! Reads the cluster as the user and draws what the statuses say: a tree of text, or DOT, Mermaid, SVG or JSON. With
//! `--watch` it draws again whenever something has changed. A namespace is drawn with all it needs, also from others.

mod follow;

use std::{
    env,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use anyhow::Result;
use clap::{Args, ValueEnum};
use linchpin_doors::Registry;
use linchpin_view::{Picture, Selection, dot, json, mermaid, svg, tree};

use crate::{
    live::{Asked, Connection, Live},
    operator::block_on,
};
use follow::follow;

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
pub(crate) fn run(command: &TreeCommand, kinds: &Registry) -> Result<ExitCode> {
    block_on(async {
        let (client, default) = command.connection.open().await?;
        let namespace = command.namespace.clone().unwrap_or(default);
        let live = Live::read(&client, &namespace, kinds).await?;
        if command.watch {
            return follow(command, &client, &namespace, live).await;
        }
        print(&draw(command, &live, &namespace));
        if let Some(gaps) = gaps(command, &live, &namespace) {
            eprintln!("linchpin: {gaps}");
        }
        Ok(ExitCode::SUCCESS)
    })?
}

/// What is not in the picture, in one line.
fn gaps(command: &TreeCommand, live: &Live, namespace: &str) -> Option<String> {
    live.gaps(if command.all_namespaces { Asked::Everywhere { instead: namespace } } else { Asked::Here })
}

/// The picture of one namespace, or of all, in the form asked for.
fn draw(command: &TreeCommand, live: &Live, namespace: &str) -> String {
    let picture = picture(live, (!command.all_namespaces).then_some(namespace));
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
    Picture::of(&live.drawn_graph(), &selection, &live.known())
}

/// A picture as a tree, fit for where standard output goes: as wide as a terminal and coloured on one, whole elsewhere.
pub(crate) fn text(picture: &Picture, only_unmet: bool) -> String {
    let terminal = io::stdout().is_terminal();
    let options = tree::Options {
        width: terminal.then(columns),
        now: Some(jiff::Timestamp::now()),
        color: terminal && env::var_os("NO_COLOR").is_none(),
        only_unmet,
        ..tree::Options::default()
    };
    tree::render(picture, &options)
}

/// How wide the terminal is: what `COLUMNS` says, else what it says itself.
fn columns() -> usize {
    let told = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let asked = || {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    };
    told.or_else(asked).unwrap_or(WIDTH)
}

/// Whoever listened may have left; there is nobody to tell about it.
fn print(text: &str) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}
