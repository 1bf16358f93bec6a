//! `linchpin tree --watch`: drawn again whenever something has changed, until Ctrl-C.
//!
//! Each kind is followed by the watch that the operator follows it with ([`own::follow`]): one that cannot be read is
//! reported and asked for again and again, at a growing distance, so that it is shown once it can be; a single object
//! that cannot be read is reported and keeps no other from being shown.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Result, bail};
use kube::Client;
use linchpin_cluster::own::{self, OwnEvent, OwnKind, OwnTrouble};
use linchpin_doors::registry::KindNames;
use linchpin_words::GroupKind;
use tokio::{sync::mpsc, task::JoinSet};

use super::{Form, Scene, TreeCommand, print};
use crate::{
    live::{LiveObjects, ReadScope},
    output,
};

/// How long nothing may change before it is drawn again: one change rarely comes alone.
const QUIET: Duration = Duration::from_millis(100);

/// How long after a drawing it is looked again whether what was made is still there: nothing reports that.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What a watch brings: of which kind, and whether it looks at one namespace only.
struct Change {
    kind: GroupKind,
    here: bool,
    event: OwnEvent,
}

/// What is known by now.
struct Followed {
    live: LiveObjects,
    /// The kinds whose lists have not been read to their end.
    listing: BTreeSet<GroupKind>,
}

/// Draws until Ctrl-C, beginning with what was just read: it shows where each kind may be watched.
pub(super) async fn follow(scene: &Scene<'_>, client: &Client, live: LiveObjects) -> Result<ExitCode> {
    let (command, namespace) = (scene.command, scene.namespace.as_str());
    let (sender, mut changes) = mpsc::unbounded_channel();
    // Ends with this function.
    let mut watches = JoinSet::new();
    for names in &live.kinds() {
        watches.spawn(watched(client, namespace, &live, names, sender.clone()));
    }
    drop(sender);
    let listing = live.reach.keys().cloned().collect();
    // The watches bring all objects again, and what has gone in the meantime is not among them.
    let mut followed = Followed { live: live.emptied(), listing };
    let (mut shown, mut gone, mut printed) = (String::new(), BTreeSet::new(), None);
    loop {
        let news = tokio::time::timeout(LOOK_AGAIN, next(&mut changes, &mut followed)).await;
        if news == Ok(false) {
            bail!("the watch has ended");
        }
        while let Ok(true) = tokio::time::timeout(QUIET, next(&mut changes, &mut followed)).await {}
        followed.live.check()?;
        if !followed.listing.is_empty() {
            continue;
        }
        let drawn = scene.draw(client, &followed.live).await;
        // Ages alone are no reason to draw again.
        let again = drawn.text != shown && (news.is_ok() || drawn.gone != gone || shown.is_empty());
        gone = drawn.gone;
        if again {
            let drawn = drawn.text;
            if !print(&frame(command, &drawn, shown.is_empty())) {
                return Ok(ExitCode::SUCCESS);
            }
            shown = drawn;
        }
        let missing = scene.gaps(&followed.live);
        // A drawing on a terminal has wiped out what was printed below the one before.
        if missing != printed || (again && on_a_screen(command)) {
            if let Some(missing) = &missing {
                output::note_of_program(missing);
            }
            printed = missing;
        }
    }
}

/// Reports what happens to one kind, where it can be read, for ever.
fn watched(
    client: &Client,
    namespace: &str,
    live: &LiveObjects,
    names: &KindNames,
    sender: mpsc::UnboundedSender<Change>,
) -> impl Future<Output = ()> + Send + use<> {
    let group_kind = names.gvk.group_kind();
    let here = matches!(live.reach.get(&group_kind), Some(ReadScope::Here | ReadScope::Forbidden(_)));
    let (client, namespace) = (client.clone(), here.then(|| namespace.to_owned()));
    let kind = OwnKind::new(&names.gvk, &names.plural, names.namespaced);
    async move {
        let report = |event| {
            // Nobody listens any more when the command ends.
            let _ = sender.send(Change { kind: group_kind.clone(), here, event });
        };
        own::follow(&client, &kind, namespace.as_deref(), report).await;
    }
}

/// Takes in the next change; false when there will be none.
async fn next(changes: &mut mpsc::UnboundedReceiver<Change>, followed: &mut Followed) -> bool {
    let Some(change) = changes.recv().await else { return false };
    followed.take_in(change);
    true
}

impl Followed {
    fn take_in(&mut self, Change { kind, here, event }: Change) {
        match event {
            OwnEvent::There(object) => self.live.put(&kind, &object),
            OwnEvent::Gone((namespace, name)) => {
                self.live.remove(&kind, &(namespace.unwrap_or_default(), name));
            }
            OwnEvent::Synced => self.seen(kind, if here { ReadScope::Here } else { ReadScope::Everywhere }),
            OwnEvent::Trouble(OwnTrouble::NotServed(_)) => {
                let scope = self.live.names(&kind).map(ReadScope::not_served);
                self.unseen(kind, scope);
            }
            OwnEvent::Trouble(OwnTrouble::Forbidden(why)) => {
                let scope = self.live.names(&kind).map(|names| ReadScope::forbidden(names, &why));
                self.unseen(kind, scope);
            }
            // The API server will be back, and the watch goes on by itself.
            OwnEvent::Trouble(OwnTrouble::Lost(_)) => {}
        }
    }

    fn seen(&mut self, kind: GroupKind, reach: ReadScope) {
        self.listing.remove(&kind);
        self.live.reach.insert(kind, reach);
    }

    fn unseen(&mut self, kind: GroupKind, reach: Option<ReadScope>) {
        self.live.forget(&kind);
        if let Some(reach) = reach {
            self.seen(kind, reach);
        }
    }
}

fn on_a_screen(command: &TreeCommand) -> bool {
    matches!(command.output, Form::Text | Form::Wide) && io::stdout().is_terminal()
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
