//! `linchpin tree --watch`: drawn again whenever something has changed, until Ctrl-C.
//!
//! Each kind is followed by the watch that the operator follows it with ([`own::follow`]): one that cannot be read is told
//! of and asked for again and again, at a growing distance, so that it is shown once it can be; a single object that cannot
//! be read is told of and keeps no other from being shown.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Result, bail};
use kube::Client;
use linchpin_api::{AppBundle, DependencyGroup, ResourceDependency};
use linchpin_cluster::own::{self, OwnEvent, OwnKind, OwnTrouble};
use linchpin_words::{GroupKind, Gvk};
use tokio::{sync::mpsc, task::JoinSet};

use super::{Form, TreeCommand, draw, gaps, print};
use crate::live::{Kind, Live, ReadScope};

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
    let (tell, mut changes) = mpsc::unbounded_channel();
    // Ends with this function.
    let mut watches = JoinSet::new();
    watches.spawn(watched::<ResourceDependency>(client, namespace, &live, tell.clone()));
    watches.spawn(watched::<DependencyGroup>(client, namespace, &live, tell.clone()));
    watches.spawn(watched::<AppBundle>(client, namespace, &live, tell));
    let listing = live.reach.keys().cloned().collect();
    // The watches bring all objects again, and what has gone in the meantime is not among them.
    let mut followed = Followed { live: live.emptied(), listing };
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

/// Tells what happens to one kind, where it can be read, for ever.
fn watched<K: Kind>(
    client: &Client,
    namespace: &str,
    live: &Live,
    tell: mpsc::UnboundedSender<Change>,
) -> impl Future<Output = ()> + Send + use<K> {
    let here = matches!(live.reach.get(&K::group_kind()), Some(ReadScope::Here | ReadScope::Forbidden(_)));
    let (client, namespace) = (client.clone(), here.then(|| namespace.to_owned()));
    let kind = Gvk::new(&*K::group(&()), &*K::version(&()), &*K::kind(&()));
    let kind = OwnKind::new(&kind, &K::plural(&()), true);
    async move {
        let tell = |event| {
            // Nobody listens any more when the command ends.
            let _ = tell.send(Box::new(move |followed: &mut Followed| followed.take_in::<K>(event, here)));
        };
        own::follow(&client, &kind, namespace.as_deref(), tell).await;
    }
}

/// Takes in the next change; false when there will be none.
async fn next(changes: &mut mpsc::UnboundedReceiver<Change>, followed: &mut Followed) -> bool {
    let Some(change) = changes.recv().await else { return false };
    change(followed);
    true
}

impl Followed {
    fn take_in<K: Kind>(&mut self, event: OwnEvent, here: bool) {
        match event {
            OwnEvent::There(object) => self.live.put::<K>(&object),
            OwnEvent::Gone((namespace, name)) => {
                self.live.remove::<K>(&(namespace.unwrap_or_default(), name));
            }
            OwnEvent::Synced => {
                self.seen::<K>(if here { ReadScope::Here } else { ReadScope::Everywhere });
            }
            OwnEvent::Trouble(OwnTrouble::NotServed(_)) => self.unseen::<K>(ReadScope::not_served::<K>()),
            OwnEvent::Trouble(OwnTrouble::Forbidden(why)) => {
                self.unseen::<K>(ReadScope::forbidden::<K>(&why));
            }
            // The API server will be back, and the watch goes on by itself.
            OwnEvent::Trouble(OwnTrouble::Lost(_)) => {}
        }
    }

    fn seen<K: Kind>(&mut self, reach: ReadScope) {
        self.listing.remove(&K::group_kind());
        self.live.reach.insert(K::group_kind(), reach);
    }

    fn unseen<K: Kind>(&mut self, reach: ReadScope) {
        self.live.forget::<K>();
        self.seen::<K>(reach);
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
