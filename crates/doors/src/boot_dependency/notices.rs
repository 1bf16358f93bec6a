//! Events of a BootDependency: when an entry is there or is not there any more, and when all are. The first look counts as
//! a change; another cause of the same does not.

use linchpin_api::{BootDependency, BootEntry, boot_dependency::EntryStatus};
use linchpin_engine::contract::{Actor, ClusterRef, Notice, StepId, Verb, Via};
use linchpin_words::{Reason, text};

use super::address::target_and_port;
use crate::{
    door::{SideWrite, StatusInput},
    entries::is_unseen,
};

/// The events that are due now: between the status that is stored and the one that will be.
pub fn due(object: &BootDependency, status_input: &StatusInput<'_>) -> Vec<SideWrite> {
    let drawn = super::status::draw(object, status_input);
    let before = object.status.as_ref().map_or(&[][..], |status| status.entries.as_slice());
    let old = |row: &EntryStatus| before.iter().find(|old| old.name == row.name && !is_unlooked(&old.reason));
    let mut notices: Vec<SideWrite> = object
        .spec
        .depends_on
        .iter()
        .zip(&drawn.entries)
        .filter(|(_, row)| !is_unlooked(&row.reason))
        .filter_map(|(entry, row)| {
            let (reason, message) = match (old(row).map(|old| old.met), row.met) {
                (None | Some(true), false) => ("DependencyNotReady", missing(entry, row)),
                // What is passed by hand is not there; that it was passed has an event of its own.
                (Some(false), true) if row.reason != Reason::Proceeded.as_str() => {
                    ("DependencyReady", there(entry))
                }
                _ => return None,
            };
            // Named after what it ends, so that it is sent once for each change, and again for the next one.
            let name = format!("{reason}:{}:{}", row.name, since(old(row)));
            Some(notice(&name, reason, &message, !row.met))
        })
        .collect();
    let all = object.spec.depends_on.len();
    let whole = drawn.entries.len() == all && drawn.entries.iter().all(|row| row.met);
    let was_whole = before.len() == all && before.iter().all(|row| row.met);
    if whole && !was_whole {
        let message = format!("All {all} dependencies are reachable");
        let name = format!("all:{}", before.iter().map(|row| since(Some(row))).max().unwrap_or_default());
        notices.push(notice(&name, "AllDependenciesReady", &message, false));
    }
    notices
}

/// Whether nobody has looked yet, or nobody looks: that is no news.
fn is_unlooked(reason: &str) -> bool {
    is_unseen(reason) || reason == Reason::Suspended.as_str()
}

fn missing(entry: &BootEntry, row: &EntryStatus) -> String {
    let target = target_and_port(entry);
    let word = if is_dialled(entry) { "reachable" } else { "ready" };
    format!("Dependency {target} is not {word}: {}", row.message)
}

fn there(entry: &BootEntry) -> String {
    let target = target_and_port(entry);
    let word = if is_dialled(entry) { "reachable" } else { "ready" };
    format!("Dependency {target} is {word}")
}

fn is_dialled(entry: &BootEntry) -> bool {
    entry.service.is_some() || entry.host.is_some()
}

/// Since when a stored row is as it is.
fn since(row: Option<&EntryStatus>) -> String {
    row.map(|row| row.last_change.to_string()).unwrap_or_default()
}

fn notice(name: &str, reason: &str, message: &str, warning: bool) -> SideWrite {
    SideWrite {
        name: StepId::new(name),
        via: Via { cluster: ClusterRef::Here, actor: Actor::Operator },
        verb: Verb::Notice(Notice { reason: reason.to_owned(), message: text::line(message), warning }),
    }
}
