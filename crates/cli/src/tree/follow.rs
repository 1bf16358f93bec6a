//! `linchpin tree --watch`: drawn again whenever something has changed, until Ctrl-C.
//!
//! Each kind is followed by a watch of its own. One that cannot be read is told of and asked for again and again, at a
//! growing distance, so that it is shown once it can be.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Result, bail};
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use kube::{
    Client,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};
use linchpin_api::{AppBundle, DependencyGroup, ResourceDependency};
use linchpin_words::GroupKind;

use super::{Form, TreeCommand, draw, gaps, print};
use crate::live::{Kind, Live, Reach, api, place};

/// How long nothing may change before it is drawn again: one change rarely comes alone.
const QUIET: Duration = Duration::from_millis(100);

/// What a watch brings, ready to be taken in.
type Change = Box<dyn FnOnce(&mut Followed) + Send>;

/// What is known by now.
struct Followed {
    live: Live,
    /// The kinds whose lists have not been read to their end.
    listing: BTreeSet<GroupKind>,
}

/// Draws until Ctrl-C, beginning with what was just read: it tells where each kind may be watched.
pub(super) async fn follow(
    command: &TreeCommand,
    client: &Client,
    namespace: &str,
    live: Live,
) -> Result<ExitCode> {
    let mut changes = stream::select_all([
        watched::<ResourceDependency>(client, namespace, &live),
        watched::<DependencyGroup>(client, namespace, &live),
        watched::<AppBundle>(client, namespace, &live),
    ]);
    let listing = live.reach.keys().cloned().collect();
    let mut followed = Followed { live, listing };
    let (mut shown, mut told) = (String::new(), None);
    loop {
        if !next(&mut changes, &mut followed).await {
            bail!("the watch has ended");
        }
        while let Ok(true) = tokio::time::timeout(QUIET, next(&mut changes, &mut followed)).await {}
        followed.live.check()?;
        if !followed.listing.is_empty() {
            continue;
        }
        let drawn = draw(command, &followed.live, namespace);
        let again = drawn != shown;
        if again {
            if !print(&frame(command, &drawn, shown.is_empty())) {
                return Ok(ExitCode::SUCCESS);
            }
            shown = drawn;
        }
        let missing = gaps(command, &followed.live, namespace);
        // A drawing on a terminal has wiped out what was told below the one before.
        if missing != told || (again && on_a_screen(command)) {
            if let Some(missing) = &missing {
                eprintln!("linchpin: {missing}");
            }
            told = missing;
        }
    }
}

/// What happens to one kind, where it can be read.
fn watched<K: Kind>(client: &Client, namespace: &str, live: &Live) -> BoxStream<'static, Change> {
    let here = matches!(live.reach.get(&K::group_kind()), Some(Reach::Here | Reach::Forbidden(_)));
    let events = watcher(api::<K>(client, here.then_some(namespace)), watcher::Config::default());
    let taken_in = move |event| -> Change { Box::new(move |followed| followed.take_in::<K>(event, here)) };
    events.default_backoff().map(taken_in).boxed()
}

/// Takes in the next change; false when there will be none.
async fn next(changes: &mut (impl Stream<Item = Change> + Unpin), followed: &mut Followed) -> bool {
    let Some(change) = changes.next().await else { return false };
    change(followed);
    true
}

impl Followed {
    fn take_in<K: Kind>(&mut self, event: Result<Event<K>, watcher::Error>, here: bool) {
        let objects = K::among(&mut self.live);
        match event {
            Ok(Event::Init) => {
                objects.clear();
                self.listing.insert(K::group_kind());
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                objects.insert(place(&object), object);
            }
            Ok(Event::Delete(object)) => {
                objects.remove(&place(&object));
            }
            Ok(Event::InitDone) => {
                self.listing.remove(&K::group_kind());
                self.live.reach.insert(K::group_kind(), if here { Reach::Here } else { Reach::Everywhere });
            }
            Err(watcher::Error::InitialListFailed(error)) => {
                // Otherwise the API server will be back, and the watcher goes on by itself.
                if let Ok(reach) = Reach::after::<K>(error) {
                    self.listing.remove(&K::group_kind());
                    self.live.reach.insert(K::group_kind(), reach);
                }
            }
            Err(_) => {}
        }
    }
}

fn on_a_screen(command: &TreeCommand) -> bool {
    command.output == Form::Text && io::stdout().is_terminal()
}

/// On a terminal each drawing takes the place of the one before; elsewhere they follow each other.
fn frame(command: &TreeCommand, drawn: &str, first: bool) -> String {
    if on_a_screen(command) {
        format!("\u{1b}[H\u{1b}[2J{drawn}")
    } else if first || command.output == Form::Json {
        drawn.to_owned()
    } else {
        format!("\n{drawn}")
    }
}
